/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prepares a request and a host for the search, and counts the cost of a fit. Almost all data that
 * the search reads are computed once: capacities by provider and class, items with the providers
 * that each fits alone, and the kinds of equal items and equal providers (equal_providers). The
 * loops over providers and items spend effort, except those that find the usable providers and the
 * traits, order the names, and prepare a try. If the effort is spent early, the problem is
 * incomplete, and fit_trial_run() makes no try with it. The classes are sorted, so that a class is
 * an index everywhere else. Before each try, fit_problem_give() makes the candidates of each item
 * and sorts the items.
 *
 * Tests: tests/unit/claims/fit/test-search.c tests/unit/claims/fit/test-fit.c */

#include "claims/fit/problem.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/device-set.h"
#include "base/text.h"

/* Least work between two reads of the clock; so much takes well below a millisecond. */
#define WORK_BETWEEN_LOOKS 1024

FitEffort fit_effort_begin(uint64_t patience_usec)
{
        return (FitEffort){ .patience_usec = patience_usec,
                            .until_usec = patience_usec > 0 ? clock_usec(CLOCK_THREAD_CPUTIME_ID) +
                                                                      patience_usec
                                                            : 0 };
}

/* Reads the clock only after enough work, because each read is a system call. */
bool fit_effort_spend(FitEffort *effort, uint64_t work)
{
        effort->work += work;
        if (effort->until_usec > 0 && effort->work - effort->looked_at >= WORK_BETWEEN_LOOKS) {
                effort->looked_at = effort->work;
                effort->late =
                        effort->late || clock_usec(CLOCK_THREAD_CPUTIME_ID) >= effort->until_usec;
        }
        return !fit_effort_is_spent(effort);
}

const char *fit_effort_format(const FitEffort *effort, char text[static FIT_EFFORT_TEXT_SIZE])
{
        if (effort->late)
                snprintf(text, FIT_EFFORT_TEXT_SIZE, "%" PRIu64 " ms",
                         effort->patience_usec / USEC_PER_MSEC);
        else
                snprintf(text, FIT_EFFORT_TEXT_SIZE, "%" PRIu64 " steps", FIT_WORK_MAX);
        return text;
}

FitProblem *fit_problem_free(FitProblem *problem)
{
        if (!problem)
                return NULL;
        for (size_t i = 0; i < problem->n_items; i++) {
                free(problem->items[i].needs);
                free(problem->items[i].open);
                free(problem->items[i].candidates);
        }
        free(problem->items);
        free(problem->usable);
        free(problem->classes);
        free(problem->capacities);
        free(problem->narrowed);
        free(problem->ranks);
        free(problem->equal_providers);
        free(problem->trait_bits);
        free(problem->takes);
        free(problem);
        return NULL;
}

/* Collects the classes of all groups, each once, sorted. */
static int collect_classes(FitProblem *problem)
{
        const ResourceRequest *request = problem->request;
        size_t n = 0;

        for (size_t i = 0; i < request->n_groups; i++)
                n += request->groups[i].resources.n_items;
        problem->classes = calloc(n + 1, sizeof(char *));
        if (!problem->classes)
                return -ENOMEM;
        n = 0;
        for (size_t i = 0; i < request->n_groups; i++)
                for (size_t j = 0; j < request->groups[i].resources.n_items; j++)
                        problem->classes[n++] =
                                request->groups[i].resources.items[j].resource_class;
        qsort(problem->classes, n, sizeof(char *), text_order);
        for (size_t i = 0; i < n; i++)
                if (i == 0 || strcmp(problem->classes[i], problem->classes[i - 1]) != 0)
                        problem->classes[problem->n_classes++] = problem->classes[i];
        return 0;
}

static size_t find_class(const FitProblem *problem, const char *resource_class)
{
        const char **found = bsearch(&resource_class, problem->classes, problem->n_classes,
                                     sizeof(char *), text_order);

        return (size_t)(found - problem->classes);
}

