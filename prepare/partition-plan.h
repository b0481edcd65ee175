/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which unit compute-agent-prepare starts next for a set of devices with the options
 * "activate" and "deactivate". Pure: the caller (partitions.c) reads the claims, the record and the
 * open handles before, and executes the step.
 *
 * Rules of the decision:
 *   - A partition is active for one claim. After the end of the claim it is deactivated, also if
 *     the next claim has the same partition but no process has it open.
 *   - A partition is activated for a claim that is not pending when no entry of the record has one
 *     of its members or devices.
 *   - No unit is started unless it is known that no device of the partition is in use.
 *   - A unit that was interrupted is started again before any other unit of its partition: it can
 *     still run.
 *   - Nothing is deactivated because of a missing claim while the claims are not completely known.
 *   - A partition that a process has open is active. So its claim is recorded without a unit if the
 *     claim is not pending, and if no entry blocks the partition, or its entry is active and of a
 *     claim that is gone.
 *   - A unit that failed is started again after a new stamp in prepare-retry, which the agent
 *     writes when a person has lifted the cordons. A failed activation is followed by a
 *     deactivation when its claim is gone.
 *   - An entry whose partition the configuration lacks gets no step. Its devices stay blocked, but
 *     not its slots. */

#include "formats/partitions.h"
#include "prepare/plan.h"

typedef struct PartitionStep {
        /* for entries, in the order of their execution */
        enum {
                PARTITION_STEP_NONE,
                PARTITION_STEP_ADOPT,      /* record the partition as active for the claim */
                PARTITION_STEP_DEACTIVATE, /* start the unit "deactivate" */
                PARTITION_STEP_ACTIVATE,   /* start the unit "activate" for the claim */
        } kind;
        const DevicePartition *partition; /* borrowed from the set */
        int64_t claim;
} PartitionStep;

typedef struct PartitionFacts {
        const PrepareClaims *claims;
        const PartitionRecord *record;
        const PrepareFunction *functions; /* devices of sets with their open handles */
        size_t n_functions;
        const char *retry; /* stamp of prepare-retry now; "": none */
} PartitionFacts;

/* Returns the next step for a set, while the caller waits for no unit of it. Adoptions of entries
 * come first, then their deactivations and activations, then claims without an entry. */
PartitionStep partition_plan_next(const HostShapes *shapes, const PartitionFacts *facts);

/* Returns why the entry of the set gets no step although it needs one, or that the configuration
 * lacks its partition; static; "": neither. The wait for a new stamp after a failure is not such a
 * reason. */
const char *partition_plan_waits(const HostShapes *shapes, const PartitionFacts *facts,
                                 const PartitionEntry *entry);
