/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the small files of /sys and /proc, and from them the facts that every driver lacks: the
 * cells of offline CPUs and serial numbers of NVMe controllers. Blocks as long as a device's driver
 * takes to answer. The sysfs of this machine is read, whichever machine libvirtd runs on. */

#include "drivers/host/snapshot.h"

#define SYSFS_TEXT_MAX 65536 /* bytes of a file */

/* The text of a file, without the white space that it ends with, and up to its first NUL. -EFBIG
 * above SYSFS_TEXT_MAX, -ENOMEM, those of read_file_start(). */
int sysfs_read(const char *path, char **ret);

/* The file is not there, or its device or driver left, or does not answer: nothing to report. */
bool sysfs_is_gone(int r);

/* Adds to the cells the present CPUs that no cell lists, as the links below
 * SYS/devices/system/node have them. A cell is left as it is if its node lacks a link to one of
 * its own CPUs: the hypervisor is on another machine, or numbers its cells in another way.
 * Reads sysfs; call it before the snapshot is sealed, and after present_cpus is set. -ENOMEM. */
int sysfs_complete_cells(const char *sys, Snapshot *snapshot);

/* Sets the serial number of an NVMe controller without one, from the files below folder. Ignores
 * other devices and files that cannot be read. Blocks as long as the kernel does. -ENOMEM. */
int sysfs_read_nvme_serial(const char *folder, SnapshotDevice *device);
