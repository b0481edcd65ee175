/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The schema of the database, and the version number in each file.
 *
 * Version 1 is the table of the persistent-claims specification, column for column, and its version
 * table with one row. The newest version adds this program's own columns and tables, and the
 * provider model of the base-models specification. There is one text of the newest schema. A new
 * file is made from it, and the rows of an older file are copied into it (claims/store/upgrade.c).
 *
 * Since the first release, a number is never used twice. The numbers 2 to 8 stand for fourteen
 * shapes on disk, because they were reused before.
 *
 * To change the schema: edit the text, write the next number into SCHEMA_NEWEST and into the text,
 * and add the shape that was newest to tests/unit/claims/store/shapes.sql. */

#include "claims/store/sqlite.h"

#define SCHEMA_NEWEST 10

/* "CLMS" in the header of each file from version 2 on. */
#define SCHEMA_APPLICATION_ID INT64_C(0x434c4d53)

/* Makes the newest schema in an empty file, or beside tables of other names, within the caller's
 * transaction if there is one. */
int schema_create(Sqlite *sqlite, Error *reterr);

/* Returns -EPROTONOSUPPORT with words for the operator. what: name of the unknown part. */
int schema_unknown(const Sqlite *sqlite, const char *what, Error *reterr);

/* Copies the file from the given version (1 … SCHEMA_NEWEST - 1) into the newest schema
 * (upgrade.c). Runs within the caller's transaction; foreign keys must be off. Returns
 * -EPROTONOSUPPORT with words if the file has an unknown table or column, lacks a required one, or
 * has a row that the newest schema rejects. After any failure the caller must roll back. */
int schema_upgrade(Sqlite *sqlite, int64_t version, Error *reterr);
