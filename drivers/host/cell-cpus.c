/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/cell-cpus.h"

#include <errno.h>
#include <sys/stat.h>

static bool has_link(const char *sys, const SnapshotCell *cell, unsigned cpu)
{
        char path[512];
        struct stat st;

        snprintf(path, sizeof(path), "%.255s/devices/system/node/node%u/cpu%u", sys, cell->id, cpu);
        return lstat(path, &st) == 0;
}

static bool is_node(const char *sys, const SnapshotCell *cell)
{
        for (size_t i = 0; i < cell->n_cpus; i++)
                if (!has_link(sys, cell, cell->cpus[i].id))
                        return false;
        return true;
}

/* The present CPUs that no cell lists. */
static int find_unlisted(const Snapshot *snapshot, CpuSet *ret)
{
        if (cpu_set_copy(ret, &snapshot->present_cpus) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->n_cells; i++)
                for (size_t j = 0; j < snapshot->cells[i].n_cpus; j++)
                        cpu_set_remove(ret, snapshot->cells[i].cpus[j].id);
        return 0;
}

static int order_cpus(const void *a, const void *b)
{
        const SnapshotCpu *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

static int add_cpu(SnapshotCell *cell, unsigned id)
{
        SnapshotCpu cpu = { .id = id, .socket_id = -1 };
        SnapshotCpu *cpus = reallocarray(cell->cpus, cell->n_cpus + 1, sizeof(SnapshotCpu));

        if (!cpus)
                return -ENOMEM;
        cell->cpus = cpus;
        if (cpu_set_add(&cpu.siblings, id) < 0)
                return -ENOMEM;
        cell->cpus[cell->n_cpus++] = cpu;
        return 0;
}

static int complete_cell(const char *sys, SnapshotCell *cell, CpuSet *unlisted)
{
        if (!is_node(sys, cell))
                return 0;
        CPU_SET_FOREACH(cpu, unlisted) {
                if (!has_link(sys, cell, cpu))
                        continue;
                if (add_cpu(cell, cpu) < 0)
                        return -ENOMEM;
                cpu_set_remove(unlisted, cpu);
        }
        if (cell->n_cpus > 1)
                qsort(cell->cpus, cell->n_cpus, sizeof(SnapshotCpu), order_cpus);
        return 0;
}

int cell_cpus_complete(const char *sys, Snapshot *snapshot)
{
        _cleanup_(cpu_set_done) CpuSet unlisted = CPU_SET_INIT;

        if (find_unlisted(snapshot, &unlisted) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->n_cells && cpu_set_count(&unlisted) > 0; i++)
                if (complete_cell(sys, &snapshot->cells[i], &unlisted) < 0)
                        return -ENOMEM;
        return 0;
}
