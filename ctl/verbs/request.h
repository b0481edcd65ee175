/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The request of "computectl claim" and "explain": resources, layout, and the provider of each
 * group. Pure. */

#include <jansson.h>

#include "base/resource-request.h"

/* A request. The texts of the layout are borrowed. The member numa points to other members, so the
 * struct must not move. */
typedef struct CtlRequest {
        ResourceRequest resources;
        NumaOptions numa;
        const char *cpus[NUMA_REQUEST_CELLS_MAX + 1]; /* by cell; the rest is NULL */
        uint64_t memory_mb[NUMA_REQUEST_CELLS_MAX];
        RequestMappings mappings; /* providers that are given by their uuid */
        StringSet named;          /* "SUFFIX=NAME": the other providers */
        Error error; /* error of the first option that cannot be parsed; code 0: none */
} CtlRequest;

/* Frees the members. */
void ctl_request_done(CtlRequest *request);

/* Adds the value of an option (its name without dashes). An error is stored in the request; further
 * values are then ignored. */
void ctl_request_add(CtlRequest *request, const char *option, const char *text);

/* Returns -EINVAL with words if an option could not be parsed, also if memory ran out for it. Other
 * errors are a group that has no resources and is in no list of --same-subtree, and a mapping of a
 * group that is not requested. */
int ctl_request_check(const CtlRequest *request, Error *reterr);

/* Finds the providers of mappings by name, in a document of TREE_FORMAT. Returns -EINVAL with words
 * if it has no such provider, -EINVAL without words if the provider has no valid uuid, or -ENOMEM.
 * Names before the failure stay resolved. */
int ctl_request_resolve(CtlRequest *request, const json_t *tree, Error *reterr);
