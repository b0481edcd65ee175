/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Updates a tree with invented PCI devices and compares its providers in one line of text. CARD
 * is a physical function with two virtual functions. */
#include "drivers/tree/pci-providers.h"
#include "tests/fixtures/host.h"

#define UUID_GUEST "5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e02"

#define PCI(address, more) "{'name': '" address "', 'address': '" address "', " more "}"
#define GPU(address)       PCI(address, "'vendor_id': 4318, 'product_id': 7864")
#define PF(address)                                                            \
        PCI(address, "'vendor_id': 32902, 'product_id': 5490, "                \
                     "'is_physical_function': true, 'has_card_serial': true, " \
                     "'max_virtual_functions': 64")
#define VF(address, pf) \
        PCI(address, "'vendor_id': 32902, 'product_id': 5452, 'physical_function': '" pf "'")
#define HOST(devices) "'devices': [" devices "]"
#define GUEST(address)                                                  \
        ", 'domains': [{'uuid': '" UUID_GUEST "', 'state': 'running', " \
        "'pci_addresses': ['" address "']}]"

#define CARD               \
        PF("0000:81:00.0") \
        "," VF("0000:81:01.0", "0000:81:00.0") "," VF("0000:81:01.1", "0000:81:00.0")

#define SPEC_GPU  "{'vendor_id': '10de'}"
#define SPEC_PF   "{'product_id': '1572'}"
#define SPEC_VF   "{'product_id': '154c', 'resource_class': 'vf'}"
#define SPEC_LAST "{'address': '0000:81:01.1', 'resource_class': 'vf'}"

/* Writes "NAME CLASS=total/reserved TRAIT …; …" of all providers but the root, without the owner
 * trait and the trait that all have. */
static void describe(const ProviderTree *tree, char *text, size_t size)
{
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 1; i < tree->n_providers; i++) {
                const Provider *provider = tree->providers[i];

                n += (size_t)snprintf(text + n, size - n, "%s%s", n ? "; " : "", provider->name);
                for (size_t j = 0; j < provider->n_inventories; j++) {
                        const InventoryRecord *record = &provider->inventories[j];

                        assert_int_equal(record->inventory.max_unit, record->inventory.total);
                        n += (size_t)snprintf(text + n, size - n, " %s=%d/%d",
                                              record->resource_class, (int)record->inventory.total,
                                              (int)record->inventory.reserved);
                }
                for (size_t j = 0; j < provider->traits.n_items; j++)
                        if (strcmp(provider->traits.items[j], "OWNER_COMPUTE_AGENT") != 0 &&
                            strcmp(provider->traits.items[j], "COMPUTE_MANAGED_PCI_DEVICE") != 0)
                                n += (size_t)snprintf(text + n, size - n, " %s",
                                                      provider->traits.items[j]);
        }
}

/* Updates the tree once, and returns the result of the update. */
static int update(ProviderTree *tree, const char *members, const char *specs, bool report,
                  Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(members);
        HostConfig config = config_make(NULL, 0);
        TreeUpdate edit = {
                .config = &config, .snapshot = host, .tree = tree, .root = tree->providers[0]
        };
        Error error = ERROR_NULL;
        int r;

        if (specs[0] && specs_add(&config.pci_specs, specs, &error) < 0)
                fail_msg("%s: %s", specs, error.text);
        config.report_in_placement = report;
        r = pci_providers_update(&edit, &error);
        pci_specs_done(&config.pci_specs);
        if (reterr)
                *reterr = r < 0 ? error : edit.problem;
        return r == 0 && edit.problem.code ? DRIVER_UPDATED_IN_PART : r;
}

