/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Placement's answers as values. Pure. The bodies come from the network. A body of another form
 * gives -EBADMSG with words, and leaves ret unchanged. Only placement_read_provider_allocations()
 * can have added some of the allocations then. A reader can also return -ENOMEM, with the same
 * effect. */

#include <jansson.h>

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "base/resources.h"

/* Limit for the providers in one list; a larger answer is rejected. */
#define PLACEMENT_PROVIDERS_MAX 8192

typedef struct PlacementProvider {
        Uuid uuid;
        Uuid parent; /* null for a root */
        char *name;  /* another text if it is empty, too long or has a NUL (answer.c) */
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

/* Reads {"resource_providers": [...]} in the order of the answer. ret must be initialised. */
int placement_read_providers(const json_t *body, PlacementProviders *ret, Error *reterr);

/* Reads the list of a whole tree and sorts parents before children. Returns -EBADMSG for a uuid or
 * name that occurs twice, an unknown parent, or a cycle. */
int placement_read_tree(const json_t *body, PlacementProviders *ret, Error *reterr);

/* Members with the generation of a provider: the first in the provider itself, as in a list of
 * providers, and the second in an answer about its inventories, traits or aggregates. */
#define PLACEMENT_GENERATION         "generation"
#define PLACEMENT_GENERATION_OF_PART "resource_provider_generation"

/* Reads a generation, which must not be negative. key: one of these members. */
int placement_read_generation(const json_t *object, const char *key, int64_t *ret, Error *reterr);

/* Reads {"inventories": {…}}, {"traits": [...]} or {"aggregates": [...]}, and replaces that part of
 * provider. */
int placement_read_part(const json_t *body, PlacementPart part, Provider *provider, Error *reterr);

/* Reads {"usages": {"VCPU": 3, …}} as amounts by class, without those of 0. ret must be
 * initialised. */
int placement_read_usages(const json_t *body, Resources *ret, Error *reterr);

/* Reads {"traits": [...]}. ret must be initialised. */
int placement_read_traits(const json_t *body, StringSet *ret, Error *reterr);

/* Reads {"resource_classes": [{"name": …}, …]} and stores the names that are in wanted. ret must be
 * initialised. */
int placement_read_classes(const json_t *body, const StringSet *wanted, StringSet *ret,
                           Error *reterr);

/* Reads the answer to GET /resource_providers/{uuid}/allocations (facts E5), and adds the
 * allocations of each consumer on this provider. */
int placement_read_provider_allocations(const json_t *body, const Uuid *provider, Allocations *ret,
                                        Error *reterr);

/* Reads the answer to GET /allocations/{consumer} and adds the complete consumer, unless it has no
 * allocations. -EBADMSG if ret has the consumer already. */
int placement_read_consumer(const json_t *body, const Uuid *uuid, Allocations *ret, Error *reterr);

/* Reads the answer to GET /allocations/{consumer} as a new consumer, which the caller frees. A
 * consumer without allocations has generation -1. */
int placement_read_whole(const json_t *body, const Uuid *uuid, Consumer **ret, Error *reterr);

/* Reads the answer to placement_get_capacity(). The free amounts of each provider (capacity without
 * the used part), except those of 0, become the allocations of a consumer with a null uuid. It is
 * empty if no provider can allocate the requested amount. */
int placement_read_capacity(const json_t *body, Consumer **ret, Error *reterr);
