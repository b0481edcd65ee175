/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/device-ledger.h"
#include "tests/host-fixture.h"

#define BOOT_1   "11111111-1111-4111-8111-111111111111"
#define BOOT_2   "22222222-2222-4222-8222-222222222222"
#define CONFIG_1 "33333333-3333-4333-8333-333333333333"
#define CONFIG_2 "44444444-4444-4444-8444-444444444444"
#define MDEV     "55555555-5555-4555-8555-555555555555"

#define GPU "\"devices\": [{\"name\": \"pci_0000_41_00_0\", \"address\": \"0000:41:00.0\"}]"
#define GPU_MDEV                               \
        GPU ", \"mdevs\": [{\"uuid\": \"" MDEV \
            "\", \"type\": \"t\", \"parent\": \"pci_0000_41_00_0\"}]"
#define NO_GPU "\"devices\": []"
#define GUEST                                                                                    \
        ", \"domains\": [{\"uuid\": \"" BOOT_1 "\", \"state\": \"shutoff\", \"mdevs\": [\"" MDEV \
        "\"]}]"

typedef struct Cycle {
        const char *host;
        const char *boot, *config;
        bool told;            /* the driver makes a provider of the GPU */
        const char *expected; /* "total/reserved", or "" for no provider */
        const char *news;     /* "" none, "-" missing, "+" back */
} Cycle;

static void on_news(const LedgerDevice *device, bool back, void *userdata)
{
        strcat(userdata, back ? "+" : "-");
}

static void run_cycle(DeviceLedger *ledger, const Cycle *cycle, const char *about)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(cycle->host);
        Provider *root, *provider;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        Uuid uuid = uuid_make_child(&root->uuid, "gpu"), boot, config;
        char news[16] = "", text[32] = "";
        Error error = ERROR_NULL;
        const Inventory *record;

        assert_int_equal(uuid_from_text(cycle->boot, &boot), 0);
        assert_int_equal(uuid_from_text(cycle->config, &config), 0);
        if (cycle->told) {
                assert_int_equal(provider_tree_add(tree, &uuid, "cn1_pci_0000_41_00_0", &root->uuid,
                                                   &provider, NULL),
                                 0);
                assert_int_equal(provider_set_inventory(provider, "VGPU", &INVENTORY_DEFAULT(4)),
                                 0);
                assert_int_equal(string_set_add(&provider->traits, "CUSTOM_T"), 1);
        }
        if (device_ledger_update(ledger, host, tree, &root->uuid, &boot, &config, on_news, news,
                                 &error) < 0)
                fail_msg("%s: %s", about, error.text);
        provider = provider_tree_find_name(tree, "cn1_pci_0000_41_00_0");
        if (provider) {
                record = provider_find_inventory(provider, "VGPU");
                snprintf(text, sizeof(text), "%d/%d", (int)record->total, (int)record->reserved);
                assert_true(uuid_equal(&provider->uuid, &uuid));
                assert_true(string_set_contains(&provider->traits, "CUSTOM_T"));
        }
        if (strcmp(text, cycle->expected) != 0 || strcmp(news, cycle->news) != 0)
                fail_msg("%s: \"%s\" news \"%s\"", about, text, news);
}

/* As a restart of the agent does. */
static void pass_through_json(DeviceLedger *ledger)
{
        _cleanup_json_ json_t *json = device_ledger_to_json(ledger);

        device_ledger_done(ledger);
        assert_int_equal(device_ledger_from_json(json, ledger, NULL), 0);
}

