/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle-pace.h"

#include <sys/random.h>

#include "base/jitter.h"

static uint64_t random_bits(void)
{
        uint64_t random = 0;

        (void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
        return random;
}

void cycle_pace_init(CyclePace *pace, uint64_t interval_usec, uint64_t start_jitter_usec,
                     uint64_t now_usec)
{
        *pace = (CyclePace){
                .interval_usec = interval_usec,
                .started_usec = now_usec,
                .start_delay_usec = jitter_between(0, start_jitter_usec, random_bits()),
        };
}

/* What the service asked for, and up to half of it more: all clients were told the same. */
static uint64_t spread_retry_after(uint64_t asked_usec)
{
        asked_usec = MIN(asked_usec, CYCLE_RETRY_AFTER_MAX_USEC);
        return jitter_between(asked_usec, asked_usec + asked_usec / 2, random_bits());
}

uint64_t cycle_pace_next_usec(CyclePace *pace, bool failed, uint64_t retry_after_usec)
{
        uint64_t interval = pace->interval_usec;

        if (failed) {
                uint64_t retry_usec = cycle_pace_retry_usec(pace);
                uint64_t asked_usec = spread_retry_after(retry_after_usec);

                return MAX(retry_usec, asked_usec);
        }
        pace->retry_usec = 0;
        if (interval == UINT64_MAX)
                return UINT64_MAX;
        return jitter_between(interval - interval / 10, interval + interval / 10, random_bits());
}

uint64_t cycle_pace_retry_usec(CyclePace *pace)
{
        uint64_t max = MIN(MAX(pace->interval_usec, CYCLE_RETRY_FIRST_USEC), CYCLE_RETRY_MAX_USEC);

        pace->retry_usec =
                jitter_next(pace->retry_usec, CYCLE_RETRY_FIRST_USEC, max, random_bits());
        return pace->retry_usec;
}

uint64_t cycle_pace_early_usec(const CyclePace *pace, uint64_t now_usec)
{
        uint64_t due_usec = pace->started_usec + pace->start_delay_usec;

        return now_usec >= due_usec ? 0 : due_usec - now_usec;
}
