/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/vgpu-types.h"

#include "drivers/host/sysfs.h"
#include "tests/fixtures/host.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/shims/fail-alloc.h"

#define LIST "ID    : vGPU Name\n1155  : NVIDIA L40S-1B\n1156  : NVIDIA L40S-2B\n"
#define VF   "0000:41:00.4"

/* Writes "nvidia-1155=1/0 NVIDIA L40S-1B; …": available and created instances, and the name. */
static char *describe(const SnapshotDevice *device)
{
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        assert_non_null(stream);
        for (size_t i = 0; i < device->n_mdev_types; i++) {
                const MdevType *type = &device->mdev_types[i];

                fprintf(stream, "%s%s=%d/%d %s", i > 0 ? "; " : "", type->id,
                        (int)type->available_instances, (int)type->created_instances, type->name);
        }
        fclose(stream);
        return text;
}

static void test_parse(void **state)
{
        static const struct {
                const char *creatable, *current, *expected;
        } cases[] = {
                { "", "", "" },
                { LIST, "0\n", "nvidia-1155=1/0 NVIDIA L40S-1B; nvidia-1156=1/0 NVIDIA L40S-2B" },
                { LIST, "", "nvidia-1155=1/0 NVIDIA L40S-1B; nvidia-1156=1/0 NVIDIA L40S-2B" },
                { LIST, "1156\n",
                  "nvidia-1155=0/0 NVIDIA L40S-1B; nvidia-1156=0/1 NVIDIA L40S-2B" },
                /* a function that is a vGPU lists no types, or other ones */
                { "", "1156", "nvidia-1156=0/1 " },
                { "1 : a\n", "1156", "nvidia-1=0/0 a; nvidia-1156=0/1 " },
                { "1:a\n2 :  b  \r\n\t3\t:\tc", "0",
                  "nvidia-1=1/0 a; nvidia-2=1/0 b; nvidia-3=1/0 c" },
                { "1 :\n", "0", "nvidia-1=1/0 " },
                /* a duplicate counts once */
                { "7 : a\n7 : b\n", "0", "nvidia-7=1/0 a" },
                { "007 : a\n", "07", "nvidia-7=0/1 a" },
                /* no types */
                { "0 : none\n-1 : a\n1155\n1155 NVIDIA\nx1 : a\n: a\n \n\n", "x", "" },
                { "4294967296 : a\n99999999999999999999999 : a\n", "4294967296", "" },
                { "4294967295 : a\n", "", "nvidia-4294967295=1/0 a" },
                { "1 : a\x1b[2J\x80'\"<b>&\n", "", "nvidia-1=1/0 a?[2J?'\"<b>&" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_device_done) SnapshotDevice device = { 0 };
                _cleanup_free_ char *text = NULL;

                assert_int_equal(vgpu_types_parse(cases[i].creatable, cases[i].current, &device),
                                 0);
                assert_true(device.is_vgpu_function);
                text = describe(&device);
                if (strcmp(text, cases[i].expected) != 0)
                        fail_msg("case %zu: \"%s\"", i, text);
        }
}

static void test_long_name(void **state)
{
        _cleanup_(snapshot_device_done) SnapshotDevice device = { 0 };
        char text[5000] = "1 : ";

        memset(text + 4, 'A', sizeof(text) - 5);
        assert_int_equal(vgpu_types_parse(text, "0", &device), 0);
        assert_int_equal(strlen(device.mdev_types[0].name), 255);
}

static void test_out_of_memory(void **state)
{
        _cleanup_(snapshot_device_done) SnapshotDevice device = { 0 };
        unsigned at;
        int r;

        FAIL_ALLOC_EACH(at, r = vgpu_types_parse(LIST, "3", &device)) {
                assert_int_equal(r, -ENOMEM);
                snapshot_device_done(&device);
        }
        assert_int_equal(r, 0);
        assert_true(at >= 6);
}

static SnapshotDevice nvidia_vf(void)
{
        return (SnapshotDevice){ .is_pci = true,
                                 .vendor_id = 0x10de,
                                 .address = VF,
                                 .physical_function = "0000:41:00.0" };
}

static void test_read(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(snapshot_device_done) SnapshotDevice device = nvidia_vf();

        assert_int_equal(vgpu_types_read(folder, &device, NULL), 0);
        assert_false(device.is_vgpu_function);
        scratch_write(folder, VF "/nvidia/creatable_vgpu_types", LIST);
        scratch_write(folder, VF "/nvidia/current_vgpu_type", "0\n");
        assert_int_equal(vgpu_types_read(folder, &device, NULL), 0);
        assert_true(device.is_vgpu_function);
        assert_int_equal(device.n_mdev_types, 2);
        /* libvirt reported mdev types of it, which have priority */
        assert_int_equal(vgpu_types_read(folder, &device, NULL), 0);
        assert_int_equal(device.n_mdev_types, 2);
}

static void test_read_of_others(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(snapshot_device_done) SnapshotDevice intel = nvidia_vf(), whole = nvidia_vf();

        scratch_write(folder, VF "/nvidia/creatable_vgpu_types", LIST);
        intel.vendor_id = 0x8086;
        whole.physical_function[0] = '\0';
        assert_int_equal(vgpu_types_read(folder, &intel, NULL), 0);
        assert_int_equal(vgpu_types_read(folder, &whole, NULL), 0);
        assert_int_equal(intel.n_mdev_types + whole.n_mdev_types, 0);
}

static void test_read_trouble(void **state)
{
        static const char *const names[] = { VF "/nvidia/creatable_vgpu_types",
                                             VF "/nvidia/current_vgpu_type" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_(snapshot_device_done) SnapshotDevice device = nvidia_vf();
                _cleanup_free_ char *big = calloc(1, SYSFS_TEXT_MAX + 2);
                Error error = ERROR_NULL;

                memset(big, 'x', SYSFS_TEXT_MAX + 1);
                scratch_write(folder, names[0], LIST);
                scratch_write(folder, names[i], big);
                assert_int_equal(vgpu_types_read(folder, &device, &error), -EFBIG);
                assert_non_null(strstr(error.text, names[i]));
                assert_true(device.is_vgpu_function && device.vgpu_unread);
                assert_int_equal(device.n_mdev_types, 0);
                /* the largest valid size */
                big[SYSFS_TEXT_MAX] = '\0';
                scratch_write(folder, names[i], big);
                assert_int_equal(vgpu_types_read(folder, &device, &error), 0);
                assert_true(device.is_vgpu_function);
                assert_false(device.vgpu_unread);
        }
}

static void test_a_folder_in_place_of_a_file(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(snapshot_device_done) SnapshotDevice device = nvidia_vf();
        Error error = ERROR_NULL;

        scratch_write(folder, VF "/nvidia/creatable_vgpu_types/x", "");
        assert_int_equal(vgpu_types_read(folder, &device, &error), -EISDIR);
        assert_non_null(strstr(error.text, "creatable_vgpu_types"));
}

TEST_MAIN(test_parse, test_long_name, test_out_of_memory, test_read, test_read_of_others,
          test_read_trouble, test_a_folder_in_place_of_a_file)
