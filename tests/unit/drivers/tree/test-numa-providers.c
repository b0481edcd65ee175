/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests [compute] numa_in_placement through whole updates: facts C9 and G1, which Nova does not
 * have. */

#include "drivers/tree/numa-providers.h"
#include "tests/fixtures/host.h"

#define UUID_GUEST "bbbbbbbb-0000-4000-8000-000000000001"

#define CPU(n)              "{'id': " n "}"
#define CELL(id, kib, cpus) CELL_PAGES(id, kib, cpus, "")
#define CELL_PAGES(id, kib, cpus, pages) \
        "{'id': " id ", 'memory_kib': " kib ", 'cpus': [" cpus "], 'pages': [" pages "]}"
#define PAGES(size, count) "{'size_kib': " size ", 'count': " count "}"
#define HOST(online, kib, cells)                                                   \
        "'online_cpus': '" online "', 'memory_kib': " kib ", 'disk_total_bytes': " \
        "107374182400, 'cells': [" cells "]"

#define TWO_CELLS                                                                            \
        HOST("0-5", "12582912",                                                              \
             CELL("0", "8388608", CPU("0") "," CPU("1") "," CPU("2") "," CPU("3")) "," CELL( \
                     "1", "4194304", CPU("4") "," CPU("5")))
#define GPU(slot, node)                                                         \
        "{'name': 'pci_0000_41_0" slot "_0', 'address': '0000:41:0" slot ".0'," \
        " 'numa_node': " node ", 'mdev_types': [{'id': 'A', 'available_instances': 4}]}"
#define CARD(node)                                                                    \
        "{'name': 'pci_0000_8a_00_0', 'address': '0000:8a:00.0', 'vendor_id': 32902," \
        " 'product_id': 5489, 'numa_node': " node "}"

static HostMdevType type_a[] = { MDEV_TYPE("A", NULL, "VGPU", 0) };

static HostConfig numa_config(void)
{
        HostConfig config = config_make(NULL, 0);

        config.numa_in_placement = true;
        return config;
}

static Provider *find(const ProviderTree *tree, const char *name)
{
        Provider *provider = provider_tree_find_name(tree, name);

        if (!provider)
                fail_msg("no provider %s", name);
        return provider;
}

static const char *parent_name(const ProviderTree *tree, const char *name)
{
        return provider_tree_find(tree, &find(tree, name)->parent)->name;
}

/* Compares "CLASS=TOTAL/RESERVED …" of one provider, sorted by class; "" without inventories. */
static void expect(const ProviderTree *tree, const char *name, const char *expected)
{
        const Provider *provider = find(tree, name);
        char text[1024] = "";
        size_t n = 0;

        for (size_t i = 0; i < provider->n_inventories; i++) {
                const Inventory *record = &provider->inventories[i].inventory;

                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%llu/%llu", n ? " " : "",
                                      provider->inventories[i].resource_class,
                                      (unsigned long long)record->total,
                                      (unsigned long long)record->reserved);
                if (strcmp(provider->inventories[i].resource_class, "CUSTOM_X") != 0)
                        assert_int_equal(record->max_unit, record->total);
        }
        if (strcmp(text, expected) != 0)
                fail_msg("%s: %s, expected %s", name, text, expected);
}

/* Compares "NUMA0 CLASS=TOTAL/RESERVED …; NUMA1 …". Other cells must not exist. */
static void expect_cells(const ProviderTree *tree, const char *expected)
{
        _cleanup_free_ char *copy = strdup(expected);
        char *rest = copy, *cell, name[32];
        size_t n = 1;

        assert_non_null(copy);
        for (; (cell = strtok_r(rest, ";", &rest)); n++) {
                cell += *cell == ' ';
                snprintf(name, sizeof(name), "cn1_%.*s", (int)strcspn(cell, " "), cell);
                expect(tree, name, cell + strcspn(cell, " ") + 1);
        }
        assert_int_equal(tree->n_providers, n);
}

