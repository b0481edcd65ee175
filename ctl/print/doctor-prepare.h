/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The part of "computectl doctor" that judges the records of compute-agent-prepare. Pure. */

#include "ctl/print/doctor.h"

/* Judges the cards of [device_prepare NAME] by the record of the last run and by the host now.
 * Returns -1 if memory ran out. */
int ctl_doctor_judge_prepare(const CtlFacts *facts, json_t *findings);

/* Judges the partitions of [device_shapes NAME] with units by the record of the last run. Returns
 * -1 if memory ran out. */
int ctl_doctor_judge_partitions(const CtlFacts *facts, json_t *findings);

/* Adds a finding whose text is its own cause. advice NULL: none. Returns -1 if memory ran out. */
int ctl_doctor_add(json_t *findings, const char *check, const char *state, const char *advice,
                   const char *format, ...) _printf_(5, 6);
