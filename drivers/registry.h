/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Creates drivers by their names. */

#include "drivers/driver.h"

/* Creates the driver with this name ("libvirt", "linux", "static") and starts its thread. The
 * thread does not connect before the first poll. The configuration is borrowed and must not
 * change while the driver exists.
 *
 * The new driver replaces before (NULL: none). The caller then sets its member "replaced" and frees
 * it, which waits for none of its calls. If both drivers have the same address, the new one polls
 * after the last call of the old one has returned.
 *
 * An unknown name is -ENOENT. A configuration that the driver rejects is -EINVAL, with the name of
 * the option. Other errors are -ENOMEM, and -EMFILE or -EAGAIN if the descriptors or the thread
 * cannot be created. After an error, before stays in use. */
int driver_new(Driver **ret, const char *name, const DriverConfig *config, Driver *before,
               Error *reterr);

/* Parses the hypervisor's description of a guest (libvirt's domain XML): all members of a
 * SnapshotDomain except its state. Pure. -EBADMSG with an error text, -ENOMEM. */
int driver_read_domain(const char *text, SnapshotDomain *ret, Error *reterr);
