/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/plan-batch.h"

#include "tests/fixtures/report.h"

static void test_table(void **state)
{
        static const struct {
                const char *mirror, *desired;
                bool takes;
        } cases[] = {
                { NULL, "a VGPU=4", true },
                { NULL, "a", false },
                { "a", "a VGPU=4", true },
                { "a VGPU=4", "a VGPU=2", true }, /* below what is used is allowed, facts E4 */
                { "a VGPU=4", "a VGPU=4 PCPU=1", true },
                { "a VGPU=4", "a PCPU=1", false },
                { "a VGPU=4", "a", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *mirror =
                        fixture_tree(cases[i].mirror ? cases[i].mirror : "");
                _cleanup_(provider_tree_freep) ProviderTree *desired =
                        fixture_tree(cases[i].desired);
                const Provider *old = cases[i].mirror ? mirror->providers[0] : NULL;

                if (plan_batch_takes(desired->providers[0], old) != cases[i].takes)
                        fail_msg("case %zu", i);
        }
}

/* PUT refuses it, the reshaper does not (facts E6). */
static void test_more_reserved_than_there_is(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *desired = fixture_tree("a VGPU=4 PCPU=1");
        Inventory *inventory = provider_find_inventory(desired->providers[0], "VGPU");

        inventory->reserved = 4;
        assert_true(plan_batch_takes(desired->providers[0], NULL));
        inventory->reserved = 5;
        assert_false(plan_batch_takes(desired->providers[0], NULL));
}

TEST_MAIN(test_table, test_more_reserved_than_there_is)
