/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/nova-tree.h"
#include "tests/unit/test.h"

#define ROOT "11111111-2222-3333-4444-555555555555"
#define GPU  "11111111-2222-3333-4444-555555555556"
#define CARD "11111111-2222-3333-4444-555555555557"

static Uuid uuid_of(const char *text)
{
        Uuid uuid = UUID_NULL;

        assert_int_equal(uuid_from_text(text, &uuid), 0);
        return uuid;
}

static void add(ProviderTree *tree, const char *uuid, const char *name, const char *class,
                uint64_t total, uint64_t reserved)
{
        const Uuid root = uuid_of(ROOT), own = uuid_of(uuid);
        bool is_root = uuid_equal(&root, &own);
        Inventory inventory = INVENTORY_DEFAULT(total);
        Provider *provider;

        inventory.reserved = reserved;
        assert_int_equal(
                provider_tree_add(tree, &own, name, is_root ? NULL : &root, &provider, NULL), 0);
        assert_int_equal(provider_set_inventory(provider, class, &inventory), 0);
}

static uint64_t reserved(const ProviderTree *tree, const char *uuid, const char *class)
{
        const Uuid own = uuid_of(uuid);
        const Provider *provider = provider_tree_find(tree, &own);

        assert_non_null(provider);
        return provider_find_inventory(provider, class)->reserved;
}

static void make(ProviderTree **remote, ProviderTree **wanted)
{
        assert_int_equal(provider_tree_new(remote), 0);
        assert_int_equal(provider_tree_new(wanted), 0);
        add(*remote, ROOT, "cn1", "MEMORY_MB", 1000, 512);
        add(*remote, GPU, "cn1_pci_0000_41_00_0", "VGPU", 4, 0);
        add(*remote, CARD, "cn1_0000:81:00.0", "CUSTOM_CARD", 1, 0);
        add(*wanted, ROOT, "cn1", "MEMORY_MB", 2000, 100);
        add(*wanted, GPU, "cn1_pci_0000_41_00_0", "VGPU", 4, 4);
        add(*wanted, CARD, "cn1_0000:81:00.0", "CUSTOM_CARD", 1, 1);
}

static void test_claims(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *remote = NULL, *wanted = NULL, *tree = NULL;
        const Uuid root = uuid_of(ROOT);

        make(&remote, &wanted);
        assert_int_equal(nova_tree_to_claim(remote, wanted, &root, &tree), 0);
        assert_int_equal(reserved(tree, ROOT, "MEMORY_MB"), 512);
        assert_int_equal(reserved(tree, GPU, "VGPU"), 4);
        assert_int_equal(reserved(tree, CARD, "CUSTOM_CARD"), 1);
        assert_int_equal(
                provider_find_inventory(provider_tree_find(tree, &root), "MEMORY_MB")->total, 1000);
}

static void test_claims_of_a_host_that_placement_does_not_know(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *remote = NULL, *wanted = NULL, *tree = NULL,
                                                    *empty = NULL;
        const Uuid root = uuid_of(ROOT);

        make(&remote, &wanted);
        assert_int_equal(provider_tree_new(&empty), 0);
        assert_int_equal(nova_tree_to_claim(empty, wanted, &root, &tree), 0);
        assert_true(provider_tree_equal(tree, wanted));
}

/* Only of the card, and in both directions. */
static void test_what_is_sent(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *remote = NULL, *wanted = NULL, *tree = NULL,
                                                    *back = NULL;
        const Uuid root = uuid_of(ROOT), card = uuid_of(CARD);

        make(&remote, &wanted);
        assert_int_equal(nova_tree_to_send(remote, wanted, &root, &tree), 0);
        assert_int_equal(reserved(tree, ROOT, "MEMORY_MB"), 512);
        assert_int_equal(reserved(tree, GPU, "VGPU"), 0);
        assert_int_equal(reserved(tree, CARD, "CUSTOM_CARD"), 1);
        provider_find_inventory(provider_tree_find(wanted, &card), "CUSTOM_CARD")->reserved = 0;
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
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        const Uuid root = uuid_of(ROOT);

        assert_int_equal(provider_tree_new(&tree), 0);
        add(tree, ROOT, "cn1", "VCPU", 1, 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Provider provider = { .name = (char *)(uintptr_t)cases[i].name };

                if (nova_keeps_reserved(tree, &root, &provider) != cases[i].kept)
                        fail_msg("%s", cases[i].name);
        }
}

TEST_MAIN(test_claims, test_claims_of_a_host_that_placement_does_not_know, test_what_is_sent,
          test_whose_reserved_is_kept)
