/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which CPUs of the host are for guests: shared ones (VCPU) and dedicated ones (PCPU), by [compute]
 * cpu_shared_set, cpu_dedicated_set and the older vcpu_pin_set (facts C3). Pure. */

#include "drivers/host/host-config.h"

typedef struct CpuPlan {
        CpuSet shared;         /* that guests can be given now */
        CpuSet dedicated;      /* the same */
        CpuSet shared_offline; /* configured, and no guest can be given them now */
        CpuSet dedicated_offline;
        CpuSet floated; /* dedicated ones on which running guests without pins can run: empty until
                           cpu_guests_find() */
} CpuPlan;

void cpu_plan_done(CpuPlan *plan);

/* What can be said before a host is known: -EINVAL with the option's name for a list that is none
 * or that names no CPU, for CPUs in both sets, for reserved_host_cpus beside a set, and for
 * vcpu_pin_set beside cpu_dedicated_set; -ENOMEM. */
int cpu_plan_check(const HostConfig *config, Error *reterr);

/* Makes the same checks, and sorts the configured CPUs by whether guests can be given them.
 *
 * An online CPU can be used. With cpu_power_management every present dedicated CPU can: Nova takes
 * those that no guest uses offline, counts them all the same, and brings one online for its guest.
 * Any other CPU costs itself, also when none of its set is left, and problem (may be NULL) names it
 * behind what it has already. -EINVAL when the host has no CPU of a set: Nova refuses that, too.
 * ret must be initialised; it is untouched on failure. -ENOMEM. */
int cpu_plan_make(const HostConfig *config, const Snapshot *snapshot, CpuPlan *ret, Error *problem,
                  Error *reterr);

/* Returns whether all CPUs of a set that is not empty are dedicated, online or not. */
bool cpu_plan_dedicates(const CpuPlan *plan, const CpuSet *cpus);

/* Returns whether guest CPUs of the domain float over CPUs of the set. The evidence is the domain
 * itself: a guest CPU that is pinned to one host CPU has that CPU for itself. Every other guest CPU
 * floats over the CPUs of its pin, else over those of <vcpu cpuset>, else over all. Adds these to
 * ret, which may be NULL. -ENOMEM. */
int cpu_guest_floats(const SnapshotDomain *domain, const CpuSet *over, CpuSet *ret);

/* Sets plan->floated to the dedicated CPUs over which running guests float. Such a guest was
 * started before its CPUs became dedicated, or without Nova. A guest that cannot be read is no
 * evidence. CPUs to which any domain is pinned are left out: the claim of that domain counts them.
 * If there are such guests, ret_words (may be NULL) gets a sentence without its end that names the
 * first one and the CPUs; it is untouched otherwise. guests: the domains of this snapshot count.
 * -ENOMEM. */
int cpu_guests_find(const Snapshot *guests, CpuPlan *plan, Error *ret_words);
