/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which devices are cleaned after each guest ([device_clean NAME]). The agent and
 * compute-agent-prepare use the same rule, each with its own view of the hardware. Pure. */

#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"

/* Returns the section of a device, borrowed, or NULL. A device has one if guests get it whole, a
 * provider counts it alone, and a section lists its address or its resource class. A virtual
 * function has none: its provider counts all functions of the card. */
const HostClean *host_clean_find(const HostConfig *config, const SnapshotDevice *device);

/* Returns true if Nova reserves the device for ever after its first use (one_time_use). */
bool host_clean_is_one_time(const HostConfig *config, const SnapshotDevice *device);
