/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/reconcile-layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "claims/follow.h"

static const LayoutCpu *find_cpu(const Layout *layout, unsigned vcpu)
{
        for (size_t i = 0; i < layout->n_cpus; i++)
                if (layout->cpus[i].vcpu == vcpu)
                        return &layout->cpus[i];
        return NULL;
}

/* The first CPU that runs elsewhere: the others of a guest that was pinned anew do, too. */
static int compare_cpus(const Claim *claim, const HostDomain *domain, ReconcileProblems *problems)
{
        for (size_t i = 0; i < claim->layout.n_cpus; i++) {
                const LayoutCpu *claimed = &claim->layout.cpus[i],
                                *has = find_cpu(&domain->layout, claimed->vcpu);
                _cleanup_free_ char *wanted = NULL, *found = NULL;

                if (has && cpu_set_equal(&has->cpus, &claimed->cpus))
                        continue;
                wanted = cpu_set_format(&claimed->cpus);
                found = has ? cpu_set_format(&has->cpus) : strdup("any");
                if (!wanted || !found)
                        return -ENOMEM;
                return reconcile_add_problem(
                        problems, &claim->consumer, claim->id,
                        "CPU %u of guest %.60s runs on host CPUs %.60s, its claim has %.60s",
                        claimed->vcpu, domain->name, found, wanted);
        }
        return 0;
}

static int compare_cells(const Claim *claim, const HostDomain *domain, ReconcileProblems *problems)
{
        for (size_t i = 0; i < claim->layout.n_cells; i++) {
                const LayoutCell *claimed = &claim->layout.cells[i], *has = NULL;
                int r = 0;

                for (size_t j = 0; j < domain->layout.n_cells; j++)
                        if (domain->layout.cells[j].cell == claimed->cell)
                                has = &domain->layout.cells[j];
                if (!has)
                        r = reconcile_add_problem(
                                problems, &claim->consumer, claim->id,
                                "guest %.60s does not say where its cell %u is, its claim has it in cell %u of the host",
                                domain->name, claimed->cell, claimed->host_cell);
                else if (has->host_cell != claimed->host_cell)
                        r = reconcile_add_problem(
                                problems, &claim->consumer, claim->id,
                                "cell %u of guest %.60s is in cell %u of the host, its claim has %u",
                                claimed->cell, domain->name, has->host_cell, claimed->host_cell);
                else if (claimed->memory_mb > 0 && has->page_kib != claimed->page_kib)
                        r = reconcile_add_problem(problems, &claim->consumer, claim->id,
                                                  "cell %u of guest %.60s has pages of %" PRIu64
                                                  " KiB (0: small), its claim %" PRIu64,
                                                  claimed->cell, domain->name, has->page_kib,
                                                  claimed->page_kib);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* spare: how much more than the domain the claim can have without a problem. */
static int compare_amount(const Claim *claim, const HostDomain *domain, const char *what,
                          uint64_t claimed, uint64_t has, uint64_t spare,
                          ReconcileProblems *problems)
{
        /* A class that the host does not count is in no claim. */
        if (claimed == 0 || (claimed >= has && claimed - has <= spare))
                return 0;
        return reconcile_add_problem(problems, &claim->consumer, claim->id,
                                     "guest %.60s has %" PRIu64 " %s, its claim has %" PRIu64,
                                     domain->name, has, what, claimed);
}

int reconcile_compare_amounts(const Claim *claim, const HostDomain *domain,
                              ReconcileProblems *problems)
{
        uint64_t memory_spare = claim_is_placed(claim) ? UINT64_MAX : 0;
        uint64_t cpus_spare =
                claim_is_placed(claim) ? UINT64_MAX : layout_count_thread_cpus(&domain->layout);
        int r = compare_amount(claim, domain, "VCPUs",
                               claim_sum(claim, "VCPU") + claim_sum(claim, "PCPU"), domain->vcpus,
                               cpus_spare, problems);

        return r < 0 ? r
                     : compare_amount(claim, domain, "MiB of memory", claim_sum(claim, "MEMORY_MB"),
                                      domain->memory_mb, memory_spare, problems);
}

/* Finds the first host CPU that the claim does not hold: of emulator and I/O threads, or of the
 * persistent definition. */
static int compare_threads(const Claim *claim, const HostDomain *domain,
                           ReconcileProblems *problems)
{
        CPU_SET_FOREACH(cpu, &domain->layout.held) {
                if (cpu_set_contains(&claim->layout.held, cpu) ||
                    layout_has_guest_cpu(&domain->layout, cpu))
                        continue;
                return reconcile_add_problem(
                        problems, &claim->consumer, claim->id,
                        "guest %.60s is pinned to host CPU %u, which its claim does not hold",
                        domain->name, cpu);
        }
        return 0;
}

int reconcile_compare_layout(const Claim *claim, const HostDomain *domain,
                             ReconcileProblems *problems)
{
        int r = compare_cells(claim, domain, problems);

        if (r < 0 || (r = compare_cpus(claim, domain, problems)) < 0)
                return r;
        return compare_threads(claim, domain, problems);
}
