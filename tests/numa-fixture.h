/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A host with NUMA cells for the tests of claims/, made from numbers: cell 0 has the lowest CPUs,
 * the next cell the next ones; the threads of a core follow each other. */

#include <string.h>

#include "base/array.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/host-view.h"
#include "tests/test.h"

#define NUMA_FIXTURE_CELLS 4
#define NUMA_FIXTURE_CPUS  16 /* of a cell, at most */

typedef struct NumaCellSpec {
        unsigned n_shared, n_dedicated; /* CPUs: first the shared ones */
        unsigned threads;               /* of a core */
        uint64_t memory_mb;
        uint64_t n_2m, n_1g; /* hugepages */
        int socket;
} NumaCellSpec;

typedef struct NumaFixture {
        HostFacts facts;
        HostCell cells[NUMA_FIXTURE_CELLS];
        HostCpu cpus[NUMA_FIXTURE_CELLS][NUMA_FIXTURE_CPUS];
        HostPages pages[NUMA_FIXTURE_CELLS][2];
        HostDevice devices[NUMA_FIXTURE_CELLS];
        HostPci pci[NUMA_FIXTURE_CELLS];
} NumaFixture;

static inline void numa_fixture_make(NumaFixture *ret, const NumaCellSpec *specs, size_t n)
{
        unsigned next = 0;

        *ret = (NumaFixture){ .facts = { .taken_usec = 1000 * USEC_PER_SEC,
                                         .cells = ret->cells,
                                         .n_cells = n,
                                         .devices = ret->devices,
                                         .pci = ret->pci,
                                         .small_page_kib = 4 } };
        for (size_t i = 0; i < n; i++) {
                const NumaCellSpec *spec = &specs[i];
                unsigned n_cpus = spec->n_shared + spec->n_dedicated;

                assert_true(n_cpus <= NUMA_FIXTURE_CPUS && i < NUMA_FIXTURE_CELLS);
                for (unsigned j = 0; j < n_cpus; j++)
                        ret->cpus[i][j] =
                                (HostCpu){ .id = next + j,
                                           .core = next + j / spec->threads * spec->threads,
                                           .shared = j < spec->n_shared,
                                           .dedicated = j >= spec->n_shared };
                next += n_cpus;
                ret->pages[i][0] = (HostPages){ .size_kib = 2048,
                                                .total = spec->n_2m,
                                                .resource_class = "CUSTOM_HUGEPAGES_2M" };
                ret->pages[i][1] = (HostPages){ .size_kib = 1048576,
                                                .total = spec->n_1g,
                                                .resource_class = "CUSTOM_HUGEPAGES_1G" };
                ret->cells[i] = (HostCell){ .id = (unsigned)i,
                                            .socket = spec->socket,
                                            .memory_mb = spec->memory_mb,
                                            .cpus = ret->cpus[i],
                                            .n_cpus = n_cpus,
                                            .pages = ret->pages[i],
                                            .n_pages = 2 };
        }
}

/* A device that gives mdevs, on the provider "host_NAME". */
static inline void numa_fixture_device(NumaFixture *facts, const char *name, int cell)
{
        facts->devices[facts->facts.n_devices++] = (HostDevice){ .name = name,
                                                                 .address = "",
                                                                 .mdev_type = "t",
                                                                 .resource_class = "VGPU",
                                                                 .available = 100,
                                                                 .cell = cell };
}

/* What claims have of a cell already. */
static inline void numa_fixture_use(HostView *view, unsigned cell, uint64_t page_kib,
                                    uint64_t memory_mb, uint64_t n_shared)
{
        assert_int_equal(array_grow(&view->cell_usages, sizeof(HostCellUsage), view->n_cell_usages,
                                    &view->n_cell_usages_allocated),
                         0);
        view->cell_usages[view->n_cell_usages++] = (HostCellUsage){ .host_cell = cell,
                                                                    .page_kib = page_kib,
                                                                    .memory_mb = memory_mb,
                                                                    .n_shared = n_shared };
}

/* "0@1:0-1 2M 512" per guest's cell: its number, host cell, guest CPUs, pages, MiB; then the CPUs,
 * "0=4 1=0-3s" (s: shared). The caller frees. */
static inline char *numa_fixture_format(const Layout *layout)
{
        char *text;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        for (size_t i = 0; i < layout->n_cells; i++) {
                const LayoutCell *cell = &layout->cells[i];
                char *vcpus = cpu_set_format(&cell->vcpus);

                fprintf(file, "%s%u@%u:%s %u %u", i ? ", " : "", cell->cell, cell->host_cell, vcpus,
                        (unsigned)cell->page_kib, (unsigned)cell->memory_mb);
                free(vcpus);
        }
        fputs(";", file);
        for (size_t i = 0; i < layout->n_cpus; i++) {
                char *cpus = cpu_set_format(&layout->cpus[i].cpus);

                fprintf(file, " %u=%s%s", layout->cpus[i].vcpu, cpus,
                        layout->cpus[i].dedicated ? "" : "s");
                free(cpus);
        }
        fclose(file);
        return text;
}
