/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/cordon.h"
#include "base/log.h"
#include "base/text.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define HOST                                                                                \
        "host VCPU=8; host_pci_0000_41_00_0<host VGPU=4/1; host_0000:C1:00.0<host CARD=1; " \
        "other VCPU=2"
#define GPU "host_pci_0000_41_00_0"

static struct {
        char *folder;
        Cordon *cordon;
        ProviderTree *mirror; /* tree of Placement */
        Uuid root;
} scene;

static void start(void)
{
        cordon_free(scene.cordon);
        assert_int_equal(cordon_new(&scene.cordon, scene.folder, false, NULL), 0);
}

static int begin(void **state)
{
        scene.folder = scratch_folder_make();
        scene.root = make_uuid("host");
        scene.mirror = make_tree(HOST);
        scene.cordon = NULL;
        start();
        return 0;
}

static int end(void **state)
{
        cordon_free(scene.cordon);
        provider_tree_free(scene.mirror);
        scratch_folder_remove(scene.folder);
        return 0;
}

/* Begins a new scene, for the next case of a table. */
static void start_over(void)
{
        (void)end(NULL);
        (void)begin(NULL);
}

static int set(const char *device, Error *reterr)
{
        return cordon_set(scene.cordon, scene.mirror, &scene.root, device, "broken fan", "ann",
                          NULL, 1000 * USEC_PER_SEC, reterr);
}

static int lift(const char *device, Error *reterr)
{
        int r = cordon_lift(scene.cordon, scene.mirror, &scene.root, device, NULL,
                            2000 * USEC_PER_SEC, reterr);

        return MIN(r, 0);
}

static Inventory *vgpus(void)
{
        Provider *provider = provider_tree_find_name(scene.mirror, "host_pci_0000_41_00_0");

        return &provider->inventories[0].inventory;
}

/* Runs a cycle: the published tree becomes that of Placement. withheld: the device ledger withholds
 * the GPU. */
static void publish_withheld(bool withheld)
{
        cordon_clear(scene.cordon, scene.mirror, &scene.root, true);
        if (withheld)
                vgpus()->reserved = vgpus()->total;
        assert_int_equal(cordon_apply(scene.cordon, scene.mirror, &scene.root, true, NULL), 0);
}

static void publish(void)
{
        publish_withheld(false);
}

static Provider *host_of(void)
{
        return provider_tree_find_name(scene.mirror, "host");
}

static uint64_t reserved(const char *provider, const char *resource_class)
{
        return provider_find_inventory(provider_tree_find_name(scene.mirror, provider),
                                       resource_class)
                ->reserved;
}

static bool is_disabled(void)
{
        return string_set_contains(&host_of()->traits, CORDON_TRAIT);
}

static CordonState look(const char *device)
{
        return cordon_get_state(scene.cordon, scene.mirror, &scene.root, device);
}

static bool covers(const char *provider)
{
        const Uuid uuid = make_uuid(provider);

        return cordon_covers(scene.cordon, scene.mirror, &scene.root, &uuid);
}