static void test_two_cells(void **state)
{
        Provider *root, *cell;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root), *again = NULL;
        HostConfig config = numa_config();
        Uuid uuid = uuid_make_child(&root->uuid, "cn1_NUMA1");

        config.reserved_host_cpus = 3;
        config.reserved_host_memory_mb = 512;
        config.reserved_host_disk_mb = 1024;
        host_update(&config, TWO_CELLS, tree, NULL, DRIVER_UPDATED, NULL);
        expect(tree, "cn1", "DISK_GB=100/1");
        expect_cells(tree, "NUMA0 MEMORY_MB=8192/341 VCPU=4/2; NUMA1 MEMORY_MB=4096/171 VCPU=2/1");
        cell = find(tree, "cn1_NUMA1");
        assert_true(uuid_equal(&cell->uuid, &uuid));
        assert_true(uuid_equal(&cell->parent, &root->uuid));
        assert_int_equal(cell->traits.n_items, 2);
        assert_true(string_set_contains(&cell->traits, "HW_NUMA_ROOT"));
        assert_true(string_set_contains(&cell->traits, "OWNER_COMPUTE_AGENT"));
        assert_true(provider_find_inventory(cell, "VCPU")->allocation_ratio == 4.0);
        assert_false(string_set_contains(&root->traits, "HW_NUMA_ROOT"));

        assert_int_equal(provider_tree_copy(&again, tree), 0);
        host_update(&config, TWO_CELLS, again, NULL, DRIVER_UPDATED, NULL);
        assert_true(provider_tree_equal(tree, again));
}

/* Uneven hosts, and the amounts of each cell */
static void test_uneven_hosts(void **state)
{
        static const struct {
                const char *host, *shared, *dedicated;
                uint64_t reserved_mb, files;
                const char *cells;
        } cases[] = {
                /* ids with gaps, a cell without CPUs, one without memory */
                { HOST("0-1,8", "3145728",
                       CELL("0", "2097152", CPU("0") "," CPU("1")) "," CELL(
                               "3", "1048576", "") "," CELL("250", "0", CPU("8"))),
                  NULL, NULL, 301, 0,
                  "NUMA0 MEMORY_MB=2048/301 VCPU=2/0; NUMA3 MEMORY_MB=1024/1024; "
                  "NUMA250 VCPU=1/1" },
                /* memory that is not a multiple of a MiB: the sum stays */
                { HOST("0-2", "3072",
                       CELL("0", "1000", CPU("0")) "," CELL("1", "1072", CPU("1")) "," CELL(
                               "2", "1000", CPU("2"))),
                  NULL, NULL, 3, 0,
                  "NUMA0 VCPU=1/0; NUMA1 MEMORY_MB=2/2 VCPU=1/0; NUMA2 MEMORY_MB=1/1 VCPU=1/0" },
                /* shared and dedicated CPUs, unevenly */
                { HOST("0-3", "2097152",
                       CELL("0", "1048576", CPU("0") "," CPU("1")) "," CELL("1", "1048576",
                                                                            CPU("2") "," CPU("3"))),
                  "0", "2-3", 0, 0,
                  "NUMA0 MEMORY_MB=1024/0 VCPU=1/0; NUMA1 MEMORY_MB=1024/0 PCPU=2/0" },
                /* memory in files, by the memory of the cells */
                { HOST("0-1", "3145728",
                       CELL("0", "1048576", CPU("0")) "," CELL("1", "2097152", CPU("1"))),
                  NULL, NULL, 10, 10001,
                  "NUMA0 MEMORY_MB=3333/3 VCPU=1/0; NUMA1 MEMORY_MB=6668/7 VCPU=1/0" },
                /* an offline CPU is in a cell but in no inventory; two page sizes, of which cell
                 * 1 lacks one (G4.7) */
                { HOST("0", "2097152",
                       CELL_PAGES("0", "1048576", CPU("0") "," CPU("1"),
                                  PAGES("4", "250000") "," PAGES("2048", "64") "," PAGES(
                                          "1048576",
                                          "2")) "," CELL_PAGES("1", "1048576", "",
                                                               PAGES("4", "250000") "," PAGES(
                                                                       "2048", "0"))),
                  NULL, NULL, 0, 0,
                  "NUMA0 CUSTOM_HUGEPAGES_1G=2/0 CUSTOM_HUGEPAGES_2M=64/3 MEMORY_MB=1024/0 VCPU=1/0; "
                  "NUMA1 MEMORY_MB=1024/1024" },
        };
        char *pages[] = { TEXT("node:0,size:2MB,count:3"), TEXT("node:7,size:2MB,count:3"), NULL };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                HostConfig config = numa_config();

                config.cpu_shared_set = cases[i].shared;
                config.cpu_dedicated_set = cases[i].dedicated;
                config.reserved_host_memory_mb = cases[i].reserved_mb;
                config.file_backed_memory = cases[i].files;
                config.reserved_huge_pages = pages;
                host_update(&config, cases[i].host, tree, NULL, DRIVER_UPDATED, NULL);
                expect_cells(tree, cases[i].cells);
                expect(tree, "cn1", "DISK_GB=100/0");
        }
}

