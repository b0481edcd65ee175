/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A digest of the hardware of a host, by which a fleet finds hosts whose hardware differs. */

#include "base/digest.h"
#include "drivers/host/snapshot.h"

/* Makes the digest of kind, class and number of what was polled: processor, its features and number
 * of CPUs, memory of each cell, and devices by vendor, product, class and cell. Memory counts in
 * GiB. These are not part of it: names, addresses, serial numbers, uuids, drivers, file systems,
 * versions of programs, and everything that guests change. The snapshot must be sealed. Pure.
 * -ENOMEM. */
int hardware_make_digest(const Snapshot *snapshot, Digest *ret);
