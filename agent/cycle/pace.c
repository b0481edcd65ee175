/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Computes the times of cycles and requests. The pauses between cycles, and those after failures,
 * are random within a range, so that a fleet does not act in step. CyclePace keeps failures of
 * Placement (n_failures, quiet_until_usec) and of the hypervisor (poll_retry_usec) apart. The
 * tracker calls this file in a cycle to decide about requests, at its end for the pause, and
 * between cycles when the hypervisor goes away. A failure only delays requests. In a cycle that a
 * caller waits for, the tracker ignores these delays (is_quiet() in phases.c). */

#include "agent/cycle/pace.h"

#include "base/jitter.h"

/* Upper limit of the start jitter that begin_start() derives from the number of requests. */
#define START_JITTER_MAX_USEC (60 * USEC_PER_SEC)
#define INTERVAL_MAX_USEC     (600 * USEC_PER_SEC) /* largest interval for pauses after failures */

/* Begins the delay of the first requests, once. */
static void begin_start(CyclePace *pace, size_t n_requests, uint64_t now_usec)
{
        uint64_t wanted_usec = MIN(n_requests * USEC_PER_SEC, START_JITTER_MAX_USEC);
        uint64_t jitter_usec = MAX(pace->start_jitter_usec, wanted_usec);

        if (pace->start_jitter_usec == 0)
                return;
        pace->start_jitter_usec = 0;
        pace->quiet_until_usec = now_usec + jitter_between(0, jitter_usec, jitter_random());
}

/* Returns the pause that the server asked for, at most CYCLE_RETRY_AFTER_MAX_USEC, plus up to half
 * of it: all clients got the same answer. */
static uint64_t spread_retry_after(uint64_t asked_usec)
{
        asked_usec = MIN(asked_usec, CYCLE_RETRY_AFTER_MAX_USEC);
        return jitter_between(asked_usec, asked_usec + asked_usec / 2, jitter_random());
}

/* Returns the pause after a failure of Placement. A single failure can be a restart of the server,
 * so the first retry follows after 2 to 6 s; a shorter interval shortens this range. Repeated
 * failures are an outage. The pause is then one to two times the interval, which counts as at least
 * CYCLE_RETRY_FIRST_USEC and at most INTERVAL_MAX_USEC. */
static uint64_t next_pause_usec(const CyclePace *pace)
{
        uint64_t interval_usec = pace->interval_usec == UINT64_MAX
                                         ? CYCLE_INTERVAL_USEC
                                         : MIN(pace->interval_usec, INTERVAL_MAX_USEC);
        uint64_t usual_usec = MAX(interval_usec, CYCLE_RETRY_FIRST_USEC);

        if (pace->n_failures > 1)
                return jitter_between(usual_usec, 2 * usual_usec, jitter_random());
        return jitter_between(CYCLE_RETRY_FIRST_USEC, MIN(3 * CYCLE_RETRY_FIRST_USEC, usual_usec),
                              jitter_random());
}

void cycle_pace_note_change(CyclePace *pace, uint64_t now_usec)
{
        pace->changed_usec = now_usec;
        pace->check_at_usec = 0;
}

/* Schedules the slow check (pace.h) after the check of Placement at now_usec. Ends slow checks if
 * quiet_max_usec is below 2 intervals, or if the last change is not CYCLE_QUIET_TIMES *
 * quiet_max_usec ago. The pause is a number of whole intervals less half an interval, because the
 * pauses of cycles are random. The first pause is a random part of that. */
static void schedule_check(CyclePace *pace, uint64_t now_usec)
{
        uint64_t interval_usec = pace->interval_usec, pause_usec;
        uint64_t n_intervals = interval_usec > 0 ? pace->quiet_max_usec / interval_usec : 0;

        if (pace->changed_usec == 0)
                pace->changed_usec = now_usec;
        if (n_intervals < 2 ||
            now_usec < pace->changed_usec + CYCLE_QUIET_TIMES * pace->quiet_max_usec) {
                pace->check_at_usec = 0;
                return;
        }
        pause_usec = n_intervals * interval_usec - interval_usec / 2;
        if (pace->check_at_usec == 0)
                pause_usec = jitter_between(0, pause_usec, jitter_random());
        pace->check_at_usec = now_usec + pause_usec;
}

void cycle_pace_note_placement(CyclePace *pace, bool failed, uint64_t retry_after_usec,
                               uint64_t now_usec)
{
        uint64_t asked_usec = spread_retry_after(retry_after_usec), pause_usec;

        if (!failed) {
                pace->n_failures = 0;
                pace->quiet_until_usec = 0;
                pace->looked_at_usec = now_usec;
                schedule_check(pace, now_usec);
                return;
        }
        cycle_pace_note_change(pace, now_usec);
        pace->n_failures++;
        pause_usec = next_pause_usec(pace);
        pause_usec = MAX(pause_usec, asked_usec);
        pace->quiet_until_usec = MAX(pace->quiet_until_usec, now_usec + pause_usec);
}

/* If the last poll failed, the next request waits until 90 % of the interval have passed since the
 * last success of Placement. A later end of the start delay or of a pause after a failure counts
 * instead. */
uint64_t cycle_pace_quiet_usec(CyclePace *pace, size_t n_requests, bool polled, uint64_t now_usec)
{
        uint64_t until_usec;

        begin_start(pace, n_requests, now_usec);
        until_usec = pace->quiet_until_usec;
        if (!polled && pace->looked_at_usec > 0 && pace->interval_usec != UINT64_MAX)
                until_usec = MAX(until_usec, pace->looked_at_usec + pace->interval_usec / 10 * 9);
        return now_usec >= until_usec ? 0 : until_usec - now_usec;
}

/* Schedules the next full read in three cases: at the first call without a schedule, with each full
 * read, and when it became due during failures. */
bool cycle_pace_reads_all(CyclePace *pace, bool asked, uint64_t now_usec)
{
        bool due = now_usec >= pace->full_at_usec;
        bool reads = asked || (due && pace->full_at_usec > 0 && pace->n_failures == 0);

        if (reads || pace->full_at_usec == 0)
                pace->full_at_usec =
                        now_usec + jitter_between(CYCLE_FULL_USEC / 2, CYCLE_FULL_USEC / 2 * 3,
                                                  jitter_random());
        else if (due)
                pace->full_at_usec = now_usec + jitter_between(0, CYCLE_FULL_USEC, jitter_random());
        return reads;
}

uint64_t cycle_pace_poll_retry_usec(CyclePace *pace)
{
        uint64_t max = MIN(MAX(pace->interval_usec, CYCLE_RETRY_FIRST_USEC), CYCLE_RETRY_MAX_USEC);

        pace->poll_retry_usec =
                jitter_next(pace->poll_retry_usec, CYCLE_RETRY_FIRST_USEC, max, jitter_random());
        return pace->poll_retry_usec;
}

uint64_t cycle_pace_next_usec(CyclePace *pace, bool polled, uint64_t now_usec)
{
        uint64_t interval = pace->interval_usec, pause_usec = UINT64_MAX, retry_usec = UINT64_MAX;

        if (interval != UINT64_MAX)
                pause_usec = jitter_between(interval - interval / 10, interval + interval / 10,
                                            jitter_random());
        if (polled)
                pace->poll_retry_usec = 0;
        else
                retry_usec = cycle_pace_poll_retry_usec(pace);
        pause_usec = MIN(pause_usec, retry_usec);
        if (pace->quiet_until_usec > now_usec)
                pause_usec = MIN(pause_usec, pace->quiet_until_usec - now_usec);
        return pause_usec;
}
