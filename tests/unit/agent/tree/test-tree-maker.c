/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the order of the parts and the decisions of the tree maker. The driver reports 8 VCPU and,
 * unless the host is diskless, 50 DISK_GB. */

#include "agent/tree/tree-maker.h"

#include "base/log.h"
#include "base/text.h"
#include "drivers/update.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/fixtures/tree.h"

#define POOL "nfs DISK_GB=900 +MISC_SHARES_VIA_AGGREGATE @A"

static bool diskless, must_reshape, loses_gpus;

int provider_update(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                    ProviderTree *tree, const char *nodename, DriverReshape *reshape, Error *reterr)
{
        Provider *root = provider_tree_find_name(tree, nodename);
        Inventory disk = INVENTORY_DEFAULT(50);

        disk.reserved = 2;
        if (must_reshape && !(reshape && reshape->consumers))
                return DRIVER_RESHAPE_NEEDED;
        if (loses_gpus)
                (void)provider_remove_inventory(root, "VGPU");
        if (!diskless)
                assert_int_equal(provider_set_inventory(root, "DISK_GB", &disk), 0);
        return provider_set_inventory(root, "VCPU", &INVENTORY_DEFAULT(8));
}

/* Makes the tree of "host" from base, a tree in one line. */
static int make(TreeMaker *maker, const char *base, DriverReshape *reshape, MadeTree *ret,
                Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *remote = make_tree(base);
        static const HostConfig config;
        const Snapshot host = { .nodename = (char *)"host" };

        maker->root = make_uuid("host");
        maker->nodename = "host";
        if (!maker->config)
                maker->config = &config;
        return tree_maker_make(maker, &host, remote, true, reshape, ret, reterr);
}

static void assert_tree(ProviderTree *tree, const char *expected, const char *about)
{
        _cleanup_(provider_tree_freep) ProviderTree *other = make_tree(expected);

        if (!provider_tree_equal(tree, other))
                fail_msg("%s", about);
        provider_tree_free(tree);
}

