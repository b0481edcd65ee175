/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* vGPUs of newer NVIDIA drivers, which are no mediated devices: a virtual function of the GPU is
 * made into a vGPU itself, by writing the number of a type to nvidia/current_vgpu_type in its
 * folder of sysfs, and given to a guest as a PCI function.
 *
 * nvidia/creatable_vgpu_types lists what a function can become now, a line "1428 : NVIDIA L40S-2Q"
 * each. The numbers are those of the mediated device types, so that the type is named as there:
 * "nvidia-1428". A function that can become a type has one instance available of it; one that is a
 * vGPU already has one created, and nothing available.
 *
 * LIMITATIONS: the sysfs of this machine is read, whichever machine libvirtd runs on. How many of
 * its functions a GPU can serve at a time is in no file: see [mdev_TYPE] in compute-agent.conf(5).
 */

#include "drivers/host/snapshot.h"

#define VGPU_TYPES_FOLDER "/sys/bus/pci/devices"

/* Adds what the texts of the two files say to a device. Lines that say nothing are passed over:
 * the file has a heading. Pure. -ENOMEM. */
int vgpu_types_parse(const char *creatable, const char *current, SnapshotDevice *device);

/* Reads the files of a virtual function of NVIDIA's below folder; any other device, and one whose
 * driver is of another kind or does not answer, is left as it is. -ENOMEM; another -errno with
 * words when the files are there and cannot be read. */
int vgpu_types_read(const char *folder, SnapshotDevice *device, Error *reterr);
