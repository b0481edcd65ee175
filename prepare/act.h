/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Executes single steps of a plan: the only writes to sysfs of this project. */

#include "prepare/hardware.h"

/* Executes a step that acts (prepare_kind_acts()). Immediately before, it reads again whether a
 * process has the function open, and its type. If that changed since the plan, nothing is written.
 * Afterwards the result is read back.
 *
 * Returns 1 if the step was done, 0 if the host changed since the plan, or a negative errno with
 * words. Blocks as long as the driver does, and for a unit until it ended. "open" of the functions
 * of host is updated. */
int prepare_act(const PreparePaths *paths, PrepareHost *host, const PrepareStep *step,
                Error *reterr);
