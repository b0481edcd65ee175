/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The provider of a set of four GPUs, as one line of text. Guests, claims and cordons are named by
 * the bus numbers of the GPUs. */
#include "drivers/tree/shape-providers.h"
#include "tests/fixtures/host.h"

#define PCI(address, cell)                                                                    \
        "{'name': '" address "', 'address': '" address "', 'vendor_id': 4318, 'product_id': " \
        "7864, 'is_pci': true, 'numa_node': " cell "}"
#define GPU(bus) PCI("0000:0" bus ":00.0", "0")
#define GPUS     GPU("1") "," GPU("2") "," GPU("3") "," GPU("4")
#define VF                                                                        \
        "{'name': 'vf', 'address': '0000:02:01.0', 'is_pci': true, 'vendor_id': " \
        "4318, 'product_id': 7865, 'physical_function': '0000:02:00.0'}"
#define VGPU                                                                             \
        "{'name': 'vgpu', 'address': '0000:02:02.0', 'is_pci': true, 'vendor_id': 4318," \
        " 'physical_function': '0000:02:00.0', 'is_vgpu_function': true, 'mdev_types': " \
        "[{'id': 'nvidia-35', 'name': 't', 'available_instances': 1}]}"
#define HOST(devices) "'devices': [" devices "]"
#define GUEST(address)                                                                        \
        ", 'domains': [{'uuid': '5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e02', 'state': 'running', " \
        "'pci_addresses': ['" address "']}]"
#define GUEST_WITH_MDEV                                                              \
        ", 'mdevs': [{'uuid': '21111111-2222-4333-8444-555555555555', 'type': 't', " \
        "'parent': '0000:01:00.0'}], 'domains': [{'uuid': "                          \
        "'5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e02', 'state': 'running', 'mdevs': "      \
        "['21111111-2222-4333-8444-555555555555']}]"

static char *members[] = { TEXT("0000:01:00.0"), TEXT("0000:02:00.0"), TEXT("0000:03:00.0"),
                           TEXT("0000:04:00.0"), NULL };
static char *partitions[] = { TEXT("all=1-4"), TEXT("a=1-2"), TEXT("b=3-4"), TEXT("c=1+3"), NULL };

static void make_address(char bus, char ret[PCI_ADDRESS_SIZE])
{
        snprintf(ret, PCI_ADDRESS_SIZE, bus == 'v' ? "0000:02:01.0" : "0000:0%c:00.0", bus);
}

/* Writes "NAME CLASS=total/reserved min max step; …" of all providers but the root. */
static void describe(const ProviderTree *tree, char *text, size_t size)
{
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 1; i < tree->n_providers; i++) {
                const Provider *provider = tree->providers[i];

                n += (size_t)snprintf(text + n, size - n, "%s%s", n ? "; " : "", provider->name);
                for (size_t j = 0; j < provider->n_inventories; j++) {
                        const Inventory *record = &provider->inventories[j].inventory;

                        n += (size_t)snprintf(text + n, size - n, " %s=%d/%d %d %d %d",
                                              provider->inventories[j].resource_class,
                                              (int)record->total, (int)record->reserved,
                                              (int)record->min_unit, (int)record->max_unit,
                                              (int)record->step_size);
                }
        }
}

/* Updates the tree once. claimed and withheld: bus numbers; v is the virtual function. */
static int update(ProviderTree *tree, HostConfig *config, const char *host, const char *claimed,
                  const char *withheld, Error *ret_problem)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new(host);
        _cleanup_(device_facts_done) DeviceFacts known = { 0 };
        TreeUpdate edit = { .config = config,
                            .snapshot = snapshot,
                            .known = &known,
                            .tree = tree,
                            .root = tree->providers[0] };
        char address[PCI_ADDRESS_SIZE];
        int r;

        for (; *claimed; claimed++) {
                make_address(*claimed, address);
                assert_int_equal(device_facts_add_holding(&known, address, ""), 0);
        }
        for (; *withheld; withheld++) {
                make_address(*withheld, address);
                assert_true(string_set_add(&known.withheld, address) >= 0);
        }
        r = shape_providers_update(&edit, NULL);
        *ret_problem = edit.problem;
        return r;
}

