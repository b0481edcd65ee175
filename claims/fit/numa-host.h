/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What each host cell has left for guests with a layout, and whether one cell of a guest fits one
 * cell of the host. Pure; rules as in Nova's virt/hardware.py (facts C9, F7), stated at
 * numa_host_fit(). Used by claims/fit/numa.c only. */

#include "claims/claim/host-facts.h"
#include "claims/fit/fit.h"

typedef enum NumaClass {
        NUMA_CLASS_VCPU,
        NUMA_CLASS_PCPU,
        NUMA_CLASS_MEMORY_MB,
        _NUMA_CLASS_MAX,
} NumaClass;

extern const char *const numa_class_names[_NUMA_CLASS_MAX];

/* One host cell. */
typedef struct NumaRoom {
        const HostCell *cell;
        size_t provider;                                  /* of the view; SIZE_MAX: it has none */
        uint64_t n_cpus;                                  /* for guests to share */
        uint64_t n_limit;                                 /* guest CPUs that may share these */
        uint64_t n_shared;                                /* that do */
        CpuSet free;                                      /* dedicated CPUs that nobody holds */
        uint64_t n_free, n_free_isolate, n_free_require;  /* of these, what each policy can use */
        uint64_t memory_limit_mb, memory_used_mb;         /* pages of all sizes */
        uint64_t small_mb, small_limit_mb, small_used_mb; /* small ones */
        uint64_t n_devices;                               /* providers of devices of this cell */
} NumaRoom;

typedef struct NumaHost {
        const HostView *view;
        const HostFacts *facts;
        const Consumer *placed; /* all that may be taken, by provider; NULL: no limit */
        size_t root;
        NumaRoom *rooms; /* by cell's id */
        size_t n_rooms;
        bool by_cell[_NUMA_CLASS_MAX]; /* is the class in cells' providers? */
        int *device_cells; /* by provider: of a device's, its cell or HOST_CELL_NONE; NO_DEVICE */
} NumaHost;

#define NUMA_HOST_NO_DEVICE (-2)

void numa_host_done(NumaHost *host);

/* Borrows view, facts and placed (NULL: nothing is). ret must be zeroed. -ENOMEM. */
int numa_host_make(NumaHost *ret, const HostView *view, const HostFacts *facts, const char *node,
                   const Consumer *placed);

/* What was placed of the class on the provider; UINT64_MAX when nothing limits it. */
uint64_t numa_host_placed(const NumaHost *host, size_t provider, const char *resource_class);

/* What a host cell says to a guest's cell. */
typedef struct NumaVerdict {
        const char *term; /* NULL: it fits; "cpus", "vcpus", "pcpus", "threads", "memory", "pages",
                             or a term of the provider: "capacity", "min_unit", …, "trait" */
        const char *resource_class;
        uint64_t asked, free_amount;
        uint64_t page_kib; /* that it would get; 0: small pages */
        char text[160];    /* why not */
} NumaVerdict;

/* - "cpus": a guest does not share a CPU with itself: a cell has as many shared CPUs as the guest's
 *   cell has shared ones.
 * - "vcpus": all that share them keep to the allocation ratio.
 * - "pcpus": that many dedicated CPUs are free. "threads": on cores of which all threads that are
 *   for guests are free (isolate), on cores of which two threads are free (require).
 * - "memory": that of all guests in the cell keeps to the allocation ratio; with dedicated CPUs to
 *   what the cell has. With no page size said the same goes for small pages, and one guest keeps to
 *   those that there are. "pages": else that many pages are free, whatever the ratio.
 * - what the cell's provider counts fits there, too (inventory_fit()), and is no more than was
 *   placed there. */
void numa_host_fit(const NumaHost *host, const ResourceRequest *request, size_t guest_cell,
                   size_t room, NumaVerdict *ret);

/* Adds the guest's cell in that room to the layout, which has space for it, with the CPUs that it
 * gets: cores with most free threads first, then by number, all threads of one core before the
 * next; with isolate one thread of each core, by number. It must fit. -ENOMEM. */
int numa_host_lay_out(const NumaHost *host, const ResourceRequest *request, size_t guest_cell,
                      size_t room, uint64_t page_kib, Layout *layout);
