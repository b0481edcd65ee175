/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/reshape/guest-cells.h"

#define NO_CELL SIZE_MAX

static int weights_init(GuestWeights *weights, const Snapshot *snapshot)
{
        weights->of_cell = calloc(snapshot->n_cells + 1, sizeof(uint64_t));
        return weights->of_cell ? 0 : -ENOMEM;
}

static void add_weight(GuestWeights *weights, size_t cell, uint64_t weight)
{
        if (u64_add_overflow(weights->all, weight, &weights->all))
                weights->all = UINT64_MAX;
        else if (cell != NO_CELL)
                weights->of_cell[cell] += weight;
}

void guest_cells_done(GuestCells *cells)
{
        free(cells->shared.of_cell);
        free(cells->dedicated.of_cell);
        free(cells->memory.of_cell);
        *cells = (GuestCells){ 0 };
}

static bool cell_has_all(const SnapshotCell *cell, const CpuSet *cpus)
{
        unsigned n_common = 0;

        for (size_t i = 0; i < cell->n_cpus; i++)
                n_common += cpu_set_contains(cpus, cell->cpus[i].id);
        return n_common > 0 && n_common == cpu_set_count(cpus);
}

static size_t find_cell_of_cpus(const Snapshot *snapshot, const CpuSet *cpus)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                if (cell_has_all(&snapshot->cells[i], cpus))
                        return i;
        return NO_CELL;
}

/* The one cell of a set of cells. */
static size_t find_single_cell(const Snapshot *snapshot, const CpuSet *ids)
{
        for (size_t i = 0; cpu_set_count(ids) == 1 && i < snapshot->n_cells; i++)
                if (cpu_set_contains(ids, snapshot->cells[i].id))
                        return i;
        return NO_CELL;
}

static const CpuSet *find_pin(const SnapshotDomain *domain, unsigned vcpu)
{
        for (size_t i = 0; i < domain->n_pins; i++)
                if (domain->pins[i].vcpu == vcpu)
                        return &domain->pins[i].cpus;
        return &domain->cpus;
}

static void weigh_cpus(const Snapshot *snapshot, const SnapshotDomain *domain, const CpuPlan *cpus,
                       GuestCells *ret)
{
        for (unsigned vcpu = 0; vcpu < MIN(domain->vcpus, CPU_SET_MAX); vcpu++) {
                const CpuSet *pin = find_pin(domain, vcpu);
                bool dedicated = cpu_plan_dedicates(cpus, pin);

                add_weight(dedicated ? &ret->dedicated : &ret->shared,
                           find_cell_of_cpus(snapshot, pin), 1);
        }
}

/* As the CPUs of both kinds together. */
static void follow_cpus(const Snapshot *snapshot, uint64_t memory_kib, GuestCells *ret)
{
        uint64_t n_cpus = ret->shared.all + ret->dedicated.all, before = 0;

        for (size_t i = 0; n_cpus > 0 && i < snapshot->n_cells; i++) {
                uint64_t own = ret->shared.of_cell[i] + ret->dedicated.of_cell[i];

                add_weight(&ret->memory, i, memory_kib / n_cpus * own);
                before += memory_kib / n_cpus * own;
        }
        add_weight(&ret->memory, NO_CELL, memory_kib - before);
}

static void weigh_memory(const Snapshot *snapshot, const SnapshotDomain *domain, GuestCells *ret)
{
        size_t bound = find_single_cell(snapshot, &domain->memory_cells);

        if (domain->n_cells == 0 && bound == NO_CELL) {
                follow_cpus(snapshot, domain->memory_kib, ret);
                return;
        }
        if (domain->n_cells == 0)
                add_weight(&ret->memory, bound, domain->memory_kib);
        for (size_t i = 0; i < domain->n_cells; i++) {
                size_t cell = find_single_cell(snapshot, &domain->cells[i].host_cells);

                add_weight(&ret->memory, cell != NO_CELL ? cell : bound,
                           domain->cells[i].memory_kib);
        }
}

int guest_cells_make(const Snapshot *snapshot, const SnapshotDomain *domain, const CpuPlan *cpus,
                     GuestCells *ret)
{
        _cleanup_(guest_cells_done) GuestCells cells = { 0 };

        if (weights_init(&cells.shared, snapshot) < 0 ||
            weights_init(&cells.dedicated, snapshot) < 0 ||
            weights_init(&cells.memory, snapshot) < 0)
                return -ENOMEM;
        if (domain) {
                weigh_cpus(snapshot, domain, cpus, &cells);
                weigh_memory(snapshot, domain, &cells);
        }
        *ret = TAKE_STRUCT(cells);
        return 0;
}
