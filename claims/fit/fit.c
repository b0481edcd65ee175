/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Searches with backtracking for the providers of the items of a FitProblem. The hardest items come
 * first, and each item's candidates come in the order of preference. Three cuts keep the search
 * short, and none can lose a fit:
 *
 *   Reach  At first and after each choice, every kind of item must find enough places for its
 *          items, counted alone. The required traits of the unsuffixed group must be in reach.
 *   Twins  If an item failed on a provider, its equal_providers fail too. No item distinguishes
 *          these, and they have the same parts placed so far. Exchanging the two providers turns a
 *          fit of one into a fit of the other.
 *   Kinds  If an item failed on a provider, later items of the same kind do not try it below this
 *          point. Exchanging the two items would give the fit that was just excluded.
 *
 * If words are wanted, fit_explain() checks classes, single items, kinds and totals before the
 * search. A FitTrial keeps the problem and the arrays for several tries; between tries nothing is
 * placed or marked. The work of the preparation and of the search is counted in the problem's
 * effort. After the effort is spent, no try begins, and a search tries no further candidate: it
 * ends with CLAIM_E_TOO_HARD unless it has just found a fit.
 *
 * LIMITATIONS: hard packings of many groups of different size can end in CLAIM_E_TOO_HARD. */

#include "claims/fit/fit.h"

#include <string.h>

#include "base/array.h"
#include "base/device-set.h"
#include "claims/fit/problem.h"

typedef struct Search {
        const FitProblem *problem;
        uint64_t *placed;    /* provider * n_classes + class: amounts of this fit */
        size_t *n_suffixed;  /* by provider: suffixed groups on it */
        size_t *failed_at;   /* kind * n_providers + provider: level of the failure + 1; 0: none */
        size_t *n_left;      /* by kind: number of items that are not placed yet */
        size_t *first;       /* by kind: one of its items */
        size_t *chosen;      /* by item: its provider */
        uint64_t *reachable; /* by item: wanted traits that this item and later ones can add */
} Search;

static bool spend(const Search *search, uint64_t work)
{
        return fit_effort_spend(search->problem->effort, work);
}

/* Returns the cost of one check of a provider, in the unit of the effort. */
static uint64_t cost_of_look(const FitItem *item)
{
        return 1 + item->n_needs / 4;
}

void fit_done(Fit *fit)
{
        free(fit->pieces);
        layout_done(&fit->layout);
        *fit = FIT_NULL;
}

static int append(Fit *fit, FitPiece piece)
{
        if (array_grow(&fit->pieces, sizeof(FitPiece), fit->n_pieces, &fit->n_allocated) < 0)
                return -ENOMEM;
        fit->pieces[fit->n_pieces++] = piece;
        return 0;
}

int fit_add(Fit *fit, size_t provider, const char *resource_class, uint64_t amount)
{
        for (size_t i = 0; i < fit->n_pieces; i++) {
                FitPiece *piece = &fit->pieces[i];

                if (piece->group == 0 && piece->provider == provider &&
                    strcmp(piece->resource_class, resource_class) == 0) {
                        piece->amount += amount;
                        return 0;
                }
        }
        return append(fit, (FitPiece){ .provider = provider,
                                       .resource_class = resource_class,
                                       .amount = amount });
}

struct FitTrial {
        FitProblem *problem;
        Search search; /* clean between tries: nothing placed, nothing failed */
};

FitTrial *fit_trial_free(FitTrial *trial)
{
        Search *search;

        if (!trial)
                return NULL;
        search = &trial->search;
        fit_problem_free(trial->problem);
        free(search->placed);
        free(search->n_suffixed);
        free(search->failed_at);
        free(search->n_left);
        free(search->first);
        free(search->chosen);
        free(search->reachable);
        free(trial);
        return NULL;
}

static int search_init(Search *search, const FitProblem *problem)
{
        size_t n = problem->n_providers, n_items = problem->n_items;

        search->problem = problem;
        search->placed = calloc(n * problem->n_classes + 1, sizeof(uint64_t));
        search->n_suffixed = calloc(n + 1, sizeof(size_t));
        search->failed_at = calloc(n * problem->n_kinds + 1, sizeof(size_t));
        search->n_left = calloc(problem->n_kinds + 1, sizeof(size_t));
        search->first = calloc(problem->n_kinds + 1, sizeof(size_t));
        search->chosen = calloc(n_items + 1, sizeof(size_t));
        search->reachable = calloc(n_items + 1, sizeof(uint64_t));
        return search->placed && search->n_suffixed && search->failed_at && search->n_left &&
                               search->first && search->chosen && search->reachable
                       ? 0
                       : -ENOMEM;
}

