/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One child provider "<nodename>_shapes_<NAME>" for each section [device_shapes NAME], with one
 * inventory. Pure.
 *
 * The total is the number of members, whether the host lists them or not: the configuration names
 * the devices that are expected. The min_unit is the smallest amount of a partition, and step_size
 * the greatest common divisor of all amounts. The max_unit is the largest amount that fits now, or
 * min_unit if none fits. Members without a claim that are missing, withheld, or in use are
 * reserved. A device of slots that is missing, withheld, or on a card in use only excludes its
 * partition. If no partition fits, all is reserved that no claim has. So Placement refuses each
 * amount while it has the allocations of all claims. The provider is below the NUMA cell of its
 * devices if all that the host lists are in one (numa_parent()), else below the root. It does not
 * move while the host lists none.
 *
 * LIMITATIONS: allocations of Placement without a claim do not reduce max_unit. An amount below
 * max_unit can have no free partition. Placement cannot express this, so the claim is refused. */

#include "drivers/tree/child-provider.h"

/* End of the name of a set's provider before the set's own name. No PCI address and no libvirt name
 * of a device begins with it. */
#define SHAPE_PREFIX    "shapes_"
#define SHAPE_NAME_SIZE (sizeof(SHAPE_PREFIX) + DEVICE_SET_ID_MAX)

/* Writes the end of the name of the set's provider: "shapes_hgx". */
void shape_name(const DeviceSet *set, char ret[static SHAPE_NAME_SIZE]);

/* Checks that no device of the set that the host lists can be given out in another way too: as a
 * device of [pci] device_spec, or in vGPUs. The virtual functions of a device and its physical
 * function count as the device. Returns -EINVAL with words for such a device, else -ENODEV with
 * words if the host does not list all devices of the set. */
int shape_check(const HostConfig *config, const Snapshot *snapshot, const DeviceSet *set,
                Error *reterr);

/* Creates, updates and removes the providers. One with children stays without inventories instead
 * of being removed. A provider that is impossible (child-provider.h) is left out. Missing devices
 * are joined to update->problem. A set that shape_check() refuses with -EINVAL affects only its own
 * provider, of which all is reserved if it exists under its own name. Each reason is joined to
 * update->problem. -EINVAL, -ENOMEM. */
int shape_providers_update(TreeUpdate *update, Error *reterr);
