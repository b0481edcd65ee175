/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the SQLite engine share: the statements and the ways to run them.
 * sqlite-store.c has the engine and the writes of claims, sqlite-store-claims.c their reads,
 * sqlite-store-events.c what happened to them,
 * sqlite-store-layout.c where claims are on the host, sqlite-store-host.c the providers,
 * sqlite-store-sql.c the SQL. */

#include "claims/store/sqlite-store.h"
#include "claims/store/sqlite.h"

typedef enum StatementId {
        STATEMENT_READ_EPOCH,
        STATEMENT_READ_VERSION,
        STATEMENT_READ_PROVIDERS,
        STATEMENT_READ_INVENTORIES,
        STATEMENT_READ_TRAITS,
        STATEMENT_READ_AGGREGATES,
        STATEMENT_READ_GENERATIONS,
        STATEMENT_READ_USAGES,
        STATEMENT_BUMP_EPOCH,
        STATEMENT_INSERT_PROVIDER,
        STATEMENT_UPDATE_PROVIDER,
        STATEMENT_DELETE_PROVIDER,
        STATEMENT_SET_POSITION,
        STATEMENT_DELETE_INVENTORIES,
        STATEMENT_INSERT_INVENTORY,
        STATEMENT_DELETE_TRAITS,
        STATEMENT_INSERT_TRAIT,
        STATEMENT_DELETE_AGGREGATES,
        STATEMENT_INSERT_AGGREGATE,
        STATEMENT_BUMP_PROVIDER,
        STATEMENT_INSERT_CLAIM,
        STATEMENT_INSERT_ALLOCATION,
        STATEMENT_FILL_CLAIM,
        STATEMENT_NEXT_UNPLACED,
        STATEMENT_CONFIRM,
        STATEMENT_EXTEND,
        STATEMENT_SET_LIFE,
        STATEMENT_PROMOTE,
        STATEMENT_FIND,
        STATEMENT_GET,
        STATEMENT_GET_ENDED,
        STATEMENT_LIST,
        STATEMENT_LIST_ENDED,
        STATEMENT_NEXT_EXPIRED,
        STATEMENT_END_CLAIM,
        STATEMENT_BUMP_OF_CLAIM,
        STATEMENT_DELETE_ALLOCATIONS,
        STATEMENT_DELETE_CLAIM,
        STATEMENT_TRIM_HISTORY,
        STATEMENT_COUNT,
        STATEMENT_INSERT_DEVICE,
        STATEMENT_READ_DEVICES,
        STATEMENT_READ_ENDED_DEVICES,
        STATEMENT_TAKEN,
        STATEMENT_LIST_DEVICE,
        STATEMENT_LIST_WITH_DEVICES,
        STATEMENT_LIST_GUEST,
        STATEMENT_READ_SHARE,
        STATEMENT_READ_PART,
        STATEMENT_DELETE_PART,
        STATEMENT_INSERT_PART,
        STATEMENT_SHIFT_DEVICES,
        STATEMENT_LIST_SOME,
        STATEMENT_INSERT_CELL,
        STATEMENT_INSERT_CPU,
        STATEMENT_INSERT_PIN,
        STATEMENT_HAS_CELLS,
        STATEMENT_READ_CELLS,
        STATEMENT_READ_CPUS,
        STATEMENT_READ_PINS,
        STATEMENT_READ_ENDED_CELLS,
        STATEMENT_READ_ENDED_CPUS,
        STATEMENT_READ_CELL_USAGES,
        STATEMENT_READ_ALL_PINS,
        STATEMENT_SET_BOOT,
        STATEMENT_SET_STANDING,
        STATEMENT_FORGET_REPORTED,
        STATEMENT_FORGET_REMOVALS,
        STATEMENT_LIST_PENDING,
        STATEMENT_NEXT_WRITE,
        STATEMENT_COUNT_OWED,
        STATEMENT_NEXT_REMOVAL,
        STATEMENT_END_REMOVAL,
        STATEMENT_BEGIN_MOVE,
        STATEMENT_NEXT_MOVE,
        STATEMENT_END_MOVE,
        STATEMENT_HAND_OVER,
        STATEMENT_ADD_REMOVAL,
        STATEMENT_HAND_OVER_ALLOCATIONS,
        STATEMENT_PROBE,
        STATEMENT_NOTE,
        STATEMENT_NOTE_CLAIM,
        STATEMENT_FORGET_EVENTS,
        STATEMENT_TRIM_EVENTS,
        STATEMENT_LAST_EVENT,
        STATEMENT_LIST_EVENTS,
        _STATEMENT_MAX,
} StatementId;

