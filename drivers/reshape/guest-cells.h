/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where on the host a guest's CPUs and memory are, as far as its domain pins them: vcpupin,
 * numatune and memnode. Pure. */

#include "drivers/tree/cpu-plan.h"

/* In CPUs, or in KiB of memory. What is pinned to no single cell counts in all alone. */
typedef struct GuestWeights {
        uint64_t *of_cell; /* by index of snapshot->cells */
        uint64_t all;
} GuestWeights;

typedef struct GuestCells {
        GuestWeights shared;    /* CPUs that are not pinned to dedicated ones */
        GuestWeights dedicated; /* CPUs that are */
        GuestWeights memory;
} GuestCells;

void guest_cells_done(GuestCells *cells);

/* domain NULL: nothing is pinned, and every weight is 0. Memory that is bound nowhere follows the
 * CPUs. -ENOMEM. */
int guest_cells_make(const Snapshot *snapshot, const SnapshotDomain *domain, const CpuPlan *cpus,
                     GuestCells *ret);
