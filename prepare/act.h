/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Executes single steps of a plan. In this project, only act.c and units that this program starts
 * write to sysfs. */

#include "prepare/hardware.h"

/* Executes a step that acts (prepare_kind_acts()). Immediately before its first write, it reads
 * again whether the function is in use. If the step is about the card, this concerns all functions
 * of the card. For a change of a type it also reads the type. If one of these differs from the
 * plan, nothing is written. Afterwards the result is read back. The start of a unit needs no such
 * check.
 *
 * Returns 1 if the step was done, 0 if the host changed since the plan, or a negative errno with
 * words; a part of the step can be done then. Blocks as long as the driver does, for new functions
 * about 10 s longer at most, and for a unit until its end, without a limit. "open" of the
 * functions of host is updated, except for the start of a unit. */
int prepare_act(const PreparePaths *paths, PrepareHost *host, const PrepareStep *step,
                Error *reterr);
