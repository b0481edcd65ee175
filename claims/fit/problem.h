/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A request and a host, prepared for the search: what has to be placed (items), where each could go
 * alone (candidates), and how much room there is. Used by fit.c and claims/fit/explain.c only. */

#include "claims/fit/fit.h"

/* One class of one provider. */
typedef struct FitRoom {
        const Inventory *inventory; /* NULL: the provider does not have the class */
        uint64_t used;              /* by claims, and by guests that have devices without one */
        uint64_t n_of_guests;       /* the latter, and devices that are blocked */
        const HostLimit *devices;   /* of the class's devices here; NULL: they are not limited */
        uint64_t free_amount;       /* capacity less used */
        uint64_t limit; /* what a fit may take here: the free amount, at most max_unit */
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
        size_t *open; /* providers that it fits on an empty fit */
        size_t n_open;
        size_t *candidates; /* of these, the ones that are not barred */
        size_t n_candidates;
        uint64_t subtrees; /* a bit for each of the request's that it is in */
        size_t kind;       /* the same for items that are interchangeable */
} FitItem;

typedef struct FitProblem {
        const HostView *view;
        const ResourceRequest *request;
        FitEffort *effort;
        const bool *barred; /* by provider, or NULL: of this try */
        size_t n_providers;
        bool *usable;         /* by provider: may this node take from it? */
        const char **classes; /* of the request, sorted; borrowed from it */
        size_t n_classes;
        FitRoom *rooms;      /* provider * n_classes + class */
        Inventory *narrowed; /* of the rooms whose amounts were placed: what was placed, no more */
        size_t n_narrowed;
        FitItem *items; /* the hardest to place first */
        size_t n_items;
        size_t n_kinds;
        size_t root;             /* SIZE_MAX: none */
        size_t *ranks;           /* by provider: its place in the order of names */
        size_t *twins;           /* by provider: equal for providers that no item distinguishes */
        bool *takes;             /* provider * n_items + item, before these are sorted: a candidate?
                                    NULL when there are subtrees */
        uint64_t *trait_bits;    /* by provider: which of the unsuffixed group's required traits */
        uint64_t wanted_traits;  /* the bits of all of them */
        const StringSet *traits; /* their names by bit; NULL: there is no such group */
        uint64_t given_traits;   /* those that are there before anything is placed, in this try */
} FitProblem;

/* Required traits of one group; claim_request_check() refuses more. */
#define FIT_TRAITS_MAX 64

/* Borrows view, request, placed (NULL: no limit) and effort. CLAIM_E_TOO_HARD: the problem is too
 * large for that effort, and not whole. -ENOMEM. */
int fit_problem_new(FitProblem **ret, const HostView *view, const char *node,
                    const ResourceRequest *request, const Consumer *placed, FitEffort *effort);
FitProblem *fit_problem_free(FitProblem *problem);
DEFINE_CLEANUP(FitProblem *, fit_problem_free);

/* Makes the candidates and the order of items for a try. given (NULL: nothing) is borrowed. */
void fit_problem_give(FitProblem *problem, const FitGiven *given);

/* May this node take from the provider, in this try? */
static inline bool fit_problem_usable(const FitProblem *problem, size_t provider)
{
        return problem->usable[provider] && !(problem->barred && problem->barred[provider]);
}

/* Is the provider the one, and in the tree, that the item's group names? True when it names none.
 */
bool fit_problem_tree_allows(const FitProblem *problem, const FitItem *item, size_t provider);

/* The first trait that keeps a group from a provider: one that is forbidden, or that a group which
 * takes it all from there (whole) requires; the others have their required traits from all their
 * providers together. NULL: none does. ret_forbidden (may be NULL) is written with a trait alone.
 */
const char *fit_bad_trait(const Provider *provider, const RequestGroup *group, bool whole,
                          bool *ret_forbidden);

static inline const FitRoom *fit_problem_room(const FitProblem *problem, size_t provider,
                                              size_t resource_class)
{
        return &problem->rooms[provider * problem->n_classes + resource_class];
}

/* How many more items like this one the provider takes, beside what is placed there (by class;
 * NULL: nothing) and the suffixed groups that are on it. */
static inline uint64_t fit_problem_places(const FitProblem *problem, const FitItem *item,
                                          size_t provider, const uint64_t *placed,
                                          size_t n_suffixed)
{
        uint64_t places = UINT64_MAX;

        for (size_t i = 0; i < item->n_needs; i++) {
                size_t resource_class = item->needs[i].resource_class;
                uint64_t limit = fit_problem_room(problem, provider, resource_class)->limit;
                uint64_t taken = placed ? placed[resource_class] : 0;

                places = MIN(places, (limit - MIN(taken, limit)) / item->needs[i].amount);
        }
        if (problem->request->isolate && item->suffixed)
                places = n_suffixed > 0 ? 0 : MIN(places, 1u);
        return places;
}

/* explain.c: CLAIM_E_UNKNOWN_CLASS for a class that nothing on the host has, CLAIM_E_NO_CAPACITY
 * for an item that fits nowhere even alone, or for items that together ask for more than there is;
 * the words go to reterr. 0: nothing of that kind, so only a search can say. */
int fit_explain(const FitProblem *problem, Error *reterr);

/* Every provider that has a class which a group asks for, and the first term that fails there; each
 * part of the request on its own, as if it were alone. ret must be zeroed, and stays empty unless 0
 * is returned. CLAIM_E_TOO_HARD; -ENOMEM. */
int fit_verdicts_make(const FitProblem *problem, FitVerdicts *ret);
