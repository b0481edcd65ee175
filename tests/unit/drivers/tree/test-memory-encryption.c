/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/memory-encryption.h"
#include "tests/fixtures/host.h"

#define UUID_GUEST "bbbbbbbb-0000-4000-8000-000000000001"

#define HOST(members)                                                          \
        "'arch': 'x86_64', 'emulators': [{'arch': 'x86_64', 'machine': 'pc'}," \
        " {'arch': 'x86_64', 'machine': 'q35'" members "}]"
#define SEV     ", 'sev': true, 'sev_max_guests': 15"
#define SEV_ES  SEV ", 'sev_es': true, 'sev_es_max_guests': 500"
#define SEV_SNP SEV_ES ", 'sev_snp': true"

static void update(const char *members, ProviderTree *tree, Allocations *allocations, int expected)
{
        const HostConfig config = config_make(NULL, 0);

        host_update(&config, members, tree, allocations, expected, NULL);
}

/* Returns the contexts of the provider with this name, or 0 without it. */
static uint64_t contexts_of(const ProviderTree *tree, const char *name, const char *trait)
{
        const Provider *provider = provider_tree_find_name(tree, name);
        const Inventory *record;

        if (!provider)
                return 0;
        record = provider_find_inventory(provider, "MEM_ENCRYPTION_CONTEXT");
        assert_non_null(record);
        assert_int_equal(provider->n_inventories, 1);
        assert_int_equal(record->max_unit, 1);
        assert_true(string_set_contains(&provider->traits, trait));
        assert_true(string_set_contains(&provider->traits, "OWNER_COMPUTE_AGENT"));
        return record->total;
}

/* C6: SNP replaces ES; a model that the host lacks now is removed */
static void test_models_c6(void **state)
{
        static const struct {
                const char *host;
                uint64_t sev, es, snp;
        } cases[] = {
                { HOST(""), 0, 0, 0 },
                { HOST(SEV), 15, 0, 0 },
                { HOST(SEV_ES), 15, 500, 0 },
                { HOST(SEV_SNP), 15, 0, 500 },
                { HOST(SEV_ES), 15, 500, 0 },
                { HOST(", 'sev': true, 'sev_max_guests': 0"), 0, 0, 0 },
                /* unknown number: the largest one that Placement can store */
                { HOST(", 'sev': true, 'sev_max_guests': 9223372036854775807"),
                  INVENTORY_MAX_AMOUNT, 0, 0 },
                /* unknown emulators: nothing changes */
                { "'arch': 'x86_64'", INVENTORY_MAX_AMOUNT, 0, 0 },
                { "'emulators_incomplete': true, " HOST(""), INVENTORY_MAX_AMOUNT, 0, 0 },
                /* the kernel's numbers are those of the host */
                { "'arch': 'x86_64', 'emulators_incomplete': true, 'emulators': [{'arch': 'x86_64',"
                  " 'machine': '', 'sev_es': true, 'sev_es_max_guests': 509}]",
                  0, 509, 0 },
                { "'arch': 'x86_64', 'emulators_incomplete': true, 'emulators': [{'arch': 'x86_64',"
                  " 'machine': ''" SEV "}]",
                  15, 0, 0 },
                { "'arch': 'aarch64', 'emulators': [{'arch': 'x86_64', 'machine': 'q35'" SEV_ES
                  "}]",
                  0, 0, 0 },
        };
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                update(cases[i].host, tree, NULL, DRIVER_UPDATED);
                assert_int_equal(contexts_of(tree, "cn1_amd_sev", "HW_CPU_X86_AMD_SEV"),
                                 cases[i].sev);
                assert_int_equal(contexts_of(tree, "cn1_amd_sev_es", "HW_CPU_X86_AMD_SEV_ES"),
                                 cases[i].es);
                assert_int_equal(contexts_of(tree, "cn1_amd_sev_snp", "HW_CPU_X86_AMD_SEV_SNP"),
                                 cases[i].snp);
                assert_int_equal(tree->n_providers,
                                 1 + !!cases[i].sev + !!cases[i].es + !!cases[i].snp);
        }
}