static void test_local_disk(void **state)
{
        static const struct {
                const char *name;
                int option;
                const char *pools; /* NULL: not known */
                bool left_to_nova, present, unknown;
                uint64_t allocated, claimed;
                LocalDisk expected;
                const char *words; /* NULL: any */
                bool diskless;
        } rows[] = {
                { "no sharing provider", HOST_LOCAL_DISK_AUTO, NULL, .present = true },
                { "a pool, and nothing is allocated", HOST_LOCAL_DISK_AUTO, POOL, .present = true,
                  .expected = LOCAL_DISK_LEFT_OUT },
                { "a pool, and Placement never had it", HOST_LOCAL_DISK_AUTO, POOL, .unknown = true,
                  .expected = LOCAL_DISK_LEFT_OUT },
                { "allocated", HOST_LOCAL_DISK_AUTO, POOL, .present = true, .allocated = 7,
                  .expected = LOCAL_DISK_WITHHELD },
                { "unknown usage is usage", HOST_LOCAL_DISK_AUTO, POOL, .present = true,
                  .unknown = true, .expected = LOCAL_DISK_WITHHELD },
                { "claimed", HOST_LOCAL_DISK_AUTO, POOL, .present = true, .claimed = 3,
                  .expected = LOCAL_DISK_WITHHELD },
                { "claimed before the first publication", HOST_LOCAL_DISK_AUTO, POOL, .claimed = 3,
                  .expected = LOCAL_DISK_WITHHELD },
                { "a full pool counts", HOST_LOCAL_DISK_AUTO,
                  "nfs DISK_GB=9/9 +MISC_SHARES_VIA_AGGREGATE", .present = true,
                  .expected = LOCAL_DISK_LEFT_OUT },
                { "the second one has it", HOST_LOCAL_DISK_AUTO,
                  "ips IPV4_ADDRESS=9 +MISC_SHARES_VIA_AGGREGATE; " POOL, .present = true,
                  .expected = LOCAL_DISK_LEFT_OUT },
                { "another class is shared", HOST_LOCAL_DISK_AUTO,
                  "ips IPV4_ADDRESS=9 +MISC_SHARES_VIA_AGGREGATE", .present = true },
                { "a root that shares nothing", HOST_LOCAL_DISK_AUTO, "other DISK_GB=9",
                  .present = true },
                { "yes", HOST_LOCAL_DISK_YES, POOL, .present = true },
                { "no, without a pool", HOST_LOCAL_DISK_NO, NULL, .present = true,
                  .expected = LOCAL_DISK_LEFT_OUT },
                { "no, and it is allocated", HOST_LOCAL_DISK_NO, NULL, .present = true,
                  .allocated = 7, .expected = LOCAL_DISK_WITHHELD },
                { "the tree is nova-compute's", HOST_LOCAL_DISK_NO, POOL, .left_to_nova = true,
                  .present = true },
                { "a host without disks", HOST_LOCAL_DISK_NO, NULL, .claimed = 3, .diskless = true,
                  .expected = LOCAL_DISK_WITHHELD },
                { "words of a pool", HOST_LOCAL_DISK_AUTO, POOL, .expected = LOCAL_DISK_LEFT_OUT,
                  .words = "Local DISK_GB is not reported: provider nfs shares DISK_GB" },
                { "words of an allocation", HOST_LOCAL_DISK_AUTO, POOL, .present = true,
                  .allocated = 7, .expected = LOCAL_DISK_WITHHELD,
                  .words = "Local DISK_GB is withheld: provider nfs shares DISK_GB; "
                           "7 of it is still allocated" },
                { "words of unknown usage", HOST_LOCAL_DISK_AUTO, POOL, .present = true,
                  .unknown = true, .expected = LOCAL_DISK_WITHHELD,
                  .words = "Local DISK_GB is withheld: provider nfs shares DISK_GB; "
                           "its usage is unknown" },
                { "words of a claim", HOST_LOCAL_DISK_NO, NULL, .unknown = true, .claimed = 3,
                  .expected = LOCAL_DISK_WITHHELD,
                  .words = "Local DISK_GB is withheld: report_local_disk is no; "
                           "3 of it is still allocated" },
        };
        static const char *const expected[] = {
                [LOCAL_DISK_OFFERED] = "host VCPU=8 DISK_GB=50/2",
                [LOCAL_DISK_WITHHELD] = "host VCPU=8 DISK_GB=50/50",
                [LOCAL_DISK_LEFT_OUT] = "host VCPU=8",
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *pools =
                        rows[i].pools ? make_tree(rows[i].pools) : NULL;
                HostConfig config = { .report_local_disk = rows[i].option };
                TreeMaker maker = { .config = &config,
                                    .local_disk = { .owned = !rows[i].left_to_nova,
                                                    .allocated_known = !rows[i].unknown,
                                                    .allocated = rows[i].allocated,
                                                    .claimed = rows[i].claimed } };
                MadeTree made;

                tree_maker_note_pool(&maker, pools);
                diskless = rows[i].diskless;
                assert_int_equal(make(&maker, rows[i].present ? "host DISK_GB=50" : "host", NULL,
                                      &made, NULL),
                                 0);
                if (made.local_disk != rows[i].expected ||
                    (rows[i].words && strcmp(made.local_disk_words, rows[i].words) != 0) ||
                    !made.local_disk_words[0] != (made.local_disk == LOCAL_DISK_OFFERED))
                        fail_msg("%s: %d, %s", rows[i].name, (int)made.local_disk,
                                 made.local_disk_words);
                assert_int_equal(made.disk_was_there, rows[i].present);
                assert_tree(made.tree, diskless ? "host VCPU=8" : expected[made.local_disk],
                            rows[i].name);
        }
        diskless = false;
}