/* Computes the data of a try that depend on its candidates and on the order of its items. */
static void search_begin(Search *search)
{
        const FitProblem *problem = search->problem;

        memset(search->n_left, 0, problem->n_kinds * sizeof(size_t));
        for (size_t i = problem->n_items; i > 0; i--) {
                const FitItem *item = &problem->items[i - 1];

                (void)spend(search, item->n_open);
                search->n_left[item->kind]++;
                search->first[item->kind] = i - 1;
                search->reachable[i - 1] = search->reachable[i];
                for (size_t j = 0; !item->suffixed && j < item->n_candidates; j++)
                        search->reachable[i - 1] |= problem->trait_bits[item->candidates[j]];
        }
}

static uint64_t *placed_at(const Search *search, size_t provider, size_t resource_class)
{
        return &search->placed[provider * search->problem->n_classes + resource_class];
}

static size_t *failed_at(const Search *search, const FitItem *item, size_t provider)
{
        return &search->failed_at[item->kind * search->problem->n_providers + provider];
}

/* Returns how many more items like this one fit on the provider, 0 if one failed there. */
static uint64_t count_places(const Search *search, const FitItem *item, size_t provider)
{
        return *failed_at(search, item, provider) > 0
                       ? 0
                       : fit_problem_places(search->problem, item, provider,
                                            placed_at(search, provider, 0),
                                            search->n_suffixed[provider]);
}

/* Places an item on a provider. The reverse is unplace(). */
static void place(Search *search, const FitItem *item, size_t provider)
{
        for (size_t i = 0; i < item->n_needs; i++)
                *placed_at(search, provider, item->needs[i].resource_class) +=
                        item->needs[i].amount;
        search->n_suffixed[provider] += item->suffixed;
        search->n_left[item->kind]--;
}

static void unplace(Search *search, const FitItem *item, size_t provider)
{
        for (size_t i = 0; i < item->n_needs; i++)
                *placed_at(search, provider, item->needs[i].resource_class) -=
                        item->needs[i].amount;
        search->n_suffixed[provider] -= item->suffixed;
        search->n_left[item->kind]++;
}

/* Returns true if the remaining items of the kind fit on their candidates, beside the parts that
 * are placed already. Other kinds are not considered. */
static bool kind_has_places(Search *search, size_t kind)
{
        const FitItem *item = &search->problem->items[search->first[kind]];
        uint64_t places = 0;

        for (size_t i = 0; i < item->n_candidates && places < search->n_left[kind]; i++) {
                uint64_t more = count_places(search, item, item->candidates[i]);

                (void)spend(search, cost_of_look(item));
                places += MIN(more, search->n_left[kind]);
        }
        return places >= search->n_left[kind];
}

/* Returns false if the items from level on cannot be placed any more. True does not prove a fit. */
static bool is_promising(Search *search, size_t level, uint64_t traits)
{
        const FitProblem *problem = search->problem;

        if (((traits | search->reachable[level]) & problem->wanted_traits) !=
            problem->wanted_traits)
                return false;
        for (size_t kind = 0; kind < problem->n_kinds; kind++)
                if (search->n_left[kind] > 0 && !kind_has_places(search, kind))
                        return false;
        return true;
}

/* Returns the free capacity of the scarcest class, in units of the item. */
static double measure_capacity(const Search *search, const FitItem *item, size_t provider)
{
        double scarcest = -1;

        for (size_t i = 0; i < item->n_needs; i++) {
                const FitNeed *need = &item->needs[i];
                const FitCapacity *capacity =
                        fit_problem_capacity(search->problem, provider, need->resource_class);
                uint64_t left =
                        capacity->free_amount - *placed_at(search, provider, need->resource_class);
                double times = (double)left / (double)need->amount;

                if (scarcest < 0 || times < scarcest)
                        scarcest = times;
        }
        return scarcest;
}

/* Returns true if provider a is preferred to b: the root, then more free capacity, then the
 * name. */
static bool is_preferred(const Search *search, const FitItem *item, size_t a, size_t b)
{
        const FitProblem *problem = search->problem;
        double capacity_a, capacity_b;

        if (a == problem->root || b == problem->root)
                return a == problem->root;
        capacity_a = measure_capacity(search, item, a);
        capacity_b = measure_capacity(search, item, b);
        if (capacity_a > capacity_b || capacity_a < capacity_b)
                return capacity_a > capacity_b;
        return problem->ranks[a] < problem->ranks[b];
}

/* Returns the preferred candidate that has a place for the item and did not fail yet. SIZE_MAX if
 * there is none, or if the effort is spent. */
static size_t next_candidate(Search *search, const FitItem *item)
{
        size_t best = SIZE_MAX;

        if (!spend(search, item->n_candidates * cost_of_look(item)))
                return SIZE_MAX;
        for (size_t i = 0; i < item->n_candidates; i++) {
                size_t provider = item->candidates[i];

                if (count_places(search, item, provider) > 0 &&
                    (best == SIZE_MAX || is_preferred(search, item, provider, best)))
                        best = provider;
        }
        return best;
}

