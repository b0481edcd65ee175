/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the tree that the host should have. An update first makes the plans (CPUs, amounts, mdevs),
 * then keeps a copy of the tree, edits the tree, and lets drivers/reshape move the allocations. If
 * the caller gives an equal tree (reshape->before), no copy is needed.
 *
 * TreeUpdate has everything that one update needs. The order of the steps matters: NUMA cells come
 * before the devices below them, and cells that are gone are removed after their devices. If
 * allocations would have to move but must not, the content of the edited tree is replaced by that
 * of the tree before. After an error the tree is undefined. No state is kept between calls of
 * provider_update().
 *
 * Tests: tests/unit/drivers/test-update.c */

#include "drivers/update.h"

#include <errno.h>

#include "drivers/reshape/moves.h"
#include "drivers/tree/host-traits.h"
#include "drivers/tree/mdev-providers.h"
#include "drivers/tree/memory-encryption.h"
#include "drivers/tree/numa-providers.h"
#include "drivers/tree/pci-providers.h"
#include "drivers/tree/shape-providers.h"

static void update_done(TreeUpdate *update)
{
        cpu_plan_done(&update->cpus);
        mdev_plan_done(&update->mdevs);
        provider_clear_inventories(&update->heir);
        free(update->heir.inventories);
}

/* Limits the reserved amounts of VCPU, MEMORY_MB and DISK_GB to their totals. Adds the reasons to
 * problem. */
static void limit_amounts(HostAmounts *amounts, Error *problem)
{
        ClassAmount *const all[] = { &amounts->vcpu, &amounts->memory, &amounts->disk };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                Error error = ERROR_NULL;

                (void)class_amount_limit(all[i], &error);
                error_join(problem, &error);
        }
}

/* Makes the plans of the update. moves: the caller allows allocations to move. */
static int make_plans(TreeUpdate *update, bool moves, Error *reterr)
{
        const HostConfig *config = update->config;
        const Snapshot *snapshot = update->snapshot;
        int r;

        r = cpu_plan_make(config, snapshot, &update->cpus, &update->problem, reterr);
        if (r < 0)
                return r;
        /* A reshape needs the CPUs of guests as capacity, so only an update without moves
         * reserves them. The update after the reshape does so. */
        if (!moves && cpu_guests_find(snapshot, &update->cpus, NULL) < 0)
                return error_oom(reterr);
        host_amounts_make(config, snapshot, &update->cpus, &update->amounts);
        limit_amounts(&update->amounts, &update->problem);
        if ((r = numa_check(config, snapshot, &update->cpus, &update->problem, reterr)) < 0)
                return r;
        if (mdev_plan_make(config, snapshot, update->known, &update->mdevs) < 0)
                return error_oom(reterr);
        return 0;
}

/* Returns whether instances_path is missing, as on a host that has no local disks of guests. Never
 * true with a storage pool. */
static bool is_never_there(const HostConfig *config, const Error *disk_error)
{
        return !config->images_storage_pool &&
               (disk_error->code == ENOENT || disk_error->code == ENOTDIR);
}

/* Replaces the root's inventories, all of which belong to the driver (facts C2). A class with a
 * total of 0 is left out (facts G4.7), and so is one that numa_in_placement puts into cells. If the
 * size of the disk is unknown, DISK_GB keeps the value that the root has, or else the last measured
 * size, if there is one. An unknown size is a problem, unless the root has no DISK_GB, no storage
 * pool is configured, and the folder is missing. -ENOMEM, or -EINVAL of
 * provider_set_inventory(). */
