/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much a fit may cost. Everything that a search does is counted in it, whoever does it, and it
 * ends at the bound on the work or on the time, whichever comes first. What the work bounds is the
 * same on every machine; the time is there because a host may be larger, or slower, than any that
 * was measured. It is the thread's own: a machine that is busy with something else refuses nobody.
 */

#include <stdbool.h>
#include <stdint.h>

/* About a look at a provider each. */
#define FIT_WORK_MAX UINT64_C(3000000)

typedef struct FitEffort {
        uint64_t patience_usec; /* as given, for the words; 0: no bound */
        uint64_t until_usec;    /* CLOCK_THREAD_CPUTIME_ID */
        uint64_t work;          /* done so far */
        uint64_t looked_at;     /* the work when the clock was last looked at */
        bool late;
} FitEffort;

/* Begins now, and ends when the thread has run for so much longer. */
FitEffort fit_effort_begin(uint64_t patience_usec);

/* Counts work that was done, or is about to be. False when the effort is spent: nothing more is to
 * be begun. */
bool fit_effort_spend(FitEffort *effort, uint64_t work);

static inline bool fit_effort_is_spent(const FitEffort *effort)
{
        return effort->late || effort->work > FIT_WORK_MAX;
}

#define FIT_EFFORT_TEXT_SIZE 64

/* The bound that it was spent at, for words: "30 ms", "3000000 steps". */
const char *fit_effort_format(const FitEffort *effort, char text[static FIT_EFFORT_TEXT_SIZE]);