/* Returns true if the providers are equal for every item, and have the same parts placed. */
static bool are_equal_providers(const Search *search, size_t a, size_t b)
{
        const FitProblem *problem = search->problem;

        return problem->equal_providers[a] == problem->equal_providers[b] &&
               search->n_suffixed[a] == search->n_suffixed[b] &&
               memcmp(placed_at(search, a, 0), placed_at(search, b, 0),
                      problem->n_classes * sizeof(uint64_t)) == 0;
}

/* Marks the item's kind as failed on the provider and on its equal_providers, until the search
 * leaves this level. */
static void mark_failed(Search *search, size_t level, size_t provider)
{
        const FitItem *item = &search->problem->items[level];

        (void)spend(search, item->n_candidates * (1 + search->problem->n_classes / 8));
        for (size_t i = 0; i < item->n_candidates; i++) {
                size_t other = item->candidates[i];

                if (*failed_at(search, item, other) == 0 &&
                    are_equal_providers(search, provider, other))
                        *failed_at(search, item, other) = level + 1;
        }
}

static void forget_failed(Search *search, size_t level)
{
        const FitItem *item = &search->problem->items[level];

        (void)spend(search, item->n_candidates);
        for (size_t i = 0; i < item->n_candidates; i++)
                if (*failed_at(search, item, item->candidates[i]) == level + 1)
                        *failed_at(search, item, item->candidates[i]) = 0;
}

/* Checks a subtree, which is a set of groups (FitItem.subtrees), by its items among the first n.
 * Returns true if the provider of one of them is above, or the same as, those of all others. After
 * the effort is spent, the result does not matter. */
static bool has_top(const Search *search, uint64_t subtree, size_t n)
{
        const FitProblem *problem = search->problem;
        const ProviderTree *tree = problem->view->tree;

        for (size_t i = 0; i < n; i++) {
                const Uuid *top = &tree->providers[search->chosen[i]]->uuid;
                bool above = problem->items[i].subtrees & subtree;

                for (size_t j = 0; j < n && above; j++)
                        above = spend(search, 1) &&
                                (!(problem->items[j].subtrees & subtree) ||
                                 provider_tree_in_subtree(tree, tree->providers[search->chosen[j]],
                                                          top));
                if (above)
                        return true;
        }
        return false;
}

/* Checks each subtree whose last item is at this level, with has_top(). */
static bool subtrees_hold(Search *search, size_t level)
{
        const FitProblem *problem = search->problem;
        uint64_t open = 0, closed = problem->items[level].subtrees;

        if (closed == 0)
                return true;
        (void)spend(search, problem->n_items - level);
        for (size_t i = level + 1; i < problem->n_items; i++)
                open |= problem->items[i].subtrees;
        for (size_t i = 0; i < problem->request->n_subtrees; i++) {
                uint64_t subtree = UINT64_C(1) << i;

                if ((closed & subtree) && !(open & subtree) && !has_top(search, subtree, level + 1))
                        return false;
        }
        return true;
}

/* Returns true if a partition fits for all that is placed on each set of devices. */
static bool partitions_hold(const Search *search)
{
        const FitProblem *problem = search->problem;

        for (size_t i = 0; i < problem->n_items; i++)
                for (size_t j = 0; j < problem->items[i].n_needs; j++) {
                        size_t resource_class = problem->items[i].needs[j].resource_class,
                               provider = search->chosen[i];
                        const HostLimit *devices =
                                fit_problem_capacity(problem, provider, resource_class)->devices;

                        if (devices && devices->is_set &&
                            !device_amounts_have(devices->amounts,
                                                 *placed_at(search, provider, resource_class)))
                                return false;
                }
        return true;
}

/* Places the items from level on. traits: those of the unsuffixed group so far. The depth of the
 * recursion is the number of items. */
static bool search_from(Search *search, size_t level, uint64_t traits)
{
        const FitProblem *problem = search->problem;
        const FitItem *item = &problem->items[level];

        if (level == problem->n_items)
                return partitions_hold(search);
        for (;;) {
                size_t provider = next_candidate(search, item);
                uint64_t more = traits;

                if (provider == SIZE_MAX)
                        break;
                if (!item->suffixed)
                        more |= problem->trait_bits[provider];
                place(search, item, provider);
                search->chosen[level] = provider;
                if (subtrees_hold(search, level) && is_promising(search, level + 1, more) &&
                    search_from(search, level + 1, more))
                        return true;
                unplace(search, item, provider);
                mark_failed(search, level, provider);
        }
        forget_failed(search, level);
        return false;
}

