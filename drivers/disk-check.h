/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the file system of [DEFAULT] instances_path, and the folders of servers in it
 * (drivers/host/instance-folders.h), on a thread of its own, because a mount whose
 * server is away can hang for ever. The poll thread waits for the answer for a limited time only.
 *
 * There is one thread at a time: no new one is started until the last one has returned. Both sides
 * hold a reference, so a thread that hangs can outlive the driver. disk_check_run() must not be
 * called from two threads at once. */

#include "base/error.h"
#include "drivers/host/host-config.h"
#include "drivers/host/rbd.h"
#include "drivers/host/snapshot.h"

#define DISK_CHECK_TIMEOUT_USEC UINT64_C(2000000)

/* The findings of one check. */
typedef struct DiskFacts {
        uint64_t total_bytes; /* of the file system; 0: no path is configured */
        Error error;          /* why it is not known, with the option and the path; code 0: it is */
        Uuid *folders;        /* servers with a folder; sorted, owned */
        size_t n_folders;
        Error folders_error; /* why they are not known; code 0: they are */
} DiskFacts;

void disk_facts_done(DiskFacts *facts);

/* Moves the findings to the snapshot, which takes the folders. Leaves facts empty. */
void disk_facts_move(DiskFacts *facts, Snapshot *snapshot);

/* Where the disks of guests are. */
typedef struct DiskPlace {
        const char *path; /* [DEFAULT] instances_path; NULL or "": there is none */
        RbdPool rbd;      /* pool NULL: the disks are files below path */
} DiskPlace;

/* Returns the place that the configuration names; borrowed from it. */
DiskPlace disk_place_of(const HostConfig *config);

/* Fills ret, which is zeroed. Runs on the thread of the check and can block for ever. The figure is
 * kept from one run to the next. */
typedef void (*DiskGather)(const DiskPlace *place, RbdFigure *figure, DiskFacts *ret);

typedef struct DiskCheck DiskCheck;

/* The gatherer of the drivers: statvfs() or rbd_figure_read(), and instance_folders_read(). */
void disk_gather(const DiskPlace *place, RbdFigure *figure, DiskFacts *ret);

/* Copies the place. -ENOMEM. */
int disk_check_new(DiskCheck **ret, const DiskPlace *place, DiskGather gather);
DiskCheck *disk_check_unref(DiskCheck *check); /* NULL-safe, returns NULL; any thread */

/* Replaces *check by before if both have the same place, so that a reload starts no second thread
 * beside one that hangs. Either may be NULL. */
void disk_check_inherit(DiskCheck **check, DiskCheck *before);

/* Starts a new check and waits for at most timeout_usec; not at all while the thread of an earlier
 * run hangs. Without an answer ret has the answer of the run before if it came late, else an error
 * ETIMEDOUT for both. With an error, total_bytes is the last good figure, 0 if there was none.
 * check may be NULL: ret is zeroed. The caller frees ret with disk_facts_done(). */
void disk_check_run(DiskCheck *check, uint64_t timeout_usec, DiskFacts *ret);
