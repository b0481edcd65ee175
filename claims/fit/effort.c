/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/fit/effort.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/macros.h"

/* So much work, well below a millisecond, between two looks at the clock. */
#define WORK_BETWEEN_LOOKS 1024

FitEffort fit_effort_begin(uint64_t patience_usec)
{
        return (FitEffort){ .patience_usec = patience_usec,
                            .until_usec = patience_usec > 0 ? clock_usec(CLOCK_THREAD_CPUTIME_ID) +
                                                                      patience_usec
                                                            : 0 };
}

bool fit_effort_spend(FitEffort *effort, uint64_t work)
{
        effort->work += work;
        if (effort->until_usec > 0 && effort->work - effort->looked_at >= WORK_BETWEEN_LOOKS) {
                effort->looked_at = effort->work;
                effort->late =
                        effort->late || clock_usec(CLOCK_THREAD_CPUTIME_ID) >= effort->until_usec;
        }
        return !fit_effort_is_spent(effort);
}

const char *fit_effort_format(const FitEffort *effort, char text[static FIT_EFFORT_TEXT_SIZE])
{
        if (effort->late)
                snprintf(text, FIT_EFFORT_TEXT_SIZE, "%" PRIu64 " ms",
                         effort->patience_usec / USEC_PER_MSEC);
        else
                snprintf(text, FIT_EFFORT_TEXT_SIZE, "%" PRIu64 " steps", FIT_WORK_MAX);
        return text;
}
