/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/history.h"
#include "tests/unit/test.h"

#define SEC USEC_PER_SEC
#define A   "0000:41:00.0"
#define B   "0000:81:00.0"

static HealthRule once = { .count = 1, .within_usec = 60 * SEC };
static HealthRule thrice = { .count = 3, .within_usec = 60 * SEC };

static void add(HealthHistory *history, const HealthRule *rule, const char *address,
                uint64_t seconds, bool quiet)
{
        const HealthCase new_case = { .rule = rule,
                                      .address = address,
                                      .line = "line",
                                      .boot_id = "boot",
                                      .usec = seconds * SEC,
                                      .count = rule->count,
                                      .quiet = quiet };

        assert_int_equal(health_history_add(history, &new_case), 0);
}

/* Three cases count if they are within a minute. Quiet cases count, but cause no finding. */
static void test_counts(void **state)
{
        static const struct {
                int times[6]; /* in seconds; negative: quiet; 0: the end */
                int first;    /* first case of the finding; 0: none */
        } cases[] = {
                { { 100, 110 }, 0 },
                { { 100, 110, 120 }, 100 },
                { { 100, 110, 161 }, 0 },
                { { 100, 110, 160 }, 100 },
                { { 100, 150, 170, 190 }, 150 },
                { { -100, -110, 120 }, 100 },
                { { -100, -110, -120 }, 0 },
                { { -100, -110, -120, 130 }, 110 },
                /* The clock was set back. */
                { { 1000, 1010, 20 }, 1000 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(health_history_freep) HealthHistory *history = NULL;
                HealthCases found = { 0 };
                bool any;

                assert_int_equal(health_history_new(&history), 0);
                for (size_t j = 0; cases[i].times[j] != 0; j++)
                        add(history, &thrice, A, (uint64_t)abs(cases[i].times[j]),
                            cases[i].times[j] < 0);
                any = health_history_take(history, 1, &found);
                if (any != (cases[i].first > 0) ||
                    (any && found.first_usec != (uint64_t)cases[i].first * SEC))
                        fail_msg("case %zu", i);
        }
}

/* A finding is repeated only for new cases, and not before HEALTH_REPEAT_USEC. */
static void test_repeats(void **state)
{
        _cleanup_(health_history_freep) HealthHistory *history = NULL;
        HealthCases found;

        assert_int_equal(health_history_new(&history), 0);
        assert_true(health_history_due_in_usec(history, 100 * SEC) == UINT64_MAX);
        add(history, &once, A, 1, false);
        add(history, &once, B, 1, false);
        assert_true(health_history_due_in_usec(history, 100 * SEC) == 0);
        assert_true(health_history_take(history, 100 * SEC, &found));
        assert_string_equal(found.address, A);
        assert_true(health_history_take(history, 100 * SEC, &found));
        assert_string_equal(found.address, B);
        assert_false(health_history_take(history, 200 * SEC, &found));
        add(history, &once, A, 2, false);
        add(history, &once, A, 3, false);
        assert_false(health_history_take(history, 100 * SEC + SEC, &found));
        assert_true(health_history_due_in_usec(history, 101 * SEC) == SEC);
        assert_true(health_history_take(history, 102 * SEC, &found));
        assert_true(found.last_usec == 3 * SEC);
        /* A recovery removes a finding that was not taken. */
        add(history, &once, A, 4, false);
        health_history_forget(history, &once, A);
        health_history_forget(history, &thrice, A);
        assert_false(health_history_take(history, 200 * SEC, &found));
        add(history, &once, A, 5, false);
        assert_true(health_history_take(history, 200 * SEC, &found));
}

/* A flood of addresses pushes out the oldest pairs, and the memory stays. */
static void test_flood(void **state)
{
        _cleanup_(health_history_freep) HealthHistory *history = NULL;
        char address[PCI_ADDRESS_SIZE];
        HealthCases found;
        size_t n = 0;

        assert_int_equal(health_history_new(&history), 0);
        add(history, &once, A, 1, true);
        for (unsigned i = 0; i < 3 * HEALTH_TRACKS_MAX; i++) {
                snprintf(address, sizeof(address), "%04x:00:00.0", i);
                add(history, &once, address, 1, false);
        }
        while (health_history_take(history, 1, &found))
                n++;
        assert_int_equal(n, HEALTH_TRACKS_MAX);
        assert_string_equal(found.line, "line");
}

TEST_MAIN(test_counts, test_repeats, test_flood)
