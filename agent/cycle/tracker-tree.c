/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the tree of providers that this host should have, from the last snapshot and a base tree.
 * The base is the tree of Placement, or before Placement was read, an earlier tree or none
 * (find_base()). Tracker.tree keeps the result. The claims get it together with the sharing
 * providers. Before, claims of an old shape move to a tree that is no preview, if it needs no
 * reshape or the claims have not followed the last one (take_tree()). If nova-compute owns the
 * tree, Tracker.tree is the tree of Placement with the larger reserved amounts of both
 * (nova_tree_to_claim()), to which claims are fitted. The agent's own tree (Tracker.wanted) is then
 * only compared, except its reserved amounts, which begin_reserve() can write. The phases call this
 * file after a poll, a read of the tree or of consumers, and a reshape. It also makes the plan that
 * a caller can request (tracker_plan()).
 *
 * A tree that was not made from the tree of Placement is only a preview, except on a standalone
 * host. So is one that was made from the mirror after a write without an answer, until the next
 * read. Claims are fitted to a preview and the claim database stores it, but claims do not move.
 * The parts that edit the tree (agent/tree/tree-maker.h) store nothing for a preview. Only the
 * device watch can write its list of devices then (device_watch_apply()). Beside nova-compute, the
 * preview is an earlier tree with the larger reserved amounts, or the agent's own tree if there is
 * none. If a host with Placement cannot make a tree after a poll, it makes a preview from the last
 * tree, if there is one. After each other failure the last tree stays in use. This file sends no
 * request. It notes the results in the status. It logs the begin of a need for a reshape, a change
 * of the local disk, and a reason about devices or guests when its text changes. Main thread.
 *
 * Tests: tests/unit/agent/cycle/test-tracker.c */

#include <errno.h>
#include <string.h>

#include "agent/cycle/tracker-internal.h"
#include "agent/reshape/claim-move.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "drivers/tree/cpu-plan.h"

/* Returns the view of the claims, or NULL. Borrowed until the next read of the database. */
static const HostView *get_view(const Tracker *tracker)
{
        Claims *claims = tracker->maker.claims->claims;
        const HostView *view;

        return claims && claims_host(claims, &view, NULL) == 0 ? view : NULL;
}

/* Copies a sharing provider to tree, as a root. Skips one whose uuid or name tree has already. */
static int add_pool(const Provider *pool, ProviderTree *tree)
{
        Provider *copy;
        int r;

        if (provider_tree_find(tree, &pool->uuid) || provider_tree_find_name(tree, pool->name))
                return 0;
        r = provider_tree_add(tree, &pool->uuid, pool->name, NULL, &copy, NULL);
        return r < 0 ? r : provider_copy_contents(copy, pool);
}

/* Copies the sharing providers in the claim database to ret, except withheld ones. */
static int add_pools_of_claims(const HostView *view, ProviderTree *ret)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < view->n_providers; i++)
                if (host_view_shares(view, i) && !view->providers[i].withheld)
                        r = add_pool(view->tree->providers[i], ret);
        return r;
}

/* Returns true if the sharing providers in Placement were read. A read of the tree can succeed
 * without them. */
static bool knows_pools(const Tracker *tracker)
{
        return tracker->reporter && sharing_is_known(reporter_get_sharing(tracker->reporter));
}

/* Copies the sharing providers to a new tree: those of Placement, or before they were read, those
 * that the claim database has. */
static int copy_pools(const Tracker *tracker, ProviderTree **ret)
{
        bool is_known = knows_pools(tracker);
        const ProviderTree *pools =
                is_known ? sharing_get(reporter_get_sharing(tracker->reporter)) : NULL;
        const HostView *view = is_known ? NULL : get_view(tracker);
        int r;

        if (pools)
                return provider_tree_copy(ret, pools);
        r = provider_tree_new(ret);
        return r >= 0 && view ? add_pools_of_claims(view, *ret) : r;
}

/* Returns the DISK_GB of the root provider that claims use, or 0 if the claims are unknown. Unit:
 * GiB. */
static uint64_t count_claimed_disk(const Tracker *tracker)
{
        const HostView *view = get_view(tracker);
        size_t root;

        return view && host_view_find(view, &tracker->maker.root, &root)
                       ? resources_get(&view->providers[root].used, "DISK_GB")
                       : 0;
}

