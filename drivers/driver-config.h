/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks the options that every driver obeys, without a hypervisor. Pure. */

#include "drivers/host/host-config.h"

/* Returns -EINVAL with an error text that names the option, for a value that no host can have.
 * -ENOMEM. Rejects these values:
 *
 *   A ratio that is negative, no finite number, or above Placement's maximum.
 *   An amount above Placement's maximum, in the unit of the option.
 *   Sets of CPUs that are malformed, without a CPU, or contradict each other (facts C3).
 *   A malformed reserved_huge_pages, and two entries of it for the same cell and size.
 *   With file_backed_memory: a ram_allocation_ratio that is set and not 1.0, as much or more
 *   reserved_host_memory_mb, or a virt_type other than kvm and qemu.
 *   An images_type of lvm without a storage pool, and an owner_trait that is no trait.
 *   An mdev type without a name or listed twice, and an mdev_class other than VGPU or CUSTOM_….
 *   A malformed device address, and a path that belongs to two mdev types.
 *   A PCI address that belongs to two types of one class.
 *   A [pci] device_spec that contradicts report_in_placement. */
int driver_config_check(const HostConfig *config, Error *reterr);
