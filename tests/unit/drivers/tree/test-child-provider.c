/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/child-provider.h"

#include "tests/fixtures/tree.h"

/* Adds a provider that the agent created as cn1_old. */
static void add_renamed(ProviderTree *tree)
{
        const Provider *root = provider_tree_find_name(tree, "cn1");
        Uuid uuid = uuid_make_child(&root->uuid, "cn1_old");

        assert_int_equal(provider_tree_add(tree, &uuid, "cn1_new", &root->uuid, NULL, NULL), 0);
        assert_ptr_equal(child_provider_find_renamed(tree, root, "cn1_old"),
                         provider_tree_find(tree, &uuid));
        assert_null(child_provider_find_renamed(tree, root, "cn1_new"));
}

/* Makes cn1 with a cell and a GPU below the cell, and a foreign root with a child. */
static ProviderTree *tree_make(void)
{
        ProviderTree *tree =
                make_tree("cn1 | cn1_NUMA0<cn1 | cn1_gpu<cn1_NUMA0 | storage | cn1_lost<storage");

        add_renamed(tree);
        return tree;
}

static void test_ensure(void **state)
{
        static const struct {
                const char *name, *parent;
                const char *words; /* error text for an impossible child */
        } rows[] = {
                { "cn1_NUMA1", "cn1", NULL },     /* created */
                { "cn1_pci", "cn1_NUMA0", NULL }, /* created below a cell */
                { "cn1_NUMA0", "cn1", NULL },     /* exists */
                { "cn1_gpu", "cn1", NULL },       /* moved up */
                { "cn1_lost", "cn1", "Provider cn1_lost" },
                { "cn1_lost", "cn1", "is not below cn1. Remove or rename it" },
                { "storage", "cn1", "is not below cn1" },
                { "cn1_NUMA0", "cn1_gpu", "cannot be moved below cn1_gpu" },
                { "", "cn1", "1 to 200 characters" },
                { "cn1_old", "cn1", "was renamed to \"cn1_new\"" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_make();
                Provider *root = provider_tree_find_name(tree, "cn1");
                TreeUpdate update = { .tree = tree, .root = root };
                const Provider *parent = provider_tree_find_name(tree, rows[i].parent);
                const Provider *before = provider_tree_find_name(tree, rows[i].name);
                size_t n = tree->n_providers;
                Provider *provider = NULL;

                assert_int_equal(child_provider_ensure(&update, parent, rows[i].name, &provider),
                                 0);
                if (rows[i].words) {
                        assert_null(provider);
                        assert_non_null(strstr(update.problem.text, rows[i].words));
                        assert_int_equal(tree->n_providers, n);
                        /* the first problem is reported */
                        assert_int_equal(child_provider_ensure(&update, parent, "", &provider), 0);
                        assert_null(provider);
                        assert_non_null(strstr(update.problem.text, rows[i].words));
                        continue;
                }
                assert_ptr_equal(provider, provider_tree_find_name(tree, rows[i].name));
                assert_true(uuid_equal(&provider->parent, &parent->uuid));
                assert_int_equal(tree->n_providers, before ? n : n + 1);
                if (!before) {
                        Uuid uuid = uuid_make_child(&root->uuid, rows[i].name);

                        assert_true(uuid_equal(&provider->uuid, &uuid));
                }
        }
}

TEST_MAIN(test_ensure)
