/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares claims and guests, and lists the actions that make them agree. Pure: claims, a poll and
 * Placement's answers go in, and a list comes out. The caller does the actions:
 *
 *   READ      The caller reads a consumer's allocations, and calls again with the answer.
 *   ADOPT     A guest without a claim gets one that is made of its domain.
 *   COMPLETE  A confirmed claim that was made of a guest, before its allocations were read, gets
 *             these, unless the agent writes them.
 *   RELEASE   A claim ends if its guest is not here, and its consumer has nothing on this host:
 *             poll and Placement agree. With a pending write it must be old, too. Where Placement
 *             does not decide, it ends by age: unconfirmed and expired, or confirmed and without
 *             its guest for the expiry time. A pending claim never ends here, and a recent one
 *             only after a later poll. On a host without Placement, the database ends unconfirmed
 *             claims.
 *   BOTH      RELEASE and ADOPT replace a claim that was made of a guest. The guest was resized,
 *             and Placement has at least its amounts. Or another writer changed the amounts in
 *             Placement, or took devices away, which the claim follows. They also replace any claim
 *             that stays after a resize, if the guest has other devices.
 *   CONFIRM   The guest of an unconfirmed claim is here, and the claim expired or its guest is no
 *             domain. Or the claim was made for the start of a server, and its guest runs. A domain
 *             that cannot be read confirms nothing. Also the claim that stays after a resize.
 *   EXTEND    A claim expired unconfirmed, but its consumer has allocations here, or, without
 *             Placement, its guest is here and cannot be read.
 *   PLACE     A consumer without claim and guest gets a claim of its allocations, unless it can be
 *             the migration of a guest here. This needs the first complete read for a new claim
 *             database.
 *   CHECK     A claim belongs to another boot, or lacks a device, an identity or the cells of its
 *             guest, or holds other host CPUs than the guest's threads use. For the layout, the
 *             guest must have no other claim.
 *
 * A guest is a domain that is defined or runs (with started_only: that runs). The guest and the
 * consumer of its claim have the same uuid, unless a migration took the claim over. For a confirmed
 * claim, the expiry time counts from the first poll that missed the guest. So a guest keeps its
 * claim if its domain is undefined and defined again, or if the agent was off. It loses the claim
 * earlier if Placement shows that its consumer has nothing here.
 *
 * Age alone does not prove that a claim is unused, because a build can be slow. So Placement is
 * asked first, and claims that cannot be checked now stay unchanged. The exceptions are named
 * below. Placement is asked only where its answer decides. So it is for a claim that is about to
 * end, was not completed or might follow, and for a guest that is adopted. It is also for a
 * confirmed claim without its guest, for two claims of a resize, and for a new claim database.
 * After a rejection without capacity (urgent) it is asked at once about all claims without a guest
 * that its answer could end. If a confirmed claim stays, the pauses between questions about it
 * grow. A pause is as long as the guest was missing at the last question, and at most the expiry
 * time, if claims expire.
 *
 * Allocations in Placement do not keep a claim whose allocations the agent wrote, or whose guest
 * releases everything while it is off. Such a claim ends by age. On a host without Placement, age
 * alone decides. But reconcile_make() ends no claim by age alone if its server has no domain, and
 * has, or might have, a folder in Nova's instances_path. Nova can be building it.
 *
 * A guest need not be a domain. Then its claim has a text that identifies it, and the caller lists
 * the guests that exist. Such a claim is confirmed once its guest was seen.
 *
 * A guest that is resized on its own host has two claims (claims/resize-pair.h). They are compared
 * with a complete read of Placement. One of them ends if guest and Placement contradict it, and no
 * migration can own it. An unconfirmed claim that has not expired stays. The read is repeated with
 * the same pauses.
 *
 * A claim that a migration took over still belongs to its guest, on any host. The guest is not
 * adopted, and a confirmed claim is no orphan. An unconfirmed one is treated as any other.
 *
 * Every other difference is a problem: it is shown to the operator, and nothing is changed. */

#include "claims/claim/host-view.h"
#include "claims/reconcile-compare.h"

typedef enum ReconcileType {
        RECONCILE_READ, /* read the consumer's allocations, then call again */
        RECONCILE_ADOPT,
        RECONCILE_COMPLETE, /* from the answer about its consumer */
        RECONCILE_EXTEND, /* by the expiry time: its consumer has allocations here, or its guest is
                             here */
        RECONCILE_CONFIRM,
        RECONCILE_RELEASE,
        RECONCILE_CHECK,
        RECONCILE_PLACE, /* create a claim from the consumer's allocations */
        _RECONCILE_TYPE_MAX,
} ReconcileType;

