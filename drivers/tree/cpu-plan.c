/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses the configured sets of CPUs, and sorts their CPUs into usable, offline and missing ones.
 *
 * A CPU that guests cannot use is left out alone: the rest of its set stays, and a problem names
 * the CPU. A set of which the host has no CPU, as far as its present CPUs are known, is an error,
 * and so are malformed and contradicting options. If the present CPUs are unknown, each CPU that is
 * not online counts as offline. A failure of cpu_plan_make() leaves the plan unchanged. Without any
 * of the options, all online CPUs are shared. cpu_guests_find() then finds the dedicated CPUs over
 * which guests float (cpu_guest_floats()), except guests that are shut off or unread. CPUs are
 * those of one host, below CPU_SET_MAX.
 *
 * Tests: tests/unit/drivers/tree/test-cpu-plan.c */

#include "drivers/tree/cpu-plan.h"

#include <errno.h>

#define SHARED    "[compute] cpu_shared_set"
#define DEDICATED "[compute] cpu_dedicated_set"
#define PIN_SET   "vcpu_pin_set"

void cpu_plan_done(CpuPlan *plan)
{
        cpu_set_done(&plan->shared);
        cpu_set_done(&plan->dedicated);
        cpu_set_done(&plan->shared_offline);
        cpu_set_done(&plan->dedicated_offline);
        cpu_set_done(&plan->floated);
}

static bool is_set(const char *text)
{
        return text && text[0];
}

