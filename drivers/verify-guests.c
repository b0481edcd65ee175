/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/verify-guests.h"

#include <errno.h>

static int warn_pinned(const SnapshotDomain *domain, const DomainPin *pin, Findings *findings)
{
        _cleanup_free_ char *text = cpu_set_format(&pin->cpus);

        if (!text)
                return -ENOMEM;
        return findings_warn(findings, "[compute] cpu_dedicated_set",
                             "CPU %u of the guest %.100s is pinned to CPU %s, which is not in it: "
                             "add that, or move the guest",
                             pin->vcpu, domain->name, text);
}

static int warn_floating(const SnapshotDomain *domain, bool anywhere_shared, Findings *findings)
{
        return findings_warn(findings, "[compute] cpu_shared_set",
                             anywhere_shared
                                     ? "The guest %.100s is not pinned and may run on dedicated "
                                       "CPUs: start it again on the shared ones, or move it"
                                     : "The guest %.100s is not pinned, and there are no shared "
                                       "CPUs: set it, or move the guest",
                             domain->name);
}

static int verify_guest(const SnapshotDomain *domain, const CpuPlan *cpus, Findings *findings)
{
        bool anywhere_shared = cpu_set_count(&cpus->shared) > 0, on_dedicated = false;
        size_t n_pinned = 0;

        for (size_t i = 0; i < domain->n_pins; i++) {
                const DomainPin *pin = &domain->pins[i];

                if (cpu_set_count(&pin->cpus) != 1) {
                        on_dedicated |= cpu_set_count_common(&pin->cpus, &cpus->dedicated) > 0;
                        continue;
                }
                if (!cpu_set_is_subset(&pin->cpus, &cpus->dedicated))
                        return warn_pinned(domain, pin, findings);
                n_pinned++;
        }
        if (n_pinned >= domain->vcpus)
                return 0;
        if (domain->n_pins < domain->vcpus)
                on_dedicated |= cpu_set_count(&domain->cpus) == 0 ||
                                cpu_set_count_common(&domain->cpus, &cpus->dedicated) > 0;
        return on_dedicated || !anywhere_shared ? warn_floating(domain, anywhere_shared, findings)
                                                : 0;
}

int verify_guests(const CpuPlan *cpus, const Snapshot *snapshot, Findings *findings)
{
        if (cpu_set_count(&cpus->dedicated) == 0)
                return 0;
        for (size_t i = 0; i < snapshot->n_domains; i++)
                if (verify_guest(&snapshot->domains[i], cpus, findings) < 0)
                        return -ENOMEM;
        return 0;
}
