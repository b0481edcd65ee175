/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When the next cycle begins, and whether it sends requests to Placement. Cycles are jittered
 * around the interval. The first failure is retried soon, further ones seldom. Only the request of
 * a person comes before the time that a server asked for. A fleet that meets an outage must send
 * fewer requests than one that is well, because its retries can keep the outage going.
 *
 * It has no clock and no timer: the caller passes times of CLOCK_BOOTTIME in microseconds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define CYCLE_RETRY_FIRST_USEC     (2 * USEC_PER_SEC)
#define CYCLE_RETRY_MAX_USEC       (60 * USEC_PER_SEC)        /* between polls that fail */
#define CYCLE_INTERVAL_USEC        (60 * USEC_PER_SEC)        /* where none is configured */
#define CYCLE_FULL_USEC            (24 * 3600 * USEC_PER_SEC) /* between full reads, on average */
#define CYCLE_RETRY_AFTER_MAX_USEC (600 * USEC_PER_SEC)       /* what a server may ask for */

/* The caller sets the first two members; the rest begins as 0. */
typedef struct CyclePace {
        uint64_t interval_usec;     /* UINT64_MAX: no cycle by itself */
        uint64_t start_jitter_usec; /* the least that cycle_pace_start() draws from; 0: it draws
                                       nothing, or the start is past */
        uint64_t quiet_until_usec;  /* until then no request is sent to Placement */
        uint64_t looked_at_usec;    /* when Placement last answered well, 0: never */
        unsigned n_failures;        /* of Placement, in a row */
        uint64_t full_at_usec;      /* when all of Placement is read again, 0: not known yet */
        uint64_t poll_retry_usec;   /* the last pause after a poll that failed, 0 after a success */
} CyclePace;

/* Puts off the first requests to Placement by a random part of the larger of two times: the start
 * jitter, and a second for each of the n_requests (at most a minute). Later calls do nothing. */
void cycle_pace_start(CyclePace *pace, size_t n_requests, uint64_t now_usec);

/* Notes how Placement answered in a cycle. retry_after_usec: the pause that it asked for, 0: none.
 * An earlier pause stays in force until Placement answers well. */
void cycle_pace_note_placement(CyclePace *pace, bool failed, uint64_t retry_after_usec,
                               uint64_t now_usec);

/* Returns how long no request is sent to Placement from now on. polled: the last poll of the host
 * succeeded. Without a new snapshot there is nothing to report before the next interval. */
uint64_t cycle_pace_quiet_usec(const CyclePace *pace, bool polled, uint64_t now_usec);

/* Returns true if this cycle reads all of Placement. asked: a person requested it. Else it is due
 * half a day to a day and a half after the last time or the start, but not after a failure: reads
 * that fell due in an outage are spread over the day after it. */
bool cycle_pace_reads_all(CyclePace *pace, bool asked, uint64_t now_usec);

/* Returns the pause after a cycle; UINT64_MAX: until a request. */
uint64_t cycle_pace_next_usec(CyclePace *pace, bool polled, uint64_t now_usec);

/* Returns the pause after one more failure of the hypervisor. */
uint64_t cycle_pace_poll_retry_usec(CyclePace *pace);
