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

int tree_maker_make(const TreeMaker *maker, const Snapshot *snapshot, const ProviderTree *base,
                    bool known, DriverReshape *reshape, MadeTree *ret_made, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
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
        updated = provider_update(maker->config, snapshot, tree, maker->nodename, reshape, &error);
        if (updated < 0) {
                if (reterr)
                        *reterr = error;
                return updated;
        }
        local_disk = edit_local_disk(maker, base, tree, &disk_was_there);
        if (maker->device_watch)
                r = device_watch_apply(maker->device_watch, snapshot, tree, &maker->root, known,
                                       reterr);
        if (r >= 0 && maker->cordon)
                r = cordon_apply(maker->cordon, tree, &maker->root, known, reterr);
        if (r >= 0 && maker->provider_config)
                r = provider_config_apply(maker->provider_config, tree, known, reterr);
        if (r >= 0 && keep_foreign(maker, base, tree) < 0)
                r = error_oom(reterr);
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
