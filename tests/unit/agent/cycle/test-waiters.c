/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/waiters.h"
#include "tests/unit/test.h"

/* Who was told, in order, as letters. */
static char told[32];
static CycleWaiters waiters;
static char letters[] = "abcdz"; /* what each is told by */

static void on_told(Tracker *tracker, const Error *error, void *userdata)
{
        char letter[2] = { *(const char *)userdata, '\0' };

        assert_ptr_equal(tracker, &waiters);
        assert_int_equal(error->code, EIO);
        strcat(told, letter);
}

/* Asks again from inside. */
static void on_told_asks(Tracker *tracker, const Error *error, void *userdata)
{
        on_told(tracker, error, userdata);
        assert_int_equal(cycle_waiters_add(&waiters, on_told, letters + 4, false), 0);
}

static void on_told_cancels(Tracker *tracker, const Error *error, void *userdata)
{
        on_told(tracker, error, userdata);
        cycle_waiters_cancel(&waiters, letters + 2);
}

static void tell(bool put_off)
{
        const Error error = { .code = EIO };

        cycle_waiters_notify(&waiters, (Tracker *)&waiters, &error, put_off);
}

static int set_up(void **state)
{
        told[0] = '\0';
        return 0;
}

static int tear_down(void **state)
{
        cycle_waiters_done(&waiters);
        return 0;
}

/* + a letter: it waits for a cycle; * a letter: for a publication; - a letter: it is cancelled;
 * (: a cycle begins; ): it ended; |: it ended and put off the publication. */
static void test_table(void **state)
{
        static const struct {
                const char *steps, *told;
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
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                (void)set_up(NULL);
                for (const char *step = cases[i].steps; *step; step++) {
                        if (*step == '(')
                                cycle_waiters_begin(&waiters);
                        else if (*step == ')' || *step == '|')
                                tell(*step == '|');
                        else if (*step == '+' || *step == '*')
                                assert_int_equal(cycle_waiters_add(&waiters, on_told,
                                                                   letters + (step[1] - 'a'),
                                                                   *step == '*'),
                                                 0);
                        else if (*step == '-')
                                cycle_waiters_cancel(&waiters, letters + (step[1] - 'a'));
                }
                if (strcmp(told, cases[i].told) != 0)
                        fail_msg("%s: %s", cases[i].steps, told);
                (void)tear_down(NULL);
        }
}

static void test_who_is_told_may_ask_and_cancel(void **state)
{
        assert_int_equal(cycle_waiters_add(&waiters, on_told_asks, letters, false), 0);
        assert_int_equal(cycle_waiters_add(&waiters, on_told_cancels, letters + 1, false), 0);
        assert_int_equal(cycle_waiters_add(&waiters, on_told, letters + 2, false), 0);
        assert_int_equal(cycle_waiters_add(&waiters, on_told, letters + 3, false), 0);
        cycle_waiters_begin(&waiters);
        tell(false);
        assert_string_equal(told, "abd");
        cycle_waiters_begin(&waiters);
        tell(false);
        assert_string_equal(told, "abdz");
}

TEST_MAIN_WITH(set_up, tear_down, test_table, test_who_is_told_may_ask_and_cancel)
