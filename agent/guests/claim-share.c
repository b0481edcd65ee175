/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds, removes and compares the share of this host in a consumer: the consumer's allocations from
 * the host's own providers. Decides whether the share is left over from the agent's own write
 * (claim_share_is_ours()). A provider is the host's own if it is in the subtree of the root of the
 * claims' view. All functions work on lists of allocations that the caller read; none reads
 * Placement.
 *
 * The second half completes a claim of a guest: a Build has the claim, Placement's allocations and
 * the share so far. Each resource class with an amount is taken once: from Placement, or from the
 * claim with the surplus of Placement. The rules for the amount are in claims/fit/guest-share.h. */

#include "agent/guests/claim-share.h"

#include <string.h>

#include "claims/fit/guest-share.h"

/* Returns true if the provider is in the subtree of root, an index of view->tree. */
static bool is_own(const HostView *view, size_t root, const Uuid *provider)
{
        size_t index;

        return host_view_find(view, provider, &index) &&
               provider_tree_in_subtree(view->tree, view->tree->providers[index],
                                        &view->tree->providers[root]->uuid);
}

bool claim_share_is_own(const HostView *view, const char *node, const Uuid *provider)
{
        size_t root;

        return host_view_root(view, node, &root) && is_own(view, root, provider);
}

bool claim_share_has(const HostView *view, const char *node, const Consumer *consumer)
{
        size_t root, index, n_shared = 0;

        if (!host_view_root(view, node, &root))
                return false;
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Uuid *provider = &consumer->allocations[i].provider;

                if (is_own(view, root, provider))
                        return true;
                n_shared += host_view_find(view, provider, &index) && host_view_shares(view, index);
        }
        return n_shared > 0 && n_shared == consumer->n_allocations;
}

/* Returns true if the claim has an allocation from the provider. claim can be NULL. */
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
        /* Without a known root, only allocations of the claim are removed. */
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

/* Returns the latest time of Placement's clock at which a write that is sent now can arrive; 0: not
 * known. The answer about a new consumer has the current time. The answer about an existing one has
 * the time of its last write, which shows no limit. */
static uint64_t until_sec(const Consumer *consumer)
{
        return consumer->generation < 0 && consumer->modified_sec > 0
                       ? consumer->modified_sec + CLAIM_WRITE_LATE_SEC
                       : 0;
}

/* The generation of the result is the one before the agent's write, or before the last write of a
 * consumer that was only read. The view lacks the providers of other hosts. Their uuids are folded
 * into one, in their sorted order: claim_share_is_ours() compares it, and another one shows that a
 * client changed this set. */
ClaimReported claim_share_reported(const HostView *view, const Consumer *consumer, bool written)
{
        Uuid elsewhere = consumer->uuid;
        size_t index;

        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (!host_view_find(view, &consumer->allocations[i].provider, &index))
                        elsewhere =
                                uuid_make_child(&elsewhere, consumer->allocations[i].provider.text);
        return (ClaimReported){ .generation = consumer->generation - (written ? 0 : 1),
                                .elsewhere = elsewhere,
                                .until_sec =
                                        written ? until_sec(consumer) : consumer->modified_sec };
}

/* Returns true if the consumer has at least the claim's amounts on each of the claim's
 * providers. */
static bool holds_no_less(const Consumer *consumer, const Claim *claim)
{
        for (size_t i = 0; i < claim->n_allocations; i++) {
                const Allocation *claimed = &claim->allocations[i];
                const Resources *held = consumer_find(consumer, &claimed->provider);

                for (size_t j = 0; j < claimed->resources.n_items; j++) {
                        const ResourceAmount *item = &claimed->resources.items[j];

                        if (!held || resources_get(held, item->resource_class) < item->amount)
                                return false;
                }
        }
        return true;
}

/* Returns true if the consumer's allocations from this host's own tree are exactly those of the
 * claim. */
static bool holds_the_same(const HostView *view, size_t root, const Consumer *consumer,
                           const Claim *claim)
{
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (is_own(view, root, &consumer->allocations[i].provider) &&
                    !is_of_claim(claim, &consumer->allocations[i].provider))
                        return false;
        return claim_share_is(claim, consumer);
}

/* Decides about a consumer whose generation can be that of the agent's write. With known times, a
 * consumer that existed before the write is recognised by the time of its last write alone. A new
 * consumer must not be written later than the agent's write can have arrived. It must also have at
 * least the amounts of claim (NULL: not known). Without known times only these amounts decide. */
static bool may_be_ours(const ClaimReported *reported, const Claim *claim, const Consumer *consumer)
{
        if (reported->until_sec > 0 && consumer->modified_sec > 0) {
                if (reported->generation >= 0)
                        return consumer->modified_sec == reported->until_sec;
                if (consumer->modified_sec > reported->until_sec)
                        return false;
        }
        return !claim || holds_no_less(consumer, claim);
}

bool claim_share_is_ours(const HostView *view, const char *node, const ClaimRemoval *left,
                         const Claim *claim, const Consumer *consumer)
{
        ClaimReported now = claim_share_reported(view, consumer, true);
        bool moved = !uuid_equal(&left->reported.elsewhere, &now.elsewhere);
        int64_t written = left->reported.generation < 0 ? 1 : left->reported.generation + 1;
        size_t root;

        if (uuid_empty(&left->reported.elsewhere) || !host_view_root(view, node, &root))
                return true;
        /* A lower generation belongs to a consumer that was deleted and created again. */
        if (consumer->generation < (left->unsure ? left->reported.generation : written))
                return false;
        if (consumer->generation <= written)
                return may_be_ours(&left->reported, claim, consumer);
        /* Another client wrote the consumer after the agent. The share is still the agent's only if
         * that client changed the providers of other hosts, and no allocation of this host. */
        return moved && (!claim || holds_the_same(view, root, consumer, claim));
}

/* Sets a text that is not known yet. If given is NULL or empty, otherwise is the value. */
static int set_text(char **text, const char *given, const char *otherwise)
{
        if (*text)
                return 0;
        *text = strdup(given && given[0] ? given : otherwise);
        return *text ? 0 : -ENOMEM;
}

int claim_share_name(Consumer *consumer, const char *project, const char *user, const char *type)
{
        return set_text(&consumer->project_id, project, CONSUMER_UNKNOWN_ID) < 0 ||
                               set_text(&consumer->user_id, user, CONSUMER_UNKNOWN_ID) < 0 ||
                               set_text(&consumer->type, type, "INSTANCE") < 0
                       ? -ENOMEM
                       : 0;
}

/* The share that the claim of a guest must have */

/* The share while it is made. */
typedef struct Build {
        const Claim *claim;
        const GuestShare *placed;
        Consumer *share;
} Build;

/* Takes the amounts of a class from these allocations. known limits them to the providers of this
 * tree that share nothing; NULL: no limit. */
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

/* Adds amount to the share, on the providers of which Placement has more of the class than the
 * share. */
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

/* Takes one class, unless it was taken already. If Placement has the right amount, and the guest
 * does not bind it to a provider, Placement's distribution counts. Otherwise the claim's
 * distribution counts, with the surplus from Placement's providers. */
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

/* Takes all classes of these allocations. */
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
