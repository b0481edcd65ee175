/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When claims and guests are compared, and what goes from one comparison to the next: what was
 * missing, what Placement said of it, which guests other hosts have, and what disagrees. The
 * comparing is claims/reconcile.h, what is done of it agent/guests/reconcile.h. */

#include "agent/guests/picture.h"
#include "base/allocation.h"
#include "claims/claim/host-view.h"

/* Consumers of which is to be read what Placement has; sorted. */
typedef struct ClaimWanted {
        Uuid *uuids;
        size_t n_uuids;
} ClaimWanted;

static inline void claim_wanted_done(ClaimWanted *wanted)
{
        free(wanted->uuids);
        *wanted = (ClaimWanted){ 0 };
}

typedef struct ClaimComparison {
        bool is_due;       /* the poll was not looked at yet */
        bool started_only; /* see claims/reconcile.h */
        ReconcileMemory memory;
        ReconcileProblems problems;
        Uuid *away; /* guests that other hosts have */
        size_t n_away;
        uint64_t urgent_usec;     /* a poll that begins after this is to be followed by asking about
                                     all without a guest; 0: none is */
        Allocations *holding;     /* what Placement has of those that were asked about */
        ReconcileAnswer *answers; /* the same, that borrow from it */
        size_t n_answers;
} ClaimComparison;

void claim_comparison_done(ClaimComparison *comparison);

/* Takes guests. */
void claim_comparison_set_away(ClaimComparison *comparison, Uuid *guests, size_t n_guests);
bool claim_comparison_is_away(const ClaimComparison *comparison, const Uuid *guest);

/* What Placement has of those that were asked about, for the next comparison alone; takes holding.
 * view NULL: the host is not known, and nothing was learnt. */
void claim_comparison_answer(ClaimComparison *comparison, const ClaimWanted *asked,
                             Allocations *holding, const HostView *view, const char *node);

/* What is to be compared with the picture; borrows from both. */
ReconcileInput claim_comparison_input(const ClaimComparison *comparison,
                                      const GuestPicture *picture, ReconcileWord word,
                                      uint64_t expiry_usec);

/* It was done. asked: Placement is asked first, and the rest is due then. */
void claim_comparison_end(ClaimComparison *comparison, const GuestPicture *picture, bool asked);

/* Somebody set the clock. */
void claim_comparison_follow_clock(ClaimComparison *comparison, const ClockJump *jump);
