/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether a request that a server had no time for is sent again in the same attempt, and when.
 * Pure.
 *
 * A server that answers 429 (which it did not do) or 503 and else serves us is busy, not away:
 * after the short wait that it asks for everything goes on. Nothing is sent meanwhile. Each time
 * that it shuts the gate costs answers that went well: who gets fewer than that has no business
 * here, and the attempt ends. So an outage, where nothing goes well, is asked no more than once.
 *
 * Times are CLOCK_MONOTONIC in microseconds, brought by the caller. */

#include "base/macros.h"

#define SESSION_PACE_WAIT_MAX_USEC (5 * USEC_PER_SEC) /* what is waited for within an attempt */

typedef struct SessionPace {
        unsigned credit;          /* of answers that went well */
        uint64_t shut_until_usec; /* nothing is sent before */
} SessionPace;

/* What went well before is no merit of this attempt. */
void session_pace_begin_attempt(SessionPace *pace);

/* An answer came. True: its request is to be sent again. retry_after_usec: as it asks for, 0 when
 * it does not; random: 64 random bits. */
bool session_pace_note(SessionPace *pace, int status, uint64_t retry_after_usec, uint64_t now_usec,
                       uint64_t random);
