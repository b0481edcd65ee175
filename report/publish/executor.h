/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The executor runs a plan against Placement. The mirror gets each result, or forgets a provider
 * whose state is unknown.
 *
 * A step starts when its prerequisites have succeeded and no other step of its provider is under
 * way. At most as many steps run as the session can have connections; http finds out how many
 * requests the server really serves at a time. Resource classes are made one at a time, and so are
 * moves and a reshape (executor.c). Answers are handled as follows.
 *
 * concurrent_update: the mirror forgets the provider (after a reshape: the list), and the rest of
 * its steps is skipped. Other providers continue. The outcome is REPORT_E_CONFLICT.
 *
 * inventory.inuse, for a step that sets inventories: the classes in use keep their old records, and
 * the other classes are sent again. The outcome is REPORT_E_IN_USE. If no class that must go is in
 * use any more, the step starts again.
 *
 * 404 of Placement: a provider that the step empties or deletes is gone already, so the step has
 * succeeded. A provider that the step writes was deleted by another writer, which is a conflict.
 *
 * A move that needs a newer microversion than the service has is REPORT_E_REFUSED, and the provider
 * keeps its parent. After any other REPORT_E_REFUSED of the request of the plan, except a batch,
 * the mirror forgets all names. A known class or trait might be gone.
 *
 * duplicate_name for a creation: the provider with that name is looked up. If it is the new one and
 * in this tree, the outcome is a conflict, else REPORT_E_DUPLICATE_NAME. The allocations of a
 * provider with another uuid are counted for the message. If there is none with the name, the uuid
 * has another name.
 *
 * 500: the step starts again a bounded number of times, after a pause with jitter or, if its first
 * try found the database locked, after the requests under way. After its last try the outcome is
 * REPORT_E_UNAVAILABLE. Only one request is sent at a time for the rest of this plan, because a
 * service on SQLite answers parallel writes with 500. Later plans also do so if the answer says
 * that the database was locked.
 *
 * A rejected batch is a conflict, but the mirror forgets nothing, and the caller plans again
 * without one. After a lost race the next plan has a batch again, until EXECUTOR_BATCH_RACES_MAX
 * were lost in a row.
 *
 * After a fatal outcome (report_outcome_is_fatal()) no further step starts.
 *
 * The outcome is the worst of all (report_outcome_worse()), with the words of the first step that
 * had it. The work is bounded: a step starts at most EXECUTOR_TRIES_MAX times, once more for an
 * existing class, and each start needs at most three requests. */

#include <systemd/sd-event.h>

#include "base/progress.h"
#include "report/publish/mirror.h"
#include "report/publish/plan.h"
#include "report/session/session.h"

#define EXECUTOR_TRIES_MAX       6
#define EXECUTOR_BATCH_RACES_MAX 3

/* Knowledge about the service that the caller keeps from plan to plan. */
typedef struct ExecutorMemory {
        bool serial_writes;      /* the database of the service was locked by parallel writes */
        ReshaperAccess reshaper; /* set by the answer to a reshape */
        bool batch_failed; /* a batch (plan.h) failed, or too many lost a race: the next plan has
                              none; the caller resets it */
        unsigned n_batch_races; /* batches in a row that lost against another writer */
        uint64_t n_retries;     /* steps that were scheduled again after a 500 */
        uint64_t n_writes;      /* requests of plans other than GET */
        /* Called after Placement deleted a provider, or if it was gone already; NULL: none. */
        void (*deleted)(const Uuid *provider, const char *name);
} ExecutorMemory;

typedef struct Executor Executor;

/* Starts a plan. Everything is borrowed and must outlive the executor. -ENOMEM. The callback done
 * receives the end of a plan. result is 0, a ReportOutcome or a negative errno, with words in error
 * unless result is 0. Called once unless the executor is freed before, never from inside
 * executor_new(). The callback can free the executor. */
int executor_new(Executor **ret, sd_event *event, Session *session, Mirror *mirror,
                 const Plan *plan, ExecutorMemory *memory,
                 void (*done)(int result, const Error *error, void *userdata), void *userdata,
                 Error *reterr);

/* Returns the progress in steps of the plan. */
void executor_get_progress(const Executor *executor, Progress *ret);

/* Cancels the requests under way, and those that would be sent again after a 500. The mirror
 * forgets the providers that they wrote. */
Executor *executor_free(Executor *executor);
DEFINE_CLEANUP(Executor *, executor_free);
