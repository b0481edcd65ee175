/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the store share: the statements and the ways to run them. store.c has the
 * frame and the writes of claims, store-claims.c their reads, store-events.c what happened to them,
 * store-placement.c what Placement has of them, store-layout.c where claims are on the host,
 * store-host.c the providers, store-move.c what claims hold elsewhere, statements.h the SQL. */

#include "claims/store/object.h"

/* Binds the parameters (sqlite_bind()) and runs a statement that yields no rows. */
int store_run(Claims *claims, StatementId id, Error *reterr, const char *types, ...);

/* The same; yields otherwise when it changed no row, those of triggers not counted. */
int store_change(Claims *claims, StatementId id, ClaimOutcome otherwise, Error *reterr,
                 const char *types, ...);

/* Binds the parameters and yields the statement, for sqlite_step(); reset it with
 * _cleanup_(statement_resetp). */
int store_query(Claims *claims, StatementId id, sqlite3_stmt **ret, Error *reterr,
                const char *types, ...);

/* The same, with its first step done: a SqliteStep. */
int store_get_row(Claims *claims, StatementId id, sqlite3_stmt **ret, Error *reterr,
                  const char *types, ...);

/* The first column of the only row; without one the file is damaged. */
int store_get_integer(Claims *claims, StatementId id, int64_t *ret, Error *reterr);

/* Reads one row for a list of them; context is the reader's. */
typedef int (*SqliteRead)(Claims *claims, sqlite3_stmt *statement, void *context, Error *reterr);

/* Binds the parameters and hands each row to read. */
int store_each(Claims *claims, StatementId id, SqliteRead read, void *context, Error *reterr,
               const char *types, ...);

/* Reads columns of a row, from first on, each as its letter says into what the next argument points
 * to: s text, borrowed until the next step; S a copy of it, in place of the one that is there; u a
 * uuid; U one, or none where the text is empty; i int64_t; n uint64_t, 0 for what is below; b bool.
 * what is damaged where there should be a uuid, for the words. What was read stays on failure. */
int store_read(Claims *claims, sqlite3_stmt *statement, int first, const char *what, Error *reterr,
               const char *types, ...);

/* A write transaction: begin joins the turn that was taken; end, which may follow a begin that
 * failed, commits when result is 0 and rolls back otherwise. Yields result, or the commit's error.
 */
int store_begin(Claims *claims, Error *reterr);
int store_end(Claims *claims, int result, Error *reterr);

/* What happened: store-events.c. Within a transaction: it happened to the claim, which is
 * still there, at that time. Of one that is pending it is written down, and not listed: it may end
 * as if it had never been. */
int store_note_claim(Claims *claims, int64_t id, const EventNote *note, uint64_t usec,
                     Error *reterr);
int store_forget_events(Claims *claims, int64_t claim, Error *reterr);

/* Yields r, with words where no claim of that number is in that state. */
int store_note_state(int r, int64_t id, ClaimWriteState write_state, Error *reterr);

/* A claim's layout, within a transaction. write: CLAIM_E_CONFLICT when another claim has one of the
 * host CPUs that are held. read: into a claim that has none. */
int store_write_layout(Claims *claims, int64_t id, const Layout *layout, Error *reterr);
int store_has_layout(Claims *claims, int64_t id, bool *ret, Error *reterr);

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

typedef int (*SqliteReadRow)(Claims *claims, Claim *claim, sqlite3_stmt *statement, Error *reterr);

/* Calls read_row for each row of the claim's. id: a query of the rows of the claims from a number
 * on (?1) by ascending numbers, or of an ended claim's; the number is its last column. */
int store_read_part(Claims *claims, struct SqlitePart *part, StatementId id, Claim *claim,
                    SqliteReadRow read_row, Error *reterr);

int store_read_layout(Claims *claims, SqliteParts *parts, Claim *claim, Error *reterr);

/* What all claims have of cells and CPUs, in place of what the view had of it. */
int store_read_cell_usages(Claims *claims, HostView *view, Error *reterr);

/* Makes wanted the host, within a transaction. CLAIM_E_RACE. */
int store_write_changes(Claims *claims, const HostView *wanted, Error *reterr);

/* Bumps the generation of a provider that is still as the view saw it. CLAIM_E_RACE. */
int store_bump(Claims *claims, const HostProvider *provider, Error *reterr);
