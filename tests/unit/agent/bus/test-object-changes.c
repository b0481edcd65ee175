/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/object-changes.h"
#include "tests/fixtures/host.h"

#define UUID_A "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define UUID_B "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"

/* "+key", "-key", "~key:bits" */
static void assert_changes(ObjectChanges *changes, const char *expected)
{
        char text[1024] = "";
        size_t n = 0;

        for (size_t i = 0; i < changes->n_items; i++) {
                const ObjectChange *change = &changes->items[i];

                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%c%s", i > 0 ? " " : "",
                                      "+~-"[change->fate], change -> key);
                if (change->fate == OBJECT_CHANGED)
                        n += (size_t)snprintf(text + n, sizeof(text) - n, ":%x",
                                              change->properties);
        }
        assert_string_equal(text, expected);
        object_changes_done(changes);
}

static void test_events_of_one_object_become_one(void **state)
{
        static const struct {
                const char *events; /* + added, ~ changed (bit 0), ! changed (bit 1), - removed */
                const char *expected;
        } cases[] = {
                { "+", "+7" },      { "~", "~7:1" },  { "-", "-7" },    { "+~", "+7" },
                { "+-", "" },       { "+~-", "" },    { "~!", "~7:3" }, { "~-", "-7" },
                { "-+", "~7:ff" },  { "-+-", "-7" },  { "~+", "+7" },   { "+-+", "+7" },
                { "-+~", "~7:ff" }, { "~~", "~7:1" }, { "--", "-7" },   { "~+-", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ObjectChanges changes = { 0 };

                for (const char *c = cases[i].events; *c; c++)
                        assert_int_equal(object_changes_add(&changes, OBJECT_CLAIM, "7",
                                                            *c == '+'   ? OBJECT_ADDED
                                                            : *c == '-' ? OBJECT_REMOVED
                                                                        : OBJECT_CHANGED,
                                                            *c == '!' ? 2 : 1),
                                         0);
                assert_changes(&changes, cases[i].expected);
        }
}

static void test_order_is_by_kind_and_number(void **state)
{
        ObjectChanges changes = { 0 };

        assert_int_equal(object_changes_add(&changes, OBJECT_CLAIM, "10", OBJECT_ADDED, 0), 0);
        assert_int_equal(object_changes_add(&changes, OBJECT_CLAIM, "9", OBJECT_ADDED, 0), 0);
        assert_int_equal(object_changes_add(&changes, OBJECT_DEVICE, "mtty", OBJECT_REMOVED, 0), 0);
        assert_int_equal(object_changes_add(&changes, OBJECT_CLAIM, "100", OBJECT_ADDED, 0), 0);
        assert_int_equal(object_changes_add(&changes, OBJECT_PROVIDER, "9", OBJECT_CHANGED, 4), 0);
        assert_changes(&changes, "~9:4 -mtty +9 +10 +100");
}

static Provider *add(ProviderTree *tree, const char *text, const char *name, const Uuid *parent)
{
        Provider *provider;
        Uuid uuid;

        assert_int_equal(uuid_from_text(text, &uuid), 0);
        assert_int_equal(provider_tree_add(tree, &uuid, name, parent, &provider, NULL), 0);
        assert_int_equal(provider_set_inventory(provider, "VGPU", &INVENTORY_DEFAULT(4)), 0);
        return provider;
}

typedef void (*Edit)(ProviderTree *tree, Provider *a);

static void edit_nothing(ProviderTree *tree, Provider *a)
{
}

static void edit_inventory(ProviderTree *tree, Provider *a)
{
        assert_int_equal(provider_set_inventory(a, "VGPU", &INVENTORY_DEFAULT(5)), 0);
}

static void edit_traits_and_aggregates(ProviderTree *tree, Provider *a)
{
        assert_int_equal(string_set_add(&a->traits, "CUSTOM_T"), 1);
        assert_int_equal(string_set_add(&a->aggregates, UUID_B), 1);
}

static void edit_parent(ProviderTree *tree, Provider *a)
{
        Provider *b = add(tree, UUID_B, "cn1_b", &tree->providers[0]->uuid);

        assert_int_equal(provider_tree_move(tree, a, &b->uuid), 0);
}

static void edit_removed(ProviderTree *tree, Provider *a)
{
        Uuid uuid = a->uuid;

        assert_true(provider_tree_remove(tree, &uuid));
}

static void edit_replaced(ProviderTree *tree, Provider *a)
{
        edit_removed(tree, a);
        add(tree, UUID_B, "cn1_a", &tree->providers[0]->uuid);
}

static void test_trees(void **state)
{
        static const struct {
                Edit edit;
                const char *expected;
        } cases[] = {
                { edit_nothing, "" },
                { edit_inventory, "~" UUID_A ":4" },
                { edit_traits_and_aggregates, "~" UUID_A ":30" },
                { edit_parent, "~" UUID_A ":2 +" UUID_B },
                { edit_removed, "-" UUID_A },
                { edit_replaced, "-" UUID_A " +" UUID_B },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Provider *root;
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
                _cleanup_(provider_tree_freep) ProviderTree *before = NULL;
                Provider *a = add(tree, UUID_A, "cn1_a", &root->uuid);
                ObjectChanges changes = { 0 };

                assert_int_equal(provider_tree_copy(&before, tree), 0);
                cases[i].edit(tree, a);
                assert_int_equal(object_changes_compare_trees(&changes, before, tree), 0);
                assert_changes(&changes, cases[i].expected);
        }
}

static void test_the_first_tree_is_all_new(void **state)
{
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        ObjectChanges changes = { 0 };

        assert_int_equal(object_changes_compare_trees(&changes, NULL, tree), 0);
        assert_changes(&changes, "+" UUID_ROOT);
}

#define DEVICE(name, more) "{\"name\": \"" name "\"" more "}"

static void make_devices(const char *members, const char *type, ObjectDevices *ret)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(members);
        HostDevice devices[2] = {
                { .name = "pci_0000_41_00_0",
                  .address = "0000:41:00.0",
                  .mdev_type = type,
                  .resource_class = "VGPU" },
        };
        HostPci pci[1] = { { .name = "pci_0000_05_00_0",
                             .address = "0000:05:00.0",
                             .resource_class = "CUSTOM_NIC" } };
        const HostFacts facts = { .devices = devices, .n_devices = 1, .pci = pci, .n_pci = 1 };

        assert_int_equal(object_devices_make(&facts, host, ret), 0);
}

