/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Allocations that a driver gets when the tree can change its shape, and the outcome that it
 * returns (specification 4, "Changes to update_provider_tree()"). Plain data. */

#include "base/allocation.h"
#include "base/error.h"
#include "base/provider-tree.h"
#include "base/string-set.h"

/* Outcomes of provider_update() that are no errors. */
typedef enum DriverUpdate {
        DRIVER_UPDATED = 0,
        DRIVER_RESHAPE_NEEDED =
                1, /* a class must move, used or not, but the caller allows no moves */
        DRIVER_UPDATED_IN_PART =
                2, /* some devices or classes are unchanged, left out or limited; reterr says why */
        _DRIVER_UPDATE_MAX,
} DriverUpdate;

/* A consumer that belongs to a guest but has another uuid: a migration, or a claim. */
typedef struct ReshapeAlias {
        Uuid consumer;
        Uuid guest; /* uuid of a domain */
} ReshapeAlias;

/* A consumer whose resources cannot be moved. The class then stays on its provider for all
 * consumers. */
typedef struct ReshapeProblem {
        Uuid consumer;
        char *resource_class;
        char *reason; /* for example "it has no domain on this host" */
} ReshapeProblem;

typedef struct DriverReshape {
        /* All allocations of these consumers, edited in place. Borrowed. NULL: nothing can move. */
        Allocations *consumers;
        /* Other consumers of the tree's providers. Their allocations are counted, but never
         * moved. Borrowed; can be NULL. */
        const Allocations *others;
        const ReshapeAlias *aliases; /* sorted by consumer; borrowed */
        size_t n_aliases;
        /* A tree that equals the one that is edited, which saves a copy. Borrowed; NULL: none. */
        const ProviderTree *before;
        /* Out, with DRIVER_RESHAPE_NEEDED: consumers of one of these classes might have to move. */
        StringSet classes;
        /* Classes that stay where they are on every host. The driver adds those of which a
         * consumer cannot be moved. */
        StringSet kept;
        Error blocked; /* why classes of kept stay, with the first consumer. The driver fills it in,
                          and repeats it in calls without consumers while its class should move.
                          code 0: unknown */
        ReshapeProblem *problems; /* out: owned */
        size_t n_problems, n_problems_allocated;
} DriverReshape;

/* Frees everything that the driver filled in, and "kept". Resets "blocked". */
void driver_reshape_done(DriverReshape *reshape);

/* Clears the results of an earlier call. "kept" and "blocked" stay. */
void driver_reshape_clear(DriverReshape *reshape);

/* Returns the uuid of the domain that the consumer belongs to by an alias, or else consumer itself.
 * The result is borrowed, and is not necessarily a domain of this host. */
const Uuid *driver_reshape_guest(const DriverReshape *reshape, const Uuid *consumer);

/* Appends a problem with copies of both texts. -ENOMEM. */
int driver_reshape_add_problem(DriverReshape *reshape, const Uuid *consumer,
                               const char *resource_class, const char *reason);
