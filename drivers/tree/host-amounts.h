/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Amounts of the classes that a host can have, by Nova's formulas (facts C2): VCPU, PCPU, MEMORY_MB
 * and DISK_GB. Also their inventory records, and the sharing of an amount over providers. Pure. */

#include "base/provider-tree.h"
#include "drivers/tree/cpu-plan.h"

/* The amount of one class, in the unit of the class. */
typedef struct ClassAmount {
        const char *resource_class;
        /* option that sets reserved; "": none */
        const char *reserved_option;
        uint64_t total; /* 0: the class has no inventory (facts G4.7) */
        uint64_t reserved;
        double ratio;         /* 0: not configured */
        double initial_ratio; /* 0: not configured */
} ClassAmount;

typedef struct HostAmounts {
        ClassAmount vcpu, pcpu, memory, disk;
} HostAmounts;

/* Sets the total of VCPU or PCPU to the number of usable CPUs. If all CPUs are offline, the
 * class is withheld: total and reserved are 1, because Placement has no inventories of 0.
 * Without the class, drivers/reshape would move the allocations to another class or cell. */
void class_amount_count_cpus(ClassAmount *amount, uint64_t usable, uint64_t offline);

/* Calculates the amounts. The reserved amounts are the configured ones, even above the total,
 * except for a class that is withheld. That of DISK_GB is rounded up to whole GiB. Dedicated CPUs
 * over which guests float are reserved. */
void host_amounts_make(const HostConfig *config, const Snapshot *snapshot, const CpuPlan *cpus,
                       HostAmounts *ret);

/* Limits the reserved amount to the total. Returns -EINVAL with an error text if it was larger,
 * because Placement would reject the record together with all other classes. A total of 0 has no
 * record, so it changes nothing and returns 0. */
int class_amount_limit(ClassAmount *amount, Error *reterr);

/* Returns the record of an amount that is not 0. The allocation ratio is the configured one.
 * Without it, the ratio that the provider has stays, so that an operator can change it in
 * Placement. A provider without the class gets the ratio of heir (the provider that had the class
 * before; can be NULL), or else the initial one, or 1.0. */
Inventory class_amount_record(const ClassAmount *amount, const Provider *provider,
                              const Provider *heir);

/* A provider that can take a part of an amount. */
typedef struct ReshapeShare {
        uint64_t wanted; /* this much belongs here, within the limits */
        uint64_t room;   /* largest part that the provider can take */
        uint64_t step;   /* 1 or more: each part is a multiple of it */
        uint64_t least;  /* smallest part, except 0 */
        unsigned rank;   /* order of the shares that can take the whole rest: lower first */
        uint64_t given;  /* output: the part that the provider takes */
} ReshapeShare;

/* Returns the part of amount for a weight. before is the sum of the weights before it, all the
 * sum of all weights. The parts of consecutive weights add up to amount. 0 if all is 0. */
uint64_t reshape_portion(uint64_t amount, uint64_t before, uint64_t weight, uint64_t all);

/* Shares out amount. Each share first gets the part that it wants. If one share can take the whole
 * rest, the best of these gets it: the lowest rank, then the least capacity left over. Otherwise
 * the rest is split, the largest part first, without regard to ranks. -ENOSPC if a rest is left
 * that no share can take; "given" is then incomplete. Another split could still have a place for
 * it, because of the smallest parts. */
int reshape_share_out(ReshapeShare *shares, size_t n_shares, uint64_t amount);
