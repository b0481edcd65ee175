/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Groups virtual functions by card, and decides which types each function may have. The offers and
 * the providers of the same hosts are checked through the plan and the update. */
#include "drivers/tree/mdev-plan.h"

#include "tests/fixtures/host.h"

#define TYPE(id, name, available, created)                                              \
        "{'id': 'nvidia-" id "', 'name': '" name "', 'available_instances': " available \
        ", 'created_instances': " created "}"
#define VF(card, function, types)                                                              \
        "{'name': 'pci_0000_" card "_01_" function "', 'address': '0000:" card ":01." function \
        "',"                                                                                   \
        " 'vendor_id': 4318, 'product_id': 9913, 'physical_function': '0000:" card ":00.0',"   \
        " 'is_vgpu_function': true, 'numa_node': 1, 'is_pci': true, 'mdev_types': [" types "]}"
#define FREE    TYPE("1428", "NVIDIA L40S-2Q", "1", "0") ", " TYPE("1436", "NVIDIA L40S-48Q", "1", "0")
#define SMALL   TYPE("1428", "NVIDIA L40S-2Q", "0", "1")
#define FOUR(c) VF(c, "0", FREE) ", " VF(c, "1", FREE) ", " VF(c, "2", FREE) ", " VF(c, "3", FREE)
#define NO_TYPE              \
        {                    \
                .type = NULL \
        }

static char *card_c1[] = { TEXT("0000:c1:00.0"), NULL };
static char *function_0[] = { TEXT("0000:c1:01.0"), NULL };

/* Writes "name class existing/total-reserved; …". */
static void describe(const MdevPlan *plan, char *text, size_t size)
{
        text[0] = '\0';
        for (size_t i = 0; i < plan->n_offers; i++) {
                const MdevOffer *offer = &plan->offers[i];
                size_t n = strlen(text);

                snprintf(text + n, size - n, "%s%s %s %d/%d-%d", i ? "; " : "", offer->name,
                         offer->type->mdev_class, (int)offer->existing, (int)offer->total,
                         (int)offer->reserved);
        }
}

