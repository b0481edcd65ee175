/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens SQLite files with the settings that claims need, and runs statements. Each result code is
 * translated once, into an errno and words. Except for -ENOMEM, they name the file. This layer
 * knows no table.
 *
 * A step distinguishes a row, the end and an error: an error never counts as the end of data. The
 * translation of result codes:
 *
 *   FULL                -ENOSPC.
 *   BUSY, LOCKED        -EBUSY.
 *   CORRUPT, NOTADB     -EUCLEAN.
 *   ERROR, SCHEMA       -EUCLEAN, and so is MISMATCH: the SQL contradicts the file's own schema.
 *   READONLY            -EROFS or -EACCES. If the file was moved away while in use: -ESTALE.
 *   PERM, AUTH          -EACCES.
 *   CANTOPEN, IOERR     The system's errno, or -EIO.
 *   CONSTRAINT          -EEXIST.
 *   NOMEM               -ENOMEM.
 *   Any other one       -EIO. */

#include <sqlite3.h>

#include "base/error.h"

typedef struct Sqlite {
        sqlite3 *db;
        char *path;
        uint64_t busy_usec;
        bool lock_timed_out; /* the last sqlite_begin_write() found a lock; no call waits */
} Sqlite;

/* Opens the file, which must exist, or ":memory:", for reading and writing. A wait for another
 * process's lock ends after busy_usec. After sqlite_begin_write() waited in vain, no call waits for
 * a lock, until a begin succeeds. So a lock that stays costs one wait, and not one for each
 * request. */
int sqlite_open(Sqlite **ret, const char *path, uint64_t busy_usec, Error *reterr);

/* Sets durable commits (synchronous=FULL, with WAL if the file system permits it) and foreign keys.
 * From then on, the last close of the file moves the log into it. */
int sqlite_accept(Sqlite *sqlite, Error *reterr);

/* Closes the file. Statements must be finalized before. */
Sqlite *sqlite_close(Sqlite *sqlite);
DEFINE_CLEANUP(Sqlite *, sqlite_close);

/* Writes words for an error of the system. doing: "open", "write to", …. code is an errno of either
 * sign. Returns code as a negative errno, but -ENOSPC for EDQUOT and EFBIG, and -EACCES for
 * EPERM. */
int sqlite_system_error(int code, const char *path, const char *doing, Error *reterr);

/* Returns -EUCLEAN with words: the file has contents that this program never writes. */
int sqlite_damaged(const Sqlite *sqlite, const char *what, Error *reterr);

/* Runs statements, and ignores rows that they yield. */
int sqlite_exec(Sqlite *sqlite, const char *sql, Error *reterr);

/* Prepares a statement, which the caller finalizes. */
int sqlite_prepare(Sqlite *sqlite, const char *sql, sqlite3_stmt **ret, Error *reterr);

/* The value of a parameter. Its type follows from the C type. */
typedef struct SqliteValue {
        int type; /* SQLITE_INTEGER, SQLITE_FLOAT or SQLITE_TEXT; 0 ends a list */
        int64_t integer;
        double real;
        const char *text; /* borrowed; NULL means "" */
} SqliteValue;

static inline SqliteValue sqlite_value_integer(int64_t value)
{
        return (SqliteValue){ .type = SQLITE_INTEGER, .integer = value };
}

/* Makes a value; SQLite has no numbers above INT64_MAX, so a larger one becomes INT64_MAX. */
static inline SqliteValue sqlite_value_unsigned(uint64_t value)
{
        return sqlite_value_integer((int64_t)MIN(value, (uint64_t)INT64_MAX));
}

static inline SqliteValue sqlite_value_text(const char *value)
{
        return (SqliteValue){ .type = SQLITE_TEXT, .text = value };
}

static inline SqliteValue sqlite_value_real(double value)
{
        return (SqliteValue){ .type = SQLITE_FLOAT, .real = value };
}

#define SQLITE_VALUE(x) \
        _Generic((x),                          \
                uint64_t: sqlite_value_unsigned, \
                double: sqlite_value_real,     \
                char *: sqlite_value_text,     \
                const char *: sqlite_value_text, \
                default: sqlite_value_integer)(x)

/* VALUES(…): a list of one to eight values. */
#define VALUES_1(x)                                            SQLITE_VALUE(x)
#define VALUES_2(x, ...)                                       SQLITE_VALUE(x), VALUES_1(__VA_ARGS__)
#define VALUES_3(x, ...)                                       SQLITE_VALUE(x), VALUES_2(__VA_ARGS__)
#define VALUES_4(x, ...)                                       SQLITE_VALUE(x), VALUES_3(__VA_ARGS__)
#define VALUES_5(x, ...)                                       SQLITE_VALUE(x), VALUES_4(__VA_ARGS__)
#define VALUES_6(x, ...)                                       SQLITE_VALUE(x), VALUES_5(__VA_ARGS__)
#define VALUES_7(x, ...)                                       SQLITE_VALUE(x), VALUES_6(__VA_ARGS__)
#define VALUES_8(x, ...)                                       SQLITE_VALUE(x), VALUES_7(__VA_ARGS__)
#define VALUES_PICK(_1, _2, _3, _4, _5, _6, _7, _8, name, ...) name
#define VALUES(...)                                                                              \
        ((const SqliteValue[]){ VALUES_PICK(__VA_ARGS__, VALUES_8, VALUES_7, VALUES_6, VALUES_5, \
                                            VALUES_4, VALUES_3, VALUES_2,                        \
                                            VALUES_1, )(__VA_ARGS__),                            \
                                { .type = 0 } })
#define NO_VALUES ((const SqliteValue[]){ { .type = 0 } })

/* Binds one parameter, numbered from 1. Copies a text. */
int sqlite_bind(Sqlite *sqlite, sqlite3_stmt *statement, int number, SqliteValue value,
                Error *reterr);

/* Steps a statement. Returns 1 for a row, 0 after the last one, or a negative errno. */
int sqlite_step(Sqlite *sqlite, sqlite3_stmt *statement, Error *reterr);

/* Yields the text of a column, "" for NULL; valid until the next step. Returns -ENOMEM on
 * failure. */
int sqlite_column(Sqlite *sqlite, sqlite3_stmt *statement, int column, const char **ret,
                  Error *reterr);

/* Yields the first column of the first row of a query. Returns -EUCLEAN if there is no row. */
int sqlite_query_integer(Sqlite *sqlite, const char *sql, int64_t *ret, Error *reterr);

/* Begins a write transaction: takes the write lock, which one process can have. Returns -EBUSY if
 * another process has it, and -ESTALE if the file was moved or removed. */
int sqlite_begin_write(Sqlite *sqlite, Error *reterr);
/* Commits. If that fails, the transaction is rolled back. */
int sqlite_commit(Sqlite *sqlite, Error *reterr);
/* Rolls back. Does nothing outside a transaction. */
void sqlite_rollback(Sqlite *sqlite);
DEFINE_CLEANUP(Sqlite *, sqlite_rollback);

/* Makes a prepared statement ready for its next use; for _cleanup_(). */
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
