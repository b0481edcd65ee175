/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests whole updates: inventories of the root, ownership, providers of mdev parents, and the
 * reshape from the root to them. The names of tests and their comments have the ids of facts,
 * for example C10 and G2.5. */
#include "tests/fixtures/host.h"

#define UUID_FOREIGN "aaaaaaaa-0000-4000-8000-000000000009"
#define UUID_GUEST   "bbbbbbbb-0000-4000-8000-000000000001"
#define UUID_GUEST_2 "bbbbbbbb-0000-4000-8000-000000000002"
#define UUID_MDEV_1  "11111111-1111-4111-8111-111111111111"
#define UUID_MDEV_2  "22222222-2222-4222-8222-222222222222"
#define UUID_MDEV_3  "33333333-3333-4333-8333-333333333333"

#define GPU(slot, available)                                                    \
        "{'name': 'pci_0000_41_0" slot "_0', 'address': '0000:41:0" slot ".0'," \
        " 'mdev_types': [{'id': 'A', 'available_instances': " available "}]}"
#define TWO_GPUS            "'devices': [" GPU("0", "14") ", " GPU("1", "16") "]"
#define MDEV(uuid, slot)    "{'uuid': '" uuid "', 'type': 'A', 'parent': 'pci_0000_41_0" slot "_0'}"
#define DOMAIN(uuid, mdevs) "{'uuid': '" uuid "', 'state': 'running', 'mdevs': [" mdevs "]}"

static HostMdevType type_a[] = { MDEV_TYPE("A", NULL, "VGPU", 0) };

/* Compares the inventory of a class with these values and the defaults for the others. */
static void expect_inventory(const Provider *provider, const char *resource_class, uint64_t total,
                             uint64_t reserved, double ratio)
{
        const Inventory expected = {
                .total = total,
                .reserved = reserved,
                .min_unit = 1,
                .max_unit = total,
                .step_size = 1,
                .allocation_ratio = ratio,
        };
        const Inventory *found = provider_find_inventory(provider, resource_class);

        if (!found || !inventory_equal(found, &expected))
                fail_msg("%s of %s: total %lld", resource_class, provider->name,
                         found ? (long long)found->total : -1);
}

/* A size that is unknown for a moment does not remove DISK_GB. A folder that never existed is
 * not a problem. */
