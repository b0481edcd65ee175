/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which names are asked for; the asking itself is in tests/unit/report/test-reporter.c. */

#include "report/publish/trait-lookup.h"

#include "tests/fixtures/tree.h"

static void add_words(StringSet *set, const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *word;

        while ((word = strtok_r(rest, " ", &rest)))
                assert_true(string_set_add(set, word) >= 0);
}

static void test_list(void **state)
{
        static const struct {
                const char *desired, *known, *missing, *asked;
        } cases[] = {
                { "", "", "", "" },
                { "host +HW_A +CUSTOM_B", "", "", "CUSTOM_B HW_A" },
                { "host +HW_A | a +HW_A +HW_B", "", "", "HW_A HW_B" },
                { "host +HW_A +HW_B", "HW_A", "", "HW_B" },
                { "host +HW_A", "HW_A", "", "" },
                /* What Placement lacked is not asked for in every cycle, … */
                { "host +HW_A +HW_OLD", "HW_A", "HW_OLD", "" },
                /* … but when a question goes out anyway. */
                { "host +HW_A +HW_OLD", "", "HW_OLD", "HW_A HW_OLD" },
                /* What is no trait would make the whole question a bad one. */
                { "host +lower +HW-A +HW_A", "", "", "HW_A" },
                { "host +lower,HW_B", "", "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *desired = make_tree(cases[i].desired);
                _cleanup_(string_set_done) StringSet asked = STRING_SET_INIT;
                _cleanup_(string_set_done) StringSet expected = STRING_SET_INIT;
                MirrorNames names = { 0 };

                add_words(&names.known_traits, cases[i].known);
                add_words(&names.missing_traits, cases[i].missing);
                add_words(&expected, cases[i].asked);
                assert_int_equal(trait_lookup_list(desired, &names, &asked), 0);
                if (!string_set_equal(&asked, &expected))
                        fail_msg("case %zu: %zu names", i, asked.n_items);
                string_set_done(&names.known_traits);
                string_set_done(&names.missing_traits);
        }
}

TEST_MAIN(test_list)
