/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/retained.h"
#include "base/log.h"
#include "base/text.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define FULL \
        "host VCPU=8 DISK_GB=100/10; gpu<host VGPU=4/1/1/4/1/2.0 +CUSTOM_RACK; cell<host; pf<cell VF=2"

static struct {
        char *folder;
        Retained *retained;
        ProviderTree *placement;
        Uuid root;
} scene;

static void start(void)
{
        retained_free(scene.retained);
        assert_int_equal(retained_new(&scene.retained, scene.folder, false, NULL), 0);
}

static int begin(void **state)
{
        scene.folder = scratch_folder_make();
        scene.root = make_uuid("host");
        scene.placement = make_tree(FULL);
        scene.retained = NULL;
        start();
        return 0;
}

static int end(void **state)
{
        retained_free(scene.retained);
        provider_tree_free(scene.placement);
        scratch_folder_remove(scene.folder);
        return 0;
}

/* Makes the tree of a host with the providers in words; the caller frees it. The driver keeps the
 * reserved amounts of Placement's tree after retained_clear(), as it does for PCI devices. */
static ProviderTree *make(const char *words, bool known)
{
        _cleanup_(provider_tree_freep) ProviderTree *before = NULL;
        RetainedTrees trees = { .base = scene.placement, .root = &scene.root, .known = known };
        ProviderTree *tree = make_tree(words);

        assert_int_equal(provider_tree_copy(&before, scene.placement), 0);
        retained_clear(scene.retained, before);
        trees.before = before;
        for (size_t i = 0; i < tree->n_providers; i++) {
                Provider *provider = tree->providers[i];
                const Provider *old = provider_tree_find(before, &provider->uuid);

                for (size_t j = 0; old && j < provider->n_inventories; j++) {
                        const Inventory *record = provider_find_inventory(
                                old, provider->inventories[j].resource_class);

                        if (record)
                                provider->inventories[j].inventory = *record;
                }
        }
        assert_int_equal(retained_apply(scene.retained, &trees, tree, NULL), 0);
        return tree;
}

/* Runs a cycle: makes the tree, answers that gpu (or nothing) has an allocation, and publishes. */
static void run_cycle(const char *words, const char *holds)
{
        ProviderTree *tree = make(words, true);
        Allocations *holders;
        const Uuid *asked;
        bool is_answered;
        size_t n;

        provider_tree_free(tree);
        assert_int_equal(retained_ask(scene.retained, &asked, &n, &is_answered), 0);
        assert_int_equal(is_answered, n == 0);
        if (n > 0) {
                assert_int_equal(allocations_new(&holders), 0);
                if (holds)
                        fixture_hold(&holders, make_uuid("guest"), make_uuid(holds),
                                     strcmp(holds, "host") == 0  ? "DISK_GB"
                                     : strcmp(holds, "gpu") == 0 ? "VGPU"
                                                                 : "VF",
                                     2);
                retained_set_holders(scene.retained, holders);
                assert_int_equal(retained_ask(scene.retained, &asked, &n, &is_answered), 0);
                assert_true(is_answered);
        }
        tree = make(words, true);
        provider_tree_free(scene.placement);
        scene.placement = tree;
        start(); /* as a restart after each cycle does */
}

static void check(const char *name, const char *resource_class, const char *expected)
{
        const Provider *provider = provider_tree_find_name(scene.placement, name);
        const Inventory *record =
                provider ? provider_find_inventory(provider, resource_class) : NULL;
        char text[64] = "";

        if (record)
                snprintf(text, sizeof(text), "%d/%d/%g", (int)record->total, (int)record->reserved,
                         record->allocation_ratio);
        assert_string_equal(text, expected);
}

