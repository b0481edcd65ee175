/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the size of the disks of guests, and the folders of servers below [DEFAULT] instances_path.
 * The size is that of the file system of instances_path. With images_type = rbd, an images_rbd_pool
 * and no images_storage_pool it is that of the Ceph cluster (drivers/host/rbd.h). It uses a thread,
 * because a mount whose server is away can hang for ever. The poll thread waits for the answer for
 * a limited time only.
 *
 * One thread of a DiskCheck runs at a time: a new one starts only after the last one has returned.
 * Both sides own a reference, so a thread that hangs can outlive the driver. Two threads must not
 * call disk_check_run() at the same time. */

#include "drivers/host/host-config.h"

#define DISK_CHECK_TIMEOUT_USEC UINT64_C(2000000)

typedef struct DiskCheck DiskCheck;

/* Copies the configured places: instances_path, and the Ceph pool if the size is that of a cluster.
 * -ENOMEM. */
int disk_check_new(DiskCheck **ret, const HostConfig *config);
DiskCheck *disk_check_unref(DiskCheck *check); /* NULL-safe, returns NULL; any thread */

/* Replaces *check by before if both have the same places. A reload thus starts no second thread
 * beside one that hangs. *check then owns a new reference to before, and its old one is released.
 * Both can be NULL. */
void disk_check_inherit(DiskCheck **check, DiskCheck *before);

/* Starts a check and waits up to timeout_usec. While the thread of an earlier run still works or
 * hangs, it does neither. Sets disk_total_bytes, disk_error, instance_folders and folders_error of
 * the snapshot, which must not have them yet.
 *
 * Without an answer in time it uses a late answer of the run before. If there is none, both errors
 * are ETIMEDOUT, or the error of the start of the thread. After folders_error the list is empty.
 * With disk_error, disk_total_bytes is the last size that was read without an error, or 0. Sets
 * nothing if check is NULL or no place is configured. */
void disk_check_run(DiskCheck *check, uint64_t timeout_usec, Snapshot *snapshot);
