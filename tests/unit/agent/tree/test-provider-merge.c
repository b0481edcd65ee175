/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/provider-merge.h"
#include "base/text.h"
#include "tests/fixtures/tree.h"

#define UUID_ROOT "2491c3ee-e731-5838-b311-fa38477e2ca5" /* uuid of "cn1" by make_uuid() */
#define META      "meta: {schema_version: '1.0'}\nproviders:\n"

/* A tree with root "cn1" and a provider of another writer below it, and the additions to it. */
typedef struct Fixture {
        ProviderTree *tree;
        Provider *root, *foreign;
        ProviderAdditions added;
        char problems[4096];
} Fixture;

static int setup(void **state)
{
        Fixture *f = calloc(1, sizeof(Fixture));

        f->tree = make_tree("cn1 +COMPUTE_NODE | agent<cn1");
        f->root = provider_tree_find_name(f->tree, "cn1");
        f->foreign = provider_tree_find_name(f->tree, "agent");
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        Fixture *f = *state;

        provider_additions_done(&f->added);
        provider_tree_free(f->tree);
        free(f);
        return 0;
}

static void append_problem(const char *text, void *userdata)
{
        Fixture *f = userdata;

        assert_true(strlen(f->problems) + strlen(text) + 2 < sizeof(f->problems));
        strcat(f->problems, text);
        strcat(f->problems, "\n");
}

/* Runs one cycle of a driver that made f->tree from base. The additions of the last cycle are
 * carried over, as the file does. */
static void merge_from(Fixture *f, const ProviderTree *base, const char *text)
{
        ProviderYaml yaml = PROVIDER_YAML_INIT;
        ProviderAdditions after;
        json_t *json;

        f->problems[0] = '\0';
        assert_int_equal(provider_yaml_add(&yaml, "f", text, strlen(text), append_problem, f), 0);
        assert_int_equal(provider_merge(f->tree, base, &yaml, "OWNER_NOVA", &f->added, &after,
                                        append_problem, f),
                         0);
        provider_yaml_done(&yaml);
        json = provider_additions_to_json(&after);
        provider_additions_done(&after);
        provider_additions_done(&f->added);
        assert_int_equal(provider_additions_from_json(json, &f->added, NULL), 0);
        json_decref(json);
}

static void merge(Fixture *f, const char *text)
{
        _cleanup_(provider_tree_freep) ProviderTree *base = NULL;

        assert_int_equal(provider_tree_copy(&base, f->tree), 0);
        merge_from(f, base, text);
}

/* Compares the contents of a provider with "CLASS=total TRAIT …". */
static void expect(const Provider *provider, const char *expected)
{
        char text[512] = "";
        size_t n = 0;

        for (size_t i = 0; i < provider->n_inventories; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%d", n ? " " : "",
                                      provider->inventories[i].resource_class,
                                      (int)provider->inventories[i].inventory.total);
        for (size_t i = 0; i < provider->traits.n_items; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
                                      provider->traits.items[i]);
        assert_string_equal(text, expected);
}