/* Until the sharing providers were read, DISK_GB stays as Placement has it. */
static void test_local_disk_while_pools_are_unread(void **state)
{
        static const struct {
                const char *base;
                int option;
                const char *pools; /* sharing providers of an earlier run; NULL: none */
                LocalDisk expected;
                const char *words;
        } rows[] = {
                { "host", HOST_LOCAL_DISK_AUTO, NULL, LOCAL_DISK_LEFT_OUT,
                  "Local DISK_GB is not reported: the sharing providers were not read yet" },
                { "host DISK_GB=50", HOST_LOCAL_DISK_AUTO, NULL, LOCAL_DISK_OFFERED, "" },
                { "host DISK_GB=50/50", HOST_LOCAL_DISK_AUTO, NULL, LOCAL_DISK_WITHHELD,
                  "Local DISK_GB is withheld: the sharing providers were not read yet; "
                  "its usage is unknown" },
                { "host DISK_GB=50", HOST_LOCAL_DISK_AUTO, POOL, LOCAL_DISK_WITHHELD,
                  "Local DISK_GB is withheld: provider nfs shares DISK_GB; its usage is unknown" },
                { "host", HOST_LOCAL_DISK_YES, NULL, LOCAL_DISK_OFFERED, "" },
                { "host", HOST_LOCAL_DISK_NO, NULL, LOCAL_DISK_LEFT_OUT,
                  "Local DISK_GB is not reported: report_local_disk is no" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *pools =
                        rows[i].pools ? make_tree(rows[i].pools) : NULL;
                HostConfig config = { .report_local_disk = rows[i].option };
                TreeMaker maker = { .config = &config,
                                    .local_disk = { .pools_unread = true, .owned = true } };
                MadeTree made;

                tree_maker_note_pool(&maker, pools);
                assert_int_equal(make(&maker, rows[i].base, NULL, &made, NULL), 0);
                if (made.local_disk != rows[i].expected ||
                    strcmp(made.local_disk_words, rows[i].words) != 0)
                        fail_msg("row %zu: %d, %s", i, (int)made.local_disk, made.local_disk_words);
                provider_tree_free(made.tree);
        }
}

/* base is the tree of Placement, or that of the claims before the start. */
static void test_base(void **state)
{
        static const struct {
                const char *base, *expected;
                int r;
                const char *words;
        } rows[] = {
                { "", "host VCPU=8 DISK_GB=50/2", 0, "" },
                { "host +MISC_SHARES_VIA_AGGREGATE; gpu<host VGPU=1; other VCPU=1; " POOL,
                  "host VCPU=8 DISK_GB=50/2 +MISC_SHARES_VIA_AGGREGATE; gpu<host VGPU=1; "
                  "other VCPU=1",
                  0, "" },
                { "host +CUSTOM_FOREIGN +CUSTOM_OWN",
                  "host VCPU=8 DISK_GB=50/2 +CUSTOM_FOREIGN +CUSTOM_OWN", 0, "" },
                { "above; host<above", NULL, -EINVAL, "is a child of \"above\"" },
        };
        char foreign[] = "CUSTOM_FOREIGN", *foreign_traits[] = { foreign, NULL };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                TreeMaker maker = { .foreign_traits = foreign_traits };
                Error error = ERROR_NULL;
                MadeTree made;

                assert_int_equal(make(&maker, rows[i].base, NULL, &made, &error), rows[i].r);
                assert_non_null(strstr(error.text, rows[i].words));
                if (rows[i].r == 0)
                        assert_tree(made.tree, rows[i].expected, rows[i].base);
        }
}

/* The trait of a cordon that is also listed as foreign follows the cordon, and without one it stays
 * as it is in base. */
