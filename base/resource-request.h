/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The request of a guest for resources. A request has groups in the sense of GET
 * /allocation_candidates (facts E8, spec 5). It also has the layout of the guest's CPUs and memory
 * on the host, in terms of Nova's flavors (hw:numa_nodes, hw:cpu_policy, hw:mem_page_size and so
 * on).
 *
 * The classes of the group with the empty suffix can come from several providers of the tree; every
 * other group comes from one provider. RequestMappings stores the providers of the groups, as the
 * "mappings" of Placement's allocation candidates do. A group with a suffix has one provider, the
 * group without a suffix one or more.
 *
 * Plain data, its text form, and the construction of a layout from its options. claims/fit decides
 * where a request fits. */

#include "base/cpu-set.h"
#include "base/resources.h"
#include "base/string-set.h"
#include "base/uuid.h"

#define NUMA_REQUEST_CELLS_MAX 64
#define NUMA_REQUEST_CPUS_MAX  4096

typedef enum NumaThreads {
        NUMA_THREADS_PREFER,  /* on threads of the same cores if possible */
        NUMA_THREADS_ISOLATE, /* one core for each guest CPU; its other threads stay unused */
        NUMA_THREADS_REQUIRE, /* only on cores with at least two free threads */
        _NUMA_THREADS_MAX,
        _NUMA_THREADS_INVALID = -EINVAL,
} NumaThreads;

/* Permitted host cells of devices, relative to the host cells of the guest. */
typedef enum NumaAffinity {
        NUMA_AFFINITY_LEGACY,    /* in one of the guest's cells, or in no known cell */
        NUMA_AFFINITY_REQUIRED,  /* in one of the guest's cells */
        NUMA_AFFINITY_PREFERRED, /* in one of the guest's cells if possible */
        NUMA_AFFINITY_SOCKET,    /* in the socket of one of the guest's cells */
        _NUMA_AFFINITY_MAX,
        _NUMA_AFFINITY_INVALID = -EINVAL,
} NumaAffinity;

typedef struct NumaRequestCell {
        CpuSet vcpus;       /* guest CPUs, at least one */
        uint64_t memory_mb; /* 0: the request asks for no memory */
} NumaRequestCell;

typedef struct NumaRequest {
        NumaRequestCell *cells; /* cells of the guest, each in a different host cell */
        size_t n_cells;         /* 0: no layout */
        CpuSet dedicated;       /* guest CPUs with a host CPU of their own */
        NumaThreads threads;    /* for the dedicated CPUs */
        enum {
                NUMA_PAGES_DEFAULT, /* the option is not set: small pages, whose memory can be
                                       overcommitted */
                NUMA_PAGES_SMALL,   /* small pages, without overcommitted memory */
                NUMA_PAGES_LARGE,   /* hugepages, the largest size that fits */
                NUMA_PAGES_ANY,     /* hugepages if they fit, else small pages */
                NUMA_PAGES_SIZE,    /* pages of page_kib */
                _NUMA_PAGES_MAX,
                _NUMA_PAGES_INVALID = -EINVAL,
        } pages;
        uint64_t page_kib; /* for NUMA_PAGES_SIZE */
        NumaAffinity affinity;
        bool pack; /* fill cells in use; else spread over free cells */
} NumaRequest;

#define NUMA_REQUEST_INIT ((NumaRequest){ 0 })

/* The options of a layout as texts; NULL and 0: not set. */
typedef struct NumaOptions {
        uint64_t nodes;
        const char *cpu_policy;     /* "dedicated", "shared", "mixed" */
        const char *dedicated_mask; /* guest CPUs, for example "2-3", or "^0-1" for all but these */
        const char *thread_policy;
        const char *page_size; /* "small", "large", "any", a number of KiB, "2M", "1GB" */
        const char *affinity;
        const char *strategy; /* "spread", "pack" */
        /* values for each cell; n of 0: equal parts */
        const char *const *cpus;
        size_t n_cpus;
        const uint64_t *memory_mb;
        size_t n_memory;
} NumaOptions;

/* Checks whether any option is set. */
bool numa_options_given(const NumaOptions *options);

