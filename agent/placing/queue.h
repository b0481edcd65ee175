/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims as D-Bus asks for them, with Placement's word: each is a task over the reporter's session
 * while the loop goes on. What is under way or owed stands in the claim database first
 * (claims/store/store.h), so that a crash or a lost Placement leaves nothing behind: the end
 * of each cycle settles it.
 *
 * A claim: is it there already, it is answered. Else its consumer is read (one GET). Has it
 * allocations on this host, somebody placed it: these are verified and claimed, and nothing is
 * written; where there is no room for them, claims whose guests are gone are searched for once, and
 * it is tried again. Has it none, the fit chooses, the choice is claimed as pending and written
 * with the consumer's generation, and the claim is answered. Refused for want of room: what
 * Placement has left is read, and chosen from. Lost a race: all over again. Each a bounded number
 * of times.
 *
 * LIMITATIONS: Placement counts the generation of a consumer that was deleted and made anew from
 * the start. A removal or a move that was given up, was done again, and arrives after the consumer
 * was claimed once more takes that; an audit finds it.
 *
 * No transaction and no lock is held while Placement is asked; one consumer has one task at a time,
 * and the next claim waits for it.
 * Main thread; a callback may come from inside the call that takes it. */

#include <systemd/sd-event.h>

#include "agent/guests/database.h"
#include "config/config.h"
#include "report/session/session.h"

/* Beside ClaimOutcome. */
typedef enum ClaimQueueOutcome {
        CLAIM_QUEUE_E_NOT_PLACED = _CLAIM_OUTCOME_MAX, /* nobody placed it, and we may not */
        CLAIM_QUEUE_E_PLACEMENT, /* Placement is away, or refuses us: reterr has the words */
        CLAIM_QUEUE_E_REFUSED,   /* it is not ours to write ([agent] nova) */
        _CLAIM_QUEUE_OUTCOME_MAX,
} ClaimQueueOutcome;

typedef struct ClaimQueue ClaimQueue;

/* result: 0, a ClaimOutcome, a ClaimQueueOutcome or a negative errno, with words unless 0. claim is
 * borrowed, NULL unless 0; is_new: it was promised just now. */
typedef void (*ClaimQueueDone)(int result, const Claim *claim, bool is_new, const Error *error,
                               void *userdata);

/* What a task has read anew before it goes on. */
typedef enum ClaimRefresh {
        CLAIM_REFRESH_NONE,
        /* Every guest, also those that do not run: their definitions change without an event (virsh
         * attach-device --config). A claim of a device waits for it, and is refused where it does
         * not come in time. */
        CLAIM_REFRESH_GUESTS = 1,
        /* The host, and the claims without a guest as Placement has them: one of them may end, and
         * leave its capacity to a placed guest that was refused. */
        CLAIM_REFRESH_HOST = 2,
} ClaimRefresh;

typedef struct ClaimQueueConfig {
        sd_event *event;       /* a reference is taken */
        ClaimService *service; /* borrowed */
        Uuid root;             /* the host's root provider */
        /* Returns the session to use now; NULL: there is none yet. */
        Session *(*session)(void *userdata);
        /* Called after a round of settling that had something to settle. NULL: not called. */
        void (*settled)(void *userdata);
        /* Asks for a refresh; claim_queue_refreshed() follows, never from inside the call. Negative
         * errno with words: it cannot be read now. NULL: claims are decided by what is known. */
        int (*refresh)(ClaimRefresh what, void *userdata, Error *reterr);
        void *userdata; /* of all of these */
} ClaimQueueConfig;

/* -ENOMEM. */
int claim_queue_new(ClaimQueue **ret, const ClaimQueueConfig *config);

/* Drops all tasks without a callback. */
ClaimQueue *claim_queue_free(ClaimQueue *queue);
DEFINE_CLEANUP(ClaimQueue *, claim_queue_free);

/* with_placement false: standalone, all claims are local. */
void claim_queue_set_mode(ClaimQueue *queue, ClaimMode mode, NovaMode nova, bool with_placement);

/* Sets whether the last cycle found Placement away: with CLAIM_MODE_AUTO, claims then do not wait
 * for it. */
void claim_queue_set_away(ClaimQueue *queue, bool away);

/* Runs the tasks that wait for this refresh, if it was asked for before began_usec
 * (CLOCK_MONOTONIC). With an error it ends those that wait for guests. */
void claim_queue_refreshed(ClaimQueue *queue, ClaimRefresh what, uint64_t began_usec,
                           const Error *error);

/* Waits for the refresh alone that a claim of the request would wait for. done gets no claim.
 * Everything of request is borrowed until done. */
void claim_queue_refresh(ClaimQueue *queue, const ClaimRequest *request, ClaimQueueDone done,
                         void *userdata);

/* Makes a claim. Everything of request is borrowed until done. */
void claim_queue_claim(ClaimQueue *queue, const ClaimRequest *request, ClaimQueueDone done,
                       void *userdata);

/* Moves the claim of one consumer, with its allocations in Placement, to another: one POST
 * /allocations. to_type NULL: "MIGRATION" from an instance, "INSTANCE" from all others. A repeated
 * move is no error. by: the caller, borrowed until done. */
void claim_queue_move(ClaimQueue *queue, const Uuid *from, const Uuid *to, const char *to_type,
                      const EventAuthor *by, ClaimQueueDone done, void *userdata);

/* Settles what is owed to Placement, one task after the other; stops at the first failure. To be
 * called at the end of each cycle. */
void claim_queue_settle(ClaimQueue *queue);

/* Settles when the loop runs again. */
void claim_queue_settle_soon(ClaimQueue *queue);

/* Counts what is owed to Placement; nothing while the claim database cannot be read. Returns why
 * the last round did not settle all, "" when it did: borrowed, and current for the queue's life.
 * Blocks on the disk. */
const char *claim_queue_count_owed(const ClaimQueue *queue, ClaimsOwed *ret);

/* Ends a claim as claims_release() does. everywhere: also its allocations on this host that another
 * writer placed. The removal is settled later. */
int claim_queue_release(ClaimQueue *queue, int64_t id, const char *reason, bool everywhere,
                        Error *reterr);

/* Ends all tasks with these words, because the session goes away. */
void claim_queue_dismiss(ClaimQueue *queue, const char *why);