static HostConfig config_with(HostShapes *shapes)
{
        HostConfig config = config_make(NULL, 0);
        Error error = ERROR_NULL;

        if (device_set_parse(&shapes->set, "hgx", "CUSTOM_GPU", members, partitions, &error) < 0)
                fail_msg("%s", error.text);
        config.shapes = shapes;
        config.n_shapes = 1;
        config.report_in_placement = true;
        return config;
}

#define NAME "cn1_shapes_hgx CUSTOM_GPU=4/"

static void test_inventory(void **state)
{
        static const struct {
                const char *about, *host, *claimed, *withheld, *tree, *problem;
        } cases[] = {
                { "all is free", HOST(GPUS), "", "", NAME "0 2 4 2", NULL },
                { "a claim has a pair", HOST(GPUS), "12", "", NAME "0 2 2 2", NULL },
                { "no pair fits beside the claims", HOST(GPUS), "13", "", NAME "2 2 2 2", NULL },
                { "claims have all", HOST(GPUS), "1234", "", NAME "0 2 2 2", NULL },
                { "a guest without a claim", HOST(GPUS) GUEST("0000:01:00.0"), "", "",
                  NAME "1 2 2 2", NULL },
                { "a guest with a claim", HOST(GPUS) GUEST("0000:01:00.0"), "12", "",
                  NAME "0 2 2 2", NULL },
                { "a part of a member", HOST(GPUS "," VF) GUEST("0000:02:01.0"), "", "",
                  NAME "1 2 2 2", NULL },
                { "a claim of a part of a member", HOST(GPUS "," VF), "v", "", NAME "1 2 2 2",
                  NULL },
                { "a cordoned member", HOST(GPUS), "", "3", NAME "1 2 2 2", NULL },
                { "a cordoned member of a claim", HOST(GPUS), "34", "3", NAME "0 2 2 2", NULL },
                { "two cordoned members", HOST(GPUS), "", "23", NAME "4 2 2 2", NULL },
                { "a missing member", HOST(GPU("1") "," GPU("2") "," GPU("4")), "", "",
                  NAME "1 2 2 2",
                  "[device_shapes hgx]: 1 of 4 devices are missing, first 0000:03:00.0" },
                { "a missing member of a claim", HOST(GPU("1") "," GPU("2") "," GPU("4")), "34", "",
                  NAME "0 2 2 2",
                  "[device_shapes hgx]: 1 of 4 devices are missing, first 0000:03:00.0" },
                { "all are missing", HOST(""), "", "", NAME "4 2 2 2",
                  "[device_shapes hgx]: 4 of 4 devices are missing, first 0000:01:00.0" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                HostShapes shapes = { 0 };
                HostConfig config = config_with(&shapes);
                Error problem;
                char text[256];

                assert_int_equal(update(tree, &config, cases[i].host, cases[i].claimed,
                                        cases[i].withheld, &problem),
                                 0);
                assert_string_equal(problem.text, cases[i].problem ?: "");
                describe(tree, text, sizeof(text));
                if (strcmp(text, cases[i].tree) != 0)
                        fail_msg("%s: %s", cases[i].about, text);
                device_set_done(&shapes.set);
        }
}

/* A guest has an mdev of the device of both slots. */
static void test_a_part_of_a_device_of_slots(void **state)
{
        static char *slots[] = { TEXT("2"), NULL },
                    *places[] = { TEXT("all=1-2@0000:01:00.0"), TEXT("a=1@0000:02:00.0"),
                                  TEXT("b=2@0000:03:00.0"), NULL };
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        HostShapes shapes = { 0 };
        HostConfig config = config_with(&shapes);
        Error problem;
        char text[256];

        device_set_done(&shapes.set);
        assert_int_equal(
                device_set_parse(&shapes.set, "mig", "CUSTOM_MIG", slots, places, &problem), 0);
        assert_int_equal(update(tree, &config, HOST(GPUS) GUEST_WITH_MDEV, "", "", &problem), 0);
        describe(tree, text, sizeof(text));
        assert_string_equal(text, "cn1_shapes_mig CUSTOM_MIG=2/2 1 1 1");
        device_set_done(&shapes.set);
}

static void test_contradictions_withhold_the_set(void **state)
{
        HostMdevType type = MDEV_TYPE("nvidia-35", NULL, "VGPU", 0);
        static const char mdevs[] =
                HOST("{'name': 'a', 'address': '0000:01:00.0', 'is_pci': true, 'mdev_types': "
                     "[{'id': 'nvidia-35', 'name': 't', 'available_instances': 4}]}");
        HostShapes shapes = { 0 };
        HostConfig config = config_with(&shapes);
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        Error problem;
        char text[256];

        assert_int_equal(update(tree, &config, HOST(GPUS), "", "", &problem), 0);
        assert_int_equal(specs_add(&config.pci_specs, "{'address': '0000:02:00.0'}", NULL), 0);
        assert_int_equal(update(tree, &config, HOST(GPUS), "12", "", &problem), 0);
        assert_string_equal(problem.text,
                            "[device_shapes hgx]: 0000:02:00.0 also matches [pci] device_spec. "
                            "Remove it from one of them");
        describe(tree, text, sizeof(text));
        assert_string_equal(text, NAME "4 2 4 2");
        pci_specs_done(&config.pci_specs);
        assert_int_equal(specs_add(&config.pci_specs, "{'address': '0000:02:01.0'}", NULL), 0);
        assert_int_equal(update(tree, &config, HOST(GPUS "," VF), "", "", &problem), 0);
        assert_string_equal(problem.text,
                            "[device_shapes hgx]: 0000:02:01.0 of the same card as 0000:02:00.0 "
                            "also matches [pci] device_spec. Remove the card from one of them");
        pci_specs_done(&config.pci_specs);
        config.mdev_types = &type;
        config.n_mdev_types = 1;
        assert_int_equal(update(tree, &config, mdevs, "", "", &problem), 0);
        assert_string_equal(problem.text,
                            "[device_shapes hgx]: 0000:01:00.0 is also a device of [devices] "
                            "enabled_mdev_types. Remove it from one of them");
        assert_int_equal(update(tree, &config, HOST(GPUS "," VGPU), "", "", &problem), 0);
        assert_string_equal(problem.text,
                            "[device_shapes hgx]: 0000:02:02.0 of the same card as 0000:02:00.0 is "
                            "also a device of [devices] enabled_mdev_types. Remove the card from "
                            "one of them");
        device_set_done(&shapes.set);
}

/* A provider of that name below another root belongs to another writer. */
static void test_a_foreign_provider_is_not_withheld(void **state)
{
        HostShapes shapes = { 0 };
        HostConfig config = config_with(&shapes);
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        Uuid root = { "aaaaaaaa-0000-4000-8000-000000000002" };
        Provider *other;
        Error problem;

        assert_int_equal(provider_tree_add(tree, &root, "other", NULL, &other, NULL), 0);
        fixture_put(tree, other, "cn1_shapes_hgx", "CUSTOM_GPU=4");
        assert_int_equal(specs_add(&config.pci_specs, "{'address': '0000:02:00.0'}", NULL), 0);
        assert_int_equal(update(tree, &config, HOST(GPUS), "", "", &problem), 0);
        assert_int_equal(tree->providers[2]->inventories[0].inventory.reserved, 0);
        pci_specs_done(&config.pci_specs);
        device_set_done(&shapes.set);
}

/* Providers of other names, and the one of a set that stays, are left alone. */
static void test_a_set_without_a_section_is_removed(void **state)
{
        HostShapes shapes = { 0 };
        HostConfig config = config_with(&shapes);
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        Uuid old = { "aaaaaaaa-0000-4000-8000-000000000002" },
             other = { "aaaaaaaa-0000-4000-8000-000000000003" };
        Error problem;
        char text[256];

        assert_int_equal(provider_tree_add(tree, &old, "cn1_shapes_old", &tree->providers[0]->uuid,
                                           NULL, NULL),
                         0);
        assert_int_equal(
                provider_tree_add(tree, &other, "cn1_other", &tree->providers[0]->uuid, NULL, NULL),
                0);
        assert_int_equal(update(tree, &config, HOST(GPUS), "", "", &problem), 0);
        describe(tree, text, sizeof(text));
        assert_string_equal(text, "cn1_other; " NAME "0 2 4 2");
        config.n_shapes = 0;
        assert_int_equal(update(tree, &config, HOST(GPUS), "", "", &problem), 0);
        describe(tree, text, sizeof(text));
        assert_string_equal(text, "cn1_other");
        device_set_done(&shapes.set);
}

TEST_MAIN(test_inventory, test_a_part_of_a_device_of_slots, test_contradictions_withhold_the_set,
          test_a_foreign_provider_is_not_withheld, test_a_set_without_a_section_is_removed)
