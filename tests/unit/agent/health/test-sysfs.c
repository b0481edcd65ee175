/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/sysfs.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define A    "0000:41:00.0"
#define REAL "devices/pci0000:40/0000:40:01.0"

static char *folder;

/* A device below a port, as sysfs has it: the list of the bus has links. */
static int begin(void **state)
{
        folder = scratch_folder_make();
        scratch_write(folder, REAL "/max_link_width", "8\n");
        scratch_write(folder, REAL "/max_link_speed", "16.0 GT/s PCIe\n");
        scratch_write(folder, REAL "/" A "/max_link_width", "16\n");
        scratch_write(folder, REAL "/" A "/max_link_speed", "8.0 GT/s PCIe\n");
        scratch_link(folder, "bus/pci/devices/" A, "../../../" REAL "/" A);
        scratch_link(folder, "bus/pci/devices/odd", "../../../" REAL);
        return 0;
}

static int end(void **state)
{
        scratch_folder_remove(folder);
        return 0;
}

static void test_list(void **state)
{
        char(*list)[PCI_ADDRESS_SIZE] = NULL;

        assert_int_equal(health_sysfs_list(folder, &list), 1);
        assert_string_equal(list[0], A);
        free(list);
        assert_int_equal(health_sysfs_list("/nonexistent", &list), -ENOENT);
}

static void test_counters(void **state)
{
        static const struct {
                const char *text;
                int value; /* -1: unknown */
        } cases[] = {
                { "Undefined 0\nDLP 1\nTOTAL_ERR_FATAL 12\n", 12 },
                { "TOTAL_ERR_FATAL 0", 0 },
                { "TOTAL_ERR_NONFATAL 12\n", -1 },
                { "TOTAL_ERR_FATAL x\n", -1 },
                { "TOTAL_ERR_FATAL 9999999999999999999\n", -1 },
                { "", -1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t value = 0;
                int r;

                scratch_write(folder, REAL "/" A "/aer_dev_fatal", cases[i].text);
                r = health_sysfs_read_aer(folder, A, HEALTH_AER_FATAL, &value);
                if ((r == 0 ? (int)value : -1) != cases[i].value)
                        fail_msg("%s", cases[i].text);
        }
        assert_int_equal(health_sysfs_read_aer(folder, A, HEALTH_AER_NONFATAL, &(uint64_t){ 0 }),
                         -ENODATA);
        scratch_write(folder, REAL "/" A "/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 3\n");
        assert_int_equal(health_sysfs_read_aer(folder, A, HEALTH_AER_NONFATAL, &(uint64_t){ 0 }),
                         0);
}

/* A card of 16 lanes in a slot of 8 has 8. */
static void test_links(void **state)
{
        static const struct {
                HealthEvidence kind;
                const char *text;
                int current, expected; /* -1: unknown */
        } cases[] = {
                { HEALTH_LINK_WIDTH, "8\n", 8, 8 },
                { HEALTH_LINK_WIDTH, "4\n", 4, 8 },
                { HEALTH_LINK_WIDTH, "0\n", -1, -1 },
                { HEALTH_LINK_WIDTH, "63\n", -1, -1 },
                { HEALTH_LINK_WIDTH, "Unknown\n", -1, -1 },
                { HEALTH_LINK_SPEED, "8.0 GT/s PCIe\n", 80, 80 },
                { HEALTH_LINK_SPEED, "2.5 GT/s\n", 25, 80 },
                { HEALTH_LINK_SPEED, "Unknown\n", -1, -1 },
                { HEALTH_LINK_SPEED, "0.0 GT/s\n", -1, -1 },
                { HEALTH_LINK_SPEED, "\n", -1, -1 },
        };
        unsigned current, expected;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *name = cases[i].kind == HEALTH_LINK_WIDTH
                                           ? REAL "/" A "/current_link_width"
                                           : REAL "/" A "/current_link_speed";
                int r;

                scratch_write(folder, name, cases[i].text);
                r = health_sysfs_read_link(folder, A, cases[i].kind, &current, &expected);
                if ((r == 0 ? (int)current : -1) != cases[i].current ||
                    (r == 0 ? (int)expected : -1) != cases[i].expected)
                        fail_msg("%s", cases[i].text);
        }
        assert_int_equal(health_sysfs_read_link(folder, "0000:42:00.0", HEALTH_LINK_WIDTH, &current,
                                                &expected),
                         -ENODATA);
}

static void test_controllers(void **state)
{
        char address[PCI_ADDRESS_SIZE];

        scratch_write(folder, "class/nvme/nvme0/address", A "\n");
        scratch_write(folder, "class/nvme/nvme1/address", "traddr=10.0.0.1\n");
        assert_int_equal(health_sysfs_find_nvme(folder, "nvme0", address), 0);
        assert_string_equal(address, A);
        assert_int_equal(health_sysfs_find_nvme(folder, "nvme1", address), -ENODEV);
        assert_int_equal(health_sysfs_find_nvme(folder, "nvme2", address), -ENODEV);
}

TEST_MAIN_WITH(begin, end, test_list, test_counters, test_links, test_controllers)
