/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reading the small files of /sys and /proc, and what libvirt calls the devices there. Blocks as
 * long as a device's driver takes to answer. */

#include "base/error.h"

#define SYSFS_TEXT_MAX 65536 /* bytes of a file */

/* The text of a file, without the white space that it ends with, and up to its first NUL. -EFBIG
 * above SYSFS_TEXT_MAX, -ENOMEM, those of read_file_start(). */
int sysfs_read(const char *path, char **ret);

/* The file is not there, or its device or driver left, or does not answer: nothing to report. */
bool sysfs_is_gone(int r);

/* libvirt's name of a device, "pci_0000_41_00_0" of "pci" and "0000:41:00.0"; every driver's, so
 * that a host keeps its providers when it changes its driver. NULL when out of memory. */
char *sysfs_device_name(const char *subsystem, const char *name);
