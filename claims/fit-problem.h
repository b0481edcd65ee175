/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A request and a host, prepared for the search: what has to be placed (items), where each could go
 * alone (candidates), and how much room there is. Used by fit.c and fit-explain.c only. */

#include "claims/fit.h"

/* One class of one provider. */
typedef struct FitRoom {
        const Inventory *inventory; /* NULL: the provider does not have the class */
        uint64_t used;
        uint64_t free_amount; /* capacity less used */
        uint64_t limit;       /* what a fit may take here: the free amount, at most max_unit */
} FitRoom;

typedef struct FitNeed {
        size_t resource_class; /* index into the problem's classes */
        uint64_t amount;
} FitNeed;

/* What comes whole from one provider: a suffixed group, or one class of the unsuffixed group. */
typedef struct FitItem {
        size_t group;
        bool suffixed;
        FitNeed *needs;
        size_t n_needs;
        size_t *candidates; /* providers that it fits on an empty fit */
        size_t n_candidates;
        uint64_t subtrees; /* a bit for each of the request's that it is in */
        size_t kind;       /* the same for items that are interchangeable */
} FitItem;

typedef struct FitProblem {
        const HostView *view;
        const ResourceRequest *request;
        const bool *barred; /* by provider, or NULL: as given */
        size_t n_providers;
        bool *usable;         /* by provider: may this node take from it? */
        const char **classes; /* of the request, sorted; borrowed from it */
        size_t n_classes;
        FitRoom *rooms; /* provider * n_classes + class */
        FitItem *items; /* the hardest to place first */
        size_t n_items;
        size_t n_kinds;
        size_t root;            /* SIZE_MAX: none */
        size_t *ranks;          /* by provider: its place in the order of names */
        size_t *twins;          /* by provider: equal for providers that no item can tell apart */
        uint64_t *trait_bits;   /* by provider: which of the unsuffixed group's required traits */
        uint64_t wanted_traits; /* the bits of all of them */
        uint64_t given_traits;  /* those that are there before anything is placed */
} FitProblem;

/* Required traits of one group; claim_request_check() refuses more. */
#define FIT_TRAITS_MAX 64

/* Borrows view, request and given (NULL: nothing). -ENOMEM. */
int fit_problem_new(FitProblem **ret, const HostView *view, const char *node,
                    const ResourceRequest *request, const FitGiven *given);
FitProblem *fit_problem_free(FitProblem *problem);
DEFINE_CLEANUP(FitProblem *, fit_problem_free);

/* Is the provider the one, and in the tree, that the item's group names? True when it names none.
 */
bool fit_problem_tree_allows(const FitProblem *problem, const FitItem *item, size_t provider);

static inline const FitRoom *fit_problem_room(const FitProblem *problem, size_t provider,
                                              size_t resource_class)
{
        return &problem->rooms[provider * problem->n_classes + resource_class];
}
