/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves claims after a reshape, so that they name the providers of the new tree. Except in a dry
 * run, the tracker calls it for each known tree that has the final shape, or while the claims have
 * not followed the last reshape. A Follow has the living claims as two sets of consumers:
 * before, and after the move. Each claim is a consumer with a made-up uuid, because one guest can
 * have two claims. An alias leads from that uuid to the guest.
 *
 * A claim that equals the old allocations of its consumer gets the consumer's new ones. If the tree
 * has the final shape, the driver moves the rest of "after" by the rules that also move Placement's
 * allocations. A claim stays if the driver cannot move it, or the tree lacks an inventory that it
 * would get. The differences between the two sets are written in one transaction with the new tree.
 * After an error no claim is moved, and the next call tries again.
 *
 * Claims are compared only if the stored tree has this host's root, and the stored usage names an
 * inventory (of no sharing provider) that the new tree lacks. A crash before the write therefore
 * leaves no claim behind: the next call finds the same difference. But the allocations before the
 * reshape are not known then. */

#include "agent/reshape/claim-move.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "claims/claims.h"
#include "drivers/update.h"

/* The state of one move of the claims. */
typedef struct Follow {
        Claims *claims;
        const ProviderTree *tree; /* the new one */
        const ReshapeImage *reshaped;
        bool is_final; /* tree needs no other reshape */
        ClaimList list;
        Uuid *ids;                   /* the made-up consumer of each claim */
        ReshapeAlias *aliases;       /* from ids to the guests, sorted */
        Allocations *before, *after; /* the claims as consumers */
        StoreShift *moves;
        size_t n_moves, n_allocated;
        size_t n_moved; /* number of claims that move */
} Follow;

static void follow_done(Follow *follow)
{
        claim_list_done(&follow->list);
        allocations_free(follow->before);
        allocations_free(follow->after);
        free(follow->ids);
        free(follow->aliases);
        free(follow->moves);
}

/* Returns true if claims use an inventory of view that tree lacks. Sharing providers do not count,
 * because a reshape moves nothing from them. */
static bool is_behind(const HostView *view, const ProviderTree *tree)
{
        for (size_t i = 0; i < view->n_providers; i++) {
                const Resources *used = &view->providers[i].used;
                const Provider *provider =
                        provider_tree_find(tree, &view->tree->providers[i]->uuid);

                if (host_view_shares(view, i))
                        continue;
                for (size_t j = 0; j < used->n_items; j++)
                        if (used->items[j].amount > 0 &&
                            (!provider ||
                             !provider_find_inventory(provider, used->items[j].resource_class)))
                                return true;
        }
        return false;
}

static int compare_aliases(const void *a, const void *b)
{
        return uuid_order(&((const ReshapeAlias *)a)->consumer,
                          &((const ReshapeAlias *)b)->consumer);
}

/* Adds a claim to the consumers before the move, with a made-up uuid. The caller sorts the aliases
 * afterwards. */
static int add_claim(Follow *follow, size_t index)
{
        const Claim *claim = follow->list.claims[index];
        Consumer *consumer;
        char name[32];

        snprintf(name, sizeof(name), "claim %" PRId64, claim->id);
        follow->ids[index] = uuid_make_child(&claim->consumer, name);
        follow->aliases[index] = (ReshapeAlias){ follow->ids[index], claim->consumer };
        if (allocations_ensure(follow->before, &follow->ids[index], &consumer) < 0)
                return -ENOMEM;
        return consumer_set_all(consumer, claim->allocations, claim->n_allocations);
}

/* Reads the living claims into both sets of consumers, which are then equal. Returns a ClaimOutcome
 * or a negative errno. */
static int read_claims(Follow *follow, Error *reterr)
{
        size_t n;
        int r = claims_list(follow->claims, CLAIMS_LIVING, NULL, &follow->list, reterr);

        if (r != 0)
                return r;
        n = follow->list.n_claims;
        follow->ids = calloc(n + 1, sizeof(Uuid));
        follow->aliases = calloc(n + 1, sizeof(ReshapeAlias));
        if (!follow->ids || !follow->aliases || allocations_new(&follow->before) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < n; i++)
                if (add_claim(follow, i) < 0)
                        return error_oom(reterr);
        if (n > 0)
                qsort(follow->aliases, n, sizeof(ReshapeAlias), compare_aliases);
        return allocations_copy(&follow->after, follow->before) < 0 ? error_oom(reterr) : 0;
}

/* Gives a claim the allocations that its consumer got in Placement, if the claim equaled the old
 * ones. Other claims are left to move_others(). */