static void test_a_foreign_trait_does_not_hide_a_cordon(void **state)
{
        char foreign[] = CORDON_TRAIT, *foreign_traits[] = { foreign, NULL };
        const char *const bases[] = { "host", "host +" CORDON_TRAIT };
        const Uuid root = make_uuid("host");

        for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
                _cleanup_(cordon_freep) Cordon *cordon = NULL;
                TreeMaker maker = { .foreign_traits = foreign_traits };

                assert_int_equal(cordon_new(&cordon, "/nonexistent", true, NULL), 0);
                maker.cordon = cordon;
                for (int cordoned = 0; cordoned < 2; cordoned++) {
                        MadeTree made;
                        Provider *host;

                        if (cordoned)
                                assert_int_equal(cordon_set(cordon, NULL, &root, "", "", "ann",
                                                            NULL, 1, NULL),
                                                 0);
                        assert_int_equal(make(&maker, bases[i], NULL, &made, NULL), 0);
                        host = provider_tree_find(made.tree, &root);
                        assert_int_equal(string_set_contains(&host->traits, CORDON_TRAIT),
                                         i == 1 || cordoned);
                        provider_tree_free(made.tree);
                }
        }
}

/* The root has this host's uuid and another name. */
static void test_a_root_of_another_name_is_refused(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *remote = make_tree("old");
        static const HostConfig config;
        const Snapshot host = { 0 };
        const TreeMaker maker = { .config = &config, .root = make_uuid("old"), .nodename = "host" };
        Error error = ERROR_NULL;
        MadeTree made;

        assert_int_equal(tree_maker_make(&maker, &host, remote, true, NULL, &made, &error),
                         -EEXIST);
        assert_non_null(strstr(error.text, "is named \"old\" in Placement"));
        assert_non_null(strstr(error.text, "stop the agent, and remove compute_id"));
}

/* Before and in a reshape the tree can have capacity that the host lost, so it stays reserved. The
 * former amount comes back with the host's capacity, also if reshape_image_open() opened it. */
static void test_a_reshape_opens_no_retained_inventory(void **state)
{
        static const struct {
                const char *about;
                bool must_reshape, moves, loses_gpus;
                const char *base, *expected;
                bool ends; /* the retention */
        } rows[] = {
                { "before", true, false, false, "host VGPU=4/4", "host VGPU=4/4", false },
                { "before, again", true, false, false, "host VGPU=4/4", "host VGPU=4/4", false },
                { "in it", true, true, false, "host VGPU=4/4", "host VGPU=4/4 VCPU=8 DISK_GB=50/2",
                  false },
                { "after it", false, false, false, "host VGPU=4/4",
                  "host VGPU=4/1 VCPU=8 DISK_GB=50/2", true },
                { "after it, open and lost", false, false, true, "host VGPU=5/4",
                  "host VGPU=5/5 VCPU=8 DISK_GB=50/2", false },
                { "after it, open and not lost", false, false, false, "host VGPU=5/4",
                  "host VGPU=5/1 VCPU=8 DISK_GB=50/2", true },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(allocations_freep) Allocations *guests = NULL;
        const Uuid root = make_uuid("host");
        _cleanup_free_ char *file = text_format(
                "{\"format\": \"compute-agent-retained/1\", \"inventories\": [{\"provider\": \"%s\", "
                "\"name\": \"host\", \"class\": \"VGPU\", \"reserved\": 1, \"active\": true}]}",
                root.text);
        TreeMaker maker = { 0 };

        log_set_level(LOG_EMERG);
        assert_int_equal(allocations_new(&guests), 0);
        fixture_hold(&guests, make_uuid("guest"), root, "VGPU", 1);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(retained_freep) Retained *retained = NULL;
                _cleanup_free_ char *text = NULL;
                DriverReshape reshape = { .consumers = guests };
                MadeTree made;

                scratch_write(folder, "retained.json", file);
                assert_int_equal(retained_new(&retained, folder, true, NULL), 0);
                maker.retained = retained;
                must_reshape = rows[i].must_reshape;
                loses_gpus = rows[i].loses_gpus;
                assert_int_equal(
                        make(&maker, rows[i].base, rows[i].moves ? &reshape : NULL, &made, NULL),
                        0);
                assert_tree(made.tree, rows[i].expected, rows[i].about);
                text = retained_describe(retained, NULL);
                assert_int_equal(!text[0], rows[i].ends);
        }
        must_reshape = loses_gpus = false;
}