#define FOUR_CPUS CPU("0") "," CPU("1") "," CPU("2") "," CPU("3")
#define PINNED_HOST(online, kib)                          \
        "'present_cpus': '0-7', " HOST(                   \
                online, "12582912",                       \
                CELL("0", "8388608", FOUR_CPUS) "," CELL( \
                        "1", kib, CPU("4") "," CPU("5") "," CPU("6") "," CPU("7")))

/* Cells in which guests cannot have both CPUs and memory: all amounts are reserved */
static void test_cells_that_lack_cpus_or_memory_are_reserved(void **state)
{
        static const struct {
                const char *host, *shared, *dedicated;
                bool power;
                const char *words; /* text of a problem */
                const char *cells;
        } cases[] = {
                { PINNED_HOST("0-7", "4194304"), "0,4", "1-3,5-7", false, NULL,
                  "NUMA0 MEMORY_MB=8192/8 PCPU=3/0 VCPU=1/0; "
                  "NUMA1 MEMORY_MB=4096/4 PCPU=3/0 VCPU=1/0" },
                /* CPUs without memory */
                { PINNED_HOST("0-7", "0"), "0,4", "1-3,5-7", false, NULL,
                  "NUMA0 MEMORY_MB=8192/12 PCPU=3/0 VCPU=1/0; NUMA1 PCPU=3/3 VCPU=1/1" },
                /* all dedicated CPUs of one cell are offline; then all CPUs of that cell */
                { PINNED_HOST("0-4", "4194304"), "0,4", "1-3,5-7", false,
                  "cpu_dedicated_set names CPU 5-7, which is offline",
                  "NUMA0 MEMORY_MB=8192/8 PCPU=3/0 VCPU=1/0; "
                  "NUMA1 MEMORY_MB=4096/4 PCPU=1/1 VCPU=1/0" },
                { PINNED_HOST("0-3", "4194304"), "0,4", "1-3,5-7", false,
                  "cpu_dedicated_set names CPU 5-7, which is offline",
                  "NUMA0 MEMORY_MB=8192/12 PCPU=3/0 VCPU=1/0; "
                  "NUMA1 MEMORY_MB=4096/4096 PCPU=1/1 VCPU=1/1" },
                /* Nova has powered them down: guests can have them */
                { PINNED_HOST("0", "4194304"), "0", "1-7", true, NULL,
                  "NUMA0 MEMORY_MB=8192/8 PCPU=3/0 VCPU=1/0; NUMA1 MEMORY_MB=4096/4 PCPU=4/0" },
                { PINNED_HOST("0-3", "4194304"), "0-3", "4-7", false,
                  "only offline CPUs (4-7), so no PCPU is offered",
                  "NUMA0 MEMORY_MB=8192/12 VCPU=4/0; NUMA1 MEMORY_MB=4096/4096 PCPU=1/1" },
                /* more reserved CPUs than the offered cell has */
                { PINNED_HOST("0-7", "0"), NULL, NULL, false, NULL,
                  "NUMA0 MEMORY_MB=8192/12 VCPU=4/4; NUMA1 VCPU=4/4" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                HostConfig config = numa_config();

                config.cpu_shared_set = cases[i].shared;
                config.cpu_dedicated_set = cases[i].dedicated;
                config.cpu_power_management = cases[i].power;
                config.reserved_host_memory_mb = 12;
                config.reserved_host_cpus = cases[i].shared ? 0 : 5;
                host_update(&config, cases[i].host, tree, NULL,
                            cases[i].words ? DRIVER_UPDATED_IN_PART : DRIVER_UPDATED,
                            cases[i].words);
                expect_cells(tree, cases[i].cells);
        }
}

/* The memory of a GPU, which Linux lists as a cell. Guests cannot use it, and it gets no part of
 * the host's reservation or of memory in files. */
static void test_a_cell_without_cpus(void **state)
{
        static const struct {
                uint64_t files;
                const char *cells;
        } cases[] = {
                { 0, "NUMA0 MEMORY_MB=1024/10 VCPU=1/0; "
                     "NUMA1 CUSTOM_HUGEPAGES_2M=9/9 MEMORY_MB=2048/2048" },
                { 10001, "NUMA0 MEMORY_MB=10001/10 VCPU=1/0; NUMA1 CUSTOM_HUGEPAGES_2M=9/9" },
        };
        static const char host[] = HOST("0", "3145728",
                                        CELL("0", "1048576", CPU("0")) "," CELL_PAGES(
                                                "1", "2097152", "", PAGES("2048", "9")));

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                HostConfig config = numa_config();

                config.reserved_host_memory_mb = 10;
                config.file_backed_memory = cases[i].files;
                host_update(&config, host, tree, NULL, DRIVER_UPDATED, NULL);
                expect_cells(tree, cases[i].cells);
        }
}

