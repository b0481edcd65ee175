/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Allocates, copies, sorts and frees layouts, and compares their held CPUs. The function
 * layout_reserve() allocates both arrays once, with one zeroed item at the end. A layout owns all
 * CPU sets in it. A copy has room for no further item. CPUs must be sorted by their number in the
 * guest, so a caller that adds them in another order calls layout_sort_cpus().
 *
 * Tests: tests/unit/claims/test-claims-layout.c tests/unit/claims/fit/test-numa.c */

#include "claims/claim/layout.h"

#include <errno.h>

void layout_done(Layout *layout)
{
        for (size_t i = 0; i < layout->n_cells; i++)
                cpu_set_done(&layout->cells[i].vcpus);
        for (size_t i = 0; i < layout->n_cpus; i++)
                cpu_set_done(&layout->cpus[i].cpus);
        free(layout->cells);
        free(layout->cpus);
        cpu_set_done(&layout->held);
        *layout = LAYOUT_INIT;
}

/* Allocates one more item than asked for: calloc(0) can yield NULL, and a zeroed item ends each
 * array. */
int layout_reserve(Layout *ret, size_t n_cells, size_t n_cpus)
{
        ret->cells = calloc(n_cells + 1, sizeof(LayoutCell));
        ret->cpus = calloc(n_cpus + 1, sizeof(LayoutCpu));
        if (ret->cells && ret->cpus)
                return 0;
        layout_done(ret);
        return -ENOMEM;
}

int layout_copy(Layout *ret, const Layout *layout)
{
        _cleanup_(layout_done) Layout copy = LAYOUT_INIT;

        if (layout_reserve(&copy, layout->n_cells, layout->n_cpus) < 0 ||
            cpu_set_copy(&copy.held, &layout->held) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < layout->n_cells; i++) {
                LayoutCell *cell = &copy.cells[copy.n_cells++];

                *cell = layout->cells[i];
                cell->vcpus = CPU_SET_INIT;
                if (cpu_set_copy(&cell->vcpus, &layout->cells[i].vcpus) < 0)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < layout->n_cpus; i++) {
                LayoutCpu *cpu = &copy.cpus[copy.n_cpus++];

                *cpu = layout->cpus[i];
                cpu->cpus = CPU_SET_INIT;
                if (cpu_set_copy(&cpu->cpus, &layout->cpus[i].cpus) < 0)
                        return -ENOMEM;
        }
        layout_done(ret);
        *ret = TAKE_STRUCT(copy);
        return 0;
}

static int order_cpus(const void *a, const void *b)
{
        const LayoutCpu *x = a, *y = b;

        return x->vcpu < y->vcpu ? -1 : x->vcpu > y->vcpu;
}

void layout_sort_cpus(Layout *layout)
{
        if (layout->n_cpus > 1)
                qsort(layout->cpus, layout->n_cpus, sizeof(LayoutCpu), order_cpus);
}

bool layout_has_guest_cpu(const Layout *layout, unsigned host_cpu)
{
        for (size_t i = 0; i < layout->n_cpus; i++)
                if (cpu_set_contains(&layout->cpus[i].cpus, host_cpu))
                        return true;
        return false;
}

int layout_compare_held(const Layout *claimed, const Layout *guest, const CpuSet *taken,
                        CpuSet *ret_missing, CpuSet *ret_left)
{
        CPU_SET_FOREACH(cpu, &guest->held)
                if (!cpu_set_contains(taken, cpu) && cpu_set_add(ret_missing, cpu) < 0)
                        return -ENOMEM;
        CPU_SET_FOREACH(cpu, &claimed->held)
                if (!cpu_set_contains(&guest->held, cpu) && !layout_has_guest_cpu(claimed, cpu) &&
                    cpu_set_add(ret_left, cpu) < 0)
                        return -ENOMEM;
        return 0;
}
