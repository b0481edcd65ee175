/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes plans for up to two types and compares their offers in one line of text. */
#include "drivers/tree/mdev-plan.h"
#include "tests/fixtures/host.h"

#define UUID_1 "11111111-1111-4111-8111-111111111111"
#define UUID_2 "22222222-2222-4222-8222-222222222222"
#define UUID_3 "33333333-3333-4333-8333-333333333333"

#define GPU(slot, a, b)                                                         \
        "{'name': 'pci_0000_41_0" slot "_0', 'address': '0000:41:0" slot ".0'," \
        " 'mdev_types': [{'id': 'A', 'available_instances': " a "},"            \
        "                  {'id': 'B', 'available_instances': " b "}]}"
#define MTTY "{'name': 'mtty_mtty', 'mdev_types': [{'id': 'mtty-2', 'available_instances': 24}]}"
#define MDEV(uuid, type, slot) \
        "{'uuid': '" uuid "', 'type': '" type "', 'parent': 'pci_0000_41_0" slot "_0'}"

#define NO_TYPE              \
        {                    \
                .type = NULL \
        }

static char *address_0[] = { TEXT("0000:41:00.0"), NULL };
static char *address_1[] = { TEXT("0000:41:01.0"), NULL };
static char *address_mtty[] = { TEXT("/sys/devices/virtual/mtty/mtty"), NULL };

/* Writes "device type existing/total; …". */
static void describe(const MdevPlan *plan, char *text, size_t size)
{
        text[0] = '\0';
        for (size_t i = 0; i < plan->n_offers; i++) {
                const MdevOffer *offer = &plan->offers[i];
                size_t n = strlen(text);

                snprintf(text + n, size - n, "%s%s %s %llu/%llu", i ? "; " : "",
                         offer->device->name, offer->type->type,
                         (unsigned long long)offer->existing, (unsigned long long)offer->total);
        }
}

