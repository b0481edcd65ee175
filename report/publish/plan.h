/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The plan: which requests make Placement equal to the desired tree, and in which order. Pure.
 *
 * plan_make() compares two values and sends nothing. --dry-run, "computectl plan" and the log print
 * this very list, and the executor runs it. Steps carry no generation: the executor puts in the
 * mirror's when it sends.
 *
 * Order: custom classes and traits before whoever needs them, parents before children and before
 * those that move below them (what they have and what is allocated of it moves along), per provider
 * inventories, aggregates, traits (one step per provider at a time, in list order), deletions last
 * and children before parents. What goes is emptied first: Placement deletes a provider whatever
 * was allocated of it since it looked, and refuses to empty it then. Only where a provider to be
 * created has the name of one to be deleted does that deletion come first.
 *
 * With allocations, everything of the inventories that changes goes into one PLAN_RESHAPE with
 * them, after all creations; what follows depends on it. Without, inventories that change together
 * go into one too where the service lets us, and only where nothing is lost when it
 * is refused: that is a batch, and the same plan can be made without it. */

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
        char *name;    /* of the provider, the class or the trait; "" for the reshape */
        char *summary; /* for people: "VCPU 8, MEMORY_MB 16384 (was 15872)" */
        size_t *after; /* indexes of the steps that must have ended well before this one starts */
        size_t n_after;
} PlanStep;

typedef struct Plan {
        PlanStep *steps;
        size_t n_steps;
        size_t n_allocated;
        ProviderTree *desired;    /* a copy without the traits left out: where bodies come from */
        Allocations *allocations; /* a copy, or NULL: no reshape */
        Uuid *reshaped;           /* providers in the reshape's inventories; those that are not in
                                     desired are emptied */
        size_t n_reshaped;
        bool is_batch; /* the reshape moves no consumer: many inventories in one request */
} Plan;

/* Compares desired with the mirror, which has no stale provider. Custom classes and traits that the
 * mirror does not know are made. A standard trait that Placement lacks, and a text that is no trait
 * name, is left out of comparison and bodies: Placement would reject the whole set. may_batch:
 * inventories can be sent by the reshaper. -ENOMEM; -EINVAL for a provider that would have to
 * change its name or become or stop being a root, and for a reshape in which a new provider has the
 * name of one that goes. */
int plan_make(const ProviderTree *desired, const Mirror *mirror, const Allocations *allocations,
              bool may_batch, Plan **ret, Error *reterr);

/* Makes the part of the plan that needs no allocations: custom names, and new providers with their
 * aggregates and traits. Providers whose name another one has, and those below them, are left for
 * plan_make(). -ENOMEM, -EINVAL as there. */
int plan_make_groundwork(const ProviderTree *desired, const Mirror *mirror, Plan **ret,
                         Error *reterr);

Plan *plan_free(Plan *plan);
DEFINE_CLEANUP(Plan *, plan_free);

/* Checks whether a provider's inventories are in the reshape. */
bool plan_is_reshaped(const Plan *plan, const Uuid *provider);
