/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the tree that a host should have. tree_maker_make() copies Placement's tree or an earlier
 * one, or begins with an empty tree. Each part edits the copy in a fixed order, and the error of a
 * part ends this without a tree. Before the driver edits the copy, the reservations of device
 * cordons and of retained inventories are removed (cordon_clear(), retained_clear()). Afterwards
 * they are applied again. So the driver and the device watch do not see the reservations in a tree
 * of Placement. The functions that decide about the local disk are pure, and so are those that
 * derive trees for the claims and for nova-compute. The tracker and the reshape call this file. */

#include "agent/tree/tree-maker.h"

#include <inttypes.h>
#include <string.h>

#include "claims/claim/host-view.h"
#include "drivers/update.h"

static const char disk_class[] = "DISK_GB";

/* Decides about the local disk. present: DISK_GB of the root in Placement, or NULL. DISK_GB that
 * must leave the tree is withheld, and not left out, in two cases: a claim has some of it, or
 * Placement has it and it is or might be allocated. Placement rejects the removal of an allocated
 * inventory. */
static LocalDisk decide_local_disk(const TreeMaker *maker, const Inventory *present)
{
        int option = maker->config->report_local_disk; /* HostLocalDisk */
        bool is_offered = present && present->reserved < present->total;
        bool may_be_shared =
                maker->local_disk.pool[0] || (maker->local_disk.pools_unread && !is_offered);
        bool leaves =
                option == HOST_LOCAL_DISK_NO || (option == HOST_LOCAL_DISK_AUTO && may_be_shared);

        if (!maker->local_disk.owned || !leaves)
                return LOCAL_DISK_OFFERED;
        if (maker->local_disk.claimed > 0 ||
            (present && (!maker->local_disk.allocated_known || maker->local_disk.allocated > 0)))
                return LOCAL_DISK_WITHHELD;
        return LOCAL_DISK_LEFT_OUT;
}

/* Describes the decision in one sentence without full stop: DISK_GB is left out, or it is still in
 * the tree and withheld because it is or might be allocated. The text names the reason, which is
 * the sharing provider if one is known, and a known amount. It is "" for LOCAL_DISK_OFFERED. */
static void describe_local_disk(const TreeMaker *maker, LocalDisk decision,
                                char text[static LOCAL_DISK_TEXT_MAX])
{
        uint64_t claimed = maker->local_disk.claimed;
        uint64_t amount = MAX(maker->local_disk.allocated, claimed);
        const char *name = maker->local_disk.pool;
        const char *why = name[0] ? "provider "
                          : maker->config->report_local_disk == HOST_LOCAL_DISK_NO
                                  ? "report_local_disk is no"
                                  : "the sharing providers were not read yet",
                   *shares = name[0] ? " shares DISK_GB" : "";

        text[0] = '\0';
        if (decision == LOCAL_DISK_LEFT_OUT)
                snprintf(text, LOCAL_DISK_TEXT_MAX, "Local DISK_GB is not reported: %s%s%s", why,
                         name, shares);
        else if (decision == LOCAL_DISK_WITHHELD && !maker->local_disk.allocated_known &&
                 claimed == 0)
                snprintf(text, LOCAL_DISK_TEXT_MAX,
                         "Local DISK_GB is withheld: %s%s%s; its usage is unknown", why, name,
                         shares);
        else if (decision == LOCAL_DISK_WITHHELD)
                snprintf(text, LOCAL_DISK_TEXT_MAX,
                         "Local DISK_GB is withheld: %s%s%s; %" PRIu64 " of it is still allocated",
                         why, name, shares, amount);
}

/* Removes sharing providers without children that are roots beside the host's own. The tree that
 * claims had before the start has them; Placement's tree of a host has none. */
static void drop_pools(ProviderTree *tree, const Uuid *root)
{
        for (size_t i = tree->n_providers; i > 0; i--) {
                const Provider *provider = tree->providers[i - 1];
                Uuid uuid = provider->uuid;

                if (uuid_empty(&provider->parent) && !uuid_equal(&uuid, root) &&
                    string_set_contains(&provider->traits, TRAIT_SHARES_VIA_AGGREGATE) &&
                    !provider_tree_has_children(tree, &uuid))
                        (void)provider_tree_remove(tree, &uuid);
        }
}

