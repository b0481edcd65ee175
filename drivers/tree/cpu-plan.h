/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which CPUs of the host are for guests: shared ones (VCPU) and dedicated ones (PCPU), by [compute]
 * cpu_shared_set, cpu_dedicated_set and the older vcpu_pin_set (facts C3). Pure. */

#include "drivers/host/host-config.h"

typedef struct CpuPlan {
        CpuSet shared;
        CpuSet dedicated;
} CpuPlan;

void cpu_plan_done(CpuPlan *plan);

/* What can be said before a host is known: -EINVAL with the option's name for a list that is none
 * or that names no CPU, for CPUs in both sets, for reserved_host_cpus beside a set, and for
 * vcpu_pin_set beside cpu_dedicated_set; -ENOMEM. */
int cpu_plan_check(const HostConfig *config, Error *reterr);

/* The same checks. CPUs that are not online (with cpu_power_management, not present: it takes
 * unused dedicated CPUs offline) are left out, and problem (may be NULL) says so behind what it
 * says already; -EINVAL when none of a set is left. ret must be initialised; untouched on failure.
 */
int cpu_plan_make(const HostConfig *config, const Snapshot *snapshot, CpuPlan *ret, Error *problem,
                  Error *reterr);