static void test_devices(void **state)
{
        static const struct {
                const char *host, *type, *expected;
        } cases[] = {
                { "", "t1", "" },
                { "", "t2", "~pci_0000_41_00_0:4" },
                { "\"devices\": [" DEVICE("pci_0000_41_00_0", ", \"address\": \"0000:41:00.0\", "
                                                              "\"driver\": \"d\", "
                                                              "\"vendor\": \"v\", "
                                                              "\"numa_node\": 1") "]",
                  "t1", "~pci_0000_41_00_0:58" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(object_devices_done) ObjectDevices before = { 0 }, after = { 0 };
                ObjectDevices none = { 0 };
                ObjectChanges changes = { 0 };

                make_devices("", "t1", &before);
                make_devices(cases[i].host, cases[i].type, &after);
                assert_int_equal(object_changes_compare_devices(&changes, &before, &after), 0);
                assert_changes(&changes, cases[i].expected);
                assert_int_equal(object_changes_compare_devices(&changes, &none, &after), 0);
                assert_changes(&changes, "+pci_0000_05_00_0 +pci_0000_41_00_0");
                assert_int_equal(object_changes_compare_devices(&changes, &after, &none), 0);
                assert_changes(&changes, "-pci_0000_05_00_0 -pci_0000_41_00_0");
                assert_string_equal(object_devices_find(&after, "pci_0000_05_00_0")->resource_class,
                                    "CUSTOM_NIC");
                assert_null(object_devices_find(&after, "pci"));
                assert_null(object_devices_find(&none, "pci"));
        }
}

static void test_names(void **state)
{
        assert_string_equal(object_property_name(OBJECT_PROVIDER, 3), "Usage");
        assert_string_equal(object_property_name(OBJECT_DEVICE, 7), "Claims");
        assert_string_equal(object_property_name(OBJECT_CLAIM, 0), "State");
        assert_string_equal(object_property_name(OBJECT_CLAIM, 7), "Mappings");
        assert_null(object_property_name(OBJECT_PROVIDER, 6));
        assert_null(object_property_name(OBJECT_DEVICE, 8));
}

static void test_ten_thousand_claims(void **state)
{
        ObjectChanges changes = { 0 };
        char key[24];

        for (int i = 1; i <= 10000; i++) {
                snprintf(key, sizeof(key), "%d", i);
                assert_int_equal(object_changes_add(&changes, OBJECT_CLAIM, key, OBJECT_ADDED, 0),
                                 0);
                assert_int_equal(object_changes_add(&changes, OBJECT_PROVIDER, UUID_A,
                                                    OBJECT_CHANGED, PROVIDER_PROPERTY_USAGE),
                                 0);
        }
        assert_int_equal(changes.n_items, 10001);
        assert_string_equal(changes.items[10000].key, "10000");
        object_changes_done(&changes);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_events_of_one_object_become_one),
                cmocka_unit_test(test_order_is_by_kind_and_number),
                cmocka_unit_test(test_trees),
                cmocka_unit_test(test_the_first_tree_is_all_new),
                cmocka_unit_test(test_devices),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_ten_thousand_claims),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
