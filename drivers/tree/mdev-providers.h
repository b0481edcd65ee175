/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One provider "<nodename>_<device>" per device that offers mediated devices, below the root or,
 * with cells in Placement, below the cell that the device is attached to. Pure. */

#include "drivers/tree/child-provider.h"

/* Makes or adopts (by its name) the provider of each offer of update->mdevs, sets its inventory and
 * the owner trait, puts it below the cell of its device, and removes those of devices that offer
 * nothing any more (facts G2.5): the ones that have a device's name and the owner trait, or nothing
 * but inventories of mdev classes. One that somebody else put providers under stays, without
 * inventories. Traits and aggregates are left alone. A device whose provider cannot be had
 * (child-provider.h) is left out, and update->problem says why. -EINVAL, -ENOMEM. */
int mdev_providers_update(TreeUpdate *update, Error *reterr);

/* The provider of a device, or NULL. */
Provider *mdev_providers_find(const ProviderTree *tree, const Provider *root,
                              const SnapshotDevice *device);

/* Whether mediated devices may be reported in this class. */
bool mdev_providers_have_class(const HostConfig *config, const char *resource_class);
