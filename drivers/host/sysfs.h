/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads small files of /sys and /proc, and facts from them that libvirt lacks: the cells of
 * offline CPUs and the serial numbers of NVMe controllers. A read blocks as long as the driver
 * of the device does. The files are those of this machine, even if libvirtd runs on another one. */

#include "drivers/host/snapshot.h"

#define SYSFS_TEXT_MAX 65536 /* largest file, in bytes */

/* Reads a file up to its first NUL, without trailing white space. The caller frees the text.
 * -EFBIG above SYSFS_TEXT_MAX, -ENOMEM, and the errors of read_file_start(). */
int sysfs_read(const char *path, char **ret);

/* Returns true for an error that means: no file, no device, or a device that does not answer
 * (-EIO). There is then nothing to report. */
bool sysfs_is_gone(int r);

/* Adds present CPUs that no cell lists to their cells, by the links below
 * SYS/devices/system/node. A cell stays unchanged if its node lacks a link to one of its CPUs,
 * because the hypervisor then runs on another machine or numbers its cells differently. Call it
 * after present_cpus is set and before the snapshot is sealed. -ENOMEM. */
int sysfs_complete_cells(const char *sys, Snapshot *snapshot);

/* Sets the serial number of an NVMe controller without one, from the files below folder. Ignores
 * other devices, and files that cannot be read, also for lack of memory. Can block. -ENOMEM if the
 * number cannot be stored. */
int sysfs_read_nvme_serial(const char *folder, SnapshotDevice *device);

/* Removes the mdevs from the snapshot that SYS/bus/mdev/devices no longer has. Call it after the
 * mdevs were listed and then available_instances of their parents were read. An mdev that ends in
 * between would otherwise count twice: as an existing one and as one that can be made. is_local:
 * the snapshot was read from SYS. Otherwise only mdevs are removed whose parent is a PCI function
 * in SYS/class/mdev_bus, because the hypervisor can run on another machine. */
void sysfs_drop_ended_mdevs(const char *sys, bool is_local, Snapshot *snapshot);