extern const char *const sqlite_store_sql[_STATEMENT_MAX];

typedef struct SqliteStore {
        Store store;
        Sqlite *sqlite;
        sqlite3_stmt *statements[_STATEMENT_MAX];
        bool has_turn; /* a write transaction is open that the next write ends */
} SqliteStore;

/* Binds the parameters (sqlite_bind()) and runs a statement that yields no rows. */
int sqlite_store_run(SqliteStore *store, StatementId id, Error *reterr, const char *types, ...);

/* The same; yields otherwise when it changed no row, those of triggers not counted. */
int sqlite_store_change(SqliteStore *store, StatementId id, StoreOutcome otherwise, Error *reterr,
                        const char *types, ...);

/* Binds the parameters and yields the statement, for sqlite_step(); reset it with
 * _cleanup_(statement_resetp). */
int sqlite_store_query(SqliteStore *store, StatementId id, sqlite3_stmt **ret, Error *reterr,
                       const char *types, ...);

/* The same, with its first step done: a SqliteStep. */
int sqlite_store_get_row(SqliteStore *store, StatementId id, sqlite3_stmt **ret, Error *reterr,
                         const char *types, ...);

/* Reads one row for a list of them; context is the reader's. */
typedef int (*SqliteRead)(SqliteStore *store, sqlite3_stmt *statement, void *context,
                          Error *reterr);

/* Binds the parameters and hands each row to read. */
int sqlite_store_each(SqliteStore *store, StatementId id, SqliteRead read, void *context,
                      Error *reterr, const char *types, ...);

/* The uuid in a column; what it is of, if it is none, for the words. */
int sqlite_store_column_uuid(SqliteStore *store, sqlite3_stmt *statement, int column,
                             const char *what, Uuid *ret, Error *reterr);

/* A write transaction: begin joins the turn that was taken; end, which may follow a begin that
 * failed, commits when result is 0 and rolls back otherwise. Yields result, or the commit's error.
 */
int sqlite_store_begin(SqliteStore *store, Error *reterr);
int sqlite_store_end(SqliteStore *store, int result, Error *reterr);

int sqlite_store_find(Store *store, const Uuid *consumer, bool resize_target, Claim **ret,
                      Error *reterr);
int sqlite_store_get(Store *store, int64_t id, Claim **ret, Error *reterr);
int sqlite_store_list(Store *store, ClaimsWhich which, const char *of, ClaimList *ret,
                      Error *reterr);
int sqlite_store_list_with_devices(Store *store, ClaimList *ret, Error *reterr);
int sqlite_store_list_some(Store *store, int64_t after, ClaimList *ret, Error *reterr);
int sqlite_store_next_write(Store *store, int64_t after, Claim **ret, Error *reterr);
int sqlite_store_taken(Store *store, Taken *ret, Error *reterr);
int sqlite_store_count(Store *store, uint64_t *ret, Error *reterr);
int sqlite_store_next_unplaced(Store *store, int64_t after, StoreUnplaced *ret, Error *reterr);

/* What is reported to Placement: sqlite-store-placement.c. */
int sqlite_store_set_standing(Store *store, int64_t id, ClaimStanding from, ClaimStanding to,
                              const ClaimReported *reported, Error *reterr);
