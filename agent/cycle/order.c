/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The table of the phases as code: see the diagram in the header. Phases without an own case are
 * followed by the next one of the enum, so the order of the enum matters. */

#include "agent/cycle/order.h"

/* Returns the phase after a failure before CYCLE_AUDIT. A conflict is retried from the read. An
 * audit needs a client and a Placement that can be used. */
static CyclePhase follow_failure(int result, const OrderFacts *facts)
{
        bool retries =
                result == REPORT_E_CONFLICT || (result == REPORT_E_IN_USE && facts->retries_in_use);

        if (retries && facts->n_retries < CYCLE_RETRIES_MAX)
                return CYCLE_READ;
        /* After the last retry, the state of Placement is unknown, so an audit is not possible. */
        if (report_outcome_is_away(result) || result == REPORT_E_CONFLICT || !facts->has_client)
                return CYCLE_RECONCILE;
        return CYCLE_AUDIT;
}

CyclePhase cycle_next(CyclePhase phase, int result, const OrderFacts *facts)
{
        bool done = result == REPORT_DONE;

        if (!done && result != CYCLE_SKIPPED && phase < CYCLE_AUDIT)
                return follow_failure(result, facts);
        switch (phase) {
        case CYCLE_POLL:
                return facts->scope == CYCLE_PLACEMENT ? CYCLE_READ : CYCLE_RECONCILE;
        case CYCLE_CHECK:
                return !done ? CYCLE_RESHAPE : facts->removes ? CYCLE_REMOVE : CYCLE_CONSUMERS;
        case CYCLE_REMOVE:
                return facts->scope == CYCLE_RETIRED ? CYCLE_RECONCILE : CYCLE_READ;
        case CYCLE_RESHAPE:
                return done ? CYCLE_READ : CYCLE_CONSUMERS;
        case CYCLE_CONSUMERS:
                return facts->owns_tree && !facts->dry_run ? CYCLE_PUBLISH : CYCLE_PREPARE;
        case CYCLE_PREPARE:
                return facts->owns_tree ? CYCLE_RECONCILE : CYCLE_RESERVE;
        case CYCLE_PUBLISH:
                return CYCLE_AUDIT;
        case CYCLE_END:
                return CYCLE_IDLE;
        default:
                return phase + 1;
        }
}