/* Collects the evidence about the local disk in the tree maker, for the next tree. A plan
 * (tracker_plan()) uses the evidence of the last tree. */
static void collect_disk_facts(Tracker *tracker)
{
        _cleanup_(provider_tree_freep) ProviderTree *pools = NULL;
        TreeMaker *maker = &tracker->maker;

        memset(&maker->local_disk, 0, sizeof(maker->local_disk));
        maker->local_disk.owned = tracker_may(tracker, NOVA_ACTION_PUBLISH);
        maker->local_disk.pools_unread =
                tracker->reporter && reporter_tree(tracker->reporter) && !knows_pools(tracker);
        maker->local_disk.allocated_known = !tracker->config.reporter;
        maker->local_disk.claimed = count_claimed_disk(tracker);
        if (copy_pools(tracker, &pools) < 0)
                log_warning("Out of memory. Sharing providers are not searched for.");
        else
                tree_maker_note_pool(maker, pools);
        if (tracker->reporter)
                maker->local_disk.allocated_known = sharing_get_disk_use(
                        reporter_get_sharing(tracker->reporter), &maker->local_disk.allocated);
}

/* Makes a copy of the tree with these sharing providers. */
static int add_pools(const ProviderTree *tree, const ProviderTree *pools, ProviderTree **ret)
{
        int r = provider_tree_copy(ret, tree);

        for (size_t i = 0; r >= 0 && i < pools->n_providers; i++)
                r = add_pool(pools->providers[i], *ret);
        return r;
}

/* Passes the tree, the sharing providers and the snapshot to the claims. Without memory, the
 * sharing providers are left out, with a warning. reshaped: claims of an older shape move to the
 * providers of the tree first, except in a dry run. take_tree() decides about it. */
static void offer_tree(Tracker *tracker, bool reshaped)
{
        _cleanup_(provider_tree_freep) ProviderTree *both = NULL, *pools = NULL;
        const ProviderTree *tree = tracker->tree;

        if (copy_pools(tracker, &pools) < 0 ||
            (pools->n_providers > 0 && add_pools(tree, pools, &both) < 0))
                log_warning("Out of memory. Claims take nothing from sharing providers.");
        else if (both)
                tree = both;
        if (reshaped && !tracker->config.dry_run &&
            claim_move_follow(tracker->maker.claims, &tracker->maker, tracker->snapshot, tree,
                              &reshape_control_get_state(tracker->reshape)->image,
                              !tracker->status.reshape_needed))
                reshape_control_drop_image(tracker->reshape);
        claim_service_set_snapshot(tracker->maker.claims, tracker->snapshot,
                                   tracker->maker.device_watch ? &tracker->maker.device_watch->facts
                                                               : NULL);
        claim_service_set_tree(tracker->maker.claims, tree);
}

/* Returns the tree from which the next one is made: that of Placement, else the last one, else the
 * one of an earlier run if it is of the same host. NULL: none. */
static const ProviderTree *find_base(const Tracker *tracker)
{
        const ProviderTree *mirror = tracker->reporter ? reporter_tree(tracker->reporter) : NULL;
        const ProviderTree *remembered;
        const Provider *root;

        if (mirror || tracker->tree)
                return mirror ? mirror : tracker->tree;
        remembered = tracker->maker.claims->remembered;
        root = remembered ? provider_tree_find(remembered, &tracker->maker.root) : NULL;
        return root && strcmp(root->name, tracker->maker.nodename) == 0 ? remembered : NULL;
}

/* Replaces the tree of the tracker, takes ownership of the new one, and passes it to the claims.
 * Claims that did not follow the last reshape yet follow it also if the tree needs another one, as
 * after an undo. The others then wait for the final shape. known: as in update_tree(). */
static void take_tree(Tracker *tracker, ProviderTree *tree, bool known)
{
        bool pending = reshape_control_get_state(tracker->reshape)->image.after.tree;
        bool reshaped = (pending || !tracker->status.reshape_needed) && known;

        if (!tracker->tree || !provider_tree_equal(tracker->tree, tree))
                cycle_pace_note_change(&tracker->pace, clock_usec(CLOCK_BOOTTIME));
        provider_tree_free(tracker->tree);
        tracker->tree = tree;
        offer_tree(tracker, reshaped);
}

