/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A look at what guests that do not run have, which a claim of a device waits for: they are edited
 * without a word to us. Several tasks share one. */

#include "agent/placing/task.h"

/* Does its request ask for a device, and was nothing looked at for it yet? */
bool claim_look_is_due(const ClaimTask *task);

/* Asks for one; fails the task when none comes in time. */
void claim_look_begin(ClaimTask *task);

/* Ends the task. */
void claim_look_fail(ClaimTask *task, const char *why);