/* A device of a set has no provider. It is cordoned by each of its names, alone. */
static void test_members_of_sets(void **state)
{
        char *members[] = { (char *)"0000:1b:00.0", (char *)"0000:43:00.0", NULL };
        char *partitions[] = { (char *)"all=1-2", NULL };
        HostShapes shapes = { 0 };
        const HostConfig host = { .shapes = &shapes, .n_shapes = 1 };

        assert_int_equal(
                device_set_parse(&shapes.set, "hgx", "CUSTOM_GPU", members, partitions, NULL), 0);
        assert_int_equal(set("0000:1b:00.0", NULL), -ENODEV);
        cordon_set_host(scene.cordon, &host);
        assert_non_null(
                cordon_find_name(scene.cordon, scene.mirror, &scene.root, "0000:1b:00.0", ""));
        assert_null(cordon_find_name(scene.cordon, scene.mirror, &scene.root, "0000:1b:00.1", ""));
        assert_int_equal(set("pci_0000_1b_00_0", NULL), 0);
        assert_int_equal(set("0000:1B:00.0", NULL), 0);
        assert_int_equal(cordon_view(scene.cordon).n_devices, 1);
        assert_true(cordon_has_member(scene.cordon, "0000:1b:00.0"));
        assert_false(cordon_has_member(scene.cordon, "0000:43:00.0"));
        publish();
        assert_int_equal(reserved(GPU, "VGPU"), 1);
        start();
        assert_true(cordon_has_member(scene.cordon, "0000:1b:00.0"));
        cordon_set_host(scene.cordon, &host);
        assert_int_equal(lift("0000:43:00.0", NULL), -ENOENT);
        assert_int_equal(lift("0000:1b:00.0", NULL), 0);
        assert_false(cordon_has_member(scene.cordon, "0000:1b:00.0"));
        publish();
        assert_int_equal(cordon_view(scene.cordon).n_devices, 0);
        assert_true(cordon_get_state(scene.cordon, scene.mirror, &scene.root, "0000:1B:00.0")
                            .lifted_usec > 0);
        device_set_done(&shapes.set);
}

static void test_host(void **state)
{
        Error error = ERROR_NULL;

        assert_null(cordon_view(scene.cordon).host);
        assert_int_equal(lift("", &error), -ENOENT);
        assert_string_equal(error.text, "The host is not cordoned");
        assert_int_equal(set("", NULL), 0);
        assert_string_equal(cordon_view(scene.cordon).host,
                            "the host is cordoned by ann since 1970-01-01 00:16 UTC: broken fan");
        assert_true(covers("host") && !covers(GPU) && !covers("other"));
        publish();
        assert_true(is_disabled());
        /* A17, A9.4: the cordon survives a writer that removes the trait, and a restart. */
        string_set_remove(&host_of()->traits, CORDON_TRAIT);
        start();
        assert_non_null(cordon_view(scene.cordon).host);
        publish();
        assert_true(is_disabled());
        assert_int_equal(lift("", NULL), 0);
        assert_null(cordon_view(scene.cordon).host);
        assert_false(covers("host"));
        /* A lift is not lost if the agent restarts before Placement has it. */
        start();
        publish();
        assert_false(is_disabled());
        publish();
        /* From now on the trait is an operator's own. */
        assert_int_equal(string_set_add(&host_of()->traits, CORDON_TRAIT), 1);
        publish();
        assert_true(is_disabled());
}

static void test_foreign_trait_stays(void **state)
{
        assert_int_equal(string_set_add(&host_of()->traits, CORDON_TRAIT), 1);
        assert_int_equal(set("", NULL), 0);
        publish();
        assert_int_equal(lift("", NULL), 0);
        publish();
        publish();
        assert_true(is_disabled());
}

/* The other writer removes its trait during the cordon. The agent sets it again for the cordon
 * alone, so it ends with the cordon. */
static void test_a_foreign_trait_that_is_removed_does_not_come_back(void **state)
{
        assert_int_equal(string_set_add(&host_of()->traits, CORDON_TRAIT), 1);
        assert_int_equal(set("", NULL), 0);
        publish();
        publish();
        assert_true(string_set_remove(&host_of()->traits, CORDON_TRAIT));
        publish();
        assert_true(is_disabled());
        start();
        publish();
        assert_true(is_disabled());
        assert_int_equal(lift("", NULL), 0);
        publish();
        assert_false(is_disabled());
}

