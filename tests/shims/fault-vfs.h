/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A disk that fails on demand: a VFS of SQLite that counts the calls that change a file (and, when
 * wanted, those that read one), and makes one of them, or it and all later ones, go wrong. A test
 * that uses it is linked with $(FAULT_VFS_WRAPS), so that fsync() and rename() of the code under
 * test count too. */

#include <stdbool.h>

typedef enum Fault {
        FAULT_EIO,       /* reports an I/O error and does nothing */
        FAULT_FULL,      /* reports a full disk and does nothing */
        FAULT_SHORT,     /* writes the first half, then reports a full disk */
        FAULT_KILL,      /* the process dies before the call */
        FAULT_KILL_HALF, /* the process dies in the middle of a write */
        _FAULT_MAX,
} Fault;

/* Makes it the default VFS; once a process. Nothing is ever synced to the real disk. */
void fault_vfs_install(void);

/* The n-th counted call from now on (0: the next one) fails, with sticky all after it too. reads:
 * also count the calls that read. */
void fault_vfs_arm(Fault fault, unsigned n, bool sticky, bool reads);

/* True when the fault was delivered. */
bool fault_vfs_disarm(void);

/* Since the last call: how often a file was synced, and fsync() called; and whether something was
 * written that was not synced afterwards. */
typedef struct SyncCount {
        unsigned n_syncs, n_fsyncs;
        bool unsynced;
} SyncCount;

SyncCount fault_vfs_take_syncs(void);
