/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What to do when claims and guests are not the same. Pure: claims, a poll and Placement's answers
 * in, a list out; the caller does it.
 *
 *   guest without a claim                          adopt: it gets a claim as it is
 *   claim that was made of a guest before what
 *     Placement has of it was read                 complete it by that
 *   claim that was made of a guest, which has
 *     other amounts by now; Placement has at
 *     least those                                  release and adopt: it was resized
 *   claim that was made of a guest, and another
 *     writer changed its amounts in Placement      release and adopt: it follows
 *   guest with a claim that expired unconfirmed    confirm: the guest is there, and was forgotten
 *   claim whose guest is not here, and Placement
 *     has nothing of its consumer on this host     release: two witnesses
 *   the same, unconfirmed and expired, or confirmed
 *     and without its guest for the expiry time    release, unless its consumer holds something
 *     here
 *   consumer without claim and guest, in the first
 *     complete read for a new claim database       place: it gets a claim of its allocation
 *   claim of another boot, that lacks a device
 *     or its identity,
 *     does not say where its guest is, or holds
 *     other host CPUs than the guest's threads     check again
 *
 * A guest is a domain that is defined or runs (with started_only: that runs); it and its claim have
 * the same uuid. "For the expiry time" counts from the first poll that missed the guest, so that a
 * domain which is undefined and defined again, or an agent that was off, costs no guest its claim.
 *
 * Age is no certainty: a scheduler that placed a consumer here has something in mind with it,
 * however slow the build. So Placement is asked first, and what cannot be asked now stays as it is.
 * Asked is where the answer decides something: a claim that is about to end, a guest that is
 * adopted, a confirmed claim that lost its guest, and when somebody is refused for want of room
 * (urgent) all without a guest. One that stays is asked about again after twice the time, at most
 * each expiry time. Not Placement's to say is what the agent wrote there itself, and what a guest
 * holds that holds nothing while it does not run: there age decides. But age ends no claim of a
 * server that has a folder in Nova's instances_path, or may have one: Nova can be building it.
 *
 * A guest may be no domain: then its claim says by what it is known, and the caller whether it
 * lives. Such a claim is confirmed when its guest was seen.
 *
 * A guest that is resized on its own host has two claims (claims/resize-pair.h). They are compared
 * with a complete read of Placement: one of them ends when guest and Placement contradict it, and
 * no migration can hold it. The read is repeated after twice the time, at most each expiry time.
 *
 * A claim that was handed to a migration is its guest's still, wherever that is: the guest is not
 * adopted, and the claim is no orphan.
 *
 * Whatever else disagrees is a problem: shown to people, and nothing is changed. */

#include "claims/claim/host-view.h"
#include "claims/reconcile-compare.h"

typedef enum ReconcileType {
        RECONCILE_ASK, /* what Placement has of the consumer; then all over again */
        RECONCILE_ADOPT,
        RECONCILE_COMPLETE, /* by the answer about its consumer */
        RECONCILE_EXTEND,   /* by the expiry time: its consumer holds something here */
        RECONCILE_CONFIRM,
        RECONCILE_RELEASE,
        RECONCILE_CHECK,
        RECONCILE_PLACE, /* a claim of what Placement allocates to the consumer */
        _RECONCILE_TYPE_MAX,
} ReconcileType;

typedef struct ReconcileAction {
        ReconcileType type;
        int64_t claim_id; /* 0 for RECONCILE_ADOPT and RECONCILE_PLACE */
        Uuid consumer;
        const HostDomain *domain; /* of the facts; NULL: no guest */
        const char *reason;       /* of a release */
        const char *evidence;     /* of a release: the reason why it is safe; ends a sentence */
        int64_t other_id;         /* of a release with CLAIM_RESIZE_OVER: the claim that is kept */
} ReconcileAction;

/* The problem of a database that is unread while Placement is away. */
#define RECONCILE_UNREAD                                                     \
        "Placement was not read since the claim database was lost or made; " \
        "devices and dedicated CPUs can belong to other consumers"

/* Since when confirmed claims have no guest, one with other amounts, or a second claim beside them,
 * from one call to the next. */
typedef struct ReconcileMissing {
        int64_t claim_id;
        uint64_t since_usec;
        uint64_t asked_usec; /* when Placement answered last about it; 0: not yet */
        Uuid migration;      /* of the two claims of a resize: it can hold one of them; "": none */
} ReconcileMissing;

typedef struct ReconcileMemory {
        ReconcileMissing *items; /* by claim */
        size_t n_items, n_allocated;
} ReconcileMemory;

void reconcile_memory_done(ReconcileMemory *memory);

/* How it is with Placement. */
typedef enum ReconcileWord {
        RECONCILE_ALONE,   /* there is none: age alone counts */
        RECONCILE_AWAY,    /* it cannot be asked now, or was just asked: answers are all there is */
        RECONCILE_CAN_ASK, /* RECONCILE_ASK first where an answer is wanted */
} ReconcileWord;

/* A claim that was made, confirmed or answered with. */
typedef struct ReconcileTouched {
        int64_t claim_id;
        uint64_t when_usec;
} ReconcileTouched;

typedef struct Reconcile {
        ReconcileAction *actions; /* releases first: what they free may be wanted */
        size_t n_actions, n_actions_allocated;
        bool wants_all; /* all consumers of this host first; then all over again */
        ReconcileProblems problems;
} Reconcile;

void reconcile_done(Reconcile *reconcile);

typedef struct ReconcileInput {
        const ClaimList *claims; /* that live, by id */
        const HostFacts *facts;
        const HostView *view; /* NULL: not looked at */
        const char *node;
        const char *boot_id;
        uint64_t expiry_usec; /* 0: claims never expire, and there are no orphans */
        bool started_only;    /* guests claim when they start: one that is shut off holds nothing,
                               * but by a claim that somebody asked for */
        const Uuid *away;     /* guests that other hosts have now: none of them is adopted while it
                                 does not run */
        size_t n_away;
        ReconcileWord word;
        const PictureConsumer *answers; /* by consumer */
        size_t n_answers;
        bool unread;   /* the claim database is new, and Placement was not read for it yet */
        bool complete; /* every consumer that holds something here has an answer */
        const Allocations *held; /* what consumers hold of the providers of CPUs, memory and disk;
                                    NULL: not read now. Tells which claims to ask about. */
        bool urgent;             /* room is wanted: ask about every claim without a guest */
        const HostDomain *lives; /* guests that are no domains, but live, as claims know them by
                                    (Claim has life): what they have is not known */
        size_t n_lives;
        const ReconcileTouched *touched; /* of one since the poll began it says nothing that its
                                            guest is missing */
        size_t n_touched;
        bool recorded; /* the guests of facts are not here: only claims that expire, or know their
                          guest themselves, are looked at */
} ReconcileInput;

/* ret must be zeroed. -ENOMEM leaves memory as it was. */
int reconcile_make(const ReconcileInput *input, ReconcileMemory *memory, Reconcile *ret);