static void test_pain_2(void **state)
{
        static const struct {
                const char *about;
                Cycle cycles[5];
        } cases[] = {
                { "after a reboot: withheld, told once, released",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "" },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-" },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "" },
                    { GPU, BOOT_2, CONFIG_1, true, "4/0", "+" },
                    { GPU, BOOT_2, CONFIG_1, true, "4/0", "" } } },
                { "there, but its driver is not up yet",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "" },
                    { GPU, BOOT_2, CONFIG_1, false, "4/4", "-" },
                    { GPU, BOOT_2, CONFIG_1, false, "4/4", "" },
                    { GPU, BOOT_2, CONFIG_1, true, "4/0", "+" } } },
                { "missing over two boots",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "" },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-" },
                    { NO_GPU, CONFIG_2, CONFIG_1, false, "4/4", "" } } },
                { "unplugged, and in nobody's use: gone",
                  { { GPU_MDEV, BOOT_1, CONFIG_1, true, "4/0", "" },
                    { NO_GPU, BOOT_1, CONFIG_1, false, "", "" } } },
                { "unplugged while a guest has a part of it: kept as long",
                  { { GPU_MDEV GUEST, BOOT_1, CONFIG_1, true, "4/0", "" },
                    { NO_GPU GUEST, BOOT_1, CONFIG_1, false, "4/4", "-" },
                    { NO_GPU, BOOT_1, CONFIG_1, false, "", "" } } },
                { "taken out of the configuration: gone",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "" },
                    { GPU, BOOT_1, CONFIG_2, false, "", "" } } },
                { "missing, and taken out of the configuration: gone",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "" },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-" },
                    { NO_GPU, BOOT_2, CONFIG_2, false, "", "" } } },
                { "the same, with a guest that has a part of it: kept",
                  { { GPU_MDEV GUEST, BOOT_1, CONFIG_1, true, "4/0", "" },
                    { NO_GPU GUEST, BOOT_2, CONFIG_2, false, "4/4", "-" } } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                DeviceLedger ledger = DEVICE_LEDGER_INIT;

                for (size_t j = 0; j < ARRAY_SIZE(cases[i].cycles) && cases[i].cycles[j].host;
                     j++) {
                        run_cycle(&ledger, &cases[i].cycles[j], cases[i].about);
                        pass_through_json(&ledger);
                }
                device_ledger_done(&ledger);
        }
}

/* What is withheld stays below its cell, and is put below the root only when that is gone */
static void test_withheld_below_its_cell(void **state)
{
        DeviceLedger ledger = DEVICE_LEDGER_INIT;
        _cleanup_(snapshot_unrefp) Snapshot *there = host_new(GPU), *missing = host_new(NO_GPU);
        Uuid boots[2], config, cell_uuid = uuid_make_random(), uuid = uuid_make_random();
        char news[16] = "";

        assert_int_equal(uuid_from_text(BOOT_1, &boots[0]), 0);
        assert_int_equal(uuid_from_text(BOOT_2, &boots[1]), 0);
        assert_int_equal(uuid_from_text(CONFIG_1, &config), 0);
        for (int cycle = 0; cycle < 3; cycle++) {
                Provider *root, *cell = NULL, *gpu;
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);

                if (cycle < 2)
                        assert_int_equal(provider_tree_add(tree, &cell_uuid, "cn1_NUMA1",
                                                           &root->uuid, &cell, NULL),
                                         0);
                if (cycle == 0) {
                        assert_int_equal(provider_tree_add(tree, &uuid, "cn1_pci_0000_41_00_0",
                                                           &cell->uuid, &gpu, NULL),
                                         0);
                        assert_int_equal(provider_set_inventory(gpu, "VGPU", &INVENTORY_DEFAULT(4)),
                                         0);
                }
                assert_int_equal(device_ledger_update(&ledger, cycle ? missing : there, tree,
                                                      &root->uuid, &boots[cycle > 0], &config,
                                                      on_news, news, NULL),
                                 0);
                pass_through_json(&ledger);
                gpu = provider_tree_find_name(tree, "cn1_pci_0000_41_00_0");
                assert_true(uuid_equal(&gpu->parent, cell ? &cell_uuid : &root->uuid));
        }
        device_ledger_done(&ledger);
}

static void test_bad_json(void **state)
{
        static const char *const texts[] = { "{}", "{\"devices\": 5}", "{\"devices\": [5]}",
                                             "{\"devices\": [{\"name\": \"x\"}]}",
                                             "{\"devices\": [{\"parent\": \"x\"}]}" };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_json_ json_t *json = json_loads(texts[i], 0, NULL);
                DeviceLedger ledger;

                assert_int_equal(device_ledger_from_json(json, &ledger, NULL), -EBADMSG);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pain_2),
                cmocka_unit_test(test_withheld_below_its_cell),
                cmocka_unit_test(test_bad_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