static int compare_pieces(const void *a, const void *b)
{
        const FitPiece *x = a, *y = b;

        if (x->group != y->group)
                return x->group < y->group ? -1 : 1;
        return strcmp(x->resource_class, y->resource_class);
}

static int write_pieces(const Search *search, Fit *ret)
{
        const FitProblem *problem = search->problem;

        for (size_t i = 0; i < problem->n_items; i++) {
                const FitItem *item = &problem->items[i];

                for (size_t j = 0; j < item->n_needs; j++) {
                        const FitPiece piece = {
                                .group = item->group,
                                .provider = search->chosen[i],
                                .resource_class = problem->classes[item->needs[j].resource_class],
                                .amount = item->needs[j].amount,
                        };

                        if (append(ret, piece) < 0) {
                                fit_done(ret);
                                return -ENOMEM;
                        }
                }
        }
        if (ret->n_pieces > 0)
                qsort(ret->pieces, ret->n_pieces, sizeof(FitPiece), compare_pieces);
        return 0;
}

static int too_hard(const FitProblem *problem, Error *reterr)
{
        char bound[FIT_EFFORT_TEXT_SIZE];

        error_setf(reterr, E2BIG, "Too hard: no placement of the %zu groups was found within %s",
                   problem->request->n_groups, fit_effort_format(problem->effort, bound));
        return CLAIM_E_TOO_HARD;
}

/* Removes everything that a successful search placed or marked. */
static void search_clean(Search *search)
{
        const FitProblem *problem = search->problem;

        for (size_t i = problem->n_items; i > 0; i--) {
                unplace(search, &problem->items[i - 1], search->chosen[i - 1]);
                forget_failed(search, i - 1);
        }
}

/* Runs the search of one try, and leaves the search clean. reterr NULL: no words for a failure. */
static int search_fit(Search *search, Fit *ret, Error *reterr)
{
        const FitProblem *problem = search->problem;
        const char *lacking;

        search_begin(search);
        if (is_promising(search, 0, problem->given_traits) &&
            search_from(search, 0, problem->given_traits)) {
                int r = write_pieces(search, ret);

                search_clean(search);
                return r < 0 ? error_oom(reterr) : CLAIM_DONE;
        }
        if (fit_effort_is_spent(problem->effort))
                return too_hard(problem, reterr);
        lacking = fit_lacking_trait(problem);
        if (lacking)
                error_setf(reterr, ENOSPC,
                           "No provider with capacity for the request has the required trait %s",
                           lacking);
        else
                error_setf(reterr, ENOSPC,
                           "Each part of the request fits alone, but not all of them together");
        return CLAIM_E_NO_CAPACITY;
}

int fit_trial_new(FitTrial **ret, const HostView *view, const char *node,
                  const ResourceRequest *request, const Consumer *placed, FitEffort *effort)
{
        _cleanup_(fit_trial_freep) FitTrial *trial = calloc(1, sizeof(FitTrial));

        if (!trial || fit_problem_new(&trial->problem, view, node, request, placed, effort) < 0 ||
            search_init(&trial->search, trial->problem) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(trial);
        return 0;
}

int fit_trial_run(FitTrial *trial, const FitGiven *given, Fit *ret, Error *reterr)
{
        int r = 0;

        /* A problem whose effort was spent can be incomplete. */
        if (fit_effort_is_spent(trial->problem->effort))
                return too_hard(trial->problem, reterr);
        fit_problem_give(trial->problem, given);
        if (reterr)
                r = fit_explain(trial->problem, reterr);
        return r != 0 ? r : search_fit(&trial->search, ret, reterr);
}

int fit_groups(const HostView *view, const char *node, const ResourceRequest *request,
               const Consumer *placed, FitEffort *effort, Fit *ret, Error *reterr)
{
        _cleanup_(fit_trial_freep) FitTrial *trial = NULL;
        Error words = ERROR_NULL;

        if (fit_trial_new(&trial, view, node, request, placed, effort) < 0)
                return error_oom(reterr);
        return fit_trial_run(trial, NULL, ret, reterr ? reterr : &words);
}

int fit_explain_request(const HostView *view, const char *node, const ResourceRequest *request,
                        FitEffort *effort, FitVerdicts *ret, Error *reterr)
{
        _cleanup_(fit_trial_freep) FitTrial *trial = NULL;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        Error words = ERROR_NULL;

        if (fit_trial_new(&trial, view, node, request, NULL, effort) < 0)
                return error_oom(reterr);
        /* A problem that was too hard to prepare is also too hard to fit; fit_trial_run() has the
         * words. */
        if (!fit_effort_is_spent(effort)) {
                fit_problem_give(trial->problem, NULL);
                if (fit_verdicts_make(trial->problem, ret) < 0)
                        return error_oom(reterr);
        }
        return fit_trial_run(trial, NULL, &fit, reterr ? reterr : &words);
}
