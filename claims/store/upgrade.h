/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Brings a database of an older version to the newest schema. */

#include "claims/store/sqlite.h"

/* Copies the file from the given version (1 … SCHEMA_NEWEST - 1) into the newest schema, within the
 * caller's transaction; foreign keys must be off. Returns -EPROTONOSUPPORT with words if the file
 * has a table or a column that this program does not know, lacks one that it needs, or has a row
 * that the newest schema refuses. The caller then rolls back. */
int schema_upgrade(Sqlite *sqlite, int64_t version, Error *reterr);
