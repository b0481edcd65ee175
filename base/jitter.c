/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/jitter.h"

#include <sys/random.h>

#include "base/macros.h"

uint64_t jitter_random(void)
{
        uint64_t random;

        return getrandom(&random, sizeof(random), GRND_NONBLOCK) == sizeof(random) ? random : 0;
}

uint64_t jitter_between(uint64_t low, uint64_t high, uint64_t random)
{
        if (high <= low)
                return low;
        if (high - low == UINT64_MAX)
                return random;
        return low + random % (high - low + 1);
}

uint64_t jitter_next(uint64_t last, uint64_t first, uint64_t max, uint64_t random)
{
        uint64_t base = MAX(last, first);
        uint64_t high = base > UINT64_MAX / 3 ? UINT64_MAX : base * 3;

        /* The limit bounds what is drawn from and not what was drawn: clients that have waited long
         * would all wait for just the limit else, and come together again. */
        return jitter_between(MIN(first, max), MIN(high, max), random);
}
