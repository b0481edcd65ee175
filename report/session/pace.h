/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides whether a request that a server had no time for is sent again in the same attempt, and
 * when. Pure and inline.
 *
 * A server that answers 429 (which it did not do) or 503 and otherwise serves us is busy, not away:
 * after the short wait that it asks for, requests continue. None is sent meanwhile. Each such wait
 * costs successful answers (credit): a client that gets fewer ends the attempt. So an outage, where
 * no answer is a success, is asked once. The session sets credit to 0 at each attempt.
 *
 * Times are CLOCK_MONOTONIC in microseconds, brought by the caller. */

#include "base/jitter.h"

#define SESSION_PACE_WAIT_MAX_USEC  (5 * USEC_PER_SEC) /* the longest wait within an attempt */
#define SESSION_PACE_WAIT_MIN_USEC  (100 * USEC_PER_MSEC)
#define SESSION_PACE_WAIT_ONCE_USEC (400 * USEC_PER_MSEC) /* without Retry-After */
#define SESSION_PACE_CREDIT_MAX     8
#define SESSION_PACE_CREDIT_COST    2

typedef struct SessionPace {
        unsigned credit;          /* of successful answers */
        uint64_t shut_until_usec; /* no request is sent before */
} SessionPace;

/* Takes an answer. Returns true if its request must be sent again. retry_after_usec: as the server
 * asks, 0: it does not; random: 64 random bits. */
static inline bool session_pace_note(SessionPace *pace, int status, uint64_t retry_after_usec,
                                     uint64_t now_usec, uint64_t random)
{
        uint64_t wait_usec = retry_after_usec ? retry_after_usec : SESSION_PACE_WAIT_MIN_USEC;
        uint64_t spread_usec =
                retry_after_usec ? retry_after_usec / 4 : SESSION_PACE_WAIT_ONCE_USEC;

        if (status != 429 && status != 503) {
                if (status > 0 && status < 500)
                        pace->credit = MIN(pace->credit + 1, SESSION_PACE_CREDIT_MAX);
                return false;
        }
        if (retry_after_usec > SESSION_PACE_WAIT_MAX_USEC)
                return false;
        /* The request was under way when the wait began. */
        if (now_usec < pace->shut_until_usec)
                return true;
        if (pace->credit < SESSION_PACE_CREDIT_COST)
                return false;
        pace->credit -= SESSION_PACE_CREDIT_COST;
        pace->shut_until_usec =
                now_usec + jitter_between(wait_usec, wait_usec + spread_usec, random);
        return true;
}
