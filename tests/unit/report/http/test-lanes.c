/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http/lanes.h"

#include "tests/unit/test.h"

#define MAX_LANES 8
#define MSEC      USEC_PER_MSEC

/* Plays a story, one letter for each event, with as many requests under way as permitted. "r" is
 * the answer to a read, "w" to a write; "R" and "W" are failures. "1" to "9" is the number of
 * served connections in a crowd. " " is a minute. */
static void play(HttpLanes *lanes, const char *story)
{
        uint64_t now = USEC_PER_SEC;

        for (const char *c = story; *c; c++) {
                bool writes = *c == 'w' || *c == 'W', failed = *c == 'R' || *c == 'W';

                if (*c == ' ')
                        now += 61 * USEC_PER_SEC;
                else if (*c >= '1' && *c <= '9')
                        http_lanes_note_crowd(lanes, (size_t)(*c - '0'), now);
                else
                        http_lanes_note_answer(lanes, writes, failed, 10 * MSEC, lanes->limit,
                                               writes ? lanes->limit_writes : 0, now);
        }
}

static void test_sequences_of_answers(void **state)
{
        static const struct {
                const char *about, *story;
                size_t limit, limit_writes;
        } cases[] = {
                { "nothing is known", "", 1, 2 },
                { "one more with each answer", "rrr", 4, 2 },
                { "up to the maximum", "rrrrrrrrrrrrrrr", 8, 2 },
                { "failures are no reason for more", "RRRR", 1, 2 },
                { "writes grow slowly", "ww", 3, 3 },
                { "and on", "wwwww", 6, 4 },
                { "a write that fails goes alone", "wwwwwW", 6, 1 },
                { "for a minute", "wwwwwWwww", 8, 1 },
                { "not for ever", "wwwwwW w", 7, 2 },
                { "a crowd", "rrrrrrr2", 2, 2 },
                { "no more for a minute", "rrrrrrr2rrrr", 2, 2 },
                { "then it is tried", "rrrrrrr2 r", 3, 2 },
                { "down to one", "rrr1", 1, 2 },
                { "a crowd never makes it more", "r9", 2, 2 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HttpLanes lanes;

                http_lanes_init(&lanes, MAX_LANES);
                play(&lanes, cases[i].story);
                if (lanes.limit != cases[i].limit || lanes.limit_writes != cases[i].limit_writes)
                        fail_msg("%s: %zu, %zu", cases[i].about, lanes.limit, lanes.limit_writes);
        }
}

static void test_may_start(void **state)
{
        static const struct {
                size_t n_active, n_writes;
                bool read, write;
        } cases[] = {
                { 0, 0, true, true },   { 3, 0, true, true },   { 3, 1, true, true },
                { 3, 2, true, false },  { 4, 0, false, false }, { 4, 2, false, false },
                { 9, 0, false, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HttpLanes lanes = { .max = MAX_LANES, .limit = 4, .limit_writes = 2 };
                size_t n = cases[i].n_active, n_writes = cases[i].n_writes;

                assert_int_equal(http_lanes_may_start(&lanes, n, n_writes, false), cases[i].read);
                assert_int_equal(http_lanes_may_start(&lanes, n, n_writes, true), cases[i].write);
        }
}

/* Requests that are not under way must not Raise the limit. */
static void test_no_demand_no_growth(void **state)
{
        HttpLanes lanes;

        http_lanes_init(&lanes, MAX_LANES);
        play(&lanes, "rrr");
        for (int i = 0; i < 10; i++)
                http_lanes_note_answer(&lanes, false, false, MSEC, 3, 0, USEC_PER_SEC);
        assert_int_equal(lanes.limit, 4);
}

static void test_timeouts_grow_with_answer_times(void **state)
{
        static const struct {
                uint64_t answer_usec, read, write;
        } cases[] = {
                { 0, 500 * MSEC, 1000 * MSEC },
                { 100 * MSEC, 800 * MSEC, 1000 * MSEC },
                { 500 * MSEC, 4000 * MSEC, 4000 * MSEC },
                { 9000 * MSEC, 5000 * MSEC, 5000 * MSEC },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HttpLanes lanes = { .answer_usec = cases[i].answer_usec };

                assert_int_equal(http_lanes_get_patience_usec(&lanes, false), cases[i].read);
                assert_int_equal(http_lanes_get_patience_usec(&lanes, true), cases[i].write);
        }
}

static void test_one_connection(void **state)
{
        HttpLanes lanes;

        http_lanes_init(&lanes, 1);
        play(&lanes, "rwrw1rw");
        assert_int_equal(lanes.limit, 1);
        assert_int_equal(lanes.limit_writes, 1);
}

TEST_MAIN(test_sequences_of_answers, test_may_start, test_no_demand_no_growth,
          test_timeouts_grow_with_answer_times, test_one_connection)
