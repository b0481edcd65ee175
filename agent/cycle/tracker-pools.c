/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sharing providers between Placement, the tree and the claims: what the tree maker has to know of
 * them, and the host that claims are fitted to, which includes them. Main thread. */

#include "agent/cycle/tracker-internal.h"
#include "agent/reshape/claim-move.h"
#include "base/log.h"

/* Before Placement was read, the base tree has the sharing providers that claims knew before the
 * start. */
static const ProviderTree *get_pools(const Tracker *tracker, const ProviderTree *base)
{
        return tracker->reporter && reporter_tree(tracker->reporter) ? tracker_get_sharing(tracker)
                                                                     : base;
}

/* How much of the root's DISK_GB claims hold. */
static uint64_t count_claimed_disk(const Tracker *tracker)
{
        Claims *claims = claim_service_get(tracker->config.claims);
        const HostView *view;
        size_t root;

        return claims && claims_host(claims, &view, NULL) == 0 &&
                               host_view_find(view, &tracker->maker.root, &root)
                       ? resources_get(&view->providers[root].used, "DISK_GB")
                       : 0;
}

void tracker_collect_disk_facts(Tracker *tracker, const ProviderTree *base)
{
        LocalDiskFacts *facts = &tracker->maker.local_disk;

        *facts = (LocalDiskFacts){
                .owned = !tracker->config.reporter ||
                         !nova_mode_refuses(tracker_get_nova(tracker), NOVA_ACTION_PUBLISH),
                .allocated_known = !tracker->config.reporter,
                .claimed = count_claimed_disk(tracker),
        };
        local_disk_note_pool(facts, get_pools(tracker, base));
        if (tracker->reporter)
                facts->allocated_known = sharing_get_disk_use(
                        reporter_get_sharing(tracker->reporter), &facts->allocated);
}

void tracker_offer_tree(Tracker *tracker, bool reshaped)
{
        const ProviderTree *pools = tracker_get_sharing(tracker), *tree = tracker->tree;
        _cleanup_(provider_tree_freep) ProviderTree *both = NULL;

        if (pools && (provider_tree_copy(&both, tree) < 0 || local_disk_add_pools(pools, both) < 0))
                log_warning("Out of memory: claims take nothing of sharing providers, ignoring.");
        if (both)
                tree = both;
        if (reshaped && !tracker->config.dry_run)
                claim_move_follow(tracker->config.claims, &tracker->maker, tracker->snapshot, tree,
                                  &reshape_control_get_state(tracker->reshape)->image);
        claim_service_set_snapshot(tracker->config.claims, tracker->snapshot);
        claim_service_set_tree(tracker->config.claims, tree);
}
