/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* NUMA cells as providers, with [compute] numa_in_placement = true: one child "<nodename>_NUMA<id>"
 * of the root per cell that the hypervisor lists, with the trait HW_NUMA_ROOT and the cell's share
 * of VCPU, PCPU and MEMORY_MB, and its hugepages as CUSTOM_HUGEPAGES_<size> (facts C9, G1: Nova has
 * no such providers). With root, VCPU and MEMORY_MB stay at the root: Nova's scheduler takes no
 * host whose root gives nothing. Pure.
 *
 * Shares add up to the amounts of the root. The host's reserved amounts are shared out by size
 * between the cells that have CPUs and memory. In a cell that lacks either, all is reserved
 * (decision devices/cpuless). */

#include "base/allocation.h"
#include "drivers/tree/child-provider.h"

/* Returns the provider that a device of that NUMA node belongs under: the cell's, or the root when
 * cells are not in Placement, the device has no node, or its cell has no provider. The devices of a
 * cell that another writer renamed stay where they are. Borrowed from the tree. Cells must be up to
 * date. */
const Provider *numa_parent(const HostConfig *config, const ProviderTree *tree,
                            const Provider *root, int numa_node);

/* Is a class that cells may have, or DISK_GB, at the root? */
bool numa_is_at_root(const HostConfig *config, const char *resource_class);

/* Can this host be reported by cells? -EINVAL with words when cells are wanted and it has
 * none, or a CPU is in two of them. 0 when cells are not wanted. What costs no more than itself is
 * joined to problem: a CPU for guests that is in no cell is left out, of
 * hugepages of which more are reserved than there are, all are, and cells may have no memory. */
int numa_check(const HostConfig *config, const Snapshot *snapshot, const CpuPlan *cpus,
               Error *problem, Error *reterr);

/* Returns whether a cell has CPUs but no memory. False for a hypervisor that reports the memory of
 * no cell. */
bool numa_lacks_memory(const Snapshot *snapshot, const SnapshotCell *cell);

/* Was this provider made here for a cell? Whose it is, its name and its trait say together. */
bool numa_is_cell(const ProviderTree *tree, const Provider *root, const Provider *provider,
                  unsigned *ret_cell);

/* Collects update->heir from the cells of the tree. Then makes or adopts (by its name) the provider
 * of each cell and sets its inventories and traits, unless cells are not wanted. A cell whose
 * provider cannot be had (child-provider.h) is left out, and update->problem says why. -EINVAL,
 * -ENOMEM. */
int numa_providers_update(TreeUpdate *update, Error *reterr);

/* Removes the providers of cells that are gone, or of all when cells are not wanted; devices must
 * have been moved from under them. One that somebody else put providers under stays, without
 * inventories and trait. */
void numa_providers_remove_gone(const TreeUpdate *update);
