/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the store share: the statements and the ways to run them. store.c has the
 * frame and the writes of claims, store-claims.c their reads, store-events.c what happened to them,
 * store-placement.c what Placement is told, store-layout.c where claims are on the host,
 * store-host.c the providers, store-move.c what claims hold elsewhere, store-sql.c the SQL. */

#include "claims/store/sqlite.h"
#include "claims/store/store.h"

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

extern const char *const store_sql[_STATEMENT_MAX];

struct Store {
        Sqlite *sqlite;
        sqlite3_stmt *statements[_STATEMENT_MAX];
        bool has_turn; /* a write transaction is open that the next write ends */
};

/* Binds the parameters (sqlite_bind()) and runs a statement that yields no rows. */
int store_run(Store *store, StatementId id, Error *reterr, const char *types, ...);

/* The same; yields otherwise when it changed no row, those of triggers not counted. */
int store_change(Store *store, StatementId id, StoreOutcome otherwise, Error *reterr,
                 const char *types, ...);

/* Binds the parameters and yields the statement, for sqlite_step(); reset it with
 * _cleanup_(statement_resetp). */
int store_query(Store *store, StatementId id, sqlite3_stmt **ret, Error *reterr, const char *types,
                ...);

/* The same, with its first step done: a SqliteStep. */
int store_get_row(Store *store, StatementId id, sqlite3_stmt **ret, Error *reterr,
                  const char *types, ...);

/* Reads one row for a list of them; context is the reader's. */
typedef int (*SqliteRead)(Store *store, sqlite3_stmt *statement, void *context, Error *reterr);

/* Binds the parameters and hands each row to read. */
int store_each(Store *store, StatementId id, SqliteRead read, void *context, Error *reterr,
               const char *types, ...);

/* Reads columns of a row, from first on, each as its letter says into what the next argument points
 * to: s text, borrowed until the next step; S a copy of it, in place of the one that is there; u a
 * uuid; U one, or none where the text is empty; i int64_t; n uint64_t, 0 for what is below; b bool.
 * what is damaged where there should be a uuid, for the words. What was read stays on failure. */
int store_read(Store *store, sqlite3_stmt *statement, int first, const char *what, Error *reterr,
               const char *types, ...);

/* A write transaction: begin joins the turn that was taken; end, which may follow a begin that
 * failed, commits when result is 0 and rolls back otherwise. Yields result, or the commit's error.
 */
int store_begin(Store *store, Error *reterr);
int store_end(Store *store, int result, Error *reterr);

/* What happened: store-events.c. Within a transaction: it happened to the claim, which is
 * still there, at that time. Of one that is pending it is written down, and not told: it may end
 * as if it had never been. */
int store_note_claim(Store *store, int64_t id, const EventNote *note, uint64_t usec, Error *reterr);
int store_forget_events(Store *store, int64_t claim, Error *reterr);

/* A claim's layout, within a transaction. write: STORE_E_EXISTS when another claim has one of the
 * host CPUs that are held. read: into a claim that has none. */
int store_write_layout(Store *store, int64_t id, const Layout *layout, Error *reterr);
int store_has_layout(Store *store, int64_t id, bool *ret, Error *reterr);

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

typedef int (*SqliteReadRow)(Store *store, Claim *claim, sqlite3_stmt *statement, Error *reterr);

/* Calls read_row for each row of the claim's. id: a query of the rows of the claims from a number
 * on (?1) by ascending numbers, or of an ended claim's; the number is its last column. */
int store_read_part(Store *store, struct SqlitePart *part, StatementId id, Claim *claim,
                    SqliteReadRow read_row, Error *reterr);

int store_read_layout(Store *store, SqliteParts *parts, Claim *claim, Error *reterr);

/* What all claims have of cells and CPUs, in place of what the view had of it. */
int store_read_cell_usages(Store *store, HostView *view, Error *reterr);

/* Makes wanted the host, within a transaction. STORE_E_RACE. */
int store_write_changes(Store *store, const HostView *seen, const HostView *wanted, Error *reterr);

/* Bumps the generation of a provider that is still as the view saw it. STORE_E_RACE. */
int store_bump(Store *store, const HostProvider *provider, Error *reterr);
