/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>

#include "claims/fit.h"

static uint64_t free_amount(const HostView *view, size_t provider, const char *resource_class)
{
        const Inventory *inventory =
                provider_find_inventory(view->tree->providers[provider], resource_class);
        uint64_t capacity = inventory_capacity(inventory),
                 used = resources_get(&view->providers[provider].used, resource_class);

        return capacity > used ? capacity - used : 0;
}

/* False when no provider of the host has the class. */
static bool choose(const HostView *view, const bool usable[], size_t root,
                   const char *resource_class, size_t *ret_provider)
{
        uint64_t most = 0;
        bool found = false;

        for (size_t i = 0; i < view->n_providers; i++) {
                uint64_t amount;

                if (!usable[i] ||
                    !provider_find_inventory(view->tree->providers[i], resource_class))
                        continue;
                if (i == root) {
                        *ret_provider = i;
                        return true;
                }
                amount = free_amount(view, i, resource_class);
                if (found &&
                    (amount < most ||
                     (amount == most && strcmp(view->tree->providers[i]->name,
                                               view->tree->providers[*ret_provider]->name) > 0)))
                        continue;
                *ret_provider = i;
                most = amount;
                found = true;
        }
        return found;
}

int fit_force(const HostView *view, const char *node, const Resources *resources, Fit *ret)
{
        _cleanup_free_ bool *usable = calloc(view->n_providers + 1, sizeof(bool));
        FitPiece *pieces = calloc(resources->n_items + 1, sizeof(FitPiece));
        size_t root = SIZE_MAX, n = 0;

        if (!usable || !pieces) {
                free(pieces);
                return -ENOMEM;
        }
        host_view_usable(view, node, usable);
        if (!host_view_root(view, node, &root))
                root = SIZE_MAX;
        for (size_t i = 0; i < resources->n_items; i++) {
                FitPiece piece = { .resource_class = resources->items[i].resource_class,
                                   .amount = resources->items[i].amount };

                if (choose(view, usable, root, piece.resource_class, &piece.provider))
                        pieces[n++] = piece;
        }
        ret->pieces = pieces;
        ret->n_pieces = n;
        return 0;
}
