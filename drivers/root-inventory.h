/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The inventories of the root provider by Nova's formulas (facts C2): VCPU, MEMORY_MB, DISK_GB.
 * Pure. */

#include "drivers/driver.h"

/* Replaces the root's inventories: they are the driver's own. A class with a total of 0 is left out
 * (facts G4.7). The allocation ratio is the configured one; where none is, the one that the root
 * has, so that an operator's change in Placement survives; where it has none, the initial one.
 * -EINVAL when more is reserved than there is, -ENOMEM. */
int root_inventory_update(const DriverConfig *config, const Snapshot *snapshot, Provider *root,
                          Error *reterr);
