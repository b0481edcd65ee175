/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is owed to Placement of single claims: a write that is still to be done, or what an ended
 * one left there. */

#include "agent/placing/decide.h"
#include "claims/claims-placement.h"

typedef struct ClaimTask ClaimTask;

typedef struct ClaimLeaving {
        ClaimRemoval removal;
        bool late; /* the removal could not be looked at when the claim ended */
} ClaimLeaving;

/* Ends the task, now or later. */
void claim_settling_run(ClaimTask *task);

/* What to do about what a claim (ended; NULL: not known any more) left of the consumer that was
 * read. */
ClaimRemovalDecision claim_settling_decide(const ClaimTask *task, Claims *claims,
                                           const ClaimRemoval *removal, const Claim *ended,
                                           bool late, bool inherited);
