/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs one SQLite connection in one thread, and translates its errors. Each function that can fail
 * returns 0 or a negative errno with words. translate() makes nearly all errors from a result code
 * of SQLite. Only sqlite_step() also returns a positive number: 1 for a row. The settings of
 * configure() protect against hostile files: a defensive mode, no trusted schema, no extensions,
 * and checks of cell sizes. Waits for other processes are limited by set_patience(). A write
 * transaction begins with BEGIN IMMEDIATE, so with WAL it waits for other writers at its begin and
 * never later. Without WAL, its commit can wait for readers. Other errors, such as a full disk, can
 * come with any write.
 *
 * Tests: tests/unit/claims/store/test-sqlite.c */

#include "claims/store/sqlite.h"

#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

/* 512 KiB of cache. Pages have 4 KiB and a claim needs only a few, so the daemon stays small. */
#define CACHE_PRAGMA "PRAGMA cache_size=-512"

int sqlite_system_error(int code, const char *path, const char *doing, Error *reterr)
{
        code = code < 0 ? -code : code;
        switch (code) {
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
                return error_setf(
                        reterr, ENOSPC,
                        "No space left for the claim database %s. Free some space in its folder",
                        path);
        case EACCES:
        case EPERM:
                return error_setf(
                        reterr, EACCES,
                        "Cannot %s the claim database %s: permission denied. The service's user must own file and folder",
                        doing, path);
        case EROFS:
                return error_setf(
                        reterr, EROFS,
                        "Cannot %s the claim database %s: it is read-only. Outside of /var/lib/compute-agent, add ReadWritePaths= with \"systemctl edit compute-agent\". Otherwise check the mount of its file system",
                        doing, path);
        case ENOENT:
                return error_setf(reterr, ENOENT,
                                  "Cannot %s the claim database %s: its folder does not exist",
                                  doing, path);
        default:
                return error_setf(reterr, code, "Cannot %s the claim database %s: %s", doing, path,
                                  strerror(code));
        }
}

int sqlite_damaged(const Sqlite *sqlite, const char *what, Error *reterr)
{
        return error_setf(reterr, EUCLEAN, "The claim database %s is damaged (%s)", sqlite->path,
                          what);
}

/* Returns true if the folder is writable, because SQLite makes its log beside the file. Returns
 * false with errno. */
static bool folder_writable(const char *path)
{
        _cleanup_free_ char *copy = strdup(path);

        if (!copy)
                return false;
        return access(dirname(copy), W_OK) == 0;
}

/* Returns the error of a file that cannot be written: moved away, without permission, or on a
 * read-only file system. */
static int readonly_error(const Sqlite *sqlite, int rc, Error *reterr)
{
        if (rc == SQLITE_READONLY_DBMOVED)
                return error_setf(
                        reterr, ESTALE,
                        "The claim database %s was moved or removed while in use. Restart the service",
                        sqlite->path);
        if (access(sqlite->path, W_OK) == 0 && folder_writable(sqlite->path))
                errno = EROFS;
        return sqlite_system_error(errno, sqlite->path, "write to", reterr);
}

/* Translates a result code. Only claim-file.c translates codes of its own: those of the functions
 * that copy a database file. */
static int translate(const Sqlite *sqlite, int rc, Error *reterr)
{
        int code;

        switch (rc & 0xff) {
        case SQLITE_FULL:
                return sqlite_system_error(ENOSPC, sqlite->path, "write to", reterr);
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return error_setf(reterr, EBUSY,
                                  "The claim database %s is locked by another process",
                                  sqlite->path);
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_ERROR:
        case SQLITE_SCHEMA:
        case SQLITE_MISMATCH:
                return sqlite_damaged(sqlite, sqlite3_errmsg(sqlite->db), reterr);
        case SQLITE_READONLY:
                return readonly_error(sqlite, rc, reterr);
        case SQLITE_PERM:
        case SQLITE_AUTH:
                return sqlite_system_error(EACCES, sqlite->path, "use", reterr);
        case SQLITE_NOMEM:
                return error_oom(reterr);
        case SQLITE_CONSTRAINT:
                return error_setf(reterr, EEXIST, "The claim database %s rejects the change (%s)",
                                  sqlite->path, sqlite3_errmsg(sqlite->db));
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR:
                code = rc == SQLITE_IOERR_NOMEM ? ENOMEM : sqlite3_system_errno(sqlite->db);
                return sqlite_system_error(
                        code > 0 ? code : EIO, sqlite->path,
                        (rc & 0xff) == SQLITE_CANTOPEN ? "open" : "read or write", reterr);
        default:
                return error_setf(reterr, EIO, "The claim database %s: %s", sqlite->path,
                                  sqlite3_errstr(rc));
        }
}

/* Makes SQLite wait up to busy_usec (at most 1 h) for the locks of other processes if patient is
 * true. Otherwise it does not wait. */
static void set_patience(Sqlite *sqlite, bool patient)
{
        uint64_t msec = patient ? sqlite->busy_usec / USEC_PER_MSEC : 0;

        sqlite->lock_timed_out = !patient;
        sqlite3_busy_timeout(sqlite->db, (int)MIN(msec, UINT64_C(3600000)));
}

/* Sets the protections of a new connection. A file that is not writable is an error at once, and
 * not at the first write. */
