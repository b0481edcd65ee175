/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the living claims of functions, and the devices that must be cleaned, from the agent's
 * database. A mediated device counts as the function above it, without a type. Devices that are not
 * on PCI are left out. A dirty device without a PCI address is an error.
 *
 * The folder of the database belongs to the agent, which is not root. So a child process becomes
 * the owner of the folder and reads a copy of the database, and this process reads the child's
 * document as untrusted text. */

#include "config/config.h"
#include "prepare/plan.h"

/* Reads the claims. A database that is missing or was never used yields no claims, complete = false
 * and missing = true. ret must be zeroed.
 *
 * Returns the errors of folder_owner_become() and of the reads of the database, except -ENOENT, and
 * those of pipe2(2), read(2) and fork(2), all with words. Else returns -EBADMSG for an invalid
 * document, -ETIMEDOUT if the child does not end within 30 s, -EFBIG for a document of more than 16
 * MiB, -EIO if the child writes none, or -ENOMEM. Blocks on the disk, and up to 5 s for a lock of
 * the database. "complete" is also false if Placement is configured, but was not read for a new
 * database yet. */
int prepare_read_claims(const Config *config, PrepareClaims *ret, Error *reterr);

/* Parses the document of the child (claims.c). Its code ENOENT is no error: it yields no claims,
 * complete = false and missing = true. Returns another error of the child with words, -EBADMSG for
 * an invalid document, or -ENOMEM. ret must be zeroed. Pure. */
int prepare_parse_claims(const char *text, size_t n, PrepareClaims *ret, Error *reterr);
