/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The driver of a host without a hypervisor's daemon: what Linux itself shows (reader.h). It finds
 * what the libvirt driver finds, by the same names, so that a host may change between the two, but
 * for what libvirt alone knows, which is left in Placement as it is: what guests may have (the
 * COMPUTE_ and HW_ARCH_ traits, contexts of encrypted memory), features of CPU models that are
 * configured by name, the size of a storage pool, and which guests there are. */

#include "drivers/poll-thread.h"

extern const DriverOps linux_driver_ops;
