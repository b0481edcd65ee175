/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the kernel, and udev after it, report of devices and CPUs that come, go, or are bound to a
 * driver. Any user may listen. */

#include "base/error.h"

/* A socket that is readable when there is something, or a negative errno: a container may have
 * none. The caller closes it. */
int uevents_open(void);

/* Reads all that there is, without waiting. True when some of it is about what a host is made of
 * (PCI functions, mediated and vDPA devices, CPUs, memory), or when some was lost. */
bool uevents_read(int fd);

/* Whether a message is. Pure. */
bool uevent_counts(const char *message, size_t n);
