/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/claim-layout.h"

static const HostCpu *find_cpu(const HostFacts *facts, unsigned id, unsigned *ret_cell)
{
        for (size_t i = 0; i < facts->n_cells; i++)
                for (size_t j = 0; j < facts->cells[i].n_cpus; j++)
                        if (facts->cells[i].cpus[j].id == id) {
                                *ret_cell = facts->cells[i].id;
                                return &facts->cells[i].cpus[j];
                        }
        return NULL;
}

/* Host CPUs of a guest's CPU; NULL when it may run on any. */
static const CpuSet *find_pin(const SnapshotDomain *domain, unsigned vcpu)
{
        for (size_t i = 0; i < domain->n_pins; i++)
                if (domain->pins[i].vcpu == vcpu && cpu_set_count(&domain->pins[i].cpus) > 0)
                        return &domain->pins[i].cpus;
        return cpu_set_count(&domain->cpus) > 0 ? &domain->cpus : NULL;
}

/* False when nothing binds the cell. */
static bool find_host_cell(const SnapshotDomain *domain, const HostFacts *facts,
                           const CpuSet *host_cells, const CpuSet *vcpus, unsigned *ret)
{
        if (cpu_set_count(host_cells) == 0)
                host_cells = &domain->memory_cells;
        if (cpu_set_count(host_cells) == 1) {
                *ret = cpu_set_next(host_cells, 0);
                return host_facts_find_cell(facts, *ret) != NULL;
        }
        CPU_SET_FOREACH(vcpu, vcpus)
        {
                const CpuSet *pin = find_pin(domain, vcpu);

                if (pin && find_cpu(facts, cpu_set_next(pin, 0), ret))
                        return true;
        }
        return false;
}

static int add_cpu(const SnapshotDomain *domain, const HostFacts *facts, unsigned vcpu,
                   LayoutCell *cell, Layout *layout)
{
        const CpuSet *pin = find_pin(domain, vcpu);
        const HostCpu *only = NULL;
        LayoutCpu *cpu;
        unsigned host_cell;

        if (pin && cpu_set_count(pin) == 1)
                only = find_cpu(facts, cpu_set_next(pin, 0), &host_cell);
        cell->n_shared += !only || !only->dedicated;
        if (!pin)
                return 0;
        cpu = layout_add_cpu(layout);
        cpu->vcpu = vcpu;
        cpu->dedicated = only && only->dedicated;
        if (cpu->dedicated && cpu_set_add(&layout->held, only->id) < 0)
                return -ENOMEM;
        return cpu_set_copy(&cpu->cpus, pin);
}

static int add_cell(const SnapshotDomain *domain, const HostFacts *facts, const DomainCell *from,
                    unsigned host_cell, Layout *layout)
{
        LayoutCell *cell = layout_add_cell(layout);

        cell->cell = from->id;
        cell->host_cell = host_cell;
        cell->memory_mb = from->memory_kib / 1024 + (from->memory_kib % 1024 > 0);
        cell->page_kib = from->page_kib;
        if (cpu_set_copy(&cell->vcpus, &from->vcpus) < 0)
                return -ENOMEM;
        CPU_SET_FOREACH(vcpu, &from->vcpus)
        if (add_cpu(domain, facts, vcpu, cell, layout) < 0)
                return -ENOMEM;
        return 0;
}

static size_t count_cpus(const DomainCell *cells, size_t n_cells)
{
        size_t n = 0;

        for (size_t i = 0; i < n_cells; i++)
                n += cpu_set_count(&cells[i].vcpus);
        return n;
}

static int order_cpus(const void *a, const void *b)
{
        const LayoutCpu *x = a, *y = b;

        return x->vcpu < y->vcpu ? -1 : x->vcpu > y->vcpu;
}

static int make(const SnapshotDomain *domain, const HostFacts *facts, const DomainCell *cells,
                size_t n_cells, Layout *ret)
{
        _cleanup_(layout_done) Layout layout = LAYOUT_INIT;

        if (layout_reserve(&layout, n_cells, count_cpus(cells, n_cells)) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n_cells; i++) {
                unsigned host_cell;

                if (!find_host_cell(domain, facts, &cells[i].host_cells, &cells[i].vcpus,
                                    &host_cell))
                        return 0;
                if (add_cell(domain, facts, &cells[i], host_cell, &layout) < 0)
                        return -ENOMEM;
        }
        qsort(layout.cpus, layout.n_cpus, sizeof(LayoutCpu), order_cpus);
        *ret = layout;
        layout = LAYOUT_INIT;
        return 0;
}

int claim_layout_make(const SnapshotDomain *domain, const HostFacts *facts, Layout *ret)
{
        DomainCell whole = { .memory_kib = domain->memory_kib, .page_kib = domain->page_kib };
        int r = 0;

        if (domain->n_cells > 0)
                return make(domain, facts, domain->cells, domain->n_cells, ret);
        for (unsigned i = 0; r == 0 && i < MIN(domain->vcpus, (uint64_t)CPU_SET_MAX); i++)
                r = cpu_set_add(&whole.vcpus, i);
        if (r == 0)
                r = make(domain, facts, &whole, 1, ret);
        cpu_set_done(&whole.vcpus);
        return r;
}
