/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/clock.h"
#include "base/provider-tree.h"

#include <inttypes.h>

#include "tests/fixtures/tree.h"
#include "tests/shims/fail-alloc.h"
#include "tests/unit/test.h"

/* Makes a host with two cells, a GPU in the second, and a shared pool. The order of the uuids
 * differs from that of the tree. */
static ProviderTree *make_host(void)
{
        return make_tree("host | host_cell0<host | host_cell1<host |"
                         "host_cell1_gpu<host_cell1 VGPU=8 +CUSTOM_GPU @AGGREGATE | pool");
}

static void assert_order(const ProviderTree *tree)
{
        for (size_t i = 0; i < tree->n_providers; i++) {
                const Provider *provider = tree->providers[i];
                bool parent_seen = uuid_empty(&provider->parent);

                for (size_t j = 0; j < i; j++)
                        parent_seen |= uuid_equal(&tree->providers[j]->uuid, &provider->parent);
                assert_true(parent_seen);
                assert_ptr_equal(provider_tree_find(tree, &provider->uuid), provider);
                if (i > 0)
                        assert_true(uuid_order(&tree->by_uuid[i - 1]->uuid,
                                               &tree->by_uuid[i]->uuid) < 0);
        }
}

static void test_add_and_find(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host();
        Uuid host = make_uuid("host"), cell = make_uuid("host_cell1"),
             gpu = make_uuid("host_cell1_gpu"), pool = make_uuid("pool");
        Uuid unknown = make_uuid("nobody");
        const Provider *provider;

        assert_int_equal(tree->n_providers, 5);
        assert_ptr_not_equal(tree->by_uuid[0], tree->providers[0]);
        assert_order(tree);
        provider = provider_tree_find_name(tree, "host_cell1_gpu");
        assert_ptr_equal(provider, provider_tree_find(tree, &gpu));
        assert_true(uuid_equal(&provider->parent, &cell));
        assert_null(provider_tree_find(tree, &unknown));
        assert_null(provider_tree_find_name(tree, "HOST"));
        assert_null(provider_tree_find_name(tree, ""));

        assert_true(provider_tree_in_subtree(tree, provider, &gpu));
        assert_true(provider_tree_in_subtree(tree, provider, &cell));
        assert_true(provider_tree_in_subtree(tree, provider, &host));
        assert_false(provider_tree_in_subtree(tree, provider, &pool));
        assert_false(provider_tree_in_subtree(tree, provider, &unknown));
        assert_true(provider_tree_has_children(tree, &host));
        assert_true(provider_tree_has_children(tree, &cell));
        assert_false(provider_tree_has_children(tree, &gpu));
        assert_false(provider_tree_has_children(tree, &pool));
        assert_false(provider_tree_has_children(tree, &unknown));
}

static void test_add_refuses_table(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host();
        _cleanup_(provider_tree_freep) ProviderTree *before = NULL;
        char long_name[PROVIDER_NAME_MAX + 2];
        const struct {
                Uuid uuid;
                const char *name;
                Uuid parent;
                int r;
        } cases[] = {
                { make_uuid("host"), "new", UUID_NULL, -EEXIST },
                { make_uuid("new"), "host_cell1", UUID_NULL, -EEXIST }, /* names are unique in the
                                                                         * whole tree */
                { make_uuid("new"), "pool", make_uuid("host"), -EEXIST },
                { make_uuid("new"), "new", make_uuid("nobody"), -ENOENT },
                { make_uuid("new"), "new", make_uuid("new"), -ENOENT }, /* the provider as its own
                                                                         * parent */
                { make_uuid("new"), "", make_uuid("host"), -EINVAL },
                { make_uuid("new"), long_name, make_uuid("host"), -EINVAL },
                { UUID_NULL, "new", make_uuid("host"), -EINVAL },
        };

        memset(long_name, 'n', sizeof(long_name));
        long_name[PROVIDER_NAME_MAX + 1] = '\0';
        assert_int_equal(provider_tree_copy(&before, tree), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Provider *provider = (Provider *)tree;
                Error error = ERROR_NULL;
                int r = provider_tree_add(tree, &cases[i].uuid, cases[i].name, &cases[i].parent,
                                          &provider, &error);

                if (r != cases[i].r)
                        fail_msg("case %zu: %d, expected %d", i, r, cases[i].r);
                assert_int_equal(error.code, -r);
                assert_true(error.text[0]);
                assert_ptr_equal(provider, tree);
                assert_true(provider_tree_equal(tree, before));
        }
}

