/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When the next cycle begins: jittered around the interval; after a failure soon, and later after
 * each further one; never before a server that asked for patience wants it. It knows no clock and
 * no timer: times are CLOCK_BOOTTIME in microseconds, brought by the caller. */

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

#define CYCLE_RETRY_FIRST_USEC     (2 * USEC_PER_SEC)
#define CYCLE_RETRY_MAX_USEC       (60 * USEC_PER_SEC)
#define CYCLE_RETRY_AFTER_MAX_USEC (600 * USEC_PER_SEC) /* what a server may ask for */

typedef struct CyclePace {
        uint64_t interval_usec; /* UINT64_MAX: no cycle by itself */
        uint64_t started_usec;
        uint64_t start_delay_usec; /* Placement is left alone for so long after it */
        uint64_t retry_usec;       /* the last pause after a failure, 0 after a success */
} CyclePace;

/* start_jitter_usec: the delay is up to that. */
void cycle_pace_init(CyclePace *pace, uint64_t interval_usec, uint64_t start_jitter_usec,
                     uint64_t now_usec);

/* The pause after a cycle; UINT64_MAX: until somebody asks. retry_after_usec: what the server asked
 * for, 0: nothing. */
uint64_t cycle_pace_next_usec(CyclePace *pace, bool failed, uint64_t retry_after_usec);

/* The pause after one more failure. */
uint64_t cycle_pace_retry_usec(CyclePace *pace);

/* How long Placement is left alone yet after the start. */
uint64_t cycle_pace_early_usec(const CyclePace *pace, uint64_t now_usec);