static void test_refused_in_words(void **state)
{
        static const struct {
                const char *host, *words, *advice;
        } cases[] = {
                { "'online_cpus': '0'", "reports no NUMA cells", "Set it to false" },
                { HOST("0-1", "1024",
                       CELL("0", "512", CPU("0") "," CPU("1")) "," CELL("2", "512", CPU("1"))),
                  "CPU 1 in cell 0 and in cell 2", "Set it to false" },
                { HOST("0", "1024", CELL("0", "512", CPU("0") "," CPU("0"))),
                  "CPU 0 in cell 0 and in cell 0", "Set it to false" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                HostConfig config = numa_config();

                host_update(&config, cases[i].host, tree, NULL, -EINVAL, cases[i].words);
                host_update(&config, cases[i].host, tree, NULL, -EINVAL, cases[i].advice);
                /* the same host is valid without cells */
                config.numa_in_placement = false;
                host_update(&config, cases[i].host, tree, NULL, DRIVER_UPDATED, NULL);
        }
}

/* A CPU without a cell, and pages that the kernel could not allocate. All other parts are
 * reported. */
static void test_a_bad_part_costs_itself(void **state)
{
        static const struct {
                const char *host, *words, *expected;
        } cases[] = {
                { HOST("0-4", "1024", CELL("0", "1024", CPU("0"))),
                  "CPU 1 of the shared CPUs is in no cell", "MEMORY_MB=1/0 VCPU=1/0" },
                { HOST("0", "1024", CELL_PAGES("0", "1024", CPU("0"), PAGES("2048", "2"))),
                  "reserves 3 pages of 2048 KiB in cell 0, but the cell has only 2",
                  "CUSTOM_HUGEPAGES_2M=2/2 MEMORY_MB=1/0 VCPU=1/0" },
                { HOST("0", "1024", CELL("0", "0", CPU("0"))),
                  "reports the memory of no cell, so MEMORY_MB is not reported", "VCPU=1/0" },
        };
        char *pages[] = { TEXT("node:0,size:2MB,count:3"), NULL };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                HostConfig config = numa_config();

                config.reserved_huge_pages = pages;
                host_update(&config, cases[i].host, tree, NULL, DRIVER_UPDATED_IN_PART,
                            cases[i].words);
                expect(tree, "cn1_NUMA0", cases[i].expected);
        }
}

/* VCPU at the root counts a shared CPU without a cell. PCPU is in cells only. */
static void test_cpus_without_a_cell_at_the_root(void **state)
{
        static const char host[] = HOST("0-4", "1024", CELL("0", "1024", CPU("0")));
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        HostConfig config = numa_config();

        config.numa_in_placement = HOST_NUMA_ROOT;
        host_update(&config, host, tree, NULL, DRIVER_UPDATED, NULL);
        config.cpu_dedicated_set = "1";
        host_update(&config, host, tree, NULL, DRIVER_UPDATED_IN_PART,
                    "numa_in_placement: CPU 1 of the dedicated CPUs is in no cell");
}

static void test_name_taken_or_too_long(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        HostConfig config = numa_config();

        fixture_put(tree, NULL, "cn1_NUMA1", "");
        host_update(&config, TWO_CELLS, tree, NULL, DRIVER_UPDATED_IN_PART, "is not below cn1");
}

