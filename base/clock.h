/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Time and CPU clocks in microseconds. */

#include <stdint.h>
#include <time.h>

#include "base/macros.h"

/* Returns the time of CLOCK_REALTIME (since 1970), CLOCK_MONOTONIC or CLOCK_BOOTTIME, or the
 * CPU time of a thread or of the process. */
static inline uint64_t clock_usec(clockid_t clock)
{
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}
