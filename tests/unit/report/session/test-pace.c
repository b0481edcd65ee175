/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A story of answers, one letter each, and whether the last request is sent again. */

#include "report/session/pace.h"

#include "tests/unit/test.h"

#define STEP_USEC (10 * USEC_PER_MSEC)

/* Plays the story. "." is a success, "e" 500, "u" 503, "r" 429 with a second, "l" 429 with a
 * minute, " " ten seconds. Returns whether the last request must be sent again. */
static bool tell(SessionPace *pace, const char *story)
{
        uint64_t now_usec = USEC_PER_SEC;
        bool again = false;

        for (const char *c = story; *c; c++, now_usec += STEP_USEC) {
                if (*c == ' ')
                        now_usec += 10 * USEC_PER_SEC;
                else if (*c == '|')
                        pace->credit = 0;
                else
                        again = session_pace_note(pace,
                                                  *c == '.'   ? 200
                                                  : *c == 'e' ? 500
                                                  : *c == 'u' ? 503
                                                              : 429,
                                                  *c == 'r'   ? USEC_PER_SEC
                                                  : *c == 'l' ? 60 * USEC_PER_SEC
                                                              : 0,
                                                  now_usec, 0);
        }
        return again;
}

static void test_sequences_of_answers(void **state)
{
        static const struct {
                const char *about, *story;
                bool again;
        } cases[] = {
                { "an outage", "u", false },
                { "one that goes on", "u u u", false },
                { "a server that is busy", "..u", true },
                { "one that was served once", ".u", false },
                { "all that were under way", "..rrrrrrrr", true },
                { "a busy server that does not answer after the wait", "..r r", false },
                { "one that serves a few each second", "..........rrrr ..........r", true },
                { "credit is bounded", ".................... u u u u u", false },
                { "bounded, but there", ".................... u u u u", true },
                { "it asks for long", "....l", false },
                { "an error of its own", "....e", false },
                { "which is no merit", "eeee u", false },
                { "an outage that begins between two attempts", "........ | u", false },
                { "a server that is busy in each attempt", "........ | ..u", true },
                { "well", "....", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                SessionPace pace = { 0 };

                if (tell(&pace, cases[i].story) != cases[i].again)
                        fail_msg("%s", cases[i].about);
        }
}

static void test_wait_after_a_busy_answer(void **state)
{
        static const struct {
                uint64_t asked_usec, random, wait_usec;
        } cases[] = {
                { 0, 0, 100 * USEC_PER_MSEC },
                { 0, 400 * USEC_PER_MSEC, 500 * USEC_PER_MSEC },
                { USEC_PER_SEC, 0, USEC_PER_SEC },
                { USEC_PER_SEC, 250 * USEC_PER_MSEC, 1250 * USEC_PER_MSEC },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                SessionPace pace = { .credit = 8 };

                assert_true(session_pace_note(&pace, 503, cases[i].asked_usec, 7, cases[i].random));
                assert_int_equal(pace.shut_until_usec, 7 + cases[i].wait_usec);
        }
}

TEST_MAIN(test_sequences_of_answers, test_wait_after_a_busy_answer)