/* Parses the set of an option. *ret stays unchanged if the option is not set. */
static int read_set(const char *option, const char *text, CpuSet *ret, Error *reterr)
{
        _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT;
        int r;

        if (!is_set(text))
                return 0;
        r = cpu_set_parse(text, &set, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", option);
        if (cpu_set_count(&set) == 0)
                return error_setf(reterr, EINVAL,
                                  "%s = %.60s names no CPU. Name CPUs, or remove the option",
                                  option, text);
        cpu_set_done(ret);
        *ret = TAKE_STRUCT(set);
        return 0;
}

/* Rejects options that contradict each other (facts C3). vcpu_pin_set allows reserved_host_cpus;
 * the two newer options do not. */
static int check_options(const HostConfig *config, Error *reterr)
{
        bool shared = is_set(config->cpu_shared_set), dedicated = is_set(config->cpu_dedicated_set);

        if (is_set(config->vcpu_pin_set) && dedicated)
                return error_setf(reterr, EINVAL,
                                  PIN_SET " cannot be combined with " DEDICATED ". Remove " PIN_SET
                                          ", and name its CPUs in " SHARED
                                          " or in cpu_dedicated_set");
        if (is_set(config->vcpu_pin_set))
                return 0;
        if (config->reserved_host_cpus > 0 && (shared || dedicated))
                return error_setf(
                        reterr, EINVAL,
                        "reserved_host_cpus = %llu cannot be combined with %s. Set it to 0, and exclude the host's own CPUs from the set",
                        (unsigned long long)config->reserved_host_cpus,
                        dedicated ? DEDICATED : SHARED);
        return 0;
}

/* Parses the sets. Without any of the options the plan is empty here, and cpu_plan_make() adds all
 * online CPUs. */
static int read_plan(const HostConfig *config, CpuPlan *plan, Error *reterr)
{
        bool pinned = is_set(config->vcpu_pin_set);
        _cleanup_(cpu_set_done) CpuSet unused = CPU_SET_INIT;
        int r;

        r = read_set(PIN_SET, config->vcpu_pin_set, &plan->shared, reterr);
        if (r == 0)
                /* with vcpu_pin_set it is for emulator threads only, but it must be valid */
                r = read_set(SHARED, config->cpu_shared_set, pinned ? &unused : &plan->shared,
                             reterr);
        if (r == 0)
                r = read_set(DEDICATED, config->cpu_dedicated_set, &plan->dedicated, reterr);
        if (r == 0)
                r = check_options(config, reterr);
        if (r < 0)
                return r;
        if (cpu_set_count_common(&plan->shared, &plan->dedicated) > 0)
                return error_setf(reterr, EINVAL,
                                  SHARED
                                  " = %.60s and " DEDICATED
                                  " = %.60s have CPUs in common. Name each CPU in only one of them",
                                  config->cpu_shared_set, config->cpu_dedicated_set);
        return 0;
}

int cpu_plan_check(const HostConfig *config, Error *reterr)
{
        _cleanup_(cpu_plan_done) CpuPlan plan = { 0 };

        return read_plan(config, &plan, reterr);
}

/* One configured set, and the CPUs that it can contain. */
typedef struct Split {
        const char *option;
        const char *resource_class;
        const CpuSet *usable;  /* guests can use these */
        const CpuSet *present; /* CPUs of the host; empty: unknown */
        bool can_power_down;   /* advise cpu_power_management for offline CPUs */
} Split;

/* Moves the CPUs that guests cannot use out of the set. If the present CPUs are unknown, none is
 * missing. */
static int sort_cpus(const Split *split, CpuSet *set, CpuSet *ret_offline, CpuSet *ret_missing)
{
        bool knows_present = cpu_set_count(split->present) > 0;

        CPU_SET_FOREACH(cpu, set) {
                bool missing = knows_present && !cpu_set_contains(split->present, cpu);

                if (cpu_set_contains(split->usable, cpu))
                        continue;
                if (cpu_set_add(missing ? ret_missing : ret_offline, cpu) < 0)
                        return -ENOMEM;
                cpu_set_remove(set, cpu);
        }
        return 0;
}

/* Adds the missing CPUs to problem. is_all: the host has no CPU of the set. Then returns -EINVAL
 * instead, because Nova rejects this configuration as well. */
static int note_missing(const Split *split, const CpuSet *missing, bool is_all, Error *problem,
                        Error *reterr)
{
        _cleanup_free_ char *text = cpu_set_format(missing);
        _cleanup_free_ char *present = cpu_set_format(split->present);
        Error error;

        if (!text || !present)
                return error_oom(reterr);
        error_setf(&error, EINVAL,
                   "%s names CPU %.60s, but this host has only CPU %.60s. Remove it from the set",
                   split->option, text, present);
        if (is_all)
                return error_setf(reterr, EINVAL, "%s", error.text);
        error_join(problem, &error);
        return 0;
}

/* Adds the offline CPUs to problem. is_all: guests can use no CPU of the set. This is never an
 * error, because an operator can bring a CPU online at any time. */
static int note_offline(const Split *split, const CpuSet *offline, bool is_all, Error *problem,
                        Error *reterr)
{
        const char *advice =
                split->can_power_down
                        ? ", or set [libvirt] cpu_power_management = true if Nova powers idle CPUs down"
                        : "";
        _cleanup_free_ char *text = cpu_set_format(offline);
        Error error;

        if (!text)
                return error_oom(reterr);
        if (is_all)
                error_setf(
                        &error, EINVAL,
                        "%s names only offline CPUs (%.60s), so no %s is offered. Bring them online%s",
                        split->option, text, split->resource_class, advice);
        else
                error_setf(
                        &error, EINVAL,
                        "%s names CPU %.60s, which is offline and not offered. Bring it online%s",
                        split->option, text, advice);
        error_join(problem, &error);
        return 0;
}

/* Reduces the set to the CPUs that guests can use. */
static int split_set(const Split *split, CpuSet *set, CpuSet *ret_offline, Error *problem,
                     Error *reterr)
{
        _cleanup_(cpu_set_done) CpuSet missing = CPU_SET_INIT;
        int r = 0;

        if (sort_cpus(split, set, ret_offline, &missing) < 0)
                return error_oom(reterr);
        if (cpu_set_count(&missing) > 0)
                r = note_missing(split, &missing,
                                 cpu_set_count(set) + cpu_set_count(ret_offline) == 0, problem,
                                 reterr);
        if (r == 0 && cpu_set_count(ret_offline) > 0)
                r = note_offline(split, ret_offline, cpu_set_count(set) == 0, problem, reterr);
        return r;
}

int cpu_plan_make(const HostConfig *config, const Snapshot *snapshot, CpuPlan *ret, Error *problem,
                  Error *reterr)
{
        bool power = config->cpu_power_management && cpu_set_count(&snapshot->present_cpus) > 0;
        const Split shared = {
                .option = is_set(config->vcpu_pin_set) ? PIN_SET : SHARED,
                .resource_class = "VCPU",
                .usable = &snapshot->online_cpus,
                .present = &snapshot->present_cpus,
        };
        const Split dedicated = {
                .option = DEDICATED,
                .resource_class = "PCPU",
                .usable = power ? &snapshot->present_cpus : &snapshot->online_cpus,
                .present = &snapshot->present_cpus,
                .can_power_down = true,
        };
        _cleanup_(cpu_plan_done) CpuPlan plan = { 0 };
        bool configured;
        int r;

        r = read_plan(config, &plan, reterr);
        configured = cpu_set_count(&plan.shared) + cpu_set_count(&plan.dedicated) > 0;
        if (r == 0)
                r = split_set(&shared, &plan.shared, &plan.shared_offline, problem, reterr);
        if (r == 0)
                r = split_set(&dedicated, &plan.dedicated, &plan.dedicated_offline, problem,
                              reterr);
        if (r < 0)
                return r;
        if (!configured && cpu_set_copy(&plan.shared, &snapshot->online_cpus) < 0)
                return error_oom(reterr);
        cpu_plan_done(ret);
        *ret = TAKE_STRUCT(plan);
        return 0;
}

bool cpu_plan_dedicates(const CpuPlan *plan, const CpuSet *cpus)
{
        return cpu_set_count(cpus) > 0 &&
               cpu_set_count_common(cpus, &plan->dedicated) +
                               cpu_set_count_common(cpus, &plan->dedicated_offline) ==
                       cpu_set_count(cpus);
}

/* Guests without pins */

/* Adds the common CPUs of the sets cpus and over to ret. */
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

/* Removes each CPU that is the only one of a pin of any guest, also of one that is shut off. The
 * claim of that guest counts the CPU. */
static void remove_pinned(const Snapshot *guests, CpuSet *cpus)
{
        for (size_t i = 0; i < guests->n_domains; i++)
                for (size_t j = 0; j < guests->domains[i].n_pins; j++) {
                        const CpuSet *pin = &guests->domains[i].pins[j].cpus;

                        if (cpu_set_count(pin) == 1)
                                cpu_set_remove(cpus, cpu_set_next(pin, 0));
                }
}

/* Sets *ret_words, if it is not NULL, to a sentence with the name of the first guest, and the CPUs
 * over which the guests float. */
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
                        "The guest %.100s is not pinned and can run on dedicated CPU %.60s. This CPU is not offered to others",
                        first->name, cpus);
        else
                error_setf(
                        &error, EBUSY,
                        "%zu guests (%.100s, …) are not pinned and can run on dedicated CPU %.60s. This CPU is not offered to others",
                        n_guests, first->name, cpus);
        if (ret_words)
                *ret_words = error;
        return 0;
}

