/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The plan: the requests that make Placement equal to the desired tree, and their order. Pure.
 *
 * plan_make() compares two values and sends nothing. --dry-run, "computectl plan" and the debug log
 * print this list, and the executor runs it. Steps have no generation: the executor inserts that of
 * the mirror when it sends.
 *
 * Order: custom classes and traits come before the steps that need them. Parents come before
 * children and before providers that move below them; a provider moves with its inventories and
 * allocations. For each provider the order is inventories, aggregates, traits, with one step at a
 * time; the executor lets a later one overtake one that waits for its prerequisites. Deletions
 * normally come last, children before parents.
 *
 * A provider with inventories is emptied before it is deleted, by a step of its own or by the
 * reshape. On some databases Placement deletes a provider that is being allocated (facts E3), but
 * it refuses to empty an allocated one. Deletions come before a creation only if the new provider
 * has the name of the deleted one, whose descendants that are not desired are then deleted too.
 * Children that stay then move before the deletion below an ancestor that stays, and later below
 * their own parents, if these are others.
 *
 * With allocations of at least one consumer, all changes of inventories are in one PLAN_RESHAPE
 * with them, after all creations, and later steps depend on it. Without them, inventories that
 * change together and that Placement will hardly reject (fits_batch()) are also in one reshape, if
 * the caller permits it. That is a batch of at least four providers, and the same plan can be made
 * without it. */

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "report/publish/mirror.h"

typedef enum PlanOp {
        PLAN_ENSURE_CLASS,    /* PUT /resource_classes/{name} */
        PLAN_ENSURE_TRAIT,    /* PUT /traits/{name} */
        PLAN_CREATE_PROVIDER, /* POST /resource_providers */
        PLAN_MOVE_PROVIDER,   /* PUT /resource_providers/{uuid}: below another parent */
        PLAN_RESHAPE,         /* POST /reshaper */
        PLAN_PUT_INVENTORIES, /* PUT /resource_providers/{uuid}/inventories */
        PLAN_PUT_AGGREGATES,  /* PUT /resource_providers/{uuid}/aggregates */
        PLAN_PUT_TRAITS,      /* PUT /resource_providers/{uuid}/traits */
        PLAN_EMPTY_PROVIDER,  /* DELETE /resource_providers/{uuid}/inventories */
        PLAN_DELETE_PROVIDER, /* DELETE /resource_providers/{uuid} */
        _PLAN_OP_MAX,
} PlanOp;

typedef struct PlanStep {
        PlanOp op;
        Uuid provider; /* null for classes, traits and the reshape */
        Uuid parent;   /* new parent of a move; else null */
        char *name;    /* name of the provider, class or trait; "" for the reshape */
        char *summary; /* for people, for example "VCPU 8, MEMORY_MB 16384 (was 15872)" */
        size_t *after; /* indexes of the steps that must have succeeded before this one starts */
        size_t n_after;
} PlanStep;

typedef struct Plan {
        PlanStep *steps;
        size_t n_steps;
        size_t n_allocated;
        ProviderTree *desired;    /* source of the bodies: a reference, or a copy without the
                                   * unusable traits */
        Allocations *allocations; /* a copy, or NULL: none is moved */
        Uuid *reshaped;           /* the providers in the inventories of the reshape; those that are
                                   * not in desired are emptied */
        size_t n_reshaped;
        bool is_batch; /* the reshape moves no consumer: it has many inventories in one request */
} Plan;

/* Compares desired with the mirror, which must have no stale provider. Custom classes and traits
 * that changed parts need, and that the mirror does not know, are created. A standard trait that
 * Placement is known to lack, and a text that is no trait name, are omitted from comparison and
 * bodies. Placement would reject the whole set. With may_batch, inventories can be sent by the
 * reshaper.
 *
 * Returns -EINVAL for a provider that would have to change its name, or would become or stop being
 * a root. Also returns -EINVAL for a new provider with the name of a deleted one in two cases: the
 * plan has a reshape of allocations, or a provider below the deleted one stays and none of its
 * ancestors does. Returns -ENOMEM when out of memory. */
int plan_make(const ProviderTree *desired, const Mirror *mirror, const Allocations *allocations,
              bool may_batch, Plan **ret, Error *reterr);

/* Makes the part of the plan that needs no allocations: custom names, and new providers with their
 * aggregates and traits. A provider whose name is in use, and its descendants, are left to
 * plan_make(). Returns -ENOMEM, or -EINVAL for a provider that would have to change its name, or
 * would become or stop being a root. */
int plan_make_groundwork(const ProviderTree *desired, const Mirror *mirror, Plan **ret,
                         Error *reterr);

Plan *plan_free(Plan *plan);
DEFINE_CLEANUP(Plan *, plan_free);

/* Checks whether the reshape has the provider's inventories. */
bool plan_is_reshaped(const Plan *plan, const Uuid *provider);
