/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the providers of devices that are blocked (decision devices/parts). A provider that counts
 * a whole card is blocked if a domain has a part of the card: a virtual function or an mdev. A
 * provider that counts virtual functions or mdevs is blocked if a domain has the whole card. A
 * provider of the mdevs of a virtual function is also blocked if a domain has this function. Other
 * parts do not block each other. The running and the persistent definition of a domain both count.
 * If a domain also has a thing that the provider itself counts, the provider is not blocked. So its
 * allocation can be written again. Pure.
 *
 * LIMITATIONS: claims without a domain do not count here; the fit knows them
 * (claims/fit/taken.h). */

#include "base/string-set.h"
#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"

/* The uses of devices by domains. Valid as long as the snapshot and the configuration. */
typedef struct DeviceBlocks {
        const HostConfig *host;
        const Snapshot *snapshot;
        StringSet taken; /* PCI addresses and mdevs of domains, by any of their definitions */
        const SnapshotDevice **functions; /* virtual functions, sorted by their physical function */
        size_t n_functions;
} DeviceBlocks;

/* Fills ret and borrows both arguments. host decides whether a provider counts a card or its
 * functions; NULL: no device is blocked. Returns 0 or -ENOMEM. The caller calls
 * device_blocks_done() also after a failure. */
int device_blocks_make(DeviceBlocks *ret, const HostConfig *host, const Snapshot *snapshot);
void device_blocks_done(DeviceBlocks *blocks);

/* Returns the virtual functions of the card with that PCI address, borrowed from blocks. *ret_n is
 * their number, which can be 0. */
const SnapshotDevice *const *device_blocks_functions(const DeviceBlocks *blocks, const char *card,
                                                     size_t *ret_n);

/* Returns the PCI address or mdev that blocks the provider of the device, or NULL. key is the end
 * of the provider's name: libvirt's name of the device if the provider counts mdevs, else its
 * address. */
const char *device_blocks_find(const DeviceBlocks *blocks, const char *key,
                               const SnapshotDevice *there);
