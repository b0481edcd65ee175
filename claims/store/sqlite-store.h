/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The SQLite engine of the store: one local file in WAL mode with synchronous=FULL. All statements
 * are tried at open, and each is prepared when it is first run. Several processes may have the file
 * open. */

#include "claims/store/store.h"

/* Opens or makes the file. Yields a ClaimsOpened or a negative errno; see claim_file_open(). A file
 * whose rows cannot be read is damaged too. */
int sqlite_store_open(Store **ret, const char *path, uint64_t busy_usec, Error *reterr);
