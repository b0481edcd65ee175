/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A guest's request: request groups in the sense of GET /allocation_candidates (facts E8, spec 5),
 * and the layout of its CPUs and memory on the host in the words of Nova's flavors (hw:numa_nodes,
 * hw:cpu_policy, hw:mem_page_size, …).
 *
 * The group with the empty suffix may be spread over several providers of the tree, class by class;
 * every other group comes whole from one provider. RequestMappings has the providers that the
 * groups received: the "mappings" of Placement's allocation candidates. A suffixed group has one
 * provider, the group without a suffix one or more.
 *
 * Plain data, its text form, and how a layout is made from words; claims/fit decides what fits
 * where. */

#include "base/cpu-set.h"
#include "base/resources.h"
#include "base/string-set.h"
#include "base/uuid.h"

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
        NUMA_PAGES_DEFAULT, /* not set: small pages, and memory can be overcommitted */
        NUMA_PAGES_SMALL,   /* small pages that are there */
        NUMA_PAGES_LARGE,   /* hugepages, the largest that fit */
        NUMA_PAGES_ANY,     /* hugepages, else small ones */
        NUMA_PAGES_SIZE,    /* of page_kib */
        _NUMA_PAGES_MAX,
        _NUMA_PAGES_INVALID = -EINVAL,
} NumaPages;

/* The host cells that devices can be in, relative to the host cells of the guest. */
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

/* The words of a layout; NULL and 0: not set. */
typedef struct NumaOptions {
        uint64_t nodes;
        const char *cpu_policy;     /* "dedicated", "shared", "mixed" */
        const char *dedicated_mask; /* guest CPUs: "2-3", or "^0-1": all but these */
        const char *thread_policy;
        const char *page_size; /* "small", "large", "any", a number of KiB, "2M", "1GB" */
        const char *affinity;
        const char *strategy; /* "spread", "pack" */
        /* of each cell; n of 0: in equal parts */
        const char *const *cpus;
        size_t n_cpus;
        const uint64_t *memory_mb;
        size_t n_memory;
} NumaOptions;

/* Checks whether any word is given. */
bool numa_options_given(const NumaOptions *options);

/* Makes the layout of a guest that asks for these amounts (of the group without a suffix). VCPU
 * becomes PCPU as the policy says. Without words there is no layout, except that dedicated CPUs
 * (PCPU) ask for a single cell. -EINVAL with words, -ENOMEM; both leave resources and ret, which
 * must be NUMA_REQUEST_INIT, as they were. */
int numa_request_make(const NumaOptions *options, Resources *resources, NumaRequest *ret,
                      Error *reterr);

typedef struct RequestGroup {
        char *suffix; /* "" for the unsuffixed group, else [a-zA-Z0-9_-]{1,64} */
        Resources resources;
        StringSet required;  /* traits the provider must have */
        StringSet forbidden; /* traits it must not have */
        Uuid in_tree;        /* only from the tree that this provider is in; UUID_NULL: any */
        Uuid provider;       /* only from this one, which the caller chose; UUID_NULL: any. It is
                              * not part of the query */
} RequestGroup;

#define RESOURCE_REQUEST_SUBTREES_MAX 16

typedef struct ResourceRequest {
        RequestGroup *groups; /* the unsuffixed first, then by suffix */
        size_t n_groups;
        size_t n_allocated;
        bool isolate; /* group_policy=isolate: no two suffixed groups on one provider */
        StringSet subtrees[RESOURCE_REQUEST_SUBTREES_MAX]; /* suffixes of groups, one of whose
                                                            * providers must be an ancestor of the
                                                            * others, or the same */
        size_t n_subtrees;
        NumaRequest numa; /* how VCPU, PCPU and MEMORY_MB of the group without a suffix are laid out
                           */
} ResourceRequest;

#define RESOURCE_REQUEST_INIT ((ResourceRequest){ 0 })

void resource_request_done(ResourceRequest *request);
int resource_request_copy(ResourceRequest *ret, const ResourceRequest *request);

/* Finds or makes the group of a suffix. Borrowed until the next call. -EINVAL for a bad suffix,
 * -ENOMEM. */
int resource_request_group(ResourceRequest *request, const char *suffix, RequestGroup **ret,
                           Error *reterr);

/* Removes the group at that place. */
void resource_request_remove(ResourceRequest *request, size_t group);

/* Adds same_subtree=A,B,…. -EINVAL with words for less than two suffixes, a bad one or too many
 * lists; -ENOMEM. */
int resource_request_add_subtree(ResourceRequest *request, const StringSet *suffixes,
                                 Error *reterr);

/* Checks whether a subtree names the group. */
bool resource_request_in_subtree(const ResourceRequest *request, const char *suffix);

/* Replaces ret, which must be initialised, with the sum of all groups. -ENOMEM and -EOVERFLOW leave
 * it as it was. */
int resource_request_sum(const ResourceRequest *request, Resources *ret);

/* Writes the request as the query of GET /allocation_candidates, and behind it the layout:
 * "resources=VCPU:2&required=HW_A,!HW_B&resources1=…&numa0=0-1:512&dedicated=0-1&threads=isolate".
 * The caller checks ferror(). -ENOMEM. */
int resource_request_write(const ResourceRequest *request, FILE *file);

typedef struct RequestMapping {
        char *suffix; /* "" for the unsuffixed group */
        Uuid provider;
} RequestMapping;

typedef struct RequestMappings {
        RequestMapping *items; /* by suffix, then provider */
        size_t n_items, n_allocated;
} RequestMappings;

#define REQUEST_MAPPINGS_INIT ((RequestMappings){ 0 })

void request_mappings_done(RequestMappings *mappings);

/* Adds a pair (the suffix is copied); once more is no error. -ENOMEM. */
int request_mappings_add(RequestMappings *mappings, const char *suffix, const Uuid *provider);

/* Checks whether the pair is there. */
bool request_mappings_contain(const RequestMappings *mappings, const char *suffix,
                              const Uuid *provider);
