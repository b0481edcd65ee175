/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a guest asks for: request groups in the sense of GET /allocation_candidates (facts E8, spec
 * 5).
 *
 * The group with the empty suffix may be spread over several providers of the tree, class by class;
 * every other group comes whole from one provider. Plain data and its text form. */

#include "base/numa-request.h"
#include "base/resources.h"
#include "base/string-set.h"
#include "base/uuid.h"

typedef struct RequestGroup {
        char *suffix; /* "" for the unsuffixed group, else [a-zA-Z0-9_-]{1,64} */
        Resources resources;
        StringSet required;  /* traits the provider must have */
        StringSet forbidden; /* traits it must not have */
        Uuid in_tree;        /* only from the tree that this provider is in; UUID_NULL: any */
        Uuid provider;       /* only from this one, which somebody chose; UUID_NULL: any. It is not
                                part of the query */
} RequestGroup;

/* Groups of which one's provider must be an ancestor of the others', or the same. */
typedef struct RequestSubtree {
        StringSet suffixes;
} RequestSubtree;

#define RESOURCE_REQUEST_SUBTREES_MAX 16

typedef struct ResourceRequest {
        RequestGroup *groups; /* the unsuffixed first, then by suffix */
        size_t n_groups;
        size_t n_allocated;
        bool isolate; /* group_policy=isolate: no two suffixed groups on one provider */
        RequestSubtree subtrees[RESOURCE_REQUEST_SUBTREES_MAX];
        size_t n_subtrees;
        NumaRequest numa; /* how VCPU, PCPU and MEMORY_MB of the group without a suffix are laid out
                           */
} ResourceRequest;

#define RESOURCE_REQUEST_INIT ((ResourceRequest){ 0 })

void resource_request_done(ResourceRequest *request);
int resource_request_copy(ResourceRequest *ret, const ResourceRequest *request);

/* The group of a suffix, made when it is not there. Borrowed until the next call. -EINVAL for a bad
 * suffix, -ENOMEM. */
int resource_request_group(ResourceRequest *request, const char *suffix, RequestGroup **ret,
                           Error *reterr);

/* Takes away the group at that place. */
void resource_request_remove(ResourceRequest *request, size_t group);

/* Adds same_subtree=A,B,…. -EINVAL with words for less than two suffixes, a bad one or too many
 * lists; -ENOMEM. */
int resource_request_add_subtree(ResourceRequest *request, const StringSet *suffixes,
                                 Error *reterr);

/* Is the group named in any of them? */
bool resource_request_in_subtree(const ResourceRequest *request, const char *suffix);

/* Replaces ret, which must be initialised, with the sum of all groups. -ENOMEM and -EOVERFLOW leave
 * it as it was. */
int resource_request_sum(const ResourceRequest *request, Resources *ret);

/* Writes the request as the query of GET /allocation_candidates, without its layout:
 * "resources=VCPU:2&required=HW_A,!HW_B&resources1=…". The caller looks at ferror(). */
void resource_request_write(const ResourceRequest *request, FILE *file);
