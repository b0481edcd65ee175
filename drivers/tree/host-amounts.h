/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much a host offers of each class that every host has, by Nova's formulas (facts C2): VCPU,
 * PCPU, MEMORY_MB, DISK_GB; and the inventory record that follows; and how an amount is shared
 * out over providers. Pure. */

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

/* Sets the total of VCPU or PCPU to the number of CPUs that can be used. Without any, but with
 * CPUs that are offline, the class is withheld: total and reserved are 1, since Placement has no
 * inventory of 0. Leaving the class out would move what guests hold of it to another class or cell
 * (drivers/reshape). */
void class_amount_count_cpus(ClassAmount *amount, uint64_t usable, uint64_t offline);

/* The reserved amounts are the configured ones, even if they are larger than the totals; dedicated
 * CPUs on which unpinned guests can run are reserved. */
void host_amounts_make(const HostConfig *config, const Snapshot *snapshot, const CpuPlan *cpus,
                       HostAmounts *ret);

/* Limits the reserved amount to the total, and returns -EINVAL with words if it was larger.
 * Placement would refuse the record, and with it all other classes. */
int class_amount_limit(ClassAmount *amount, Error *reterr);

/* The record of an amount that is not 0. The allocation ratio is the configured one; where none is,
 * the one that provider has, so that an operator's change in Placement survives; where it has none,
 * the one of heir (the provider that had the class before; may be NULL); else the initial one. */
Inventory class_amount_record(const ClassAmount *amount, const Provider *provider,
                              const Provider *heir);

/* A provider that can take a part of an amount: as wanted, else where it fits best, else split. */
typedef struct ReshapeShare {
        uint64_t wanted; /* this much belongs here, as far as there is room */
        uint64_t room;   /* more than this cannot be given */
        uint64_t step;   /* 1 …: what is given is a multiple */
        uint64_t least;  /* less than this cannot be given, but 0 can */
        unsigned rank;   /* the lower is taken first for what is wanted nowhere */
        uint64_t given;  /* out */
} ReshapeShare;

/* The part of amount that falls to weight, of the weights before and all: parts of consecutive
 * weights add up to amount. 0 when all is. */
uint64_t reshape_portion(uint64_t amount, uint64_t before, uint64_t weight, uint64_t all);

/* Shares out amount. What is wanted somewhere goes there first. The rest stays together where it
 * can, where the least room is left over; else it is split, the largest room first. -ENOSPC when
 * there is not room for all. */
int reshape_share_out(ReshapeShare *shares, size_t n_shares, uint64_t amount);