static void test_devices(void **state)
{
        static const char *const names[] = { GPU, "pci_0000_41_00_0", "0000:41:00.0" };
        const Uuid card = make_uuid("host_0000:C1:00.0");
        Error error = ERROR_NULL;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                start_over();
                assert_int_equal(set(names[i], NULL), 0);
                assert_int_equal(cordon_view(scene.cordon).n_devices, 1);
                assert_true(covers(GPU) && !covers("host"));
                publish();
                assert_int_equal(reserved(GPU, "VGPU"), 4);
                assert_int_equal(reserved("host", "VCPU"), 0);
                start();
                publish();
                assert_int_equal(lift(names[i], NULL), 0);
                publish();
                /* The reserved amount from before the cordon is restored. */
                assert_int_equal(reserved(GPU, "VGPU"), 1);
                publish();
                assert_int_equal(cordon_view(scene.cordon).n_devices, 0);
        }
        /* Cordoning a device by two names makes one cordon, which any name lifts. */
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                start_over();
                assert_int_equal(set(names[i], NULL), 0);
                assert_int_equal(set(names[(i + 1) % ARRAY_SIZE(names)], NULL), 0);
                assert_int_equal(cordon_view(scene.cordon).n_devices, 1);
                assert_int_equal(lift(names[(i + 2) % ARRAY_SIZE(names)], NULL), 0);
                assert_int_equal(cordon_view(scene.cordon).n_devices, 0);
        }
        start_over();
        assert_int_equal(set("0000:c1:00.0", NULL), 0);
        publish();
        assert_int_equal(reserved("host_0000:C1:00.0", "CARD"), 1);
        assert_non_null(strstr(cordon_view(scene.cordon).devices, "0000:c1:00.0 cordoned by ann"));
        assert_int_equal(set("0000:ff:00.0", &error), -ENODEV);
        assert_non_null(strstr(error.text, "computectl tree"));
        assert_int_equal(set("other", NULL), -ENODEV);
        /* The device vanishes and comes back. */
        assert_true(provider_tree_remove(scene.mirror, &card));
        publish();
        assert_int_equal(cordon_view(scene.cordon).n_devices, 1);
}

/* A name of two providers is that of the first one. The second one is cordoned by its own name. */
static void test_a_name_of_two_providers(void **state)
{
        static const char second[] = "host_0000:41:00.0";
        const Uuid uuid = make_uuid(second);

        assert_int_equal(provider_tree_add(scene.mirror, &uuid, second, &scene.root, NULL, NULL),
                         0);
        assert_int_equal(set("0000:41:00.0", NULL), 0);
        assert_true(covers(GPU) && !covers(second));
        assert_int_equal(set(second, NULL), 0);
        assert_int_equal(cordon_view(scene.cordon).n_devices, 2);
        assert_true(covers(second));
        assert_int_equal(lift("pci_0000_41_00_0", NULL), 0);
        assert_true(!covers(GPU) && covers(second));
        assert_true(look("0000:41:00.0").lifted_usec > 0 && look(second).lifted_usec == 0);
}

/* A lifted cordon does not release what the device ledger withholds. */
static void test_a_device_that_is_withheld(void **state)
{
        assert_int_equal(set(GPU, NULL), 0);
        publish();
        publish_withheld(true);
        assert_int_equal(lift(GPU, NULL), 0);
        for (int i = 0; i < 3; i++) {
                publish_withheld(true);
                assert_int_equal(vgpus()->reserved, 4);
        }
        /* The ledger releases the device. */
        vgpus()->reserved = 1;
        publish();
        assert_int_equal(vgpus()->reserved, 1);
}

/* The driver sees the reserved amount without the cordon, edits it, and the edit survives. */
static void test_reserved_changes_under_a_cordon(void **state)
{
        assert_int_equal(set(GPU, NULL), 0);
        publish();
        cordon_clear(scene.cordon, scene.mirror, &scene.root, true);
        assert_int_equal(vgpus()->reserved, 1);
        vgpus()->reserved = 2;
        assert_int_equal(cordon_apply(scene.cordon, scene.mirror, &scene.root, true, NULL), 0);
        assert_int_equal(vgpus()->reserved, 4);
        start();
        assert_int_equal(lift(GPU, NULL), 0);
        publish();
        assert_int_equal(vgpus()->reserved, 2);
        /* The cordon is gone: a full reservation now belongs to another writer. */
        publish();
        vgpus()->reserved = 4;
        publish();
        assert_int_equal(vgpus()->reserved, 4);
}

