/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* [pci] report_in_placement: one child provider "<nodename>_<ADDRESS>" for each PCI device or
 * physical function that a spec without a physical_network matches (facts C7, F5). Virtual
 * functions and vDPA devices count on the provider of their physical function. A function that can
 * become a vGPU counts only if it has a type or a domain has it. The provider of devices with a
 * spec is below the cell of ADDRESS, or below the root (numa_parent()). Pure.
 *
 * The total and max_unit of a provider are the number of its devices. Other values of its inventory
 * stay, because an operator might have set them. The reserved amount is limited to the total, and a
 * used one_time_use device is reserved, also after its guest. The traits of a provider are exactly
 * those of pci_spec_add_traits() and the owner trait. A device that the snapshot and a domain of
 * this host have is not removed: without its spec it counts until it is free, unless a spec gives
 * it a physical_network or functions of the other kind count there. Such devices do not raise a
 * total. A provider of such devices alone keeps its class and traits. */

#include "drivers/tree/child-provider.h"

/* Creates, updates and removes providers. A device that Nova would reject affects only its own
 * provider, which stays unchanged. Examples are a physical function together with its virtual
 * functions, or virtual functions of different classes or traits. So does a device that is also a
 * vGPU. A provider that is impossible (child-provider.h) is left out. Each reason is appended to
 * update->problem. A provider that loses its last device is removed, or stays without inventories
 * if it has children. It stays while a domain has its device. If reporting was switched off while
 * providers exist, these stay, and that is a problem as well. Call it after
 * numa_providers_update(). -EINVAL, -ENOMEM. */
int pci_providers_update(TreeUpdate *update, Error *reterr);
