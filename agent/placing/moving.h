/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A claim, with all that its consumer holds, becomes another consumer's: one POST /allocations.
 * What was not done is made sure not to arrive late, where nobody waits for it any more. */

#include "claims/claims-placement.h"

typedef struct ClaimTask ClaimTask;

typedef struct ClaimMoving {
        ClaimMove move;      /* as the database has it; id 0: not yet */
        bool repairs;        /* nobody waits for the move: what was not done is taken back */
        Consumer *target;    /* who it goes to, as Placement has it */
        ClaimReported after; /* how Placement has its consumer when that is written */
} ClaimMoving;

/* Ends the task, now or later. */
void claim_moving_run(ClaimTask *task);
