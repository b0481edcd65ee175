/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When the next cycle begins, and whether it may speak to Placement: jittered around the interval;
 * after the first failure soon, after further ones seldom; and nothing but a person's request comes
 * before the moment that a server asked for, whatever the host does meanwhile. A fleet that fails
 * must ask for less than one that is well: it is what keeps an outage going.
 *
 * It knows no clock and no timer: times are CLOCK_BOOTTIME in microseconds, brought by the caller.
 */

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
        uint64_t quiet_until_usec;  /* Placement is left alone */
        uint64_t looked_at_usec;    /* when Placement was last spoken to well, 0: never */
        unsigned n_failures;        /* of Placement, in a row */
        uint64_t full_at_usec;      /* when all of Placement is read anew, 0: not known yet */
        uint64_t poll_retry_usec;   /* the last pause after a poll that failed, 0 after a success */
} CyclePace;

/* Placement is about to be spoken to for the first time, with so many requests: it is left alone
 * for a random part of a second for each of them, or of the start jitter if that is more, or of a
 * minute if that is less. Later calls do nothing. */
void cycle_pace_start(CyclePace *pace, size_t n_requests, uint64_t now_usec);

/* How Placement answered in a cycle. retry_after_usec: what it asked for, 0: nothing. What it asked
 * for before still holds, until it was spoken to well. */
void cycle_pace_note_placement(CyclePace *pace, bool failed, uint64_t retry_after_usec,
                               uint64_t now_usec);

/* How long Placement is left alone yet. polled: the host was looked at just now; where it could not
 * be there is nothing new to report before Placement's own turn. */
uint64_t cycle_pace_quiet_usec(const CyclePace *pace, bool polled, uint64_t now_usec);

/* Placement is about to be spoken to: is all of it to be read anew? asked: a person wants it. By
 * itself half a day to a day and a half after the last time, or after the start, which reads all;
 * and never after a failure: what fell due in an outage is spread over a day after it. */
bool cycle_pace_reads_all(CyclePace *pace, bool asked, uint64_t now_usec);

/* The pause after a cycle; UINT64_MAX: until somebody asks. */
uint64_t cycle_pace_next_usec(CyclePace *pace, bool polled, uint64_t now_usec);

/* The pause after one more failure of the hypervisor. */
uint64_t cycle_pace_poll_retry_usec(CyclePace *pace);