static void test_disk_of_unknown_size(void **state)
{
        static const struct {
                int code;
                bool pool, had;
                int expected;
                const char *words;
        } cases[] = {
                { ENOENT, false, true, DRIVER_UPDATED_IN_PART, "DISK_GB stays unchanged" },
                { EIO, false, true, DRIVER_UPDATED_IN_PART, "DISK_GB stays unchanged" },
                { ENOENT, false, false, DRIVER_UPDATED, "" },
                { EACCES, false, false, DRIVER_UPDATED_IN_PART, "DISK_GB is not reported" },
                { ENOENT, true, false, DRIVER_UPDATED_IN_PART, "DISK_GB is not reported" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                _cleanup_(snapshot_unrefp) Snapshot *host = host_new("'online_cpus': '0-7'");
                Provider *root = provider_tree_find_name(tree, "cn1");
                const Inventory disk = { .total = 99,
                                         .max_unit = 50,
                                         .min_unit = 1,
                                         .step_size = 1,
                                         .allocation_ratio = 2.0 };
                HostConfig config = { .images_storage_pool = cases[i].pool ? "p" : NULL };
                const Inventory *found;
                Error error = ERROR_NULL;

                error_setf(&host->disk_error, cases[i].code, "gone");
                if (cases[i].had)
                        assert_int_equal(provider_set_inventory(root, "DISK_GB", &disk), 0);
                assert_int_equal(provider_update(&config, host, NULL, tree, "cn1", NULL, &error),
                                 cases[i].expected);
                assert_non_null(strstr(error.text, cases[i].words));
                found = provider_find_inventory(provider_tree_find_name(tree, "cn1"), "DISK_GB");
                assert_int_equal(found != NULL, cases[i].had);
                assert_true(!found || inventory_equal(found, &disk));
        }
}

/* C2 */
static void test_root_table(void **state)
{
        static const struct {
                const char *host;
                uint64_t reserved_cpus, reserved_mb, reserved_disk_mb;
                uint64_t vcpu, memory, disk, disk_reserved; /* 0: no such class */
        } cases[] = {
                { "'online_cpus': '0-7', 'memory_kib': 8388608, 'disk_total_bytes': 107374182400",
                  0, 512, 0, 8, 8192, 100, 0 },
                { "'online_cpus': '0-7', 'memory_kib': 8389631, 'disk_total_bytes': 107374182399",
                  8, 8192, 1025, 8, 8192, 99, 2 },
                { "'online_cpus': '1', 'memory_kib': 1024, 'disk_total_bytes': 1073741824", 0, 0,
                  1024, 1, 1, 1, 1 },
                /* G4.7: a class without an amount is left out, reserved or not */
                { "'memory_kib': 1023, 'disk_total_bytes': 1073741823", 4, 512, 1, 0, 0, 0, 0 },
                { "'online_cpus': '0', 'memory_kib': 9223372036854775807", 0, 0, 0, 1,
                  INVENTORY_MAX_AMOUNT, 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Provider *root;
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
                HostConfig config = config_make(NULL, 0);

                config.reserved_host_cpus = cases[i].reserved_cpus;
                config.reserved_host_memory_mb = cases[i].reserved_mb;
                config.reserved_host_disk_mb = cases[i].reserved_disk_mb;
                host_update(&config, cases[i].host, tree, NULL, DRIVER_UPDATED, NULL);
                assert_int_equal(root->n_inventories,
                                 !!cases[i].vcpu + !!cases[i].memory + !!cases[i].disk);
                if (cases[i].vcpu)
                        expect_inventory(root, "VCPU", cases[i].vcpu, cases[i].reserved_cpus, 4.0);
                if (cases[i].memory)
                        expect_inventory(root, "MEMORY_MB", cases[i].memory, cases[i].reserved_mb,
                                         1.0);
                if (cases[i].disk)
                        expect_inventory(root, "DISK_GB", cases[i].disk, cases[i].disk_reserved,
                                         1.0);
        }
}

/* Only the class with the wrong reservation is affected: all of it is reserved. */
static void test_reserved_too_much(void **state)
{
        static const struct {
                uint64_t cpus, mb, disk_mb;
                uint64_t cpus_reserved, mb_reserved, gb_reserved;
                const char *words;
        } cases[] = {
                { 3, 0, 0, 2, 0, 0,
                  "reserved_host_cpus reserves 3 of VCPU, but the host has only 2" },
                { 0, 1025, 0, 0, 1024, 0, "reserved_host_memory_mb" },
                { 0, 0, 1025, 0, 0, 1, "reserved_host_disk_mb reserves 2 of DISK_GB" },
                { 3, 1025, 1025, 2, 1024, 1, "reserved_host_cpus" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Provider *root;
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
                HostConfig config = config_make(NULL, 0);

                config.reserved_host_cpus = cases[i].cpus;
                config.reserved_host_memory_mb = cases[i].mb;
                config.reserved_host_disk_mb = cases[i].disk_mb;
                host_update(
                        &config,
                        "'online_cpus': '0-1', 'memory_kib': 1048576, 'disk_total_bytes': 1073741824",
                        tree, NULL, DRIVER_UPDATED_IN_PART, cases[i].words);
                expect_inventory(root, "VCPU", 2, cases[i].cpus_reserved, 4.0);
                expect_inventory(root, "MEMORY_MB", 1024, cases[i].mb_reserved, 1.0);
                expect_inventory(root, "DISK_GB", 1, cases[i].gb_reserved, 1.0);
        }
}

/* C2, last part: the configured ratio, else the one that an operator set, else the initial one */
static void test_ratio_table(void **state)
{
        static const struct {
                double configured, initial, present, expected; /* present 0: no inventory yet */
        } cases[] = {
                { 16, 4, 0, 16 }, { 16, 4, 2, 16 }, { 0, 4, 0, 4 },
                { 0, 4, 2, 2 },   { 0, 0, 0, 1 },   { 0, 0, 8, 8 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Provider *root;
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
                HostConfig config = config_make(NULL, 0);

                config.cpu_allocation_ratio = cases[i].configured;
                config.initial_cpu_allocation_ratio = cases[i].initial;
                if (cases[i].present > 0) {
                        Inventory old = INVENTORY_DEFAULT(99);

                        old.allocation_ratio = cases[i].present;
                        assert_int_equal(provider_set_inventory(root, "VCPU", &old), 0);
                }
                host_update(&config, "'online_cpus': '0-3'", tree, NULL, DRIVER_UPDATED, NULL);
                expect_inventory(root, "VCPU", 4, 0, cases[i].expected);
        }
}

/* C10: the root's inventory belongs to the driver; its traits and aggregates do not */
static void test_root_ownership_c10(void **state)
{
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        HostConfig config = config_make(NULL, 0);

        fixture_give(root, "CUSTOM_BY_HAND=5 +CUSTOM_GOLD @" UUID_FOREIGN);
        host_update(&config, "'online_cpus': '0'", tree, NULL, DRIVER_UPDATED, NULL);
        assert_null(provider_find_inventory(root, "CUSTOM_BY_HAND"));
        assert_int_equal(root->traits.n_items, 3);
        assert_true(string_set_contains(&root->traits, "CUSTOM_GOLD"));
        assert_true(string_set_contains(&root->traits, "COMPUTE_NODE"));
        assert_true(string_set_contains(&root->traits, "OWNER_COMPUTE_AGENT"));
        assert_int_equal(root->aggregates.n_items, 1);
}

static void test_no_owner_trait(void **state)
{
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        HostConfig config = config_make(type_a, 1);

        config.owner_trait = "";
        host_update(&config, TWO_GPUS, tree, NULL, DRIVER_UPDATED, NULL);
        assert_int_equal(root->traits.n_items, 1);
        assert_int_equal(tree->providers[1]->traits.n_items, 0);
}

static void test_gpus(void **state)
{
        Provider *root, *gpu;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root), *again = NULL;
        HostConfig config = config_make(type_a, 1);
        Uuid expected = uuid_make_child(&root->uuid, "cn1_pci_0000_41_00_0");

        host_update(&config, TWO_GPUS, tree, NULL, DRIVER_UPDATED, NULL);
        assert_int_equal(tree->n_providers, 3);
        gpu = provider_tree_find_name(tree, "cn1_pci_0000_41_00_0");
        assert_non_null(gpu);
        assert_true(uuid_equal(&gpu->uuid, &expected));
        assert_true(uuid_equal(&gpu->parent, &root->uuid));
        assert_int_equal(gpu->n_inventories, 1);
        expect_inventory(gpu, "VGPU", 14, 0, 1.0);
        assert_true(string_set_contains(&gpu->traits, "OWNER_COMPUTE_AGENT"));
        assert_null(provider_find_inventory(root, "VGPU"));

        /* a second time changes nothing */
        assert_int_equal(provider_tree_copy(&again, tree), 0);
        host_update(&config, TWO_GPUS, again, NULL, DRIVER_UPDATED, NULL);
        assert_true(provider_tree_equal(tree, again));
}

/* G2.10, C4: providers of an earlier installation are adopted by name, with traits and
 * aggregates */
static void test_adopt(void **state)
{
        _cleanup_(allocations_freep) Allocations *none = NULL;
        Provider *root, *old;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        HostConfig config = config_make(type_a, 1);
        Uuid uuid;

        old = fixture_put(tree, root, "cn1_pci_0000_41_01_0",
                          "CUSTOM_OLD_CLASS=3 +CUSTOM_NVIDIA_35 @" UUID_GUEST);
        uuid = old->uuid;
        host_update(&config, TWO_GPUS, tree, NULL, DRIVER_RESHAPE_NEEDED, NULL);
        assert_int_equal(allocations_new(&none), 0);
        host_update(&config, TWO_GPUS, tree, none, DRIVER_UPDATED, NULL);
        assert_int_equal(tree->n_providers, 3);
        old = provider_tree_find(tree, &uuid);
        assert_int_equal(old->n_inventories, 1);
        expect_inventory(old, "VGPU", 16, 0, 1.0);
        assert_int_equal(old->traits.n_items, 2);
        assert_int_equal(old->aggregates.n_items, 1);
}

/* G2.6: a type without addresses keeps its class */
static void test_class_by_type_g2_6(void **state)
{
        HostMdevType types[] = { MDEV_TYPE("A", NULL, "CUSTOM_A", 0) };
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        HostConfig config = config_make(types, 1);

        host_update(&config, TWO_GPUS, tree, NULL, DRIVER_UPDATED, NULL);
        expect_inventory(provider_tree_find_name(tree, "cn1_pci_0000_41_00_0"), "CUSTOM_A", 14, 0,
                         1.0);
}

/* G2.5 and C10: the providers that are removed if no type is enabled and no device exists */
static void test_gone_g2_5(void **state)
{
        static const struct {
                const char *name, *words;
                bool gone;
        } cases[] = {
                { "cn1_pci_0000_41_00_0", "VGPU=4 +OWNER_COMPUTE_AGENT", true },
                { "cn1_pci_0000_41_00_0", "CUSTOM_OLD=4 +OWNER_COMPUTE_AGENT", true },
                { "cn1_pci_0000_41_00_0", "+OWNER_COMPUTE_AGENT", true },
                { "cn1_pci_0000_41_00_0", "VGPU=4", true },
                { "cn1_pci_0000_41_00_0", "CUSTOM_A=4", true }, /* configured for other devices */
                { "cn1_mtty_mtty", "VGPU=4 +OWNER_COMPUTE_AGENT", true },
                { "cn1_pci_0000_41_00_0", "CUSTOM_OLD=4", false },
                { "cn1_pci_0000_41_00_0", "", false },
                { "cn1_pci_0000_41_00_0", "VGPU=4 +OWNER_CYBORG", false },
                { "cn1_mtty_mtty", "+OWNER_COMPUTE_AGENT", false },
                { "cn1_NUMA0", "VCPU=4 +OWNER_COMPUTE_AGENT", false },
                { "cn1_amd_sev", "MEM_ENCRYPTION_CONTEXT=4 +OWNER_COMPUTE_AGENT", false },
                { "cn1_0000:81:00.0", "CUSTOM_PCI_8086_1572=4 +OWNER_COMPUTE_AGENT", false },
                { "cn1:Open vSwitch agent", "+OWNER_COMPUTE_AGENT", false },
                { "cn2_pci_0000_41_00_0", "VGPU=4 +OWNER_COMPUTE_AGENT", false },
                { "cn10_pci_0000_41_00_0", "VGPU=4 +OWNER_COMPUTE_AGENT", false },
        };
        HostMdevType types[] = { MDEV_TYPE("B", NULL, "CUSTOM_A", 0) };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Provider *root;
                const Provider *child;
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root), *before = NULL;
                HostConfig config = config_make(types, 1);
                Uuid uuid = fixture_put(tree, root, cases[i].name, cases[i].words)->uuid;

                assert_int_equal(provider_tree_copy(&before, tree), 0);
                host_update(&config, "", tree, NULL, DRIVER_UPDATED, NULL);
                child = provider_tree_find(tree, &uuid);
                if (!child != cases[i].gone)
                        fail_msg("case %zu: %s", i, cases[i].name);
                if (child)
                        assert_true(provider_inventories_equal(child,
                                                               provider_tree_find(before, &uuid)));
        }
}

/* A total of 0 removes the provider, too, but not providers that other writers have below it. */
static void test_empty_gpu_with_foreign_child(void **state)
{
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        HostConfig config = config_make(type_a, 1);
        Provider *gpu;

        host_update(&config, TWO_GPUS, tree, NULL, DRIVER_UPDATED, NULL);
        gpu = provider_tree_find_name(tree, "cn1_pci_0000_41_00_0");
        fixture_put(tree, gpu, "somebody's", "");
        host_update(&config, "'devices': [" GPU("0", "0") ", " GPU("1", "0") "]", tree, NULL,
                    DRIVER_UPDATED, NULL);
        assert_int_equal(tree->n_providers, 3);
        assert_non_null(provider_tree_find_name(tree, "somebody's"));
        assert_int_equal(gpu->n_inventories, 0);
        assert_null(provider_tree_find_name(tree, "cn1_pci_0000_41_01_0"));
}

/* Sharing providers and children of other services never belong to the driver, whatever their
 * name. */
static void test_foreign_providers_are_not_changed(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL), *before = NULL;
        HostConfig config = config_make(type_a, 1);

        fixture_put(tree, NULL, "cn1_pci_0000_99_00_0", "VGPU=4");
        assert_int_equal(provider_tree_copy(&before, tree), 0);
        host_update(&config, "", tree, NULL, DRIVER_UPDATED, NULL);
        assert_non_null(provider_tree_find_name(tree, "cn1_pci_0000_99_00_0"));

        /* A device of the driver cannot have this name then. */
        host_update(&config,
                    "'devices': [{'name': 'pci_0000_99_00_0', 'address': '0000:99:00.0',"
                    " 'mdev_types': [{'id': 'A', 'available_instances': 1}]}]",
                    before, NULL, DRIVER_UPDATED_IN_PART, "is not below cn1");
}