/* For a tree that nova-compute owns: replaces made->tree by the tree that claims are fitted to
 * (nova_tree_to_claim()), and keeps the agent's own tree in Tracker.wanted. A reshape is then
 * nova-compute's task, so it is not requested. */
static int share_tree(Tracker *tracker, const ProviderTree *base, MadeTree *made)
{
        ProviderTree *shared = NULL;
        int r = nova_tree_to_claim(base, made->tree, &tracker->maker.root, &shared);

        if (!tracker->wanted || !provider_tree_equal(tracker->wanted, made->tree))
                cycle_pace_note_change(&tracker->pace, clock_usec(CLOCK_BOOTTIME));
        provider_tree_free(tracker->wanted);
        tracker->wanted = made->tree;
        made->tree = shared;
        tracker->status.reshape_left = made->reshape_needed;
        made->reshape_needed = false;
        return r;
}

/* Notes whether the tree must change its shape, and logs when this begins. */
static void note_reshape(TrackerStatus *status, const Uuid *root, bool needed)
{
        if (needed && !status->reshape_needed)
                log_event(
                        LOG_WARNING, MESSAGE_RESHAPE_NEEDED,
                        LOG_FIELDS(LOG_FIELD_PROVIDER, root->text),
                        "The provider tree must change shape under running guests. The old shape is kept.");
        status->reshape_needed = needed;
}

/* Notes why devices are not reported as configured. Logs a reason that differs from the last one.
 */
static void note_devices(TrackerStatus *status, const Uuid *root, const Error *error)
{
        if (error->code && strcmp(error->text, status->device_error.text) != 0)
                log_event(LOG_WARNING, MESSAGE_DEVICES_REFUSED,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, root->text),
                          "Not all of this host is reported as configured: %s", error->text);
        status->device_error = *error;
}

/* Notes the decision about the root's DISK_GB, and logs its change. DISK_GB that was never reported
 * is left out without a message. */
static void note_local_disk(TrackerStatus *status, const Uuid *root, const MadeTree *made)
{
        const char *const fields[] = { LOG_FIELD_PROVIDER, root->text, NULL, NULL };
        LocalDisk decision = made->local_disk, before = status->local_disk_decision;
        bool leaves = decision == LOCAL_DISK_LEFT_OUT &&
                      (made->disk_was_there || before != LOCAL_DISK_OFFERED);

        status->local_disk_decision = decision;
        strcpy(status->local_disk, made->local_disk_words);
        if (decision == before)
                return;
        if (decision == LOCAL_DISK_OFFERED)
                log_event(LOG_NOTICE, MESSAGE_LOCAL_DISK, fields,
                          "Local DISK_GB is reported again: no sharing provider has DISK_GB.");
        else if (decision == LOCAL_DISK_WITHHELD)
                log_event(LOG_NOTICE, MESSAGE_LOCAL_DISK, fields, "%s.", status->local_disk);
        else if (leaves)
                log_event(LOG_NOTICE, MESSAGE_LOCAL_DISK, fields,
                          "%s. No consumer has an allocation of local DISK_GB.",
                          status->local_disk);
}

/* Notes the unpinned guests that can run on dedicated CPUs. Logs a text that differs from the last
 * one, and the end of the problem. If they cannot be found, the last text stays. */
static void note_floating(TrackerStatus *status, const Uuid *root, const HostConfig *config,
                          const Snapshot *snapshot)
{
        _cleanup_(cpu_plan_done) CpuPlan cpus = { 0 };
        Error floating = ERROR_NULL;

        if (cpu_plan_make(config, snapshot, &cpus, NULL, NULL) < 0 ||
            cpu_guests_find(snapshot, &cpus, &floating) < 0)
                return;
        if (floating.code && strcmp(floating.text, status->floating.text) != 0)
                log_event(LOG_WARNING, MESSAGE_GUEST_FLOATS,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, root->text), "%s.", floating.text);
        else if (!floating.code && status->floating.code)
                log_event(LOG_INFO, MESSAGE_GUEST_FLOATS,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, root->text),
                          "No unpinned guest can run on dedicated CPUs any more.");
        status->floating = floating;
}

/* Notes the results of making a tree in the status, and logs changes. known: see update_tree().
 * Otherwise the decision about the local disk is not final, and is not noted. */
