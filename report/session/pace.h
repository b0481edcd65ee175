/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides whether and when a request that a busy server rejected is sent again in the same attempt.
 * Pure and inline.
 *
 * A server that answers 429 (it did not process the request) or 503, but answers other requests, is
 * busy and not away. Requests continue after the short wait that it asks for, and none is sent
 * before. Each such wait costs successful answers (credit), and without credit the attempt ends. So
 * in an outage, where no answer is a success, each attempt sends one request. The session sets
 * credit to 0 at each attempt.
 *
 * The caller passes the time: CLOCK_MONOTONIC in microseconds. */

#include "base/jitter.h"

#define SESSION_PACE_WAIT_MAX_USEC  (5 * USEC_PER_SEC) /* longest wait within an attempt */
#define SESSION_PACE_WAIT_MIN_USEC  (100 * USEC_PER_MSEC)
#define SESSION_PACE_WAIT_ONCE_USEC (400 * USEC_PER_MSEC) /* spread without Retry-After */
#define SESSION_PACE_CREDIT_MAX     8
#define SESSION_PACE_CREDIT_COST    2

typedef struct SessionPace {
        unsigned credit;          /* successful answers that can be spent on waits */
        uint64_t shut_until_usec; /* no request is sent before this time */
} SessionPace;

/* Notes an answer. Returns true if its request must be sent again. retry_after_usec: the wait that
 * the server asks for, 0: none; random: 64 random bits. */
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
        /* The request was sent before the wait began, so it costs no credit. */
        if (now_usec < pace->shut_until_usec)
                return true;
        if (pace->credit < SESSION_PACE_CREDIT_COST)
                return false;
        pace->credit -= SESSION_PACE_CREDIT_COST;
        pace->shut_until_usec =
                now_usec + jitter_between(wait_usec, wait_usec + spread_usec, random);
        return true;
}
