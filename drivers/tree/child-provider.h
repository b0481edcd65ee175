/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Providers that a driver owns below its root: cells, devices, memory encryption. Pure. */

#include "drivers/tree/host-amounts.h"
#include "drivers/tree/mdev-plan.h"

/* One update of the tree: the host, the plans that follow from it, and the tree that is edited. */
typedef struct TreeUpdate {
        const HostConfig *config;
        const Snapshot *snapshot;
        const DeviceFacts *known; /* facts about devices beside the snapshot, or NULL */
        ProviderTree *tree;
        Provider *root;             /* root of the tree */
        const ProviderTree *before; /* the tree as Placement has it; only drivers/reshape uses it */
        CpuPlan cpus;
        HostAmounts amounts;
        MdevPlan mdevs;
        /* Inventories that cells had before. The root inherits their allocation ratios. */
        Provider heir;
        Error problem; /* names the providers and classes that were not updated */
} TreeUpdate;

/* Size of a buffer for a name. It is larger than Placement's limit, so that Placement's rule,
 * and not the buffer, decides whether a name is too long. */
#define CHILD_NAME_SIZE (2 * PROVIDER_NAME_MAX)

/* Finds the provider with this name, or creates it. Its uuid is made from its name and the
 * root's uuid, so it stays the same after all state is lost. The function puts it below parent,
 * which is the root or a provider below it in the same tree. *ret is borrowed from the tree.
 *
 * *ret is NULL if this child is impossible, which affects no other child. The reasons: the name
 * is in use outside of the root's subtree or is invalid for Placement, another provider has the
 * uuid, or parent is below the child. The reason is joined to update->problem. -ENOMEM. */
int child_provider_ensure(TreeUpdate *update, const Provider *parent, const char *name,
                          Provider **ret);

/* Returns the provider that another writer renamed: it has the uuid of the child with this name,
 * but another name. The caller must not change it. Borrowed; NULL if there is none. */
Provider *child_provider_find_renamed(const ProviderTree *tree, const Provider *root,
                                      const char *name);

/* Adds the owner trait, if one is configured. -ENOMEM. */
int child_provider_own(const TreeUpdate *update, Provider *provider);

/* Removes a provider. If other writers created providers below it, it stays without inventories.
 * Returns false if it stayed. */
bool child_provider_remove(const TreeUpdate *update, Provider *provider);
