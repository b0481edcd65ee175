/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Allocations by consumer, in the form of GET /allocations/{consumer}: what the driver edits in
 * place when it reshapes a tree. Plain data, no policy.
 *
 * A consumer is whole: it lists everything it holds, on this host, on other hosts and on sharing
 * providers. Whoever edits it must leave the parts alone that are not its own. */

#include "base/resources.h"
#include "base/uuid.h"

/* Project or user of a consumer of which Placement does not know them (facts D1), and Nova's
 * sentinel for one that has none. */
#define CONSUMER_UNKNOWN_ID "00000000-0000-0000-0000-000000000000"

/* What one consumer holds on one provider. */
typedef struct Allocation {
        Uuid provider;
        Resources resources;
} Allocation;

typedef struct Consumer {
        Uuid uuid;
        char *project_id;
        char *user_id;
        char *type;              /* consumer_type of microversion 1.38, NULL when unknown */
        int64_t generation;      /* -1: new, sent as null */
        uint64_t modified_sec;   /* by Placement's clock: when it was written, or for one that holds
                                    nothing when it was read; 0: unknown */
        Allocation *allocations; /* sorted by provider */
        size_t n_allocations;
        size_t n_allocated;
} Consumer;

typedef struct Allocations {
        Consumer **consumers; /* sorted by uuid */
        size_t n_consumers;
        size_t n_allocated;
} Allocations;

/* One by itself, that holds nothing and is new. -ENOMEM. */
int consumer_new(Consumer **ret, const Uuid *uuid);
Consumer *consumer_free(Consumer *consumer);
DEFINE_CLEANUP(Consumer *, consumer_free);

/* A copy under the same uuid. -ENOMEM. */
int consumer_copy(Consumer **ret, const Consumer *consumer);

int allocations_new(Allocations **ret);
Allocations *allocations_free(Allocations *allocations);
DEFINE_CLEANUP(Allocations *, allocations_free);
int allocations_copy(Allocations **ret, const Allocations *allocations);

/* The consumer, made when it is not there yet (generation -1). Borrowed; valid as long as the set.
 * -ENOMEM. */
int allocations_ensure(Allocations *allocations, const Uuid *uuid, Consumer **ret);

/* The set takes the consumer when 0 is returned. -EEXIST when one of its uuid is there, -ENOMEM. */
int allocations_add(Allocations *allocations, Consumer *consumer);

Consumer *allocations_find(const Allocations *allocations, const Uuid *uuid);

/* False when it is not there. */
bool allocations_remove(Allocations *allocations, const Uuid *uuid);

/* Same provider parts, whatever project, user, type and generation say. */
bool consumer_holds_equal(const Consumer *a, const Consumer *b);

/* What the consumer holds on a provider, borrowed and writable, or NULL. */
Resources *consumer_find(const Consumer *consumer, const Uuid *provider);

/* Have both the same project, or none? */
bool consumer_is_same_project(const Consumer *a, const Consumer *b);

/* How much of a class on a provider; 0: nothing. */
uint64_t consumer_get(const Consumer *consumer, const Uuid *provider, const char *resource_class);

/* Adds to what it holds there; 0 is allowed and changes nothing. -ENOMEM, -EOVERFLOW. */
int consumer_add(Consumer *consumer, const Uuid *provider, const char *resource_class,
                 uint64_t amount);

/* Sets what it holds there; 0 removes the class, and the provider with its last class. -ENOMEM. */
int consumer_set(Consumer *consumer, const Uuid *provider, const char *resource_class,
                 uint64_t amount);

/* The same of all of these, in this order. -ENOMEM, -EOVERFLOW. */
int consumer_add_all(Consumer *consumer, const Allocation *allocations, size_t n);
int consumer_set_all(Consumer *consumer, const Allocation *allocations, size_t n);

/* Forgets what it holds. */
void consumer_clear(Consumer *consumer);

/* The sum of a class over all providers. */
uint64_t consumer_sum(const Consumer *consumer, const char *resource_class);
