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

/* The session to use now; NULL: there is none yet. */
typedef Session *(*ClaimQueueSession)(void *userdata);

/* Asks for a look at what guests have, see claim_queue_looked(). Negative errno with words. */
typedef int (*ClaimQueueLook)(void *userdata, Error *reterr);

/* A placed guest is refused for want of room: polls the host and asks Placement once more, for a
 * claim whose guest is gone may have it; claim_queue_searched() follows, never from inside the
 * call. cancel: it need not. < 0: there is nothing to be learnt now. */
typedef int (*ClaimQueueSearch)(void *task, bool cancel, void *userdata);

/* A round of settling ended in which there was something to settle. */
typedef void (*ClaimQueueSettled)(void *userdata);

typedef struct ClaimQueueConfig {
        sd_event *event;       /* a reference is taken */
        ClaimService *service; /* borrowed */
        Uuid root;             /* the host's root provider */
        ClaimQueueSession session;
        ClaimQueueSettled settled; /* NULL: nobody wants to know */
        ClaimQueueSearch search;   /* NULL: none */
        /* Before a claim gets a device the guests that do not run are read again: they are edited
         * without a word to us (virsh attach-device --config). Without a look at them
         * (LOOK_PATIENCE_USEC) such a claim is refused; others do not wait. NULL: claims go by what
         * is known. */
        ClaimQueueLook look;
        void *userdata; /* of all of these */
} ClaimQueueConfig;

/* -ENOMEM. */
int claim_queue_new(ClaimQueue **ret, const ClaimQueueConfig *config);

/* Forgets what is under way, without a callback. */
ClaimQueue *claim_queue_free(ClaimQueue *queue);
DEFINE_CLEANUP(ClaimQueue *, claim_queue_free);

/* with_placement false: standalone, and all is local. */
void claim_queue_set_mode(ClaimQueue *queue, ClaimMode mode, NovaMode nova, bool with_placement);

/* Whether the last cycle found Placement away: then nobody waits for it who need not
 * (CLAIM_MODE_AUTO). */
void claim_queue_set_away(ClaimQueue *queue, bool away);

/* What guests had at this time (CLOCK_MONOTONIC) is known, or, with an error, is not to be known.
 */
void claim_queue_looked(ClaimQueue *queue, uint64_t began_usec, const Error *error);

/* The look alone that a claim of the request would wait for: then what is known is what the claim
 * would go by. done gets no claim. Everything of request is borrowed until done. */
void claim_queue_look(ClaimQueue *queue, const ClaimRequest *request, ClaimQueueDone done,
                      void *userdata);

/* Everything of request is borrowed until done. */
void claim_queue_claim(ClaimQueue *queue, const ClaimRequest *request, ClaimQueueDone done,
                       void *userdata);

/* The claim of one consumer, and all it holds in Placement, becomes another's: one POST
 * /allocations. to_type NULL: "MIGRATION" from an instance, "INSTANCE" from all others. Once more
 * is no error. by: who wants it, borrowed until done. */
void claim_queue_move(ClaimQueue *queue, const Uuid *from, const Uuid *to, const char *to_type,
                      const EventAuthor *by, ClaimQueueDone done, void *userdata);

/* Finishes what is owed to Placement, one after the other; stops at the first failure. To be called
 * at the end of each cycle, and when something was released. */
void claim_queue_settle(ClaimQueue *queue);

/* The same when the loop runs again. */
void claim_queue_settle_soon(ClaimQueue *queue);

/* Nothing while the claim database cannot be read. Blocks on the disk. */
ClaimsOwed claim_queue_count_owed(const ClaimQueue *queue);

/* Why the last round did not settle all; "" when it did. Borrowed until the loop runs again. */
const char *claim_queue_get_trouble(const ClaimQueue *queue);

/* Ends a claim, as claims_release(); everywhere: also what Placement has of it on this host, though
 * somebody else wrote it there. What is to be removed is settled later. */
int claim_queue_release(ClaimQueue *queue, int64_t id, const char *reason, bool everywhere,
                        Error *reterr);

/* A search is over. */
void claim_queue_searched(void *task);

/* The session goes away: ends what is under way with words. */
void claim_queue_dismiss(ClaimQueue *queue, const char *why);