/* Before Placement was read, no earlier state is stored. */
static void test_first_document(void **state)
{
        assert_int_equal(set("", NULL), 0);
        assert_int_equal(cordon_apply(scene.cordon, scene.mirror, &scene.root, false, NULL), 0);
        assert_true(is_disabled());
        string_set_remove(&host_of()->traits, CORDON_TRAIT);
        publish();
        assert_int_equal(lift("", NULL), 0);
        publish();
        assert_false(is_disabled());
}

static void test_bad_files(void **state)
{
        static const char *const texts[] = {
                "",
                "[]",
                "{\"format\": \"compute-agent-cordon/1\"}",
                "{\"format\": \"compute-agent-cordon/2\", \"cordons\": []}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                start_over();
                scratch_write(scene.folder, "cordon.json", texts[i]);
                start();
                assert_null(cordon_view(scene.cordon).host);
                assert_int_equal(set("", NULL), 0);
        }
}

/* A damaged entry leaves nothing, and the entries around it count. A restart finds the same. */
static void test_damaged_entries(void **state)
{
#define ENTRY(device, more)                                                 \
        "{\"device\": \"" device "\", \"reason\": \"\", \"who\": \"ann\", " \
        "\"since_usec\": 1, \"lifted\": false, \"foreign\": false, " more "}"
#define GOOD "\"applied\": true, \"reserved\": {\"VGPU\": 1}"
        static const char *const damaged[] = {
                "1",
                "{}",
                ENTRY("0000:c1:00.0", "\"applied\": true"),
                ENTRY("0000:c1:00.0", "\"applied\": 1, \"reserved\": {}"),
                ENTRY("0000:c1:00.0", "\"applied\": true, \"reserved\": {\"CARD\": -1}"),
                ENTRY("0000:c1:00.0", "\"applied\": true, \"reserved\": {\"CARD\": 1, \"\": 1}"),
                ENTRY("0000:41:00.0", GOOD), /* it is listed twice */
        };

        for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
                _cleanup_free_ char *text = text_format(
                        "{\"format\": \"compute-agent-cordon/1\", \"cordons\": [%s, %s, %s], "
                        "\"lifted\": [{\"device\": \"a\"}, {\"device\": \"" GPU
                        "\", \"usec\": 7}]}",
                        ENTRY("0000:41:00.0", GOOD), damaged[i], ENTRY("", GOOD));

                start_over();
                scratch_write(scene.folder, "cordon.json", text);
                for (int restarts = 0; restarts < 2; restarts++) {
                        start();
                        if (!covers(GPU) || covers("host_0000:C1:00.0") || !covers("host") ||
                            cordon_view(scene.cordon).n_devices != 1)
                                fail_msg("%s", damaged[i]);
                        assert_int_equal(look(GPU).lifted_usec, 7);
                }
        }
}

/* An unreadable file is not an absent one: the next write would replace it. */
static void test_an_unreadable_file_is_an_error(void **state)
{
        Error error = ERROR_NULL;

        scene.cordon = cordon_free(scene.cordon);
        scratch_mkdir(scene.folder, "cordon.json");
        assert_int_equal(cordon_new(&scene.cordon, scene.folder, false, &error), -EISDIR);
        assert_non_null(strstr(error.text, "cordon.json"));
}

static void test_a_disk_that_cannot_be_written(void **state)
{
        Error error = ERROR_NULL;

        cordon_free(scene.cordon);
        assert_int_equal(cordon_new(&scene.cordon, "/nonexistent", false, NULL), 0);
        assert_true(set("", &error) < 0);
        assert_true(error.text[0] != '\0');
        assert_null(cordon_view(scene.cordon).host);
        publish();
        assert_false(is_disabled());
}