/* Returns a copy of the inventory in which at most amount is free. This is the amount that the
 * consumer has in Placement already (placed). Returns NULL if it has none there. */
static const Inventory *narrow(FitProblem *problem, const Inventory *inventory, uint64_t used,
                               uint64_t amount)
{
        Inventory *narrowed = &problem->narrowed[problem->n_narrowed];

        if (amount == 0)
                return NULL;
        *narrowed = *inventory;
        narrowed->total = MIN(inventory_capacity(inventory), used + amount);
        narrowed->reserved = 0;
        narrowed->allocation_ratio = 1.0;
        problem->n_narrowed++;
        return narrowed;
}

static int order_limit(const void *key, const void *item)
{
        size_t provider = *(const size_t *)key, of = ((const HostLimit *)item)->provider;

        return (provider > of) - (provider < of);
}

/* Returns the limit of the class on the provider, borrowed; NULL if there is none. Finds the first
 * limit of the provider, then the class. */
static const HostLimit *find_limit(const HostView *view, size_t provider,
                                   const char *resource_class)
{
        bool found;
        size_t i = array_find(view->limits, sizeof(HostLimit), view->n_limits, &provider,
                              order_limit, &found);

        while (found && i > 0 && view->limits[i - 1].provider == provider)
                i--;
        for (; found && i < view->n_limits && view->limits[i].provider == provider; i++)
                if (strcmp(view->limits[i].resource_class, resource_class) == 0)
                        return &view->limits[i];
        return NULL;
}

/* Computes the free capacity of a class: the inventory, reduced to the free devices, and to the
 * amount that placed has there (NULL: no such bound). */
static FitCapacity make_room(FitProblem *problem, const Consumer *placed, size_t provider,
                             const char *resource_class)
{
        const Provider *of = problem->view->tree->providers[provider];
        const Inventory *inventory = provider_find_inventory(of, resource_class);
        uint64_t limit, claimed, unclaimed;
        FitCapacity capacity = { 0 };

        if (!inventory)
                return capacity;
        claimed = resources_get(&problem->view->providers[provider].used, resource_class);
        if (placed)
                inventory = narrow(problem, inventory, claimed,
                                   consumer_get(placed, &of->uuid, resource_class));
        if (!inventory)
                return (FitCapacity){ 0 };
        capacity.inventory = inventory;
        limit = inventory_capacity(inventory);
        unclaimed = limit - MIN(claimed, limit);
        capacity.devices = find_limit(problem->view, provider, resource_class);
        capacity.free_amount =
                capacity.devices ? MIN(unclaimed, capacity.devices->n_free) : unclaimed;
        capacity.n_of_guests = unclaimed - capacity.free_amount;
        capacity.used = claimed + capacity.n_of_guests;
        capacity.limit = MIN(capacity.free_amount, inventory->max_unit);
        if (capacity.devices && capacity.devices->is_set)
                capacity.limit =
                        MIN(capacity.limit, device_amounts_largest(capacity.devices->amounts));
        return capacity;
}

/* Computes all capacities. The array narrowed has one item for each placed amount, so narrow()
 * never needs more. */
static int collect_capacities(FitProblem *problem, const Consumer *placed)
{
        size_t n = 0;

        for (size_t i = 0; placed && i < placed->n_allocations; i++)
                n += placed->allocations[i].resources.n_items;
        problem->capacities =
                calloc(problem->n_providers * problem->n_classes + 1, sizeof(FitCapacity));
        problem->narrowed = calloc(n + 1, sizeof(Inventory));
        if (!problem->capacities || !problem->narrowed)
                return -ENOMEM;
        for (size_t i = 0;
             i < problem->n_providers && fit_effort_spend(problem->effort, problem->n_classes); i++)
                for (size_t j = 0; j < problem->n_classes; j++)
                        problem->capacities[i * problem->n_classes + j] =
                                make_room(problem, placed, i, problem->classes[j]);
        return 0;
}

