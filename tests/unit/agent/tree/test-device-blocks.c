/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/device-blocks.h"
#include "base/text.h"
#include "tests/fixtures/host.h"

#define MDEV_F "11111111-1111-4111-8111-111111111111"
#define MDEV_G "22222222-2222-4222-8222-222222222222"
#define GUEST  "33333333-3333-4333-8333-333333333333"
#define CARD   "0000:10:00.0"
#define F1     "0000:10:00.1"
#define F2     "0000:10:00.2"
#define GPU    "0000:41:00.0"
#define NAME_F "pci_0000_10_00_2"
#define NAME_G "pci_0000_41_00_0"

/* A card with two virtual functions, of which the second has an mdev, and a GPU with an mdev. */
#define HOST                                                                                    \
        "\"devices\": [{\"name\": \"pci_0000_10_00_0\", \"address\": \"" CARD "\","             \
        " \"product_id\": 1}, {\"name\": \"pci_0000_10_00_1\", \"address\": \"" F1 "\","        \
        " \"product_id\": 2, \"physical_function\": \"" CARD "\"}, {\"name\": \"" NAME_F "\","  \
        " \"address\": \"" F2 "\", \"product_id\": 2, \"physical_function\": \"" CARD "\"},"    \
        " {\"name\": \"" NAME_G "\", \"address\": \"" GPU "\", \"product_id\": 3}],"            \
        " \"mdevs\": [{\"uuid\": \"" MDEV_F "\", \"type\": \"t\", \"parent\": \"" NAME_F "\"}," \
        " {\"uuid\": \"" MDEV_G "\", \"type\": \"t\", \"parent\": \"" NAME_G "\"}]"

/* spec is the product id of the configured devices. key is the end of the provider's name. member
 * is the domain's list of devices, with its one item. */
static void test_table(void **state)
{
        static const struct {
                const char *about, *spec, *key, *device, *member, *item, *expected;
        } rows[] = {
                { "nothing is taken", "0002", CARD, "pci_0000_10_00_0", "mdevs", NULL, NULL },
                { "a card blocks its functions", "0002", CARD, "pci_0000_10_00_0", "pci_addresses",
                  CARD, CARD },
                { "also by a persistent definition", "0002", CARD, "pci_0000_10_00_0",
                  "config_pci_addresses", CARD, CARD },
                { "a function that is counted is used", "0002", CARD, "pci_0000_10_00_0",
                  "pci_addresses", F1, NULL },
                { "a card that is counted is used", "0001", CARD, "pci_0000_10_00_0",
                  "pci_addresses", CARD, NULL },
                { "a function blocks its card", "0001", CARD, "pci_0000_10_00_0", "pci_addresses",
                  F1, F1 },
                { "an mdev blocks the card of its function", "0001", CARD, "pci_0000_10_00_0",
                  "config_mdevs", MDEV_F, MDEV_F },
                { "a card blocks mdevs of its functions", "0002", NAME_F, NAME_F, "pci_addresses",
                  CARD, CARD },
                { "a function blocks its mdevs", "0002", NAME_F, NAME_F, "pci_addresses", F2, F2 },
                { "another function does not", "0002", NAME_F, NAME_F, "pci_addresses", F1, NULL },
                { "an mdev of the device is used", "0002", NAME_F, NAME_F, "mdevs", MDEV_F, NULL },
                { "an mdev blocks its GPU", "0003", GPU, NAME_G, "mdevs", MDEV_G, MDEV_G },
                { "a GPU blocks its mdevs", "0003", NAME_G, NAME_G, "pci_addresses", GPU, GPU },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_free_ char *domain =
                        rows[i].item ? text_format(HOST ", \"domains\": [{\"uuid\": \"" GUEST
                                                        "\", \"state\": \"running\","
                                                        " \"%s\": [\"%s\"]}]",
                                                   rows[i].member, rows[i].item)
                                     : strdup(HOST);
                _cleanup_free_ char *spec = text_format("{'product_id': '%s'}", rows[i].spec);
                _cleanup_(snapshot_unrefp) Snapshot *host = host_new(domain);
                _cleanup_(device_blocks_done) DeviceBlocks blocks = { 0 };
                HostConfig config = config_make(NULL, 0);
                const SnapshotDevice *device = snapshot_find_device(host, rows[i].device);
                const char *found;

                assert_non_null(device);
                assert_int_equal(specs_add(&config.pci_specs, spec, NULL), 0);
                assert_int_equal(device_blocks_make(&blocks, &config, host), 0);
                found = device_blocks_find(&blocks, rows[i].key, device);
                if (strcmp(found ? found : "", rows[i].expected ? rows[i].expected : "") != 0)
                        fail_msg("%s: %s", rows[i].about, found ? found : "not blocked");
                blocks.host = NULL;
                assert_null(device_blocks_find(&blocks, rows[i].key, device));
                pci_specs_done(&config.pci_specs);
        }
}

TEST_MAIN(test_table)