static void note_tree(Tracker *tracker, const MadeTree *made, bool known)
{
        const TreeMaker *maker = &tracker->maker;
        TrackerStatus *status = &tracker->status;

        note_reshape(status, &maker->root, made->reshape_needed);
        note_devices(status, &maker->root, &made->device_error);
        if (known)
                note_local_disk(status, &maker->root, made);
        note_floating(status, &maker->root, maker->config, tracker->snapshot);
}

/* Makes the tree from base (NULL: none), notes the result in the status, and passes the tree to the
 * claims. After a failure the last tree stays. known: base is Placement's tree as of the last read
 * and all writes since, or the host is standalone. */
static int update_tree(Tracker *tracker, const ProviderTree *base, bool known, Error *reterr)
{
        MadeTree made = { 0 };
        int r;

        collect_disk_facts(tracker);
        r = reshape_control_make_tree(tracker->reshape, &tracker->maker, tracker->snapshot, base,
                                      known, &made, reterr);
        if (r >= 0 && base && !tracker_may(tracker, NOVA_ACTION_PUBLISH))
                r = share_tree(tracker, base, &made);
        if (r < 0)
                return r;
        note_tree(tracker, &made, known);
        take_tree(tracker, made.tree, known);
        return 0;
}

/* Reshapes the tree of a host without Placement, if a reshape is due. The claims move with it. */
static int reshape_alone(Tracker *tracker, Error *reterr)
{
        ProviderTree *tree = NULL;
        int r = reshape_control_alone(tracker->reshape, tracker->status.reshape_needed,
                                      &tracker->maker, tracker->tree, tracker->snapshot, &tree,
                                      reterr);

        if (tree)
                tracker_tree_reshaped(tracker, tree, &tracker->status.device_error);
        return r;
}

int tracker_tree_after_poll(Tracker *tracker, Error *reterr)
{
        bool standalone = !tracker->config.reporter;
        bool known = standalone || (tracker->reporter && reporter_is_current(tracker->reporter));
        int r = update_tree(tracker, find_base(tracker), known, reterr);

        if (standalone)
                return r < 0 ? r : reshape_alone(tracker, reterr);
        /* Another writer might have broken the tree of Placement so that the driver cannot edit it.
         * Use a preview that is made from the last tree until the next read. */
        if (r < 0 && tracker->tree)
                (void)update_tree(tracker, tracker->tree, false, NULL);
        return r == -ENOMEM ? r : 0;
}

int tracker_tree_after_read(Tracker *tracker, Error *reterr)
{
        return update_tree(tracker, reporter_tree(tracker->reporter), true, reterr);
}

void tracker_tree_reshaped(Tracker *tracker, ProviderTree *tree, const Error *device_error)
{
        note_reshape(&tracker->status, &tracker->maker.root, false);
        note_devices(&tracker->status, &tracker->maker.root, device_error);
        take_tree(tracker, tree, true);
}

int tracker_plan(Tracker *tracker, Plan **ret, Error *reterr)
{
        MadeTree made = { 0 };
        int r;

        if (!tracker->config.reporter)
                return error_setf(reterr, ENODATA,
                                  "There is no [placement] section, so nothing is sent");
        if (!tracker->reporter || !reporter_tree(tracker->reporter))
                return error_setf(reterr, ENODATA, "Placement was not read yet%s%s",
                                  tracker->status.sync_error.code ? ": " : "",
                                  tracker->status.sync_error.text);
        if (tracker->status.sync_state == SYNC_OFFLINE)
                return error_setf(reterr, ENODATA,
                                  "Placement cannot be used (%s), so its current state is unknown",
                                  tracker->status.sync_error.text);
        if (tracker->status.hypervisor_error.code)
                return error_setf(reterr, ENODATA,
                                  "The host cannot be polled (%s), so its current state is unknown",
                                  tracker->status.hypervisor_error.text);
        /* A write can be on its way, so the mirror is no evidence of what Placement has. */
        r = reshape_control_make_tree(tracker->reshape, &tracker->maker, tracker->snapshot,
                                      reporter_tree(tracker->reporter), false, &made, reterr);
        if (r < 0)
                return r;
        r = reporter_plan(tracker->reporter, made.tree, NULL, ret, reterr);
        provider_tree_free(made.tree);
        return r;
}
