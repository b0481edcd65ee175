/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which providers of devices are blocked: a domain has the card of what they count, or a part of it
 * (decision devices/parts). Both definitions of a running domain count. A provider of which a
 * domain has something itself is not blocked, so that its allocation can be written again. Pure.
 *
 * LIMITATIONS: claims without a domain do not count here; the fit knows them (claims/fit/taken.h).
 */

#include "base/string-set.h"
#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"

typedef struct DeviceBlocks {
        const HostConfig *host;
        const Snapshot *snapshot;
        StringSet taken; /* PCI addresses and mdevs that domains have by one of their definitions */
        const SnapshotDevice **functions; /* virtual ones, by the physical function */
        size_t n_functions;
} DeviceBlocks;

/* host says whether a provider counts a card or its functions; NULL: no device is blocked. Borrows
 * both. -ENOMEM; the caller calls device_blocks_done() in any case. */
int device_blocks_make(DeviceBlocks *ret, const HostConfig *host, const Snapshot *snapshot);
void device_blocks_done(DeviceBlocks *blocks);

/* Returns the virtual functions of the card with that PCI address, *ret_n of them; borrowed. */
const SnapshotDevice *const *device_blocks_functions(const DeviceBlocks *blocks, const char *card,
                                                     size_t *ret_n);

/* Returns the PCI address or mdev that blocks the provider of the device; NULL when none does. key
 * is what the name of the provider ends with: libvirt's name of the device if the provider counts
 * mdevs, else its address. */
const char *device_blocks_find(const DeviceBlocks *blocks, const char *key,
                               const SnapshotDevice *there);
