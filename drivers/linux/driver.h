/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The driver of a host without a hypervisor's daemon, which reads the kernel's files (reader.h).
 * It reports devices and amounts by the same names as the libvirt driver, so a host can change
 * from one to the other.
 *
 * Some facts are known only to libvirt, so their values in Placement stay unchanged. These are most
 * traits of emulators (COMPUTE_ and HW_ARCH_), and the size of a storage pool. So are the features
 * of CPU models that are configured by name or with extra flags. The guests are unknown, too. */

#include "drivers/poll-thread.h"

extern const DriverOps linux_driver_ops;
