/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* NUMA cells as providers, with [compute] numa_in_placement = true. Each cell that the
 * hypervisor lists is a child "<nodename>_NUMA<id>" of the root, with the trait HW_NUMA_ROOT. It
 * has the cell's part of VCPU, PCPU and MEMORY_MB, and its hugepages as CUSTOM_HUGEPAGES_<size>
 * (facts C9, G1: Nova has no such providers). With numa_in_placement = root, VCPU and MEMORY_MB
 * stay at the root, because Nova's scheduler rejects a host whose root has neither. Pure.
 *
 * The amounts that are reserved for the host are shared out by size over the cells with memory and
 * a CPU that is online or that guests can use. These parts add up to the whole, unless a part is
 * larger than its cell or no such cell has an amount of the class. In another cell all is reserved
 * (decision devices/cpuless). If the hypervisor reports the memory of no cell, no cell lacks it. */

#include "base/allocation.h"
#include "drivers/tree/child-provider.h"

/* Returns the provider below which a device of this NUMA node belongs: its cell, or the root. It is
 * the root if cells are not in Placement, the device has no node, or its cell has no provider below
 * the root. The devices of a cell that another writer renamed stay below it. Borrowed from the
 * tree. Call it after numa_providers_update(). */
const Provider *numa_parent(const HostConfig *config, const ProviderTree *tree,
                            const Provider *root, int numa_node);

/* Returns whether the class is at the root. The class is VCPU, PCPU, MEMORY_MB or DISK_GB. */
bool numa_is_at_root(const HostConfig *config, const char *resource_class);

/* Checks whether the host can be reported by cells. Returns 0 if cells are not configured, -EINVAL
 * with an error text if the host has no cells or a CPU is in two of them, and -ENOMEM.
 *
 * Smaller faults are joined to problem: a CPU for guests that is in no cell (it is left out), and
 * more reserved hugepages than a cell has of a size that it lists (all of them are reserved). So is
 * a host with memory of which no cell has any. Shared CPUs and memory at the root cause none. */
int numa_check(const HostConfig *config, const Snapshot *snapshot, const CpuPlan *cpus,
               Error *problem, Error *reterr);

/* Returns whether a cell has CPUs but no memory. False if the hypervisor reports no memory for
 * any cell. */
bool numa_lacks_memory(const Snapshot *snapshot, const SnapshotCell *cell);

/* Returns whether the provider is a cell of this host, by its name, its trait and its place in
 * the tree. */
bool numa_is_cell(const ProviderTree *tree, const Provider *root, const Provider *provider,
                  unsigned *ret_cell);

/* Collects update->heir from the cells of the tree. If cells are configured, it then creates the
 * provider of each cell or adopts it by its name, and sets its inventories and traits. A cell
 * whose provider is impossible (child-provider.h) is left out, and update->problem has the
 * reason. -EINVAL, -ENOMEM. */
int numa_providers_update(TreeUpdate *update, Error *reterr);

/* Removes the providers of cells that are gone, or each one that numa_is_cell() knows if cells are
 * not configured. The devices must have moved before. If another writer has providers below one, it
 * stays without inventories and trait. While cells are configured, the provider of a present cell
 * that another writer renamed stays unchanged. */
void numa_providers_remove_gone(const TreeUpdate *update);
