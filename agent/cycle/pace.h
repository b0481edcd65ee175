/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides when the next cycle begins, and whether it sends requests to Placement. Cycles are
 * jittered around the interval. The first failure of Placement is retried soon, later ones at long
 * intervals. Only a cycle that a caller waits for sends requests before the time that a server
 * asked for, of which at most CYCLE_RETRY_AFTER_MAX_USEC count. During an outage, a fleet must send
 * fewer requests than with a check in each cycle, because its retries can prolong the outage.
 *
 * A check is a cycle that reads Placement to find changes of other writers. When the last change or
 * failure is CYCLE_QUIET_TIMES * quiet_max_usec ago, checks slow down: cycles without a reason of
 * their own skip the check until about quiet_max_usec have passed. The next change or failure ends
 * this.
 *
 * This file has no clock and no timer: the caller passes times of CLOCK_BOOTTIME in
 * microseconds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define CYCLE_RETRY_FIRST_USEC     (2 * USEC_PER_SEC)
#define CYCLE_RETRY_MAX_USEC       (60 * USEC_PER_SEC)        /* between failed polls */
#define CYCLE_INTERVAL_USEC        (60 * USEC_PER_SEC)        /* without a configured one */
#define CYCLE_FULL_USEC            (24 * 3600 * USEC_PER_SEC) /* between full reads, on average */
#define CYCLE_RETRY_AFTER_MAX_USEC (600 * USEC_PER_SEC)       /* limit for servers */
#define CYCLE_QUIET_TIMES          15 /* quiet_max_usec without a change before checks slow down */

/* The pace of one tracker. The caller sets the first three members, and after a warm start
 * full_at_usec. The others begin as 0. */
typedef struct CyclePace {
        uint64_t interval_usec;     /* UINT64_MAX: none, so time begins only retries */
        uint64_t quiet_max_usec;    /* between slow checks; below 2 intervals: checks never slow
                                       down */
        uint64_t start_jitter_usec; /* minimum range of the delay of the first requests; 0: no
                                       delay, or it has begun already */
        uint64_t quiet_until_usec;  /* until then only a cycle that a caller waits for sends
                                       requests */
        uint64_t looked_at_usec;    /* last success with Placement; 0: never */
        uint64_t changed_usec;      /* last change or failure, else the first success with
                                       Placement; 0: none yet */
        uint64_t check_at_usec;     /* cycles before it that only the timer began skip the check; 0:
                                       checks are not slow. After the first slow check it is half an
                                       interval early, so that the nearest cycle checks. */
        unsigned n_failures;        /* consecutive failures of Placement */
        uint64_t full_at_usec;      /* next full read of Placement; 0: not scheduled */
        uint64_t poll_retry_usec;   /* last pause after a failed poll; 0 after a success */
} CyclePace;

/* Notes that the host or Placement changed, that one of them cannot be used or is not in order, or
 * that a cycle was requested. Each cycle checks Placement until checks slow down again. */
void cycle_pace_note_change(CyclePace *pace, uint64_t now_usec);

/* Notes the result of a cycle with Placement. A failure counts as a change, and sets the pause
 * before the next request. The pause is 2 to 6 s after the first one, at most the interval if that
 * is shorter, but not below 2 s. It is one to two intervals, of 2 to 600 s each (60 s without an
 * interval), after each further one. The server's pause and up to half of it more counts if it is
 * longer. After a success without a change for long enough, schedules the next check. The first
 * slow check comes after a random time, so that a fleet that became quiet together does not check
 * together. retry_after_usec: the pause that the server asked for, of which at most
 * CYCLE_RETRY_AFTER_MAX_USEC count; 0: none. An earlier pause that ends later stays in force until
 * a success. */
void cycle_pace_note_placement(CyclePace *pace, bool failed, uint64_t retry_after_usec,
                               uint64_t now_usec);

/* Returns the time during which no request must be sent to Placement. polled: the last poll of the
 * host succeeded. Without a new snapshot no request is due until 90 % of the interval, if there is
 * one, have passed since the last success, if there was one. The first call with a
 * start_jitter_usec delays the first request by a random time, and clears start_jitter_usec. The
 * time is at most start_jitter_usec or n_requests seconds, whichever is larger; these seconds are
 * at most 60. */
uint64_t cycle_pace_quiet_usec(CyclePace *pace, size_t n_requests, bool polled, uint64_t now_usec);

/* Returns true if this cycle reads all of Placement. asked: the caller requests it. Otherwise a
 * full read is due at full_at_usec: half a day to one and a half days after the last one or the
 * first call. None is due while n_failures is above 0: such a read is postponed by a random time of
 * at most one day. */
bool cycle_pace_reads_all(CyclePace *pace, bool asked, uint64_t now_usec);

/* Returns the pause between this cycle and the next one: the interval with a jitter of 10 %, or
 * less if the last poll failed (polled false) or a pause of Placement ends earlier. A failed poll
 * counts as in cycle_pace_poll_retry_usec(), and a successful one resets that range. UINT64_MAX: no
 * timer; the next cycle begins on request, or with a change. */
uint64_t cycle_pace_next_usec(CyclePace *pace, bool polled, uint64_t now_usec);

/* Returns the pause before the next poll after a failed one. It is random between
 * CYCLE_RETRY_FIRST_USEC and a limit. The limit is three times the pause before (at first three
 * times CYCLE_RETRY_FIRST_USEC), but at most the interval or CYCLE_RETRY_MAX_USEC, whichever is
 * smaller, and not below CYCLE_RETRY_FIRST_USEC. */
uint64_t cycle_pace_poll_retry_usec(CyclePace *pace);
