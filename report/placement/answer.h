/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Placement's answers as values. Pure. The bodies come from the network: a body of another form is
 * -EBADMSG with the name of the field, and leaves ret untouched. */

#include <jansson.h>

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "base/resources.h"

/* An answer with more providers in one tree is rejected. */
#define PLACEMENT_PROVIDERS_MAX 8192

typedef struct PlacementProvider {
        Uuid uuid;
        Uuid parent; /* null for a root */
        char *name;
        int64_t generation;
} PlacementProvider;

typedef struct PlacementProviders {
        PlacementProvider *items;
        size_t n_items;
} PlacementProviders;

#define PLACEMENT_PROVIDERS_INIT ((PlacementProviders){ 0 })

/* The parts of a provider. Each is read and written by a request of its own. */
typedef enum PlacementPart {
        PLACEMENT_INVENTORIES,
        PLACEMENT_TRAITS,
        PLACEMENT_AGGREGATES,
        _PLACEMENT_PART_MAX,
} PlacementPart;

void placement_providers_done(PlacementProviders *providers);

/* {"resource_providers": [...]} in the order of the answer. ret must be initialised. */
int placement_read_providers(const json_t *body, PlacementProviders *ret, Error *reterr);

/* The same for a whole tree, parents before children (the service promises no order). A uuid or
 * name that comes twice, an unknown parent and a loop are -EBADMSG. */
int placement_read_tree(const json_t *body, PlacementProviders *ret, Error *reterr);

/* One provider: the answer to POST /resource_providers. Only its generation is read. */
int placement_read_provider_generation(const json_t *body, int64_t *ret, Error *reterr);

/* {"resource_provider_generation": 3, …}: the answers of and to inventories, traits, aggregates. */
int placement_read_generation(const json_t *body, int64_t *ret, Error *reterr);

/* {"inventories": {…}}, {"traits": [...]} or {"aggregates": [...]}: replaces that of provider. */
int placement_read_part(const json_t *body, PlacementPart part, Provider *provider, Error *reterr);

/* {"usages": {"VCPU": 3, …}}: amounts by class. ret must be initialised. */
int placement_read_usages(const json_t *body, Resources *ret, Error *reterr);

/* {"traits": [...]}. ret must be initialised. */
int placement_read_traits(const json_t *body, StringSet *ret, Error *reterr);

/* GET /resource_providers/{uuid}/allocations (facts E5): adds what each consumer holds of the
 * provider. */
int placement_read_provider_allocations(const json_t *body, const Uuid *provider, Allocations *ret,
                                        Error *reterr);

/* GET /allocations/{consumer}: adds the whole consumer. One that holds nothing is not added. */
int placement_read_consumer(const json_t *body, const Uuid *uuid, Allocations *ret, Error *reterr);

/* The same as a consumer by itself; one that holds nothing has generation -1. */
int placement_read_whole(const json_t *body, const Uuid *uuid, Consumer **ret, Error *reterr);

/* The answer to placement_get_room(): what no consumer holds of each provider (capacity without
 * what is used), as the allocations of a consumer with a null uuid; nothing when no provider can
 * give that much. */
int placement_read_room(const json_t *body, Consumer **ret, Error *reterr);
