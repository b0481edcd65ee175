/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The serial number of an NVMe controller, which has no VPD: nvme/nvmeN/serial in its folder of
 * sysfs.
 *
 * LIMITATIONS: the file exists only while the kernel's nvme driver is bound. The sysfs of this
 * machine is read, whichever machine libvirtd runs on. */

#include "drivers/host/snapshot.h"

/* Sets the serial number of an NVMe controller without one, from the files below folder. Ignores
 * other devices and files that cannot be read. Blocks as long as the kernel does. -ENOMEM. */
int nvme_serial_read(const char *folder, SnapshotDevice *device);