/* Placement's limit is 200 characters, not bytes. */
static void test_name_length(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        char name[3 * (PROVIDER_NAME_MAX + 1) + 1] = "";
        Uuid uuid = make_uuid("host_cell1");

        assert_int_equal(provider_tree_new(&tree), 0);
        for (int i = 0; i < PROVIDER_NAME_MAX + 1; i++)
                strcat(name, "\xe2\x82\xac");
        assert_int_equal(provider_tree_add(tree, &uuid, name, NULL, NULL, NULL), -EINVAL);
        name[3 * PROVIDER_NAME_MAX] = '\0';
        assert_int_equal(provider_tree_add(tree, &uuid, name, NULL, NULL, NULL), 0);
        assert_string_equal(tree->providers[0]->name, name);
}

static void test_remove_is_recursive(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host();
        Uuid cell = make_uuid("host_cell1"), gpu = make_uuid("host_cell1_gpu"),
             host = make_uuid("host");
        const Provider *pool = provider_tree_find_name(tree, "pool");

        assert_true(provider_tree_remove(tree, &cell));
        assert_null(provider_tree_find(tree, &cell));
        assert_null(provider_tree_find(tree, &gpu));
        assert_int_equal(tree->n_providers, 3);
        assert_order(tree);
        assert_false(provider_tree_remove(tree, &cell));

        /* The uuid can point into the provider that is removed. Other providers keep their
         * address. */
        assert_true(provider_tree_remove(tree, &provider_tree_find(tree, &host)->uuid));
        assert_int_equal(tree->n_providers, 1);
        assert_ptr_equal(tree->providers[0], pool);
        assert_ptr_equal(tree->by_uuid[0], pool);

        /* The name and the uuid can be used again. */
        fixture_put(tree, pool, "host_cell1_gpu", "");
        assert_order(tree);
}

static void test_move(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host();
        Uuid host = make_uuid("host"), first = make_uuid("host_cell0"),
             second = make_uuid("host_cell1"), gpu = make_uuid("host_cell1_gpu"),
             nobody = make_uuid("nobody");
        Provider *cell = provider_tree_find(tree, &first), *moved;

        /* Below a provider that is later in the array. */
        assert_int_equal(provider_tree_move(tree, cell, &gpu), 0);
        assert_order(tree);
        assert_true(uuid_equal(&cell->parent, &gpu));
        /* With its descendants, and with unchanged contents. */
        moved = provider_tree_find(tree, &gpu);
        assert_int_equal(provider_tree_move(tree, moved, &host), 0);
        assert_order(tree);
        assert_ptr_equal(provider_tree_find(tree, &gpu), moved);
        assert_true(provider_tree_in_subtree(tree, cell, &gpu));
        assert_int_equal(provider_find_inventory(moved, "VGPU")->total, 8);
        assert_false(provider_tree_has_children(tree, &second));
        assert_int_equal(tree->n_providers, 5);

        assert_int_equal(provider_tree_move(tree, moved, &nobody), -ENOENT);
        assert_int_equal(provider_tree_move(tree, moved, &gpu), -ELOOP);
        assert_int_equal(provider_tree_move(tree, moved, &first), -ELOOP);
        assert_true(uuid_equal(&moved->parent, &host));
        assert_order(tree);
}

static void test_deep_and_wide(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL, *copy = NULL;
        const Provider *last = NULL;
        Uuid middle = make_uuid("p250");
        char name[32];

        assert_int_equal(provider_tree_new(&tree), 0);
        for (unsigned i = 1; i <= 500; i++) {
                snprintf(name, sizeof(name), "p%u", i);
                last = fixture_put(tree, last, name, "");
        }
        assert_int_equal(provider_tree_copy(&copy, tree), 0);
        assert_order(copy);
        assert_true(provider_tree_equal(tree, copy));
        assert_true(provider_tree_remove(copy, &middle));
        assert_int_equal(copy->n_providers, 249);
        assert_order(copy);
        assert_int_equal(tree->n_providers, 500);
}

static void test_copy_is_deep(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host(), *copy = NULL;
        Provider *gpu;

        assert_int_equal(provider_tree_copy(&copy, tree), 0);
        assert_true(provider_tree_equal(tree, copy));
        gpu = provider_tree_find_name(copy, "host_cell1_gpu");
        gpu->name[0] = 'H';
        provider_find_inventory(gpu, "VGPU")->total = 99;
        assert_true(string_set_remove(&gpu->traits, "CUSTOM_GPU"));
        gpu = provider_tree_find_name(tree, "host_cell1_gpu");
        assert_non_null(gpu);
        assert_int_equal(provider_find_inventory(gpu, "VGPU")->total, 8);
        assert_true(string_set_contains(&gpu->traits, "CUSTOM_GPU"));
        assert_false(provider_tree_equal(tree, copy));
}

static void test_a_reference_keeps_the_tree(void **state)
{
        ProviderTree *tree = make_host(), *shared = provider_tree_ref(tree);
        Uuid root = tree->providers[0]->uuid;

        assert_ptr_equal(shared, tree);
        assert_null(provider_tree_free(tree));
        assert_non_null(provider_tree_find_name(shared, "host_cell1_gpu"));
        assert_true(provider_tree_remove(shared, &root));
        provider_tree_free(shared);
}

