/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sharing providers between Placement, the tree and the claims: what the tree maker has to know of
 * them, and the host that claims are fitted to, which includes them. Main thread. */

#include "agent/cycle/tracker-internal.h"
#include "agent/reshape/claim-move.h"
#include "base/log.h"

static const HostView *get_view(const Tracker *tracker)
{
        Claims *claims = claim_service_get(tracker->config.claims);
        const HostView *view;

        return claims && claims_host(claims, &view, NULL) == 0 ? view : NULL;
}

static int add_pools_of_claims(const HostView *view, ProviderTree *ret)
{
        for (size_t i = 0; i < view->n_providers; i++) {
                const Provider *pool = view->tree->providers[i];
                Provider *copy;
                int r;

                if (!host_view_shares(view, i) || view->providers[i].withheld)
                        continue;
                r = provider_tree_add(ret, &pool->uuid, pool->name, NULL, &copy, NULL);
                if (r < 0 || (r = provider_copy_contents(copy, pool)) < 0)
                        return r;
        }
        return 0;
}

/* Copies the sharing providers: those that Placement has, or before it was read, those that the
 * claims know since before the start. */
static int copy_pools(const Tracker *tracker, ProviderTree **ret)
{
        bool is_read = tracker->reporter && reporter_tree(tracker->reporter);
        const ProviderTree *pools = is_read ? tracker_get_sharing(tracker) : NULL;
        const HostView *view = is_read ? NULL : get_view(tracker);
        int r;

        if (pools)
                return provider_tree_copy(ret, pools);
        r = provider_tree_new(ret);
        return r >= 0 && view ? add_pools_of_claims(view, *ret) : r;
}

/* How much of the root's DISK_GB claims hold. */
static uint64_t count_claimed_disk(const Tracker *tracker)
{
        const HostView *view = get_view(tracker);
        size_t root;

        return view && host_view_find(view, &tracker->maker.root, &root)
                       ? resources_get(&view->providers[root].used, "DISK_GB")
                       : 0;
}

void tracker_collect_disk_facts(Tracker *tracker)
{
        _cleanup_(provider_tree_freep) ProviderTree *pools = NULL;
        LocalDiskFacts *facts = &tracker->maker.local_disk;

        *facts = (LocalDiskFacts){
                .owned = !tracker->config.reporter ||
                         !nova_mode_refuses(tracker_get_nova(tracker), NOVA_ACTION_PUBLISH),
                .allocated_known = !tracker->config.reporter,
                .claimed = count_claimed_disk(tracker),
        };
        if (copy_pools(tracker, &pools) < 0)
                log_warning("Out of memory: sharing providers are not looked for, ignoring.");
        else
                local_disk_note_pool(facts, pools);
        if (tracker->reporter)
                facts->allocated_known = sharing_get_disk_use(
                        reporter_get_sharing(tracker->reporter), &facts->allocated);
}

void tracker_offer_tree(Tracker *tracker, bool reshaped)
{
        _cleanup_(provider_tree_freep) ProviderTree *both = NULL, *pools = NULL;
        const ProviderTree *tree = tracker->tree;

        if (copy_pools(tracker, &pools) < 0 ||
            (pools->n_providers > 0 &&
             (provider_tree_copy(&both, tree) < 0 || local_disk_add_pools(pools, both) < 0)))
                log_warning("Out of memory: claims take nothing of sharing providers, ignoring.");
        else if (both)
                tree = both;
        if (reshaped && !tracker->config.dry_run)
                claim_move_follow(tracker->config.claims, &tracker->maker, tracker->snapshot, tree,
                                  &reshape_control_get_state(tracker->reshape)->image);
        claim_service_set_snapshot(tracker->config.claims, tracker->snapshot);
        claim_service_set_tree(tracker->config.claims, tree);
}