static int update_root(TreeUpdate *update, Error *reterr)
{
        const HostConfig *config = update->config;
        const HostAmounts *amounts = &update->amounts;
        const Error *disk_error = &update->snapshot->disk_error;
        Provider *root = update->root;
        const ClassAmount *classes[] = { &amounts->disk, &amounts->vcpu, &amounts->pcpu,
                                         &amounts->memory };
        const Inventory *disk = provider_find_inventory(root, amounts->disk.resource_class);
        bool keep_disk = disk_error->code && disk;
        Inventory records[ARRAY_SIZE(classes)];
        int r;

        /* make all records first, because the ratios are read from the old ones */
        for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
                records[i] = keep_disk && classes[i] == &amounts->disk
                                     ? *disk
                                     : class_amount_record(classes[i], root, &update->heir);
        provider_clear_inventories(root);
        for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
                if (records[i].total == 0 || !numa_is_at_root(config, classes[i]->resource_class))
                        continue;
                r = provider_set_inventory(root, classes[i]->resource_class, &records[i]);
                if (r < 0)
                        return error_prefixf(reterr, r, "Inventory %s of %s",
                                             classes[i]->resource_class, root->name);
        }
        if (disk_error->code && (keep_disk || !is_never_there(config, disk_error))) {
                Error error;

                error_setf(&error, disk_error->code, "%s; DISK_GB %s", disk_error->text,
                           keep_disk                 ? "stays unchanged"
                           : amounts->disk.total > 0 ? "keeps its last measured value"
                                                     : "is not reported");
                error_join(&update->problem, &error);
        }
        return 0;
}

/* Edits the providers with amounts. The cells come first, because devices go below them. */
static int edit_providers(TreeUpdate *update, Error *reterr)
{
        int r;

        if ((r = numa_providers_update(update, reterr)) < 0 ||
            (r = mdev_providers_update(update, reterr)) < 0 ||
            (r = memory_encryption_update(update, reterr)) < 0)
                return r;
        return update_root(update, reterr);
}

/* Edits the tree into the one that the host should have, without regard to allocations. Returns
 * DRIVER_UPDATED, or DRIVER_UPDATED_IN_PART with words if the plans or this edit found a problem
 * (update->problem). On an error the tree is undefined. */
static int edit(TreeUpdate *update, Error *reterr)
{
        int r = edit_providers(update, reterr);

        if (r < 0)
                return r;
        if (string_set_add(&update->root->traits, "COMPUTE_NODE") < 0 ||
            child_provider_own(update, update->root) < 0 ||
            host_traits_update(update->config, update->snapshot, update->root) < 0)
                return error_oom(reterr);
        if ((r = pci_providers_update(update, reterr)) < 0 ||
            (r = shape_providers_update(update, reterr)) < 0)
                return r;
        /* last, because a cell can go only after its devices have left it */
        numa_providers_remove_gone(update);
        if (!update->problem.code)
                return DRIVER_UPDATED;
        if (reterr)
                *reterr = update->problem;
        return DRIVER_UPDATED_IN_PART;
}

/* Replaces the content of the tree by a copy of before. Pointers into the tree become invalid.
 * Returns DRIVER_RESHAPE_NEEDED, or -ENOMEM. */
static int restore(ProviderTree *tree, const ProviderTree *before, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *copy = NULL;
        ProviderTree edited = *tree;

        if (provider_tree_copy(&copy, before) < 0)
                return error_oom(reterr);
        *tree = *copy;
        *copy = edited;
        return DRIVER_RESHAPE_NEEDED;
}

int provider_update(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                    ProviderTree *tree, const char *nodename, DriverReshape *reshape, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *copy = NULL;
        const ProviderTree *before = reshape ? reshape->before : NULL;
        _cleanup_(update_done) TreeUpdate update = {
                .config = config,
                .snapshot = snapshot,
                .known = known,
                .tree = tree,
                .root = provider_tree_find_name(tree, nodename),
        };
        Error moving = ERROR_NULL;
        int r, moved;

        if (reshape)
                driver_reshape_clear(reshape);
        if (!update.root || !uuid_empty(&update.root->parent))
                return error_setf(reterr, ENOENT, "The tree has no root provider named \"%.100s\"",
                                  nodename);
        r = make_plans(&update, reshape && reshape->consumers, reterr);
        if (r < 0)
                return r;
        if (!before && provider_tree_copy(&copy, tree) < 0)
                return error_oom(reterr);
        before = before ? before : copy;
        update.before = before;
        update.heir.name = update.root->name;
        r = edit(&update, reterr);
        if (r < 0)
                return r;
        moved = reshape_moves_make(&update, reshape, &moving);
        if (moved != DRIVER_UPDATED && reterr) {
                if (moved == DRIVER_UPDATED_IN_PART && r == DRIVER_UPDATED_IN_PART)
                        error_join(reterr, &moving);
                else
                        *reterr = moving;
        }
        if (moved == DRIVER_RESHAPE_NEEDED)
                return restore(tree, before, reterr);
        return moved != DRIVER_UPDATED ? moved : r;
}