/* Writes provider.yaml: an entry for the host, or a file without entries. */
static void write_entry(const char *folder, bool has_entry)
{
        scratch_write(folder, "provider.yaml",
                      has_entry ? "meta: {schema_version: '1.0'}\n"
                                  "providers: [{identification: {name: host}, inventories:"
                                  " {additional: [CUSTOM_KEY: {total: 4, reserved: 1}]}}]\n"
                                : "meta: {schema_version: '1.0'}\n");
}

/* The tree waits for a reshape. An entry of provider.yaml is removed while its inventory is in use,
 * and comes back. */
static void test_an_entry_that_comes_back_ends_a_retention(void **state)
{
        static const struct {
                const char *about;
                bool has_entry;
                const char *base, *expected, *retained;
        } rows[] = {
                { "configured", true, "host", "host CUSTOM_KEY=4/1", "" },
                { "removed", false, "host CUSTOM_KEY=4/1", "host CUSTOM_KEY=4/4",
                  "CUSTOM_KEY of host (1 used by consumer " },
                { "removed, again", false, "host CUSTOM_KEY=4/4", "host CUSTOM_KEY=4/4",
                  "CUSTOM_KEY of host (1 used by consumer " },
                { "back", true, "host CUSTOM_KEY=4/4", "host CUSTOM_KEY=4/1", "" },
                { "back, again", true, "host CUSTOM_KEY=4/1", "host CUSTOM_KEY=4/1", "" },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(provider_config_freep) ProviderConfig *entries = NULL;
        _cleanup_(retained_freep) Retained *retained = NULL;
        const Uuid root = make_uuid("host");
        const Uuid *asked;
        TreeMaker maker = { 0 };
        bool is_answered;
        size_t n;

        log_set_level(LOG_EMERG);
        assert_int_equal(retained_new(&retained, folder, true, NULL), 0);
        assert_int_equal(provider_config_new(&entries, folder, folder, "", true, NULL), 0);
        maker.retained = retained;
        maker.provider_config = entries;
        must_reshape = true;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                Allocations *guests = NULL;
                _cleanup_free_ char *text = NULL;
                MadeTree made;

                assert_int_equal(allocations_new(&guests), 0);
                fixture_hold(&guests, make_uuid("guest"), root, "CUSTOM_KEY", 1);
                assert_int_equal(retained_want(retained, &root), 0);
                assert_int_equal(retained_ask(retained, &asked, &n, &is_answered), 0);
                retained_set_holders(retained, guests);
                write_entry(folder, rows[i].has_entry);
                assert_int_equal(make(&maker, rows[i].base, NULL, &made, NULL), 0);
                assert_tree(made.tree, rows[i].expected, rows[i].about);
                text = retained_describe(retained, NULL);
                if (strncmp(text, rows[i].retained, strlen(rows[i].retained)) != 0 ||
                    (!rows[i].retained[0] && text[0]))
                        fail_msg("%s: %s", rows[i].about, text);
        }
        must_reshape = false;
}

#define NIC "host_0000:06:00.0"

/* A missing device that is in use in Placement only stays as Placement has it, and expected, also
 * in the tree of a reshape. */
