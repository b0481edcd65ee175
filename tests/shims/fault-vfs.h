/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A disk that fails on demand. It is a VFS of SQLite that counts the calls that change a file, and
 * on demand those that read one. It makes one of these calls fail, or that one and all later ones.
 * A test that uses it is linked with $(FAULT_VFS_WRAPS), so that fsync() and rename() of the tested
 * code count too. */

#include <stdbool.h>

typedef enum Fault {
        FAULT_EIO,       /* reports an I/O error and does nothing */
        FAULT_FULL,      /* reports a full disk and does nothing */
        FAULT_SHORT,     /* writes the first half, then reports a full disk */
        FAULT_KILL,      /* the process dies before the call */
        FAULT_KILL_HALF, /* the process dies in the middle of a write */
        _FAULT_MAX,
} Fault;

/* Makes it the default VFS; once in a process. Files are never synced to the real disk. */
void fault_vfs_install(void);

/* Makes the n-th counted call from now on (0: the next one) fail; sticky: also all later ones.
 * reads: counts calls that read too. */
void fault_vfs_arm(Fault fault, unsigned n, bool sticky, bool reads);

/* Stops failing. Returns true if the fault was delivered. */
bool fault_vfs_disarm(void);

/* Counters since the last call: syncs of a file, calls of fsync(), and whether a write was not
 * synced afterwards. */
typedef struct SyncCount {
        unsigned n_syncs, n_fsyncs;
        bool unsynced;
} SyncCount;

SyncCount fault_vfs_take_syncs(void);
