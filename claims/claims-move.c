/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/claims-move.h"

#include <string.h>

#include "base/array.h"
#include "claims/claims-internal.h"

static int move_once(Claims *claims, const ProviderTree *tree, const StoreShift *shifts,
                     size_t n_shifts, Error *reterr)
{
        _cleanup_(host_view_freep) HostView *wanted = NULL;
        int r = claims_load_view(claims, reterr);

        if (r >= 0)
                r = host_view_merge(&wanted, claims->view, tree, reterr);
        if (r < 0)
                return r;
        return store_write_host(claims, wanted, shifts, n_shifts, reterr);
}

int claims_shift(Claims *claims, const ProviderTree *tree, const StoreShift *shifts,
                 size_t n_shifts, Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result = move_once(claims, tree, shifts, n_shifts, reterr);
        return attempts.result;
}

static int fit_share(const HostView *view, const Consumer *share, Fit *ret)
{
        for (size_t i = 0; i < view->n_providers; i++) {
                const Provider *provider = view->tree->providers[i];
                const Resources *resources = consumer_find(share, &provider->uuid);

                for (size_t j = 0; resources && j < resources->n_items; j++)
                        if (provider_find_inventory(provider, resources->items[j].resource_class) &&
                            fit_add(ret, i, resources->items[j].resource_class,
                                    resources->items[j].amount) < 0)
                                return -ENOMEM;
        }
        return 0;
}

static int complete_once(Claims *claims, int64_t id, const Consumer *share, Error *reterr)
{
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        int r = claims_load_view(claims, reterr);

        if (r < 0)
                return r;
        if (fit_share(claims->view, share, &fit) < 0)
                return error_oom(reterr);
        r = store_complete(claims, id, &share->uuid, &fit, reterr);
        return r == CLAIM_E_NOT_FOUND ? store_not_found(id, reterr) : r;
}

int claims_complete(Claims *claims, int64_t id, const Consumer *share, Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result = complete_once(claims, id, share, reterr);
        return attempts.result;
}

/* One amount that changed, and what is left of it to be accounted for. */
typedef struct Change {
        const Uuid *provider;
        const char *resource_class;
        uint64_t amount;
} Change;

typedef struct Changes {
        Change *items;
        size_t n_items, n_allocated;
} Changes;

/* What of has more than other has. */
static int collect(const Consumer *of, const Consumer *other, Changes *ret)
{
        for (size_t i = 0; i < of->n_allocations; i++) {
                const Allocation *allocation = &of->allocations[i];

                for (size_t j = 0; j < allocation->resources.n_items; j++) {
                        const ResourceAmount *item = &allocation->resources.items[j];
                        uint64_t there =
                                consumer_get(other, &allocation->provider, item->resource_class);

                        if (item->amount <= there)
                                continue;
                        if (array_grow(&ret->items, sizeof(Change), ret->n_items,
                                       &ret->n_allocated) < 0)
                                return -ENOMEM;
                        ret->items[ret->n_items++] =
                                (Change){ &allocation->provider, item->resource_class,
                                          item->amount - there };
                }
        }
        return 0;
}

static int pair(int64_t claim, Change *from, Change *to, StoreShift **shifts, size_t *n_shifts,
                size_t *n_allocated)
{
        uint64_t amount = MIN(from->amount, to->amount);

        if (amount == 0)
                return 0;
        if (array_grow(shifts, sizeof(StoreShift), *n_shifts, n_allocated) < 0)
                return -ENOMEM;
        (*shifts)[(*n_shifts)++] = (StoreShift){
                .claim = claim,
                .from = *from->provider,
                .from_class = from->resource_class,
                .to = *to->provider,
                .to_class = to->resource_class,
                .amount = amount,
        };
        from->amount -= amount;
        to->amount -= amount;
        return 0;
}

int claims_make_shifts(int64_t claim, const Consumer *before, const Consumer *after,
                       StoreShift **shifts, size_t *n_shifts, size_t *n_allocated)
{
        Changes less = { 0 }, more = { 0 };
        int r = collect(before, after, &less);

        if (r == 0)
                r = collect(after, before, &more);
        for (int any_class = 0; any_class <= 1; any_class++)
                for (size_t i = 0; i < less.n_items; i++)
                        for (size_t j = 0; r == 0 && j < more.n_items; j++)
                                if (any_class || strcmp(less.items[i].resource_class,
                                                        more.items[j].resource_class) == 0)
                                        r = pair(claim, &less.items[i], &more.items[j], shifts,
                                                 n_shifts, n_allocated);
        free(less.items);
        free(more.items);
        return r;
}
