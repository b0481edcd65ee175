/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What claims and guests are compared by, and when: what polls found, which claims are newer than
 * that, and what goes from one comparison to the next: what was missing, what Placement said of it,
 * which guests other hosts have, and what disagrees. The comparing is claims/reconcile.h, what is
 * done of it agent/guests/reconcile.h. */

#include "agent/guests/clock-watch.h"
#include "base/allocation.h"
#include "claims/claim/host-view.h"
#include "claims/reconcile.h"
#include "drivers/driver.h"

/* Consumers of which is to be read what Placement has; sorted. */
typedef struct ClaimWanted {
        Uuid *uuids;
        size_t n_uuids;
        bool all;    /* and every consumer that holds something of the host's own tree */
        bool absent; /* Placement does not have the tree, so that nothing was read of it */
} ClaimWanted;

static inline bool claim_wanted_is_empty(const ClaimWanted *wanted)
{
        return wanted->n_uuids == 0 && !wanted->all;
}

static inline void claim_wanted_done(ClaimWanted *wanted)
{
        free(wanted->uuids);
        *wanted = (ClaimWanted){ 0 };
}

typedef struct ClaimComparison {
        /* One poll or two: a newer one may bring its guests before a cycle takes all of it. */
        Snapshot *snapshot; /* that facts borrows from; NULL before the first */
        Snapshot *guests;   /* the same, for the domains alone: as new or newer */
        HostFacts facts;
        ReconcileTouched *touched; /* claims since the poll of snapshot, or a little longer: it says
                                      nothing of their guests */
        size_t n_touched, n_touched_allocated;

        bool is_due; /* the poll was not looked at yet */
        ReconcileMemory memory;
        ReconcileProblems problems;
        Uuid *away; /* guests that other hosts have */
        size_t n_away;
        uint64_t urgent_usec;     /* a poll that begins after this is to be followed by asking about
                                     all without a guest; 0: none is */
        Allocations *holding;     /* what Placement has of those that were asked about */
        PictureConsumer *answers; /* the same, that borrow from it */
        size_t n_answers;
        bool complete;     /* all were read */
        bool absent;       /* the same; Placement does not have the tree yet */
        Allocations *held; /* what consumers hold of some providers, for the next comparison alone;
                              NULL: not read */
        uint64_t held_stamp; /* of these providers when that was read last */
} ClaimComparison;

void claim_comparison_done(ClaimComparison *comparison);

/* Keeps a reference of both. Claims that were touched before snapshot's poll are forgotten.
 * -ENOMEM: it is as before. */
int claim_comparison_set_polls(ClaimComparison *comparison, const HostConfig *driver,
                               const Snapshot *snapshot, const Snapshot *guests);

/* The claim was answered with at that time (CLOCK_REALTIME); without memory it is not noted. */
void claim_comparison_touch(ClaimComparison *comparison, int64_t claim, uint64_t usec);

/* What Placement has of those that were asked about, for the next comparison alone; takes holding.
 * view NULL: the host is not known, and nothing was learnt. */
void claim_comparison_answer(ClaimComparison *comparison, const ClaimWanted *asked,
                             Allocations *holding, const HostView *view, const char *node);

/* Sets what consumers hold of the providers that claims follow (agent/guests/witness.h), and the
 * stamp of these providers. Takes held. */
void claim_comparison_set_held(ClaimComparison *comparison, uint64_t stamp, Allocations *held);

/* What is to be compared; borrows from it. What the configuration and the claims say of it is the
 * caller's to add. */
ReconcileInput claim_comparison_input(const ClaimComparison *comparison, ReconcileWord word);

/* It was done. asked: Placement is asked first, and the rest is due then. */
void claim_comparison_end(ClaimComparison *comparison, bool asked);

/* Somebody set the clock. */
void claim_comparison_follow_clock(ClaimComparison *comparison, const ClockJump *jump);
