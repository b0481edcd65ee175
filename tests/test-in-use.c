/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/in-use.h"

#include "report/outcome.h"
#include "tests/report-fixture.h"

static Mirror *mirror_of(const char *text, int64_t generation)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = fixture_tree(text);
        Mirror *mirror;

        assert_int_equal(mirror_new(&mirror), 0);
        for (size_t i = 0; i < tree->n_providers; i++) {
                assert_int_equal(mirror_add(mirror, tree->providers[i], 0), 0);
                for (int part = 0; part < _MIRROR_PART_MAX; part++)
                        assert_int_equal(mirror_write(mirror, tree->providers[i], (MirrorPart)part,
                                                      generation),
                                         0);
        }
        return mirror;
}

/* "a PCPU=1" was wanted and refused, when Placement had "a VGPU=4 PCPU=1" at generation 7. */
static void test_table(void **state)
{
        static const struct {
                const char *mirror, *desired;
                int64_t generation;
                int result;
                const char *sent;
        } cases[] = {
                { "a VGPU=4 PCPU=1", "a PCPU=1", 7, REPORT_E_IN_USE, "a VGPU=4 PCPU=1" },
                /* Somebody moved: it may be free now. */
                { "a VGPU=4 PCPU=1", "a PCPU=1", 8, 0, "a PCPU=1" },
                { "a VGPU=4 PCPU=1", "a PCPU=1", -1, 0, "a PCPU=1" },
                /* Something else is wanted. */
                { "a VGPU=4 PCPU=1", "a PCPU=2", 7, 0, "a PCPU=2" },
                { "a VGPU=4 PCPU=1", "a VGPU=4 PCPU=1", 7, 0, "a VGPU=4 PCPU=1" },
                /* It is gone, here or there. */
                { "a VGPU=4 PCPU=1", "", 7, 0, "" },
                { "", "a PCPU=1", 7, 0, "a PCPU=1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *refused = fixture_tree("a PCPU=1");
                _cleanup_(provider_tree_freep) ProviderTree *desired =
                        fixture_tree(cases[i].desired);
                _cleanup_(provider_tree_freep) ProviderTree *sent = fixture_tree(cases[i].sent);
                _cleanup_(mirror_freep) Mirror *mirror =
                        mirror_of(cases[i].mirror, cases[i].generation);
                _cleanup_(in_use_done) InUse in_use = IN_USE_INIT;
                Error error = ERROR_NULL;

                assert_int_equal(in_use_add(&in_use, refused->providers[0], 6, "old"), 0);
                assert_int_equal(in_use_add(&in_use, refused->providers[0], 7, "a: VGPU"), 0);
                assert_int_equal(in_use.n_entries, 1);
                if (in_use_apply(&in_use, mirror, desired, &error) != cases[i].result ||
                    !provider_tree_equal(desired, sent))
                        fail_msg("case %zu", i);
                assert_int_equal(in_use.n_entries, cases[i].result != 0);
                if (cases[i].result != 0)
                        assert_string_equal(error.text, "a: VGPU");
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
