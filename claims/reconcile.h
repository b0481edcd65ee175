/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What to do when claims and guests are not the same. Pure: claims and a poll in, a list out; the
 * caller does it.
 *
 *   guest without a claim                          adopt: it gets a claim as it is
 *   guest with a claim that expired unconfirmed    confirm: the guest is there, and was forgotten
 *   confirmed claim without a guest for longer
 *     than the expiry time                         release: an orphan
 *   claim of another boot, or that lacks a device
 *     or does not say where its guest is           check again
 *
 * A guest is a domain that is defined or runs (with started_only: that runs); it and its claim have
 * the same uuid. "For longer"
 * counts from the first poll that missed the guest, so that a domain which is undefined and defined
 * again, or an agent that was off, costs no guest its claim. Unconfirmed claims without a guest
 * expire by themselves.
 *
 * A claim that was handed to a migration is its guest's still, wherever that is: the guest is not
 * adopted, and the claim is no orphan.
 *
 * Whatever else disagrees is a problem: told to people, and nothing is changed. */

#include "claims/claim.h"
#include "claims/host-facts.h"
#include "claims/host-view.h"

typedef enum ReconcileType {
        RECONCILE_ADOPT,
        RECONCILE_CONFIRM,
        RECONCILE_RELEASE,
        RECONCILE_CHECK,
        _RECONCILE_TYPE_MAX,
} ReconcileType;

typedef struct ReconcileAction {
        ReconcileType type;
        int64_t claim_id; /* 0 for RECONCILE_ADOPT */
        Uuid consumer;
        const HostDomain *domain; /* of the facts; NULL: no guest */
} ReconcileAction;

typedef struct ReconcileProblem {
        Uuid consumer;
        int64_t claim_id; /* 0: none */
        char *text;       /* for people, the same for the same problem */
} ReconcileProblem;

typedef struct ReconcileProblems {
        ReconcileProblem *items;
        size_t n_items, n_allocated;
} ReconcileProblems;

/* -ENOMEM. */
int reconcile_add_problem(ReconcileProblems *problems, const Uuid *consumer, int64_t claim_id,
                          const char *format, ...) _printf_(4, 5);
void reconcile_problems_done(ReconcileProblems *problems);

/* Since when confirmed claims have no guest, from one call to the next. */
typedef struct ReconcileMissing {
        int64_t claim_id;
        uint64_t since_usec;
} ReconcileMissing;

typedef struct ReconcileMemory {
        ReconcileMissing *items; /* by claim */
        size_t n_items, n_allocated;
} ReconcileMemory;

void reconcile_memory_done(ReconcileMemory *memory);

typedef struct Reconcile {
        ReconcileAction *actions; /* releases first: what they free may be wanted */
        size_t n_actions, n_actions_allocated;
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
} ReconcileInput;

/* ret must be zeroed. -ENOMEM leaves memory as it was. */
int reconcile_make(const ReconcileInput *input, ReconcileMemory *memory, Reconcile *ret);
