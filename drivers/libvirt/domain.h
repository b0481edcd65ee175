/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* libvirt's domain XML: what a guest is given of the host. Pure: text in, struct out. */

#include "drivers/host/snapshot.h"

/* Reads all of a SnapshotDomain but its state, which the XML does not have. Devices that
 * are not named by a uuid or a PCI address that fits are left out. -EBADMSG with words, -ENOMEM. */
int domain_parse(const char *text, SnapshotDomain *ret, Error *reterr);
