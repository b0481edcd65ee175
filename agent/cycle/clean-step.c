/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides by the state of the row, with one function for each state.
 *
 * Tests: tests/unit/agent/cycle/test-clean-step.c */

#include "agent/cycle/clean-step.h"

#include <stddef.h>

static const char no_section[] = "no section [device_clean NAME] has it";
static const char other_device[] = "another device is at its address";

/* Returns the reason why no unit can be started for the device, or NULL. */
static const char *find_obstacle(const CleanFacts *facts)
{
        return facts->is_other ? other_device : !facts->is_configured ? no_section : NULL;
}

/* Returns true if a claim or a guest has the device, or can have it. */
static bool is_in_use(const CleanFacts *facts)
{
        return facts->is_claimed || facts->in_domain;
}

static CleanStep begin_or_wait(const CleanFacts *facts, const char **ret_reason)
{
        *ret_reason = facts->wait;
        return facts->wait ? CLEAN_KEEP : CLEAN_BEGIN;
}

static CleanStep step_of_held(const CleanFacts *facts, const char **ret_reason)
{
        if (is_in_use(facts) || facts->guest_unread || !facts->poll_is_later || !facts->is_listed)
                return CLEAN_KEEP;
        *ret_reason = find_obstacle(facts);
        return *ret_reason ? CLEAN_FAIL : begin_or_wait(facts, ret_reason);
}

/* A result does not count while a guest has the device: it can be older than the guest. */
static CleanStep step_of_dirty(const CleanFacts *facts, const char **ret_reason)
{
        if (is_in_use(facts))
                return CLEAN_HOLD;
        if (facts->is_listed) {
                *ret_reason = find_obstacle(facts);
                if (*ret_reason || facts->has_failed)
                        return CLEAN_FAIL;
                if (facts->is_proved)
                        return CLEAN_END;
        }
        *ret_reason = facts->wait;
        return CLEAN_KEEP;
}

/* Only a person's lift of the cordon is an order: another device at the address is then cleaned,
 * and without a section that person wants the device to be offered. A cordon that is gone for
 * another reason is set again: a health rule can end its own, and cordon.json can be lost. */
static CleanStep step_of_failed(const CleanFacts *facts, const char **ret_reason)
{
        if (is_in_use(facts))
                return CLEAN_HOLD;
        if (facts->is_cordoned || !facts->is_listed)
                return CLEAN_KEEP;
        if (!facts->is_lifted)
                return CLEAN_FAIL;
        if (facts->guest_unread)
                return CLEAN_KEEP;
        return facts->is_configured ? begin_or_wait(facts, ret_reason) : CLEAN_FORGET;
}

CleanStep clean_next_step(int state, const CleanFacts *facts, const char **ret_reason)
{
        *ret_reason = NULL;
        switch (state) {
        case UNCLEAN_HELD:
                return step_of_held(facts, ret_reason);
        case UNCLEAN_DIRTY:
                return step_of_dirty(facts, ret_reason);
        default:
                return step_of_failed(facts, ret_reason);
        }
}
