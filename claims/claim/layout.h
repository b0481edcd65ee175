/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The place of a guest's CPUs and memory on the host: the host cell of each of its cells, the host
 * CPUs that each of its CPUs can use, and the size of its pages. Plain data. */

#include "base/cpu-set.h"

typedef struct LayoutCell {
        unsigned cell;      /* number in the guest, from 0 */
        unsigned host_cell; /* id of the host cell */
        uint64_t memory_mb;
        uint64_t page_kib; /* 0: small pages */
        CpuSet vcpus;      /* guest CPUs */
        uint64_t n_shared; /* number of these without a host CPU of their own */
} LayoutCell;

typedef struct LayoutCpu {
        unsigned vcpu;
        bool dedicated; /* it has a host CPU of its own */
        CpuSet cpus;    /* host CPUs on which it can run */
} LayoutCpu;

typedef struct Layout {
        LayoutCell *cells; /* sorted by cell, but not those of a guest whose cell is spread over
                              host cells */
        size_t n_cells;    /* 0: the cells of the guest are unknown */
        LayoutCpu *cpus;   /* sorted by vcpu */
        size_t n_cpus;
        CpuSet held; /* host CPUs that no other claim can have: those of dedicated guest CPUs, of
                        emulator and I/O threads, and with the thread policy "isolate" the other
                        threads of their cores. A layout without cells can have some. */
} Layout;

#define LAYOUT_INIT ((Layout){ 0 })

void layout_done(Layout *layout);
int layout_copy(Layout *ret, const Layout *layout); /* replaces ret, which must be initialised;
                                                     * -ENOMEM leaves it as it was */

/* Allocates empty arrays of that size, with zeroed items. The caller adds an item by an increment
 * of its number, and must not add more than it reserved. ret must be LAYOUT_INIT. Returns -ENOMEM
 * on failure. */
int layout_reserve(Layout *ret, size_t n_cells, size_t n_cpus);

/* Compares the held CPUs of a claim with those of its guest. Adds to ret_missing the CPUs of the
 * guest that no claim holds (taken: those of all claims). Adds to ret_left each CPU that the claim
 * holds and the guest does not, unless a guest CPU of the claim's layout can run on it. Returns
 * -ENOMEM on failure. */
int layout_compare_held(const Layout *claimed, const Layout *guest, const CpuSet *taken,
                        CpuSet *ret_missing, CpuSet *ret_left);

/* Returns true if one of the guest's CPUs can run on the host CPU. */
bool layout_has_guest_cpu(const Layout *layout, unsigned host_cpu);

/* Sorts the CPUs by their number in the guest. */
void layout_sort_cpus(Layout *layout);
