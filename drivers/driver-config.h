/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks the options that every driver obeys, without a hypervisor. Pure. */

#include "drivers/host/host-config.h"

/* Returns -EINVAL and the name of the option for a value that no host can have. Examples are an
 * mdev type without a name or listed twice, a device address that is malformed or belongs to two
 * types, and an mdev_class other than VGPU or CUSTOM_…. Further examples are an amount or a
 * ratio that Placement would reject, sets of CPUs that contradict each other (facts C3), and a
 * malformed reserved_huge_pages. It also rejects file_backed_memory with overcommit, and
 * images_type = lvm without a storage pool. */
int driver_config_check(const HostConfig *config, Error *reterr);
