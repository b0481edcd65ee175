/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/claim-share.h"

static bool is_own(const HostView *view, size_t root, const Uuid *provider)
{
        size_t index;

        return host_view_find(view, provider, &index) &&
               provider_tree_in_subtree(view->tree, view->tree->providers[index],
                                        &view->tree->providers[root]->uuid);
}

bool claim_share_has(const HostView *view, const char *node, const Consumer *consumer)
{
        size_t root;

        if (!host_view_root(view, node, &root))
                return false;
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (is_own(view, root, &consumer->allocations[i].provider))
                        return true;
        return false;
}

static bool is_of_claim(const Claim *claim, const Uuid *provider)
{
        for (size_t i = 0; claim && i < claim->n_allocations; i++)
                if (uuid_equal(&claim->allocations[i].provider, provider))
                        return true;
        return false;
}

bool claim_share_remove(const HostView *view, const char *node, const Claim *claim,
                        Consumer *consumer)
{
        size_t root = SIZE_MAX, n = 0;
        bool known = host_view_root(view, node, &root);

        for (size_t i = 0; i < consumer->n_allocations; i++) {
                Allocation *allocation = &consumer->allocations[i];

                if ((known && is_own(view, root, &allocation->provider)) ||
                    is_of_claim(claim, &allocation->provider))
                        resources_done(&allocation->resources);
                else
                        consumer->allocations[n++] = *allocation;
        }
        if (n == consumer->n_allocations)
                return false;
        consumer->n_allocations = n;
        return true;
}

bool claim_share_is(const Claim *claim, const Consumer *consumer)
{
        for (size_t i = 0; i < claim->n_allocations; i++) {
                const Allocation *allocation = &claim->allocations[i];
                const Resources *held = consumer_find(consumer, &allocation->provider);

                if (!held || !resources_equal(held, &allocation->resources))
                        return false;
        }
        return true;
}

int claim_share_add(const Claim *claim, Consumer *consumer)
{
        for (size_t i = 0; i < claim->n_allocations; i++) {
                const Allocation *allocation = &claim->allocations[i];

                for (size_t j = 0; j < allocation->resources.n_items; j++) {
                        int r = consumer_add(consumer, &allocation->provider,
                                             allocation->resources.items[j].resource_class,
                                             allocation->resources.items[j].amount);

                        if (r < 0)
                                return r;
                }
        }
        return 0;
}