static int configure(Sqlite *sqlite, Error *reterr)
{
        sqlite3 *db = sqlite->db;

        sqlite3_extended_result_codes(db, 1);
        set_patience(sqlite, true);
        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
        if (sqlite3_db_readonly(db, "main") > 0)
                return readonly_error(sqlite, SQLITE_READONLY, reterr);
        return sqlite_exec(sqlite, "PRAGMA cell_size_check=ON; " CACHE_PRAGMA, reterr);
}

int sqlite_open(Sqlite **ret, const char *path, uint64_t busy_usec, Error *reterr)
{
        _cleanup_(sqlite_closep) Sqlite *sqlite = calloc(1, sizeof(Sqlite));
        int r;

        if (!sqlite)
                return error_oom(reterr);
        sqlite->path = strdup(path);
        if (!sqlite->path)
                return error_oom(reterr);
        r = sqlite3_open_v2(path, &sqlite->db,
                            SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                            NULL);
        if (!sqlite->db)
                return error_oom(reterr);
        if (r != SQLITE_OK)
                return translate(sqlite, sqlite3_extended_errcode(sqlite->db), reterr);
        sqlite->busy_usec = busy_usec;
        r = configure(sqlite, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(sqlite);
        return 0;
}

int sqlite_accept(Sqlite *sqlite, Error *reterr)
{
        int r;

        /* A file system without shared memory has no WAL. SQLite then stays in the mode "delete",
         * whose commits are as durable. */
        r = sqlite_exec(sqlite, "PRAGMA journal_mode=WAL", reterr);
        if (r == 0)
                r = sqlite_exec(sqlite, "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON", reterr);
        if (r == 0)
                sqlite3_db_config(sqlite->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        return r;
}

Sqlite *sqlite_close(Sqlite *sqlite)
{
        if (!sqlite)
                return NULL;
        sqlite3_close(sqlite->db);
        free(sqlite->path);
        free(sqlite);
        return NULL;
}

int sqlite_exec(Sqlite *sqlite, const char *sql, Error *reterr)
{
        int rc = sqlite3_exec(sqlite->db, sql, NULL, NULL, NULL);

        return rc == SQLITE_OK ? 0
                               : translate(sqlite, sqlite3_extended_errcode(sqlite->db), reterr);
}

int sqlite_prepare(Sqlite *sqlite, const char *sql, sqlite3_stmt **ret, Error *reterr)
{
        int rc = sqlite3_prepare_v3(sqlite->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);

        return rc == SQLITE_OK ? 0 : translate(sqlite, rc, reterr);
}

int sqlite_bind(Sqlite *sqlite, sqlite3_stmt *statement, int number, SqliteValue value,
                Error *reterr)
{
        int rc = value.type == SQLITE_INTEGER ? sqlite3_bind_int64(statement, number, value.integer)
                 : value.type == SQLITE_FLOAT
                         ? sqlite3_bind_double(statement, number, value.real)
                         : sqlite3_bind_text(statement, number, value.text ? value.text : "", -1,
                                             SQLITE_TRANSIENT);

        return rc == SQLITE_OK ? 0 : translate(sqlite, rc, reterr);
}

int sqlite_step(Sqlite *sqlite, sqlite3_stmt *statement, Error *reterr)
{
        int rc = sqlite3_step(statement);

        if (rc == SQLITE_ROW)
                return 1;
        if (rc == SQLITE_DONE)
                return 0;
        return translate(sqlite, rc, reterr);
}

int sqlite_column(Sqlite *sqlite, sqlite3_stmt *statement, int column, const char **ret,
                  Error *reterr)
{
        const char *text;

        if (sqlite3_column_type(statement, column) == SQLITE_NULL) {
                *ret = "";
                return 0;
        }
        text = (const char *)sqlite3_column_text(statement, column);
        if (!text)
                return error_oom(reterr);
        *ret = text;
        return 0;
}

int sqlite_query_integer(Sqlite *sqlite, const char *sql, int64_t *ret, Error *reterr)
{
        _cleanup_(statement_finalizep) sqlite3_stmt *statement = NULL;
        int r = sqlite_prepare(sqlite, sql, &statement, reterr);

        if (r == 0)
                r = sqlite_step(sqlite, statement, reterr);
        if (r < 0)
                return r;
        if (r == 0)
                return sqlite_damaged(sqlite, "a row is missing", reterr);
        *ret = sqlite3_column_int64(statement, 0);
        return 0;
}

/* Sets the patience of later calls. After a begin that failed with -EBUSY, none of them waits for a
 * lock, until a begin succeeds. */
int sqlite_begin_write(Sqlite *sqlite, Error *reterr)
{
        int moved = 0;
        int r = sqlite_exec(sqlite, "BEGIN IMMEDIATE", reterr);

        if (r == -EBUSY || (r == 0 && sqlite->lock_timed_out))
                set_patience(sqlite, r == 0);
        if (r < 0)
                return r;
        /* Reject the write if the file was moved or removed. Its path then names no file or another
         * one, so a later process would not find the data. */
        if (sqlite3_file_control(sqlite->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
            moved) {
                sqlite_rollback(sqlite);
                return readonly_error(sqlite, SQLITE_READONLY_DBMOVED, reterr);
        }
        return 0;
}

int sqlite_commit(Sqlite *sqlite, Error *reterr)
{
        int r = sqlite_exec(sqlite, "COMMIT", reterr);

        if (r < 0)
                sqlite_rollback(sqlite);
        return r;
}

void sqlite_rollback(Sqlite *sqlite)
{
        if (!sqlite3_get_autocommit(sqlite->db))
                sqlite3_exec(sqlite->db, "ROLLBACK", NULL, NULL, NULL);
}
