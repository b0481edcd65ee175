/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The inventories of the root provider (facts C2): VCPU, PCPU, MEMORY_MB and DISK_GB, or DISK_GB
 * alone where NUMA cells have the others. Pure. */

#include "base/provider-tree.h"
#include "drivers/tree/host-amounts.h"

/* Replaces the root's inventories: they are the driver's own. A class with a total of 0 is left out
 * (facts G4.7). DISK_GB of a size that is not known (disk_error) stays as the root has it.
 * That is a problem, unless it has none and it is a folder that is not there (joined to
 * problem). heir is for class_amount_record(). -ENOMEM. */
int root_inventory_update(const HostConfig *config, const HostAmounts *amounts,
                          const Error *disk_error, Provider *root, const Provider *heir,
                          Error *problem, Error *reterr);
