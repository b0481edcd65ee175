/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The frame of the store: runs the statements of statements.h, and transactions. It knows no claim
 * and no provider. The values of a statement's parameters are VALUES(…) in the
 * order of the parameters, or NO_VALUES; the wrong number of them is an assertion. Each function
 * blocks for the disk and yields a negative errno with words (claims/store/sqlite.h).
 *
 *      open (store-open.c)
 *        │
 *      writers: claims (store.c), moved amounts (store-move.c), Placement (store-placement.c)
 *        │
 *      readers of claims (store-claims.c)
 *        │
 *      providers (store-host.c)   events (store-events.c)
 *        │
 *      frame ── rows, columns ── SQLite
 *
 * Each file calls only files below it. */

#include "claims/store/columns.h"
#include "claims/store/object.h"

/* Runs a statement that yields no rows. */
int store_run(Claims *claims, StatementId id, const SqliteValue *values, Error *reterr);

/* The same; yields otherwise if it changed no row, those of triggers not counted. */
int store_change(Claims *claims, StatementId id, const SqliteValue *values, ClaimOutcome otherwise,
                 Error *reterr);

/* The same in a write transaction of its own. otherwise 0: no change is no error. */
int store_change_alone(Claims *claims, StatementId id, const SqliteValue *values,
                       ClaimOutcome otherwise, Error *reterr);

/* Runs an INSERT of the statement's rows, all of which are bound from the struct at base. values:
 * the parameters behind theirs. */
int store_insert_row(Claims *claims, StatementId id, const void *base, const SqliteValue *values,
                     Error *reterr);

/* Yields a statement ready for sqlite_step(). The caller resets it with
 * _cleanup_(statement_resetp). */
int store_query(Claims *claims, StatementId id, const SqliteValue *values, sqlite3_stmt **ret,
                Error *reterr);

/* Reads the first row of a query into the struct at ret by the statement's only row type, which has
 * no borrowed text. On failure, ret owns what was read so far. CLAIM_E_NOT_FOUND without a row. */
int store_get(Claims *claims, StatementId id, const SqliteValue *values, void *ret, Error *reterr);

/* Reads the number of a query that yields exactly one. Without a row the file is damaged. */
int store_get_integer(Claims *claims, StatementId id, const SqliteValue *values, int64_t *ret,
                      Error *reterr);

/* Adds a row to context. key: the number in column 0. Returns 0 if it took what the row owns, 1 if
 * it ignored the row, -ENOMEM, or another error if the values do not fit each other. */
typedef int (*StoreAdd)(void *context, int64_t key, void *row);

/* Calls add for each row of a query. The statement's only row type is in the last columns. */
int store_each(Claims *claims, StatementId id, const SqliteValue *values, StoreAdd add,
               void *context, Error *reterr);

/* Returns the row types of a statement, the last one NULL. */
const Row *const *store_rows(StatementId id);

/* A write transaction: begin joins the turn that was taken; end, which can follow a begin that
 * failed, commits if result is 0 and rolls back otherwise. Yields result, or the commit's error. */
int store_begin(Claims *claims, Error *reterr);
int store_end(Claims *claims, int result, Error *reterr);

/* What is read from begin to end is one state of the file. Begins no transaction within another
 * one; *ret_began, false before, says so to the end. */
int store_begin_read(Claims *claims, bool *ret_began, Error *reterr);
void store_end_read(Claims *claims, bool began);

/* Prepares each statement. -EUCLEAN if the file lacks a table or a column. */
int store_check_statements(Claims *claims, Error *reterr);
void store_finalize_statements(Claims *claims);