/* C5.3, F3: contexts move from the root, where older versions of Nova had them: one for each
 * guest */
static void test_reshape_c5_3(void **state)
{
        Provider *root;
        const Provider *sev;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root), *before = NULL;
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        const Uuid guest = { UUID_GUEST };
        const Consumer *consumer;

        fixture_give(root, "MEM_ENCRYPTION_CONTEXT=15 +HW_CPU_X86_AMD_SEV");
        fixture_hold(&allocations, guest, root->uuid, "MEM_ENCRYPTION_CONTEXT", 1);
        consumer = fixture_hold(&allocations, guest, root->uuid, "VCPU", 2);
        assert_int_equal(provider_tree_copy(&before, tree), 0);
        update(HOST(SEV), tree, NULL, DRIVER_RESHAPE_NEEDED);
        assert_true(provider_tree_equal(tree, before));
        root = provider_tree_find_name(tree, "cn1");
        update(HOST(SEV), tree, allocations, DRIVER_UPDATED);
        sev = provider_tree_find_name(tree, "cn1_amd_sev");
        assert_non_null(sev);
        assert_int_equal(
                resources_get(consumer_find(consumer, &sev->uuid), "MEM_ENCRYPTION_CONTEXT"), 1);
        assert_int_equal(resources_get(consumer_find(consumer, &root->uuid), "VCPU"), 2);
        assert_int_equal(consumer_sum(consumer, "MEM_ENCRYPTION_CONTEXT"), 1);
        assert_null(provider_find_inventory(root, "MEM_ENCRYPTION_CONTEXT"));
        assert_false(string_set_contains(&root->traits, "HW_CPU_X86_AMD_SEV"));
        update(HOST(SEV), tree, NULL, DRIVER_UPDATED);
}

/* C10: an operator's traits on the provider stay. A foreign provider with this name is not
 * changed */
static void test_ownership_c10(void **state)
{
        Provider *root, *sev;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);

        update(HOST(SEV), tree, NULL, DRIVER_UPDATED);
        sev = provider_tree_find_name(tree, "cn1_amd_sev");
        assert_int_equal(string_set_add(&sev->traits, "CUSTOM_BY_HAND"), 1);
        update(HOST(SEV), tree, NULL, DRIVER_UPDATED);
        assert_true(string_set_contains(&sev->traits, "CUSTOM_BY_HAND"));
        fixture_put(tree, root, "cn1_amd_sev_es", "");
        update(HOST(SEV), tree, NULL, DRIVER_UPDATED);
        assert_int_equal(tree->n_providers, 3);
}

/* Placement dropped the trait, which it does not know */
static void test_gone_without_its_trait_c6(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);

        update(HOST(SEV), tree, NULL, DRIVER_UPDATED);
        assert_true(string_set_remove(&provider_tree_find_name(tree, "cn1_amd_sev")->traits,
                                      "HW_CPU_X86_AMD_SEV"));
        update(HOST(""), tree, NULL, DRIVER_UPDATED);
        assert_int_equal(tree->n_providers, 1);
}

/* A provider of another writer keeps it; it goes after that one. */
static void test_gone_after_a_foreign_child(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        const Provider *sev;

        update(HOST(SEV), tree, NULL, DRIVER_UPDATED);
        fixture_put(tree, provider_tree_find_name(tree, "cn1_amd_sev"), "foreign", "CUSTOM_X=1");
        update(HOST(""), tree, NULL, DRIVER_UPDATED);
        sev = provider_tree_find_name(tree, "cn1_amd_sev");
        assert_int_equal(sev->n_inventories, 0);
        provider_tree_remove(tree, &provider_tree_find_name(tree, "foreign")->uuid);
        update(HOST(""), tree, NULL, DRIVER_UPDATED);
        assert_null(provider_tree_find_name(tree, "cn1_amd_sev"));
}

TEST_MAIN(test_models_c6, test_reshape_c5_3, test_ownership_c10, test_gone_without_its_trait_c6,
          test_gone_after_a_foreign_child)
