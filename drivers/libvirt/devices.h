/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the node devices of a poll: PCI functions, parents of mediated devices, mediated devices
 * and vDPA devices.
 *
 * If the cache has all devices (poll_cache_knows_devices()), only devices that change silently are
 * read, because a list of 300 devices takes libvirtd 40 ms. A poll of guests alone does not read
 * these either. Otherwise one call lists all devices, and one call reads each device that the cache
 * lacks or, except in a poll of guests alone, that changes silently. A device that vanishes during
 * the poll is skipped, and one that cannot be read is a problem of the snapshot. A hypervisor
 * without node devices has none. Blocks: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/libvirt/poll-cache.h"

/* Adds the devices and mdevs to the snapshot, which has none yet. Negative errno with an error text
 * if the connection broke, memory is short, or the devices cannot be listed by name. */
int libvirt_poll_devices(virConnectPtr connection, PollCache *cache, Snapshot *snapshot,
                         Error *reterr);
