/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The waiters of the tracker's cycles: who is called, and when. */

#include "agent/cycle/tracker-internal.h"
#include "tests/unit/test.h"

static char letters[] = "abcdz", called[32];

static void on_called(Tracker *tracker, const Error *error, void *userdata)
{
        char letter[2] = { *(const char *)userdata, '\0' };

        assert_int_equal(error->code, EIO);
        strcat(called, letter);
        if (letter[0] == 'd') /* requests a cycle and cancels another waiter inside its callback */
                assert_int_equal(tracker_sync(tracker, TRACKER_SYNC, on_called, letters + 4), 0);
        if (letter[0] == 'd')
                tracker_sync_cancel(tracker, letters + 2);
}

/* The steps add and cancel waiters and run cycles. A letter x is the name of a waiter. "+x": it
 * waits for a cycle. "*x": it waits for a publication. "-x": it is cancelled. "(": a cycle begins.
 * ")": it ends. "|": it ends, and has put off the publication. */
static void test_waiters(void **state)
{
        static const struct {
                const char *steps, *called;
        } cases[] = {
                { "(+a)", "" },
                { "+a(+b)", "a" },
                { "+a(+b)()", "ab" },
                { "+a+b()()", "ab" },
                { "+a+b+a-a()", "b" },
                { "+a(-a)()", "" },
                { "+a(+b)(+c)()", "abc" },
                { "+a+b(+c)-b()", "abc" },
                { "*a+b(|", "b" },
                { "*a+b(|(|()", "ba" },
                { "*a(|-a()", "" },
                { "+a+d+c+b()", "adb" },
                { "+a+d+c+b()()", "adbz" },
        };
        const Error error = { .code = EIO };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Tracker tracker = { .phase = CYCLE_POLL };

                called[0] = '\0';
                for (const char *step = cases[i].steps; *step; step++) {
                        char *letter = strchr(letters, step[1] ? step[1] : ' ');

                        if (*step == '(')
                                tracker.n_begun++;
                        else if (*step == ')' || *step == '|')
                                tracker_call_waiters(&tracker, &error, *step == '|');
                        else if (*step == '+' || *step == '*')
                                assert_int_equal(
                                        tracker_sync(&tracker,
                                                     *step == '*' ? TRACKER_PUBLISH : TRACKER_SYNC,
                                                     on_called, letter),
                                        0);
                        else if (*step == '-')
                                tracker_sync_cancel(&tracker, letter);
                }
                if (strcmp(called, cases[i].called) != 0)
                        fail_msg("%s: %s", cases[i].steps, called);
                free(tracker.waiters);
        }
}

TEST_MAIN(test_waiters)
