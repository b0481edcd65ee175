/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One provider "<nodename>_<device>" for each device that offers vGPUs: a parent of mediated
 * devices, or a card whose virtual functions become vGPUs. It is below the cell of the device, or
 * below the root (numa_parent()). Pure. */

#include "drivers/tree/child-provider.h"

/* Edits the providers of all offers in update->mdevs. It creates a provider or adopts one by its
 * name, replaces its inventories, adds the owner trait, and puts it below the cell of its device. A
 * card has one inventory for each type that it offers. Other traits and aggregates stay.
 *
 * It removes the providers of devices that offer nothing any more (facts G2.5). Such a provider has
 * the name of a device, and inventories, all of mdev classes; for a PCI device the owner trait is
 * enough. A provider with the owner trait of another program stays, and so does one that another
 * writer renamed while its device has offers. If another writer has providers below one, it stays
 * without inventories. A device whose provider is impossible (child-provider.h) is left out, and
 * update->problem has the reason. -EINVAL, -ENOMEM. */
int mdev_providers_update(TreeUpdate *update, Error *reterr);

/* Returns the provider with the name for this device (libvirt's name), wherever it is in the tree.
 * Borrowed, or NULL. */
Provider *mdev_providers_find(const ProviderTree *tree, const Provider *root,
                              const char *device_name);

/* Returns whether mediated devices can have this class. */
bool mdev_providers_have_class(const HostConfig *config, const char *resource_class);