/* Checks which provider an entry applies to. */
static void test_a12_targets(void **state)
{
        static const struct {
                const char *text, *problem, *root, *foreign; /* problem "": none */
        } cases[] = {
                { "- identification: {uuid: $COMPUTE_NODE}\n"
                  "  inventories: {additional: [CUSTOM_A: {total: 5}]}\n"
                  "  traits: {additional: [CUSTOM_T]}\n",
                  "", "CUSTOM_A=5 COMPUTE_NODE CUSTOM_T OWNER_NOVA", "" },
                /* A root that an entry names is not meant by $COMPUTE_NODE. */
                { "- {identification: {uuid: $COMPUTE_NODE}, traits: {additional: [CUSTOM_A]}}\n"
                  "- {identification: {name: cn1}, traits: {additional: [CUSTOM_B]}}\n",
                  "", "COMPUTE_NODE CUSTOM_B OWNER_NOVA", "" },
                { "- {identification: {uuid: " UUID_ROOT "}, traits: {additional: [CUSTOM_A]}}\n"
                  "- {identification: {name: cn1}, traits: {additional: [CUSTOM_B]}}\n"
                  "- {identification: {name: agent}, traits: {additional: [CUSTOM_C]}}\n",
                  "cn1: the provider has another entry", "COMPUTE_NODE CUSTOM_A OWNER_NOVA",
                  "CUSTOM_C OWNER_NOVA" },
                { "- {identification: {name: unknown}, traits: {additional: [CUSTOM_A]}}\n"
                  "- {identification: {name: cn1}, traits: {additional: [CUSTOM_B]}}\n",
                  "unknown: there is no such provider", "COMPUTE_NODE CUSTOM_B OWNER_NOVA", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = NULL;
                Fixture *f;

                (void)teardown(state);
                (void)setup(state);
                f = *state;
                text = text_format(META "%s", cases[i].text);
                merge(f, text);
                if (!strstr(f->problems, cases[i].problem) ||
                    (f->problems[0] && !cases[i].problem[0]))
                        fail_msg("case %zu: %s", i, f->problems);
                expect(f->root, cases[i].root);
                expect(f->foreign, cases[i].foreign);
        }
}

static void test_g2_13_foreign_provider_in_the_second_cycle(void **state)
{
        Fixture *f = *state;
        static const char text[] = META "- identification: {name: agent}\n"
                                        "  inventories: {additional: [CUSTOM_A: {total: 5}]}\n";
        static const char other[] = META "- identification: {name: agent}\n"
                                         "  inventories: {additional: [CUSTOM_A: {total: 6}]}\n";

        for (int i = 0; i < 3; i++) {
                merge(f, text);
                assert_string_equal(f->problems, "");
                expect(f->foreign, "CUSTOM_A=5 OWNER_NOVA");
        }
        merge(f, other);
        expect(f->foreign, "CUSTOM_A=6 OWNER_NOVA");
}

/* The driver begins to report what an entry added. When the entry is gone, Placement lacks both for
 * one cycle. Afterwards they are the driver's. */
static void test_the_driver_takes_an_addition_over(void **state)
{
        Fixture *f = *state;
        static const char text[] = META "- identification: {name: agent}\n"
                                        "  inventories: {additional: [CUSTOM_A: {total: 5}]}\n"
                                        "  traits: {additional: [CUSTOM_T]}\n";

        merge(f, text);
        expect(f->foreign, "CUSTOM_A=5 CUSTOM_T OWNER_NOVA");
        for (int i = 0; i < 3; i++) {
                _cleanup_(provider_tree_freep) ProviderTree *base = NULL;

                assert_int_equal(provider_tree_copy(&base, f->tree), 0);
                assert_int_equal(
                        provider_set_inventory(f->foreign, "CUSTOM_A", &INVENTORY_DEFAULT(9)), 0);
                assert_true(string_set_add(&f->foreign->traits, "CUSTOM_T") >= 0);
                merge_from(f, base, META " []\n");
                expect(f->foreign, i == 0 ? "" : "CUSTOM_A=9 CUSTOM_T");
                assert_int_equal(f->added.n_items, i == 0);
        }
}

/* Additions that base has stay, and nothing else of base. A value of the driver is newer. */
static void test_additions_are_kept(void **state)
{
        Fixture *f = *state;
        _cleanup_(provider_tree_freep) ProviderTree *base = NULL;
        Provider *old;

        merge(f, META "- identification: {name: agent}\n"
                      "  inventories: {additional: [CUSTOM_A: {total: 5}, CUSTOM_B: {total: 6}]}\n"
                      "  traits: {additional: [CUSTOM_T, CUSTOM_S]}\n");
        assert_int_equal(provider_tree_copy(&base, f->tree), 0);
        old = provider_tree_find_name(base, "agent");
        assert_true(string_set_remove(&old->traits, "CUSTOM_S"));
        assert_int_equal(string_set_add(&old->traits, "CUSTOM_ADMIN"), 1);
        assert_int_equal(provider_set_inventory(old, "CUSTOM_C", &INVENTORY_DEFAULT(1)), 0);
        string_set_done(&f->foreign->traits);
        assert_true(provider_remove_inventory(f->foreign, "CUSTOM_A"));
        assert_int_equal(provider_set_inventory(f->foreign, "CUSTOM_B", &INVENTORY_DEFAULT(9)), 0);
        assert_int_equal(provider_additions_keep(&f->added, base, f->tree), 1);
        assert_int_equal(provider_additions_keep(&f->added, base, f->tree), 0);
        expect(f->foreign, "CUSTOM_A=5 CUSTOM_B=9 CUSTOM_T OWNER_NOVA");
        assert_int_equal(provider_additions_keep(&f->added, NULL, f->tree), 0);
}

static void test_a12_foreign_inventory_costs_the_entry(void **state)
{
        Fixture *f = *state;

        assert_int_equal(provider_set_inventory(f->foreign, "CUSTOM_A", &INVENTORY_DEFAULT(9)), 0);
        for (int i = 0; i < 2; i++) {
                merge(f, META "- identification: {name: agent}\n"
                              "  inventories: {additional: [CUSTOM_A: {total: 5}]}\n"
                              "  traits: {additional: [CUSTOM_T]}\n");
                assert_non_null(strstr(f->problems, "agent: the provider has an inventory"));
                expect(f->foreign, "CUSTOM_A=9");
        }
}

static void test_g2_13_what_leaves_the_file_leaves_placement(void **state)
{
        Fixture *f = *state;

        assert_int_equal(string_set_add(&f->root->traits, "CUSTOM_ADMIN"), 1);
        merge(f, META "- identification: {uuid: $COMPUTE_NODE}\n"
                      "  inventories: {additional: [CUSTOM_A: {total: 5}]}\n"
                      "  traits: {additional: [CUSTOM_T, CUSTOM_ADMIN]}\n"
                      "- {identification: {name: agent}, traits: {additional: [CUSTOM_T]}}\n");
        expect(f->root, "CUSTOM_A=5 COMPUTE_NODE CUSTOM_ADMIN CUSTOM_T OWNER_NOVA");
        merge(f, META "- {identification: {name: agent}, traits: {additional: [CUSTOM_S]}}\n");
        /* A trait of an administrator stays, even if the file had it too. */
        expect(f->root, "COMPUTE_NODE CUSTOM_ADMIN");
        expect(f->foreign, "CUSTOM_S OWNER_NOVA");
        assert_int_equal(f->added.n_items, 2);
        /* Once the tree lacks the addition it is not listed any more, so an administrator can add
         * it. */
        merge(f, META " []\n");
        merge(f, META " []\n");
        assert_int_equal(f->added.n_items, 0);
        assert_int_equal(string_set_add(&f->root->traits, "CUSTOM_T"), 1);
        merge(f, META " []\n");
        expect(f->root, "COMPUTE_NODE CUSTOM_ADMIN CUSTOM_T");
}

/* Placement was unreachable, so the next cycle's tree has again what the last merge removed. */
static void test_g2_13_remembers_until_it_is_gone(void **state)
{
        Fixture *f = *state;

        merge(f, META "- {identification: {name: agent}, traits: {additional: [CUSTOM_T]}}\n");
        for (int i = 0; i < 3; i++) {
                merge(f, META " []\n");
                expect(f->foreign, "");
                assert_int_equal(string_set_add(&f->foreign->traits, "CUSTOM_T"), 1);
        }
        merge(f, META " []\n");
        expect(f->foreign, "");
}

/* The driver removes a provider in use, and its retained inventory brings it back with the traits
 * of Placement, after the merge. */
static void test_g2_13_remembers_while_the_provider_is_retained(void **state)
{
        Fixture *f = *state;
        static const char text[] = META "- {identification: {name: agent}, traits: {additional: "
                                        "[CUSTOM_T]}}\n";
        const Uuid uuid = f->foreign->uuid;

        assert_int_equal(string_set_add(&f->foreign->traits, "CUSTOM_ADMIN"), 1);
        merge(f, text);
        for (int i = 0; i < 3; i++) {
                _cleanup_(provider_tree_freep) ProviderTree *base = NULL;

                assert_int_equal(provider_tree_copy(&base, f->tree), 0);
                assert_true(provider_tree_remove(f->tree, &uuid));
                merge_from(f, base, i == 0 ? text : META " []\n");
                assert_int_equal(provider_tree_add(f->tree, &uuid, "agent", &f->root->uuid,
                                                   &f->foreign, NULL),
                                 0);
                assert_int_equal(string_set_copy(&f->foreign->traits,
                                                 &provider_tree_find(base, &uuid)->traits),
                                 0);
        }
        expect(f->foreign, "CUSTOM_ADMIN CUSTOM_T OWNER_NOVA");
        merge(f, META " []\n");
        expect(f->foreign, "CUSTOM_ADMIN");
        merge(f, META " []\n");
        assert_int_equal(f->added.n_items, 0);
}

static void test_bad_state(void **state)
{
        static const char *const texts[] = {
                "{}",
                "{\"added\": 5}",
                "{\"added\": [5]}",
                "{\"added\": [{\"provider\": \"x\", \"traits\": [], \"classes\": []}]}",
                "{\"added\": [{\"provider\": \"" UUID_ROOT
                "\", \"traits\": [5], \"classes\": []}]}",
                "{\"added\": [{\"provider\": \"" UUID_ROOT "\", \"traits\": [], \"classes\": []},"
                " {\"provider\": \"" UUID_ROOT "\", \"traits\": [], \"classes\": []}]}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                json_t *json = json_loads(texts[i], 0, NULL);
                ProviderAdditions additions;

                assert_int_equal(provider_additions_from_json(json, &additions, NULL), -EBADMSG);
                json_decref(json);
        }
}

TEST_MAIN_WITH(setup, teardown, test_a12_targets, test_g2_13_foreign_provider_in_the_second_cycle,
               test_the_driver_takes_an_addition_over, test_additions_are_kept,
               test_a12_foreign_inventory_costs_the_entry,
               test_g2_13_what_leaves_the_file_leaves_placement,
               test_g2_13_remembers_until_it_is_gone,
               test_g2_13_remembers_while_the_provider_is_retained, test_bad_state)
