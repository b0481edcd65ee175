/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/device-ledger.h"
#include "tests/fixtures/host.h"

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
#define GPU_TYPE(id, available)                                                                \
        "\"devices\": [{\"name\": \"pci_0000_41_00_0\", \"address\": \"0000:41:00.0\", "       \
        "\"mdev_types\": [{\"id\": \"" id "\", \"name\": \"\", \"device_api\": \"vfio-pci\", " \
        "\"available_instances\": " available "}]}]"
/* The GPU with a virtual function that becomes a vGPU. */
#define VGPU_CARD(function)                                                               \
        "\"devices\": [{\"name\": \"pci_0000_41_00_0\", \"address\": \"0000:41:00.0\"}, " \
        "{\"name\": \"pci_0000_41_01_0\", \"address\": \"0000:41:01.0\", "                \
        "\"physical_function\": \"0000:41:00.0\"" function "}]"
#define GUEST                                                                                    \
        ", \"domains\": [{\"uuid\": \"" BOOT_1 "\", \"state\": \"shutoff\", \"mdevs\": [\"" MDEV \
        "\"]}]"

typedef struct Cycle {
        const char *host;
        const char *boot, *config;
        bool told;            /* the driver makes a provider for the GPU */
        const char *expected; /* "total/reserved"; "": no provider */
        const char *change;   /* "": none, "-": missing, "+": back */
        unsigned seconds;     /* time of the clock */
} Cycle;

/* Inputs of the next run_cycle(), beside the cycle. */
static const char *claimed_identity; /* the GPU's identity in a claim; NULL: no claim names the GPU;
                                        "": claims cannot be read */
static const char *withheld_words;   /* NULL: missing, or back */
static int unclean_state = -1;       /* state of the GPU's row; below 0: it has none */

/* Answers of Placement in the next cycles: '?' unknown, 'h' allocated, 'f' free. After the last one
 * there is no Placement. */
static const char *placement_says = "";

/* Returns answers about the allocations of the GPU's provider, or NULL. */
static Retained *make_retained(char use, const Uuid *provider)
{
        Allocations *holders;
        Retained *retained;
        Consumer *consumer;
        Uuid guest = uuid_make_random();
        const Uuid *asked;
        bool is_answered;
        size_t n;

        if (!use)
                return NULL;
        assert_int_equal(retained_new(&retained, "/nonexistent", true, NULL), 0);
        if (use == '?')
                return retained;
        assert_int_equal(allocations_new(&holders), 0);
        assert_int_equal(allocations_ensure(holders, &guest, &consumer), 0);
        if (use == 'h')
                assert_int_equal(consumer_add(consumer, provider, "VGPU", 1), 0);
        assert_int_equal(retained_want(retained, provider), 0);
        assert_int_equal(retained_ask(retained, &asked, &n, &is_answered), 0);
        retained_set_holders(retained, holders);
        return retained;
}

static void on_device_change(const LedgerDevice *device, DeviceChange change, void *userdata)
{
        static const char *const signs[] = { "-", "+", "x" };

        strcat(userdata, signs[change]);
}

/* Checks that the words name the withheld device with its reason, and no other one. */
static void check_words(const DeviceLedger *ledger, bool withheld, bool listed, const char *other,
                        const char *about)
{
        _cleanup_free_ char *words = device_ledger_describe_withheld(ledger);
        const char *expected =
                other       ? other
                : !withheld ? ""
                : ledger->devices[0].missing
                        ? (listed ? "cn1_pci_0000_41_00_0 (missing: the host lists it "
                                    "without capacity)"
                                  : "cn1_pci_0000_41_00_0 (missing)")
                        : "cn1_pci_0000_41_00_0 (back, and available again soon)";

        assert_non_null(words);
        if (strcmp(words, expected) != 0)
                fail_msg("%s: withheld \"%s\"", about, words);
}

