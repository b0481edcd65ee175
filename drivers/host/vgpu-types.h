/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* vGPUs of newer NVIDIA drivers, which are not mediated devices. A virtual function of the GPU
 * becomes a vGPU when the number of a type is written to nvidia/current_vgpu_type in its sysfs
 * folder. A guest gets it as a PCI function.
 *
 * nvidia/creatable_vgpu_types lists the types that the function can become now, for example
 * "1428 : NVIDIA L40S-2Q". The numbers are those of mediated device types, so the type has the
 * same name here: "nvidia-1428". A function that can become a type has one available instance of
 * it. A function that is a vGPU has one created instance, and none available.
 *
 * Limits: the sysfs of this machine is read, even if libvirtd runs on another one. No file says
 * how many functions of a GPU can be vGPUs at the same time; see [mdev_TYPE] in
 * compute-agent.conf(5). */

#include "drivers/host/snapshot.h"

#define VGPU_TYPES_FOLDER "/sys/bus/pci/devices"

/* Adds the types in the texts of the two files to the device, and marks it as a vGPU function.
 * Ignores lines without a type; the file has a heading. Pure. After -ENOMEM the device has some of
 * the types. */
int vgpu_types_parse(const char *creatable, const char *current, SnapshotDevice *device);

/* Reads the files of a virtual function of NVIDIA below folder. Other devices stay unchanged, and
 * so does a device that has mdev types already or whose driver lacks creatable_vgpu_types. A
 * missing current_vgpu_type means that the function is no vGPU now. Returns -ENOMEM, or another
 * -errno with an error text if the files exist but cannot be read, or if the driver does not
 * answer. Such a device, except after -ENOMEM, is marked as a vGPU function and as unread. The
 * function clears vgpu_unread before it reads the files. Blocks as long as the driver does. */
int vgpu_types_read(const char *folder, SnapshotDevice *device, Error *reterr);
