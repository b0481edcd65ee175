/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Explains why a request does not fit: the term that fails first, and the provider that comes
 * nearest. The same comparison makes the verdict of each provider. The checks run from simple to
 * complex: unknown classes, items that fit nowhere alone, equal items that are too many, and totals
 * by class. Each check is exact, so a reason that it finds is never wrong. A request can fail for
 * other reasons too, which only the search in fit.c finds. A verdict looks at one item alone on one
 * provider, so each part can fit while the request does not. Only a required trait of the
 * unsuffixed group is looked up on all suitable providers. Verdicts beyond FIT_VERDICTS_MAX are
 * only counted. All verdicts are dropped if memory or the effort ends before the last one.
 *
 * Tests: tests/unit/claims/fit/test-fit.c */

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "claims/fit/problem.h"

/* The terms that a provider can fail at, in the order in which they count. The nearest provider is
 * the one that fails at the last of them. */
typedef enum Hurdle {
        HURDLE_CLASS, /* a class is missing */
        HURDLE_HOST, /* withheld, barred, not of this host, or not the requested provider or tree */
        HURDLE_TRAIT,    /* a trait is missing or forbidden */
        HURDLE_UNIT,     /* min_unit, max_unit, step_size */
        HURDLE_CAPACITY, /* too little is free, or no partition fits */
        HURDLE_NONE,
} Hurdle;

typedef struct Failure {
        Hurdle hurdle;
        InventoryFit fit;
        size_t need; /* index into FitItem.needs */
        const char *trait;
        bool forbidden;
        bool lacks_partition;
        uint64_t free_amount; /* free amount of the class whose amount fails; 0: none */
} Failure;

static const RequestGroup *item_group(const FitProblem *problem, const FitItem *item)
{
        return &problem->request->groups[item->group];
}

/* Returns the first hurdle, in the order of Hurdle, at which the item alone fails on the provider.
 * The amounts are compared first, but HURDLE_HOST and HURDLE_TRAIT come earlier in the order. So
 * one of these two replaces a failure of amounts. */
static Failure find_failure(const FitProblem *problem, const FitItem *item, size_t provider)
{
        Failure failure = { .hurdle = HURDLE_NONE };

        for (size_t i = 0; i < item->n_needs; i++) {
                const FitNeed *need = &item->needs[i];
                const FitCapacity *capacity =
                        fit_problem_capacity(problem, provider, need->resource_class);
                InventoryFit fit;
                Hurdle hurdle;
                bool lacks_partition;

                if (!capacity->inventory)
                        return (Failure){ .hurdle = HURDLE_CLASS, .need = i };
                fit = inventory_fit(capacity->inventory, capacity->used, need->amount);
                lacks_partition = fit != INVENTORY_E_CAPACITY &&
                                  !fit_problem_has_partition(problem, capacity, need);
                if (fit == INVENTORY_FITS && !lacks_partition)
                        continue;
                hurdle = fit == INVENTORY_E_CAPACITY || lacks_partition ? HURDLE_CAPACITY
                                                                        : HURDLE_UNIT;
                if (hurdle < failure.hurdle)
                        failure = (Failure){ .hurdle = hurdle,
                                             .fit = fit,
                                             .need = i,
                                             .lacks_partition = lacks_partition,
                                             .free_amount = capacity->free_amount };
        }
        if (!fit_problem_usable(problem, provider) ||
            !fit_tree_allows(problem->view->tree, item_group(problem, item),
                             problem->view->tree->providers[provider]))
                failure.hurdle = HURDLE_HOST;
        else if ((failure.trait = fit_bad_trait(problem->view->tree->providers[provider],
                                                item_group(problem, item), item->suffixed,
                                                &failure.forbidden)))
                failure.hurdle = HURDLE_TRAIT;
        return failure;
}

/* Finds the provider that comes nearest: the last hurdle, then the highest Failure.free_amount,
 * the root, the lowest name. Returns SIZE_MAX if no provider has all classes. */