static void test_c4_offers(void **state)
{
        static const struct {
                const char *about, *devices;
                HostMdevType first, second;
                const char *holding; /* type that a claim of function 0 has, or NULL */
                const char *plan;
        } cases[] = {
                { "one offer for each card, by its framebuffer", FOUR("c1") ", " FOUR("c2"),
                  MDEV_TYPE("nvidia-1436", NULL, "VGPU", 0), NO_TYPE, NULL,
                  "pci_0000_c1_00_0 VGPU 0/1-0; pci_0000_c2_00_0 VGPU 0/1-0" },
                { "the number of functions is the limit", FOUR("c1"),
                  MDEV_TYPE("nvidia-1428", NULL, "VGPU", 0), NO_TYPE, NULL,
                  "pci_0000_c1_00_0 VGPU 0/4-0" },
                { "no type is configured", FOUR("c1"), NO_TYPE, NO_TYPE, NULL, "" },
                { "a type for one card alone", FOUR("c1") ", " FOUR("c2"),
                  MDEV_TYPE("nvidia-1436", card_c1, "VGPU", 0), NO_TYPE, NULL,
                  "pci_0000_c1_00_0 VGPU 0/1-0" },
                { "two types on one card", FOUR("c1"),
                  MDEV_TYPE("nvidia-1428", card_c1, "CUSTOM_2Q", 0),
                  MDEV_TYPE("nvidia-1436", card_c1, "CUSTOM_48Q", 0), NULL,
                  "pci_0000_c1_00_0 CUSTOM_2Q 0/4-0; pci_0000_c1_00_0 CUSTOM_48Q 0/1-0" },
                { "a claim of the whole card reserves the other type", FOUR("c1"),
                  MDEV_TYPE("nvidia-1428", card_c1, "CUSTOM_2Q", 0),
                  MDEV_TYPE("nvidia-1436", card_c1, "CUSTOM_48Q", 0), "nvidia-1436",
                  "pci_0000_c1_00_0 CUSTOM_2Q 0/4-4; pci_0000_c1_00_0 CUSTOM_48Q 1/1-0" },
                { "a second type of the same class is not offered", FOUR("c1"),
                  MDEV_TYPE("nvidia-1428", card_c1, "VGPU", 0),
                  MDEV_TYPE("nvidia-1436", card_c1, "VGPU", 0), NULL,
                  "pci_0000_c1_00_0 VGPU 0/4-0" },
                { "a type for one function, another for the rest", FOUR("c1"),
                  MDEV_TYPE("nvidia-1436", function_0, "CUSTOM_48Q", 0),
                  MDEV_TYPE("nvidia-1428", NULL, "VGPU", 0), NULL,
                  "pci_0000_c1_00_0 CUSTOM_48Q 0/1-0; pci_0000_c1_00_0 VGPU 0/3-0" },
                { "max_instances limits the host", FOUR("c1") ", " FOUR("c2"),
                  MDEV_TYPE("nvidia-1428", NULL, "VGPU", 5), NO_TYPE, NULL,
                  "pci_0000_c1_00_0 VGPU 0/4-0; pci_0000_c2_00_0 VGPU 0/1-0" },
                { "a vGPU that exists", VF("c1", "0", SMALL) ", " VF("c1", "1", FREE),
                  MDEV_TYPE("nvidia-1428", NULL, "VGPU", 0), NO_TYPE, NULL,
                  "pci_0000_c1_00_0 VGPU 1/2-0" },
                { "a vGPU of another type reserves", VF("c1", "0", SMALL) ", " VF("c1", "1", ""),
                  MDEV_TYPE("nvidia-1436", NULL, "VGPU", 0), NO_TYPE, NULL, "" },
                { "a type that no function lists", FOUR("c1"),
                  MDEV_TYPE("nvidia-7", NULL, "VGPU", 0), NO_TYPE, NULL, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *members = text_format("'devices': [%s]", cases[i].devices);
                _cleanup_(snapshot_unrefp) Snapshot *host = host_new(members);
                _cleanup_(mdev_plan_done) MdevPlan plan = { 0 };
                _cleanup_(device_facts_done) DeviceFacts known = { 0 };
                HostMdevType types[] = { cases[i].first, cases[i].second };
                HostConfig config = config_make(types, !!types[0].type + !!types[1].type);
                char text[512];
                bool changed;

                assert_int_equal(vgpu_sizes_note(&known.sizes, host, &changed), 0);
                if (cases[i].holding)
                        assert_int_equal(
                                device_facts_add_holding(&known, "0000:c1:01.0", cases[i].holding),
                                0);
                assert_int_equal(mdev_plan_make(&config, host, &known, &plan), 0);
                describe(&plan, text, sizeof(text));
                if (strcmp(text, cases[i].plan) != 0)
                        fail_msg("%s: \"%s\"", cases[i].about, text);
        }
}

static void test_a_guest_takes_its_function(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new("'devices': [" FOUR(
                "c1") "], 'domains': [{'uuid': "
                      "'11111111-1111-4111-8111-111111111111', 'name': 'g', 'state': 'running',"
                      " 'pci_addresses': ['0000:c1:01.2']}]");
        HostMdevType type = MDEV_TYPE("nvidia-1428", NULL, "VGPU", 0);
        HostConfig config = config_make(&type, 1);
        _cleanup_(mdev_plan_done) MdevPlan plan = { 0 };
        HostPrepare prepare = { .device_addresses = card_c1, .vgpu_types = true };
        const VgpuCard *card;

        config.prepares = &prepare;
        config.n_prepares = 1;
        assert_int_equal(mdev_plan_make(&config, host, NULL, &plan), 0);
        assert_int_equal(plan.n_cards, 1);
        card = &plan.cards[0];
        assert_string_equal(card->name, "pci_0000_c1_00_0");
        assert_true(card->is_prepared);
        assert_int_equal(card->numa_node, 1);
        assert_true(vgpu_card_find(card, "0000:c1:01.2")->is_taken);
        assert_false(vgpu_card_find(card, "0000:c1:01.1")->is_taken);
        /* without sizes from earlier polls, the name of a type has its framebuffer */
        assert_int_equal(card->types[0].framebuffer_mib, 2048);
        assert_int_equal(card->size_mib, 0);
}

/* Providers of single functions, as older versions made them, become the provider of the card. */
static void test_providers(void **state)
{
        HostMdevType types[] = { MDEV_TYPE("nvidia-1428", card_c1, "CUSTOM_2Q", 0),
                                 MDEV_TYPE("nvidia-1436", card_c1, "CUSTOM_48Q", 0) };
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new("'devices': [" FOUR("c1") "]");
        HostConfig config = config_make(types, 2);
        _cleanup_(device_facts_done) DeviceFacts known = { 0 };
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        const Inventory one = INVENTORY_DEFAULT(1);
        const Uuid uuid = { "bbbbbbbb-0000-4000-8000-000000000001" };
        Provider *root, *old;
        const Provider *card;
        Error error = ERROR_NULL;
        bool changed;

        tree = tree_new(&root);
        assert_int_equal(
                provider_tree_add(tree, &uuid, "cn1_pci_0000_c1_01_0", &root->uuid, &old, &error),
                0);
        assert_int_equal(provider_set_inventory(old, "CUSTOM_2Q", &one), 0);
        assert_int_equal(vgpu_sizes_note(&known.sizes, host, &changed), 0);
        assert_int_equal(provider_update(&config, host, &known, tree, "cn1", NULL, &error),
                         DRIVER_RESHAPE_NEEDED);
        {
                _cleanup_(allocations_freep) Allocations *none = NULL;
                DriverReshape reshape = { 0 };

                assert_int_equal(allocations_new(&none), 0);
                reshape.consumers = none;
                assert_int_equal(
                        provider_update(&config, host, &known, tree, "cn1", &reshape, &error),
                        DRIVER_UPDATED);
                driver_reshape_done(&reshape);
        }
        assert_null(provider_tree_find_name(tree, "cn1_pci_0000_c1_01_0"));
        card = provider_tree_find_name(tree, "cn1_pci_0000_c1_00_0");
        assert_non_null(card);
        assert_int_equal(card->n_inventories, 2);
        assert_int_equal(provider_find_inventory(card, "CUSTOM_2Q")->total, 4);
        assert_int_equal(provider_find_inventory(card, "CUSTOM_48Q")->max_unit, 1);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_c4_offers),
                cmocka_unit_test(test_a_guest_takes_its_function),
                cmocka_unit_test(test_providers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
