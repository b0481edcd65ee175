/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/claim-build.h"

#include "claims/fit/guest-share.h"

#include "claims/claim/host-view.h"

typedef struct Build {
        const Claim *claim;
        const GuestShare *placed;
        Consumer *share;
} Build;

static int take(const Allocation *allocations, size_t n, const char *resource_class,
                const ProviderTree *known, Consumer *share)
{
        for (size_t i = 0; i < n; i++) {
                uint64_t amount = resources_get(&allocations[i].resources, resource_class);

                if ((!known || guest_share_find(known, &allocations[i].provider)) &&
                    consumer_set(share, &allocations[i].provider, resource_class, amount) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Adds amount from the providers on which Placement has more of the class than the claim. */
static int add_surplus(const Build *build, const char *resource_class, uint64_t amount)
{
        const Consumer *consumer = build->placed->consumer;

        for (size_t i = 0; i < consumer->n_allocations && amount > 0; i++) {
                const Allocation *held = &consumer->allocations[i];
                uint64_t placed = resources_get(&held->resources, resource_class),
                         has = consumer_get(build->share, &held->provider, resource_class),
                         more = MIN(placed > has ? placed - has : 0, amount);

                if (more == 0 || !guest_share_find(build->placed->tree, &held->provider))
                        continue;
                if (consumer_set(build->share, &held->provider, resource_class, has + more) < 0)
                        return -ENOMEM;
                amount -= more;
        }
        return 0;
}

static int take_class(const Build *build, const char *resource_class)
{
        const Claim *claim = build->claim;
        const Consumer *consumer = build->placed->consumer;
        uint64_t claimed = claim_sum(claim, resource_class), placed = 0,
                 amount = guest_share_amount(build->placed, resource_class, claimed);

        if (consumer_sum(build->share, resource_class) > 0 || amount == 0)
                return 0;
        if (!claim_binds(claim, resource_class) &&
            guest_share_placed(build->placed, resource_class, &placed) && placed == amount)
                return take(consumer->allocations, consumer->n_allocations, resource_class,
                            build->placed->tree, build->share);
        if (take(claim->allocations, claim->n_allocations, resource_class, NULL, build->share) < 0)
                return -ENOMEM;
        return add_surplus(build, resource_class, amount - MIN(amount, claimed));
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
                      const Uuid *root, bool is_ours, Consumer **ret_share)
{
        _cleanup_(consumer_freep) Consumer *share = NULL, *held = NULL;
        const GuestShare placed = { .tree = tree,
                                    .root = root,
                                    .consumer = consumer,
                                    .vcpu = claim_sum(claim, "VCPU"),
                                    .pcpu = claim_sum(claim, "PCPU"),
                                    .is_ours = is_ours };
        Build build = { .claim = claim, .placed = &placed };

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