static size_t find_nearest(const FitProblem *problem, const FitItem *item, Failure *ret)
{
        Failure best = { .hurdle = HURDLE_CLASS };
        size_t nearest = SIZE_MAX;

        for (size_t i = 0; i < problem->n_providers; i++) {
                Failure failure = find_failure(problem, item, i);

                if (failure.hurdle == HURDLE_CLASS || failure.hurdle < best.hurdle)
                        continue;
                if (nearest != SIZE_MAX && failure.hurdle == best.hurdle) {
                        if (failure.free_amount < best.free_amount)
                                continue;
                        if (failure.free_amount == best.free_amount &&
                            (nearest == problem->root ||
                             (i != problem->root && problem->ranks[i] > problem->ranks[nearest])))
                                continue;
                }
                nearest = i;
                best = failure;
        }
        *ret = best;
        return nearest;
}

/* Writes "Group \"_GPU\": ", the start of words about a suffixed group. */
static void name_group(const FitProblem *problem, const FitItem *item, char *text, size_t size)
{
        if (item->suffixed)
                snprintf(text, size, "Group \"%s\": ", item_group(problem, item)->suffix);
        else
                text[0] = '\0';
}

static const char *find_unusable_reason(const FitProblem *problem, const FitItem *item,
                                        size_t provider)
{
        if (fit_problem_usable(problem, provider))
                return uuid_empty(&item_group(problem, item)->provider)
                               ? "is not in the requested tree"
                               : "is not the provider that the group is mapped to";
        if (problem->view->providers[provider].withheld)
                return "is withheld, because nothing on this host has its name";
        return problem->barred && problem->barred[provider] ? "is not in a NUMA cell of the guest"
                                                            : "is not part of this node";
}

/* Adds the number of devices that are not free and that no claim has, as devices of guests, and
 * then the number of blocked devices. A blocked device is free, but cannot be used while a guest or
 * claim has another device or a part of it. The text names that device. Blocked devices are not
 * counted among those of guests. */
static void explain_devices(const FitCapacity *capacity, char *text, size_t size)
{
        uint64_t n_blocked = capacity->devices ? capacity->devices->n_blocked : 0;
        uint64_t n_taken = capacity->n_of_guests - MIN(n_blocked, capacity->n_of_guests);
        size_t n;

        if (n_taken > 0)
                snprintf(text, size, "; guests have %" PRIu64, n_taken);
        n = n_taken > 0 ? strlen(text) : 0;
        if (n_blocked > 0)
                snprintf(text + n, size - n, "; %" PRIu64 " blocked: a guest or claim has %s%.12s",
                         n_blocked, capacity->devices->in_part ? "a part of " : "",
                         capacity->devices->blocker);
}

/* Writes why the need does not fit into the capacity. */
static const char *explain_amount(const FitCapacity *capacity, InventoryFit fit, uint64_t amount,
                                  char *text, size_t size)
{
        size_t n;

        inventory_fit_explain(fit, capacity->inventory, capacity->used, amount, text, size);
        n = strlen(text);
        if (fit == INVENTORY_E_CAPACITY && !(capacity->devices && capacity->devices->is_set))
                explain_devices(capacity, text + n, size - n);
        return text;
}

/* Writes why the item does not fit on the provider; "" if it fits. */
static void write_verdict(const FitProblem *problem, const FitItem *item, size_t provider,
                          const Failure *failure, char *text, size_t size)
{
        const FitNeed *need = &item->needs[failure->need];
        const FitCapacity *capacity = fit_problem_capacity(problem, provider, need->resource_class);

        switch (failure->hurdle) {
        case HURDLE_NONE:
                text[0] = '\0';
                break;
        case HURDLE_CLASS:
                snprintf(text, size, "does not have the class");
                break;
        case HURDLE_HOST:
                snprintf(text, size, "%s", find_unusable_reason(problem, item, provider));
                break;
        case HURDLE_TRAIT:
                snprintf(text, size, "%s trait %s",
                         failure->forbidden ? "has the forbidden" : "lacks the required",
                         failure->trait);
                break;
        default:
                if (failure->lacks_partition) {
                        snprintf(text, size, "%" PRIu64 " free, but no partition of %" PRIu64,
                                 capacity->devices->n_free, need->amount);
                        break;
                }
                explain_amount(capacity, failure->fit, need->amount, text, size);
                break;
        }
}

