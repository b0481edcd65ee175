/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/verify-guests.h"

#include <errno.h>
#include <stdio.h>

/* How many names of guests a warning has: 490 of them are one, not 490. */
#define NAMES_MAX 5

typedef enum Fault {
        FAULT_NONE,
        FAULT_PINNED,   /* to a CPU that is not dedicated */
        FAULT_FLOATING, /* over dedicated CPUs, or without shared ones */
        _FAULT_MAX,
} Fault;

/* The guests with one fault. */
typedef struct Guests {
        size_t n;
        const SnapshotDomain *first[NAMES_MAX];
        const DomainPin *pin; /* of the first, when it is pinned */
} Guests;

static Fault judge(const SnapshotDomain *domain, const CpuPlan *cpus, const DomainPin **ret_pin)
{
        bool anywhere_shared = cpu_set_count(&cpus->shared) > 0, on_dedicated = false;
        size_t n_pinned = 0;

        for (size_t i = 0; i < domain->n_pins; i++) {
                const DomainPin *pin = &domain->pins[i];

                if (cpu_set_count(&pin->cpus) != 1) {
                        on_dedicated |= cpu_set_count_common(&pin->cpus, &cpus->dedicated) > 0;
                        continue;
                }
                if (!cpu_set_is_subset(&pin->cpus, &cpus->dedicated)) {
                        *ret_pin = pin;
                        return FAULT_PINNED;
                }
                n_pinned++;
        }
        if (n_pinned >= domain->vcpus)
                return FAULT_NONE;
        if (domain->n_pins < domain->vcpus)
                on_dedicated |= cpu_set_count(&domain->cpus) == 0 ||
                                cpu_set_count_common(&domain->cpus, &cpus->dedicated) > 0;
        return on_dedicated || !anywhere_shared ? FAULT_FLOATING : FAULT_NONE;
}

/* "a, b, c, d, e, …" */
static void list_names(const Guests *guests, char *ret, size_t size)
{
        size_t n = 0;

        ret[0] = '\0';
        for (size_t i = 0; i < MIN(guests->n, (size_t)NAMES_MAX) && n < size; i++)
                n += (size_t)snprintf(ret + n, size - n, "%s%.60s", i > 0 ? ", " : "",
                                      guests->first[i]->name);
        if (guests->n > NAMES_MAX && n < size)
                snprintf(ret + n, size - n, ", …");
}

static int warn_pinned(const Guests *guests, Findings *findings)
{
        _cleanup_free_ char *text = cpu_set_format(&guests->pin->cpus);
        char names[512];

        if (!text)
                return -ENOMEM;
        if (guests->n == 1)
                return findings_warn(
                        findings, "[compute] cpu_dedicated_set",
                        "CPU %u of the guest %.100s is pinned to CPU %s, which is not in it: "
                        "add that, or move the guest",
                        guests->pin->vcpu, guests->first[0]->name, text);
        list_names(guests, names, sizeof(names));
        return findings_warn(findings, "[compute] cpu_dedicated_set",
                             "%zu guests (%s) are pinned to CPUs that are not in it, CPU %u of "
                             "the first to CPU %.60s: add those, or move the guests",
                             guests->n, names, guests->pin->vcpu, text);
}

static int warn_floating(const Guests *guests, bool anywhere_shared, Findings *findings)
{
        char names[512];

        if (guests->n == 1)
                return findings_warn(
                        findings, "[compute] cpu_shared_set",
                        anywhere_shared ? "The guest %.100s is not pinned and may run on dedicated "
                                          "CPUs: start it again on the shared ones, or move it"
                                        : "The guest %.100s is not pinned, and there are no shared "
                                          "CPUs: set it, or move the guest",
                        guests->first[0]->name);
        list_names(guests, names, sizeof(names));
        return findings_warn(findings, "[compute] cpu_shared_set",
                             anywhere_shared
                                     ? "%zu guests (%s) are not pinned and may run on dedicated "
                                       "CPUs: start them again on the shared ones, or move them"
                                     : "%zu guests (%s) are not pinned, and there are no shared "
                                       "CPUs: set it, or move the guests",
                             guests->n, names);
}

int verify_guests(const CpuPlan *cpus, const Snapshot *snapshot, Findings *findings)
{
        Guests faulty[_FAULT_MAX] = { 0 };
        int r = 0;

        if (cpu_set_count(&cpus->dedicated) == 0)
                return 0;
        for (size_t i = 0; i < snapshot->n_domains; i++) {
                const DomainPin *pin = NULL;
                Guests *guests = &faulty[judge(&snapshot->domains[i], cpus, &pin)];

                if (guests->n == 0)
                        guests->pin = pin;
                if (guests->n < NAMES_MAX)
                        guests->first[guests->n] = &snapshot->domains[i];
                guests->n++;
        }
        if (faulty[FAULT_PINNED].n > 0)
                r = warn_pinned(&faulty[FAULT_PINNED], findings);
        if (r == 0 && faulty[FAULT_FLOATING].n > 0)
                r = warn_floating(&faulty[FAULT_FLOATING], cpu_set_count(&cpus->shared) > 0,
                                  findings);
        return r;
}