/* Adds the root provider if tree has none. Checks the name and the place of an existing one,
 * because the agent does not rename or move it. */
static int ensure_root(const TreeMaker *maker, ProviderTree *tree, Error *reterr)
{
        const Provider *root = provider_tree_find(tree, &maker->root);

        if (!root)
                return provider_tree_add(tree, &maker->root, maker->nodename, NULL, NULL, reterr);
        if (strcmp(root->name, maker->nodename) != 0)
                return error_setf(
                        reterr, EEXIST,
                        "This host's provider %s is named \"%.60s\" in Placement, but the host is now \"%.60s\". If another host has the old name, this host is a clone of it: stop the agent, and remove compute_id and the other files of state_dir. If not, restore the old name of the host, or run \"computectl identity rename\"",
                        root->uuid.text, root->name, maker->nodename);
        if (!uuid_empty(&root->parent)) {
                const Provider *parent = provider_tree_find(tree, &root->parent);

                return error_setf(
                        reterr, EINVAL,
                        "This host's provider %s is a child of \"%.60s\" in Placement. Make it a root again (PUT with parent_provider_uuid null)",
                        root->uuid.text, parent ? parent->name : root->parent.text);
        }
        return 0;
}

/* Restores the foreign traits as they are in base: they are added where base has them, and removed
 * elsewhere. CORDON_TRAIT is left to the cordon, which keeps that of another writer, too. */
static int keep_foreign(const TreeMaker *maker, const ProviderTree *base, ProviderTree *tree)
{
        int r = 0;

        for (size_t i = 0; i < tree->n_providers; i++) {
                Provider *provider = tree->providers[i];
                const Provider *before = base ? provider_tree_find(base, &provider->uuid) : NULL;

                for (char *const *trait = maker->foreign_traits; r >= 0 && trait && *trait;
                     trait++) {
                        if (strcmp(*trait, CORDON_TRAIT) == 0)
                                continue;
                        if (before && string_set_contains(&before->traits, *trait))
                                r = string_set_add(&provider->traits, *trait);
                        else
                                (void)string_set_remove(&provider->traits, *trait);
                }
        }
        return MIN(r, 0);
}

/* Decides about the local disk, applies the decision to tree and describes it. */
static void edit_local_disk(const TreeMaker *maker, const ProviderTree *base, ProviderTree *tree,
                            MadeTree *made)
{
        const Provider *before = base ? provider_tree_find(base, &maker->root) : NULL;
        Provider *root = provider_tree_find(tree, &maker->root);
        Inventory *disk = provider_find_inventory(root, disk_class);
        const Inventory *present = before ? provider_find_inventory(before, disk_class) : NULL;

        made->disk_was_there = present;
        made->local_disk = decide_local_disk(maker, present);
        if (made->local_disk == LOCAL_DISK_LEFT_OUT)
                (void)provider_remove_inventory(root, disk_class);
        else if (made->local_disk == LOCAL_DISK_WITHHELD && disk)
                disk->reserved = disk->total;
        describe_local_disk(maker, made->local_disk, made->local_disk_words);
}

/* Removes the reservations of retained inventories from tree, a copy of base without those of
 * device cordons. Sets *ret to base itself (borrowed) if tree still equals it, else to a copy of
 * tree, which *ret_copy owns. Leaves *ret NULL without maker->retained. */
static int make_before(const TreeMaker *maker, const ProviderTree *base, ProviderTree *tree,
                       const ProviderTree **ret, ProviderTree **ret_copy)
{
        if (!maker->retained)
                return 0;
        retained_clear(maker->retained, tree);
        *ret = base;
        if (base && provider_tree_equal(base, tree))
                return 0;
        if (provider_tree_copy(ret_copy, tree) < 0)
                return -ENOMEM;
        *ret = *ret_copy;
        return 0;
}

/* Adds the providers of missing devices, and of those that can be cleaned, to those whose
 * allocations are read from Placement. A missing device stays expected as long as a consumer has an
 * allocation from its provider, and a device is not cleaned then. Placement cannot be asked about a
 * provider that it does not have. */
static int want_devices(const TreeMaker *maker, const RetainedTrees *trees)
{
        const DeviceLedger *ledger = maker->device_watch ? &maker->device_watch->ledger : NULL;

        for (size_t i = 0; ledger && i < ledger->n_devices; i++)
                if ((ledger->devices[i].missing || ledger->devices[i].cleanable) && trees->base &&
                    provider_tree_find(trees->base, &ledger->devices[i].provider) &&
                    retained_want(maker->retained, &ledger->devices[i].provider) < 0)
                        return -ENOMEM;
        return 0;
}

