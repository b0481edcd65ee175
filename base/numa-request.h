/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How a guest wants its CPUs and memory laid out on the host, in the words of Nova's flavors
 * (hw:numa_nodes, hw:cpu_policy, hw:mem_page_size, …). Plain data and how it is made from these
 * words; what fits where is decided elsewhere. */

#include "base/cpu-set.h"
#include "base/resources.h"

#define NUMA_REQUEST_CELLS_MAX 64
#define NUMA_REQUEST_CPUS_MAX  4096

typedef enum NumaThreads {
        NUMA_THREADS_PREFER,  /* on threads of the same cores where that is possible */
        NUMA_THREADS_ISOLATE, /* each guest CPU has a core, whose other threads stay unused */
        NUMA_THREADS_REQUIRE, /* only on cores that have at least two threads for it */
        _NUMA_THREADS_MAX,
        _NUMA_THREADS_INVALID = -EINVAL,
} NumaThreads;

typedef enum NumaPages {
        NUMA_PAGES_DEFAULT, /* not said: small pages, and memory may be overcommitted */
        NUMA_PAGES_SMALL,   /* small pages that are there */
        NUMA_PAGES_LARGE,   /* hugepages, the largest that fit */
        NUMA_PAGES_ANY,     /* hugepages, else small ones */
        NUMA_PAGES_SIZE,    /* of page_kib */
        _NUMA_PAGES_MAX,
        _NUMA_PAGES_INVALID = -EINVAL,
} NumaPages;

/* Where devices may be, seen from the host cells of the guest. */
typedef enum NumaAffinity {
        NUMA_AFFINITY_LEGACY,    /* in one of them; or of no known cell */
        NUMA_AFFINITY_REQUIRED,  /* in one of them */
        NUMA_AFFINITY_PREFERRED, /* in one of them if that is possible */
        NUMA_AFFINITY_SOCKET,    /* in the same socket as one of them */
        _NUMA_AFFINITY_MAX,
        _NUMA_AFFINITY_INVALID = -EINVAL,
} NumaAffinity;

typedef struct NumaRequestCell {
        CpuSet vcpus;       /* guest CPUs, at least one */
        uint64_t memory_mb; /* 0: the request asks for no memory */
} NumaRequestCell;

typedef struct NumaRequest {
        NumaRequestCell *cells; /* what the guest sees; each in a host cell of its own */
        size_t n_cells;         /* 0: no layout is asked for */
        CpuSet dedicated;       /* guest CPUs that have a host CPU for themselves */
        NumaThreads threads;    /* of these */
        NumaPages pages;
        uint64_t page_kib; /* of NUMA_PAGES_SIZE */
        NumaAffinity affinity;
        bool pack; /* fill cells that are in use; else spread over free ones */
} NumaRequest;

#define NUMA_REQUEST_INIT ((NumaRequest){ 0 })

void numa_request_done(NumaRequest *request);
int numa_request_copy(NumaRequest *ret, const NumaRequest *request); /* -ENOMEM */

/* The words; NULL and 0 are "not said". */
typedef struct NumaOptions {
        uint64_t nodes;
        const char *cpu_policy;     /* "dedicated", "shared", "mixed" */
        const char *dedicated_mask; /* guest CPUs: "2-3", or "^0-1": all but these */
        const char *thread_policy;
        const char *page_size; /* "small", "large", "any", a number of KiB, "2M", "1GB" */
        const char *affinity;
        const char *strategy; /* "spread", "pack" */
        /* of each cell, or n of 0: in equal parts */
        const char *const *cpus;
        size_t n_cpus;
        const uint64_t *memory_mb;
        size_t n_memory;
} NumaOptions;

bool numa_options_given(const NumaOptions *options);

/* What the words mean for a guest that asks for these amounts, of the group without a suffix. VCPU
 * becomes PCPU as the policy says. Without words there is no layout, but dedicated CPUs (PCPU)
 * alone ask for one of a single cell. -EINVAL with words, -ENOMEM; both leave resources and ret,
 * which must be NUMA_REQUEST_INIT, as they were. */
int numa_request_make(const NumaOptions *options, Resources *resources, NumaRequest *ret,
                      Error *reterr);

/* Appends the layout to a request's text: "&numa0=0-1:512&dedicated=0-1&threads=isolate". Nothing
 * when there is none. -ENOMEM. */
int numa_request_write(const NumaRequest *request, FILE *file);
