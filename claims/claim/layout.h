/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where on the host the CPUs and the memory of a guest are: which host cell each of its cells is
 * in, which host CPUs each of its CPUs may use, and the size of its pages. Plain data. */

#include "base/cpu-set.h"

typedef struct LayoutCell {
        unsigned cell;      /* of the guest, from 0 */
        unsigned host_cell; /* id */
        uint64_t memory_mb;
        uint64_t page_kib; /* 0: small pages */
        CpuSet vcpus;      /* of the guest */
        uint64_t n_shared; /* of these, how many have no host CPU for themselves */
} LayoutCell;

typedef struct LayoutCpu {
        unsigned vcpu;
        bool dedicated; /* it has a host CPU for itself */
        CpuSet cpus;    /* of the host */
} LayoutCpu;

typedef struct Layout {
        LayoutCell *cells; /* by cell */
        size_t n_cells;    /* 0: it is not known in which cells the guest is */
        LayoutCpu *cpus;   /* by vcpu */
        size_t n_cpus;
        CpuSet held; /* host CPUs that no other claim can have: those of dedicated guest CPUs, of
                        emulator and I/O threads, and with the thread policy "isolate" the other
                        threads of their cores. Can be set without any cell. */
} Layout;

#define LAYOUT_INIT ((Layout){ 0 })

void layout_done(Layout *layout);
int layout_copy(Layout *ret, const Layout *layout); /* -ENOMEM; ret must be initialised */

/* Empty arrays of that size. -ENOMEM; ret must be LAYOUT_INIT. */
int layout_reserve(Layout *ret, size_t n_cells, size_t n_cpus);

/* The next one of the reserved ones, zeroed. */
LayoutCell *layout_add_cell(Layout *layout);
LayoutCpu *layout_add_cpu(Layout *layout);

/* Compares the held CPUs of a claim with those of its guest. Adds to ret_missing the CPUs of the
 * guest that no claim holds (taken: those of all claims), and to ret_left those that the claim
 * holds for neither a guest CPU of its own nor a thread of the guest. -ENOMEM. */
int layout_compare_held(const Layout *claimed, const Layout *guest, const CpuSet *taken,
                        CpuSet *ret_missing, CpuSet *ret_left);

/* Returns true if one of the guest's CPUs can run on the host CPU. */
bool layout_has_guest_cpu(const Layout *layout, unsigned host_cpu);

/* Returns the number of held host CPUs on which no CPU of the guest runs. */
unsigned layout_count_thread_cpus(const Layout *layout);

/* By the guest's numbers. */
void layout_sort_cpus(Layout *layout);
