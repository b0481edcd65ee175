/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A claim that somebody asks for, from the look at its consumer to the answer: what was placed is
 * verified and claimed, else the fit chooses, and the choice is written. All of it:
 * agent/placing/queue.h. */

#include "agent/placing/task.h"

/* A ClaimTaskRun. */
void claim_claiming_run(ClaimTask *task);

/* The search is over: goes on. */
void claim_search_end(ClaimTask *task);
