/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Allocations by consumer, in the form of GET /allocations/{consumer}. The driver edits them in
 * place when it reshapes a tree. Plain data, no policy.
 *
 * A consumer is complete: it lists all its allocations, on this host, on other hosts and on sharing
 * providers. Code that edits a consumer must not change allocations that it does not own. */

#include "base/resources.h"
#include "base/uuid.h"

/* Project or user of a consumer whose project or user Placement does not know (facts D1). Nova
 * uses the same value for a consumer that has none. */
#define CONSUMER_UNKNOWN_ID "00000000-0000-0000-0000-000000000000"

/* The resources of one consumer on one provider. */
typedef struct Allocation {
        Uuid provider;
        Resources resources;
} Allocation;

typedef struct Consumer {
        Uuid uuid;
        char *project_id; /* this text and the next two are owned; NULL: unknown */
        char *user_id;
        char *type;              /* consumer_type of microversion 1.38; NULL: unknown */
        int64_t generation;      /* -1: a new consumer, sent as null */
        uint64_t modified_sec;   /* time of the last write by Placement's clock; without
                                  * allocations the time of the read; 0: unknown */
        Allocation *allocations; /* sorted by provider */
        size_t n_allocations;
        size_t n_allocated;
} Consumer;

typedef struct Allocations {
        Consumer **consumers; /* sorted by uuid */
        size_t n_consumers;
        size_t n_allocated;
} Allocations;

/* Creates a consumer outside of any set, without allocations and with generation -1. -ENOMEM. */
int consumer_new(Consumer **ret, const Uuid *uuid);
Consumer *consumer_free(Consumer *consumer);
DEFINE_CLEANUP(Consumer *, consumer_free);

/* Copies a consumer under the same uuid. -ENOMEM. */
int consumer_copy(Consumer **ret, const Consumer *consumer);

/* Makes a set without consumers. -ENOMEM. */
int allocations_new(Allocations **ret);
Allocations *allocations_free(Allocations *allocations);
DEFINE_CLEANUP(Allocations *, allocations_free);
/* Copies the set and all its consumers. -ENOMEM. */
int allocations_copy(Allocations **ret, const Allocations *allocations);

/* Sets *ret to the consumer of this uuid, or creates it with generation -1. *ret is borrowed, and
 * valid until the consumer is removed or the set is freed. -ENOMEM. */
int allocations_ensure(Allocations *allocations, const Uuid *uuid, Consumer **ret);

/* Adds a consumer, which the set owns from then on. On failure the caller still owns it.
 * -EEXIST if the set has a consumer of this uuid, -ENOMEM. */
int allocations_add(Allocations *allocations, Consumer *consumer);

/* Returns the consumer, borrowed, or NULL. */
Consumer *allocations_find(const Allocations *allocations, const Uuid *uuid);

/* Removes and frees a consumer. Returns false if the set does not have it. */
bool allocations_remove(Allocations *allocations, const Uuid *uuid);

/* Compares the allocations, and not project, user, type and generation. */
bool consumer_holds_equal(const Consumer *a, const Consumer *b);

/* Returns the resources of the consumer on a provider, borrowed and writable, or NULL. */
Resources *consumer_find(const Consumer *consumer, const Uuid *provider);

/* Compares the projects; NULL is equal to "" and to NULL. */
bool consumer_is_same_project(const Consumer *a, const Consumer *b);

/* Returns the amount of a class on a provider; 0: no allocation. */
uint64_t consumer_get(const Consumer *consumer, const Uuid *provider, const char *resource_class);

/* Adds to the amount of a class on a provider; 0 is allowed and changes nothing. -ENOMEM or
 * -EOVERFLOW; then nothing is changed. */
int consumer_add(Consumer *consumer, const Uuid *provider, const char *resource_class,
                 uint64_t amount);

/* Sets the amount of a class on a provider. 0 removes the class, and the last class removes the
 * allocation. -ENOMEM; then nothing is changed. */
int consumer_set(Consumer *consumer, const Uuid *provider, const char *resource_class,
                 uint64_t amount);

/* Adds or sets all these allocations in this order. A failure leaves the earlier ones changed.
 * -ENOMEM, and for a sum -EOVERFLOW. */
int consumer_add_all(Consumer *consumer, const Allocation *allocations, size_t n);
int consumer_set_all(Consumer *consumer, const Allocation *allocations, size_t n);

/* Removes all allocations and keeps uuid, project, user, type, generation and time. */
void consumer_clear(Consumer *consumer);

/* Returns the sum of a class over all providers. Saturates at UINT64_MAX. */
uint64_t consumer_sum(const Consumer *consumer, const char *resource_class);
