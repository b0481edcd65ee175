/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Placement's requests as values: method, path, microversion and body. Pure; nothing is sent here.
 *
 * Each request names the one microversion that it is written for, which is the oldest that does the
 * job and gives error codes (1.23). All but two work with 1.30, so with every Placement since
 * 2018; moving a provider below another parent needs 1.37, consumers have types since 1.38. */

#include <jansson.h>

#include <string.h>

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "base/resource-request.h"
#include "report/placement/answer.h"

#define PLACEMENT_MICROVERSION                "1.30"
#define PLACEMENT_MICROVERSION_IN_TREE        "1.31"
#define PLACEMENT_MICROVERSION_MOVE           "1.37"
#define PLACEMENT_MICROVERSION_CONSUMER_TYPES "1.38"

/* A list of names in a query is cut into pieces so that a path stays below this (bug 2068893). */
#define PLACEMENT_PATH_MAX 4000

typedef struct PlacementRequest {
        const char *method, *route; /* "PUT", "/resource_providers/{uuid}/traits"; static */
        char *path;                 /* NULL: out of memory, which session_send() reports */
        const char *microversion;
        char *body;    /* NULL: none */
        bool harmless; /* it changes nothing, although its method can */
} PlacementRequest;

#define PLACEMENT_REQUEST_INIT ((PlacementRequest){ 0 })

void placement_request_done(PlacementRequest *request);

/* Checks whether it changes something at the server. */
static inline bool placement_request_writes(const PlacementRequest *request)
{
        return strcmp(request->method, "GET") != 0 && !request->harmless;
}

/* The functions that follow make a request, which the caller sends or frees. Names of classes and
 * traits must have passed resource_class_valid(). */

/* A request without a body. what takes the place of the route's "{…}", if it has one. */
PlacementRequest placement_request(const char *method, const char *route, const char *what);

/* Lists the providers of the tree that this one belongs to; none if it is unknown. */
PlacementRequest placement_get_tree(const Uuid *provider);

/* Lists the provider of that name, or none. */
PlacementRequest placement_get_provider_by_name(const char *name);

PlacementRequest placement_get_part(const Uuid *provider, PlacementPart part);
PlacementRequest placement_get_provider_allocations(const Uuid *provider);

/* Reads all allocations of a consumer; with_type: and its type, which needs 1.38. */
PlacementRequest placement_get_consumer(const Uuid *consumer, bool with_type);

/* Lists the items of these names: query ends with "in:". Takes names from *first on, as many as fit
 * into a path, and moves *first behind the last one taken. */
PlacementRequest placement_get_in(const char *route, const char *query, const StringSet *names,
                                  size_t *first);

PlacementRequest placement_post_provider(const Provider *provider);

/* Renames a provider and puts it below parent, with everything below it and all allocations (1.37,
 * facts E3). parent NULL: it stays where it is. Its generation stays, too. */
PlacementRequest placement_put_provider(const Uuid *provider, const char *name, const Uuid *parent);

/* Replaces the complete set. */
PlacementRequest placement_put_part(const Provider *provider, PlacementPart part,
                                    int64_t generation);

/* One provider of a reshape. */
typedef struct PlacementReshapeItem {
        Uuid provider;
        int64_t generation;
        const Provider *inventories; /* NULL: none are left */
} PlacementReshapeItem;

/* allocations (NULL: none) have passed placement_check_consumers(). With 1.38 when every consumer
 * has a type, else with 1.30, which leaves types as they are. */
PlacementRequest placement_post_reshaper(const PlacementReshapeItem *items, size_t n_items,
                                         const Allocations *allocations);

/* A reshape with an empty body, which every Placement rejects: with 400 if it would do a real one.
 */
PlacementRequest placement_probe_reshaper(void);

/* Returns -EINVAL with words for a consumer without project and user: nothing of it can be written.
 */
int placement_check_consumer(const Consumer *consumer, Error *reterr);

/* The same for each; NULL: there is none. */
int placement_check_consumers(const Allocations *consumers, Error *reterr);

/* {"<consumer>": {"allocations": {"<provider>": {"resources": {"VCPU": 2}}}, "project_id",
 * "user_id", "consumer_generation"[, "consumer_type"]}} of all consumers, as POST /allocations and
 * POST /reshaper take them. A new reference, NULL when out of memory. */
json_t *placement_consumers_to_json(const Allocations *allocations, bool with_types);

/* PUT /allocations/{consumer}: replaces all allocations; none left removes the consumer. With 1.38,
 * its type and mappings (NULL: none; Placement accepts and ignores them). With 1.30 and neither if
 * old is set or the type is not known: Placement then keeps the type. The consumer has passed
 * placement_check_consumer(). */
PlacementRequest placement_put_consumer(const Consumer *consumer, const RequestMappings *mappings,
                                        bool old);

/* POST /allocations: the same for several, all of them or none. */
PlacementRequest placement_post_consumers(const Allocations *consumers, bool old);

/* Reads the free capacity of the tree of root, if a provider of it can give that amount of the
 * class: the summaries of GET /allocation_candidates. They cover the whole tree, however few
 * candidates the answer has, so one request is enough at any size. */
PlacementRequest placement_get_room(const Uuid *root, const char *resource_class, uint64_t amount);
