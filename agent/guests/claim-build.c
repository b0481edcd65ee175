/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/claim-build.h"

#include <string.h>

#include "claims/claim/host-view.h"

typedef struct Build {
        const Claim *claim;
        const Consumer *consumer;
        const ProviderTree *tree;
        const Uuid *root;
        Consumer *share;
} Build;

/* Returns NULL for a sharing provider: what Placement has there is no part of a guest's claim. */
static const Provider *find_known(const ProviderTree *tree, const Uuid *uuid)
{
        const Provider *provider = provider_tree_find(tree, uuid);

        return provider && string_set_contains(&provider->traits, TRAIT_SHARES_VIA_AGGREGATE)
                       ? NULL
                       : provider;
}

/* Can an amount of the class be held there by this host's claims? */
static bool is_possible(const Build *build, const Uuid *uuid, const char *resource_class)
{
        const Provider *provider = provider_tree_find(build->tree, uuid);

        return provider && provider_tree_in_subtree(build->tree, provider, build->root) &&
               provider_find_inventory(provider, resource_class);
}

/* All that Placement has of the class in this tree; false when a part of it cannot be here. */
static bool sum_possible(const Build *build, const char *resource_class, uint64_t *ret)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < build->consumer->n_allocations; i++) {
                const Allocation *held = &build->consumer->allocations[i];
                const Provider *provider = find_known(build->tree, &held->provider);
                uint64_t amount = resources_get(&held->resources, resource_class);

                if (amount == 0 || !provider)
                        continue;
                if (!is_possible(build, &held->provider, resource_class))
                        return false;
                sum += amount;
        }
        *ret = sum;
        return true;
}

static int take(const Allocation *allocations, size_t n, const char *resource_class,
                const ProviderTree *known, Consumer *share)
{
        for (size_t i = 0; i < n; i++) {
                uint64_t amount = resources_get(&allocations[i].resources, resource_class);

                if ((!known || find_known(known, &allocations[i].provider)) &&
                    consumer_set(share, &allocations[i].provider, resource_class, amount) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Not of a class that a guest shows; and devices are on providers of their own. */
static bool is_not_shown(const Build *build, const char *resource_class, uint64_t placed)
{
        static const char *const of_guests[] = { "VCPU", "PCPU", "MEMORY_MB" };
        const Resources *on_root = consumer_find(build->consumer, build->root);

        for (size_t i = 0; i < ARRAY_SIZE(of_guests); i++)
                if (strcmp(of_guests[i], resource_class) == 0)
                        return false;
        return on_root && resources_get(on_root, resource_class) == placed;
}

static int take_class(const Build *build, const char *resource_class)
{
        uint64_t claimed = claim_sum(build->claim, resource_class), placed = 0;
        bool possible = sum_possible(build, resource_class, &placed) && placed > 0;

        if (consumer_sum(build->share, resource_class) > 0)
                return 0;
        if (claimed == 0 && !(possible && is_not_shown(build, resource_class, placed)))
                return 0;
        if (possible && !claim_binds(build->claim, resource_class) &&
            (claimed == 0 || claimed == placed))
                return take(build->consumer->allocations, build->consumer->n_allocations,
                            resource_class, build->tree, build->share);
        return take(build->claim->allocations, build->claim->n_allocations, resource_class, NULL,
                    build->share);
}

static int take_classes(const Build *build, const Allocation *allocations, size_t n)
{
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < allocations[i].resources.n_items; j++)
                        if (take_class(build, allocations[i].resources.items[j].resource_class) < 0)
                                return -ENOMEM;
        return 0;
}

int claim_build_share(const Claim *claim, const Consumer *consumer, const ProviderTree *tree,
                      const Uuid *root, Consumer **ret_share)
{
        _cleanup_(consumer_freep) Consumer *share = NULL, *held = NULL;
        Build build = { .claim = claim, .consumer = consumer, .tree = tree, .root = root };

        if (consumer_new(&share, &claim->consumer) < 0 ||
            consumer_new(&held, &claim->consumer) < 0 ||
            consumer_set_all(held, claim->allocations, claim->n_allocations) < 0)
                return -ENOMEM;
        build.share = share;
        if (take_classes(&build, claim->allocations, claim->n_allocations) < 0 ||
            take_classes(&build, consumer->allocations, consumer->n_allocations) < 0)
                return -ENOMEM;
        if (consumer_holds_equal(share, held))
                return 1;
        *ret_share = TAKE_PTR(share);
        return 0;
}