/* Retains the inventories of trees->before that are or might be in use, and that no other part made
 * (retained_apply()). */
static int retain(const TreeMaker *maker, const RetainedTrees *trees, ProviderTree *tree,
                  Error *reterr)
{
        return want_devices(maker, trees) < 0
                       ? error_oom(reterr)
                       : retained_apply(maker->retained, trees, tree, reterr);
}

/* Restores the inventories in use that base has and tree lacks, at providers of both, for example
 * of a class whose entry left provider.yaml. Placement rejects the whole reshape if a class in use
 * loses its inventory. */
static int keep_in_use(const Allocations *consumers, const ProviderTree *base, ProviderTree *tree)
{
        for (size_t i = 0; consumers && i < consumers->n_consumers; i++) {
                const Consumer *consumer = consumers->consumers[i];

                for (size_t j = 0; j < consumer->n_allocations; j++) {
                        const Allocation *used = &consumer->allocations[j];
                        const Provider *before = provider_tree_find(base, &used->provider);
                        Provider *after = provider_tree_find(tree, &used->provider);

                        for (size_t k = 0; before && after && k < used->resources.n_items; k++) {
                                const char *name = used->resources.items[k].resource_class;
                                const Inventory *old = provider_find_inventory(before, name);

                                if (old && !provider_find_inventory(after, name) &&
                                    provider_set_inventory(after, name, old) < 0)
                                        return -ENOMEM;
                        }
                }
        }
        return 0;
}

/* Makes the published tree from the driver's tree. The order is fixed: devices, cordons, files of
 * the operator, retained inventories, foreign traits. A tree that waits for a reshape
 * (RetainedTrees.old_shape) still has inventories that the host lost. In it the retained ones are
 * also closed before the files, so that the files can make inventories again. A reshape with
 * consumers retains no further inventory, but keeps those that the moved consumers and the others
 * use. Those retained before stay reserved: reshape_image_open() opens those of consumers that the
 * request writes. */
static int finish(const TreeMaker *maker, const RetainedTrees *trees, const DriverReshape *reshape,
                  ProviderTree *tree, Error *reterr)
{
        bool moves = reshape && reshape->consumers;
        int r = 0;

        if (maker->device_watch)
                r = device_watch_apply(maker->device_watch,
                                       maker->claims ? maker->get_claims(maker->claims) : NULL,
                                       trees, maker->retained, tree, reterr);
        if (r >= 0 && maker->cordon)
                r = cordon_apply(maker->cordon, tree, &maker->root, trees->known, reterr);
        if (r >= 0 && maker->retained && trees->old_shape)
                retained_close(maker->retained, tree);
        if (r >= 0 && maker->provider_config)
                r = provider_config_apply(maker->provider_config, tree, trees->base, trees->known,
                                          reterr);
        if (r >= 0 && moves && trees->base &&
            (keep_in_use(reshape->consumers, trees->base, tree) < 0 ||
             keep_in_use(reshape->others, trees->base, tree) < 0))
                r = error_oom(reterr);
        if (r >= 0 && moves && maker->retained)
                retained_close(maker->retained, tree);
        else if (r >= 0 && trees->before)
                r = retain(maker, trees, tree, reterr);
        if (r >= 0 && keep_foreign(maker, trees->base, tree) < 0)
                r = error_oom(reterr);
        return r;
}

/* Updates the facts about devices that a snapshot lacks, such as those of claims and cordons, and
 * returns them (device_watch_note_facts()). Returns NULL without a device watch, or if memory is
 * short. */
static const DeviceFacts *note_facts(const TreeMaker *maker, const Snapshot *snapshot)
{
        _cleanup_(string_set_done) StringSet left = STRING_SET_INIT;

        if (!maker->device_watch || (maker->list_left && maker->claims &&
                                     maker->list_left(maker->claims, maker->config, &left) < 0))
                return NULL;
        return device_watch_note_facts(maker->device_watch,
                                       maker->claims ? maker->get_claims(maker->claims) : NULL,
                                       maker->cordon, &left, snapshot);
}

