/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One poll of a hypervisor through libvirt: everything that a Snapshot holds. It asks for XML and
 * hands it to the parsers; what a hypervisor does not support is left out, what vanished since it
 * was listed is left out, everything else that fails fails the poll, but for the
 * size of the disk (disk_error). Devices and domains that the
 * cache knows are not asked for again.
 *
 * Blocks as long as the hypervisor does: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/disk-check.h"
#include "drivers/libvirt/poll-cache.h"

/* disk (may be NULL) is run for the size of the disk: at most DISK_CHECK_TIMEOUT_USEC. Negative
 * errno with words. */
int libvirt_poll(virConnectPtr connection, PollCache *cache, DriverPollKind kind, DiskCheck *disk,
                 Snapshot **ret, Error *reterr);
