/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A claim, with all that its consumer holds, becomes another consumer's: one POST /allocations.
 * What was not done is made sure not to arrive late, where nobody waits for it any more. */

#include "agent/placing/task.h"

/* A ClaimTaskRun. */
void claim_moving_run(ClaimTask *task);