static void run_cycle(DeviceLedger *ledger, const Cycle *cycle, unsigned hold_sec,
                      const char *about)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(cycle->host);
        Provider *root, *provider;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        HostMdevType type = { .type = (char *)"nvidia-35", .mdev_class = (char *)"VGPU" };
        const HostConfig config = { .mdev_types = &type, .n_mdev_types = 1 };
        ClaimedDevice claimed = { 0 };
        Uuid uuid = uuid_make_child(&root->uuid, "gpu");
        _cleanup_(retained_freep) Retained *retained = make_retained(*placement_says, &uuid);
        DeviceUpdateInput input = { .now_usec = cycle->seconds * USEC_PER_SEC,
                                    .hold_usec = hold_sec * USEC_PER_SEC,
                                    .host = &config,
                                    .retained = retained };
        char change[16] = "", text[32] = "";
        Error error = ERROR_NULL;
        const Inventory *record;
        _cleanup_json_ json_t *before = NULL, *after = NULL;

        UncleanDevice row = { .address = "0000:41:00.0", .state = unclean_state };
        const UncleanDevices rows = { .items = &row, .n_items = unclean_state >= 0 };

        input.unclean = &rows;
        input.claims_unknown = claimed_identity && !claimed_identity[0];
        if (claimed_identity && claimed_identity[0]) {
                strcpy(claimed.address, "0000:41:00.0");
                strcpy(claimed.identity, claimed_identity);
                input.claimed = &claimed;
                input.n_claimed = 1;
        }
        assert_int_equal(uuid_from_text(cycle->boot, &input.boot), 0);
        assert_int_equal(uuid_from_text(cycle->config, &input.config), 0);
        if (cycle->told) {
                assert_int_equal(provider_tree_add(tree, &uuid, "cn1_pci_0000_41_00_0", &root->uuid,
                                                   &provider, NULL),
                                 0);
                assert_int_equal(provider_set_inventory(provider, "VGPU", &INVENTORY_DEFAULT(4)),
                                 0);
                assert_int_equal(string_set_add(&provider->traits, "CUSTOM_T"), 1);
        }
        before = device_ledger_to_json(ledger);
        ledger->changed = false;
        if (device_ledger_update(ledger, host, tree, &root->uuid, &input, on_device_change, change,
                                 &error) < 0)
                fail_msg("%s: %s", about, error.text);
        after = device_ledger_to_json(ledger);
        if (ledger->changed == (json_equal(before, after) != 0))
                fail_msg("%s: changed is %d", about, ledger->changed);
        provider = provider_tree_find_name(tree, "cn1_pci_0000_41_00_0");
        if (provider) {
                record = provider_find_inventory(provider, "VGPU");
                snprintf(text, sizeof(text), "%d/%d", (int)record->total, (int)record->reserved);
                assert_true(uuid_equal(&provider->uuid, &uuid));
                assert_true(string_set_contains(&provider->traits, "CUSTOM_T"));
        }
        placement_says += *placement_says != '\0';
        if (strcmp(text, cycle->expected) != 0 || strcmp(change, cycle->change) != 0)
                fail_msg("%s: \"%s\" news \"%s\"", about, text, change);
        check_words(ledger, strcmp(text, "4/4") == 0, strncmp(cycle->host, NO_GPU, 13) != 0,
                    withheld_words, about);
}

/* Writes and reads the ledger, as a restart of the agent does. */
static void pass_through_json(DeviceLedger *ledger)
{
        _cleanup_json_ json_t *json = device_ledger_to_json(ledger);

        device_ledger_done(ledger);
        assert_int_equal(device_ledger_from_json(json, ledger, NULL), 0);
}

typedef struct Case {
        const char *about;
        Cycle cycles[12];
} Case;

/* Runs the cases, with a restart of the agent after each cycle. */
static void run_cases(const Case *cases, size_t n_cases, unsigned hold_sec)
{
        for (size_t i = 0; i < n_cases; i++) {
                DeviceLedger ledger = DEVICE_LEDGER_INIT;

                for (size_t j = 0; j < ARRAY_SIZE(cases[i].cycles) && cases[i].cycles[j].host;
                     j++) {
                        char about[120];

                        snprintf(about, sizeof(about), "%s, cycle %zu", cases[i].about, j);
                        run_cycle(&ledger, &cases[i].cycles[j], hold_sec, about);
                        pass_through_json(&ledger);
                }
                device_ledger_done(&ledger);
        }
}

static void test_devices_after_a_reboot(void **state)
{
        static const Case cases[] = {
                { "after a reboot: withheld, told once, released",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-", 0 },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "", 0 },
                    { GPU, BOOT_2, CONFIG_1, true, "4/0", "+", 0 },
                    { GPU, BOOT_2, CONFIG_1, true, "4/0", "", 0 } } },
                { "there, but its driver is not up yet",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                    { GPU, BOOT_2, CONFIG_1, false, "4/4", "-", 0 },
                    { GPU, BOOT_2, CONFIG_1, false, "4/4", "", 0 },
                    { GPU, BOOT_2, CONFIG_1, true, "4/0", "+", 0 } } },
                { "missing over two boots",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-", 0 },
                    { NO_GPU, CONFIG_2, CONFIG_1, false, "4/4", "", 0 } } },
                { "unplugged, and not in use: gone",
                  { { GPU_MDEV, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                    { NO_GPU, BOOT_1, CONFIG_1, false, "", "", 0 } } },
                { "unplugged while a guest has a part of it: kept as long",
                  { { GPU_MDEV GUEST, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                    { NO_GPU GUEST, BOOT_1, CONFIG_1, false, "4/4", "-", 0 },
                    { NO_GPU, BOOT_1, CONFIG_1, false, "", "x", 0 } } },
                { "taken out of the configuration: gone",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                    { GPU, BOOT_1, CONFIG_2, false, "", "", 0 } } },
                { "missing, and taken out of the configuration: gone",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-", 0 },
                    { NO_GPU, BOOT_2, CONFIG_2, false, "", "x", 0 } } },
                { "the same, with a guest that has a part of it: kept",
                  { { GPU_MDEV GUEST, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                    { NO_GPU GUEST, BOOT_2, CONFIG_2, false, "4/4", "-", 0 } } },
        };

        run_cases(cases, ARRAY_SIZE(cases), 0);
}

/* With an unchanged configuration, a listed device that offers nothing is missing, whatever the
 * hold. */