/* Records are writable in place, also with values that Placement would reject. A copy keeps such
 * values. */
static void test_copy_keeps_invalid_records(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host(), *copy = NULL;
        Provider *gpu = provider_tree_find_name(tree, "host_cell1_gpu");

        provider_find_inventory(gpu, "VGPU")->total = 0;
        assert_int_equal(provider_tree_copy(&copy, tree), 0);
        assert_true(provider_tree_equal(tree, copy));
}

static void change_name(Provider *p)
{
        p->name[0]++;
}

static void change_parent(Provider *p)
{
        p->parent = make_uuid("host");
}

static void change_record(Provider *p)
{
        provider_find_inventory(p, "VGPU")->reserved++;
}

static void change_classes(Provider *p)
{
        Inventory inventory = INVENTORY_DEFAULT(1);

        assert_int_equal(provider_set_inventory(p, "CUSTOM_X", &inventory), 0);
}

static void change_class(Provider *p)
{
        change_classes(p);
        assert_true(provider_remove_inventory(p, "VGPU"));
}

static void change_traits(Provider *p)
{
        assert_int_equal(string_set_add(&p->traits, "CUSTOM_T"), 1);
}

static void change_aggregates(Provider *p)
{
        assert_true(string_set_remove(&p->aggregates, "AGGREGATE"));
}

static void test_equal_table(void **state)
{
        static void (*const changes[])(Provider *) = {
                change_name,  change_parent, change_record,     change_classes,
                change_class, change_traits, change_aggregates,
        };
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host(), *other = NULL;

        /* The same providers, added in another order. */
        other = make_tree("pool | host | host_cell1<host");
        assert_false(provider_tree_equal(tree, other));
        fixture_put(other, provider_tree_find_name(other, "host_cell1"), "host_cell1_gpu", "");
        fixture_put(other, provider_tree_find_name(other, "host"), "host_cell0", "");
        assert_false(provider_tree_equal(tree, other));
        assert_int_equal(provider_copy_inventories(provider_tree_find_name(other, "host_cell1_gpu"),
                                                   provider_tree_find_name(tree, "host_cell1_gpu")),
                         0);
        change_traits(provider_tree_find_name(other, "host_cell1_gpu"));
        assert_false(provider_tree_equal(tree, other));

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *changed = NULL;

                assert_int_equal(provider_tree_copy(&changed, tree), 0);
                assert_true(provider_tree_equal(tree, changed));
                changes[i](provider_tree_find_name(changed, "host_cell1_gpu"));
                if (provider_tree_equal(tree, changed) || provider_tree_equal(changed, tree))
                        fail_msg("change %zu is not seen", i);
        }
}

static void test_inventories(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host();
        Provider *host = provider_tree_find_name(tree, "host");
        Inventory inventory = INVENTORY_DEFAULT(4), invalid = INVENTORY_DEFAULT(0);

        assert_null(provider_find_inventory(host, "VCPU"));
        assert_int_equal(provider_set_inventory(host, "VCPU", &inventory), 0);
        assert_int_equal(provider_set_inventory(host, "DISK_GB", &inventory), 0);
        assert_int_equal(provider_set_inventory(host, "MEMORY_MB", &inventory), 0);
        assert_string_equal(host->inventories[0].resource_class, "DISK_GB");
        assert_string_equal(host->inventories[1].resource_class, "MEMORY_MB");
        assert_string_equal(host->inventories[2].resource_class, "VCPU");

        assert_int_equal(provider_set_inventory(host, "vcpu", &inventory), -EINVAL);
        assert_int_equal(provider_set_inventory(host, "", &inventory), -EINVAL);
        assert_int_equal(provider_set_inventory(host, "VCPU", &invalid), -EINVAL);
        assert_int_equal(provider_find_inventory(host, "VCPU")->total, 4);

        inventory.total = 5;
        assert_int_equal(provider_set_inventory(host, "VCPU", &inventory), 0);
        assert_int_equal(provider_find_inventory(host, "VCPU")->total, 5);
        assert_int_equal(host->n_inventories, 3);
        /* A record of the provider itself, whose array can move. */
        for (unsigned i = 0; i < 20; i++) {
                char name[16];

                snprintf(name, sizeof(name), "CUSTOM_%u", i);
                assert_int_equal(
                        provider_set_inventory(host, name, provider_find_inventory(host, "VCPU")),
                        0);
        }
        assert_int_equal(provider_find_inventory(host, "CUSTOM_19")->total, 5);

        assert_true(provider_remove_inventory(host, "DISK_GB"));
        assert_false(provider_remove_inventory(host, "DISK_GB"));
        assert_int_equal(provider_find_inventory(host, "MEMORY_MB")->total, 4);
        provider_clear_inventories(host);
        assert_int_equal(host->n_inventories, 0);
        assert_int_equal(provider_set_inventory(host, "VCPU", &inventory), 0);
}

