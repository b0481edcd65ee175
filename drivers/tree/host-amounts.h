/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much a host offers of each class that every host has, by Nova's formulas (facts C2): VCPU,
 * PCPU, MEMORY_MB, DISK_GB; and the inventory record that follows. Where it goes, the root or NUMA
 * cells, is for others. Pure. */

#include "base/provider-tree.h"
#include "drivers/tree/cpu-plan.h"

typedef struct ClassAmount {
        const char *resource_class;
        const char *reserved_option;
        uint64_t total; /* 0: no such inventory (facts G4.7) */
        uint64_t reserved;
        double ratio;         /* 0: not configured */
        double initial_ratio; /* the same */
} ClassAmount;

typedef struct HostAmounts {
        ClassAmount vcpu, pcpu, memory, disk;
} HostAmounts;

/* What is reserved is as configured, be it more than there is. */
void host_amounts_make(const HostConfig *config, const Snapshot *snapshot, const CpuPlan *cpus,
                       HostAmounts *ret);

/* Where more is reserved than there is, all is: -EINVAL with words then. Placement would refuse the
 * record else, and with it all other classes. */
int class_amount_limit(ClassAmount *amount, Error *reterr);

/* The record of an amount that is not 0. The allocation ratio is the configured one; where none is,
 * the one that provider has, so that an operator's change in Placement survives; where it has none,
 * the one of heir (the provider that had the class before; may be NULL); else the initial one. */
Inventory class_amount_record(const ClassAmount *amount, const Provider *provider,
                              const Provider *heir);
