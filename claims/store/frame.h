/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parts that the files of the store share. The frame (frame.c) runs the statements of
 * statements.h, and transactions. It knows no claim and no provider. The values of a statement's
 * parameters are VALUES(…) in the order of the parameters, or NO_VALUES. Too few values fail an
 * assertion, and too many return -EIO. Each function that can fail blocks for the disk, and
 * returns a negative errno with words (claims/store/sqlite.h).
 *
 *       the database file (claim-file.c)
 *                     │
 *       Placement (store-placement.c)
 *                     │
 *       writers of claims, events (store.c)
 *                     │
 *       readers of claims (store-claims.c)   providers (store-host.c)
 *                     │
 *       frame (frame.c) ── columns (columns.c) ── SQLite (sqlite.c)
 *
 * Each of these files calls only those below it. The files schema.c and upgrade.c serve
 * claim-file.c, and use sqlite.c. The file store-unclean.c uses the frame. */

#include "claims/store/columns.h"
#include "claims/store/object.h"

/* The conditions of the indexes claims_unheld and claims_write_state, word for word: SQLite uses an
 * index only for an equal condition. IS_UNALLOCATED: the consumer was read, and it had no
 * allocation. The name of its index and the text 'owed' (CLAIM_WRITE_UNSENT) are older than the
 * names in the code. They stay, because a rename is no reason for a migration. */
#define IS_UNALLOCATED "write_state = '' AND reported_generation < 0"
#define IS_UNDER_WAY   "write_state IN ('pending', 'owed', 'sent')"

#define MEMORY_MAX UINT64_C(0x7fffffffff) /* MiB; a larger value is damage */

/* The types of rows that the statements refer to, each defined in the file that uses it. A column
 * that is not in its table is written by a trigger or by name in statements.h. */
extern const Row owner_row, claim_row, living_row, reported_row, ended_row;
extern const Row allocation_row, device_row, cell_row, cpu_row;
extern const Row held_row, share_row, taken_row, identity_row, unplaced_row, unclean_row;
extern const Row provider_row, generation_row, inventory_row, trait_row, aggregate_row, usage_row;
extern const Row cell_usage_row;
extern const Row integer_row, event_row, removal_row, move_row, pending_writes_row;

/* Runs a statement that yields no rows. Returns otherwise if it changed no row; rows that triggers
 * change do not count. With CLAIM_DONE, no change is no error. */
int store_run(Claims *claims, StatementId id, const SqliteValue *values, ClaimOutcome otherwise,
              Error *reterr);

/* Runs such a statement in a write transaction of its own. */
int store_run_alone(Claims *claims, StatementId id, const SqliteValue *values,
                    ClaimOutcome otherwise, Error *reterr);

/* Runs an INSERT of the statement's rows, which are all bound from the struct at base. values: the
 * parameters after theirs. */
int store_insert_row(Claims *claims, StatementId id, const void *base, const SqliteValue *values,
                     Error *reterr);

/* Yields a statement ready for sqlite_step(), and its row types, the last one NULL. The caller
 * resets the statement with _cleanup_(statement_resetp). */
int store_query(Claims *claims, StatementId id, const SqliteValue *values, sqlite3_stmt **ret,
                const Row *const **ret_rows, Error *reterr);

/* Yields the first row of a query as the struct of the statement's only row type, which has no
 * borrowed text. Members without a column are 0. Returns CLAIM_E_NOT_FOUND without a row. ret is
 * written on success alone. */
int store_get(Claims *claims, StatementId id, const SqliteValue *values, void *ret, Error *reterr);

/* Reads the number in the first row of a query that must yield one. Without a row the file is
 * damaged: -EUCLEAN. */
int store_get_integer(Claims *claims, StatementId id, const SqliteValue *values, int64_t *ret,
                      Error *reterr);

/* Calls add for each row of a query, until one fails. The statement's only row type is in the last
 * columns. The callback add adds a row to context. key: the number in column 0. The callback
 * returns 0 if context now owns the members of the row, and 1 if it ignored the row. It returns
 * -ENOMEM, or another error if the values contradict each other: store_each() then returns
 * -EUCLEAN. */
int store_each(Claims *claims, StatementId id, const SqliteValue *values,
               int (*add)(void *context, int64_t key, void *row), void *context, Error *reterr);

/* Begins and ends a write transaction. store_begin() uses a write lock that claims_attempt() took.
 * store_end() can follow a begin that failed. It commits if result is 0, and rolls back otherwise,
 * also for a positive result. It returns a result other than 0, else 0 or the error of the commit.
 * In a group (claims_begin_group()) both begin and end a part of its transaction. */
int store_begin(Claims *claims, Error *reterr);
int store_end(Claims *claims, int result, Error *reterr);

/* Begins and ends a read transaction, in which all reads see one state of the file. Within another
 * transaction it begins none. *ret_began, which must be false before, is the argument began of the
 * end. */
int store_begin_read(Claims *claims, bool *ret_began, Error *reterr);
void store_end_read(Claims *claims, bool began);

/* Prepares each statement, and keeps none. Returns -EUCLEAN if the file lacks a table or a
 * column. */
int store_check_statements(Claims *claims, Error *reterr);

/* Writes an event of a living claim, and none without one, within a transaction (store.c). The
 * reason is cut at CLAIM_TEXT_MAX bytes. The event of a pending claim is written, but not listed
 * while the claim is pending. */
int store_note_claim(Claims *claims, int64_t id, const EventNote *note, uint64_t usec,
                     Error *reterr);

/* Makes a confirmed resize target the first claim of its consumer if there is no other one, within
 * a transaction (store.c). Each change that takes a first claim from a consumer needs it. */
int store_promote(Claims *claims, const Uuid *consumer, Error *reterr);

/* Makes wanted the host, within a transaction (store-host.c). Returns CLAIM_E_RACE if the host
 * changed since claims->view was read. */
int store_write_changes(Claims *claims, const HostView *wanted, Error *reterr);
