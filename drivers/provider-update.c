/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/provider-update.h"

#include <errno.h>

#include "drivers/mdev-providers.h"
#include "drivers/mdev-reshape.h"
#include "drivers/pci-providers.h"
#include "drivers/root-inventory.h"

static int add_root_traits(const DriverConfig *config, Provider *root)
{
        if (string_set_add(&root->traits, "COMPUTE_NODE") < 0)
                return -ENOMEM;
        if (config->owner_trait && config->owner_trait[0] &&
            string_set_add(&root->traits, config->owner_trait) < 0)
                return -ENOMEM;
        return 0;
}

int provider_update(const DriverConfig *config, const Snapshot *snapshot, ProviderTree *tree,
                    const char *nodename, Allocations *allocations, Error *reterr)
{
        _cleanup_(mdev_plan_done) MdevPlan mdevs = { 0 };
        Provider *root = provider_tree_find_name(tree, nodename);
        bool reshape;
        int r;

        if (!root || !uuid_empty(&root->parent))
                return error_setf(reterr, ENOENT, "The tree has no root provider named \"%.100s\"",
                                  nodename);
        if (mdev_plan_make(config, snapshot, &mdevs) < 0)
                return error_oom(reterr);

        /* nothing is edited before this is decided: the caller keeps the tree as it is then */
        reshape = mdev_reshape_needed(&mdevs, root);
        if (reshape && !allocations)
                return DRIVER_RESHAPE_NEEDED;

        r = mdev_providers_update(config, &mdevs, tree, root, reterr);
        if (r < 0)
                return r;
        if (reshape) {
                r = mdev_reshape(snapshot, &mdevs, tree, root, allocations, reterr);
                if (r < 0)
                        return r;
        }
        r = root_inventory_update(config, snapshot, root, reterr);
        if (r < 0)
                return r;
        if (add_root_traits(config, root) < 0)
                return error_oom(reterr);
        /* last: its words must not be written over */
        return pci_providers_update(config, snapshot, tree, root, reterr);
}
