/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What "computectl claim" asks for, from the texts of its options. Pure. */

#include "base/resource-request.h"

/* "VCPU=2,VGPU=1" of --resources: the group without a suffix. -EINVAL with words, -ENOMEM. */
int ctl_request_add_resources(ResourceRequest *request, const char *text, Error *reterr);

/* "1:VGPU=1" of --group: a group that comes whole from one provider. */
int ctl_request_add_group(ResourceRequest *request, const char *text, Error *reterr);

/* "HW_CPU_X86_AVX,!CUSTOM_OLD" of --required, or with a group's suffix: "1:CUSTOM_FAST". */
int ctl_request_add_traits(ResourceRequest *request, const char *text, Error *reterr);

/* "1,2" of --same-subtree: groups that are below one of their providers. */
int ctl_request_add_subtree(ResourceRequest *request, const char *text, Error *reterr);

/* "1:UUID" or "UUID" of --in-tree: only from the tree of that provider. */
int ctl_request_add_tree(ResourceRequest *request, const char *text, Error *reterr);

/* The layout that the options say; texts are borrowed. */
typedef struct CtlNuma {
        NumaOptions options;
        const char *cpus[NUMA_REQUEST_CELLS_MAX + 1]; /* by cell, the rest NULL */
        uint64_t memory_mb[NUMA_REQUEST_CELLS_MAX];
} CtlNuma;

/* "2" of --numa-nodes, "0:0-1" of --numa-cpus, "0:512" of --numa-mem: cells come in their order. */
int ctl_numa_set_nodes(CtlNuma *numa, const char *text, Error *reterr);
int ctl_numa_add_cpus(CtlNuma *numa, const char *text, Error *reterr);
int ctl_numa_add_memory(CtlNuma *numa, const char *text, Error *reterr);

/* -EINVAL when a group has traits but no resources and shares no subtree. */
int ctl_request_check(const ResourceRequest *request, Error *reterr);
