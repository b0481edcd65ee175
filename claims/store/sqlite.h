/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A thin layer over SQLite: opens with the settings that claims need, and translates each result
 * code once, into an errno and words that name the file. It knows no table.
 *
 * A step distinguishes a row, the end and an error: an error is never taken for the end of data.
 *
 * The translation: SQLITE_FULL -ENOSPC; BUSY and LOCKED -EBUSY; CORRUPT and NOTADB, and SQL that
 * the file's own schema does not understand, -EUCLEAN; READONLY -EROFS, -EACCES or, when the file
 * was moved away under the program, -ESTALE; CANTOPEN and IOERR the system's errno, or -EIO;
 * CONSTRAINT -EEXIST. */

#include <sqlite3.h>

#include "base/error.h"

typedef struct Sqlite {
        sqlite3 *db;
        char *path;
        uint64_t busy_usec;
        bool impatient; /* a wait for another process's lock was in vain */
} Sqlite;

/* Opens the file, which must exist, for reading and writing. A wait for another process's lock ends
 * after busy_usec, and from then on there is none until the writer's turn was had again: a lock
 * that stays costs one wait, and not one a request. */
int sqlite_open(Sqlite **ret, const char *path, uint64_t busy_usec, Error *reterr);

/* Whether closing leaves what is in the log (-wal) there, instead of moving it into the file. */
void sqlite_keep_log(Sqlite *sqlite, bool keep);

/* The file is ours: durable commits (WAL, synchronous=FULL), foreign keys. */
int sqlite_accept(Sqlite *sqlite, Error *reterr);

/* Statements must be finalized before. */
Sqlite *sqlite_close(Sqlite *sqlite);
DEFINE_CLEANUP(Sqlite *, sqlite_close);

/* Words and errno for what failed in the system: doing is "open", "write to", …. Returns -code. */
int sqlite_system_error(int code, const char *path, const char *doing, Error *reterr);

/* The file says what none of ours does: -EUCLEAN with words. */
int sqlite_damaged(const Sqlite *sqlite, const char *what, Error *reterr);

/* Runs statements that yield no rows. */
int sqlite_exec(Sqlite *sqlite, const char *sql, Error *reterr);

int sqlite_prepare(Sqlite *sqlite, const char *sql, sqlite3_stmt **ret, Error *reterr);

/* Binds the parameters ?1, ?2, … by their letters: i int64_t, s const char * (copied; NULL becomes
 * ""), d double. */
int sqlite_bind(Sqlite *sqlite, sqlite3_stmt *statement, Error *reterr, const char *types, ...);
int sqlite_bindv(Sqlite *sqlite, sqlite3_stmt *statement, Error *reterr, const char *types,
                 va_list ap);

typedef enum SqliteStep {
        SQLITE_STEP_DONE = 0,
        SQLITE_STEP_ROW = 1,
} SqliteStep;

/* A SqliteStep or a negative errno. */
int sqlite_step(Sqlite *sqlite, sqlite3_stmt *statement, Error *reterr);

/* Steps a statement that yields no rows to its end and resets it. */
int sqlite_run(Sqlite *sqlite, sqlite3_stmt *statement, Error *reterr);

/* Text of a column, "" for NULL; lives until the next step. -ENOMEM. */
int sqlite_column(Sqlite *sqlite, sqlite3_stmt *statement, int column, const char **ret,
                  Error *reterr);

/* The first column of the first row of a query; -EUCLEAN when there is no row. */
int sqlite_query_integer(Sqlite *sqlite, const char *sql, int64_t *ret, Error *reterr);

/* Takes the file's one writer's turn. */
int sqlite_begin_write(Sqlite *sqlite, Error *reterr);
/* What is read until the end is one state of the file. */
int sqlite_begin_read(Sqlite *sqlite, Error *reterr);
/* When it fails, the transaction is rolled back. */
int sqlite_commit(Sqlite *sqlite, Error *reterr);
/* Does nothing outside a transaction. */
void sqlite_rollback(Sqlite *sqlite);
DEFINE_CLEANUP(Sqlite *, sqlite_rollback);

/* For _cleanup_(): makes a prepared statement ready for its next use. */
static inline void statement_resetp(sqlite3_stmt **statement)
{
        if (!*statement)
                return;
        sqlite3_reset(*statement);
        sqlite3_clear_bindings(*statement);
}

static inline void statement_finalizep(sqlite3_stmt **statement)
{
        sqlite3_finalize(*statement);
}
