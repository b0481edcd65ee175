/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/clock-watch.h"
#include "tests/unit/test.h"

#define SEC  USEC_PER_SEC
#define YEAR (365 * 86400 * SEC)
#define NOW  (50 * YEAR)

static void test_jumps(void **state)
{
        static const struct {
                const char *about;
                int64_t real, boot; /* that went by between two looks, by the one and the other */
                int64_t by;
        } cases[] = {
                { "nothing", 60 * SEC, 60 * SEC, 0 },
                { "corrected a bit", 69 * SEC, 60 * SEC, 0 },
                { "corrected a bit back", 51 * SEC, 60 * SEC, 0 },
                { "a sleep of a day", 86400 * SEC, 86400 * SEC, 0 },
                { "a year forward", YEAR + 60 * SEC, 60 * SEC, YEAR },
                { "a year back", 60 * SEC - (int64_t)YEAR, 60 * SEC, -(int64_t)YEAR },
                { "ten seconds", 70 * SEC, 60 * SEC, 10 * SEC },
                { "no time at all", 0, 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClockWatch watch = { 0 };

                assert_int_equal(clock_watch_look(&watch, NOW, SEC).by_usec, 0);
                if (clock_watch_look(&watch, NOW + (uint64_t)cases[i].real,
                                     SEC + (uint64_t)cases[i].boot)
                            .by_usec != cases[i].by)
                        fail_msg("%s", cases[i].about);
                /* told once */
                assert_int_equal(clock_watch_look(&watch, NOW + (uint64_t)cases[i].real + SEC,
                                                  SEC + (uint64_t)cases[i].boot + SEC)
                                         .by_usec,
                                 0);
        }
}

static void test_which_moments_move(void **state)
{
        static const struct {
                int64_t by;
                int64_t at; /* after NOW, when the clock was looked at; a minute has passed */
                bool before;
        } cases[] = {
                { YEAR, -100 * (int64_t)SEC, true },
                { YEAR, 30 * SEC, true },
                { YEAR, YEAR + 30 * SEC, false },
                { -(int64_t)YEAR, 30 * SEC, true },
                { -(int64_t)YEAR, -(int64_t)YEAR + 30 * (int64_t)SEC, false },
                { -(int64_t)YEAR, -2 * (int64_t)YEAR, true },
                { -3600 * (int64_t)SEC, 0, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClockWatch watch = { NOW, SEC };
                const ClockJump jump =
                        clock_watch_look(&watch, NOW + 60 * SEC + (uint64_t)cases[i].by, 61 * SEC);
                uint64_t at = NOW + (uint64_t)cases[i].at;

                assert_int_equal(jump.by_usec, cases[i].by);
                assert_int_equal(clock_jump_is_before(&jump, at), cases[i].before);
                assert_int_equal(clock_jump_move(&jump, at), at + (uint64_t)cases[i].by);
        }
}

static void test_ends_of_time(void **state)
{
        const ClockJump forward = { .by_usec = INT64_MAX }, back = { .by_usec = -5 };

        assert_int_equal(clock_jump_move(&forward, 10), INT64_MAX);
        assert_int_equal(clock_jump_move(&forward, UINT64_MAX), INT64_MAX);
        assert_int_equal(clock_jump_move(&back, 3), 1);
        assert_int_equal(clock_jump_move(&back, 5), 1);
}

TEST_MAIN(test_jumps, test_which_moments_move, test_ends_of_time)
