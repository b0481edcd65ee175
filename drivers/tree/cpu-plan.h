/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* CPUs that guests can use: shared ones (VCPU) and dedicated ones (PCPU), by [compute]
 * cpu_shared_set, cpu_dedicated_set and the older vcpu_pin_set (facts C3). With vcpu_pin_set the
 * shared ones are its CPUs, and cpu_shared_set must only be valid. Pure. */

#include "drivers/host/host-config.h"

typedef struct CpuPlan {
        CpuSet shared;         /* guests can use these now */
        CpuSet dedicated;      /* guests can use these now */
        CpuSet shared_offline; /* configured and not missing, but guests cannot use them now */
        CpuSet dedicated_offline;
        /* Dedicated CPUs over which guests float, as cpu_guests_find() finds them; empty before */
        CpuSet floated;
} CpuPlan;

void cpu_plan_done(CpuPlan *plan);

/* Checks the options without a host. -EINVAL with the name of the option for a malformed list or
 * one without a CPU, and for CPUs in both sets. The same for vcpu_pin_set together with
 * cpu_dedicated_set, and without vcpu_pin_set for reserved_host_cpus together with one of the two
 * other sets. -ENOMEM. */
int cpu_plan_check(const HostConfig *config, Error *reterr);

/* Makes the same checks, and sorts the configured CPUs by whether guests can use them. Without any
 * of the options, all online CPUs are shared.
 *
 * Online CPUs are usable. With cpu_power_management all dedicated CPUs that are known to be present
 * are usable: Nova powers idle ones down, still counts them, and powers one up for its guest. Every
 * other CPU is left out, even if its set is then empty. It is named in problem, where a long list
 * is cut. problem can be NULL and keeps its earlier texts. Returns -EINVAL of the checks, or if the
 * CPUs that are known to be present include none of a set, as in Nova, or -ENOMEM. The plan ret
 * must be initialized; it is unchanged on failure. */
int cpu_plan_make(const HostConfig *config, const Snapshot *snapshot, CpuPlan *ret, Error *problem,
                  Error *reterr);

/* Returns whether the set has CPUs and all of them are dedicated, online or not. */
bool cpu_plan_dedicates(const CpuPlan *plan, const CpuSet *cpus);

/* Returns whether guest CPUs of the domain float over CPUs of the set. A guest CPU that is pinned
 * to one host CPU uses that CPU alone. Every other guest CPU floats over the CPUs of its pin, or of
 * <vcpu cpuset>, or over all CPUs. Adds those of the set to ret, which can be NULL. -ENOMEM. */
int cpu_guest_floats(const SnapshotDomain *domain, const CpuSet *over, CpuSet *ret);

/* Sets plan->floated to the dedicated CPUs over which guests that run or are paused float. Such a
 * guest was started before its CPUs became dedicated, or without Nova. A guest that could not be
 * read does not count. A CPU that is the only one in a pin of any domain is left out, because the
 * claim of that domain counts it.
 *
 * If a CPU is left, ret_words (can be NULL) gets a sentence without its full stop about the first
 * guest and the CPUs. It is unchanged otherwise. -ENOMEM. */
int cpu_guests_find(const Snapshot *guests, CpuPlan *plan, Error *ret_words);
