/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <math.h>

#include "drivers/driver-config.h"
#include "tests/fixtures/host.h"

static void test_amounts(void **state)
{
        static const struct {
                double ratio;
                uint64_t reserved;
                const char *owner, *words;
        } cases[] = {
                { 0, 0, "", NULL },
                { 16.5, INVENTORY_MAX_AMOUNT, "OWNER_NOVA", NULL },
                { 0, 0, NULL, NULL },
                { -1, 0, "", "cpu_allocation_ratio" },
                { NAN, 0, "", "cpu_allocation_ratio" },
                { INFINITY, 0, "", "cpu_allocation_ratio" },
                { 0, INVENTORY_MAX_AMOUNT + 1, "", "reserved_host_memory_mb" },
                { 0, 0, "owner nova", "owner_trait" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HostConfig config = config_make(NULL, 0);
                Error error = ERROR_NULL;
                int r;

                config.cpu_allocation_ratio = cases[i].ratio;
                config.reserved_host_memory_mb = cases[i].reserved;
                config.owner_trait = cases[i].owner;
                r = driver_config_check(&config, &error);
                if (r != (cases[i].words ? -EINVAL : 0) ||
                    (cases[i].words && !strstr(error.text, cases[i].words)))
                        fail_msg("case %zu: %d (%s)", i, r, error.text);
        }
}

static void test_mdev_types(void **state)
{
        static char *no_addresses[] = { NULL };
        static char *pci[] = { TEXT("0000:41:00.0"), TEXT("ABCD:41:00.1"), NULL };
        static char *same_pci[] = { TEXT("abcd:41:00.1"), NULL };
        static char *virtual[] = { TEXT("/sys/devices/virtual/mtty/mtty"), NULL };
        static char *bad[] = { TEXT("41:00.0"), NULL };
        static char *bad_path[] = { TEXT("/sys/devices/pci0000:00/0000:00:01.0"), NULL };
        static char *bare_path[] = { TEXT("/sys/devices/virtual/"), NULL };
        static const struct {
                HostMdevType first, second;
                const char *words;
        } cases[] = {
                { MDEV_TYPE("a", NULL, "VGPU", 0), MDEV_TYPE("b", no_addresses, "CUSTOM_B", 3),
                  NULL },
                { MDEV_TYPE("a", pci, "VGPU", 0), MDEV_TYPE("b", virtual, "CUSTOM_B", 0), NULL },
                { MDEV_TYPE("a", NULL, "VGPU", 0), MDEV_TYPE("a", pci, "VGPU", 0),
                  "a is listed twice" },
                { MDEV_TYPE("a", NULL, "VGPU", 0), MDEV_TYPE("", NULL, "VGPU", 0),
                  "without a name" },
                { MDEV_TYPE("a", NULL, "VGPU", 0), MDEV_TYPE("b", NULL, "PGPU", 0),
                  "[mdev_b] mdev_class" },
                { MDEV_TYPE("a", NULL, "VGPU", 0), MDEV_TYPE("b", NULL, "CUSTOM_b", 0),
                  "mdev_class" },
                { MDEV_TYPE("a", NULL, "VGPU", 0), MDEV_TYPE("b", NULL, NULL, 0), "mdev_class" },
                { MDEV_TYPE("a", pci, "VGPU", 0), MDEV_TYPE("b", same_pci, "VGPU", 0),
                  "abcd:41:00.1 is also in [mdev_a]" },
                { MDEV_TYPE("a", bad, "VGPU", 0), MDEV_TYPE("b", NULL, "VGPU", 0),
                  "\"41:00.0\" is neither" },
                { MDEV_TYPE("a", bad_path, "VGPU", 0), MDEV_TYPE("b", NULL, "VGPU", 0),
                  "is neither" },
                { MDEV_TYPE("a", bare_path, "VGPU", 0), MDEV_TYPE("b", NULL, "VGPU", 0),
                  "is neither" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HostMdevType types[] = { cases[i].first, cases[i].second };
                HostConfig config = config_make(types, 2);
                Error error = ERROR_NULL;
                int r = driver_config_check(&config, &error);

                if (r != (cases[i].words ? -EINVAL : 0) ||
                    (cases[i].words && !strstr(error.text, cases[i].words)))
                        fail_msg("case %zu: %d (%s)", i, r, error.text);
        }
}

TEST_MAIN(test_amounts, test_mdev_types)