static void test_table(void **state)
{
        static const struct {
                const char *about;
                const char *host;
                HostMdevType first, second;
                const char *plan;
        } cases[] = {
                { "no type enabled", "'devices': [" GPU("0", "16", "8") "]", NO_TYPE, NO_TYPE, "" },
                { "C4: the first type without addresses is for all devices",
                  "'devices': [" GPU("0", "16", "8") ", " GPU("1", "16", "8") "]",
                  MDEV_TYPE("A", NULL, "VGPU", 0), MDEV_TYPE("B", NULL, "VGPU", 0),
                  "pci_0000_41_00_0 A 0/16; pci_0000_41_01_0 A 0/16" },
                { "C4: a type by address, another for the rest",
                  "'devices': [" GPU("0", "16", "8") ", " GPU("1", "16", "8") "]",
                  MDEV_TYPE("A", NULL, "VGPU", 0), MDEV_TYPE("B", address_1, "CUSTOM_B", 0),
                  "pci_0000_41_00_0 A 0/16; pci_0000_41_01_0 B 0/8" },
                { "no type for the rest",
                  "'devices': [" GPU("0", "16", "8") ", " GPU("1", "16", "8") "]",
                  MDEV_TYPE("A", address_0, "VGPU", 0), MDEV_TYPE("B", address_0, "VGPU", 0),
                  "pci_0000_41_00_0 A 0/16" },
                { "a parent that is no PCI device, by its path",
                  "'devices': [" MTTY ", " GPU("0", "16", "8") "]",
                  MDEV_TYPE("mtty-2", address_mtty, "CUSTOM_MTTY", 0),
                  MDEV_TYPE("A", NULL, "VGPU", 0),
                  "mtty_mtty mtty-2 0/24; pci_0000_41_00_0 A 0/16" },
                { "a device does not know the type that is meant for it", "'devices': [" MTTY "]",
                  MDEV_TYPE("A", NULL, "VGPU", 0), NO_TYPE, "" },
                { "existing mdevs of the device's type count, given or not; others do not",
                  "'devices': [" GPU("0", "14", "0") "], 'mdevs': [" MDEV(
                          UUID_1, "A", "0") ", " MDEV(UUID_2, "A", "0") ", " MDEV(UUID_3, "B",
                                                                                  "0") "]",
                  MDEV_TYPE("A", NULL, "VGPU", 0), NO_TYPE, "pci_0000_41_00_0 A 2/16" },
                { "G4.7: nothing to offer, no offer",
                  "'devices': [" GPU("0", "0", "0") ", " GPU("1", "1", "0") "]",
                  MDEV_TYPE("A", NULL, "VGPU", 0), NO_TYPE, "pci_0000_41_01_0 A 0/1" },
                { "all taken is still an offer",
                  "'devices': [" GPU("0", "0", "0") "], 'mdevs': [" MDEV(UUID_1, "A", "0") "]",
                  MDEV_TYPE("A", NULL, "VGPU", 0), NO_TYPE, "pci_0000_41_00_0 A 1/1" },
                { "G2.6: max_instances bounds the host, in part",
                  "'devices': [" GPU("0", "16", "8") ", " GPU("1", "16", "8") "]",
                  MDEV_TYPE("A", NULL, "VGPU", 20), NO_TYPE,
                  "pci_0000_41_00_0 A 0/16; pci_0000_41_01_0 A 0/4" },
                { "G2.6: never below what exists",
                  "'devices': [" GPU("0", "15", "8") ", " GPU("1", "14", "8") "], 'mdevs': [" MDEV(
                          UUID_1, "A", "0") ", " MDEV(UUID_2, "A", "1") ", " MDEV(UUID_3, "A",
                                                                                  "1") "]",
                  MDEV_TYPE("A", NULL, "VGPU", 2), NO_TYPE,
                  "pci_0000_41_00_0 A 1/1; pci_0000_41_01_0 A 2/2" },
                { "G2.6: what exists elsewhere comes before what could be",
                  "'devices': [" GPU("0", "16", "8") ", " GPU("1", "15", "8") "], 'mdevs': [" MDEV(
                          UUID_1, "A", "1") "]",
                  MDEV_TYPE("A", NULL, "VGPU", 2), NO_TYPE,
                  "pci_0000_41_00_0 A 0/1; pci_0000_41_01_0 A 1/1" },
                { "G4.9: each type has its own bound",
                  "'devices': [" GPU("0", "16", "8") ", " GPU("1", "16", "8") "]",
                  MDEV_TYPE("A", address_0, "VGPU", 2), MDEV_TYPE("B", NULL, "VGPU", 3),
                  "pci_0000_41_00_0 A 0/2; pci_0000_41_01_0 B 0/3" },
                { "absurd amounts",
                  "'devices': [" GPU("0", "9223372036854775807",
                                     "0") "], 'mdevs': [" MDEV(UUID_1, "A", "0") "]",
                  MDEV_TYPE("A", NULL, "VGPU", 0), NO_TYPE, "pci_0000_41_00_0 A 1/2147483647" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *host = host_new(cases[i].host);
                _cleanup_(mdev_plan_done) MdevPlan plan = { 0 };
                HostMdevType types[] = { cases[i].first, cases[i].second };
                size_t n_types = !!types[0].type + !!types[1].type;
                HostConfig config = config_make(types, n_types);
                char text[512];

                assert_int_equal(mdev_plan_make(&config, host, NULL, &plan), 0);
                describe(&plan, text, sizeof(text));
                if (strcmp(text, cases[i].plan) != 0)
                        fail_msg("%s: \"%s\"", cases[i].about, text);
        }
}

static void test_path_of_device(void **state)
{
        static const struct {
                const char *path, *device;
                bool match;
        } cases[] = {
                { "/sys/devices/virtual/mtty/mtty", "mtty_mtty", true },
                { "/sys/devices/virtual/x/i915-gvt.0", "x_i915_gvt_0", true },
                { "/sys/devices/virtual/mtty/mtty", "mtty_mtty2", false },
                { "/sys/devices/virtual/mtty/mtty2", "mtty_mtty", false },
                { "/sys/devices/virtual/mtty/", "mtty_mtty", false },
                { "mtty", "mtty", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *addresses[] = { (char *)cases[i].path, NULL };
                HostMdevType type = MDEV_TYPE("A", addresses, "VGPU", 0);
                HostConfig config = config_make(&type, 1);
                SnapshotDevice device = { .name = (char *)cases[i].device };

                if ((mdev_type_of_device(&config, &device) == &type) != cases[i].match)
                        fail_msg("%s", cases[i].path);
        }
}

TEST_MAIN(test_table, test_path_of_device)