static void test_root_missing(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new("");
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        HostConfig config = config_make(NULL, 0);
        Error error = ERROR_NULL;

        assert_int_equal(provider_update(&config, host, NULL, tree, "cn2", NULL, &error), -ENOENT);
        assert_true(error.text[0] != '\0');
        fixture_put(tree, root, "cn2", "");
        assert_int_equal(provider_update(&config, host, NULL, tree, "cn2", NULL, NULL), -ENOENT);
}

static void test_name_too_long(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        HostConfig config = config_make(type_a, 1);
        char name[1001], host[1200];

        memset(name, 'x', 1000);
        name[1000] = '\0';
        snprintf(
                host, sizeof(host),
                "'devices': [{'name': '%s', 'mdev_types': [{'id': 'A', 'available_instances': 1}]}]",
                name);
        host_update(&config, host, tree, NULL, DRIVER_UPDATED_IN_PART, "1 to 200 characters");
}

/* Reshape (C5.1) */

static const Uuid guest = { UUID_GUEST }, guest_2 = { UUID_GUEST_2 };

typedef struct Held {
        Uuid consumer;
        uint64_t amount; /* VGPU on the root */
} Held;

/* Makes a tree of Nova before Stein, and the allocations on its root. */
static void make_old_shape(const Held *held, size_t n_held, ProviderTree **ret_tree,
                           Allocations **ret_allocations)
{
        Provider *root;
        ProviderTree *tree = tree_new(&root);
        Allocations *allocations = NULL;

        fixture_give(root, "VGPU=30");
        assert_int_equal(allocations_new(&allocations), 0);
        for (size_t i = 0; i < n_held; i++) {
                fixture_hold(&allocations, held[i].consumer, root->uuid, "VGPU", held[i].amount);
                fixture_hold(&allocations, held[i].consumer, root->uuid, "VCPU", 2);
                fixture_hold(&allocations, held[i].consumer, (Uuid){ UUID_FOREIGN }, "VGPU", 7);
        }
        *ret_tree = tree;
        *ret_allocations = allocations;
}

