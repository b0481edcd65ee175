/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a clock shows, as the agent counts: in microseconds. */

#include <stdint.h>
#include <time.h>

#include "base/macros.h"

/* CLOCK_REALTIME (since 1970), CLOCK_MONOTONIC, CLOCK_BOOTTIME, or what a thread or the process has
 * run. */
static inline uint64_t clock_usec(clockid_t clock)
{
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}
