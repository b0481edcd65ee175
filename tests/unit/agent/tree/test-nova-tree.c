/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/nova-tree.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define GPU  "cn1_pci_0000_41_00_0"
#define CARD "cn1_0000:81:00.0"

#define REMOTE "cn1 MEMORY_MB=1000/512; " GPU "<cn1 VGPU=4/0; " CARD "<cn1 CUSTOM_CARD=1/0"
#define WANTED "cn1 MEMORY_MB=2000/100; " GPU "<cn1 VGPU=4/4; " CARD "<cn1 CUSTOM_CARD=1/1"

static Inventory *find(const ProviderTree *tree, const char *name, const char *class)
{
        return provider_find_inventory(provider_tree_find_name(tree, name), class);
}

static void test_claims(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *remote = make_tree(REMOTE),
                                                    *wanted = make_tree(WANTED), *tree = NULL;
        const Uuid root = make_uuid("cn1");

        assert_int_equal(nova_tree_to_claim(remote, wanted, &root, &tree), 0);
        assert_int_equal(find(tree, "cn1", "MEMORY_MB")->reserved, 512);
        assert_int_equal(find(tree, GPU, "VGPU")->reserved, 4);
        assert_int_equal(find(tree, CARD, "CUSTOM_CARD")->reserved, 1);
        assert_int_equal(find(tree, "cn1", "MEMORY_MB")->total, 1000);
}

static void test_claims_of_a_host_that_placement_does_not_know(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *wanted = make_tree(WANTED), *tree = NULL,
                                                    *empty = make_tree("");
        const Uuid root = make_uuid("cn1");

        assert_int_equal(nova_tree_to_claim(empty, wanted, &root, &tree), 0);
        assert_true(provider_tree_equal(tree, wanted));
}

/* Only of the card, and in both directions. */
static void test_what_is_sent(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *remote = make_tree(REMOTE),
                                                    *wanted = make_tree(WANTED), *tree = NULL,
                                                    *back = NULL;
        const Uuid root = make_uuid("cn1");

        assert_int_equal(nova_tree_to_send(remote, wanted, &root, &tree), 0);
        assert_int_equal(find(tree, "cn1", "MEMORY_MB")->reserved, 512);
        assert_int_equal(find(tree, GPU, "VGPU")->reserved, 0);
        assert_int_equal(find(tree, CARD, "CUSTOM_CARD")->reserved, 1);
        find(wanted, CARD, "CUSTOM_CARD")->reserved = 0;
        assert_int_equal(nova_tree_to_send(tree, wanted, &root, &back), 0);
        assert_true(provider_tree_equal(back, remote));
}

static void test_whose_reserved_is_kept(void **state)
{
        static const struct {
                const char *name;
                bool kept;
        } cases[] = {
                { "cn1_0000:c1:00.0", true },      { "cn1_0000:C1:00.3", true },
                { "cn1_pci_0000_c1_00_0", false }, { "cn1", false },
                { "cn2_0000:c1:00.0", false },     { "cn1_NUMA0", false },
                { "0000:c1:00.0", false },
        };
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("cn1 VCPU=1");
        const Uuid root = make_uuid("cn1");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Provider provider = { .name = (char *)(uintptr_t)cases[i].name };

                if (nova_keeps_reserved(tree, &root, &provider) != cases[i].kept)
                        fail_msg("%s", cases[i].name);
        }
}

TEST_MAIN(test_claims, test_claims_of_a_host_that_placement_does_not_know, test_what_is_sent,
          test_whose_reserved_is_kept)
