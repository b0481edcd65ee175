/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs statements and transactions. The array "statements" has the SQL and the row types of each
 * statement, generated from statements.h. A statement is prepared when it is first run. A prepared
 * one takes some kilobytes, and most hosts never run most of them. A prepared statement is reset
 * after each use, so one statement cannot run within itself. The member has_turn is true while a
 * write transaction is open that claims_attempt() began. The next store_end(), the next
 * claims_attempt() or claims_free() ends it.
 *
 * The member in_group is true between claims_begin_group() and claims_end_group(). Then each write
 * is a savepoint of the transaction of the group. After some errors, such as a full disk, SQLite
 * itself rolls back the whole transaction. The later writes of the group, and its end, then fail
 * with -EIO.
 *
 * Tests: tests/unit/claims/test-claims.c tests/unit/claims/test-claims-race.c
 *   tests/unit/claims/test-claims-faults.c */

#include "claims/store/frame.h"

#include <assert.h>
#include <string.h>

typedef struct IntegerRow {
        int64_t value;
} IntegerRow;

/* The row type of a statement whose SQL yields one number. */
ROW(integer, IntegerRow, "a query", COLUMN("the number", IntegerRow, value));

static const struct {
        const char *sql;
        const Row *rows[7]; /* the last one is NULL */
} statements[_STATEMENT_MAX] = {
#define STATEMENT(name, text, ...) [STATEMENT_##name] = { .sql = (text), .rows = { __VA_ARGS__ } },
#include "claims/store/statements.h"
#undef STATEMENT
};

/* Prepares a statement, unless it is prepared already. */
static int prepare(Claims *claims, StatementId id, Error *reterr)
{
        _cleanup_free_ char *sql = NULL;

        if (claims->statements[id])
                return 0;
        sql = columns_format(statements[id].sql, statements[id].rows);
        return sql ? sqlite_prepare(claims->sqlite, sql, &claims->statements[id], reterr)
                   : error_oom(reterr);
}

/* Binds the rows of an INSERT from base, which is NULL for other statements, and then the values.
 * Yields the statement, which the caller resets. */
static int bind(Claims *claims, StatementId id, const void *base, const SqliteValue *values,
                sqlite3_stmt **ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int n = 1, r = prepare(claims, id, reterr);

        if (r < 0)
                return r;
        statement = claims->statements[id];
        for (const Row *const *row = statements[id].rows; r == 0 && base && *row; row++) {
                r = row_bind(claims->sqlite, statement, n, *row, base, reterr);
                n += (int)(*row)->n_columns;
        }
        for (; r == 0 && values->type != 0; values++)
                r = sqlite_bind(claims->sqlite, statement, n++, *values, reterr);
        if (r < 0)
                return r;
        assert(n - 1 == sqlite3_bind_parameter_count(statement));
        *ret = TAKE_PTR(statement);
        return 0;
}

int store_query(Claims *claims, StatementId id, const SqliteValue *values, sqlite3_stmt **ret,
                const Row *const **ret_rows, Error *reterr)
{
        *ret_rows = statements[id].rows;
        return bind(claims, id, NULL, values, ret, reterr);
}

int store_insert_row(Claims *claims, StatementId id, const void *base, const SqliteValue *values,
                     Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = bind(claims, id, base, values, &statement, reterr);

        if (r < 0)
                return r;
        do
                r = sqlite_step(claims->sqlite, statement, reterr);
        while (r > 0);
        return r;
}

int store_run(Claims *claims, StatementId id, const SqliteValue *values, ClaimOutcome otherwise,
              Error *reterr)
{
        int r = store_insert_row(claims, id, NULL, values, reterr);

        return r == 0 && sqlite3_changes(claims->sqlite->db) == 0 ? (int)otherwise : r;
}

int store_run_alone(Claims *claims, StatementId id, const SqliteValue *values,
                    ClaimOutcome otherwise, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, id, values, otherwise, reterr);
        return store_end(claims, r, reterr);
}

