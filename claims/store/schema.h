/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The versions of the database's schema, and the steps between them.
 *
 * Version 1 is the table of the persistent-claims specification, column for column, and its version
 * table with one row. Version 2 adds what this program needs and the provider model of the
 * base-models specification. A new file climbs the same ladder from 0, so that each step is in use
 * and tested.
 *
 * To change the schema once version 2 was released: add a step and SCHEMA_NEWEST, never edit an old
 * one; add a fixture of the version that was newest to the tests. */

#include "claims/store/sqlite.h"

#define SCHEMA_NEWEST 2

/* "CLMS" in the header of each file from version 2 on. */
#define SCHEMA_APPLICATION_ID INT64_C(0x434c4d53)

/* Which version the file has; 0: an empty file. Reads only. -EUCLEAN for a damaged one,
 * -EMEDIUMTYPE for a database of another program. */
int schema_read_version(Sqlite *sqlite, int64_t *ret_version, Error *reterr);

/* One step up from the given version (0 … SCHEMA_NEWEST - 1), within the caller's transaction. */
int schema_step(Sqlite *sqlite, int64_t version, Error *reterr);
