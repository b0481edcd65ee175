/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/cpu-guests.h"

#include <errno.h>

static int add_common(const CpuSet *cpus, const CpuSet *over, CpuSet *ret)
{
        CPU_SET_FOREACH(cpu, cpus)
                if (cpu_set_contains(over, cpu) && cpu_set_add(ret, cpu) < 0)
                        return -ENOMEM;
        return 0;
}

int cpu_guest_floats(const SnapshotDomain *domain, const CpuSet *over, CpuSet *ret)
{
        _cleanup_(cpu_set_done) CpuSet found = CPU_SET_INIT;
        int r = 0;

        for (size_t i = 0; r == 0 && i < domain->n_pins; i++)
                if (cpu_set_count(&domain->pins[i].cpus) != 1)
                        r = add_common(&domain->pins[i].cpus, over, &found);
        if (r == 0 && domain->n_pins < domain->vcpus)
                r = add_common(cpu_set_count(&domain->cpus) > 0 ? &domain->cpus : over, over,
                               &found);
        if (r == 0 && ret)
                r = add_common(&found, over, ret);
        return r < 0 ? r : cpu_set_count(&found) > 0;
}

/* Removes the CPUs to which a domain is pinned. */
static void remove_pinned(const Snapshot *guests, CpuSet *cpus)
{
        for (size_t i = 0; i < guests->n_domains; i++)
                for (size_t j = 0; j < guests->domains[i].n_pins; j++) {
                        const CpuSet *pin = &guests->domains[i].pins[j].cpus;

                        if (cpu_set_count(pin) == 1)
                                cpu_set_remove(cpus, cpu_set_next(pin, 0));
                }
}

static int note_floating(const CpuPlan *plan, const SnapshotDomain *first, size_t n_guests,
                         Error *ret_words)
{
        _cleanup_free_ char *cpus = cpu_set_format(&plan->floated);
        Error error;

        if (!cpus)
                return -ENOMEM;
        if (n_guests == 1)
                error_setf(
                        &error, EBUSY,
                        "The guest %.100s is not pinned and can run on dedicated CPU %.60s, which no other guest is given",
                        first->name, cpus);
        else
                error_setf(
                        &error, EBUSY,
                        "%zu guests (%.100s, …) are not pinned and can run on dedicated CPU %.60s, which no other guest is given",
                        n_guests, first->name, cpus);
        if (ret_words)
                *ret_words = error;
        return 0;
}

int cpu_guests_find(const Snapshot *guests, CpuPlan *plan, Error *ret_words)
{
        _cleanup_(cpu_set_done) CpuSet floated = CPU_SET_INIT;
        const SnapshotDomain *first = NULL;
        size_t n_guests = 0;

        for (size_t i = 0; i < guests->n_domains; i++) {
                const SnapshotDomain *domain = &guests->domains[i];
                int r;

                if (domain->state == DOMAIN_SHUTOFF || domain->unread)
                        continue;
                r = cpu_guest_floats(domain, &plan->dedicated, &floated);
                if (r < 0)
                        return r;
                if (r > 0 && !first)
                        first = domain;
                n_guests += r > 0;
        }
        remove_pinned(guests, &floated);
        cpu_set_done(&plan->floated);
        plan->floated = TAKE_STRUCT(floated);
        return cpu_set_count(&plan->floated) > 0 ? note_floating(plan, first, n_guests, ret_words)
                                                 : 0;
}