/* A GPU is below the cell to which it is attached; one without a cell is below the root */
static void test_devices(void **state)
{
        static const struct {
                int node;
                const char *parent;
        } cases[] = { { 0, "cn1_NUMA0" }, { 1, "cn1_NUMA1" }, { 2, "cn1" }, { -1, "cn1" } };
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        HostConfig config = numa_config();

        config.mdev_types = type_a;
        config.n_mdev_types = 1;
        host_update(&config,
                    TWO_CELLS
                    ", 'devices': [" GPU("0", "1") "," GPU("1", "-1") "," GPU("2", "0") "]",
                    tree, NULL, DRIVER_UPDATED, NULL);
        assert_true(uuid_equal(&find(tree, "cn1_pci_0000_41_00_0")->parent,
                               &find(tree, "cn1_NUMA1")->uuid));
        assert_true(uuid_equal(&find(tree, "cn1_pci_0000_41_01_0")->parent, &root->uuid));
        assert_true(uuid_equal(&find(tree, "cn1_pci_0000_41_02_0")->parent,
                               &find(tree, "cn1_NUMA0")->uuid));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_string_equal(numa_parent(&config, tree, root, cases[i].node)->name,
                                    cases[i].parent);
        config.numa_in_placement = false;
        assert_ptr_equal(numa_parent(&config, tree, root, 0), root);
}

/* A cell that is gone is removed after its GPU has moved. One with a foreign child stays without
 * inventories */
static void test_gone_cells(void **state)
{
        Provider *cell;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        _cleanup_(allocations_freep) Allocations *none = NULL;
        HostConfig config = numa_config();

        assert_int_equal(allocations_new(&none), 0);
        host_update(&config, TWO_CELLS, tree, NULL, DRIVER_UPDATED, NULL);
        host_update(&config, HOST("0", "1048576", CELL("1", "1048576", CPU("0"))), tree, none,
                    DRIVER_UPDATED, NULL);
        assert_int_equal(tree->n_providers, 2);
        assert_null(provider_tree_find_name(tree, "cn1_NUMA0"));

        cell = find(tree, "cn1_NUMA1");
        fixture_put(tree, cell, "stranger", "");
        host_update(&config, HOST("0", "1048576", CELL("0", "1048576", CPU("0"))), tree, none,
                    DRIVER_UPDATED, NULL);
        assert_int_equal(tree->n_providers, 4);
        expect(tree, "cn1_NUMA1", "");
        assert_false(string_set_contains(&cell->traits, "HW_NUMA_ROOT"));
}

/* C10: foreign providers with similar names stay */
static void test_foreign_providers_c10(void **state)
{
        static const char *const names[] = { "cn1_NUMA",   "cn1_NUMA0x",          "cn1_NUMAx",
                                             "cn10_NUMA0", "cn1_NUMA99999999999", "cn1_NUMA7" };
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        HostConfig config = config_make(NULL, 0);

        /* the last one has a valid name but not the trait */
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                fixture_put(tree, root, names[i],
                            i + 1 < ARRAY_SIZE(names) ? "CUSTOM_X=5 +HW_NUMA_ROOT" : "CUSTOM_X=5");
        host_update(&config, TWO_CELLS, tree, NULL, DRIVER_UPDATED, NULL);
        assert_int_equal(tree->n_providers, 1 + ARRAY_SIZE(names));
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                expect(tree, names[i], "CUSTOM_X=5/0");
}

/* From flat to cells and back needs a reshape, which moves nothing without allocations */
static void test_switch(void **state)
{
        static const char host[] = TWO_CELLS ", 'devices': [" GPU("0", "1") "]";
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root), *before = NULL;
        _cleanup_(allocations_freep) Allocations *none = NULL, *disk = NULL;
        HostConfig flat = config_make(type_a, 1), cells = config_make(type_a, 1);
        Uuid gpu;

        cells.numa_in_placement = true;
        assert_int_equal(allocations_new(&none), 0);
        host_update(&flat, host, tree, NULL, DRIVER_UPDATED, NULL);
        gpu = find(tree, "cn1_pci_0000_41_00_0")->uuid;
        /* an operator's ratio is kept */
        provider_find_inventory(root, "VCPU")->allocation_ratio = 7.0;

        assert_int_equal(provider_tree_copy(&before, tree), 0);
        host_update(&cells, host, tree, NULL, DRIVER_RESHAPE_NEEDED, NULL);
        assert_true(provider_tree_equal(tree, before));
        root = find(tree, "cn1");
        fixture_hold(&disk, (Uuid){ UUID_GUEST }, root->uuid, "DISK_GB", 1);
        host_update(&cells, host, tree, disk, DRIVER_UPDATED, NULL);
        expect(tree, "cn1", "DISK_GB=100/0");
        expect(tree, "cn1_NUMA0", "MEMORY_MB=8192/0 VCPU=4/0");
        assert_true(provider_find_inventory(find(tree, "cn1_NUMA1"), "VCPU")->allocation_ratio ==
                    7.0);
        assert_true(uuid_equal(&find(tree, "cn1_pci_0000_41_00_0")->uuid, &gpu));
        assert_true(uuid_equal(&find(tree, "cn1_pci_0000_41_00_0")->parent,
                               &find(tree, "cn1_NUMA1")->uuid));
        host_update(&cells, host, tree, NULL, DRIVER_UPDATED, NULL);

        host_update(&flat, host, tree, NULL, DRIVER_RESHAPE_NEEDED, NULL);
        host_update(&flat, host, tree, none, DRIVER_UPDATED, NULL);
        root = find(tree, "cn1");
        assert_int_equal(tree->n_providers, 2);
        expect(tree, "cn1", "DISK_GB=100/0 MEMORY_MB=12288/0 VCPU=6/0");
        assert_true(provider_find_inventory(root, "VCPU")->allocation_ratio == 7.0);
        assert_true(uuid_equal(&find(tree, "cn1_pci_0000_41_00_0")->parent, &root->uuid));
}

