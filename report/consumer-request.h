/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The requests about consumers, as values (facts E5, E8). Pure; see placement-request.h. */

#include "base/request-mappings.h"
#include "base/resource-request.h"
#include "report/placement-request.h"

#define PLACEMENT_MICROVERSION_IN_TREE      "1.31"
#define PLACEMENT_MICROVERSION_MAPPINGS     "1.34"
#define PLACEMENT_MICROVERSION_SAME_SUBTREE "1.36"

/* PUT /allocations/{consumer}: all that it holds from now on; nothing removes it. With 1.38, its
 * type and mappings (NULL: none to tell; Placement takes and ignores them), or with 1.30 and
 * neither when old is set or the type is not known: its type stays what it is then. -EINVAL for a
 * consumer without project or user, -ENOMEM. */
int placement_put_consumer(const Consumer *consumer, const RequestMappings *mappings, bool old,
                           PlacementRequest *ret, Error *reterr);

/* POST /allocations: the same for several, all of them or none. */
int placement_post_consumers(const Allocations *consumers, bool old, PlacementRequest *ret,
                             Error *reterr);

/* GET /allocation_candidates of the tree that root is of; a group that names another tree keeps it.
 * At most limit candidates. old: for a service without mappings and suffixes in words (1.31). */
int placement_get_candidates(const ResourceRequest *request, const Uuid *root, uint64_t limit,
                             bool old, PlacementRequest *ret, Error *reterr);

/* One answer to that: what would be held where, by which group where the service tells it. */
typedef struct Candidate {
        Consumer *holding; /* under no uuid */
        RequestMappings mappings;
        bool mapped;
} Candidate;

typedef struct CandidateList {
        Candidate *items;
        size_t n_items;
} CandidateList;

CandidateList *candidate_list_free(CandidateList *list);
DEFINE_CLEANUP(CandidateList *, candidate_list_free);

/* In the order of the answer; none is an empty list. -EBADMSG with the name of the field. */
int placement_read_candidates(const json_t *body, CandidateList **ret, Error *reterr);
