/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Chooses the providers of resources that are used here already, with or without free capacity.
 * Each class is placed on its own. The root takes all of a class that it has. Other classes go to
 * the provider with the most free capacity, and an excess to the next ones. The rest that fits
 * nowhere is added to the first provider. If free capacities are equal, the lowest name counts. A
 * lack of capacity is no error; only a class that no usable provider has is left out. Withheld
 * providers get nothing, and neither limits of devices nor units and steps are checked.
 *
 * Tests: tests/unit/claims/fit/test-fit.c */

#include <string.h>

#include "claims/fit/fit.h"

static uint64_t free_amount(const HostView *view, size_t provider, const char *resource_class)
{
        const Inventory *inventory =
                provider_find_inventory(view->tree->providers[provider], resource_class);
        uint64_t capacity = inventory_capacity(inventory),
                 used = resources_get(&view->providers[provider].used, resource_class);

        return capacity > used ? capacity - used : 0;
}

typedef struct Force {
        const HostView *view;
        bool *usable; /* index: provider; false if it must not be used, or already has a piece of
                         the current class */
        size_t root;
        Fit fit;
} Force;

static void force_done(Force *force)
{
        free(force->usable);
        fit_done(&force->fit);
}

/* Chooses the next provider for the class. Returns false if no provider that is left has it. */
static bool choose(const Force *force, const char *resource_class, size_t *ret_provider)
{
        const HostView *view = force->view;
        uint64_t most = 0;
        bool found = false;

        for (size_t i = 0; i < view->n_providers; i++) {
                uint64_t amount;

                if (!force->usable[i] ||
                    !provider_find_inventory(view->tree->providers[i], resource_class))
                        continue;
                if (i == force->root) {
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

/* Places one class: whole on the root if the root has it or on one provider if it fits, else on
 * several. The part that fits nowhere is added to the first provider. */
static int place(Force *force, const ResourceAmount *asked)
{
        const char *resource_class = asked->resource_class;
        size_t first = force->fit.n_pieces, provider;
        uint64_t left = asked->amount;
        int r = 0;

        while (r == 0 && left > 0 && choose(force, resource_class, &provider)) {
                uint64_t capacity = provider == force->root
                                            ? left
                                            : free_amount(force->view, provider, resource_class);

                if (capacity == 0)
                        break;
                r = fit_add(&force->fit, provider, resource_class, MIN(capacity, left));
                left -= MIN(capacity, left);
                force->usable[provider] = false;
        }
        if (r == 0 && left > 0 && force->fit.n_pieces > first)
                force->fit.pieces[first].amount += left;
        else if (r == 0 && left > 0 && choose(force, resource_class, &provider))
                r = fit_add(&force->fit, provider, resource_class, left);
        for (size_t i = first; i < force->fit.n_pieces; i++)
                force->usable[force->fit.pieces[i].provider] = true;
        return r;
}

int fit_force(const HostView *view, const char *node, const Resources *resources, Fit *ret)
{
        _cleanup_(force_done) Force force = { .view = view, .root = SIZE_MAX };
        size_t root;

        force.usable = calloc(view->n_providers + 1, sizeof(bool));
        if (!force.usable)
                return -ENOMEM;
        host_view_usable(view, node, force.usable);
        if (host_view_root(view, node, &root))
                force.root = root;
        for (size_t i = 0; i < resources->n_items; i++)
                if (place(&force, &resources->items[i]) < 0)
                        return -ENOMEM;
        *ret = TAKE_STRUCT(force.fit);
        return 0;
}
