/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is owed to Placement of single claims: a write that is still to be done, or what an ended
 * one left there. */

#include "agent/placing/decide.h"
#include "agent/placing/task.h"

/* ClaimTaskRuns: claim is owed; leaving is to be finished. */
void claim_writing_run(ClaimTask *task);
void claim_removing_run(ClaimTask *task);

/* What to do about what a claim (ended; NULL: not known any more) left of the consumer that was
 * read; state says whether it is late, inherited, and lives. */
ClaimRemovalDecision claim_settling_decide(const ClaimTask *task, Claims *claims,
                                           const ClaimRemoval *removal, const Claim *ended,
                                           ClaimRemovalState state);