const char *fit_bad_trait(const Provider *provider, const RequestGroup *group, bool whole,
                          bool *ret_forbidden)
{
        bool forbidden = true;
        const char *bad = NULL;

        for (size_t i = 0; i < group->forbidden.n_items && !bad; i++)
                if (string_set_contains(&provider->traits, group->forbidden.items[i]))
                        bad = group->forbidden.items[i];
        for (size_t i = 0; whole && i < group->required.n_items && !bad; i++)
                if (!string_set_contains(&provider->traits, group->required.items[i])) {
                        bad = group->required.items[i];
                        forbidden = false;
                }
        if (bad && ret_forbidden)
                *ret_forbidden = forbidden;
        return bad;
}

/* Returns the root of the provider's tree. */
static const Provider *root_of(const ProviderTree *tree, const Provider *provider)
{
        const Provider *parent;

        while (!uuid_empty(&provider->parent) &&
               (parent = provider_tree_find(tree, &provider->parent)))
                provider = parent;
        return provider;
}

bool fit_tree_allows(const ProviderTree *tree, const RequestGroup *group, const Provider *provider)
{
        const Provider *named;

        if (!uuid_empty(&group->provider) && !uuid_equal(&group->provider, &provider->uuid))
                return false;
        if (uuid_empty(&group->in_tree))
                return true;
        named = provider_tree_find(tree, &group->in_tree);
        return named && root_of(tree, named) == root_of(tree, provider);
}

/* Returns true if exactly one group of the request asks for the class. */
static bool is_asked_once(const FitProblem *problem, size_t resource_class)
{
        size_t n = 0;

        for (size_t i = 0; i < problem->request->n_groups; i++)
                n += resources_get(&problem->request->groups[i].resources,
                                   problem->classes[resource_class]) > 0;
        return n == 1;
}

bool fit_problem_has_partition(const FitProblem *problem, const FitCapacity *capacity,
                               const FitNeed *need)
{
        const HostLimit *limit = capacity->devices;

        if (!limit || !limit->is_set)
                return true;
        return is_asked_once(problem, need->resource_class)
                       ? device_amounts_have(limit->amounts, need->amount)
                       : need->amount <= device_amounts_largest(limit->amounts);
}

/* Returns true if the item fits on the provider while nothing else is placed. */
static bool fits_alone(const FitProblem *problem, const FitItem *item, size_t provider)
{
        const ProviderTree *tree = problem->view->tree;
        const RequestGroup *group = &problem->request->groups[item->group];

        if (!problem->usable[provider] ||
            !fit_tree_allows(tree, group, tree->providers[provider]) ||
            fit_bad_trait(tree->providers[provider], group, item->suffixed, NULL))
                return false;
        for (size_t i = 0; i < item->n_needs; i++) {
                const FitCapacity *capacity =
                        fit_problem_capacity(problem, provider, item->needs[i].resource_class);

                if (!capacity->inventory ||
                    inventory_fit(capacity->inventory, capacity->used, item->needs[i].amount) !=
                            INVENTORY_FITS ||
                    !fit_problem_has_partition(problem, capacity, &item->needs[i]))
                        return false;
        }
        return true;
}

/* Returns a bit for each subtree of the request that names the group. */
static uint64_t find_subtrees(const ResourceRequest *request, const char *suffix)
{
        uint64_t bits = 0;

        for (size_t i = 0; i < request->n_subtrees; i++)
                if (string_set_contains(&request->subtrees[i], suffix))
                        bits |= UINT64_C(1) << i;
        return bits;
}

