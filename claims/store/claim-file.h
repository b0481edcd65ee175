/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The database file: makes it, opens it, upgrades it, sets it aside when it is damaged. Blocks for
 * the disk, and for another process that opens it at the same time.
 *
 * Openers of one folder take turns by a lock on the folder (flock). Names beside FILE:
 *   FILE.v1-20250820T120000Z       FILE before an upgrade from version 1
 *   FILE.corrupt-20250820T120000Z  what FILE was when it was found damaged, with -wal and -shm
 *   FILE.copying                   a copy in the making; a crash leaves it, the next upgrade
 *                                  overwrites it
 * File and folder are fsynced before the next step relies on a name. */

#include "claims/claim/claim.h"
#include "claims/store/sqlite.h"

/* Reads everything that a user of the file relies on; -EUCLEAN when it is damaged. */
typedef int (*ClaimFileVerify)(Sqlite *sqlite, void *context, Error *reterr);

/* Opens the file, makes it when it is missing or empty, and brings it to SCHEMA_NEWEST. verify (may
 * be NULL) is called on the opened file; when it says -EUCLEAN the file is treated as damaged.
 *
 * Yields a ClaimsOpened; the words for CLAIMS_UPGRADED and CLAIMS_SET_ASIDE are in reterr.
 * Negative: -EPROTONOSUPPORT for a file of a newer program or of an unknown shape, and -EMEDIUMTYPE
 * for a database of another program, all left untouched; -EBUSY after busy_usec; -ENOENT, -EROFS,
 * -EACCES, -ENOSPC, -EIO as the system says. Each with words. */
int claim_file_open(Sqlite **ret, const char *path, uint64_t busy_usec, ClaimFileVerify verify,
                    void *context, Error *reterr);
