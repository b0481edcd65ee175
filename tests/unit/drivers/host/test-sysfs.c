/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/sysfs.h"

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define NVME "0000:c1:00.0"

static void test_read(void **state)
{
        static const struct {
                const char *bytes;
                size_t n;
                const char *expected;
        } cases[] = {
                { "", 0, "" },
                { "one\n", 4, "one" },
                { " a b \t\n\n", 8, " a b" },
                { "a\0b\n", 4, "a" },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "file"), *big = malloc(SYSFS_TEXT_MAX + 1);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = NULL;

                scratch_write_bytes(folder, "file", cases[i].bytes, cases[i].n);
                assert_int_equal(sysfs_read(path, &text), 0);
                assert_string_equal(text, cases[i].expected);
        }
        memset(big, 'x', SYSFS_TEXT_MAX + 1);
        for (size_t more = 0; more < 2; more++) {
                _cleanup_free_ char *text = NULL;

                scratch_write_bytes(folder, "file", big, SYSFS_TEXT_MAX + more);
                assert_int_equal(sysfs_read(path, &text), more ? -EFBIG : 0);
        }
        assert_true(sysfs_is_gone(sysfs_read("/nonexistent", NULL)));
        assert_true(sysfs_is_gone(sysfs_read("/dev/null/x", NULL)));
        assert_false(sysfs_is_gone(-EACCES));
}

static void test_serial_of_nvme(void **state)
{
        static const struct {
                uint32_t class_code;
                const char *before, *file, *text, *expected;
        } cases[] = {
                { 0x010802, "", "/nvme/nvme3/serial", "S5ABC  \n", "S5ABC" },
                { 0x010802, "", "/nvme/nvme3/serial", "a\x1b[2J", "a?[2J" },
                { 0x010802, "VPD", "/nvme/nvme3/serial", "S5ABC",
                  "VPD" },                                           /* its VPD has priority */
                { 0x020000, "", "/nvme/nvme3/serial", "S5ABC", "" }, /* a network card */
                { 0x010802, "", "/nvme/other/serial", "S5ABC", "" },
                { 0x010802, "", "/nvme/nvme3/model", "S5ABC", "" },
                { 0x010802, "", "/uevent", "", "" }, /* no driver is bound */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_(snapshot_device_done) SnapshotDevice device = {
                        .is_pci = true, .address = NVME, .class_code = cases[i].class_code
                };
                char name[64];

                device.serial = strdup(cases[i].before);
                snprintf(name, sizeof(name), NVME "%s", cases[i].file);
                scratch_write(folder, name, cases[i].text);
                assert_int_equal(sysfs_read_nvme_serial(folder, &device), 0);
                if (strcmp(device.serial, cases[i].expected) != 0)
                        fail_msg("case %zu: \"%s\"", i, device.serial);
        }
}

#define LIVING "5d0b6c3e-8a53-4c0f-9d62-000000000001"
#define ENDED  "5d0b6c3e-8a53-4c0f-9d62-000000000002"

static void test_ended_mdevs(void **state)
{
        static const struct {
                const char *mdev, *parent;
                bool is_local, stays;
        } cases[] = {
                { LIVING, "pci_0000_41_00_0", true, true },
                { LIVING, "pci_0000_41_00_0", false, true },
                { ENDED, "pci_0000_41_00_0", true, false },
                { ENDED, "pci_0000_41_00_0", false, false },
                { ENDED, "mtty_mtty", true, false },
                /* the hypervisor can run on another machine */
                { ENDED, "mtty_mtty", false, true },
                { ENDED, "pci_0000_42_00_0", false, true },
                { ENDED, "pci_0000_41_00_0x", false, true },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();

        scratch_link(folder, "bus/mdev/devices/" LIVING, "gone");
        scratch_link(folder, "class/mdev_bus/0000:41:00.0", "gone");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;

                assert_int_equal(snapshot_new(&snapshot), 0);
                snapshot->mdevs = calloc(1, sizeof(SnapshotMdev));
                snapshot->n_mdevs = 1;
                assert_int_equal(uuid_from_text(cases[i].mdev, &snapshot->mdevs[0].uuid), 0);
                snapshot->mdevs[0].type = strdup("nvidia-35");
                snapshot->mdevs[0].parent = strdup(cases[i].parent);
                sysfs_drop_ended_mdevs(folder, cases[i].is_local, snapshot);
                if (snapshot->n_mdevs != cases[i].stays)
                        fail_msg("case %zu", i);
        }
}

TEST_MAIN(test_read, test_serial_of_nvme, test_ended_mdevs)