static void test_a_reshape_keeps_a_missing_device(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(retained_freep) Retained *retained = NULL;
        _cleanup_(device_watch_freep) DeviceWatch *watch = NULL;
        _cleanup_(allocations_freep) Allocations *guests = NULL;
        const Uuid root = make_uuid("host"), nic = make_uuid(NIC);
        _cleanup_free_ char *file = text_format(
                "{\"format\": \"" DEVICE_LEDGER_FORMAT "\", \"devices\": [{\"name\": \"" NIC
                "\", \"provider\": \"%s\", "
                "\"parent\": \"%s\", \"class\": \"CUSTOM_NIC\", \"total\": 1, \"reserved\": 0, "
                "\"traits\": [\"CUSTOM_OLD\"], \"members\": [], \"boot_id\": \"%s\", "
                "\"config\": \"%s\", \"missing\": true, \"withheld\": true}]}",
                nic.text, root.text, root.text, root.text);
        const HostConfig config = { 0 };
        DriverReshape reshape = { 0 };
        TreeMaker maker = { 0 };
        MadeTree made;

        assert_int_equal(allocations_new(&guests), 0);
        scratch_write(folder, "devices.json", file);
        assert_int_equal(retained_new(&retained, folder, true, NULL), 0);
        assert_int_equal(device_watch_new(&watch, folder, &config, NULL, 0, true, NULL), 0);
        maker.retained = retained;
        maker.device_watch = watch;
        reshape.consumers = guests;
        assert_int_equal(make(&maker, "host; " NIC "<host CUSTOM_NIC=1/1/1/1/1/2.0 +CUSTOM_NEW @A",
                              &reshape, &made, NULL),
                         0);
        assert_int_equal(watch->ledger.n_devices, 1);
        assert_tree(made.tree,
                    "host VCPU=8 DISK_GB=50/2; " NIC
                    "<host CUSTOM_NIC=1/1/1/1/1/2.0 +CUSTOM_NEW @A",
                    "reshape");
}

#define GPU  "cn1_pci_0000_41_00_0"
#define CARD "cn1_0000:81:00.0"

/* The claims get the larger reserved amounts. Nova-compute gets the amounts of the card only,
 * larger or smaller. */
static void test_trees_of_nova(void **state)
{
        static const struct {
                const char *remote, *wanted, *to_claim, *to_send;
        } rows[] = {
                { "cn1 MEMORY_MB=1000/512; " GPU "<cn1 VGPU=4/0; " CARD "<cn1 CUSTOM_CARD=1/0",
                  "cn1 MEMORY_MB=2000/100; " GPU "<cn1 VGPU=4/4; " CARD "<cn1 CUSTOM_CARD=1/1",
                  "cn1 MEMORY_MB=1000/512; " GPU "<cn1 VGPU=4/4; " CARD "<cn1 CUSTOM_CARD=1/1",
                  "cn1 MEMORY_MB=1000/512; " GPU "<cn1 VGPU=4/0; " CARD "<cn1 CUSTOM_CARD=1/1" },
                { "cn1; " CARD "<cn1 CUSTOM_CARD=1/1", "cn1; " CARD "<cn1 CUSTOM_CARD=1/0",
                  "cn1; " CARD "<cn1 CUSTOM_CARD=1/1", "cn1; " CARD "<cn1 CUSTOM_CARD=1/0" },
                { "", "cn1 MEMORY_MB=2000/100", "cn1 MEMORY_MB=2000/100", "" },
                { "cn1 VCPU=4/0; " POOL, "cn1 VCPU=4/0", "cn1 VCPU=4/0", "cn1 VCPU=4/0; " POOL },
        };
        const Uuid root = make_uuid("cn1");

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *remote = make_tree(rows[i].remote),
                                                            *wanted = make_tree(rows[i].wanted);
                ProviderTree *tree;

                assert_int_equal(nova_tree_to_claim(remote, wanted, &root, &tree), 0);
                assert_tree(tree, rows[i].to_claim, "to claim");
                assert_int_equal(nova_tree_to_send(remote, wanted, &root, &tree), 0);
                assert_tree(tree, rows[i].to_send, "to send");
        }
}

TEST_MAIN(test_local_disk, test_local_disk_while_pools_are_unread, test_base,
          test_a_foreign_trait_does_not_hide_a_cordon, test_a_root_of_another_name_is_refused,
          test_a_reshape_opens_no_retained_inventory,
          test_an_entry_that_comes_back_ends_a_retention, test_a_reshape_keeps_a_missing_device,
          test_trees_of_nova)
