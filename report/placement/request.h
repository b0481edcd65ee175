/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Placement's requests as values: method, path, microversion and body. Pure; nothing is sent here.
 *
 * Each request has its own microversion. Most use 1.30, which has the error codes (1.23) and which
 * every Placement since 2018 knows. The free capacity of a tree needs 1.31, a move of a provider
 * below another parent 1.37, and types of consumers 1.38. A creation uses 1.19, the last one whose
 * answer has no body: nothing of that body is needed, and it cost a sixth of a first publication.
 */

#include <jansson.h>

#include <string.h>

#include "base/allocation.h"
#include "base/fingerprint.h"
#include "base/provider-tree.h"
#include "base/resource-request.h"
#include "report/placement/answer.h"

#define PLACEMENT_MICROVERSION                "1.30"
#define PLACEMENT_MICROVERSION_CREATE         "1.19"
#define PLACEMENT_MICROVERSION_IN_TREE        "1.31"
#define PLACEMENT_MICROVERSION_MOVE           "1.37"
#define PLACEMENT_MICROVERSION_CONSUMER_TYPES "1.38"

/* Limit for a path with a list of names, in bytes. A longer list is divided (bug 2068893); one long
 * name is not. */
#define PLACEMENT_PATH_MAX 4000

/* An answer that was seen before. */
typedef struct PlacementSeen {
        Fingerprint body;      /* size 0: none */
        uint64_t modified_sec; /* its last-modified; 0: none */
} PlacementSeen;

typedef struct PlacementRequest {
        const char *method, *route; /* "PUT", "/resource_providers/{uuid}/traits"; static */
        char *path;                 /* NULL: out of memory, or a text is not UTF-8 (-ENOMEM of
                                       session_send()) */
        const char *microversion;
        char *body; /* NULL: none */
        /* The last answer to this request. An equal one is not parsed. */
        PlacementSeen seen;
} PlacementRequest;

#define PLACEMENT_REQUEST_INIT ((PlacementRequest){ 0 })

void placement_request_done(PlacementRequest *request);

/* Checks whether the request can change data of the server. */
static inline bool placement_request_writes(const PlacementRequest *request)
{
        return strcmp(request->method, "GET") != 0;
}

/* The following functions make a request, which the caller sends or frees. Names of classes and
 * traits must have passed resource_class_valid(). */

/* Makes a request without a body. what replaces the route's "{…}", if it has one. */
PlacementRequest placement_request(const char *method, const char *route, const char *what);

/* Lists the providers of the tree of this provider; none if it is unknown. */
PlacementRequest placement_get_tree(const Uuid *provider);

/* Lists the provider of that name, or none. */
PlacementRequest placement_get_provider_by_name(const char *name);

PlacementRequest placement_get_part(const Uuid *provider, PlacementPart part);
PlacementRequest placement_get_provider_allocations(const Uuid *provider);

/* Reads all allocations of a consumer. with_type reads its type too, which needs 1.38. */
PlacementRequest placement_get_consumer(const Uuid *consumer, bool with_type);

/* Lists the items with these names; query ends with "in:". Uses as many names from *first on as fit
 * into a path, at least one, and moves *first behind the last one. */
PlacementRequest placement_get_in(const char *route, const char *query, const StringSet *names,
                                  size_t *first);

PlacementRequest placement_post_provider(const Provider *provider);

/* Renames a provider and moves it below parent, with its descendants and all allocations (1.37,
 * facts E3). parent NULL: the parent stays. The generation stays too. */
PlacementRequest placement_put_provider(const Uuid *provider, const char *name, const Uuid *parent);

/* Replaces the complete part of the provider. */
PlacementRequest placement_put_part(const Provider *provider, PlacementPart part,
                                    int64_t generation);

/* One provider of a reshape. */
typedef struct PlacementReshapeItem {
        Uuid provider;
        int64_t generation;
        const Provider *inventories; /* NULL: no inventory is left */
} PlacementReshapeItem;

/* Makes a reshape. allocations (NULL: none) have passed placement_check_consumers(). The request
 * uses 1.38 if there are consumers and each has a valid type, else 1.30, which leaves types
 * unchanged. */
PlacementRequest placement_post_reshaper(const PlacementReshapeItem *items, size_t n_items,
                                         const Allocations *allocations);

/* Returns -EINVAL with words for the first consumer without project or user, because it cannot be
 * written, else 0. consumers NULL: there are none. */
int placement_check_consumers(const Allocations *consumers, Error *reterr);

/* Makes {"<consumer>": {"allocations": {"<provider>": {"resources": {"VCPU": 2}}}, "project_id",
 * "user_id", "consumer_generation"[, "consumer_type"]}} of all consumers, the form of POST
 * /allocations and POST /reshaper. Returns a new reference, or NULL if memory ran out, or a text is
 * missing or not UTF-8. */
json_t *placement_consumers_to_json(const Allocations *allocations, bool with_types);

/* Makes PUT /allocations/{consumer}, which replaces all allocations; a write without any removes
 * the consumer. The request uses 1.38 and has the type and the mappings (NULL: none; Placement
 * accepts and ignores them). If old is set or the type is missing or invalid, it uses 1.30 without
 * both, and Placement keeps the type. The consumer has passed placement_check_consumers(). */
PlacementRequest placement_put_consumer(const Consumer *consumer, const RequestMappings *mappings,
                                        bool old);

/* Makes POST /allocations: the same for several consumers, all of them or none, without mappings.
 * It has the types if old is not set and each consumer has a valid one. */
PlacementRequest placement_post_consumers(const Allocations *consumers, bool old);

/* Makes a request for the free amounts in the tree of root, if one of its providers can allocate
 * that amount of the class. They are the summaries of GET /allocation_candidates, which cover the
 * whole tree even if the answer has few candidates. */
PlacementRequest placement_get_capacity(const Uuid *root, const char *resource_class,
                                        uint64_t amount);