/* Returns the amount that the consumer has on the provider with this name. */
static uint64_t held_on(const Allocations *allocations, Uuid uuid, const ProviderTree *tree,
                        const char *name, const char *resource_class)
{
        const Consumer *consumer = allocations_find(allocations, &uuid);
        const Provider *provider = provider_tree_find_name(tree, name);
        const Resources *resources = provider ? consumer_find(consumer, &provider->uuid) : NULL;

        return resources ? resources_get(resources, resource_class) : 0;
}

#define OLD_HOST                                                                              \
        TWO_GPUS ", 'mdevs': [" MDEV(UUID_MDEV_1, "0") ", " MDEV(UUID_MDEV_2, "1") ", " MDEV( \
                UUID_MDEV_3, "1") "]"

static void test_reshape_needed(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL, *before = NULL;
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        HostConfig config = config_make(type_a, 1);

        make_old_shape(NULL, 0, &tree, &allocations);
        assert_int_equal(provider_tree_copy(&before, tree), 0);
        host_update(&config, TWO_GPUS, tree, NULL, DRIVER_RESHAPE_NEEDED, NULL);
        assert_true(provider_tree_equal(tree, before));

        /* no consumer has any: nothing moves, and the shape is new */
        host_update(&config, TWO_GPUS, tree, allocations, DRIVER_UPDATED, NULL);
        assert_null(provider_find_inventory(tree->providers[0], "VGPU"));
        assert_int_equal(tree->n_providers, 3);
        host_update(&config, TWO_GPUS, tree, NULL, DRIVER_UPDATED, NULL);
}

