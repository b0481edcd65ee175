/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes, moves and releases claims together with their allocations in Placement. Each request
 * except a release is a task, which uses the reporter's session while the main loop continues. A
 * write, removal or move is stored in the claim database before it is sent (claims/store/store.h).
 * After a crash or an outage of Placement, a later cycle settles it. It also releases pending
 * claims, which no caller has got.
 *
 * A task for a claim works as follows, with a limit for each kind of retry:
 *  (1) If the consumer has a claim that the agent wrote to Placement, or has still to write, the
 *      task answers with it, or with CLAIM_E_CONFLICT if the request differs. It first releases a
 *      pending claim of the consumer, which was not finished.
 *  (2) Otherwise it reads the consumer from Placement. An ended claim can have left allocations
 *      that this agent wrote and that no living claim owns. If they match the request, the task
 *      claims them and writes them unchanged. If not, the choice of (4) replaces them. If [agent]
 *      nova forbids removals, (3) applies to them.
 *  (3) If the consumer has other allocations on this host, a scheduler placed it. The task verifies
 *      these, claims them, and writes nothing. If they do not fit beside the other claims, it
 *      requests one refresh (CLAIM_REFRESH_HOST), which can end claims without a guest, and
 *      retries.
 *  (4) If the consumer has none, and the configuration permits a write, the fit chooses. The choice
 *      is claimed as pending, written with the consumer's generation, and then the claim is
 *      answered. Without the permission the result is CLAIM_QUEUE_E_NOT_PLACED.
 *  (5) If Placement has no capacity for the choice, the task reads the free capacity, and the fit
 *      chooses from that.
 *  (6) After a lost race, the task starts again at (1).
 * A standalone host claims by its own state. During an outage of Placement, CLAIM_MODE_AUTO claims
 * by the own state too, and writes the allocations later, if [agent] nova permits the write.
 * Otherwise only known claims are answered then, and a new one is CLAIM_QUEUE_E_PLACEMENT.
 *
 * LIMITATIONS: After a consumer was deleted and created again, Placement starts its generation from
 * the beginning. A late request of an earlier removal or move can therefore still succeed after the
 * consumer was claimed again. Such a request removes or moves the new allocations; an audit finds
 * this.
 *
 * No transaction of the database is open while the agent waits for Placement. A task of a claim or
 * a start that reads its consumer reserves the consumer against the healer. A consumer has one
 * running task at a time, and later tasks wait for it. Main thread. A callback can run inside the
 * function that receives it. */

#include <systemd/sd-event.h>

#include "agent/guests/database.h"
#include "base/string-set.h"
#include "config/config.h"
#include "report/session/session.h"

/* The results of a task that are not a ClaimOutcome. */
typedef enum ClaimQueueOutcome {
        CLAIM_QUEUE_E_NOT_PLACED = _CLAIM_OUTCOME_MAX, /* neither placed nor ours to write (yet) */
        CLAIM_QUEUE_E_PLACEMENT, /* Placement cannot be used, or rejects the request: the error has
                                    the words */
        CLAIM_QUEUE_E_REFUSED,   /* [agent] nova forbids the removal of claim_queue_release() */
        CLAIM_QUEUE_E_UNAVAILABLE, /* a device of the server is missing, replaced or withheld */
        _CLAIM_QUEUE_OUTCOME_MAX,
} ClaimQueueOutcome;

typedef struct ClaimQueue ClaimQueue;

/* Receives the result of a task: 0, a ClaimOutcome, a ClaimQueueOutcome or a negative errno, with
 * words unless it is 0. -ENOMEM can lack words. The claim is borrowed. It is NULL if result is not
 * 0, after a refresh, and after a move whose claim has ended since it began. If is_new is true,
 * this task created the claim, or made the move. */
typedef void (*ClaimQueueDone)(int result, const Claim *claim, bool is_new, const Error *error,
                               void *userdata);

/* The data that a task refreshes before it continues. */
typedef enum ClaimRefresh {
        CLAIM_REFRESH_NONE,
        /* Every guest, including those that do not run: their definitions change without an event
         * (virsh attach-device --config). A claim of a device and a start of a server wait for this
         * refresh, and fail if it takes too long. */
        CLAIM_REFRESH_GUESTS = 1,
        /* The host, and the claims without a guest as Placement has them. One of these claims can
         * end, which frees capacity for a placed guest that did not fit. */
        CLAIM_REFRESH_HOST = 2,
} ClaimRefresh;

/* The environment of a queue. */
typedef struct ClaimQueueConfig {
        sd_event *event;       /* the queue takes a reference */
        ClaimService *service; /* borrowed */
        Uuid root;             /* the host's root provider */
        /* Returns the current session with Placement, or NULL: there is none. With writes it is
         * NULL also if allocations must not be written, because Placement can have this host's root
         * for another host. */
        Session *(*session)(bool writes, void *userdata);
        /* Called after each round of settling that ran a task; for a round that
         * claim_queue_dismiss() ended, after the next round. Can be NULL. */
        void (*settled)(void *userdata);
        /* Requests a refresh. claim_queue_refreshed() follows, never from inside the call. Returns
         * a negative errno with words if the data cannot be read now. NULL: claims use the known
         * state. */
        int (*refresh)(ClaimRefresh what, void *userdata, Error *reterr);
        void *userdata; /* argument of these functions */
} ClaimQueueConfig;

