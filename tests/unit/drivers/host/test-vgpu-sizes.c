/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Learns the sizes of cards from polls in which the hardware lists fewer and fewer types. */
#include "drivers/host/vgpu-sizes.h"

#include "tests/fixtures/host.h"

#define TYPE(id, name, available, created)                                              \
        "{'id': 'nvidia-" id "', 'name': '" name "', 'available_instances': " available \
        ", 'created_instances': " created "}"
#define VF(function, types)                                                             \
        "{'name': 'pci_0000_c1_01_" function "', 'address': '0000:c1:01." function "'," \
        " 'vendor_id': 4318, 'product_id': 9913, 'physical_function': '0000:c1:00.0',"  \
        " 'is_vgpu_function': true, 'mdev_types': [" types "]}"
#define FREE  TYPE("1428", "NVIDIA L40S-2Q", "1", "0") ", " TYPE("1436", "NVIDIA L40S-48Q", "1", "0")
#define SMALL TYPE("1428", "NVIDIA L40S-2Q", "1", "0")
#define USED  TYPE("1428", "", "0", "1")

static void test_names(void **state)
{
        static const struct {
                const char *name;
                uint64_t mib;
        } cases[] = {
                { "NVIDIA L40S-48Q", 49152 },
                { "NVIDIA L40S-2B", 2048 },
                { "GRID M10-0B", 512 },
                { "GRID M60-0B4", 512 },
                { "NVIDIA A40-8C", 8192 },
                { "NVIDIA A16-1A", 1024 },
                { "GRID V100D-4Q", 4096 },
                { "NVIDIA A100-1-5C", 0 },
                { "NVIDIA A100-1-5CME", 0 },
                { "NVIDIA H100XM-7-80C", 0 },
                { "NVIDIA L40S", 0 },
                { "", 0 },
                { "-2Q", 0 },
                { "NVIDIA L40S-", 0 },
                { "NVIDIA L40S-2", 0 },
                { "NVIDIA L40S-2X", 0 },
                { "X-99999999999999999999Q", 0 },
                { "NVIDIA RTX6000-Ada-24Q", 24576 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const SnapshotDevice device = { 0 };
                const MdevType type = { .id = TEXT("nvidia-1"), .name = (char *)cases[i].name };
                uint64_t mib = vgpu_sizes_of_type(NULL, &device, &type);

                if (mib != cases[i].mib)
                        fail_msg("%s: %llu", cases[i].name, (unsigned long long)mib);
        }
}

/* Notes a poll three times, as for three trees. Returns the size of the card, in MiB. */
static uint64_t note(VgpuSizes *sizes, const char *devices, bool changed)
{
        static uint64_t began_usec;
        _cleanup_free_ char *members = text_format("'devices': [%s]", devices);
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(members);
        bool has_changed;

        host->began_usec = ++began_usec;
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(vgpu_sizes_note(sizes, host, &has_changed), 0);
                assert_int_equal(has_changed, changed && i == 0);
        }
        return vgpu_sizes_of_card(sizes, &host->devices[0]);
}

static void test_a_size_is_remembered(void **state)
{
        _cleanup_(vgpu_sizes_done) VgpuSizes sizes = { 0 }, copy = { 0 };
        _cleanup_json_ json_t *json = NULL;
        const MdevType nameless = { .id = TEXT("nvidia-1428"), .name = TEXT("") };
        const SnapshotDevice device = { .vendor_id = 4318, .product_id = 9913 };
        const SnapshotDevice other = { .vendor_id = 4318, .product_id = 1 };

        assert_int_equal(note(&sizes, VF("0", FREE) ", " VF("1", FREE), true), 49152);
        /* one vGPU is made: only its type is listed, and its own name is gone */
        assert_int_equal(note(&sizes, VF("0", USED) ", " VF("1", SMALL), false), 49152);
        /* full */
        assert_int_equal(note(&sizes, VF("0", USED) ", " VF("1", USED), false), 49152);
        json = vgpu_sizes_to_json(&sizes);
        assert_int_equal(vgpu_sizes_from_json(json, &copy, NULL), 0);
        assert_int_equal(vgpu_sizes_of_type(&copy, &device, &nameless), 2048);
        assert_int_equal(vgpu_sizes_of_card(&copy, &device), 49152);
        assert_int_equal(vgpu_sizes_of_card(&copy, &other), 0);
        assert_int_equal(vgpu_sizes_of_card(NULL, &device), 0);
        assert_int_equal(vgpu_sizes_copy(&copy, &sizes), 0);
        assert_int_equal(copy.n_items, sizes.n_items);
}

static void test_a_used_card_proves_a_lower_bound(void **state)
{
        _cleanup_(vgpu_sizes_done) VgpuSizes sizes = { 0 };
        static const char used[] = VF("0", USED) ", " VF("1", USED) ", " VF("2", SMALL);

        /* The largest type of a list counts at once, and vGPUs after three equal polls. */
        assert_int_equal(note(&sizes,
                              VF("0", TYPE("1428", "NVIDIA L40S-2Q", "0", "1")) ", " VF("1", SMALL),
                              true),
                         2048);
        assert_int_equal(note(&sizes, used, false), 2048);
        assert_int_equal(note(&sizes, used, false), 2048);
        assert_int_equal(note(&sizes, used, true), 6144);
        /* the card is empty again */
        assert_int_equal(note(&sizes, VF("0", FREE), true), 49152);
}

/* A vGPU ends, or appears, while the poll reads the other functions. */
static void test_a_change_during_a_poll_proves_nothing(void **state)
{
        static const char torn[] = VF("0", USED) ", " VF("1", FREE);
        static const char full[] = VF("0", USED) ", " VF("1", SMALL);
        static const char empty[] = VF("0", FREE) ", " VF("1", FREE);
        static const char *const polls[][3] = {
                { full, torn, empty },
                { torn, full, full },
        };

        for (size_t i = 0; i < ARRAY_SIZE(polls); i++) {
                _cleanup_(vgpu_sizes_done) VgpuSizes sizes = { 0 };

                assert_int_equal(note(&sizes, empty, true), 49152);
                for (size_t j = 0; j < 3; j++)
                        assert_int_equal(note(&sizes, polls[i][j], false), 49152);
                assert_int_equal(note(&sizes, empty, false), 49152);
        }
}

static void test_bad_files(void **state)
{
        static const struct {
                const char *json;
                int r;
        } cases[] = {
                { "[]", 0 },
                { "[{'vendor_id': 1, 'product_id': 2, 'type': 0, 'framebuffer_mib': 0}]", 0 },
                { "[{'vendor_id': 1, 'product_id': 2, 'type': 0}]", -EBADMSG },
                { "[{'vendor_id': 4294967296, 'product_id': 2, 'type': 0, 'framebuffer_mib': 1}]",
                  -EBADMSG },
                { "['x']", -EBADMSG },
                { "[{'vendor_id': 1, 'product_id': 2, 'type': 0, 'framebuffer_mib': 99999999999}]",
                  0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *json = fixture_json(cases[i].json);
                _cleanup_(vgpu_sizes_done) VgpuSizes sizes = { 0 };

                assert_int_equal(vgpu_sizes_from_json(json, &sizes, NULL), cases[i].r);
                assert_int_equal(sizes.n_items, 0);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_a_size_is_remembered),
                cmocka_unit_test(test_a_used_card_proves_a_lower_bound),
                cmocka_unit_test(test_a_change_during_a_poll_proves_nothing),
                cmocka_unit_test(test_bad_files),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