static int follow_placement(Follow *follow)
{
        const ReshapeImage *image = follow->reshaped;

        for (size_t i = 0; image->after.consumers && i < follow->list.n_claims; i++) {
                const Uuid *uuid = &follow->list.claims[i]->consumer;
                const Consumer *before = allocations_find(image->before.consumers, uuid);
                const Consumer *after = allocations_find(image->after.consumers, uuid);
                const Consumer *old = allocations_find(follow->before, &follow->ids[i]);
                Consumer *own = allocations_find(follow->after, &follow->ids[i]);

                if (!before || !after || !old || !own || !consumer_holds_equal(before, old))
                        continue;
                consumer_clear(own);
                if (consumer_set_all(own, after->allocations, after->n_allocations) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Lets the driver move the claims in follow->after, on a copy of the stored tree. A claim that
 * cannot be moved stays, with a message at debug level. */
static int move_others(Follow *follow, const TreeMaker *maker, const Snapshot *snapshot,
                       const ProviderTree *stored, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        _cleanup_(driver_reshape_done) DriverReshape reshape = {
                .consumers = follow->after,
                .aliases = follow->aliases,
                .n_aliases = follow->list.n_claims,
        };
        int r;

        if (provider_tree_copy(&tree, stored) < 0)
                return error_oom(reterr);
        r = provider_update(maker->config, snapshot,
                            maker->device_watch ? &maker->device_watch->facts : NULL, tree,
                            maker->nodename, &reshape, reterr);
        for (size_t i = 0; r >= 0 && i < reshape.n_problems; i++)
                log_debug("Claim of %s not moved: %s",
                          driver_reshape_guest(&reshape, &reshape.problems[i].consumer)->text,
                          reshape.problems[i].reason);
        return MIN(r, 0);
}

/* Returns true if the tree has the inventory of each target from the first shift on. */
static bool has_targets(const Follow *follow, size_t first)
{
        for (size_t i = first; i < follow->n_moves; i++) {
                const StoreShift *move = &follow->moves[i];
                const Provider *to = provider_tree_find(follow->tree, &move->to);

                if (!to || !provider_find_inventory(to, move->to_class))
                        return false;
        }
        return true;
}

/* Lists the differences between the two sets in follow->moves. Leaves out a claim for which the
 * tree lacks a target. */
static int list_moves(Follow *follow, Error *reterr)
{
        for (size_t i = 0; i < follow->list.n_claims; i++) {
                const Consumer *before = allocations_find(follow->before, &follow->ids[i]);
                const Consumer *after = allocations_find(follow->after, &follow->ids[i]);
                size_t n = follow->n_moves;

                if (claims_make_shifts(follow->list.claims[i]->id, before, after, &follow->moves,
                                       &follow->n_moves, &follow->n_allocated) < 0)
                        return error_oom(reterr);
                if (!has_targets(follow, n))
                        follow->n_moves = n;
                follow->n_moved += follow->n_moves > n;
        }
        return 0;
}

/* Decides which claims move, and where. Returns a ClaimOutcome or a negative errno. */
static int decide_moves(Follow *follow, const TreeMaker *maker, const Snapshot *snapshot,
                        const ProviderTree *stored, Error *reterr)
{
        int r = read_claims(follow, reterr);

        if (r == 0 && follow_placement(follow) < 0)
                r = error_oom(reterr);
        if (r == 0 && follow->is_final)
                r = move_others(follow, maker, snapshot, stored, reterr);
        /* The driver's rules lead to the shape of the host. After an undo they can move a claim
         * back, but it has to follow Placement. */
        if (r == 0 && follow_placement(follow) < 0)
                r = error_oom(reterr);
        return r == 0 ? list_moves(follow, reterr) : r;
}

/* Moves the claims if the stored usage needs it. Forgets what is stored about Placement's
 * allocations if a claim moves, and after a reshape. Returns a ClaimOutcome or a negative errno. */
static int move_claims(Claims *claims, const TreeMaker *maker, const Snapshot *snapshot,
                       const ProviderTree *tree, const ReshapeImage *reshaped, bool is_final,
                       size_t *ret_n_moved, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *stored = NULL;
        _cleanup_(follow_done) Follow follow = {
                .claims = claims, .tree = tree, .reshaped = reshaped, .is_final = is_final
        };
        const HostView *view;
        int r = claims_host(claims, &view, reterr);

        if (r != 0)
                return r;
        stored = provider_tree_ref(view->tree);
        if (provider_tree_find(stored, &maker->root) && is_behind(view, tree))
                r = decide_moves(&follow, maker, snapshot, stored, reterr);
        /* The reshape wrote consumers, so the stored state of Placement's allocations is out of
         * date. A claim that is behind without a move is no sign of a reshape. */
        if (r == 0 && (follow.n_moved > 0 || reshaped->after.consumers))
                r = claims_forget_reported(claims, reterr);
        if (r == 0 && follow.n_moved > 0)
                r = claims_shift(claims, tree, follow.moves, follow.n_moves, reterr);
        if (r == 0)
                *ret_n_moved = follow.n_moved;
        return r;
}

bool claim_move_follow(ClaimService *service, const TreeMaker *maker, const Snapshot *snapshot,
                       const ProviderTree *tree, const ReshapeImage *reshaped, bool is_final)
{
        Claims *claims = service->claims;
        Error error = ERROR_NULL;
        size_t n_moved = 0;
        int r;

        if (!claims)
                return false;
        r = move_claims(claims, maker, snapshot, tree, reshaped, is_final, &n_moved, &error);
        if (n_moved > 0)
                log_notice("Moved %zu claim%s after the reshape of the provider tree.", n_moved,
                           text_plural(n_moved));
        if (r != 0)
                log_warning("Cannot move claims after the reshape: %s. Retrying.",
                            error_text(&error, r));
        claim_service_check(service, r);
        return r == 0;
}