/* Prevents writes of the file, or permits them again. */
static void block_writes(bool block)
{
        _cleanup_free_ char *path = scratch_path(scene.folder, "cordon.json.new");

        if (block)
                scratch_mkdir(scene.folder, "cordon.json.new");
        else
                assert_int_equal(rmdir(path), 0);
}

/* The trait is published after its record. So a restart does not take it for that of another
 * writer. */
static void test_the_trait_waits_for_its_record(void **state)
{
        for (int foreign = 0; foreign <= 1; foreign++) {
                start_over();
                if (foreign)
                        assert_int_equal(string_set_add(&host_of()->traits, CORDON_TRAIT), 1);
                assert_int_equal(set("", NULL), 0);
                block_writes(true);
                for (int i = 0; i < 2; i++) {
                        publish();
                        assert_int_equal(is_disabled(), foreign);
                        assert_non_null(cordon_view(scene.cordon).host);
                }
                start();
                publish();
                assert_int_equal(is_disabled(), foreign);
                block_writes(false);
                publish();
                assert_true(is_disabled());
                start();
                assert_int_equal(lift("", NULL), 0);
                publish();
                publish();
                assert_int_equal(is_disabled(), foreign);
        }
}

/* The device is reserved at once, and a later cycle stores the amount to restore. */
static void test_a_failed_write_is_repeated(void **state)
{
        assert_int_equal(set(GPU, NULL), 0);
        block_writes(true);
        publish();
        assert_int_equal(reserved(GPU, "VGPU"), 4);
        block_writes(false);
        publish();
        start();
        publish();
        assert_int_equal(lift(GPU, NULL), 0);
        publish();
        assert_int_equal(reserved(GPU, "VGPU"), 1);
}

/* A lift that fails is no order to clean the device. */
static void test_a_failed_lift_leaves_nothing(void **state)
{
        assert_int_equal(set(GPU, NULL), 0);
        block_writes(true);
        assert_true(lift(GPU, NULL) < 0);
        block_writes(false);
        assert_true(look(GPU).cordoned);
        assert_true(look(GPU).lifted_usec == 0);
        assert_int_equal(lift(GPU, NULL), 0);
        assert_true(look(GPU).lifted_usec > 0);
}

static void test_retired(void **state)
{
        Error error = ERROR_NULL;

        assert_int_equal(cordon_set_retired(scene.cordon, true, &error), -ENOENT);
        assert_int_equal(set("", NULL), 0);
        assert_int_equal(cordon_set_retired(scene.cordon, true, NULL), 0);
        start();
        assert_true(cordon_view(scene.cordon).is_retired);
        assert_non_null(strstr(cordon_view(scene.cordon).host, "cordoned and retired by ann"));
        assert_int_equal(lift("", &error), -EINVAL);
        assert_int_equal(cordon_set_retired(scene.cordon, false, NULL), 0);
        start();
        assert_false(cordon_view(scene.cordon).is_retired);
        assert_int_equal(lift("", NULL), 0);
        assert_int_equal(cordon_set_retired(scene.cordon, true, NULL), -ENOENT);
}

#define NOW (1000 * USEC_PER_SEC)

static int set_by_rule(const char *device, const char *rule, const char *lift, const char *boot_id)
{
        const CordonRule owner = { rule, lift, boot_id };
        _cleanup_free_ char *who = text_format("rule %s", rule);

        return cordon_set(scene.cordon, scene.mirror, &scene.root, device, "a line", who, &owner,
                          NOW, NULL);
}

static int lift_by_rule(const char *device, const char *rule)
{
        return cordon_lift(scene.cordon, scene.mirror, &scene.root, device, rule, 0, NULL);
}