int tree_maker_make(const TreeMaker *maker, const Snapshot *snapshot, const ProviderTree *base,
                    bool known, DriverReshape *reshape, MadeTree *ret_made, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL, *before = NULL;
        RetainedTrees trees = {
                .base = base, .snapshot = snapshot, .root = &maker->root, .known = known
        };
        Error error = ERROR_NULL;
        MadeTree made = { 0 };
        int updated, r = base ? provider_tree_copy(&tree, base) : provider_tree_new(&tree);

        if (r < 0)
                return error_oom(reterr);
        drop_pools(tree, &maker->root);
        r = ensure_root(maker, tree, reterr);
        if (r < 0)
                return r;
        if (maker->cordon)
                cordon_clear(maker->cordon, tree, &maker->root, known);
        if (make_before(maker, base, tree, &trees.before, &before) < 0)
                return error_oom(reterr);
        if (reshape)
                reshape->before = trees.before;
        updated = provider_update(maker->config, snapshot, note_facts(maker, snapshot), tree,
                                  maker->nodename, reshape, &error);
        if (reshape)
                reshape->before = NULL;
        if (updated < 0) {
                if (reterr)
                        *reterr = error;
                return updated;
        }
        edit_local_disk(maker, base, tree, &made);
        trees.old_shape = updated == DRIVER_RESHAPE_NEEDED;
        r = finish(maker, &trees, reshape, tree, reterr);
        if (r < 0)
                return r;
        made.tree = TAKE_PTR(tree);
        made.reshape_needed = updated == DRIVER_RESHAPE_NEEDED;
        made.device_error = error;
        *ret_made = made;
        return 0;
}

int tree_maker_make_empty(const TreeMaker *maker, const Snapshot *snapshot,
                          const ProviderTree *base, bool known, MadeTree *ret_made, Error *reterr)
{
        _cleanup_(allocations_freep) Allocations *nobody = NULL;
        _cleanup_(driver_reshape_done) DriverReshape reshape = { 0 };

        if (allocations_new(&nobody) < 0)
                return error_oom(reterr);
        reshape.consumers = nobody;
        return tree_maker_make(maker, snapshot, base, known, &reshape, ret_made, reterr);
}

void tree_maker_note_pool(TreeMaker *maker, const ProviderTree *pools)
{
        maker->local_disk.pool[0] = '\0';
        for (size_t i = 0; pools && i < pools->n_providers; i++) {
                const Provider *pool = pools->providers[i];

                if (!string_set_contains(&pool->traits, TRAIT_SHARES_VIA_AGGREGATE) ||
                    !provider_find_inventory(pool, disk_class))
                        continue;
                snprintf(maker->local_disk.pool, sizeof(maker->local_disk.pool), "%s", pool->name);
                return;
        }
}

/* Copies the reserved amounts of wanted to inventories that both providers have. If "more" is true,
 * copies only amounts that are larger than those of provider. */
static void merge_provider(Provider *provider, const Provider *wanted, bool more)
{
        for (size_t i = 0; i < provider->n_inventories; i++) {
                InventoryRecord *record = &provider->inventories[i];
                const Inventory *other = provider_find_inventory(wanted, record->resource_class);
                uint64_t least = more ? record->inventory.reserved : 0;

                if (other)
                        record->inventory.reserved = MAX(other->reserved, least);
        }
}

int nova_tree_to_claim(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                       ProviderTree **ret)
{
        bool known = provider_tree_find(remote, root);
        int r = provider_tree_copy(ret, known ? remote : wanted);

        if (r >= 0)
                drop_pools(*ret, root);
        for (size_t i = 0; r >= 0 && known && i < (*ret)->n_providers; i++) {
                Provider *provider = (*ret)->providers[i];
                const Provider *other = provider_tree_find(wanted, &provider->uuid);

                if (other)
                        merge_provider(provider, other, true);
        }
        return r;
}

int nova_tree_to_send(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                      ProviderTree **ret)
{
        int r = provider_tree_copy(ret, remote);

        for (size_t i = 0; r >= 0 && i < (*ret)->n_providers; i++) {
                Provider *provider = (*ret)->providers[i];
                const Provider *other = provider_tree_find(wanted, &provider->uuid);

                if (other && nova_keeps_reserved(*ret, root, provider))
                        merge_provider(provider, other, false);
        }
        return r;
}
