/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/update.h"

#include <errno.h>

#include "drivers/reshape/moves.h"
#include "drivers/tree/child-provider.h"
#include "drivers/tree/cpu-guests.h"
#include "drivers/tree/host-traits.h"
#include "drivers/tree/mdev-providers.h"
#include "drivers/tree/memory-encryption.h"
#include "drivers/tree/numa-providers.h"
#include "drivers/tree/pci-providers.h"
#include "drivers/tree/root-inventory.h"

/* The inputs and intermediate results of one update. */
typedef struct Update {
        const HostConfig *config;
        const Snapshot *snapshot;
        ProviderTree *tree;
        Provider *root;
        CpuPlan cpus;
        HostAmounts amounts;
        MdevPlan mdevs;
        bool moves;    /* allocations move with the tree */
        Error problem; /* names the providers and classes that could not be updated */
} Update;

static void update_done(Update *update)
{
        cpu_plan_done(&update->cpus);
        mdev_plan_done(&update->mdevs);
}

static void limit_amounts(HostAmounts *amounts, Error *problem)
{
        ClassAmount *const all[] = { &amounts->vcpu, &amounts->memory, &amounts->disk };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                Error error = ERROR_NULL;

                (void)class_amount_limit(all[i], &error);
                error_join(problem, &error);
        }
}

static int make_plans(Update *update, Error *reterr)
{
        const HostConfig *config = update->config;
        const Snapshot *snapshot = update->snapshot;
        int r;

        r = cpu_plan_make(config, snapshot, &update->cpus, &update->problem, reterr);
        if (r < 0)
                return r;
        /* Allocations that move must fit. The update after the reshape reserves these CPUs. */
        if (!update->moves && cpu_guests_find(snapshot, &update->cpus, NULL) < 0)
                return error_oom(reterr);
        host_amounts_make(config, snapshot, &update->cpus, &update->amounts);
        limit_amounts(&update->amounts, &update->problem);
        if ((r = numa_check(config, snapshot, &update->cpus, &update->problem, reterr)) < 0)
                return r;
        if (mdev_plan_make(config, snapshot, &update->mdevs) < 0)
                return error_oom(reterr);
        return 0;
}

/* Cells come first, since devices go under them. */
static int edit_providers(Update *update, Error *reterr)
{
        const HostConfig *config = update->config;
        const Snapshot *snapshot = update->snapshot;
        ProviderTree *tree = update->tree;
        Provider *root = update->root;
        Provider heir = { .name = root->name };
        int r;

        if (numa_collect_heir(tree, root, &heir) < 0) {
                provider_clear_inventories(&heir);
                free(heir.inventories);
                return error_oom(reterr);
        }
        r = numa_providers_update(config, snapshot, &update->cpus, &update->amounts, tree, root,
                                  &update->problem, reterr);
        if (r == 0)
                r = mdev_providers_update(config, &update->mdevs, tree, root, &update->problem,
                                          reterr);
        if (r == 0)
                r = memory_encryption_update(config, snapshot, tree, root, &update->problem,
                                             reterr);
        if (r == 0)
                r = root_inventory_update(config, &update->amounts, &snapshot->disk_error, root,
                                          &heir, &update->problem, reterr);
        provider_clear_inventories(&heir);
        free(heir.inventories);
        return r;
}

/* What the host should have, whoever holds what. DRIVER_UPDATED or _IN_PART. */
static int edit(Update *update, Error *reterr)
{
        const HostConfig *config = update->config;
        const Snapshot *snapshot = update->snapshot;
        int r = edit_providers(update, reterr);

        if (r < 0)
                return r;
        if (string_set_add(&update->root->traits, "COMPUTE_NODE") < 0 ||
            child_provider_own(update->root, config) < 0 ||
            host_traits_update(config, snapshot, update->root) < 0)
                return error_oom(reterr);
        r = pci_providers_update(config, snapshot, update->tree, update->root, reterr);
        if (r < 0)
                return r;
        /* last: cells go when devices have left them */
        numa_providers_remove_gone(config, snapshot, update->tree, update->root);
        if (!update->problem.code)
                return r;
        if (reterr)
                *reterr = update->problem;
        return DRIVER_UPDATED_IN_PART;
}

/* Makes the tree as it was before. */
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

static int move_allocations(Update *update, const ProviderTree *before, DriverReshape *reshape,
                            Error *reterr)
{
        const ReshapeHost host = {
                .config = update->config,
                .snapshot = update->snapshot,
                .cpus = &update->cpus,
                .mdevs = &update->mdevs,
                .before = before,
                .after = update->tree,
                .root = update->root,
        };

        return reshape_moves_make(&host, update->tree, reshape, reterr);
}

int provider_update(const HostConfig *config, const Snapshot *snapshot, ProviderTree *tree,
                    const char *nodename, DriverReshape *reshape, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *copy = NULL;
        const ProviderTree *before = reshape ? reshape->before : NULL;
        _cleanup_(update_done) Update update = {
                .config = config,
                .snapshot = snapshot,
                .tree = tree,
                .root = provider_tree_find_name(tree, nodename),
                .moves = reshape && reshape->consumers,
        };
        Error moving = ERROR_NULL;
        int r, moved;

        if (reshape)
                driver_reshape_clear(reshape);
        if (!update.root || !uuid_empty(&update.root->parent))
                return error_setf(reterr, ENOENT, "The tree has no root provider named \"%.100s\"",
                                  nodename);
        r = make_plans(&update, reterr);
        if (r < 0)
                return r;
        if (!before && provider_tree_copy(&copy, tree) < 0)
                return error_oom(reterr);
        before = before ? before : copy;
        r = edit(&update, reterr);
        if (r < 0)
                return r;
        moved = move_allocations(&update, before, reshape, &moving);
        if (moved != DRIVER_UPDATED && reterr)
                *reterr = moving;
        if (moved == DRIVER_RESHAPE_NEEDED)
                return restore(tree, before, reterr);
        return moved != DRIVER_UPDATED ? moved : r;
}
