/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The executor: runs a plan against Placement and keeps the mirror true while it does.
 *
 * A step starts when the steps that it waits for have ended well and no other step of its provider
 * is under way, up to the session's connections; how many of these really run at a time is http's
 * to find out. Resource classes are made one at a time, and so are moves and a reshape
 * (executor.c). What each answer means:
 *   concurrent_update  the provider is forgotten, the rest of its steps are left out, the others go
 *                      on; the outcome is REPORT_E_CONFLICT.
 *   inventory.inuse    the classes that have usage keep their old records, the rest is sent again;
 *                      REPORT_E_IN_USE.
 *   duplicate_name     who holds the name is looked up: ourselves (a conflict) or somebody else,
 *                      and then what is allocated there.
 *   500                sent again a bounded number of times, with jitter, and from then on one
 *                      write at a time: an SQLite-backed service answers parallel writes like this.
 *   a refused batch    a conflict; the caller plans again without one. One that lost a race is a
 *                      batch again, EXECUTOR_BATCH_RACES_MAX times in a row.
 *   a service that is away, or that refuses this client: no further step starts.
 * The outcome is the worst of all (report_outcome_worse), its words those of the first such step.
 *
 * Work is bounded: at most EXECUTOR_TRIES_MAX requests and two look-ups for each step. */

#include <systemd/sd-event.h>

#include "base/progress.h"
#include "report/publish/mirror.h"
#include "report/publish/plan.h"
#include "report/session/session.h"

#define EXECUTOR_TRIES_MAX       6
#define EXECUTOR_BATCH_RACES_MAX 3

/* What was learned of the service; the caller keeps it from plan to plan. */
typedef struct ExecutorManners {
        bool serial_writes;      /* it cannot do two at a time */
        ReshaperAccess reshaper; /* what the answer to a reshape says is noted here */
        bool batch_failed;       /* a plan had a batch (plan.h) that was not done */
        unsigned n_batch_races;  /* how often in a row somebody else's write came before a batch */
        uint64_t n_retries;      /* requests sent again after a 500 */
        /* Called after Placement deleted a provider; NULL: not called. */
        void (*deleted)(const Uuid *provider, const char *name, void *userdata);
        void *userdata;
} ExecutorManners;

typedef struct Executor Executor;

/* result: 0, a ReportOutcome or a negative errno, with words in error unless 0. Called once, never
 * from inside executor_new(); it may free the executor. */
typedef void (*ExecutorDone)(int result, const Error *error, void *userdata);

/* Starts to run the plan. Everything is borrowed and must outlive the executor. -ENOMEM. */
int executor_new(Executor **ret, sd_event *event, Session *session, Mirror *mirror,
                 const Plan *plan, ExecutorManners *manners, ExecutorDone done, void *userdata,
                 Error *reterr);

/* Steps of the plan. */
void executor_get_progress(const Executor *executor, Progress *ret);

/* Cancels what is under way; the providers that were being written are forgotten. */
Executor *executor_free(Executor *executor);
DEFINE_CLEANUP(Executor *, executor_free);