/* Creates an empty queue. *config is copied. Returns -ENOMEM on any failure. */
int claim_queue_new(ClaimQueue **ret, const ClaimQueueConfig *config);

/* Ends all tasks as claim_queue_dismiss() does, because their callers must free what they keep for
 * the callback. */
ClaimQueue *claim_queue_free(ClaimQueue *queue);
DEFINE_CLEANUP(ClaimQueue *, claim_queue_free);

/* Sets the modes of the configuration. with_placement false: the host is standalone, and all claims
 * are local. */
void claim_queue_set_mode(ClaimQueue *queue, ClaimMode mode, NovaMode nova, bool with_placement);

/* Returns true if a claim that no scheduler placed would be written to Placement before it is
 * answered. With CLAIM_MODE_AUTO that also needs a session, and that the last cycle could use
 * Placement. */
bool claim_queue_writes(const ClaimQueue *queue);

/* Ends the wait of the tasks for this refresh, if they requested it before began_usec
 * (CLOCK_MONOTONIC). If error has a code, the time does not matter; tasks that wait for guests
 * fail, and those that wait for the host continue. */
void claim_queue_refreshed(ClaimQueue *queue, ClaimRefresh what, uint64_t began_usec,
                           const Error *error);

/* Waits as a claim of this request would wait: for the refresh of guests, and until guests are
 * adopted. It does not wait for other tasks of the consumer. Makes no claim, so done gets none.
 * done gets -EBUSY if the guests cannot be read. Everything in *request is borrowed until done. */
void claim_queue_refresh(ClaimQueue *queue, const ClaimRequest *request, ClaimQueueDone done,
                         void *userdata);

/* Makes a claim. Everything in *request is borrowed until done. The watcher of the service is not
 * notified of the claim: the caller does that if is_new is true. */
void claim_queue_claim(ClaimQueue *queue, const ClaimRequest *request, ClaimQueueDone done,
                       void *userdata);

/* Yields the claim of a server that starts, with the devices that it attaches: its present claim,
 * or a new one that is made of its allocations in Placement (agent/placing/attaching.c). classes:
 * the classes whose devices the agent chooses, at least one. The consumer is copied. classes and by
 * are borrowed until done. Writes nothing to Placement. Refreshes the guests first; the result is
 * -EBUSY if they cannot be read. The caller notifies the watcher as after claim_queue_claim().
 * Without [placement] the result is CLAIM_QUEUE_E_NOT_PLACED. During an outage only a present claim
 * with devices of all classes is answered. Otherwise the result is an error, usually
 * CLAIM_QUEUE_E_PLACEMENT. */
void claim_queue_attach(ClaimQueue *queue, const Uuid *consumer, const StringSet *classes,
                        const EventAuthor *by, ClaimQueueDone done, void *userdata);

/* Moves the claim of one consumer (not that of a resize target) to another, with its allocations in
 * Placement: one POST /allocations. to_type NULL: "INSTANCE" for a claim of a migration, else
 * "MIGRATION". A repeated move is not an error. CLAIM_E_NOT_FOUND: from has no claim, or a pending
 * one. CLAIM_E_CONFLICT: to has a claim, another move of from or to this consumer is pending, or
 * both consumers have allocations on this host. CLAIM_QUEUE_E_NOT_PLACED: from still has the
 * allocations. The agent must not move them, or a pending write of the claim comes first. from, to
 * and to_type are copied. by is the caller, borrowed until done. */
void claim_queue_move(ClaimQueue *queue, const Uuid *from, const Uuid *to, const char *to_type,
                      const EventAuthor *by, ClaimQueueDone done, void *userdata);

/* Notes that Placement can be used, or cannot be used now (away). With CLAIM_MODE_AUTO, claims then
 * do not read from Placement before they are answered.
 *
 * settles: begins a round that settles the pending removals, moves and writes, one task after the
 * other, unless away is true. Before the round, it releases pending claims without a task, for
 * example after a crash or claim_queue_dismiss(). A refusal of Placement concerns one task, any
 * other error ends the round. During a round, requests another one, which follows only if this one
 * is not ended by an error. Without a session, on a standalone host, or if [agent] nova forbids
 * removals, no task runs. Without a database, nothing happens. Call it with settles at the end of
 * each cycle. */
void claim_queue_tend(ClaimQueue *queue, bool away, bool settles);

/* Begins a round of settling at the next iteration of the loop, also while Placement is away. */
void claim_queue_settle_soon(ClaimQueue *queue);

/* Counts the pending writes, removals and moves in *ret. All are 0 if the claim database cannot be
 * read. Returns why pending work is not settled, or "". The text belongs to the queue, and later
 * rounds change it. Blocks on the disk. */
const char *claim_queue_count_pending_writes(const ClaimQueue *queue, PendingWrites *ret);

/* Ends a claim as claims_release() does. everywhere: also removes its allocations on this host that
 * another writer placed; no effect without Placement. The removal from Placement is settled later.
 * The caller notifies the watcher of the service. Returns the results of claims_release(), -EIO
 * without a database, or CLAIM_QUEUE_E_REFUSED if [agent] nova forbids the removal that everywhere
 * requests. After another error, a claim with everywhere can already count as written by the
 * agent. */
int claim_queue_release(ClaimQueue *queue, int64_t id, const char *reason, bool everywhere,
                        Error *reterr);

/* Ends all tasks, because the session with Placement will end: their callers get -EBUSY and these
 * words. Pending work stays in the database. */
void claim_queue_dismiss(ClaimQueue *queue, const char *why);
