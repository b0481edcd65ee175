/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the size of the disks of guests, and the folders of servers below [DEFAULT] instances_path,
 * on a thread of its own, because a mount whose server is away can hang for ever. The poll thread
 * waits for the answer for a limited time only.
 *
 * There is one thread at a time: no new one is started until the last one has returned. Both sides
 * hold a reference, so a thread that hangs can outlive the driver. disk_check_run() must not be
 * called from two threads at once. */

#include "drivers/host/host-config.h"

#define DISK_CHECK_TIMEOUT_USEC UINT64_C(2000000)

typedef struct DiskCheck DiskCheck;

/* Copies the places that the configuration names. -ENOMEM. */
int disk_check_new(DiskCheck **ret, const HostConfig *config);
DiskCheck *disk_check_unref(DiskCheck *check); /* NULL-safe, returns NULL; any thread */

/* Replaces *check by before if both have the same places, so that a reload starts no second thread
 * beside one that hangs. Either may be NULL. */
void disk_check_inherit(DiskCheck **check, DiskCheck *before);

/* Starts a new check and waits for at most timeout_usec; not at all while the thread of an earlier
 * run hangs. Sets disk_total_bytes, disk_error, instance_folders and folders_error of the snapshot,
 * which has none of them yet. Without an answer they have the one of the run before if it came
 * late, else ETIMEDOUT for both. With an error, disk_total_bytes is the last good figure, 0 if
 * there was none. Sets nothing if check is NULL or no place is configured. */
void disk_check_run(DiskCheck *check, uint64_t timeout_usec, Snapshot *snapshot);
