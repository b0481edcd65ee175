/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/tree-maker.h"

#include <string.h>

#include "drivers/update.h"

static int ensure_root(const TreeMaker *maker, ProviderTree *tree, Error *reterr)
{
        const Provider *root = provider_tree_find(tree, &maker->root);

        if (!root)
                return provider_tree_add(tree, &maker->root, maker->nodename, NULL, NULL, reterr);
        if (strcmp(root->name, maker->nodename) != 0)
                return error_setf(
                        reterr, EEXIST,
                        "This host's provider %s is named \"%.60s\" in Placement, but the host is now \"%.60s\": give the host its old name back, or \"computectl identity rename\"",
                        root->uuid.text, root->name, maker->nodename);
        if (!uuid_empty(&root->parent)) {
                const Provider *parent = provider_tree_find(tree, &root->parent);

                return error_setf(
                        reterr, EINVAL,
                        "This host's provider %s was put below \"%.60s\" in Placement: make it a root again (a PUT of it with parent_provider_uuid null)",
                        root->uuid.text, parent ? parent->name : root->parent.text);
        }
        return 0;
}

static int keep_foreign(const TreeMaker *maker, const ProviderTree *base, ProviderTree *tree)
{
        int r = 0;

        for (size_t i = 0; i < tree->n_providers; i++) {
                Provider *provider = tree->providers[i];
                const Provider *before = base ? provider_tree_find(base, &provider->uuid) : NULL;

                for (char *const *trait = maker->foreign_traits; r >= 0 && trait && *trait; trait++)
                        if (before && string_set_contains(&before->traits, *trait))
                                r = string_set_add(&provider->traits, *trait);
                        else
                                (void)string_set_remove(&provider->traits, *trait);
        }
        return MIN(r, 0);
}

static LocalDisk edit_local_disk(const TreeMaker *maker, const ProviderTree *base,
                                 ProviderTree *tree, bool *ret_was_there)
{
        const Provider *before = base ? provider_tree_find(base, &maker->root) : NULL;
        Provider *root = provider_tree_find(tree, &maker->root);
        bool present = before && provider_find_inventory(before, "DISK_GB");
        LocalDisk decision =
                local_disk_decide(maker->config->report_local_disk, present, &maker->local_disk);

        local_disk_apply(decision, root);
        *ret_was_there = present;
        return decision;
}

/* Sets *ret to Placement's tree without cordons and retained inventories: base itself (borrowed) if
 * it has none, else a copy of tree, which *ret_copy owns. Not for a reshape: there the driver keeps
 * what is allocated, and the inventories stay open until the consumers have moved, because
 * Placement checks the capacity of each amount that it writes. */
static int make_before(const TreeMaker *maker, const DriverReshape *reshape,
                       const ProviderTree *base, ProviderTree *tree, const ProviderTree **ret,
                       ProviderTree **ret_copy)
{
        if (!maker->retained)
                return 0;
        retained_clear(maker->retained, tree);
        if (reshape && reshape->consumers)
                return 0;
        *ret = base;
        if (base && provider_tree_equal(base, tree))
                return 0;
        if (provider_tree_copy(ret_copy, tree) < 0)
                return -ENOMEM;
        *ret = *ret_copy;
        return 0;
}

/* A missing device is expected for as long as a consumer holds it. */
static int want_missing(const TreeMaker *maker)
{
        const DeviceLedger *ledger =
                maker->device_watch ? device_watch_get_ledger(maker->device_watch) : NULL;

        for (size_t i = 0; ledger && i < ledger->n_devices; i++)
                if (ledger->devices[i].missing &&
                    retained_want(maker->retained, &ledger->devices[i].provider) < 0)
                        return -ENOMEM;
        return 0;
}

/* Keeps each inventory that nothing else made and that is in use. */
static int retain(const TreeMaker *maker, const RetainedTrees *trees, ProviderTree *tree,
                  Error *reterr)
{
        return want_missing(maker) < 0 ? error_oom(reterr)
                                       : retained_apply(maker->retained, trees, tree, reterr);
}

/* From the driver's tree to the one that is published. before NULL: nothing is retained. */
static int finish(const TreeMaker *maker, const RetainedTrees *trees, ProviderTree *tree,
                  Error *reterr)
{
        const Retained *retained = trees->before ? maker->retained : NULL;
        int r = 0;

        if (maker->device_watch)
                r = device_watch_apply(maker->device_watch,
                                       maker->claims ? maker->get_claims(maker->claims) : NULL,
                                       trees, retained, tree, reterr);
        if (r >= 0 && maker->cordon)
                r = cordon_apply(maker->cordon, tree, &maker->root, trees->known, reterr);
        if (r >= 0 && maker->provider_config)
                r = provider_config_apply(maker->provider_config, tree, trees->known, reterr);
        if (r >= 0 && retained)
                r = retain(maker, trees, tree, reterr);
        if (r >= 0 && keep_foreign(maker, trees->base, tree) < 0)
                r = error_oom(reterr);
        return r;
}

int tree_maker_make(const TreeMaker *maker, const Snapshot *snapshot, const ProviderTree *base,
                    bool known, DriverReshape *reshape, MadeTree *ret_made, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL, *before = NULL;
        RetainedTrees trees = {
                .base = base, .snapshot = snapshot, .root = &maker->root, .known = known
        };
        Error error = ERROR_NULL;
        LocalDisk local_disk;
        bool disk_was_there;
        int updated, r = base ? provider_tree_copy(&tree, base) : provider_tree_new(&tree);

        if (r < 0)
                return error_oom(reterr);
        local_disk_drop_pools(tree, &maker->root);
        r = ensure_root(maker, tree, reterr);
        if (r < 0)
                return r;
        if (maker->cordon)
                cordon_clear(maker->cordon, tree, &maker->root, known);
        if (make_before(maker, reshape, base, tree, &trees.before, &before) < 0)
                return error_oom(reterr);
        if (reshape)
                reshape->before = trees.before;
        updated = provider_update(maker->config, snapshot, tree, maker->nodename, reshape, &error);
        if (reshape)
                reshape->before = NULL;
        if (updated < 0) {
                if (reterr)
                        *reterr = error;
                return updated;
        }
        local_disk = edit_local_disk(maker, base, tree, &disk_was_there);
        r = finish(maker, &trees, tree, reterr);
        if (r < 0)
                return r;
        *ret_made = (MadeTree){
                .tree = TAKE_PTR(tree),
                .reshape_needed = updated == DRIVER_RESHAPE_NEEDED,
                .local_disk = local_disk,
                .disk_was_there = disk_was_there,
                .device_error = error,
        };
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