/* Without a GPU the root's VGPU is removed, as in Nova. */
static void test_no_gpus_no_reshape(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        HostConfig config = config_make(type_a, 1);

        make_old_shape(NULL, 0, &tree, &allocations);
        host_update(&config, "'online_cpus': '0'", tree, NULL, DRIVER_UPDATED, NULL);
        assert_null(provider_find_inventory(tree->providers[0], "VGPU"));
}

static void test_reshape(void **state)
{
        static const Held held[] = { { { UUID_GUEST }, 1 }, { { UUID_GUEST_2 }, 2 } };
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        HostConfig config = config_make(type_a, 1);
        const Uuid other = { UUID_FOREIGN };

        make_old_shape(held, ARRAY_SIZE(held), &tree, &allocations);
        host_update(&config,
                    OLD_HOST ", 'domains': [" DOMAIN(UUID_GUEST, "'" UUID_MDEV_2 "'") ", " DOMAIN(
                            UUID_GUEST_2, "'" UUID_MDEV_1 "', '" UUID_MDEV_3 "'") "]",
                    tree, allocations, DRIVER_UPDATED, NULL);

        assert_int_equal(held_on(allocations, guest, tree, "cn1", "VGPU"), 0);
        assert_int_equal(held_on(allocations, guest, tree, "cn1", "VCPU"), 2);
        assert_int_equal(held_on(allocations, guest, tree, "cn1_pci_0000_41_01_0", "VGPU"), 1);
        assert_int_equal(held_on(allocations, guest_2, tree, "cn1_pci_0000_41_00_0", "VGPU"), 1);
        assert_int_equal(held_on(allocations, guest_2, tree, "cn1_pci_0000_41_01_0", "VGPU"), 1);
        /* G2.14: allocations on another host's provider stay */
        assert_int_equal(
                resources_get(consumer_find(allocations_find(allocations, &guest), &other), "VGPU"),
                7);
        expect_inventory(provider_tree_find_name(tree, "cn1_pci_0000_41_01_0"), "VGPU", 18, 0, 1.0);
        assert_null(provider_find_inventory(tree->providers[0], "VGPU"));
}

