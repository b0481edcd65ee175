/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The request of "computectl claim" and "explain": resources, layout, and the provider of each
 * group. Pure. */

#include <jansson.h>

#include "base/resource-request.h"

/* Texts of the layout are borrowed. */
typedef struct CtlRequest {
        ResourceRequest resources;
        NumaOptions numa;
        const char *cpus[NUMA_REQUEST_CELLS_MAX + 1]; /* by cell, the rest NULL */
        uint64_t memory_mb[NUMA_REQUEST_CELLS_MAX];
        RequestMappings mappings; /* of providers that are known by their uuid */
        StringSet named;          /* "SUFFIX=NAME": of the others */
        Error error;              /* the first option that cannot be read; code 0: none */
} CtlRequest;

void ctl_request_done(CtlRequest *request);

/* Adds the value of an option (its name without dashes). An error is kept in the request; then all
 * further values are ignored. */
void ctl_request_add(CtlRequest *request, const char *option, const char *text);

/* Returns -EINVAL with words if an option could not be read, if a group has traits but no resources
 * and shares no subtree, or if a mapping names a group that is not asked for. */
int ctl_request_check(const CtlRequest *request, Error *reterr);

/* Finds the providers that mappings name, in a document of TREE_FORMAT. -EINVAL with words if it
 * has no such provider, -ENOMEM. */
int ctl_request_resolve(CtlRequest *request, const json_t *tree, Error *reterr);
