/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/session/pace.h"

#include "base/jitter.h"

#define CREDIT_MAX     8
#define CREDIT_COST    2
#define WAIT_MIN_USEC  (100 * USEC_PER_MSEC)
#define WAIT_ONCE_USEC (400 * USEC_PER_MSEC) /* where it does not say how long */

void session_pace_begin_attempt(SessionPace *pace)
{
        pace->credit = 0;
}

bool session_pace_note(SessionPace *pace, int status, uint64_t retry_after_usec, uint64_t now_usec,
                       uint64_t random)
{
        uint64_t wait_usec = retry_after_usec ? retry_after_usec : WAIT_MIN_USEC;
        uint64_t spread_usec = retry_after_usec ? retry_after_usec / 4 : WAIT_ONCE_USEC;

        if (status != 429 && status != 503) {
                if (status > 0 && status < 500)
                        pace->credit = MIN(pace->credit + 1, CREDIT_MAX);
                return false;
        }
        if (retry_after_usec > SESSION_PACE_WAIT_MAX_USEC)
                return false;
        /* It was under way when the gate was shut. */
        if (now_usec < pace->shut_until_usec)
                return true;
        if (pace->credit < CREDIT_COST)
                return false;
        pace->credit -= CREDIT_COST;
        pace->shut_until_usec =
                now_usec + jitter_between(wait_usec, wait_usec + spread_usec, random);
        return true;
}