static void explain_item(const FitProblem *problem, const FitItem *item, Error *reterr)
{
        char prefix[96], text[320];
        Failure failure;
        size_t provider = find_nearest(problem, item, &failure);
        const char *resource_class, *name;

        name_group(problem, item, prefix, sizeof(prefix));
        if (provider == SIZE_MAX) {
                error_setf(reterr, ENOSPC, "%sno single provider has all of its classes", prefix);
                return;
        }
        resource_class = item->n_needs > 0
                                 ? problem->classes[item->needs[failure.need].resource_class]
                                 : "its traits";
        name = problem->view->tree->providers[provider]->name;
        write_verdict(problem, item, provider, &failure, text, sizeof(text));
        if (failure.hurdle == HURDLE_TRAIT || failure.hurdle == HURDLE_HOST)
                error_setf(reterr, ENOSPC, "%s%s: %s %s", prefix, resource_class, name, text);
        else
                error_setf(reterr, ENOSPC, "%s%s: %s on %s", prefix, resource_class, text, name);
}

static bool class_exists(const FitProblem *problem, size_t resource_class)
{
        for (size_t i = 0; i < problem->n_providers; i++)
                if (fit_problem_capacity(problem, i, resource_class)->inventory)
                        return true;
        return false;
}

/* Compares the number of items of one kind with the places for them. Returns CLAIM_E_NO_CAPACITY
 * with words if there are too many. */
static int explain_kind(const FitProblem *problem, const FitItem *item, Error *reterr)
{
        _cleanup_free_ char *resources = NULL;
        uint64_t places = 0;
        size_t n = 0;

        for (size_t i = 0; i < problem->n_items; i++)
                n += problem->items[i].kind == item->kind;
        for (size_t i = 0; i < item->n_candidates && places < n; i++) {
                uint64_t more = fit_problem_places(problem, item, item->candidates[i], NULL, 0);

                places += MIN(more, n);
        }
        if (places >= n)
                return 0;
        resources = resources_format(&item_group(problem, item)->resources);
        if (!resources)
                return error_oom(reterr);
        error_setf(reterr, ENOSPC,
                   "%zu groups ask for %s each%s, but there is capacity for %" PRIu64, n, resources,
                   problem->request->isolate ? " on providers of their own (isolate)" : "", places);
        return CLAIM_E_NO_CAPACITY;
}

/* Compares the sum of a class over all items with the limits of their candidates. Returns
 * CLAIM_E_NO_CAPACITY with words if it is larger. */
static int explain_total(const FitProblem *problem, size_t resource_class, Error *reterr)
{
        _cleanup_free_ bool *counted = calloc(problem->n_providers + 1, sizeof(bool));
        uint64_t asked = 0, capacity = 0;

        if (!counted)
                return error_oom(reterr);
        for (size_t i = 0; i < problem->n_items; i++) {
                const FitItem *item = &problem->items[i];

                for (size_t j = 0; j < item->n_needs; j++) {
                        if (item->needs[j].resource_class != resource_class)
                                continue;
                        asked += item->needs[j].amount;
                        for (size_t k = 0; k < item->n_candidates; k++)
                                counted[item->candidates[k]] = true;
                }
        }
        for (size_t i = 0; i < problem->n_providers && capacity < asked; i++)
                if (counted[i] &&
                    u64_add_overflow(capacity,
                                     fit_problem_capacity(problem, i, resource_class)->limit,
                                     &capacity))
                        capacity = UINT64_MAX;
        if (asked <= capacity)
                return 0;
        error_setf(reterr, ENOSPC,
                   "%s: all groups together ask for %" PRIu64 ", but one request can get %" PRIu64,
                   problem->classes[resource_class], asked, capacity);
        return CLAIM_E_NO_CAPACITY;
}