typedef struct ReconcileAction {
        ReconcileType type;
        int64_t claim_id; /* 0 for RECONCILE_ADOPT, RECONCILE_PLACE, and RECONCILE_READ of a guest
                           * without a claim */
        Uuid consumer;
        const HostDomain *domain; /* one of the facts or processes; NULL: no guest, or the action
                                   * does not need it */
        const char *reason;       /* RECONCILE_RELEASE: reason of the end */
        const char *evidence;     /* RECONCILE_RELEASE: reason why it is safe; ends a sentence */
        int64_t other_id;         /* CLAIM_RESIZE_OVER: the claim that is kept */
} ReconcileAction;

/* The problem of a database that is unread while Placement is away. */
#define RECONCILE_UNREAD                                                     \
        "Placement has not been read since the claim database was created. " \
        "Devices and dedicated CPUs can belong to other consumers"

/* Start times of differences, kept from one call to the next. A difference is a confirmed claim
 * without a guest, or with a guest of other amounts or fewer devices. A claim with a second one
 * beside it is another. */
typedef struct ReconcileMissing {
        int64_t claim_id;
        uint64_t since_usec;
        uint64_t asked_usec; /* last answer of Placement about it; 0: none yet */
        Uuid migration;      /* consumer that can own one of the two claims of a resize; "":
                                none */
} ReconcileMissing;

typedef struct ReconcileMemory {
        ReconcileMissing *items; /* sorted by the id of the claim */
        size_t n_items, n_allocated;
} ReconcileMemory;

void reconcile_memory_done(ReconcileMemory *memory);

/* States whether Placement can be asked. */
typedef enum ReconcileAccess {
        RECONCILE_NO_PLACEMENT, /* there is no Placement: age alone counts */
        RECONCILE_NO_READS, /* it cannot be asked now, or was just asked: no more answers will come
                             */
        RECONCILE_CAN_READ, /* it can be asked: RECONCILE_READ comes before a decision */
} ReconcileAccess;

/* A claim that was made, confirmed or yielded recently. */
typedef struct ReconcileRecent {
        int64_t claim_id;
        uint64_t when_usec;
} ReconcileRecent;

typedef struct Reconcile {
        ReconcileAction *actions; /* in this order: release, confirm, extend, complete, check,
                                   * adopt, place, read. Later actions can need what releases
                                   * free */
        size_t n_actions, n_actions_allocated;
        bool wants_all; /* read all consumers of this host, then call again */
        ReconcileProblems problems;
} Reconcile;

void reconcile_done(Reconcile *reconcile);

typedef struct ReconcileInput {
        const ClaimList *claims; /* living ones, by id */
        const HostFacts *facts;
        const HostView *view; /* NULL: not compared */
        const char *node;
        const char *boot_id;
        uint64_t expiry_usec; /* 0: claims never expire, and there are no orphans */
        bool started_only;    /* guests claim when they start: a guest that is off holds nothing,
                                 except by a claim that a caller asked for, or that another writer
                                 placed */
        const Uuid *away; /* guests that other hosts have now: one that is off is adopted only after
                             the loss of the database (reconcile_adopts()) */
        size_t n_away;
        ReconcileAccess access;
        const ConsumerRead *answers; /* sorted by consumer */
        size_t n_answers;
        bool unread;   /* the claim database is new, and Placement was not read for it yet */
        bool complete; /* every consumer with allocations here has an answer */
        const Allocations *held; /* allocations from the providers of CPUs, memory and disk; NULL:
                                    not read now. They select the claims to ask about. */
        bool urgent;             /* capacity is needed: ask at once about claims without a guest */
        const HostDomain *processes; /* living guests that are processes or units, as claims
                                    identify them; their resources are unknown */
        size_t n_processes;
        const ReconcileRecent *recent; /* a poll that began before such a time cannot show that
                                            the claim's guest is missing */
        size_t n_recent;
        bool recorded; /* facts has no guests: only devices, claims that expire, and claims that
                        * identify their guest themselves are compared */
} ReconcileInput;

/* Returns true if a guest that has no claim gets one. A guest that is off gets none if another host
 * has it, or with started_only. But the first complete read for a new claim database adopts it if
 * another writer's allocations of it are here. */
bool reconcile_adopts(const ReconcileInput *input, const HostDomain *domain);

/* Makes the list of actions, and replaces memory. ret must be zeroed; the caller frees it with
 * reconcile_done(). It borrows from the input. -ENOMEM leaves memory as it was, and ret empty. */
int reconcile_make(const ReconcileInput *input, ReconcileMemory *memory, Reconcile *ret);
