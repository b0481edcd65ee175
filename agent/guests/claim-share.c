/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/claim-share.h"

#include <string.h>

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

/* A new one was read at a time of Placement's clock; one that is there shows when it was written
 * last, which says nothing of now. */
static uint64_t until_sec(const Consumer *consumer)
{
        return consumer->generation < 0 && consumer->modified_sec > 0
                       ? consumer->modified_sec + CLAIM_WRITE_LATE_SEC
                       : 0;
}

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

/* Of this host exactly what the claim has? */
static bool holds_the_same(const HostView *view, size_t root, const Consumer *consumer,
                           const Claim *claim)
{
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (is_own(view, root, &consumer->allocations[i].provider) &&
                    !is_of_claim(claim, &consumer->allocations[i].provider))
                        return false;
        return claim_share_is(claim, consumer);
}

/* Of a generation that may be ours. One that was read is known by when it was written; of one that
 * was new it is known until when ours was. */
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
        if (consumer->generation < (left->unsure ? left->reported.generation : written))
                return false;
        if (consumer->generation <= written)
                return may_be_ours(&left->reported, claim, consumer);
        return moved && (!claim || holds_the_same(view, root, consumer, claim));
}

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