/* Returns CLAIM_E_UNKNOWN_CLASS with words if no provider has a class. If the argument placed of
 * fit_problem_new() bounds the fit, only providers with a placed amount of the class count. The
 * words differ if there are no providers, because the host was not polled yet. */
static int explain_classes(const FitProblem *problem, Error *reterr)
{
        for (size_t i = 0; i < problem->n_classes; i++)
                if (problem->n_providers == 0) {
                        error_setf(
                                reterr, ENOENT,
                                "The host has not been polled yet, so its resources are unknown. \"computectl status\" shows the reason");
                        return CLAIM_E_UNKNOWN_CLASS;
                } else if (!class_exists(problem, i)) {
                        error_setf(reterr, ENOENT, "No provider of this host has resource class %s",
                                   problem->classes[i]);
                        return CLAIM_E_UNKNOWN_CLASS;
                }
        return 0;
}

/* Returns an item that fits nowhere: of the first group, in the request's order. NULL if there is
 * none. */
static const FitItem *find_impossible(const FitProblem *problem)
{
        const FitItem *found = NULL;

        for (size_t i = 0; i < problem->n_items; i++) {
                const FitItem *item = &problem->items[i];

                if (item->n_candidates > 0)
                        continue;
                if (!found || item->group < found->group ||
                    (item->group == found->group &&
                     item->needs[0].resource_class < found->needs[0].resource_class))
                        found = item;
        }
        return found;
}

