/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/cpu-plan.h"

#include <errno.h>

#define SHARED    "[compute] cpu_shared_set"
#define DEDICATED "[compute] cpu_dedicated_set"
#define PIN_SET   "vcpu_pin_set"

void cpu_plan_done(CpuPlan *plan)
{
        cpu_set_done(&plan->shared);
        cpu_set_done(&plan->dedicated);
}

static bool is_set(const char *text)
{
        return text && text[0];
}

/* A set that is not configured stays as it is. */
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
                                  "%s = %.60s names no CPU: name some, or take the option away",
                                  option, text);
        cpu_set_done(ret);
        *ret = TAKE_STRUCT(set);
        return 0;
}

static int check_options(const HostConfig *config, Error *reterr)
{
        bool shared = is_set(config->cpu_shared_set), dedicated = is_set(config->cpu_dedicated_set);

        if (is_set(config->vcpu_pin_set) && dedicated)
                return error_setf(reterr, EINVAL,
                                  PIN_SET " cannot stand beside " DEDICATED ": take " PIN_SET
                                          " away, and name its CPUs in " SHARED
                                          " or in cpu_dedicated_set");
        if (is_set(config->vcpu_pin_set))
                return 0;
        if (config->reserved_host_cpus > 0 && (shared || dedicated))
                return error_setf(
                        reterr, EINVAL,
                        "reserved_host_cpus = %llu cannot stand beside %s: set it to 0, and leave the host's own CPUs out of the set",
                        (unsigned long long)config->reserved_host_cpus,
                        dedicated ? DEDICATED : SHARED);
        return 0;
}

/* Reads the sets; a plan without any of them is empty. */
static int read_plan(const HostConfig *config, CpuPlan *plan, Error *reterr)
{
        bool pinned = is_set(config->vcpu_pin_set);
        _cleanup_(cpu_set_done) CpuSet unused = CPU_SET_INIT;
        int r;

        r = read_set(PIN_SET, config->vcpu_pin_set, &plan->shared, reterr);
        if (r == 0)
                /* beside vcpu_pin_set it is for emulator threads only, but it must be a list */
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
                                  SHARED " = %.60s and " DEDICATED
                                         " = %.60s have CPUs in common: name each in one of them",
                                  config->cpu_shared_set, config->cpu_dedicated_set);
        return 0;
}

int cpu_plan_check(const HostConfig *config, Error *reterr)
{
        _cleanup_(cpu_plan_done) CpuPlan plan = { 0 };

        return read_plan(config, &plan, reterr);
}

/* Takes out what is not there. */
static int keep_there(const char *option, CpuSet *set, const CpuSet *there, const char *word,
                      Error *problem, Error *reterr)
{
        _cleanup_(cpu_set_done) CpuSet missing = CPU_SET_INIT;
        _cleanup_free_ char *missing_text = NULL, *there_text = NULL;
        Error error;

        if (cpu_set_is_subset(set, there))
                return 0;
        if (cpu_set_copy(&missing, set) < 0)
                return error_oom(reterr);
        for (unsigned cpu = 0; cpu < CPU_SET_MAX; cpu++)
                if (cpu_set_contains(there, cpu))
                        cpu_set_remove(&missing, cpu);
                else
                        cpu_set_remove(set, cpu);
        missing_text = cpu_set_format(&missing);
        there_text = cpu_set_format(there);
        if (!missing_text || !there_text)
                return error_oom(reterr);
        error_setf(
                &error, EINVAL,
                "%s names CPU %.60s, but %s are %.60s: take it out of the set, or bring it online",
                option, missing_text, word, there_text);
        if (cpu_set_count(set) == 0)
                return error_setf(reterr, EINVAL, "%s", error.text);
        error_join(problem, &error);
        return 0;
}

int cpu_plan_make(const HostConfig *config, const Snapshot *snapshot, CpuPlan *ret, Error *problem,
                  Error *reterr)
{
        bool power = config->cpu_power_management && cpu_set_count(&snapshot->present_cpus) > 0;
        _cleanup_(cpu_plan_done) CpuPlan plan = { 0 };
        int r;

        r = read_plan(config, &plan, reterr);
        if (r == 0)
                r = keep_there(is_set(config->vcpu_pin_set) ? PIN_SET : SHARED, &plan.shared,
                               &snapshot->online_cpus, "online", problem, reterr);
        if (r == 0)
                r = keep_there(DEDICATED, &plan.dedicated,
                               power ? &snapshot->present_cpus : &snapshot->online_cpus,
                               power ? "present" : "online", problem, reterr);
        if (r < 0)
                return r;
        if (cpu_set_count(&plan.shared) == 0 && cpu_set_count(&plan.dedicated) == 0 &&
            cpu_set_copy(&plan.shared, &snapshot->online_cpus) < 0)
                return error_oom(reterr);
        cpu_plan_done(ret);
        *ret = TAKE_STRUCT(plan);
        return 0;
}