/* Makes the layout of a guest with these amounts (of the group without a suffix). The policy and
 * the mask can turn VCPU into PCPU in resources, or PCPU into VCPU. Without options there is no
 * layout, and ret stays as it is, unless the amounts have PCPU: dedicated CPUs need a layout of one
 * cell. -EINVAL with words, or -ENOMEM; then resources and ret, which must be NUMA_REQUEST_INIT,
 * stay unchanged. */
int numa_request_make(const NumaOptions *options, Resources *resources, NumaRequest *ret,
                      Error *reterr);

typedef struct RequestGroup {
        char *suffix; /* "" for the group without a suffix, else [a-zA-Z0-9_-]{1,64} */
        Resources resources;
        StringSet required;  /* traits the provider must have */
        StringSet forbidden; /* traits it must not have */
        Uuid in_tree;        /* only from the tree of this provider; UUID_NULL: any tree */
        Uuid provider;       /* only from this provider, which the caller chose; UUID_NULL: any. It
                              * is not a part of the query */
} RequestGroup;

#define RESOURCE_REQUEST_SUBTREES_MAX 16

typedef struct ResourceRequest {
        RequestGroup *groups; /* sorted by suffix; that without a suffix is first */
        size_t n_groups;
        size_t n_allocated;
        bool isolate; /* group_policy=isolate: no two suffixed groups on one provider */
        StringSet subtrees[RESOURCE_REQUEST_SUBTREES_MAX]; /* suffixes of groups that must share a
                                                            * subtree: one of their providers is an
                                                            * ancestor of the others, or the same */
        size_t n_subtrees;
        NumaRequest numa; /* layout of VCPU, PCPU and MEMORY_MB of the group without a suffix */
} ResourceRequest;

#define RESOURCE_REQUEST_INIT ((ResourceRequest){ 0 })

void resource_request_done(ResourceRequest *request);
/* Replaces ret, which must be initialised, with a copy. -ENOMEM leaves ret as it was. */
int resource_request_copy(ResourceRequest *ret, const ResourceRequest *request);

/* Sets *ret to the group of a suffix, and creates it if needed. *ret is borrowed until the next
 * call that adds or removes a group. Returns -EINVAL with words for an invalid suffix, or
 * -ENOMEM. */
int resource_request_group(ResourceRequest *request, const char *suffix, RequestGroup **ret,
                           Error *reterr);

/* Removes the group with this index. Later groups move down by one. Lists of subtrees stay. */
void resource_request_remove(ResourceRequest *request, size_t group);

/* Adds same_subtree=A,B,…. -EINVAL with words for fewer than two suffixes, an invalid suffix, or
 * more than RESOURCE_REQUEST_SUBTREES_MAX lists; -ENOMEM. */
int resource_request_add_subtree(ResourceRequest *request, const StringSet *suffixes,
                                 Error *reterr);

/* Checks whether a list of same_subtree names the group. */
bool resource_request_in_subtree(const ResourceRequest *request, const char *suffix);

/* Replaces ret, which must be initialised, with the sum of all groups. -ENOMEM and -EOVERFLOW leave
 * it as it was. */
int resource_request_sum(const ResourceRequest *request, Resources *ret);

/* Formats the request as the query of GET /allocation_candidates, followed by the layout:
 * "resources=VCPU:2&required=HW_A,!HW_B&resources1=…&numa0=0-1:512&dedicated=0-1&threads=isolate".
 * Requests that are equal, with the lists of same_subtree in the same order, have the same text.
 * The providers that the caller chose (RequestGroup.provider, mappings) are not in it. The caller
 * frees it. NULL: memory ran out. */
char *resource_request_format(const ResourceRequest *request);

typedef struct RequestMapping {
        char *suffix; /* "" for the group without a suffix */
        Uuid provider;
} RequestMapping;

typedef struct RequestMappings {
        RequestMapping *items; /* sorted by suffix, then by provider */
        size_t n_items, n_allocated;
} RequestMappings;

#define REQUEST_MAPPINGS_INIT ((RequestMappings){ 0 })

void request_mappings_done(RequestMappings *mappings);

/* Adds a pair and copies the suffix. Idempotent. -ENOMEM. */
int request_mappings_add(RequestMappings *mappings, const char *suffix, const Uuid *provider);