static void test_new_host(void **state)
{
        static const struct {
                const char *about, *host, *specs, *tree;
        } cases[] = {
                { "F5: PCI", HOST(GPU("0000:8a:00.0")), SPEC_GPU,
                  "cn1_0000:8A:00.0 CUSTOM_PCI_10DE_1EB8=1/0" },
                { "F5: PF", HOST(CARD), SPEC_PF, "cn1_0000:81:00.0 CUSTOM_PCI_8086_1572=1/0" },
                { "F5: VFs count on their PF", HOST(CARD), SPEC_VF,
                  "cn1_0000:81:00.0 CUSTOM_VF=2/0" },
                { "C7: a vDPA device is a VF",
                  HOST(PF("0000:81:00.0") "," PCI(
                          "0000:81:01.0",
                          "'vendor_id': 32902, 'product_id': 5452, "
                          "'physical_function': '0000:81:00.0', 'is_vdpa_parent': true")),
                  SPEC_VF, "cn1_0000:81:00.0 CUSTOM_VF=1/0" },
                { "F5: traits", HOST(GPU("0000:8a:00.0")),
                  "{'vendor_id': '10de', 'traits': 'blue,CUSTOM_RED'}",
                  "cn1_0000:8A:00.0 CUSTOM_PCI_10DE_1EB8=1/0 CUSTOM_BLUE CUSTOM_RED" },
                { "F5: physical networks are Neutron's", HOST(CARD),
                  "{'product_id': '154c', 'physical_network': 'net'}", "" },
                { "F5: VFs of two PFs",
                  HOST(CARD "," PF("0000:82:00.0") "," VF("0000:82:01.0", "0000:82:00.0")), SPEC_VF,
                  "cn1_0000:81:00.0 CUSTOM_VF=2/0; cn1_0000:82:00.0 CUSTOM_VF=1/0" },
                { "F5: a VF in use without a spec", HOST(CARD) GUEST("0000:81:01.0"), SPEC_LAST,
                  "cn1_0000:81:00.0 CUSTOM_VF=1/0" },
                { "no spec", HOST(CARD), "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                char text[1024];
                Error error;

                if (update(tree, cases[i].host, cases[i].specs, true, &error) != DRIVER_UPDATED)
                        fail_msg("%s: %s", cases[i].about, error.text);
                describe(tree, text, sizeof(text));
                if (strcmp(text, cases[i].tree) != 0)
                        fail_msg("%s: %s", cases[i].about, text);
                for (size_t j = 1; j < tree->n_providers; j++)
                        assert_true(string_set_contains(&tree->providers[j]->traits,
                                                        "OWNER_COMPUTE_AGENT"));
        }
}

static void test_refused(void **state)
{
        static const struct {
                const char *about, *specs, *words;
        } cases[] = {
                { "C7: PF and VFs", "{'vendor_id': '8086'}", "its virtual functions both" },
                { "H5: the PF's address matches its VFs, too", "{'address': '0000:81:00.0'}",
                  "its virtual functions both" },
                { "C7: mixed classes",
                  "[{'address': '0000:81:01.0', 'resource_class': 'A'},"
                  " {'address': '0000:81:01.1', 'resource_class': 'B'}]",
                  "has the resource class CUSTOM_B" },
                { "C7: mixed traits",
                  "[{'address': '0000:81:01.0', 'traits': 'A'}, {'address': '0000:81:01.1', 'traits': 'B'}]",
                  "the traits of 0000:81:01.1" },
                { "C7: one-time use of a VF", "{'product_id': '154c', 'one_time_use': 'yes'}",
                  "one_time_use" },
                { "H5: a remote-managed PF", "{'product_id': '1572', 'remote_managed': 'yes'}",
                  "remote_managed" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                char text[1024], specs[512];
                Error error;

                /* the GPU is still reported */
                if (cases[i].specs[0] == '[')
                        snprintf(specs, sizeof(specs), "%.*s, " SPEC_GPU "]",
                                 (int)strlen(cases[i].specs) - 1, cases[i].specs);
                else
                        snprintf(specs, sizeof(specs), "[%s, " SPEC_GPU "]", cases[i].specs);
                assert_int_equal(
                        update(tree, HOST(CARD "," GPU("0000:8a:00.0")), specs, true, &error),
                        DRIVER_UPDATED_IN_PART);
                if (!strstr(error.text, cases[i].words))
                        fail_msg("%s: %s", cases[i].about, error.text);
                describe(tree, text, sizeof(text));
                assert_string_equal(text, "cn1_0000:8A:00.0 CUSTOM_PCI_10DE_1EB8=1/0");
        }
}

static void test_changes(void **state)
{
        static const struct {
                const char *about;
                const char *host, *specs; /* before */
                const char *host_2, *specs_2, *tree;
        } cases[] = {
                { "F5: device removed", HOST(GPU("0000:8a:00.0")), SPEC_GPU, HOST(""), SPEC_GPU,
                  "" },
                { "F5: spec removed", HOST(GPU("0000:8a:00.0")), SPEC_GPU,
                  HOST(GPU("0000:8a:00.0")), "", "" },
                { "F5: one VF removed", HOST(CARD), SPEC_VF,
                  HOST(PF("0000:81:00.0") "," VF("0000:81:01.1", "0000:81:00.0")), SPEC_VF,
                  "cn1_0000:81:00.0 CUSTOM_VF=1/0" },
                { "F5: all VFs removed", HOST(CARD), SPEC_VF, HOST(PF("0000:81:00.0")), SPEC_VF,
                  "" },
                { "F5: VFs to PF", HOST(CARD), SPEC_VF, HOST(CARD), SPEC_PF,
                  "cn1_0000:81:00.0 CUSTOM_PCI_8086_1572=1/0" },
                { "F5: PF to VFs", HOST(CARD), SPEC_PF, HOST(CARD), SPEC_VF,
                  "cn1_0000:81:00.0 CUSTOM_VF=2/0" },
                { "F5, G4.18: spec of a device in use removed: kept", HOST(GPU("0000:8a:00.0")),
                  SPEC_GPU, HOST(GPU("0000:8a:00.0")) GUEST("0000:8a:00.0"), "",
                  "cn1_0000:8A:00.0 CUSTOM_PCI_10DE_1EB8=1/0" },
                { "F5: the hypervisor lost a device in use: kept", HOST(GPU("0000:8a:00.0")),
                  SPEC_GPU, HOST("") GUEST("0000:8a:00.0"), SPEC_GPU,
                  "cn1_0000:8A:00.0 CUSTOM_PCI_10DE_1EB8=1/0" },
                { "F5: spec of one VF in use removed: only that one counts", HOST(CARD), SPEC_VF,
                  HOST(CARD) GUEST("0000:81:01.0"), "", "cn1_0000:81:00.0 CUSTOM_VF=1/0" },
                { "F5: spec of a VF in use removed, another stays", HOST(CARD), SPEC_VF,
                  HOST(CARD) GUEST("0000:81:01.0"), SPEC_LAST, "cn1_0000:81:00.0 CUSTOM_VF=2/0" },
                { "F5: a VF in use that never had a spec does not count", HOST(CARD), SPEC_LAST,
                  HOST(CARD) GUEST("0000:81:01.0"), SPEC_LAST, "cn1_0000:81:00.0 CUSTOM_VF=1/0" },
                { "C7: a refused configuration leaves what is there", HOST(CARD), SPEC_VF,
                  HOST(CARD), "{'vendor_id': '8086'}", "cn1_0000:81:00.0 CUSTOM_VF=2/0" },
                { "F5: a free device with one-time use", HOST(GPU("0000:8a:00.0")),
                  "{'one_time_use': true}", HOST(GPU("0000:8a:00.0")), "{'one_time_use': true}",
                  "cn1_0000:8A:00.0 CUSTOM_PCI_10DE_1EB8=1/0 HW_PCI_ONE_TIME_USE" },
                { "F5: one-time use, in use", HOST(GPU("0000:8a:00.0")), "{'one_time_use': true}",
                  HOST(GPU("0000:8a:00.0")) GUEST("0000:8a:00.0"), "{'one_time_use': true}",
                  "cn1_0000:8A:00.0 CUSTOM_PCI_10DE_1EB8=1/1 HW_PCI_ONE_TIME_USE" },
                { "F5: one-time use configured late", HOST(GPU("0000:8a:00.0")), "{}",
                  HOST(GPU("0000:8a:00.0")) GUEST("0000:8a:00.0"), "{'one_time_use': true}",
                  "cn1_0000:8A:00.0 CUSTOM_PCI_10DE_1EB8=1/1 HW_PCI_ONE_TIME_USE" },
                { "F5: one-time use, freed: reserved stays",
                  HOST(GPU("0000:8a:00.0")) GUEST("0000:8a:00.0"), "{'one_time_use': true}",
                  HOST(GPU("0000:8a:00.0")), "{'one_time_use': true}",
                  "cn1_0000:8A:00.0 CUSTOM_PCI_10DE_1EB8=1/1 HW_PCI_ONE_TIME_USE" },
                { "F5: one-time use, freed, another class: reserved stays",
                  HOST(GPU("0000:8a:00.0")) GUEST("0000:8a:00.0"), "{'one_time_use': true}",
                  HOST(GPU("0000:8a:00.0")), "{'one_time_use': true, 'resource_class': 'GPU'}",
                  "cn1_0000:8A:00.0 CUSTOM_GPU=1/1 HW_PCI_ONE_TIME_USE" },
                { "F5: one-time use, freed, PF to VFs: a new record",
                  HOST(CARD) GUEST("0000:81:00.0"), "{'product_id': '1572', 'one_time_use': true}",
                  HOST(CARD), SPEC_VF, "cn1_0000:81:00.0 CUSTOM_VF=2/0" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                char text[1024];

                assert_int_equal(update(tree, cases[i].host, cases[i].specs, true, NULL), 0);
                assert_int_equal(tree->n_providers, 2);
                (void)update(tree, cases[i].host_2, cases[i].specs_2, true, NULL);
                describe(tree, text, sizeof(text));
                if (strcmp(text, cases[i].tree) != 0)
                        fail_msg("%s: %s", cases[i].about, text);
        }
}

static void test_f5_cannot_be_switched_off(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        _cleanup_(provider_tree_freep) ProviderTree *before = NULL;
        Error error = ERROR_NULL;

        assert_int_equal(update(tree, HOST(CARD), SPEC_VF, false, &error), DRIVER_UPDATED);
        assert_int_equal(tree->n_providers, 1);
        assert_int_equal(update(tree, HOST(CARD), SPEC_VF, true, NULL), DRIVER_UPDATED);
        assert_int_equal(provider_tree_copy(&before, tree), 0);
        assert_int_equal(update(tree, HOST(CARD), SPEC_VF, false, &error), DRIVER_UPDATED_IN_PART);
        assert_non_null(strstr(error.text, "report_in_placement is false"));
        assert_true(provider_tree_equal(before, tree));
}

static void test_g2_18_keeps_what_an_operator_set(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
        Inventory *record;

        assert_int_equal(update(tree, HOST(CARD), SPEC_VF, true, NULL), 0);
        record = provider_find_inventory(tree->providers[1], "CUSTOM_VF");
        record->reserved = 1;
        record->step_size = 2;
        assert_int_equal(string_set_add(&tree->providers[1]->traits, "CUSTOM_FOREIGN"), 1);
        assert_int_equal(update(tree,
                                HOST(CARD "," VF("0000:81:01.2", "0000:81:00.0") "," VF(
                                        "0000:81:01.3", "0000:81:00.0")),
                                SPEC_VF, true, NULL),
                         0);
        record = provider_find_inventory(tree->providers[1], "CUSTOM_VF");
        assert_int_equal(record->total, 4);
        assert_int_equal(record->reserved, 1);
        assert_int_equal(record->step_size, 2);
        /* C7, C10: traits of PCI providers are set exactly */
        assert_false(string_set_contains(&tree->providers[1]->traits, "CUSTOM_FOREIGN"));
        record->reserved = 4;
        assert_int_equal(update(tree, HOST(CARD), SPEC_VF, true, NULL), 0);
        record = provider_find_inventory(tree->providers[1], "CUSTOM_VF");
        assert_int_equal(record->reserved, 2);
        /* C5: the devices get another class */
        assert_int_equal(update(tree, HOST(CARD), "{'product_id': '154c'}", true, NULL), 0);
        assert_int_equal(tree->providers[1]->n_inventories, 1);
        record = provider_find_inventory(tree->providers[1], "CUSTOM_PCI_8086_154C");
        assert_int_equal(record->reserved, 2);
        assert_int_equal(record->step_size, 2);
        /* the physical function in place of its functions */
        record->reserved = 1;
        assert_int_equal(update(tree, HOST(CARD), SPEC_PF, true, NULL), 0);
        record = provider_find_inventory(tree->providers[1], "CUSTOM_PCI_8086_1572");
        assert_int_equal(record->reserved, 0);
        assert_int_equal(record->step_size, 1);
}

static void test_c10_leaves_others_alone(void **state)
{
        Provider *root;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);

        fixture_put(tree, root, "cn1_0000:8A:00.0x", "FPGA=1");
        assert_int_equal(update(tree, HOST(GPU("0000:8a:00.0")), "", true, NULL), 0);
        assert_int_equal(tree->n_providers, 2);
}

/* The renamed provider has no device's address, but the agent's trait and uuid. A problem names
 * it; it is neither removed nor created again. */
static void test_renamed(void **state)
{
        static const char *const names[] = { "mine", "cn1_0000:99:00.0" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(NULL);
                char text[1024], wanted[1024];
                Error error = ERROR_NULL;

                assert_int_equal(update(tree, HOST(GPU("0000:8a:00.0")), SPEC_GPU, true, &error),
                                 0);
                free(tree->providers[1]->name);
                tree->providers[1]->name = strdup(names[i]);
                assert_int_equal(update(tree, HOST(GPU("0000:8a:00.0") "," GPU("0000:8b:00.0")),
                                        SPEC_GPU, true, &error),
                                 DRIVER_UPDATED_IN_PART);
                assert_non_null(strstr(error.text, "cn1_0000:8A:00.0 was renamed to"));
                snprintf(wanted, sizeof(wanted),
                         "%s CUSTOM_PCI_10DE_1EB8=1/0; cn1_0000:8B:00.0 CUSTOM_PCI_10DE_1EB8=1/0",
                         names[i]);
                describe(tree, text, sizeof(text));
                assert_string_equal(text, wanted);
        }
}

TEST_MAIN(test_new_host, test_refused, test_renamed, test_changes, test_f5_cannot_be_switched_off,
          test_g2_18_keeps_what_an_operator_set, test_c10_leaves_others_alone)
