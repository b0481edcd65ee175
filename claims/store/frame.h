/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the store share. The frame (frame.c) runs the statements of statements.h, and
 * transactions. It knows no claim and no provider. The values of a statement's parameters are
 * VALUES(…) in the order of the parameters, or NO_VALUES; the wrong number of them is an assertion.
 * Each function blocks for the disk and yields a negative errno with words (claims/store/sqlite.h).
 *
 *      the database file (claim-file.c)
 *        │
 *      Placement (store-placement.c)
 *        │
 *      writers of claims, events (store.c)
 *        │
 *      readers of claims (store-claims.c)   providers (store-host.c)
 *        │
 *      frame (frame.c) ── columns (columns.c) ── SQLite (sqlite.c)
 *
 * Each file calls only files below it. */

#include "claims/store/columns.h"
#include "claims/store/object.h"

/* The conditions of the indexes claims_unheld and claims_write_state, word for word: an index
 * serves a query only so. The first: the consumer was read, and it had no allocation. */
#define IS_UNHELD    "write_state = '' AND reported_generation < 0"
#define IS_UNDER_WAY "write_state IN ('pending', 'owed', 'sent')"

#define MEMORY_MAX UINT64_C(0x7fffffffff) /* MiB; more is damage */

/* The types of rows that the statements refer to, each defined in the file that uses it. A column
 * that is not in its table is written by a trigger or by name in statements.h. */
extern const Row owner_row, claim_row, living_row, reported_row, ended_row;
extern const Row allocation_row, device_row, cell_row, cpu_row;
extern const Row held_row, share_row, taken_row, identity_row, unplaced_row;
extern const Row provider_row, generation_row, inventory_row, trait_row, aggregate_row, usage_row;
extern const Row cell_usage_row;
extern const Row integer_row, event_row, removal_row, move_row, owed_row;

/* Runs a statement that yields no rows. Returns otherwise if it changed no row, those of triggers
 * not counted; CLAIM_DONE: no change is no error. */
int store_run(Claims *claims, StatementId id, const SqliteValue *values, ClaimOutcome otherwise,
              Error *reterr);

/* The same in a write transaction of its own. */
int store_run_alone(Claims *claims, StatementId id, const SqliteValue *values,
                    ClaimOutcome otherwise, Error *reterr);

/* Runs an INSERT of the statement's rows, all of which are bound from the struct at base. values:
 * the parameters behind theirs. */
int store_insert_row(Claims *claims, StatementId id, const void *base, const SqliteValue *values,
                     Error *reterr);

/* Yields a statement ready for sqlite_step(), and its row types, the last one NULL. The caller
 * resets the statement with _cleanup_(statement_resetp). */
int store_query(Claims *claims, StatementId id, const SqliteValue *values, sqlite3_stmt **ret,
                const Row *const **ret_rows, Error *reterr);

/* Yields the first row of a query as the struct of the statement's only row type, which has no
 * borrowed text; members without a column are 0. CLAIM_E_NOT_FOUND without a row. */
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

/* A write transaction: begin joins the turn that was taken; end, which can follow a begin that
 * failed, commits if result is 0 and rolls back otherwise. Yields result, or the commit's error. */
int store_begin(Claims *claims, Error *reterr);
int store_end(Claims *claims, int result, Error *reterr);

/* What is read from begin to end is one state of the file. Begins no transaction within another
 * one; *ret_began, false before, says so to the end. */
int store_begin_read(Claims *claims, bool *ret_began, Error *reterr);
void store_end_read(Claims *claims, bool began);

/* Prepares each statement, and keeps none. -EUCLEAN if the file lacks a table or a column. */
int store_check_statements(Claims *claims, Error *reterr);

/* store.c: writes down, within a transaction, what happened to a claim, which still exists. The
 * event of a pending claim is written, and not listed until the claim is promised. */
int store_note_claim(Claims *claims, int64_t id, const EventNote *note, uint64_t usec,
                     Error *reterr);

/* store-host.c: makes wanted the host, within a transaction. CLAIM_E_RACE. */
int store_write_changes(Claims *claims, const HostView *wanted, Error *reterr);

/* store-host.c: bumps the generation of a provider that is still as the view has it, within a
 * transaction. CLAIM_E_RACE. */
int store_bump(Claims *claims, const HostProvider *provider, Error *reterr);
