/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The section [device_clean NAME] of a device. */

#include "drivers/host/clean.h"
#include "tests/fixtures/host.h"

static SnapshotDevice make_device(const char *address, const char *physical_function)
{
        SnapshotDevice device = {
                .name = TEXT("pci"), .is_pci = true, .vendor_id = 0x10de, .product_id = 0x1eb8
        };

        strcpy(device.address, address);
        strcpy(device.physical_function, physical_function);
        return device;
}

static void test_a_device_has_a_section(void **state)
{
        char *addresses[] = { TEXT("0000:81:00.0"), TEXT("0000:91:00.0"), TEXT("0000:81:00.4"),
                              NULL };
        char *classes[] = { TEXT("CUSTOM_GPU"), NULL };
        HostClean cleans[] = { { .name = TEXT("class"), .resource_classes = classes },
                               { .name = TEXT("address"), .device_addresses = addresses } };
        static const struct {
                const char *about, *address, *card, *section;
                bool report;
        } cases[] = {
                { "an address wins over a class", "0000:81:00.0", "", "address", true },
                { "a class", "0000:82:00.0", "", "class", true },
                { "no device_spec", "0000:91:00.0", "", NULL, true },
                { "a virtual function", "0000:81:00.4", "0000:81:00.0", NULL, true },
                { "not in Placement", "0000:82:00.0", "", NULL, false },
        };
        HostConfig config = { .cleans = cleans, .n_cleans = 2, .pci_specs = PCI_SPECS_INIT };

        assert_int_equal(pci_specs_add(&config.pci_specs,
                                       "[{\"address\": \"*:81:*.*\", \"resource_class\": \"GPU\"},"
                                       " {\"address\": \"*:82:*.*\", \"resource_class\": \"GPU\","
                                       " \"one_time_use\": \"yes\"}]",
                                       NULL),
                         0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const SnapshotDevice device = make_device(cases[i].address, cases[i].card);
                const HostClean *clean;

                config.report_in_placement = cases[i].report;
                clean = host_clean_find(&config, &device);
                if (!clean != !cases[i].section ||
                    (clean && strcmp(clean->name, cases[i].section) != 0))
                        fail_msg("%s: %s", cases[i].about, clean ? clean->name : "none");
                assert_int_equal(host_clean_is_one_time(&config, &device),
                                 cases[i].report && strncmp(cases[i].address, "0000:82", 7) == 0);
        }
        pci_specs_done(&config.pci_specs);
}

TEST_MAIN(test_a_device_has_a_section)