static void test_add_without_memory(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host();
        unsigned failures = 0, at;
        Error error = ERROR_NULL;
        char name[32];

        for (unsigned i = 100; i < 120; i++) {
                _cleanup_(provider_tree_freep) ProviderTree *before = NULL;
                Uuid uuid, host = make_uuid("host");
                int r;

                snprintf(name, sizeof(name), "p%u", i);
                uuid = make_uuid(name);
                assert_int_equal(provider_tree_copy(&before, tree), 0);
                FAIL_ALLOC_EACH(at, r = provider_tree_add(tree, &uuid, name, &host, NULL, &error)) {
                        failures++;
                        assert_int_equal(r, -ENOMEM);
                        assert_int_equal(error.code, ENOMEM);
                        error = ERROR_NULL;
                        assert_true(provider_tree_equal(tree, before));
                        assert_order(tree);
                }
                assert_int_equal(r, 0);
        }
        assert_int_equal(tree->n_providers, 25);
        assert_order(tree);
        assert_true(failures > 40); /* both arrays failed to grow at least once */
}

static void test_copy_without_memory(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host(), *copy = NULL;
        unsigned at;
        int r;

        FAIL_ALLOC_EACH(at, r = provider_tree_copy(&copy, tree)) {
                assert_int_equal(r, -ENOMEM);
                assert_null(copy);
        }
        assert_true(at > 15);
        assert_true(provider_tree_equal(tree, copy));
}

static void test_inventories_without_memory(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_host();
        Provider *host = provider_tree_find_name(tree, "host");
        Provider *gpu = provider_tree_find_name(tree, "host_cell1_gpu");
        Inventory inventory = INVENTORY_DEFAULT(4);

        for (unsigned at = 0; at < 2; at++) {
                fail_alloc_at(at);
                assert_int_equal(provider_set_inventory(host, "VCPU", &inventory), -ENOMEM);
                assert_true(fail_alloc_done());
                assert_int_equal(host->n_inventories, 0);
        }
        assert_int_equal(provider_set_inventory(host, "VCPU", &inventory), 0);
        for (unsigned at = 0; at < 2; at++) {
                fail_alloc_at(at);
                assert_int_equal(provider_copy_inventories(host, gpu), -ENOMEM);
                assert_true(fail_alloc_done());
                assert_int_equal(host->n_inventories, 1);
                assert_int_equal(provider_find_inventory(host, "VCPU")->total, 4);
        }
        assert_int_equal(provider_copy_inventories(host, gpu), 0);
        assert_true(provider_inventories_equal(host, gpu));
        assert_int_equal(provider_copy_inventories(host, host), 0);
        assert_true(provider_inventories_equal(host, gpu));
}

/* Returns the CPU time of a copy of n providers and of a look-up of each name; the best of several
 * passes. */
static uint64_t measure_copy(unsigned n)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        uint64_t best = UINT64_MAX;
        char name[32];

        assert_int_equal(provider_tree_new(&tree), 0);
        for (unsigned i = 1; i <= n; i++) {
                snprintf(name, sizeof(name), "host_with_a_name_device%u", i);
                fixture_put(tree, i > 1 ? tree->providers[0] : NULL, name, "");
        }
        for (int pass = 0; pass < 5; pass++) {
                _cleanup_(provider_tree_freep) ProviderTree *copy = NULL;
                uint64_t start = clock_usec(CLOCK_PROCESS_CPUTIME_ID);

                assert_int_equal(provider_tree_copy(&copy, tree), 0);
                for (unsigned i = 0; i < n; i++)
                        assert_ptr_equal(provider_tree_find_name(copy, tree->providers[i]->name),
                                         copy->providers[i]);
                best = MIN(best, clock_usec(CLOCK_PROCESS_CPUTIME_ID) - start);
        }
        return best;
}

/* Sixteen times as many providers cost about sixteen times as much, not 256 times. */
static void test_cost_is_linear(void **state)
{
        uint64_t few = measure_copy(1000), many = measure_copy(16000);

        if (many > few * 128)
                fail_msg("%" PRIu64 " usec for 1000, %" PRIu64 " usec for 16000", few, many);
}

TEST_MAIN(test_add_and_find, test_add_refuses_table, test_name_length, test_remove_is_recursive,
          test_move, test_deep_and_wide, test_copy_is_deep, test_a_reference_keeps_the_tree,
          test_copy_keeps_invalid_records, test_equal_table, test_inventories,
          test_add_without_memory, test_copy_without_memory, test_inventories_without_memory,
          test_cost_is_linear)
