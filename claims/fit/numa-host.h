/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The free resources of each host cell for guests with a layout, and the comparison of one guest
 * cell with one host cell. Pure. The rules are those of Nova's virt/hardware.py (facts C9, F7);
 * numa_host_fit() lists them. Only claims/fit/numa.c uses this. */

#include "claims/claim/host-facts.h"
#include "claims/fit/fit.h"

typedef enum NumaClass {
        NUMA_CLASS_VCPU,
        NUMA_CLASS_PCPU,
        NUMA_CLASS_MEMORY_MB,
        _NUMA_CLASS_MAX,
} NumaClass;

extern const char *const numa_class_names[_NUMA_CLASS_MAX];

/* The resources of one host cell. */
typedef struct NumaCapacity {
        const HostCell *cell;
        size_t provider;   /* index in the view; SIZE_MAX: it has none, or a withheld one */
        uint64_t n_cpus;   /* host CPUs that guests share */
        uint64_t n_limit;  /* largest number of guest CPUs on these */
        uint64_t n_shared; /* number of guest CPUs on these */
        CpuSet free;       /* free dedicated CPUs */
        uint64_t n_free, n_free_isolate, n_free_require;  /* usable ones by each policy */
        uint64_t memory_limit_mb, memory_used_mb;         /* MiB in pages of all sizes */
        uint64_t small_mb, small_limit_mb, small_used_mb; /* MiB in small pages */
        uint64_t n_devices; /* number of providers of this cell's devices */
} NumaCapacity;

typedef struct NumaHost {
        const HostView *view;
        const HostFacts *facts;
        const Consumer *placed; /* upper bounds by provider and class; NULL: none */
        size_t root;
        NumaCapacity *capacities; /* by the id of the cell */
        size_t n_capacities;
        bool by_cell[_NUMA_CLASS_MAX]; /* true if a provider of a cell has the class */
        int *device_cells; /* by provider of a device: its cell or HOST_CELL_NONE; for other
                              providers NUMA_HOST_NO_DEVICE. NULL if the view has no root */
} NumaHost;

#define NUMA_HOST_NO_DEVICE (-2)

void numa_host_done(NumaHost *host);

/* Counts the resources of each host cell of facts; there are none if the view has no root. Borrows
 * view, facts and placed (NULL: no allocations exist). ret must be zeroed. Returns -ENOMEM on
 * failure. */
int numa_host_make(NumaHost *ret, const HostView *view, const HostFacts *facts, const char *node,
                   const Consumer *placed);

/* Returns the placed amount of the class on the provider; UINT64_MAX without a bound. */
uint64_t numa_host_placed(const NumaHost *host, size_t provider, const char *resource_class);

/* The answer of a host cell to a guest cell. */
typedef struct NumaVerdict {
        const char *term; /* NULL: it fits; "cpus", "vcpus", "pcpus", "threads", "memory", "pages",
                           * or a term of the provider: "class", "capacity", "min_unit", …,
                           * "host", "trait" */
        const char *resource_class;
        uint64_t asked, free_amount;
        uint64_t page_kib; /* size of the pages that it would get; 0: small pages */
        char text[160];    /* words for the operator if it does not fit */
} NumaVerdict;

/* Compares a guest cell with a host cell. The verdict names the first term that fails, in this
 * order. A guest cell without memory passes the terms of pages and memory:
 *
 *   "cpus"     The host cell has at least as many shared CPUs as the guest cell, because a guest
 *              does not share a CPU with itself.
 *   "vcpus"    These and the guest CPUs of claims on the shared CPUs obey the allocation ratio.
 *   "pcpus"    Enough dedicated CPUs are free.
 *   "threads"  With isolate, there are as many cores whose threads for guests are all free. With
 *              require, they are on cores with two or more free threads.
 *   "pages"    With a kind or size of pages, enough are free; the ratio does not count.
 *   "memory"   This memory and that of claims in the cell obey the allocation ratio. For a guest
 *              cell with dedicated CPUs alone they obey the size of the cell instead, and for a
 *              mixed one both. Without a kind of pages the same holds for small pages, and one
 *              guest must not exceed the existing small pages.
 *
 * Other terms come from the cell's provider. The amounts of classes that are counted by cell must
 * fit there (inventory_fit()), and must not exceed the placed ones. The same holds for hugepages
 * that the provider counts, unless none of them were placed. A provider that gives VCPU, PCPU or
 * MEMORY_MB is in the requested tree and has no forbidden trait. The verdict is written in any
 * case; its amounts are those of the CPUs if the cell fits. */
void numa_host_fit(const NumaHost *host, const ResourceRequest *request, size_t guest_cell,
                   size_t capacity, NumaVerdict *ret);

/* Adds the guest cell in that host cell to the layout, with the CPUs that it gets. Adds its
 * dedicated CPUs to layout->held, with isolate also the other threads of their cores. The caller
 * has reserved the items of the layout. Cores with most free threads come first, then lower ids,
 * and all threads of one core before the next. With isolate, one thread of each core is used, by
 * id. The guest cell must fit. Returns -ENOMEM on failure, with a part of the layout. */
int numa_host_lay_out(const NumaHost *host, const ResourceRequest *request, size_t guest_cell,
                      size_t capacity, uint64_t page_kib, Layout *layout);