/* Adds an item and finds its open providers. */
static int add_item(FitProblem *problem, size_t group, bool suffixed, const ResourceAmount *amounts,
                    size_t n_amounts)
{
        FitItem *item = &problem->items[problem->n_items];
        const RequestGroup *of = &problem->request->groups[group];
        uint64_t look = 1 + of->required.n_items + of->forbidden.n_items + n_amounts / 4;

        item->group = group;
        item->suffixed = suffixed;
        item->subtrees = find_subtrees(problem->request, of->suffix);
        item->needs = calloc(n_amounts + 1, sizeof(FitNeed));
        item->open = calloc(problem->n_providers + 1, sizeof(size_t));
        problem->n_items++;
        if (!item->needs || !item->open)
                return -ENOMEM;
        item->n_needs = n_amounts;
        for (size_t i = 0; i < n_amounts; i++)
                item->needs[i] =
                        (FitNeed){ .resource_class = find_class(problem, amounts[i].resource_class),
                                   .amount = amounts[i].amount };
        for (size_t i = 0; i < problem->n_providers && fit_effort_spend(problem->effort, look); i++)
                if (fits_alone(problem, item, i))
                        item->open[item->n_open++] = i;
        item->candidates = calloc(item->n_open + 1, sizeof(size_t));
        return item->candidates ? 0 : -ENOMEM;
}

static int collect_items(FitProblem *problem)
{
        const ResourceRequest *request = problem->request;
        size_t n = 0;
        int r;

        for (size_t i = 0; i < request->n_groups; i++)
                n += request->groups[i].suffix[0] ? 1 : request->groups[i].resources.n_items;
        problem->items = calloc(n + 1, sizeof(FitItem));
        if (!problem->items)
                return -ENOMEM;
        for (size_t i = 0; i < request->n_groups; i++) {
                const Resources *resources = &request->groups[i].resources;
                bool suffixed = request->groups[i].suffix[0] != '\0';

                if (suffixed &&
                    (r = add_item(problem, i, true, resources->items, resources->n_items)) < 0)
                        return r;
                for (size_t j = 0; !suffixed && j < resources->n_items; j++)
                        if ((r = add_item(problem, i, false, &resources->items[j], 1)) < 0)
                                return r;
        }
        return 0;
}

/* Returns true if the groups can be exchanged: they differ in the suffix only. */
static bool groups_equal(const RequestGroup *a, const RequestGroup *b)
{
        return resources_equal(&a->resources, &b->resources) &&
               string_set_equal(&a->required, &b->required) &&
               string_set_equal(&a->forbidden, &b->forbidden) &&
               uuid_equal(&a->in_tree, &b->in_tree) && uuid_equal(&a->provider, &b->provider);
}

/* Gives interchangeable items the same kind: suffixed groups that are equal and in no subtree. */
static void number_kinds(FitProblem *problem)
{
        const RequestGroup *groups = problem->request->groups;

        for (size_t i = 0; i < problem->n_items && fit_effort_spend(problem->effort, i); i++) {
                FitItem *item = &problem->items[i];
                size_t same = i;

                for (size_t j = 0; j < i && same == i && item->suffixed && !item->subtrees; j++)
                        if (problem->items[j].suffixed && !problem->items[j].subtrees &&
                            groups_equal(&groups[problem->items[j].group], &groups[item->group]))
                                same = j;
                item->kind = same == i ? problem->n_kinds++ : problem->items[same].kind;
        }
}

/* Orders items: few candidates first, then large amounts of the first class, because hard items
 * must fail early. Items of one kind stay together, but not items without resources. */
static int compare_items(const void *a, const void *b)
{
        const FitItem *x = a, *y = b;

        if (x->n_candidates != y->n_candidates)
                return x->n_candidates < y->n_candidates ? -1 : 1;
        if (x->n_needs == 0 || y->n_needs == 0)
                return x->n_needs != y->n_needs ? (x->n_needs == 0 ? 1 : -1)
                       : x->group < y->group    ? -1
                                                : x->group > y->group;
        if (x->needs[0].amount != y->needs[0].amount)
                return x->needs[0].amount > y->needs[0].amount ? -1 : 1;
        if (x->kind != y->kind)
                return x->kind < y->kind ? -1 : 1;
        return x->group < y->group ? -1 : x->group > y->group;
}