static void test_a_listed_device_that_offers_nothing_is_missing(void **state)
{
        static const Case cases[] = {
                { "its types are gone: withheld as long as the host lists it",
                  { { GPU_TYPE("nvidia-35", "4"), BOOT_1, CONFIG_1, true, "4/0", "", 1000 },
                    { GPU, BOOT_1, CONFIG_1, false, "4/4", "-", 1010 },
                    { GPU, BOOT_1, CONFIG_1, false, "4/4", "", 90000 },
                    { GPU, BOOT_2, CONFIG_1, false, "4/4", "", 10 },
                    { GPU_TYPE("nvidia-35", "4"), BOOT_2, CONFIG_1, true, "4/0", "+", 20 } } },
                { "its configured type is gone, another can be read",
                  { { GPU_TYPE("nvidia-35", "4"), BOOT_1, CONFIG_1, true, "4/0", "", 1000 },
                    { GPU_TYPE("nvidia-36", "2"), BOOT_1, CONFIG_1, false, "4/4", "-", 1010 } } },
                { "it says that it can make none of the configured type: not missing",
                  { { GPU_TYPE("nvidia-35", "4"), BOOT_1, CONFIG_1, true, "4/0", "", 1000 },
                    { GPU_TYPE("nvidia-35", "0"), BOOT_1, CONFIG_1, false, "", "", 1010 } } },
                { "the types of its functions can be read: not missing",
                  { { VGPU_CARD(", \"is_vgpu_function\": true"), BOOT_1, CONFIG_1, true, "4/0", "",
                      1000 },
                    { VGPU_CARD(", \"is_vgpu_function\": true"), BOOT_1, CONFIG_1, false, "", "",
                      1010 } } },
                { "the types of its functions are gone",
                  { { VGPU_CARD(", \"is_vgpu_function\": true"), BOOT_1, CONFIG_1, true, "4/0", "",
                      1000 },
                    { VGPU_CARD(""), BOOT_1, CONFIG_1, false, "4/4", "-", 1010 } } },
                { "the types of its functions cannot be read",
                  { { VGPU_CARD(", \"is_vgpu_function\": true"), BOOT_1, CONFIG_1, true, "4/0", "",
                      1000 },
                    { VGPU_CARD(", \"is_vgpu_function\": true, \"vgpu_unread\": true"), BOOT_1,
                      CONFIG_1, false, "4/4", "-", 1010 } } },
                { "taken out of the configuration while it offered nothing",
                  { { GPU, BOOT_1, CONFIG_1, true, "4/0", "", 1000 },
                    { GPU, BOOT_1, CONFIG_1, false, "4/4", "-", 1010 },
                    { GPU, BOOT_1, CONFIG_2, false, "", "x", 1020 } } },
        };

        run_cases(cases, ARRAY_SIZE(cases), 0);
        run_cases(cases, ARRAY_SIZE(cases), 30);
}

/* Placement refuses to remove the provider, so the device must not be offered until the allocation
 * is gone. */