/* Reads the first row into a zeroed copy, so that ret stays unchanged on failure and without a
 * row. */
static int get_row(Claims *claims, StatementId id, const SqliteValue *values, const Row *row,
                   void *ret, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        _cleanup_free_ void *base = calloc(1, row->size);
        int r = base ? bind(claims, id, NULL, values, &statement, reterr) : error_oom(reterr);

        if (r == 0)
                r = sqlite_step(claims->sqlite, statement, reterr);
        if (r <= 0)
                return r < 0 ? r : CLAIM_E_NOT_FOUND;
        r = row_read(claims->sqlite, statement, 0, row, base, reterr);
        if (r < 0)
                row_done(row, base);
        else
                memcpy(ret, base, row->size);
        return r;
}

int store_get(Claims *claims, StatementId id, const SqliteValue *values, void *ret, Error *reterr)
{
        return get_row(claims, id, values, statements[id].rows[0], ret, reterr);
}

int store_get_integer(Claims *claims, StatementId id, const SqliteValue *values, int64_t *ret,
                      Error *reterr)
{
        int r = get_row(claims, id, values, &integer_row, ret, reterr);

        return r > 0 ? sqlite_damaged(claims->sqlite, "a row is missing", reterr) : r;
}

/* Reads the current row into base and calls add. Afterwards base is zeroed. If add returned 0,
 * context owns the members of the row; else they are freed. Returns 0 also for a row that add
 * ignored. */
static int add_row(Claims *claims, sqlite3_stmt *statement, const Row *row, void *base,
                   int (*add)(void *context, int64_t key, void *row), void *context, Error *reterr)
{
        int first = sqlite3_column_count(statement) - (int)row->n_columns;
        int r = row_read(claims->sqlite, statement, first, row, base, reterr);

        if (r == 0) {
                r = add(context, sqlite3_column_int64(statement, 0), base);
                if (r == -ENOMEM)
                        error_oom(reterr);
                else if (r < 0)
                        r = row_damaged(claims->sqlite, statement, row, NULL, "is invalid", reterr);
        }
        if (r == 0)
                memset(base, 0, row->size);
        else
                row_done(row, base);
        return MIN(r, 0);
}

int store_each(Claims *claims, StatementId id, const SqliteValue *values,
               int (*add)(void *context, int64_t key, void *row), void *context, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        const Row *row = statements[id].rows[0];
        _cleanup_free_ void *base = calloc(1, row->size);
        int r = base ? bind(claims, id, NULL, values, &statement, reterr) : error_oom(reterr);

        while (r == 0 && (r = sqlite_step(claims->sqlite, statement, reterr)) > 0)
                r = add_row(claims, statement, row, base, add, context, reterr);
        return r;
}

/* Makes the next store_load_view() read the host again. */
static void forget_stamp(Claims *claims)
{
        if (claims->view)
                claims->view->by_us = -1;
}

/* Returns -EIO with words if SQLite has rolled back the transaction of the group. */
static int check_group(const Claims *claims, Error *reterr)
{
        return sqlite3_get_autocommit(claims->sqlite->db)
                       ? error_setf(reterr, EIO, "An earlier change of the same transaction failed")
                       : 0;
}

/* Ends a write of a group: keeps its changes if result is 0, and undoes them otherwise. Returns
 * result, or the error of the end. */
static int end_part(Claims *claims, int result, Error *reterr)
{
        int r = check_group(claims, result == 0 ? reterr : NULL);

        if (result != 0)
                forget_stamp(claims);
        if (r == 0 && result != 0)
                r = store_run(claims, STATEMENT_UNDO_PART, NO_VALUES, CLAIM_DONE, NULL);
        if (r == 0)
                r = store_run(claims, STATEMENT_END_PART, NO_VALUES, CLAIM_DONE, reterr);
        return result != 0 ? result : r;
}

int store_begin(Claims *claims, Error *reterr)
{
        int r;

        if (!claims->in_group)
                return claims->has_turn ? 0 : sqlite_begin_write(claims->sqlite, reterr);
        r = check_group(claims, reterr);
        return r < 0 ? r : store_run(claims, STATEMENT_BEGIN_PART, NO_VALUES, CLAIM_DONE, reterr);
}