static int compare_names(const void *a, const void *b, void *context)
{
        const ProviderTree *tree = context;

        return strcmp(tree->providers[*(const size_t *)a]->name,
                      tree->providers[*(const size_t *)b]->name);
}

/* Orders the providers by name once, so that the search compares numbers. */
static int rank_names(FitProblem *problem)
{
        _cleanup_free_ size_t *order = calloc(problem->n_providers + 1, sizeof(size_t));

        problem->ranks = calloc(problem->n_providers + 1, sizeof(size_t));
        if (!order || !problem->ranks)
                return -ENOMEM;
        for (size_t i = 0; i < problem->n_providers; i++)
                order[i] = i;
        qsort_r(order, problem->n_providers, sizeof(size_t), compare_names, problem->view->tree);
        for (size_t i = 0; i < problem->n_providers; i++)
                problem->ranks[order[i]] = i;
        return 0;
}

/* Gives each required trait of the unsuffixed group a bit. */
static int collect_traits(FitProblem *problem)
{
        const ResourceRequest *request = problem->request;
        const RequestGroup *group = NULL;

        problem->trait_bits = calloc(problem->n_providers + 1, sizeof(uint64_t));
        if (!problem->trait_bits)
                return -ENOMEM;
        for (size_t i = 0; i < request->n_groups; i++)
                if (request->groups[i].suffix[0] == '\0')
                        group = &request->groups[i];
        problem->traits = group ? &group->required : NULL;
        for (size_t i = 0; group && i < group->required.n_items && i < FIT_TRAITS_MAX; i++) {
                problem->wanted_traits |= UINT64_C(1) << i;
                for (size_t j = 0; j < problem->n_providers; j++)
                        if (string_set_contains(&problem->view->tree->providers[j]->traits,
                                                group->required.items[i]))
                                problem->trait_bits[j] |= UINT64_C(1) << i;
        }
        return 0;
}

/* Returns the amounts of a set that fit, 0 for a class that is not of a set. */
static uint64_t amounts_of(const FitProblem *problem, size_t provider, size_t resource_class)
{
        const HostLimit *devices = fit_problem_capacity(problem, provider, resource_class)->devices;

        return devices && devices->is_set ? devices->amounts : 0;
}

/* Orders providers. They are equal exactly if every item can use both or neither, and they have the
 * same limits of all classes, amounts of sets and wanted traits. */
static int compare_providers(const FitProblem *problem, size_t a, size_t b)
{
        for (size_t i = 0; i < problem->n_classes; i++) {
                uint64_t x = fit_problem_capacity(problem, a, i)->limit,
                         y = fit_problem_capacity(problem, b, i)->limit;

                if (x == y) {
                        x = amounts_of(problem, a, i);
                        y = amounts_of(problem, b, i);
                }
                if (x != y)
                        return x < y ? -1 : 1;
        }
        if (problem->trait_bits[a] != problem->trait_bits[b])
                return problem->trait_bits[a] < problem->trait_bits[b] ? -1 : 1;
        return memcmp(&problem->takes[a * problem->n_items], &problem->takes[b * problem->n_items],
                      problem->n_items * sizeof(bool));
}

static int compare_twins(const void *a, const void *b, void *context)
{
        return compare_providers(context, *(const size_t *)a, *(const size_t *)b);
}

/* Marks the providers that each item can use. Items have the order in which they were added. */
static int collect_takes(FitProblem *problem)
{
        problem->takes = calloc(problem->n_providers * problem->n_items + 1, sizeof(bool));
        if (!problem->takes)
                return -ENOMEM;
        for (size_t i = 0; i < problem->n_items; i++)
                for (size_t j = 0; j < problem->items[i].n_open; j++)
                        problem->takes[problem->items[i].open[j] * problem->n_items + i] = true;
        return 0;
}