static void test_a_device_that_a_consumer_holds_stays_withheld(void **state)
{
        static const Case unplugged = { "held, then free",
                                        { { GPU, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                                          { NO_GPU, BOOT_1, CONFIG_1, false, "4/4", "-", 0 },
                                          { NO_GPU, BOOT_1, CONFIG_1, false, "4/4", "", 0 },
                                          { NO_GPU, BOOT_1, CONFIG_2, false, "4/4", "", 9999 },
                                          { NO_GPU, BOOT_1, CONFIG_2, false, "", "x", 9999 } } };
        static const Case deconfigured = { "listed, but not in the configuration: not the ledger's",
                                           { { GPU, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                                             { GPU, BOOT_1, CONFIG_2, false, "", "", 0 } } };

        placement_says = "f?hhf";
        run_cases(&unplugged, 1, 0);
        placement_says = "fh";
        run_cases(&deconfigured, 1, 0);
        assert_string_equal(placement_says, "");
}

/* A device that comes and goes in one boot stays withheld. The hold is 30 s. */
static void test_flapping_device_stays_withheld(void **state)
{
#define THERE(expected, change, seconds)                                    \
        {                                                                   \
                GPU_MDEV, BOOT_1, CONFIG_1, true, expected, change, seconds \
        }
#define GONE(expected, change, seconds)                                    \
        {                                                                  \
                NO_GPU, BOOT_1, CONFIG_1, false, expected, change, seconds \
        }
        static const Case cases[] = {
                { "gone and back: offered again after the hold",
                  { THERE("4/0", "", 1000), GONE("4/4", "-", 1010), GONE("4/4", "", 1020),
                    THERE("4/4", "", 1030), THERE("4/4", "", 1059), THERE("4/0", "+", 1060),
                    THERE("4/0", "", 1061) } },
                { "gone for good: removed after ten holds, and new when it comes again",
                  { THERE("4/0", "", 1000), GONE("4/4", "-", 1010), GONE("4/4", "", 1309),
                    GONE("", "x", 1310), GONE("", "", 1400), THERE("4/0", "", 1500) } },
                { "flapping: told once, and the hold doubles",
                  { THERE("4/0", "", 1000), GONE("4/4", "-", 1001), THERE("4/4", "", 1002),
                    GONE("4/4", "", 1012), THERE("4/4", "", 1013), THERE("4/4", "", 1072),
                    GONE("4/4", "", 1072), THERE("4/4", "", 1073), THERE("4/4", "", 1192),
                    THERE("4/0", "+", 1193) } },
                { "lost again long after: as the first time",
                  { THERE("4/0", "", 1000), GONE("4/4", "-", 1001), THERE("4/4", "", 1002),
                    THERE("4/0", "+", 1032), GONE("4/4", "-", 9000), THERE("4/4", "", 9001),
                    THERE("4/0", "+", 9031) } },
                { "a guest has a part of it: kept for longer",
                  { { GPU_MDEV GUEST, BOOT_1, CONFIG_1, true, "4/0", "", 1000 },
                    { NO_GPU GUEST, BOOT_1, CONFIG_1, false, "4/4", "-", 1001 },
                    { NO_GPU GUEST, BOOT_1, CONFIG_1, false, "4/4", "", 5000 },
                    GONE("", "x", 5001) } },
                { "another configuration ends it",
                  { THERE("4/0", "", 1000), { NO_GPU, BOOT_1, CONFIG_2, false, "", "", 1001 } } },
                { "a reboot ends the hold",
                  { THERE("4/0", "", 1000),
                    GONE("4/4", "-", 1001),
                    THERE("4/4", "", 1002),
                    { GPU_MDEV, BOOT_2, CONFIG_1, true, "4/0", "+", 20 },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-", 21 },
                    { GPU_MDEV, BOOT_2, CONFIG_1, true, "4/4", "", 22 },
                    { GPU_MDEV, BOOT_2, CONFIG_1, true, "4/0", "+", 52 } } },
                { "missing after a reboot, and back: at once",
                  { THERE("4/0", "", 1000),
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-", 10 },
                    { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "", 5000 },
                    { GPU_MDEV, BOOT_2, CONFIG_1, true, "4/0", "+", 5001 } } },
        };

        run_cases(cases, ARRAY_SIZE(cases), 30);
}

#define CARD(ids) \
        "\"devices\": [{\"name\": \"pci_0000_41_00_0\", \"address\": \"0000:41:00.0\", " ids "}]"
#define CARD_A          CARD("\"vendor_id\": 4318, \"product_id\": 8368, \"serial\": \"1\"")
#define CARD_A_2        CARD("\"vendor_id\": 4318, \"product_id\": 8368, \"serial\": \"2\"")
#define CARD_A_0        CARD("\"vendor_id\": 4318, \"product_id\": 8368")
#define NVME            CARD("\"vendor_id\": 5197, \"product_id\": 43016")
#define A               "10de:20b0 1"
#define A_2             "10de:20b0 2"
#define OTHER(identity) "cn1_pci_0000_41_00_0 (another device is at its address: " identity ")"
/* The provider counts mdevs. A domain with the whole device would block it. */
#define WITH_MDEV                                                 \
        ", \"mdevs\": [{\"uuid\": \"" MDEV "\", \"type\": \"t\"," \
        " \"parent\": \"pci_0000_41_00_0\"}]"
#define PASSED WITH_MDEV GUEST
#define PASSED_WHOLE                                                                          \
        ", \"domains\": [{\"uuid\": \"" BOOT_1 "\", \"name\": \"g\", \"state\": \"shutoff\"," \
        " \"pci_addresses\": [\"0000:41:00.0\"]}]"

typedef struct Exchange {
        const char *about; /* NULL: continue with the ledger of the row above */
        Cycle cycle;
        const char *claimed, *words;
} Exchange;

/* A device that a claim or a domain has is withheld while another one is at its address. */
static void test_another_device(void **state)
{
        static const Exchange cases[] = {
                { "of no use: replaced",
                  { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                  NULL,
                  NULL },
                { NULL, { CARD_A_2, BOOT_1, CONFIG_1, true, "4/0", "", 1 }, NULL, NULL },
                { NULL, { NVME, BOOT_1, CONFIG_1, false, "", "", 2 }, NULL, NULL },
                { "claimed, and another one that is not offered",
                  { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                  A,
                  NULL },
                { NULL, { NVME, BOOT_1, CONFIG_1, false, "4/4", "-", 1 }, A, OTHER("144d:a808") },
                { NULL, { NVME, BOOT_1, CONFIG_2, false, "4/4", "", 2 }, A, OTHER("144d:a808") },
                { NULL, { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "+", 3 }, A, NULL },
                { "claimed, and another one of the same model",
                  { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                  A,
                  NULL },
                { NULL, { CARD_A_2, BOOT_2, CONFIG_1, true, "4/4", "-", 1 }, A, OTHER(A_2) },
                { NULL, { CARD_A_2, BOOT_2, CONFIG_1, true, "4/4", "", 2 }, A, OTHER(A_2) },
                { NULL, { CARD_A_2, BOOT_2, CONFIG_1, true, "4/0", "+", 3 }, NULL, NULL },
                { "the ledger is new, and a claim knows it",
                  { CARD_A_2, BOOT_1, CONFIG_1, true, "4/4", "-", 0 },
                  A,
                  OTHER(A_2) },
                { NULL, { CARD_A_2, BOOT_1, CONFIG_1, true, "4/4", "", 1 }, A, OTHER(A_2) },
                { "a domain has it, without a claim",
                  { CARD_A PASSED, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                  NULL,
                  NULL },
                { NULL,
                  { CARD_A_2 PASSED, BOOT_1, CONFIG_1, true, "4/4", "-", 1 },
                  NULL,
                  OTHER(A_2) },
                { NULL, { CARD_A_2 PASSED, BOOT_1, CONFIG_1, true, "4/0", "+", 2 }, A_2, NULL },
                { NULL, { CARD_A_2 PASSED, BOOT_1, CONFIG_1, true, "4/0", "", 3 }, NULL, NULL },
                { "a serial number that cannot be read is no evidence, and is not forgotten",
                  { CARD_A WITH_MDEV, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                  A,
                  NULL },
                { NULL, { CARD_A_0 WITH_MDEV, BOOT_1, CONFIG_1, true, "4/0", "", 1 }, A, NULL },
                { NULL,
                  { CARD_A_2 PASSED, BOOT_1, CONFIG_1, true, "4/4", "-", 2 },
                  NULL,
                  OTHER(A_2) },
                { "a serial number that is read later is stored",
                  { CARD_A_0 WITH_MDEV, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                  NULL,
                  NULL },
                { NULL, { CARD_A WITH_MDEV, BOOT_1, CONFIG_1, true, "4/0", "", 1 }, NULL, NULL },
                { NULL,
                  { CARD_A_2 PASSED, BOOT_1, CONFIG_1, true, "4/4", "-", 2 },
                  NULL,
                  OTHER(A_2) },
                { "while claims cannot be read, it stays withheld",
                  { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                  A,
                  NULL },
                { NULL, { CARD_A_2, BOOT_1, CONFIG_1, true, "4/4", "-", 1 }, A, OTHER(A_2) },
                { NULL, { CARD_A_2, BOOT_1, CONFIG_1, true, "4/4", "", 2 }, "", OTHER(A_2) },
                { NULL, { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "+", 3 }, "", NULL },
                { "missing first, and then another one",
                  { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                  A,
                  NULL },
                { NULL, { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-", 1 }, A, NULL },
                { NULL, { CARD_A_2, BOOT_2, CONFIG_1, true, "4/4", "-", 2 }, A, OTHER(A_2) },
                { NULL, { CARD_A_2, BOOT_2, CONFIG_1, true, "4/4", "", 3 }, A, OTHER(A_2) },
        };
        DeviceLedger ledger = DEVICE_LEDGER_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char about[160];

                if (cases[i].about)
                        device_ledger_done(&ledger);
                claimed_identity = cases[i].claimed;
                withheld_words = cases[i].words;
                snprintf(about, sizeof(about), "%s, row %zu", cases[i].about ? cases[i].about : "",
                         i);
                run_cycle(&ledger, &cases[i].cycle, 0, about);
                pass_through_json(&ledger);
        }
        claimed_identity = withheld_words = NULL;
        device_ledger_done(&ledger);
}

/* Updates the ledger with a tree that the driver made from base, and checks the identity of the
 * only device. */
static void update_card(DeviceLedger *ledger, const char *host, const char *base, const char *made,
                        const char *identity, const char *about)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new(host);
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(made),
                                                    *before = base ? make_tree(base) : NULL;
        const DeviceUpdateInput input = { .base = before };
        const Uuid root = make_uuid("cn1");
        char change[16] = "";

        assert_int_equal(device_ledger_update(ledger, snapshot, tree, &root, &input,
                                              on_device_change, change, NULL),
                         0);
        assert_int_equal(ledger->n_devices, 1);
        if (strcmp(ledger->devices[0].identity, identity) != 0 || change[0])
                fail_msg("%s: %s %s", about, ledger->devices[0].identity, change);
}

#define TREE(classes) "cn1; cn1_0000:41:00.0<cn1 " classes

/* The ledger keeps the identity of a device that was replaced until Placement has the class of the
 * new one. */
static void test_a_replaced_device_of_another_class(void **state)
{
        DeviceLedger ledger = DEVICE_LEDGER_INIT;

        update_card(&ledger, CARD_A, "cn1", TREE("CUSTOM_A=1"), A, "new");
        update_card(&ledger, NVME, TREE("CUSTOM_A=1"), TREE("CUSTOM_B=1"), A, "replaced");
        update_card(&ledger, NVME, TREE("CUSTOM_A=1"), TREE("CUSTOM_B=1"), A, "not published");
        update_card(&ledger, NVME, TREE("CUSTOM_A=1 CUSTOM_B=1"), TREE("CUSTOM_B=1"), "144d:a808",
                    "published");
        device_ledger_done(&ledger);
}

/* A free device is replaced with and without Placement, and a guest can then have the new one. */
static void test_a_replaced_device_of_the_same_class(void **state)
{
        static const struct {
                const char *about, *base;
        } rows[] = {
                { "published, or standalone", TREE("CUSTOM_A=1") },
                { "nova-compute does not report it", "cn1" },
                { "no earlier tree", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const char *about = rows[i].about, *base = rows[i].base, *tree = TREE("CUSTOM_A=1");
                DeviceLedger ledger = DEVICE_LEDGER_INIT;

                update_card(&ledger, CARD_A, base, tree, A, about);
                update_card(&ledger, CARD_A_2, base, tree, A_2, about);
                update_card(&ledger, CARD_A_2 PASSED_WHOLE, base, tree, A_2, about);
                device_ledger_done(&ledger);
        }
}

/* A guest that has the whole GPU blocks its mdevs. The GPU is not missing, and no news is
 * reported. */
static void test_a_blocked_device_is_withheld(void **state)
{
        static const Cycle cycles[] = {
                { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                { CARD_A PASSED_WHOLE, BOOT_1, CONFIG_1, true, "4/4", "", 1 },
                { CARD_A PASSED_WHOLE, BOOT_1, CONFIG_1, true, "4/4", "", 2 },
                { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "", 3 },
                { CARD_A PASSED, BOOT_1, CONFIG_1, true, "4/0", "", 4 },
        };
        DeviceLedger ledger = DEVICE_LEDGER_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(cycles); i++) {
                char about[32];

                snprintf(about, sizeof(about), "cycle %zu", i);
                withheld_words =
                        strcmp(cycles[i].expected, "4/4") == 0
                                ? "cn1_pci_0000_41_00_0 (blocked: a guest has 0000:41:00.0)"
                                : NULL;
                run_cycle(&ledger, &cycles[i], 0, about);
                assert_int_equal(ledger.devices[0].blocker[0] != '\0', withheld_words != NULL);
                pass_through_json(&ledger);
        }
        withheld_words = NULL;
        device_ledger_done(&ledger);
}

/* A missing device that comes back blocked or not clean is reported once. */
static void test_a_withheld_device_is_reported_as_back(void **state)
{
        static const struct {
                const char *there;
                int unclean;
        } cases[] = { { CARD_A PASSED_WHOLE, -1 }, { CARD_A, UNCLEAN_HELD } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Cycle cycles[] = {
                        { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "", 0 },
                        { NO_GPU, BOOT_2, CONFIG_1, false, "4/4", "-", 1 },
                        { cases[i].there, BOOT_2, CONFIG_1, true, "4/4", "+", 2 },
                        { cases[i].there, BOOT_2, CONFIG_1, true, "4/4", "", 3 },
                        { CARD_A, BOOT_2, CONFIG_1, true, "4/0", "", 4 },
                };
                DeviceLedger ledger = DEVICE_LEDGER_INIT;

                for (size_t j = 0; j < ARRAY_SIZE(cycles); j++) {
                        char about[48];

                        snprintf(about, sizeof(about), "case %zu, cycle %zu", i, j);
                        unclean_state = j == 2 || j == 3 ? cases[i].unclean : -1;
                        withheld_words = j != 2 && j != 3 ? NULL
                                         : cases[i].unclean < 0
                                                 ? "cn1_pci_0000_41_00_0 (blocked: a guest has "
                                                   "0000:41:00.0)"
                                                 : "";
                        run_cycle(&ledger, &cycles[j], 0, about);
                        pass_through_json(&ledger);
                }
                device_ledger_done(&ledger);
        }
        withheld_words = NULL;
}

/* A device is withheld from the claim on. The words come when its cleaning begins. */
static void test_an_unclean_device_is_withheld(void **state)
{
        static const Cycle offered = { CARD_A, BOOT_1, CONFIG_1, true, "4/0", "", 0 };
        static const Cycle withheld = { CARD_A, BOOT_1, CONFIG_1, true, "4/4", "", 1 };
        static const char *const words[] = {
                [UNCLEAN_HELD] = "",
                [UNCLEAN_DIRTY] = "cn1_pci_0000_41_00_0 is not clean: cleaning since "
                                  "1970-01-01 00:00:00 UTC",
                [UNCLEAN_FAILED] = "cn1_pci_0000_41_00_0 is not clean: cleaning failed at "
                                   "1970-01-01 00:00:00 UTC: ",
        };
        DeviceLedger ledger = DEVICE_LEDGER_INIT;

        withheld_words = "";
        run_cycle(&ledger, &offered, 0, "before");
        for (unclean_state = 0; unclean_state < _UNCLEAN_STATE_MAX; unclean_state++) {
                _cleanup_free_ char *text = NULL;

                run_cycle(&ledger, &withheld, 0, words[unclean_state]);
                text = device_ledger_describe_unclean(&ledger);
                assert_string_equal(text, words[unclean_state]);
                pass_through_json(&ledger);
        }
        unclean_state = -1;
        run_cycle(&ledger, &offered, 0, "after");
        withheld_words = NULL;
        device_ledger_done(&ledger);
}

static void test_due_time_of_devices(void **state)
{
        static const Cycle there = THERE("4/0", "", 1000), gone = GONE("4/4", "-", 1010),
                           back = THERE("4/4", "", 1020);
        const struct {
                const Cycle *cycle;
                unsigned now, due; /* 0: never */
        } steps[] = { { &there, 1000, 0 }, { &gone, 1010, 1310 }, { NULL, 1309, 1310 },
                      { NULL, 1310, 0 },   { &back, 1020, 1050 }, { NULL, 1050, 0 } };
        DeviceLedger ledger = DEVICE_LEDGER_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                DeviceUpdateInput input = { .now_usec = steps[i].now * USEC_PER_SEC,
                                            .hold_usec = 30 * USEC_PER_SEC };
                uint64_t due = steps[i].due ? steps[i].due * USEC_PER_SEC : UINT64_MAX;

                assert_int_equal(uuid_from_text(BOOT_1, &input.boot), 0);
                if (steps[i].cycle)
                        run_cycle(&ledger, steps[i].cycle, 30, "due");
                assert_int_equal(device_ledger_due_usec(&ledger, &input), due);
                assert_int_equal(uuid_from_text(BOOT_2, &input.boot), 0);
                assert_int_equal(device_ledger_due_usec(&ledger, &input), UINT64_MAX);
        }
        device_ledger_done(&ledger);
}

/* A card comes back with another number of functions, and the driver keeps the operator's reserved
 * amount. The agent is restarted after each cycle. */
static void test_the_operators_reservation_survives_another_total(void **state)
{
        static const struct {
                unsigned hold_sec;
                struct {
                        uint64_t total, reserved, expected; /* total 0: not reported */
                        unsigned seconds;
                } cycles[6];
        } cases[] = {
                { 0, { { 4, 1, 1, 0 }, { 0, 0, 4, 1 }, { 8, 4, 1, 2 }, { 8, 1, 1, 3 } } },
                /* For a time the card has fewer functions than the operator has reserved. */
                { 30,
                  { { 4, 3, 3, 1000 },
                    { 0, 0, 4, 1001 },
                    { 2, 2, 2, 1002 },
                    { 2, 2, 2, 1003 },
                    { 4, 2, 4, 1004 },
                    { 4, 4, 3, 1032 } } },
        };
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(GPU);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                DeviceLedger ledger = DEVICE_LEDGER_INIT;
                DeviceUpdateInput input = { .hold_usec = cases[i].hold_sec * USEC_PER_SEC };
                char change[16] = "";

                assert_int_equal(uuid_from_text(BOOT_1, &input.boot), 0);
                assert_int_equal(uuid_from_text(CONFIG_1, &input.config), 0);
                for (size_t j = 0; j < ARRAY_SIZE(cases[i].cycles) && cases[i].cycles[j].expected;
                     j++) {
                        Provider *root, *provider;
                        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
                        Inventory record = INVENTORY_DEFAULT(cases[i].cycles[j].total);
                        Uuid uuid = uuid_make_child(&root->uuid, "card");

                        input.now_usec = cases[i].cycles[j].seconds * USEC_PER_SEC;
                        record.reserved = cases[i].cycles[j].reserved;
                        if (record.total > 0) {
                                assert_int_equal(provider_tree_add(tree, &uuid, "cn1_0000:41:00.0",
                                                                   &root->uuid, &provider, NULL),
                                                 0);
                                assert_int_equal(
                                        provider_set_inventory(provider, "CUSTOM_VF", &record), 0);
                        }
                        assert_int_equal(device_ledger_update(&ledger, host, tree, &root->uuid,
                                                              &input, on_device_change, change,
                                                              NULL),
                                         0);
                        provider = provider_tree_find_name(tree, "cn1_0000:41:00.0");
                        assert_non_null(provider);
                        assert_int_equal(provider_find_inventory(provider, "CUSTOM_VF")->reserved,
                                         cases[i].cycles[j].expected);
                        pass_through_json(&ledger);
                }
                assert_string_equal(change, "-+");
                device_ledger_done(&ledger);
        }
}

/* A withheld device has the traits and aggregates of Placement. Those of the ledger are for a
 * provider that Placement does not have. */
static void test_a_withheld_device_keeps_what_placement_has(void **state)
{
        static const struct {
                const char *before; /* NULL: not known */
                const char *expected;
        } cases[] = {
                { NULL, "cn1; cn1_pci_0000_41_00_0<cn1 VGPU=4/4/1/4 +CUSTOM_T" },
                { "cn1", "cn1; cn1_pci_0000_41_00_0<cn1 VGPU=4/4/1/4 +CUSTOM_T" },
                { "cn1; cn1_pci_0000_41_00_0<cn1 +CUSTOM_S @A",
                  "cn1; cn1_pci_0000_41_00_0<cn1 VGPU=4/4/1/4 +CUSTOM_S @A" },
                { "cn1; cn1_pci_0000_41_00_0<cn1 VGPU=4/0 +CUSTOM_T",
                  "cn1; cn1_pci_0000_41_00_0<cn1 VGPU=4/4 +CUSTOM_T" },
        };
        const Uuid root = make_uuid("cn1");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *there = host_new(GPU),
                                                    *gone = host_new(NO_GPU);
                _cleanup_(provider_tree_freep)
                        ProviderTree *offered = make_tree(
                                             "cn1; cn1_pci_0000_41_00_0<cn1 VGPU=4 +CUSTOM_T"),
                                     *tree = make_tree("cn1"),
                                     *before = cases[i].before ? make_tree(cases[i].before) : NULL,
                                     *expected = make_tree(cases[i].expected);
                DeviceLedger ledger = DEVICE_LEDGER_INIT;
                DeviceUpdateInput input = { .before = before };
                char change[16] = "";

                assert_int_equal(uuid_from_text(BOOT_1, &input.boot), 0);
                assert_int_equal(device_ledger_update(&ledger, there, offered, &root, &input,
                                                      on_device_change, change, NULL),
                                 0);
                assert_int_equal(uuid_from_text(BOOT_2, &input.boot), 0);
                assert_int_equal(device_ledger_update(&ledger, gone, tree, &root, &input,
                                                      on_device_change, change, NULL),
                                 0);
                if (!provider_tree_equal(tree, expected))
                        fail_msg("case %zu", i);
                device_ledger_done(&ledger);
        }
}

/* A withheld device stays below its cell. It moves below the root only if the cell is gone. */
static void test_withheld_below_its_cell(void **state)
{
        DeviceLedger ledger = DEVICE_LEDGER_INIT;
        _cleanup_(snapshot_unrefp) Snapshot *there = host_new(GPU), *missing = host_new(NO_GPU);
        DeviceUpdateInput inputs[2] = { 0 };
        Uuid cell_uuid = uuid_make_random(), uuid = uuid_make_random();
        char change[16] = "";

        assert_int_equal(uuid_from_text(BOOT_1, &inputs[0].boot), 0);
        assert_int_equal(uuid_from_text(BOOT_2, &inputs[1].boot), 0);
        for (size_t i = 0; i < ARRAY_SIZE(inputs); i++)
                assert_int_equal(uuid_from_text(CONFIG_1, &inputs[i].config), 0);
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
                                                      &root->uuid, &inputs[cycle > 0],
                                                      on_device_change, change, NULL),
                                 0);
                pass_through_json(&ledger);
                gpu = provider_tree_find_name(tree, "cn1_pci_0000_41_00_0");
                assert_true(uuid_equal(&gpu->parent, cell ? &cell_uuid : &root->uuid));
        }
        device_ledger_done(&ledger);
}

/* Returns JSON that from_json() accepts, with one member changed, or with the entry twice. */
static json_t *make_json(const char *member, json_t *value, bool twice)
{
        json_t *device =
                json_pack("{ss ss ss ss si si s[s] s[] ss ss sb sb}", "name",
                          "cn1_pci_0000_41_00_0", "provider", BOOT_1, "parent", "", "class", "VGPU",
                          "total", 4, "reserved", 0, "traits", "CUSTOM_T", "members", "boot_id",
                          BOOT_1, "config", CONFIG_1, "missing", 0, "withheld", 0);
        json_t *json;

        assert_non_null(device);
        if (member)
                assert_int_equal(json_object_set_new(device, member, value), 0);
        json = json_pack("{s[O]}", "devices", device);
        if (twice)
                json_array_append(json_object_get(json, "devices"), device);
        json_decref(device);
        return json;
}

/* Rejects JSON of another form, and values that are impossible. */
static void test_bad_json(void **state)
{
        json_t *const good = make_json(NULL, NULL, false);
        json_t *const cases[] = {
                make_json(NULL, NULL, true),
                make_json("name", json_string(""), false),
                make_json("traits", json_pack("[s]", "no trait"), false),
                make_json("traits", json_pack("[s]", ""), false),
                make_json("class", json_string("no class"), false),
                make_json("total", json_integer(0), false),
                make_json("reserved", json_integer(INT64_C(1) << 40), false),
                make_json("parent", json_string("x"), false),
                fixture_json("{}"),
                fixture_json("{'devices': 5}"),
                fixture_json("{'devices': [5]}"),
                fixture_json("{'devices': [{'name': 'x'}]}"),
        };
        DeviceLedger ledger = DEVICE_LEDGER_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                if (device_ledger_from_json(cases[i], &ledger, NULL) != -EBADMSG)
                        fail_msg("%zu", i);
                json_decref(cases[i]);
        }
        assert_int_equal(device_ledger_from_json(good, &ledger, NULL), 0);
        device_ledger_done(&ledger);
        json_decref(good);
}

/* Reads a ledger of a device in which the member has this value, which the caller owns before. The
 * next update must forget the device. It must not prevent the publication of the host. */
static void assert_forgotten(const char *member, json_t *value)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(NO_GPU);
        DeviceUpdateInput input = { 0 };
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        _cleanup_json_ json_t *json = make_json(member, value, false);
        DeviceLedger ledger = DEVICE_LEDGER_INIT;
        char change[16] = "";

        assert_int_equal(uuid_from_text(BOOT_2, &input.boot), 0);
        assert_int_equal(uuid_from_text(CONFIG_1, &input.config), 0);
        assert_int_equal(device_ledger_from_json(json, &ledger, NULL), 0);
        assert_int_equal(device_ledger_update(&ledger, host, tree, &root->uuid, &input,
                                              on_device_change, change, NULL),
                         0);
        assert_int_equal(ledger.n_devices, 0);
        assert_int_equal(tree->n_providers, 1);
        device_ledger_done(&ledger);
}

/* Such a device cannot be withheld. */
static void test_a_uuid_that_another_provider_has(void **state)
{
        assert_forgotten("provider", json_string(UUID_ROOT));
}

/* The state folder is a copy of that of another host, whose tree in Placement has the provider. */
static void test_a_device_of_another_host(void **state)
{
        assert_forgotten("name", json_string("cn_pci_0000_41_00_0"));
        assert_forgotten("name", json_string("cn12_pci_0000_41_00_0"));
}

/* A time in the future cannot come from the clock of this boot. */
static void test_hold_from_the_future_is_ignored(void **state)
{
        const Cycle cycle = { GPU, BOOT_1, CONFIG_1, true, "4/0", "+", 5 };
        DeviceLedger ledger = DEVICE_LEDGER_INIT;

        run_cycle(&ledger, &(Cycle){ GPU, BOOT_1, CONFIG_1, true, "4/0", "", 0 }, 60, "before");
        ledger.devices[0].held = ledger.devices[0].withheld = true;
        ledger.devices[0].since_usec = UINT64_C(1) << 60;
        run_cycle(&ledger, &cycle, 60, "held since a time to come");
        device_ledger_done(&ledger);
}

TEST_MAIN(test_devices_after_a_reboot, test_a_listed_device_that_offers_nothing_is_missing,
          test_a_device_that_a_consumer_holds_stays_withheld,
          test_the_operators_reservation_survives_another_total,
          test_flapping_device_stays_withheld, test_another_device,
          test_a_replaced_device_of_another_class, test_a_replaced_device_of_the_same_class,
          test_a_blocked_device_is_withheld, test_a_withheld_device_is_reported_as_back,
          test_an_unclean_device_is_withheld, test_due_time_of_devices,
          test_a_withheld_device_keeps_what_placement_has, test_withheld_below_its_cell,
          test_bad_json, test_a_uuid_that_another_provider_has, test_a_device_of_another_host,
          test_hold_from_the_future_is_ignored)
