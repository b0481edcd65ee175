/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a driver gets of allocations when the tree may change its shape, and what it says back
 * (specification 4, "Changes to update_provider_tree()"). Plain data. */

#include "base/allocation.h"
#include "base/error.h"
#include "base/provider-tree.h"
#include "base/string-set.h"

/* Expected outcomes of provider_update(). */
typedef enum DriverUpdate {
        DRIVER_UPDATED = 0,
        DRIVER_RESHAPE_NEEDED = 1,  /* something allocated must move, and nothing may */
        DRIVER_UPDATED_IN_PART = 2, /* all but some devices or classes, which were left as they are:
                                       reterr says why */
        _DRIVER_UPDATE_MAX,
} DriverUpdate;

/* A consumer that stands for a guest under another uuid: a migration, or a claim. */
typedef struct ReshapeAlias {
        Uuid consumer;
        Uuid guest; /* uuid of a domain */
} ReshapeAlias;

/* A consumer that could not be placed; the class stays where it is for everybody. */
typedef struct ReshapeProblem {
        Uuid consumer;
        char *resource_class;
        char *reason; /* "it has no domain on this host" */
} ReshapeProblem;

typedef struct DriverReshape {
        Allocations *consumers;      /* whole, edited in place; borrowed. NULL: nothing may move */
        const Allocations *others;   /* who else holds something of the tree's providers: counted,
                                        never moved; borrowed, may be NULL */
        const ReshapeAlias *aliases; /* sorted by consumer; borrowed */
        size_t n_aliases;
        const ProviderTree *before; /* a tree that equals the one to be edited, which spares a copy;
                                       borrowed, NULL: none */
        StringSet classes; /* out, with DRIVER_RESHAPE_NEEDED: whoever holds one of these may have
                              to move */
        StringSet kept;    /* classes that stay where they are, whatever the host is like; the
                              driver adds those of which a consumer cannot be placed */
        ReshapeProblem *problems; /* out */
        size_t n_problems, n_problems_allocated;
} DriverReshape;

/* Frees what the driver filled, and kept. */
void driver_reshape_done(DriverReshape *reshape);

/* Forgets what an earlier call said; kept stays. */
void driver_reshape_clear(DriverReshape *reshape);

/* The domain that the consumer is, or stands for. */
const Uuid *driver_reshape_guest(const DriverReshape *reshape, const Uuid *consumer);

/* -ENOMEM. */
int driver_reshape_add_problem(DriverReshape *reshape, const Uuid *consumer,
                               const char *resource_class, const char *reason);
