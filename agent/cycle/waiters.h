/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who is called when a cycle ended. Who asks while one runs waits for the next: the running one
 * may have looked at the host already. Each is called exactly once. Main thread; nothing blocks. */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct Tracker Tracker;

/* Called once when the cycle ended: error->code is 0 when everything was polled and published. */
typedef void (*TrackerDone)(Tracker *tracker, const Error *error, void *userdata);

typedef struct CycleWaiter {
        TrackerDone done;
        void *userdata;
        bool publication; /* waits for a cycle that does not put off the publication */
        bool current;     /* belongs to the running cycle, not to the next */
} CycleWaiter;

typedef struct CycleWaiters {
        CycleWaiter *items;
        size_t n_items, n_allocated;
} CycleWaiters;

void cycle_waiters_done(CycleWaiters *waiters);

/* Waits for the end of the next cycle; publication: and for the first one after it that does not
 * put off the publication. -ENOMEM. */
int cycle_waiters_add(CycleWaiters *waiters, TrackerDone done, void *userdata, bool publication);

/* A cycle begins: it is everybody's who waits. */
void cycle_waiters_begin(CycleWaiters *waiters);

/* Calls the waiters of the cycle that ended. put_off: it put off the publication, so those who wait
 * for one wait for the next cycle. A waiter can add and cancel waiters. */
void cycle_waiters_notify(CycleWaiters *waiters, Tracker *tracker, const Error *error,
                          bool put_off);

/* Forgets everybody who was added with this userdata. */
void cycle_waiters_cancel(CycleWaiters *waiters, void *userdata);