/* A rule changes only its own cordon; a person can take it over and lift it. */
static void test_owners(void **state)
{
        assert_int_equal(set_by_rule("0000:41:00.0", "a", "never", "b1"), 0);
        start();
        assert_string_equal(look(GPU).rule.name, "a");
        assert_string_equal(look(GPU).rule.lift, "never");
        assert_string_equal(look(GPU).rule.boot_id, "b1");
        assert_int_equal(cordon_view(scene.cordon).n_by_rules, 1);
        assert_null(cordon_view(scene.cordon).by_persons);
        assert_string_equal(cordon_view(scene.cordon).by_rules,
                            "0000:41:00.0 cordoned by rule a since 1970-01-01 00:16 UTC: a line");
        publish();
        assert_int_equal(reserved(GPU, "VGPU"), 4);
        assert_int_equal(lift_by_rule(GPU, "b"), 0);
        assert_int_equal(lift_by_rule("0000:c1:00.0", "a"), 0);
        assert_int_equal(lift_by_rule(GPU, "a"), 1);
        assert_int_equal(lift_by_rule(GPU, "a"), 0);
        assert_true(look(GPU).lifted_usec == 0);
        publish();
        assert_int_equal(reserved(GPU, "VGPU"), 1);
        assert_int_equal(set_by_rule("0000:41:00.0", "a", "never", "b1"), 0);
        assert_int_equal(set(GPU, NULL), 0);
        assert_int_equal(cordon_view(scene.cordon).n_devices, 1);
        assert_null(cordon_view(scene.cordon).by_rules);
        assert_int_equal(lift_by_rule(GPU, "a"), 0);
        /* The time of the lift by a person is kept for each name of the device. */
        assert_int_equal(lift(GPU, NULL), 0);
        publish();
        publish();
        start();
        assert_false(look("0000:41:00.0").cordoned);
        assert_true(look("0000:41:00.0").lifted_usec == 2000 * USEC_PER_SEC);
        assert_true(look("0000:c1:00.0").lifted_usec == 0);
}

static void test_cordons_of_another_boot(void **state)
{
        CordonRule rule;

        assert_int_equal(set_by_rule(GPU, "a", "never", "b1"), 0);
        assert_int_equal(set("0000:c1:00.0", NULL), 0);
        assert_null(cordon_find_of_other_boot(scene.cordon, "b2", &rule));
        assert_int_equal(set_by_rule("0000:c1:00.0", "b", "boot", "b1"), 0);
        assert_null(cordon_find_of_other_boot(scene.cordon, "b1", &rule));
        assert_string_equal(cordon_find_of_other_boot(scene.cordon, "b2", &rule), "0000:c1:00.0");
        assert_string_equal(rule.name, "b");
        assert_int_equal(lift_by_rule("0000:c1:00.0", "b"), 1);
        assert_null(cordon_find_of_other_boot(scene.cordon, "b2", &rule));
}

/* Only the newest times are kept. */
static void test_many_lifts(void **state)
{
        for (int i = 0; i < 1030; i++) {
                assert_int_equal(set_by_rule(GPU, "a", "boot", "b1"), 0);
                assert_int_equal(lift(GPU, NULL), 0);
        }
        start();
        assert_true(look(GPU).lifted_usec == 2000 * USEC_PER_SEC);
}

static void test_providers_with_reserved_of_nova(void **state)
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

TEST_MAIN_AFTER(log_set_level(LOG_EMERG), begin, end, test_retired, test_owners,
                test_cordons_of_another_boot, test_many_lifts, test_providers_with_reserved_of_nova,
                test_host, test_members_of_sets, test_foreign_trait_stays,
                test_a_foreign_trait_that_is_removed_does_not_come_back, test_devices,
                test_a_name_of_two_providers, test_a_device_that_is_withheld,
                test_reserved_changes_under_a_cordon, test_first_document, test_bad_files,
                test_damaged_entries, test_an_unreadable_file_is_an_error,
                test_a_disk_that_cannot_be_written, test_the_trait_waits_for_its_record,
                test_a_failed_write_is_repeated, test_a_failed_lift_leaves_nothing)