/* The mdevs of one guest can use all of a card. */
static void test_reshape_of_a_guest_that_has_a_whole_card(void **state)
{
        static const Held held[] = { { { UUID_GUEST }, 3 } };
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        HostConfig config = config_make(type_a, 1);

        make_old_shape(held, ARRAY_SIZE(held), &tree, &allocations);
        host_update(
                &config,
                "'devices': [" GPU("0", "0") "], 'mdevs': [" MDEV(UUID_MDEV_1, "0") ", " MDEV(
                        UUID_MDEV_2, "0") ", " MDEV(UUID_MDEV_3,
                                                    "0") "], 'domains': [" DOMAIN(UUID_GUEST,
                                                                                  "'" UUID_MDEV_1
                                                                                  "', '" UUID_MDEV_2
                                                                                  "', '" UUID_MDEV_3
                                                                                  "'") "]",
                tree, allocations, DRIVER_UPDATED, NULL);
        assert_int_equal(held_on(allocations, guest, tree, "cn1_pci_0000_41_00_0", "VGPU"), 3);
        expect_inventory(provider_tree_find_name(tree, "cn1_pci_0000_41_00_0"), "VGPU", 3, 0, 1.0);
}

static void test_reshape_table(void **state)
{
        static HostMdevType custom[] = { MDEV_TYPE("A", NULL, "CUSTOM_A", 0) };
        static const struct {
                const char *about, *host;
                HostMdevType *types;
                int r;
                const char *words;
        } cases[] = {
                { "C5.1: amounts differ, real use wins",
                  OLD_HOST
                  ", 'domains': [" DOMAIN(UUID_GUEST, "'" UUID_MDEV_1 "', '" UUID_MDEV_2 "'") "]",
                  type_a, DRIVER_UPDATED, NULL },
                { "no domain", OLD_HOST, type_a, DRIVER_UPDATED_IN_PART,
                  "it has no domain on this host" },
                { "no mdev", OLD_HOST ", 'domains': [" DOMAIN(UUID_GUEST, "") "]", type_a,
                  DRIVER_UPDATED_IN_PART, "its domain has no mediated device" },
                { "an mdev that is not there",
                  TWO_GPUS ", 'domains': [" DOMAIN(UUID_GUEST, "'" UUID_MDEV_1 "'") "]", type_a,
                  DRIVER_UPDATED_IN_PART, UUID_MDEV_1 " is not on this host" },
                { "an mdev of a device that offers none",
                  "'devices': [" GPU("1", "16") "], 'mdevs': [" MDEV(
                          UUID_MDEV_1, "0") "], 'domains': [" DOMAIN(UUID_GUEST,
                                                                     "'" UUID_MDEV_1 "'") "]",
                  type_a, DRIVER_UPDATED_IN_PART,
                  "pci_0000_41_00_0, which offers no mediated devices" },
                { "another class",
                  OLD_HOST
                  ", 'domains': [" DOMAIN(UUID_GUEST, "'" UUID_MDEV_1 "', '" UUID_MDEV_2 "'") "]",
                  custom, DRIVER_UPDATED, NULL },
        };
        static const Held held[] = { { { UUID_GUEST }, 1 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
                _cleanup_(allocations_freep) Allocations *allocations = NULL;
                HostConfig config = config_make(cases[i].types, 1);

                make_old_shape(held, ARRAY_SIZE(held), &tree, &allocations);
                host_update(&config, cases[i].host, tree, allocations, cases[i].r, cases[i].words);
                if (cases[i].r != DRIVER_UPDATED) {
                        assert_int_equal(held_on(allocations, guest, tree, "cn1", "VGPU"), 1);
                        assert_non_null(provider_find_inventory(tree->providers[0], "VGPU"));
                        assert_int_equal(tree->n_providers, 1);
                        continue;
                }
                assert_int_equal(held_on(allocations, guest, tree, "cn1_pci_0000_41_00_0",
                                         cases[i].types[0].mdev_class),
                                 1);
                assert_int_equal(held_on(allocations, guest, tree, "cn1_pci_0000_41_01_0",
                                         cases[i].types[0].mdev_class),
                                 1);
        }
}

TEST_MAIN(test_disk_of_unknown_size, test_root_table, test_reserved_too_much, test_ratio_table,
          test_root_ownership_c10, test_no_owner_trait, test_gpus, test_adopt,
          test_class_by_type_g2_6, test_gone_g2_5, test_empty_gpu_with_foreign_child,
          test_foreign_providers_are_not_changed, test_root_missing, test_name_too_long,
          test_reshape_needed, test_no_gpus_no_reshape, test_reshape,
          test_reshape_of_a_guest_that_has_a_whole_card, test_reshape_table)
