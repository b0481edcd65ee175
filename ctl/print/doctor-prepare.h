/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The part of "computectl doctor" that judges the records of compute-agent-prepare. Pure. */

#include <jansson.h>

#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"

/* Judges the cards of [device_prepare NAME] and the partitions of [device_shapes NAME] with units,
 * by the records of the last run (prepared, partitions; NULL: none) and by the host now (snapshot;
 * NULL: unknown). Returns -1 if memory ran out. */
int ctl_doctor_judge_prepare(const HostConfig *host, const Snapshot *snapshot,
                             const json_t *prepared, const json_t *partitions, json_t *findings);