int sqlite_store_forget_reported(Store *store, Error *reterr);
int sqlite_store_count_owed(Store *store, ClaimsOwed *ret, Error *reterr);
int sqlite_store_next_removal(Store *store, int64_t after, const Uuid *consumer, ClaimRemoval *ret,
                              Error *reterr);
int sqlite_store_end_removal(Store *store, int64_t id, Error *reterr);
int sqlite_store_begin_move(Store *store, const Uuid *from, const Uuid *to, const char *to_type,
                            int64_t *ret_id, Error *reterr);
int sqlite_store_next_move(Store *store, int64_t after, ClaimMove *ret, Error *reterr);
int sqlite_store_end_move(Store *store, const ClaimMove *move, const ClaimReported *reported,
                          bool ours, Error *reterr);

/* What happened: sqlite-store-events.c. Within a transaction: it happened to the claim, which is
 * still there, at that time. Of one that is pending it is written down, and not shown: it may end
 * as if it had never been. */
int sqlite_store_note_claim(SqliteStore *store, int64_t id, const EventNote *note, uint64_t usec,
                            Error *reterr);
int sqlite_store_forget_events(SqliteStore *store, int64_t claim, Error *reterr);
int sqlite_store_note(Store *store, const EventNote *note, Error *reterr);
int sqlite_store_last_event(Store *store, int64_t *ret, Error *reterr);
int sqlite_store_list_events(Store *store, int64_t before, EventList *ret, Error *reterr);

/* A claim's layout, within a transaction. write: STORE_E_EXISTS when another claim has one of the
 * host CPUs that are held. read: into a claim that has none. */
int sqlite_store_write_layout(SqliteStore *store, int64_t id, const Layout *layout, Error *reterr);
int sqlite_store_has_layout(SqliteStore *store, int64_t id, bool *ret, Error *reterr);

/* What lies beside the claims, in rows by claim: while claims are read by ascending numbers each
 * query goes on where it was, so that thousands of claims cost one query and not one each. Zeroed
 * before the first claim. */
typedef struct SqliteParts {
        struct SqlitePart {
                sqlite3_stmt *statement;
                int64_t asked; /* for the rows of that claim */
                int64_t at;    /* the claim of the row that comes next; INT64_MAX: there is none */
        } devices, cells, cpus, pins;
} SqliteParts;

typedef int (*SqliteReadRow)(SqliteStore *store, Claim *claim, sqlite3_stmt *statement,
                             Error *reterr);

/* Calls read_row for each row of the claim's. id: a query of the rows of the claims from a number
 * on (?1) by ascending numbers, or of an ended claim's; the number is its last column. */
int sqlite_store_read_part(SqliteStore *store, struct SqlitePart *part, StatementId id,
                           Claim *claim, SqliteReadRow read_row, Error *reterr);

int sqlite_store_read_layout(SqliteStore *store, SqliteParts *parts, Claim *claim, Error *reterr);

/* What all claims have of cells and CPUs, in place of what the view had of it. */
int sqlite_store_read_cell_usages(SqliteStore *store, HostView *view, Error *reterr);

int sqlite_store_load_view(Store *store, HostView **view, Error *reterr);
int sqlite_store_shift(Store *store, const HostView *seen, const HostView *wanted,
                       const StoreShift *shifts, size_t n_shifts, Error *reterr);

/* Makes wanted the host, within a transaction. STORE_E_RACE. */
int sqlite_store_write_changes(SqliteStore *store, const HostView *seen, const HostView *wanted,
                               Error *reterr);
int sqlite_store_write_host(Store *store, const HostView *seen, const HostView *wanted,
                            Error *reterr);

/* Bumps the generation of a provider that is still as the view saw it. STORE_E_RACE. */
int sqlite_store_bump(SqliteStore *store, const HostProvider *provider, Error *reterr);
