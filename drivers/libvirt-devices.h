/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The part of a poll that reads node devices: PCI functions, parents of mediated devices, mediated
 * and vDPA devices. One call lists them all; one more for each that the cache does not know. What
 * vanished since it was listed is left out. Blocks: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/poll-cache.h"

/* Adds to snapshot, which has no devices yet. Negative errno with words. */
int libvirt_poll_devices(virConnectPtr connection, PollCache *cache, Snapshot *snapshot,
                         Error *reterr);
