/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs one poll of a hypervisor through libvirt, which fills a Snapshot. The hypervisor can lack
 * node devices, a version and a map of CPUs. Objects that vanish during the poll are skipped, as
 * are devices whose read fails without a reason from libvirt. Any other device or domain that
 * cannot be read is a problem of the snapshot, and such a domain is in its list as "unread". An
 * unknown size of the disk sets disk_error, and unknown folders of servers set folders_error. Every
 * other failure fails the poll. The cache decides which devices and domains are read again.
 *
 * Blocks as long as the hypervisor does: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/disk-check.h"
#include "drivers/libvirt/poll-cache.h"

/* Polls and returns a sealed snapshot, without the facts that driver.c adds. disk can be
 * NULL; otherwise the poll waits for it for at most DISK_CHECK_TIMEOUT_USEC. Negative errno with an
 * error text. A poll that began and failed has emptied the cache. */
int libvirt_poll(virConnectPtr connection, PollCache *cache, DriverPollKind kind, DiskCheck *disk,
                 Snapshot **ret, Error *reterr);
