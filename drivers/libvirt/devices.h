/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The part of a poll that reads node devices: PCI functions, parents of mediated devices, mediated
 * and vDPA devices. When no event named a device since the last poll, only those are
 * asked for that change silently (a list of 300 devices takes libvirtd 40 ms); else one call lists
 * them all, and one more is made for each that the cache does not know. What vanished since it was
 * listed is left out. Blocks: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/libvirt/poll-cache.h"

/* Adds to snapshot, which has no devices yet. Negative errno with words. */
int libvirt_poll_devices(virConnectPtr connection, PollCache *cache, Snapshot *snapshot,
                         Error *reterr);
