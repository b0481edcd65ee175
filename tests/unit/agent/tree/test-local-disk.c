/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/local-disk.h"
#include "tests/fixtures/tree.h"
#include "tests/unit/test.h"

#define POOL "nfs DISK_GB=900 +MISC_SHARES_VIA_AGGREGATE @A"

static void test_decision(void **state)
{
        static const struct {
                const char *name;
                int option;
                const char *pools; /* NULL: none is known */
                bool left_to_nova, present, unknown;
                uint64_t allocated, claimed;
                LocalDisk expected;
        } rows[] = {
                { "no sharing provider", HOST_LOCAL_DISK_AUTO, NULL, .present = true },
                { "a pool, and nothing is allocated", HOST_LOCAL_DISK_AUTO, POOL, .present = true,
                  .expected = LOCAL_DISK_LEFT_OUT },
                { "a pool, and Placement never had it", HOST_LOCAL_DISK_AUTO, POOL, .unknown = true,
                  .expected = LOCAL_DISK_LEFT_OUT },
                { "allocated", HOST_LOCAL_DISK_AUTO, POOL, .present = true, .allocated = 1,
                  .expected = LOCAL_DISK_WITHHELD },
                { "unknown usage is usage", HOST_LOCAL_DISK_AUTO, POOL, .present = true,
                  .unknown = true, .expected = LOCAL_DISK_WITHHELD },
                { "claimed", HOST_LOCAL_DISK_AUTO, POOL, .present = true, .claimed = 1,
                  .expected = LOCAL_DISK_WITHHELD },
                { "claimed before the first publication", HOST_LOCAL_DISK_AUTO, POOL, .claimed = 1,
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
                  .allocated = 1, .expected = LOCAL_DISK_WITHHELD },
                { "the tree is nova-compute's", HOST_LOCAL_DISK_NO, POOL, .left_to_nova = true,
                  .present = true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *pools =
                        rows[i].pools ? make_tree(rows[i].pools) : NULL;
                LocalDiskFacts facts = {
                        .owned = !rows[i].left_to_nova,
                        .allocated_known = !rows[i].unknown,
                        .allocated = rows[i].allocated,
                        .claimed = rows[i].claimed,
                };

                local_disk_note_pool(&facts, pools);
                if (local_disk_decide(rows[i].option, rows[i].present, &facts) != rows[i].expected)
                        fail_msg("%s", rows[i].name);
        }
}

static void test_effect_on_the_root(void **state)
{
        static const struct {
                LocalDisk decision;
                const char *before, *after;
        } rows[] = {
                { LOCAL_DISK_OFFERED, "host VCPU=8 DISK_GB=50/2", "host VCPU=8 DISK_GB=50/2" },
                { LOCAL_DISK_WITHHELD, "host VCPU=8 DISK_GB=50/2", "host VCPU=8 DISK_GB=50/50" },
                { LOCAL_DISK_LEFT_OUT, "host VCPU=8 DISK_GB=50/2", "host VCPU=8" },
                { LOCAL_DISK_WITHHELD, "host VCPU=8", "host VCPU=8" },
                { LOCAL_DISK_LEFT_OUT, "host VCPU=8", "host VCPU=8" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(rows[i].before),
                                                            *after = make_tree(rows[i].after);

                local_disk_apply(rows[i].decision, tree->providers[0]);
                if (!provider_tree_equal(tree, after))
                        fail_msg("row %zu", i);
        }
}

static void test_pools_are_added_once(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host VCPU=8"),
                                                    *pools = make_tree(POOL "; host#2 DISK_GB=1"),
                                                    *expected = make_tree("host VCPU=8; " POOL);

        assert_int_equal(local_disk_add_pools(pools, tree), 0);
        assert_int_equal(local_disk_add_pools(pools, tree), 0);
        assert_true(provider_tree_equal(tree, expected));
}

static void test_pools_of_before_the_start_are_dropped(void **state)
{
        _cleanup_(provider_tree_freep)
                ProviderTree *tree = make_tree("host +MISC_SHARES_VIA_AGGREGATE; gpu<host VGPU=1; "
                                               "other VCPU=1; " POOL),
                             *expected = make_tree("host +MISC_SHARES_VIA_AGGREGATE; "
                                                   "gpu<host VGPU=1; other VCPU=1");
        const Uuid root = make_uuid("host");

        local_disk_drop_pools(tree, &root);
        assert_true(provider_tree_equal(tree, expected));
}

static void test_words(void **state)
{
        const LocalDiskFacts held = { .pool = "nfs", .allocated_known = true, .allocated = 7 },
                             unknown = { .pool = "nfs" }, none = { .claimed = 3 };
        char text[LOCAL_DISK_TEXT_MAX];

        assert_string_equal(local_disk_describe(LOCAL_DISK_OFFERED, &held, text, sizeof(text)), "");
        assert_string_equal(local_disk_describe(LOCAL_DISK_LEFT_OUT, &held, text, sizeof(text)),
                            "Local DISK_GB is not reported: provider nfs shares DISK_GB");
        assert_string_equal(
                local_disk_describe(LOCAL_DISK_WITHHELD, &held, text, sizeof(text)),
                "Local DISK_GB is withheld: provider nfs shares DISK_GB; 7 of it is still allocated");
        assert_string_equal(
                local_disk_describe(LOCAL_DISK_WITHHELD, &unknown, text, sizeof(text)),
                "Local DISK_GB is withheld: provider nfs shares DISK_GB; its usage is not known");
        assert_string_equal(
                local_disk_describe(LOCAL_DISK_WITHHELD, &none, text, sizeof(text)),
                "Local DISK_GB is withheld: report_local_disk is no; 3 of it is still allocated");
}

TEST_MAIN(test_decision, test_effect_on_the_root, test_pools_are_added_once,
          test_pools_of_before_the_start_are_dropped, test_words)