/* Calls cpu_guest_floats() for each guest that is not shut off and could be read. Returns the
 * number of those that float over the CPUs, and the first of them (borrowed; unchanged if there is
 * none). */
static int count_floating(const Snapshot *guests, const CpuSet *over, CpuSet *floated,
                          const SnapshotDomain **ret_first)
{
        int n = 0;

        for (size_t i = guests->n_domains; i > 0; i--) {
                const SnapshotDomain *domain = &guests->domains[i - 1];
                int r;

                if (domain->state == DOMAIN_SHUTOFF || domain->unread)
                        continue;
                r = cpu_guest_floats(domain, over, floated);
                if (r < 0)
                        return r;
                if (r > 0)
                        *ret_first = domain;
                n += r;
        }
        return n;
}

int cpu_guests_find(const Snapshot *guests, CpuPlan *plan, Error *ret_words)
{
        _cleanup_(cpu_set_done) CpuSet floated = CPU_SET_INIT;
        const SnapshotDomain *first = NULL;
        int n_guests = count_floating(guests, &plan->dedicated, &floated, &first);

        if (n_guests < 0)
                return n_guests;
        remove_pinned(guests, &floated);
        cpu_set_done(&plan->floated);
        plan->floated = TAKE_STRUCT(floated);
        n_guests = count_floating(guests, &plan->floated, NULL, &first);
        return n_guests > 0 ? note_floating(plan, first, (size_t)n_guests, ret_words) : n_guests;
}
