/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle-pace.h"

#include <inttypes.h>

#include "tests/test.h"

#define SECONDS USEC_PER_SEC

/* Randomness is the kernel's: what is drawn is drawn often, and held against its bounds. */
static void test_the_next_pause(void **state)
{
        static const struct {
                const char *about;
                uint64_t interval;
                bool failed;
                uint64_t retry_after, low, high;
        } cases[] = {
                { "around the interval", 60 * SECONDS, false, 0, 54 * SECONDS, 66 * SECONDS },
                { "what a server asked for is for failures", 60 * SECONDS, false, 300 * SECONDS,
                  54 * SECONDS, 66 * SECONDS },
                { "no interval", UINT64_MAX, false, 0, UINT64_MAX, UINT64_MAX },
                { "failed", 60 * SECONDS, true, 0, CYCLE_RETRY_FIRST_USEC, 60 * SECONDS },
                { "failed, and no interval", UINT64_MAX, true, 0, CYCLE_RETRY_FIRST_USEC,
                  CYCLE_RETRY_MAX_USEC },
                { "failed, and a short interval", SECONDS / 2, true, 0, CYCLE_RETRY_FIRST_USEC,
                  CYCLE_RETRY_FIRST_USEC },
                { "the server asks for patience", 60 * SECONDS, true, 100 * SECONDS, 100 * SECONDS,
                  150 * SECONDS },
                { "for too much of it", 60 * SECONDS, true, UINT64_MAX, CYCLE_RETRY_AFTER_MAX_USEC,
                  CYCLE_RETRY_AFTER_MAX_USEC + CYCLE_RETRY_AFTER_MAX_USEC / 2 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CyclePace pace;

                cycle_pace_init(&pace, cases[i].interval, 0, 0);
                for (int j = 0; j < 100; j++) {
                        uint64_t pause =
                                cycle_pace_next_usec(&pace, cases[i].failed, cases[i].retry_after);

                        if (pause < cases[i].low || pause > cases[i].high)
                                fail_msg("%s: %" PRIu64, cases[i].about, pause);
                }
        }
}

/* At most three times the last pause, from the first one again after a success. */
static void test_failures_in_a_row(void **state)
{
        CyclePace pace;
        uint64_t last = 0;

        cycle_pace_init(&pace, 60 * SECONDS, 0, 0);
        for (int i = 0; i < 100; i++) {
                uint64_t pause = cycle_pace_next_usec(&pace, true, 0);

                assert_true(pause <= 3 * MAX(last, CYCLE_RETRY_FIRST_USEC));
                last = pause;
        }
        (void)cycle_pace_next_usec(&pace, false, 0);
        assert_true(cycle_pace_retry_usec(&pace) <= 3 * CYCLE_RETRY_FIRST_USEC);
}

static void test_placement_is_left_alone_after_the_start(void **state)
{
        CyclePace pace;

        cycle_pace_init(&pace, 60 * SECONDS, 30 * SECONDS, 1000 * SECONDS);
        assert_true(pace.start_delay_usec <= 30 * SECONDS);
        assert_int_equal(cycle_pace_early_usec(&pace, 1000 * SECONDS), pace.start_delay_usec);
        assert_int_equal(cycle_pace_early_usec(&pace, 1000 * SECONDS + pace.start_delay_usec), 0);
        assert_int_equal(cycle_pace_early_usec(&pace, UINT64_MAX), 0);
        cycle_pace_init(&pace, 60 * SECONDS, 0, 1000 * SECONDS);
        assert_int_equal(cycle_pace_early_usec(&pace, 1000 * SECONDS), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_next_pause),
                cmocka_unit_test(test_failures_in_a_row),
                cmocka_unit_test(test_placement_is_left_alone_after_the_start),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
