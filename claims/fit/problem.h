/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A request and a host, prepared for the search: the parts that must be placed (items), the
 * providers of each part alone (candidates), and the free capacities. Only fit.c and explain.c use
 * a problem; other files of the folder use fit_bad_trait() and fit_tree_allows(). */

#include "claims/fit/fit.h"

/* The free capacity of one class on one provider. */
typedef struct FitCapacity {
        const Inventory *inventory; /* NULL: the provider does not have the class, or nothing was
                                       placed there */
        uint64_t used;              /* by claims, and n_of_guests */
        uint64_t n_of_guests;       /* part of used: devices that no claim has and that are not
                                     * free, such as those of guests and blocked ones */
        const HostLimit *devices;   /* limit of devices of the class here; NULL: none */
        uint64_t free_amount;       /* capacity minus used */
        uint64_t limit;             /* largest amount for one fit: free_amount, at most max_unit, of
                                       a set at most the largest partition */
} FitCapacity;

typedef struct FitNeed {
        size_t resource_class; /* index into the problem's classes */
        uint64_t amount;
} FitNeed;

/* A part that must come whole from one provider: a suffixed group, or one class of the unsuffixed
 * group. */
typedef struct FitItem {
        size_t group;
        bool suffixed;
        FitNeed *needs;
        size_t n_needs;
        size_t *open; /* providers that it fits if nothing else is placed */
        size_t n_open;
        size_t *candidates; /* providers of open that are not barred in this try */
        size_t n_candidates;
        uint64_t subtrees; /* a bit for each subtree of the request with this item */
        size_t kind;       /* equal for items that are interchangeable */
} FitItem;

typedef struct FitProblem {
        const HostView *view;
        const ResourceRequest *request;
        FitEffort *effort;
        const bool *barred; /* by provider, or NULL; of this try */
        size_t n_providers;
        bool *usable;         /* by provider: claims on this node can use it */
        const char **classes; /* classes of the request, sorted; borrowed from it */
        size_t n_classes;
        FitCapacity *capacities; /* provider * n_classes + class */
        Inventory *narrowed;     /* copies of inventories, reduced to the placed amounts */
        size_t n_narrowed;
        FitItem *items; /* the hardest to place first */
        size_t n_items;
        size_t n_kinds;
        size_t root;             /* SIZE_MAX: none */
        size_t *ranks;           /* by provider: its position in the order of names */
        size_t *equal_providers; /* by provider: equal for providers that no item distinguishes */
        bool *takes;             /* provider * n_items + item (order before the sort): the provider
                                  * is open to the item; NULL if there are subtrees or no
                                  * providers, or if the effort was spent */
        uint64_t *trait_bits;    /* by provider: its required traits of the unsuffixed group */
        uint64_t wanted_traits;  /* the bits of all required traits */
        const StringSet *traits; /* their names by bit; NULL: there is no such group */
        uint64_t given_traits;   /* bits of the traits of given providers, in this try */
} FitProblem;

/* Largest number of required traits of one group; claim_request_check() rejects more. */
#define FIT_TRAITS_MAX 64

/* Prepares a request. Borrows view, request, placed (NULL: no bound) and effort. Returns
 * CLAIM_E_TOO_HARD if the effort was spent: then *ret is set, but the problem is incomplete.
 * Returns -ENOMEM on failure, without a problem. */
int fit_problem_new(FitProblem **ret, const HostView *view, const char *node,
                    const ResourceRequest *request, const Consumer *placed, FitEffort *effort);
FitProblem *fit_problem_free(FitProblem *problem);
DEFINE_CLEANUP(FitProblem *, fit_problem_free);

/* Makes the candidates and the order of items for a try. given (NULL: no decisions) is borrowed. */
void fit_problem_give(FitProblem *problem, const FitGiven *given);

/* Returns true if this node can use the provider in this try. */
static inline bool fit_problem_usable(const FitProblem *problem, size_t provider)
{
        return problem->usable[provider] && !(problem->barred && problem->barred[provider]);
}

/* Returns true if the group allows the provider of the tree: it is group->provider, and it is in
 * the tree of group->in_tree. Either of these allows all if it is empty. */
bool fit_tree_allows(const ProviderTree *tree, const RequestGroup *group, const Provider *provider);

/* Returns the first trait that excludes the provider, NULL if none does. A forbidden trait always
 * excludes it. A missing required trait excludes it if the group comes whole from there (whole).
 * Otherwise all providers together must have the required traits. ret_forbidden (can be NULL) is
 * written only with a trait. */
const char *fit_bad_trait(const Provider *provider, const RequestGroup *group, bool whole,
                          bool *ret_forbidden);

static inline const FitCapacity *fit_problem_capacity(const FitProblem *problem, size_t provider,
                                                      size_t resource_class)
{
        return &problem->capacities[provider * problem->n_classes + resource_class];
}

/* Returns how many more items like this one fit on the provider, beside the amounts that are
 * placed there (by class; NULL: none) and n_suffixed suffixed groups. Only the limits of the
 * classes count, and for suffixed groups isolate. UINT64_MAX: any number, for an item without
 * resources that isolate does not bound. */
static inline uint64_t fit_problem_places(const FitProblem *problem, const FitItem *item,
                                          size_t provider, const uint64_t *placed,
                                          size_t n_suffixed)
{
        uint64_t places = UINT64_MAX;

        for (size_t i = 0; i < item->n_needs; i++) {
                size_t resource_class = item->needs[i].resource_class;
                uint64_t limit = fit_problem_capacity(problem, provider, resource_class)->limit;
                uint64_t taken = placed ? placed[resource_class] : 0;

                places = MIN(places, (limit - MIN(taken, limit)) / item->needs[i].amount);
        }
        if (problem->request->isolate && item->suffixed)
                places = n_suffixed > 0 ? 0 : MIN(places, 1u);
        return places;
}

/* Returns false if the need is an amount of a set of devices for which no partition fits. Several
 * needs of the class are one amount, so each of them must only be small enough. */
bool fit_problem_has_partition(const FitProblem *problem, const FitCapacity *capacity,
                               const FitNeed *need);

/* Looks for a reason that needs no search. Returns CLAIM_E_UNKNOWN_CLASS for a class that no
 * provider of the view has, or that is placed nowhere here while placed bounds the fit. Returns
 * CLAIM_E_NO_CAPACITY for an item that fits nowhere alone, or for items that need more than there
 * is in total. The words go to reterr. Returns 0 if there is no such reason, so that only a search
 * can decide. Returns -ENOMEM on failure. */
int fit_explain(const FitProblem *problem, Error *reterr);

/* Returns a required trait of the unsuffixed group that no candidate of its items and no given
 * provider has. NULL if there is none. */
const char *fit_lacking_trait(const FitProblem *problem);

/* Yields a verdict for each part of the request and each provider with one of its classes, up to
 * FIT_VERDICTS_MAX. The verdict has the first term that fails, as if the part were alone. For a
 * part of the unsuffixed group that fits, this is the trait of fit_lacking_trait(), if there is
 * one. ret must be zeroed, and stays empty unless 0 is returned. Returns CLAIM_E_TOO_HARD or
 * -ENOMEM on failure. */
int fit_verdicts_make(const FitProblem *problem, FitVerdicts *ret);
