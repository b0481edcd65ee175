/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which drivers there are. */

#include "drivers/driver.h"

/* Makes the driver of that name ("libvirt", "linux", "static") and starts its threads; it does not
 * connect yet. The configuration is borrowed and must not change while the driver lives. before
 * (may be NULL) is the one whose place it takes, and which is freed next: no call of that one is
 * waited for then, and where both ask the same hypervisor this one asks when that one's call is
 * over. -ENOENT for an unknown name, -EINVAL for a configuration that the driver refuses (with the
 * option's name), -ENOMEM, -EAGAIN. */
int driver_new(Driver **ret, const char *name, const DriverConfig *config, Driver *before,
               Error *reterr);

/* Reads a guest as the hypervisor describes it (libvirt's domain XML): all of a SnapshotDomain but
 * its state. Pure. -EBADMSG with words, -ENOMEM. */
int driver_read_domain(const char *text, SnapshotDomain *ret, Error *reterr);