int store_end(Claims *claims, int result, Error *reterr)
{
        if (claims->in_group)
                return end_part(claims, result, reterr);
        claims->has_turn = false;
        if (result == 0)
                return sqlite_commit(claims->sqlite, reterr);
        sqlite_rollback(claims->sqlite);
        return result;
}

int store_begin_read(Claims *claims, bool *ret_began, Error *reterr)
{
        int r;

        if (!sqlite3_get_autocommit(claims->sqlite->db))
                return 0;
        r = store_run(claims, STATEMENT_BEGIN_READ, NO_VALUES, CLAIM_DONE, reterr);
        *ret_began = r == 0;
        return r;
}

void store_end_read(Claims *claims, bool began)
{
        if (began)
                store_run(claims, STATEMENT_END_READ, NO_VALUES, CLAIM_DONE, NULL);
}

/* Takes the write lock of the file; within a group, the group has it. The calls up to the end of
 * the next write, or to drop_turn(), then see one state that no other process changes. */
static int take_turn(Claims *claims, Error *reterr)
{
        int r;

        assert(!claims->has_turn);
        if (claims->in_group)
                return check_group(claims, reterr);
        r = sqlite_begin_write(claims->sqlite, reterr);
        claims->has_turn = r == 0;
        return r;
}

static void drop_turn(Claims *claims)
{
        if (!claims->has_turn)
                return;
        claims->has_turn = false;
        sqlite_rollback(claims->sqlite);
}

/* Releases the write lock of the attempt before this call, if no write has ended it. After
 * CLAIM_E_RACE takes the write lock for the next attempt; in a group the group has it. If false is
 * returned, result is the outcome of the attempt before, the error of the lock, or -EBUSY after
 * CLAIM_ATTEMPTS_MAX attempts. */
bool claims_attempt(ClaimAttempts *attempts, Error *reterr)
{
        if (attempts->n > 0)
                drop_turn(attempts->claims);
        if (attempts->n > 0 && attempts->result != CLAIM_E_RACE)
                return false;
        attempts->result = 0;
        if (attempts->n++ == CLAIM_ATTEMPTS_MAX)
                attempts->result = error_setf(
                        reterr, EBUSY,
                        "Other writers changed the claim database during each of %d attempts",
                        CLAIM_ATTEMPTS_MAX);
        else if (attempts->n > 1)
                attempts->result = take_turn(attempts->claims, reterr);
        return attempts->result == 0;
}

int claims_begin_group(Claims *claims, Error *reterr)
{
        int r;

        assert(!claims->has_turn && !claims->in_group);
        r = sqlite_begin_write(claims->sqlite, reterr);
        claims->in_group = r == 0;
        return r;
}

int claims_end_group(Claims *claims, int result, Error *reterr)
{
        int r = result == 0 ? check_group(claims, reterr) : result;

        claims->in_group = false;
        r = store_end(claims, r, reterr);
        if (r != 0)
                forget_stamp(claims);
        return r;
}

static void finalize_statements(Claims *claims)
{
        for (size_t i = 0; i < _STATEMENT_MAX; i++) {
                sqlite3_finalize(claims->statements[i]);
                claims->statements[i] = NULL;
        }
}

int store_check_statements(Claims *claims, Error *reterr)
{
        int r = 0;

        for (StatementId id = 0; r == 0 && id < _STATEMENT_MAX; id++) {
                r = prepare(claims, id, reterr);
                finalize_statements(claims);
        }
        return r;
}

Claims *claims_free(Claims *claims)
{
        if (!claims)
                return NULL;
        drop_turn(claims);
        if (claims->in_group)
                sqlite_rollback(claims->sqlite);
        finalize_statements(claims);
        sqlite_close(claims->sqlite);
        host_view_free(claims->view);
        free(claims->host);
        free(claims->node);
        free(claims);
        return NULL;
}