/* Gives providers that no item distinguishes the same number, by sorting them. */
static int number_equal_providers(FitProblem *problem)
{
        _cleanup_free_ size_t *order = calloc(problem->n_providers + 1, sizeof(size_t));

        problem->equal_providers = calloc(problem->n_providers + 1, sizeof(size_t));
        if (!order || !problem->equal_providers)
                return -ENOMEM;
        for (size_t i = 0; i < problem->n_providers; i++)
                order[i] = problem->equal_providers[i] = i;
        /* With subtrees, the position in the tree matters, so no two providers are equal. */
        if (problem->request->n_subtrees > 0 || problem->n_providers == 0)
                return 0;
        if (!fit_effort_spend(problem->effort,
                              problem->n_providers * (1 + problem->n_classes + problem->n_items)))
                return 0;
        if (collect_takes(problem) < 0)
                return -ENOMEM;
        qsort_r(order, problem->n_providers, sizeof(size_t), compare_twins, problem);
        problem->equal_providers[order[0]] = 0;
        for (size_t i = 1; i < problem->n_providers; i++)
                problem->equal_providers[order[i]] =
                        problem->equal_providers[order[i - 1]] +
                        (compare_providers(problem, order[i - 1], order[i]) != 0);
        return 0;
}

/* Computes the parts of the problem. Each part uses earlier ones, so their order matters. Returns
 * CLAIM_E_TOO_HARD if the effort is spent, and -ENOMEM on failure. */
static int collect(FitProblem *problem, const char *node, const Consumer *placed)
{
        const HostView *view = problem->view;
        int r;

        problem->usable = calloc(view->n_providers + 1, sizeof(bool));
        if (!problem->usable)
                return -ENOMEM;
        host_view_usable(view, node, problem->usable);
        if (!host_view_root(view, node, &problem->root))
                problem->root = SIZE_MAX;
        if ((r = collect_classes(problem)) < 0 || (r = collect_capacities(problem, placed)) < 0 ||
            (r = collect_traits(problem)) < 0 || (r = collect_items(problem)) < 0 ||
            (r = rank_names(problem)) < 0 || (r = number_equal_providers(problem)) < 0)
                return r;
        number_kinds(problem);
        return fit_effort_is_spent(problem->effort) ? CLAIM_E_TOO_HARD : 0;
}

int fit_problem_new(FitProblem **ret, const HostView *view, const char *node,
                    const ResourceRequest *request, const Consumer *placed, FitEffort *effort)
{
        _cleanup_(fit_problem_freep) FitProblem *problem = calloc(1, sizeof(FitProblem));
        int r;

        if (!problem)
                return -ENOMEM;
        problem->view = view;
        problem->request = request;
        problem->effort = effort;
        problem->n_providers = view->n_providers;
        r = collect(problem, node, placed);
        if (r >= 0)
                *ret = TAKE_PTR(problem);
        return r;
}

/* The numbers of equal_providers stay right for the providers that are not barred, because an item
 * can use all providers of one number or none. */
void fit_problem_give(FitProblem *problem, const FitGiven *given)
{
        problem->barred = given ? given->barred : NULL;
        problem->given_traits = 0;
        for (size_t i = 0; given && i < given->n_providers; i++)
                problem->given_traits |= problem->trait_bits[given->providers[i]];
        for (size_t i = 0; i < problem->n_items; i++) {
                FitItem *item = &problem->items[i];

                item->n_candidates = 0;
                for (size_t j = 0; j < item->n_open; j++)
                        if (fit_problem_usable(problem, item->open[j]))
                                item->candidates[item->n_candidates++] = item->open[j];
        }
        qsort(problem->items, problem->n_items, sizeof(FitItem), compare_items);
}