static void test_allocated_inventory_stays_reserved(void **state)
{
        static const struct {
                const char *host, *holds, *disk, *gpu, *pf;
        } cycles[] = {
                { FULL, NULL, "100/10/1", "4/1/2", "2/0/1" },
                /* The provider comes back at its place, with all capacity reserved. */
                { "host VCPU=8 DISK_GB=100", "gpu", "100/10/1", "4/4/2", "" },
                { "host VCPU=8 DISK_GB=100", "gpu", "100/10/1", "4/4/2", "" },
                /* The host has the provider again: the old reserved amount is restored. */
                { "host VCPU=8 DISK_GB=100; gpu<host VGPU=4", "gpu", "100/10/1", "4/1/2", "" },
                { "host VCPU=8 DISK_GB=100; gpu<host VGPU=4", NULL, "100/10/1", "4/1/2", "" },
                /* Only a class is lost. */
                { "host VCPU=8; gpu<host VGPU=4", "host", "100/100/1", "4/1/2", "" },
                { "host VCPU=8; gpu<host VGPU=4", NULL, "", "4/1/2", "" },
                { "host VCPU=8", "gpu", "", "4/4/2", "" },
                { "host VCPU=8", NULL, "", "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cycles); i++) {
                run_cycle(cycles[i].host, cycles[i].holds);
                check("host", "DISK_GB", cycles[i].disk);
                check("gpu", "VGPU", cycles[i].gpu);
                check("pf", "VF", cycles[i].pf);
        }
}

static void test_a_provider_comes_back_below_its_own(void **state)
{
        const Provider *provider;

        run_cycle("host VCPU=8 DISK_GB=100; gpu<host VGPU=4", "pf");
        check("pf", "VF", "2/2/1");
        provider = provider_tree_find_name(scene.placement, "pf");
        assert_string_equal(provider_tree_find(scene.placement, &provider->parent)->name, "cell");
}

/* An inventory that cannot be sent does not bring its provider back without it. */
static void test_an_invalid_inventory_is_not_retained(void **state)
{
        Provider *gpu = provider_tree_find_name(scene.placement, "gpu");
        ProviderTree *tree;

        gpu->inventories[0].inventory.step_size = 0;
        tree = make("host VCPU=8 DISK_GB=100", false);
        assert_null(provider_tree_find_name(tree, "gpu"));
        assert_non_null(provider_tree_find_name(tree, "pf"));
        provider_tree_free(tree);
}

static void test_unknown_holders_count_as_holders(void **state)
{
        ProviderTree *tree = make("host VCPU=8 DISK_GB=100", false);
        const Provider *gpu = provider_tree_find_name(tree, "gpu");

        assert_int_equal(retained_use(scene.retained, &gpu->uuid, "VGPU", NULL),
                         RETAINED_USE_UNKNOWN);
        assert_int_equal(provider_find_inventory(gpu, "VGPU")->reserved, 4);
        assert_true(string_set_contains(&gpu->traits, "CUSTOM_RACK"));
        provider_tree_free(tree);
}

/* An old answer does not count for a later loss. */
static void test_an_old_answer_is_forgotten(void **state)
{
        const Uuid gpu = make_uuid("gpu");
        Allocations *holders;
        const Uuid *asked;
        bool is_answered;
        size_t n;

        provider_tree_free(make("host VCPU=8 DISK_GB=100; cell<host; pf<cell VF=2", true));
        assert_int_equal(retained_ask(scene.retained, &asked, &n, &is_answered), 0);
        assert_int_equal(n, 1);
        assert_int_equal(allocations_new(&holders), 0);
        retained_set_holders(scene.retained, holders);
        assert_int_equal(retained_use(scene.retained, &gpu, "VGPU", NULL), RETAINED_USE_NONE);
        provider_tree_free(make(FULL, true));
        assert_int_equal(retained_use(scene.retained, &gpu, "VGPU", NULL), RETAINED_USE_UNKNOWN);
}

static void test_words(void **state)
{
        char holders[RETAINED_HOLDERS_MAX];
        _cleanup_free_ char *text = NULL;
        const Uuid gpu = make_uuid("gpu"), guest = make_uuid("guest");
        Allocations *allocations = NULL;
        const Uuid *asked;
        bool is_answered;
        size_t n;

        provider_tree_free(make("host VCPU=8 DISK_GB=100; cell<host; pf<cell VF=2", true));
        assert_int_equal(retained_ask(scene.retained, &asked, &n, &is_answered), 0);
        fixture_hold(&allocations, guest, gpu, "VGPU", 2);
        retained_set_holders(scene.retained, allocations);
        assert_int_equal(retained_use(scene.retained, &gpu, "VGPU", &gpu), RETAINED_USE_HELD);
        assert_int_equal(retained_use(scene.retained, &gpu, "VGPU", &guest), RETAINED_USE_NONE);
        provider_tree_free(make("host VCPU=8 DISK_GB=100; cell<host; pf<cell VF=2", true));
        retained_describe_holders(scene.retained, NULL, &gpu, "VGPU", holders);
        assert_non_null(strstr(holders, "2 used by consumer "));
        text = retained_describe(scene.retained, NULL);
        assert_non_null(text);
        assert_memory_equal(text, "VGPU of gpu (2 used by consumer ", 32);
}

/* A damaged entry leaves nothing, and the entries around it count. */
static void test_damaged_entries(void **state)
{
#define ENTRY(provider, reserved)    \
        "{\"provider\": \"" provider \
        "\", \"name\": \"x\", \"class\": \"VGPU\", \"reserved\": " reserved ", \"active\": true}"
#define FIRST  "11111111-2222-4333-8444-555555555555"
#define SECOND "11111111-2222-4333-8444-555555555556"
        static const char *const damaged[] = {
                "1",
                "{}",
                "{\"provider\": \"" FIRST "\"}",
                ENTRY("x", "1"),
                ENTRY("11111111-2222-4333-8444-555555555557", "9999999999"),
                ENTRY(FIRST, "2"), /* it is listed twice */
        };

        for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
                _cleanup_free_ char *text = text_format(
                        "{\"format\": \"compute-agent-retained/1\", \"inventories\": [%s, %s, %s]}",
                        ENTRY(FIRST, "1"), damaged[i], ENTRY(SECOND, "1"));

                scratch_write(scene.folder, "retained.json", text);
                for (int restarts = 0; restarts < 2; restarts++) {
                        _cleanup_free_ char *words = NULL;

                        start();
                        words = retained_describe(scene.retained, NULL);
                        assert_string_equal(words ? words : "", "VGPU of x, VGPU of x");
                }
        }
}

/* An unreadable file is not an absent one: the next write would replace it. */
static void test_an_unreadable_file_is_an_error(void **state)
{
        Error error = ERROR_NULL;

        scene.retained = retained_free(scene.retained);
        scratch_mkdir(scene.folder, "retained.json");
        assert_int_equal(retained_new(&scene.retained, scene.folder, false, &error), -EISDIR);
        assert_non_null(strstr(error.text, "retained.json"));
}

TEST_MAIN_AFTER(log_set_level(LOG_EMERG), begin, end, test_allocated_inventory_stays_reserved,
                test_a_provider_comes_back_below_its_own, test_unknown_holders_count_as_holders,
                test_an_invalid_inventory_is_not_retained, test_an_old_answer_is_forgotten,
                test_damaged_entries, test_an_unreadable_file_is_an_error, test_words)
