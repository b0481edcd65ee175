/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The pace of cycles. Values are random, so each is drawn often and compared with its bounds. */

#include "agent/cycle/pace.h"

#include <inttypes.h>

#include "tests/unit/test.h"

#define SECONDS USEC_PER_SEC

/* The pause after a number of failures. The kernel supplies the randomness, so each case is drawn
 * 100 times. */
static void test_pause_after_failures(void **state)
{
        static const struct {
                const char *about;
                uint64_t interval;
                unsigned n_failures;
                uint64_t retry_after, low, high;
        } cases[] = {
                { "well", 60 * SECONDS, 0, 0, 0, 0 },
                { "what a server asks for is for failures", 60 * SECONDS, 0, 300 * SECONDS, 0, 0 },
                { "it may have been a restart", 60 * SECONDS, 1, 0, 2 * SECONDS, 6 * SECONDS },
                { "an outage", 60 * SECONDS, 2, 0, 60 * SECONDS, 120 * SECONDS },
                { "a long one", 60 * SECONDS, 50, 0, 60 * SECONDS, 120 * SECONDS },
                { "no interval", UINT64_MAX, 3, 0, 60 * SECONDS, 120 * SECONDS },
                { "a short interval", SECONDS / 2, 1, 0, 2 * SECONDS, 2 * SECONDS },
                { "a long interval", 7200 * SECONDS, 3, 0, 600 * SECONDS, 1200 * SECONDS },
                { "the server asks for patience", 60 * SECONDS, 1, 100 * SECONDS, 100 * SECONDS,
                  150 * SECONDS },
                { "for less than we would wait", 60 * SECONDS, 3, SECONDS, 60 * SECONDS,
                  120 * SECONDS },
                { "for too much of it", 60 * SECONDS, 1, UINT64_MAX, CYCLE_RETRY_AFTER_MAX_USEC,
                  CYCLE_RETRY_AFTER_MAX_USEC + CYCLE_RETRY_AFTER_MAX_USEC / 2 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (int j = 0; j < 100; j++) {
                        CyclePace pace;
                        uint64_t quiet;

                        pace = (CyclePace){ .interval_usec = cases[i].interval };
                        for (unsigned k = 1; k < cases[i].n_failures; k++)
                                cycle_pace_note_placement(&pace, true, 0, 0);
                        cycle_pace_note_placement(&pace, cases[i].n_failures > 0,
                                                  cases[i].retry_after, 9999 * SECONDS);
                        quiet = cycle_pace_quiet_usec(&pace, 0, true, 9999 * SECONDS);
                        if (quiet < cases[i].low || quiet > cases[i].high)
                                fail_msg("%s: %" PRIu64, cases[i].about, quiet);
                }
}

/* A pause that a server asked for stays in force during later failures, until a success. */
static void test_requested_pause_outlasts_failures(void **state)
{
        CyclePace pace = { .interval_usec = 60 * SECONDS };

        cycle_pace_note_placement(&pace, true, 300 * SECONDS, 0);
        cycle_pace_note_placement(&pace, true, 0, 10 * SECONDS);
        assert_true(cycle_pace_quiet_usec(&pace, 0, true, 299 * SECONDS) > 0);
        cycle_pace_note_placement(&pace, false, 0, 20 * SECONDS);
        assert_int_equal(cycle_pace_quiet_usec(&pace, 0, true, 20 * SECONDS), 0);
        cycle_pace_note_placement(&pace, true, 0, 80 * SECONDS);
        assert_true(cycle_pace_quiet_usec(&pace, 0, true, 80 * SECONDS) <= 6 * SECONDS);
}

#define HOURS (3600 * SECONDS)

/* Returns the hour of the first automatic full read after from_usec, by trying 48 hours. */
static uint64_t find_full_read(CyclePace *pace, uint64_t from_usec)
{
        for (uint64_t hour = 1; hour <= 48; hour++)
                if (cycle_pace_reads_all(pace, false, from_usec + hour * HOURS))
                        return hour;
        return UINT64_MAX;
}

/* Full reads happen once a day on average, and each host has its own time. */
static void test_full_read_once_a_day(void **state)
{
        uint64_t earliest = UINT64_MAX, latest = 0;

        for (int i = 0; i < 200; i++) {
                uint64_t hour;
                CyclePace pace;

                pace = (CyclePace){ .interval_usec = 60 * SECONDS };
                assert_false(cycle_pace_reads_all(&pace, false, HOURS)); /* the start did */
                hour = find_full_read(&pace, HOURS);
                assert_in_range(hour, 12, 37);
                earliest = MIN(earliest, hour);
                latest = MAX(latest, hour);
                assert_false(cycle_pace_reads_all(&pace, false, (hour + 1) * HOURS));
                assert_in_range(find_full_read(&pace, (hour + 1) * HOURS), 11, 37);
        }
        assert_true(latest - earliest > 12);
}

/* A requested full read happens, and counts as the last one. */
static void test_full_read_on_request(void **state)
{
        CyclePace pace = { .interval_usec = 60 * SECONDS };

        assert_true(cycle_pace_reads_all(&pace, true, HOURS));
        cycle_pace_note_placement(&pace, true, 0, HOURS);
        assert_true(cycle_pace_reads_all(&pace, true, 20 * HOURS));
        cycle_pace_note_placement(&pace, false, 0, 20 * HOURS);
        for (uint64_t hour = 20; hour < 32; hour++)
                assert_false(cycle_pace_reads_all(&pace, false, hour * HOURS));
}

/* A fleet does not read everything in the minute after an outage of two days. */
static void test_full_reads_spread_after_an_outage(void **state)
{
        unsigned n_at_once = 0;

        for (int i = 0; i < 200; i++) {
                CyclePace pace;

                pace = (CyclePace){ .interval_usec = 60 * SECONDS };
                assert_false(cycle_pace_reads_all(&pace, false, HOURS));
                for (uint64_t hour = 2; hour < 50; hour++) {
                        cycle_pace_note_placement(&pace, true, 0, hour * HOURS);
                        assert_false(cycle_pace_reads_all(&pace, false, hour * HOURS));
                }
                cycle_pace_note_placement(&pace, false, 0, 50 * HOURS);
                n_at_once += cycle_pace_reads_all(&pace, false, 50 * HOURS + 60 * SECONDS);
                assert_in_range(find_full_read(&pace, 50 * HOURS), 1, 37);
        }
        assert_true(n_at_once < 40);
}

/* A hypervisor that fails is polled often, and Placement gets no more requests for that. */
static void test_a_hypervisor_that_fails(void **state)
{
        CyclePace pace = { .interval_usec = 60 * SECONDS };

        assert_int_equal(cycle_pace_quiet_usec(&pace, 0, false, 0), 0);
        cycle_pace_note_placement(&pace, false, 0, 1000 * SECONDS);
        assert_int_equal(cycle_pace_quiet_usec(&pace, 0, false, 1000 * SECONDS), 54 * SECONDS);
        assert_int_equal(cycle_pace_quiet_usec(&pace, 0, true, 1000 * SECONDS), 0);
        for (int i = 0; i < 100; i++) {
                uint64_t pause = cycle_pace_next_usec(&pace, false, 1000 * SECONDS);

                assert_true(pause >= CYCLE_RETRY_FIRST_USEC && pause <= CYCLE_RETRY_MAX_USEC);
        }
        assert_true(cycle_pace_next_usec(&pace, true, 1000 * SECONDS) >= 54 * SECONDS);
        assert_true(cycle_pace_next_usec(&pace, false, 1000 * SECONDS) <=
                    3 * CYCLE_RETRY_FIRST_USEC);
}

static void test_time_of_the_next_cycle(void **state)
{
        CyclePace pace = { .interval_usec = UINT64_MAX };

        assert_true(cycle_pace_next_usec(&pace, true, 0) == UINT64_MAX);
        cycle_pace_note_placement(&pace, true, 0, 0);
        assert_true(cycle_pace_next_usec(&pace, true, 0) <= 6 * SECONDS);
        /* A pause of Placement does not change the interval of polls. */
        pace = (CyclePace){ .interval_usec = 60 * SECONDS };
        cycle_pace_note_placement(&pace, true, 600 * SECONDS, 0);
        for (int i = 0; i < 100; i++)
                assert_true(cycle_pace_next_usec(&pace, true, 0) <= 66 * SECONDS);
}

/* The delay of the start grows with the number of its requests. */
static void test_start_delay_grows_with_requests(void **state)
{
        static const struct {
                uint64_t jitter;
                size_t n_requests;
                uint64_t max;
        } cases[] = {
                { 0, 193, 0 },
                { 5 * SECONDS, 4, 5 * SECONDS },
                { 5 * SECONDS, 25, 25 * SECONDS },
                { 5 * SECONDS, 193, 60 * SECONDS },
                { 300 * SECONDS, 193, 300 * SECONDS },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t most = 0;

                for (int j = 0; j < 200; j++) {
                        CyclePace pace;

                        pace = (CyclePace){ .interval_usec = 60 * SECONDS,
                                            .start_jitter_usec = cases[i].jitter };
                        most = MAX(most, cycle_pace_quiet_usec(&pace, cases[i].n_requests, true,
                                                               1000 * SECONDS));
                        cycle_pace_note_placement(&pace, false, 0, 2000 * SECONDS);
                        assert_int_equal(cycle_pace_quiet_usec(&pace, cases[i].n_requests, true,
                                                               2000 * SECONDS),
                                         0);
                }
                assert_true(most <= cases[i].max && most >= cases[i].max / 2);
        }
}

/* The pause between two checks of a host on which nothing changes. last_change is the age of the
 * last change at the first of them. */
static void test_pause_between_checks(void **state)
{
        static const struct {
                const char *about;
                uint64_t interval, quiet_max, last_change;
                bool slow; /* the check before was slow */
                uint64_t low, high;
        } cases[] = {
                { "young", 60 * SECONDS, 240 * SECONDS, 3599 * SECONDS, false, 0, 0 },
                { "the first one is random", 60 * SECONDS, 240 * SECONDS, HOURS, false, 0,
                  210 * SECONDS },
                { "then four intervals", 60 * SECONDS, 240 * SECONDS, HOURS, true, 210 * SECONDS,
                  210 * SECONDS },
                { "whole intervals", 60 * SECONDS, 239 * SECONDS, HOURS, true, 150 * SECONDS,
                  150 * SECONDS },
                { "not below two", 60 * SECONDS, 119 * SECONDS, 99 * HOURS, true, 0, 0 },
                { "a long interval", 300 * SECONDS, 240 * SECONDS, 99 * HOURS, true, 0, 0 },
                { "a short interval", SECONDS, 3 * SECONDS, 45 * SECONDS, true, 5 * SECONDS / 2,
                  5 * SECONDS / 2 },
                { "switched off", 60 * SECONDS, 0, 99 * HOURS, true, 0, 0 },
                { "cycles on request", UINT64_MAX, 240 * SECONDS, 99 * HOURS, true, 0, 0 },
                { "no interval", 0, 240 * SECONDS, 99 * HOURS, true, 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t least = UINT64_MAX, most = 0;

                for (int j = 0; j < 100; j++) {
                        CyclePace pace;
                        uint64_t pause = 0;

                        pace = (CyclePace){ .interval_usec = cases[i].interval,
                                            .quiet_max_usec = cases[i].quiet_max,
                                            .changed_usec = 1000 * HOURS - cases[i].last_change,
                                            .check_at_usec = cases[i].slow };
                        cycle_pace_note_placement(&pace, false, 0, 1000 * HOURS);
                        while (1000 * HOURS + pause < pace.check_at_usec)
                                pause += SECONDS / 2;
                        least = MIN(least, pause);
                        most = MAX(most, pause);
                }
                if (least < cases[i].low || most > cases[i].high ||
                    most - least < (cases[i].high - cases[i].low) / 2)
                        fail_msg("%s: %" PRIu64 " to %" PRIu64, cases[i].about, least, most);
        }
}

/* Each change, each failure and each new process ends the slow checks for an hour. */
static void test_change_ends_slow_checks(void **state)
{
        CyclePace pace = { .interval_usec = 60 * SECONDS, .quiet_max_usec = 240 * SECONDS };

        cycle_pace_note_placement(&pace, false, 0, 9 * HOURS);
        assert_true(9 * HOURS >= pace.check_at_usec);
        for (uint64_t hour = 10; hour < 14; hour++) {
                cycle_pace_note_placement(&pace, false, 0, hour * HOURS);
                cycle_pace_note_placement(&pace, false, 0, hour * HOURS);
                assert_true(hour * HOURS + 200 * SECONDS < pace.check_at_usec);
                if (hour % 2 == 0)
                        cycle_pace_note_change(&pace, hour * HOURS);
                else
                        cycle_pace_note_placement(&pace, true, 0, hour * HOURS);
                assert_true(hour * HOURS >= pace.check_at_usec);
                cycle_pace_note_placement(&pace, false, 0, hour * HOURS + 3599 * SECONDS);
                assert_true(hour * HOURS + 3599 * SECONDS >= pace.check_at_usec);
        }
        /* The change can be noted later than the time of the cycle. */
        cycle_pace_note_change(&pace, 20 * HOURS + 4);
        cycle_pace_note_placement(&pace, false, 0, 20 * HOURS);
        assert_true(20 * HOURS >= pace.check_at_usec);
}

TEST_MAIN(test_pause_between_checks, test_change_ends_slow_checks, test_full_read_once_a_day,
          test_full_read_on_request, test_full_reads_spread_after_an_outage,
          test_pause_after_failures, test_requested_pause_outlasts_failures,
          test_a_hypervisor_that_fails, test_time_of_the_next_cycle,
          test_start_delay_grows_with_requests)
