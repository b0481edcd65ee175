/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decorrelated jitter: random pauses before a retry, so that the clients of one service do not
 * retry at the same time. Pure except for jitter_random(); the caller passes the randomness.
 * Inline; never blocks. */

#include <sys/random.h>

#include "base/macros.h"

/* Returns 64 random bits, or 0 if the kernel has none yet. */
static inline uint64_t jitter_random(void)
{
        uint64_t random;

        return getrandom(&random, sizeof(random), GRND_NONBLOCK) == sizeof(random) ? random : 0;
}

/* Returns a number evenly spread over [low, high]. random: 64 random bits. */
static inline uint64_t jitter_between(uint64_t low, uint64_t high, uint64_t random)
{
        if (high <= low)
                return low;
        if (high - low == UINT64_MAX)
                return random;
        return low + random % (high - low + 1);
}

/* Returns the pause that follows a pause of last: a random value from first to three times
 * last, but at most max. last 0: the first pause. All values have the same unit. */
static inline uint64_t jitter_next(uint64_t last, uint64_t first, uint64_t max, uint64_t random)
{
        uint64_t base = MAX(last, first);
        uint64_t high = base > UINT64_MAX / 3 ? UINT64_MAX : base * 3;

        /* The limit bounds the range and not the result. Otherwise all clients that have waited
         * long would wait for exactly the limit, and come at the same time again. */
        return jitter_between(MIN(first, max), MIN(high, max), random);
}
