/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The decision about a device that is not proved to be clean: row and facts, and the next step. */

#include "agent/cycle/clean-step.h"
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

/* Letters of the facts: c claimed, d in a domain, u an unreadable guest, p the poll is later,
 * l listed, o another device, s section, k cordoned, w lifted by a person. Letters of the result:
 * y proved to be clean, f a unit failed. n: its units wait. */
static CleanFacts make_facts(const char *letters)
{
        return (CleanFacts){
                .is_claimed = strchr(letters, 'c'),
                .in_domain = strchr(letters, 'd'),
                .guest_unread = strchr(letters, 'u'),
                .poll_is_later = strchr(letters, 'p'),
                .is_listed = strchr(letters, 'l'),
                .is_other = strchr(letters, 'o'),
                .is_configured = strchr(letters, 's'),
                .is_cordoned = strchr(letters, 'k'),
                .is_lifted = strchr(letters, 'w'),
                .is_proved = strchr(letters, 'y'),
                .has_failed = strchr(letters, 'f'),
                .wait = strchr(letters, 'n') ? "a reason" : NULL,
        };
}

static void test_steps(void **state)
{
        static const struct {
                int state;
                const char *facts;
                CleanStep step;
                const char *reason;
        } cases[] = {
                { UNCLEAN_HELD, "cpls", CLEAN_KEEP, "" },
                { UNCLEAN_HELD, "dpls", CLEAN_KEEP, "" },
                { UNCLEAN_HELD, "upls", CLEAN_KEEP, "" },
                { UNCLEAN_HELD, "ls", CLEAN_KEEP, "" },
                { UNCLEAN_HELD, "ps", CLEAN_KEEP, "" },
                { UNCLEAN_HELD, "pls", CLEAN_BEGIN, "" },
                { UNCLEAN_HELD, "plsy", CLEAN_BEGIN, "" },
                { UNCLEAN_HELD, "plso", CLEAN_FAIL, "another device is at its address" },
                { UNCLEAN_HELD, "plsn", CLEAN_KEEP, "a reason" },
                { UNCLEAN_HELD, "cplsn", CLEAN_KEEP, "" },
                { UNCLEAN_HELD, "pln", CLEAN_FAIL, "no section [device_clean NAME] has it" },
                { UNCLEAN_HELD, "pl", CLEAN_FAIL, "no section [device_clean NAME] has it" },
                { UNCLEAN_DIRTY, "pls", CLEAN_KEEP, "" },
                { UNCLEAN_DIRTY, "plsn", CLEAN_KEEP, "a reason" },
                { UNCLEAN_DIRTY, "psn", CLEAN_KEEP, "a reason" },
                { UNCLEAN_DIRTY, "lsy", CLEAN_END, "" },
                { UNCLEAN_DIRTY, "lsyn", CLEAN_END, "" },
                { UNCLEAN_DIRTY, "plsf", CLEAN_FAIL, "" },
                { UNCLEAN_DIRTY, "cplsy", CLEAN_HOLD, "" },
                { UNCLEAN_DIRTY, "dplsy", CLEAN_HOLD, "" },
                { UNCLEAN_DIRTY, "psy", CLEAN_KEEP, "" },
                { UNCLEAN_DIRTY, "plsoy", CLEAN_FAIL, "another device is at its address" },
                { UNCLEAN_DIRTY, "ply", CLEAN_FAIL, "no section [device_clean NAME] has it" },
                { UNCLEAN_FAILED, "plsky", CLEAN_KEEP, "" },
                { UNCLEAN_FAILED, "plskwy", CLEAN_KEEP, "" },
                { UNCLEAN_FAILED, "plswf", CLEAN_BEGIN, "" },
                { UNCLEAN_FAILED, "plsow", CLEAN_BEGIN, "" },
                { UNCLEAN_FAILED, "plswn", CLEAN_KEEP, "a reason" },
                { UNCLEAN_FAILED, "plskwn", CLEAN_KEEP, "" },
                { UNCLEAN_FAILED, "plw", CLEAN_FORGET, "" },
                { UNCLEAN_FAILED, "upls", CLEAN_FAIL, "" },
                { UNCLEAN_FAILED, "pl", CLEAN_FAIL, "" },
                { UNCLEAN_FAILED, "ps", CLEAN_KEEP, "" },
                { UNCLEAN_FAILED, "uplsw", CLEAN_KEEP, "" },
                { UNCLEAN_FAILED, "psw", CLEAN_KEEP, "" },
                { UNCLEAN_FAILED, "dplskw", CLEAN_HOLD, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const CleanFacts facts = make_facts(cases[i].facts);
                const char *reason = "?";
                CleanStep step = clean_next_step(cases[i].state, &facts, &reason);

                if (step != cases[i].step || strcmp(reason ? reason : "", cases[i].reason) != 0)
                        fail_msg("%s %s: step %d, %s", unclean_state_to_text(cases[i].state),
                                 cases[i].facts, step, reason);
        }
}

/* Over all facts: a device is only given back with its result, or by a person, and never while a
 * claim, a guest or an unreadable guest can have it. */
static void test_no_facts_offer_a_device_without_a_reason(void **state)
{
        static const char all[] = "cduploskwyfn";

        for (int row = 0; row < _UNCLEAN_STATE_MAX; row++)
                for (unsigned bits = 0; bits < 1u << (sizeof(all) - 1); bits++) {
                        char letters[sizeof(all)] = "", *end = letters;
                        const char *reason;
                        CleanFacts facts;
                        CleanStep step;

                        for (size_t i = 0; i + 1 < sizeof(all); i++)
                                if (bits & 1u << i)
                                        *end++ = all[i];
                        facts = make_facts(letters);
                        step = clean_next_step(row, &facts, &reason);
                        if (step == CLEAN_END || step == CLEAN_FORGET || step == CLEAN_BEGIN)
                                assert_false(facts.is_claimed || facts.in_domain);
                        if (step == CLEAN_BEGIN)
                                assert_false(facts.guest_unread || !facts.is_configured ||
                                             facts.wait);
                        if (step == CLEAN_BEGIN && row == UNCLEAN_FAILED)
                                assert_true(facts.is_lifted && !facts.is_cordoned);
                        if (step == CLEAN_END)
                                assert_true(row == UNCLEAN_DIRTY && facts.is_proved &&
                                            !facts.has_failed);
                        if (step == CLEAN_FORGET)
                                assert_true(row == UNCLEAN_FAILED && facts.is_lifted &&
                                            !facts.is_cordoned);
                }
}

TEST_MAIN(test_steps, test_no_facts_offer_a_device_without_a_reason)
