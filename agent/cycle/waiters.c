/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/waiters.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/macros.h"

void cycle_waiters_done(CycleWaiters *waiters)
{
        free(waiters->items);
        *waiters = (CycleWaiters){ 0 };
}

int cycle_waiters_add(CycleWaiters *waiters, TrackerDone done, void *userdata, bool publication)
{
        if (array_grow(&waiters->items, sizeof(CycleWaiter), waiters->n_items,
                       &waiters->n_allocated) < 0)
                return -ENOMEM;
        waiters->items[waiters->n_items++] =
                (CycleWaiter){ .done = done, .userdata = userdata, .publication = publication };
        return 0;
}

void cycle_waiters_begin(CycleWaiters *waiters)
{
        for (size_t i = 0; i < waiters->n_items; i++)
                waiters->items[i].current = true;
}

void cycle_waiters_notify(CycleWaiters *waiters, Tracker *tracker, const Error *error, bool put_off)
{
        for (size_t i = 0; put_off && i < waiters->n_items; i++)
                waiters->items[i].current &= !waiters->items[i].publication;
        /* A waiter may add or cancel others: start over after each. */
        for (size_t i = 0; i < waiters->n_items;) {
                CycleWaiter waiter = waiters->items[i];

                if (!waiter.current) {
                        i++;
                        continue;
                }
                array_close(waiters->items, sizeof(CycleWaiter), &waiters->n_items, i);
                waiter.done(tracker, error, waiter.userdata);
                i = 0;
        }
}

void cycle_waiters_cancel(CycleWaiters *waiters, void *userdata)
{
        size_t kept = 0;

        for (size_t i = 0; i < waiters->n_items; i++)
                if (waiters->items[i].userdata != userdata)
                        waiters->items[kept++] = waiters->items[i];
        waiters->n_items = kept;
}