/* A device in another cell moves with its allocations, which stay the same */
static void test_devices_change_cell(void **state)
{
        static const char before[] = TWO_CELLS ", 'devices': [" GPU("0", "1") "," CARD("0") "]";
        static const char after[] = TWO_CELLS ", 'devices': [" GPU("0", "0") "," CARD("1") "]";
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        HostConfig config = numa_config();

        config.mdev_types = type_a;
        config.n_mdev_types = 1;
        config.report_in_placement = true;
        assert_int_equal(specs_add(&config.pci_specs, "{'vendor_id': '8086'}", NULL), 0);
        host_update(&config, before, tree, NULL, DRIVER_UPDATED, NULL);
        assert_string_equal(parent_name(tree, "cn1_pci_0000_41_00_0"), "cn1_NUMA1");
        assert_string_equal(parent_name(tree, "cn1_0000:8A:00.0"), "cn1_NUMA0");
        host_update(&config, after, tree, NULL, DRIVER_UPDATED, NULL);
        assert_string_equal(parent_name(tree, "cn1_pci_0000_41_00_0"), "cn1_NUMA0");
        assert_string_equal(parent_name(tree, "cn1_0000:8A:00.0"), "cn1_NUMA1");
        pci_specs_done(&config.pci_specs);
}

/* The sums over the cells are those of the root, for all kinds of cells */
static void test_sums(void **state)
{
        static const uint64_t kibs[] = { 0, 1, 1023, 1024, 1025, 999999, 16777216, 33554431 };

        for (size_t i = 0; i < ARRAY_SIZE(kibs); i++)
                for (uint64_t reserved = 0; reserved < 2000; reserved += 97) {
                        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                        HostConfig config = numa_config();
                        uint64_t total = 0, kept = 0, all_kib = kibs[i] + 4000000 + 1500;
                        char host[1024];

                        config.reserved_host_memory_mb = reserved;
                        snprintf(host, sizeof(host),
                                 "'online_cpus': '0-2', 'memory_kib': %llu, 'cells': ["
                                 "{'id': 0, 'memory_kib': %llu, 'cpus': [{'id': 0}]},"
                                 "{'id': 1, 'memory_kib': 4000000, 'cpus': [{'id': 1}]},"
                                 "{'id': 2, 'memory_kib': 1500, 'cpus': [{'id': 2}]}]",
                                 (unsigned long long)all_kib, (unsigned long long)kibs[i]);
                        host_update(&config, host, tree, NULL, DRIVER_UPDATED, NULL);
                        for (size_t j = 0; j < tree->n_providers; j++) {
                                const Inventory *record =
                                        provider_find_inventory(tree->providers[j], "MEMORY_MB");

                                total += record ? record->total : 0;
                                kept += record ? record->reserved : 0;
                        }
                        assert_int_equal(total, all_kib / 1024);
                        /* a cell below one MiB has no inventory for a reservation */
                        assert_true(kept <= reserved && kept + 1 >= reserved);
                }
}

TEST_MAIN(test_two_cells, test_uneven_hosts, test_cells_that_lack_cpus_or_memory_are_reserved,
          test_a_cell_without_cpus, test_refused_in_words, test_a_bad_part_costs_itself,
          test_cpus_without_a_cell_at_the_root, test_name_taken_or_too_long, test_devices,
          test_gone_cells, test_foreign_providers_c10, test_switch, test_devices_change_cell,
          test_sums)