int fit_explain(const FitProblem *problem, Error *reterr)
{
        const FitItem *impossible;
        int r = explain_classes(problem, reterr);

        if (r != 0)
                return r;
        impossible = find_impossible(problem);
        if (impossible) {
                explain_item(problem, impossible, reterr);
                return CLAIM_E_NO_CAPACITY;
        }
        for (size_t i = 0; i < problem->n_items; i++) {
                if (i > 0 && problem->items[i - 1].kind == problem->items[i].kind)
                        continue;
                r = explain_kind(problem, &problem->items[i], reterr);
                if (r != 0)
                        return r;
        }
        for (size_t i = 0; i < problem->n_classes; i++) {
                r = explain_total(problem, i, reterr);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* Frees what the verdict owns. */
static void verdict_done(FitVerdict *verdict)
{
        free(verdict->suffix);
        free(verdict->provider_name);
        free(verdict->resource_class);
        free(verdict->text);
        *verdict = (FitVerdict){ 0 };
}

void fit_verdicts_done(FitVerdicts *verdicts)
{
        for (size_t i = 0; i < verdicts->n_items; i++)
                verdict_done(&verdicts->items[i]);
        free(verdicts->items);
        *verdicts = (FitVerdicts){ 0 };
}

static const char *name_term(const Failure *failure)
{
        switch (failure->hurdle) {
        case HURDLE_CLASS:
                return "class";
        case HURDLE_HOST:
                return "host";
        case HURDLE_TRAIT:
                return "trait";
        case HURDLE_UNIT:
        case HURDLE_CAPACITY:
                return failure->lacks_partition ? "partition" : inventory_fit_term(failure->fit);
        case HURDLE_NONE:
        default:
                return "fits";
        }
}

/* Returns the amount by which the need misses the failing term. 0 if amounts are not the cause. */
static uint64_t count_missing(const Failure *failure, const FitCapacity *capacity, uint64_t asked)
{
        switch (failure->hurdle) {
        case HURDLE_CLASS:
                return asked;
        case HURDLE_CAPACITY:
                return asked - MIN(capacity->free_amount, asked);
        case HURDLE_UNIT:
                return failure->fit == INVENTORY_E_MAX_UNIT ? asked - capacity->inventory->max_unit
                       : failure->fit == INVENTORY_E_MIN_UNIT
                               ? capacity->inventory->min_unit - asked
                       : failure->fit == INVENTORY_E_STEP_SIZE
                               ? capacity->inventory->step_size -
                                         asked % capacity->inventory->step_size
                               : 0;
        default:
                return 0;
        }
}

static bool has_any_class(const FitProblem *problem, const FitItem *item, size_t provider)
{
        for (size_t i = 0; i < item->n_needs; i++)
                if (fit_problem_capacity(problem, provider, item->needs[i].resource_class)
                            ->inventory)
                        return true;
        return false;
}

/* The providers of the unsuffixed group need each trait only together, so find_failure() does not
 * find such a trait. */
const char *fit_lacking_trait(const FitProblem *problem)
{
        uint64_t lacking = problem->wanted_traits & ~problem->given_traits;

        for (size_t i = 0; lacking && i < problem->n_items; i++) {
                const FitItem *item = &problem->items[i];

                for (size_t j = 0; !item->suffixed && j < item->n_candidates; j++)
                        lacking &= ~problem->trait_bits[item->candidates[j]];
        }
        return lacking ? problem->traits->items[__builtin_ctzll(lacking)] : NULL;
}

/* Adds the verdict of one provider. lacking: result of fit_lacking_trait(). It is the failure of an
 * item of the unsuffixed group that would otherwise fit on the provider. */
static int add_verdict(const FitProblem *problem, const FitItem *item, size_t provider,
                       const char *lacking, FitVerdicts *verdicts)
{
        Failure failure = find_failure(problem, item, provider);
        const FitNeed *need = &item->needs[failure.need];
        const FitCapacity *capacity = fit_problem_capacity(problem, provider, need->resource_class);
        const Provider *of = problem->view->tree->providers[provider];
        FitVerdict *verdict;
        char text[320];

        if (failure.hurdle == HURDLE_NONE && lacking && !item->suffixed)
                failure = (Failure){ .hurdle = HURDLE_TRAIT, .trait = lacking };
        if (array_grow(&verdicts->items, sizeof(FitVerdict), verdicts->n_items,
                       &verdicts->n_allocated) < 0)
                return -ENOMEM;
        write_verdict(problem, item, provider, &failure, text, sizeof(text));
        verdict = &verdicts->items[verdicts->n_items++];
        *verdict = (FitVerdict){
                .suffix = strdup(item_group(problem, item)->suffix),
                .provider = of->uuid,
                .provider_name = strdup(of->name),
                .resource_class = strdup(problem->classes[need->resource_class]),
                .term = name_term(&failure),
                .asked = need->amount,
                .free_amount = capacity->inventory ? capacity->free_amount : 0,
                .missing = count_missing(&failure, capacity, need->amount),
                .text = strdup(text),
        };
        return verdict->suffix && verdict->provider_name && verdict->resource_class && verdict->text
                       ? 0
                       : -ENOMEM;
}

/* Adds the verdicts of one item, for each provider with one of its classes. Counts those above
 * FIT_VERDICTS_MAX. Returns CLAIM_E_TOO_HARD if the effort is spent. */
static int add_verdicts_of(const FitProblem *problem, const FitItem *item, const char *lacking,
                           FitVerdicts *verdicts)
{
        const RequestGroup *group = item_group(problem, item);
        uint64_t look = 1 + item->n_needs + group->required.n_items + group->forbidden.n_items;

        for (size_t i = 0; i < problem->n_providers; i++) {
                if (!has_any_class(problem, item, i))
                        continue;
                if (!fit_effort_spend(problem->effort, look))
                        return CLAIM_E_TOO_HARD;
                if (verdicts->n_items >= FIT_VERDICTS_MAX)
                        verdicts->n_omitted++;
                else if (add_verdict(problem, item, i, lacking, verdicts) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int fit_verdicts_make(const FitProblem *problem, FitVerdicts *ret)
{
        const char *lacking = fit_lacking_trait(problem);
        int r = 0;

        for (size_t group = 0; r == 0 && group < problem->request->n_groups; group++)
                for (size_t i = 0; r == 0 && i < problem->n_items; i++)
                        if (problem->items[i].group == group)
                                r = add_verdicts_of(problem, &problem->items[i], lacking, ret);
        if (r != 0)
                fit_verdicts_done(ret);
        return r;
}
