/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The providers that a driver keeps below its root: cells, devices, memory encryption. Pure. */

#include "drivers/tree/host-amounts.h"
#include "drivers/tree/mdev-plan.h"

/* One update of the tree: the host, the plans that follow from it, and the tree that is edited. */
typedef struct TreeUpdate {
        const HostConfig *config;
        const Snapshot *snapshot;
        ProviderTree *tree;
        Provider *root;             /* of the tree */
        const ProviderTree *before; /* the tree as Placement has it; for drivers/reshape alone */
        CpuPlan cpus;
        HostAmounts amounts;
        MdevPlan mdevs;
        Provider heir; /* has the inventories that cells had before: the root inherits their ratios
                        */
        Error problem; /* names the providers and classes that could not be updated */
} TreeUpdate;

/* Of a buffer for a name. More than Placement takes: one that does not even fit this is refused all
 * the same. */
#define CHILD_NAME_SIZE (2 * PROVIDER_NAME_MAX)

/* Finds the provider of this name, or makes it with the uuid that its name and the root give (so it
 * is the same after a loss of all state), and puts it under parent: the root, or a provider below
 * it, both of the tree. *ret is borrowed from the tree.
 *
 * *ret is NULL if the child cannot be had, which costs this child and no other: another writer has
 * the name outside of root's subtree, Placement takes no such name, its uuid has another name, or
 * parent lies below it. The reason is joined to update->problem. -ENOMEM. */
int child_provider_ensure(TreeUpdate *update, const Provider *parent, const char *name,
                          Provider **ret);

/* Returns the provider that another writer renamed: it has the uuid that the child of this name
 * gets. It must stay as it is. Borrowed; NULL when there is none. */
Provider *child_provider_find_renamed(const ProviderTree *tree, const Provider *root,
                                      const char *name);

/* Adds our trait to a provider that is ours, where one is configured. -ENOMEM. */
int child_provider_own(const TreeUpdate *update, Provider *provider);

/* Removes a provider. One below which other writers put theirs stays, without inventory. Returns
 * false if it stayed. */
bool child_provider_remove(const TreeUpdate *update, Provider *provider);
