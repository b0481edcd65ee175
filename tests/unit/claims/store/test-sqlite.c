/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/clock.h"
#include "claims/store/sqlite.h"

#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

static void open_table(Fixture *fixture, Sqlite **ret)
{
        free(run_sql(fixture->path, "CREATE TABLE t (a INTEGER UNIQUE, b TEXT, c REAL)"));
        assert_int_equal(sqlite_open(ret, fixture->path, 50 * USEC_PER_MSEC, NULL), 0);
}

static void test_accept(void **state)
{
        _cleanup_(sqlite_closep) Sqlite *sqlite = NULL;
        int64_t value;

        open_table(*state, &sqlite);
        assert_int_equal(sqlite_accept(sqlite, NULL), 0);
        assert_int_equal(sqlite_query_integer(sqlite, "PRAGMA synchronous", &value, NULL), 0);
        assert_int_equal(value, 2);
        assert_int_equal(sqlite_query_integer(sqlite, "PRAGMA foreign_keys", &value, NULL), 0);
        assert_int_equal(value, 1);
}

static void bind(Sqlite *sqlite, sqlite3_stmt *statement, const SqliteValue *values)
{
        for (int i = 1; values->type != 0; i++, values++)
                assert_int_equal(sqlite_bind(sqlite, statement, i, *values, NULL), 0);
}

/* Steps the statement to its end, or to an error, and resets it. */
static int run(Sqlite *sqlite, sqlite3_stmt *statement)
{
        int r;

        do
                r = sqlite_step(sqlite, statement, NULL);
        while (r > 0);
        statement_resetp(&statement);
        return r;
}

static void test_rows(void **state)
{
        _cleanup_(sqlite_closep) Sqlite *sqlite = NULL;
        _cleanup_(statement_finalizep) sqlite3_stmt *insert = NULL, *select = NULL;
        const char *text;

        open_table(*state, &sqlite);
        assert_int_equal(sqlite_prepare(sqlite, "INSERT INTO t VALUES (?1, ?2, ?3)", &insert, NULL),
                         0);
        bind(sqlite, insert, VALUES(-5, "text", 1.5));
        assert_int_equal(run(sqlite, insert), 0);
        bind(sqlite, insert, VALUES(UINT64_MAX, (const char *)NULL));
        assert_int_equal(run(sqlite, insert), 0);
        assert_int_equal(sqlite_prepare(sqlite, "SELECT a, b, c FROM t ORDER BY a", &select, NULL),
                         0);
        assert_int_equal(sqlite_step(sqlite, select, NULL), 1);
        assert_int_equal(sqlite3_column_int64(select, 0), -5);
        assert_int_equal(sqlite_column(sqlite, select, 1, &text, NULL), 0);
        assert_string_equal(text, "text");
        assert_true(sqlite3_column_double(select, 2) == 1.5);
        assert_int_equal(sqlite_step(sqlite, select, NULL), 1);
        assert_true(sqlite3_column_int64(select, 0) == INT64_MAX);
        /* a bound NULL is an empty text; an unbound parameter is NULL, and reads as an empty
         * text */
        assert_int_equal(sqlite3_column_type(select, 1), SQLITE_TEXT);
        assert_int_equal(sqlite3_column_type(select, 2), SQLITE_NULL);
        assert_int_equal(sqlite_column(sqlite, select, 2, &text, NULL), 0);
        assert_string_equal(text, "");
        assert_int_equal(sqlite_step(sqlite, select, NULL), 0);
}

/* A step that fails is neither a row nor the end. */
static void test_step_error(void **state)
{
        _cleanup_(sqlite_closep) Sqlite *sqlite = NULL;
        _cleanup_(statement_finalizep) sqlite3_stmt *statement = NULL;
        Error error = ERROR_NULL;

        open_table(*state, &sqlite);
        assert_int_equal(
                sqlite_prepare(
                        sqlite,
                        "SELECT abs(v) FROM (SELECT 1 AS v UNION ALL SELECT -9223372036854775808)",
                        &statement, NULL),
                0);
        assert_int_equal(sqlite_step(sqlite, statement, &error), 1);
        assert_true(sqlite_step(sqlite, statement, &error) < 0);
        assert_text(error.text, "integer overflow");
        assert_true(run(sqlite, statement) < 0);
}

static void test_errors(void **state)
{
        static const struct {
                const char *sql;
                int r;
                const char *words;
        } cases[] = {
                { "INSERT INTO t (a) VALUES (1)", 0, "" },
                { "INSERT INTO t (a) VALUES (1)", -EEXIST, "UNIQUE" },
                { "INSERT INTO nowhere VALUES (1)", -EUCLEAN, "no such table" },
                { "nonsense", -EUCLEAN, "syntax error" },
                { "PRAGMA max_page_count = 1; CREATE TABLE u (a)", -ENOSPC, "Free some space" },
        };
        Fixture *fixture = *state;
        _cleanup_(sqlite_closep) Sqlite *sqlite = NULL;

        open_table(fixture, &sqlite);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;
                int r = sqlite_exec(sqlite, cases[i].sql, &error);

                if (r != cases[i].r || !strstr(error.text, cases[i].words) ||
                    (r < 0 && !strstr(error.text, fixture->path)))
                        fail_msg("%s: %d %s", cases[i].sql, r, error.text);
        }
}

static void test_query_without_row(void **state)
{
        _cleanup_(sqlite_closep) Sqlite *sqlite = NULL;
        int64_t value = 7;

        open_table(*state, &sqlite);
        assert_int_equal(sqlite_query_integer(sqlite, "SELECT a FROM t", &value, NULL), -EUCLEAN);
        assert_int_equal(value, 7);
}

static void test_transactions(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(sqlite_closep) Sqlite *one = NULL, *two = NULL;
        Error error = ERROR_NULL;

        open_table(fixture, &one);
        assert_int_equal(sqlite_accept(one, NULL), 0);
        assert_int_equal(sqlite_open(&two, fixture->path, 50 * USEC_PER_MSEC, NULL), 0);
        sqlite_rollback(one); /* does nothing outside a transaction */
        assert_int_equal(sqlite_begin_write(one, NULL), 0);
        assert_int_equal(sqlite_exec(one, "INSERT INTO t (a) VALUES (1)", NULL), 0);
        assert_int_equal(sqlite_begin_write(two, &error), -EBUSY);
        assert_text(error.text, "locked by another process");
        assert_int_equal(sqlite_exec(two, "BEGIN", NULL), 0);
        sqlite_rollback(two);
        sqlite_rollback(one);
        assert_int_equal(sqlite_begin_write(two, NULL), 0);
        assert_int_equal(sqlite_exec(two, "INSERT INTO t (a) VALUES (2)", NULL), 0);
        assert_int_equal(sqlite_commit(two, NULL), 0);
        assert_sql(fixture->path, "SELECT group_concat(a) FROM t", "2");
}

#define WAIT_USEC (400 * USEC_PER_MSEC)

/* Returns the time of n attempts to write, all of which find the lock taken. */
static uint64_t refused_usec(Sqlite *sqlite, unsigned n)
{
        uint64_t begin = clock_usec(CLOCK_MONOTONIC);

        while (n-- > 0)
                assert_int_equal(sqlite_begin_write(sqlite, NULL), -EBUSY);
        return clock_usec(CLOCK_MONOTONIC) - begin;
}

static void test_a_lock_that_stays_costs_one_wait(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(sqlite_closep) Sqlite *one = NULL, *two = NULL;

        open_table(fixture, &one);
        assert_int_equal(sqlite_accept(one, NULL), 0);
        assert_int_equal(sqlite_open(&two, fixture->path, WAIT_USEC, NULL), 0);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(sqlite_begin_write(one, NULL), 0);
                assert_true(refused_usec(two, 1) >= WAIT_USEC);
                /* also on a busy machine: 20 waits would take eight seconds */
                assert_true(refused_usec(two, 20) < 10 * WAIT_USEC);
                sqlite_rollback(one);
                /* once the write lock was taken, calls wait again */
                assert_int_equal(sqlite_begin_write(two, NULL), 0);
                sqlite_rollback(two);
        }
}

static void test_system_errors(void **state)
{
        static const struct {
                int code, r;
                const char *text;
        } cases[] = {
                { ENOSPC, -ENOSPC,
                  "No space left for the claim database /x. Free some space in its folder" },
                { -EDQUOT, -ENOSPC,
                  "No space left for the claim database /x. Free some space in its folder" },
                { EPERM, -EACCES,
                  "Cannot open the claim database /x: permission denied. The service's user must own file and folder" },
                { EROFS, -EROFS,
                  "Cannot open the claim database /x: it is read-only. Outside of "
                  "/var/lib/compute-agent, add ReadWritePaths= with \"systemctl edit compute-agent\". "
                  "Otherwise check the mount of its file system" },
                { ENOENT, -ENOENT, "Cannot open the claim database /x: its folder does not exist" },
                { EIO, -EIO, "Cannot open the claim database /x: Input/output error" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;

                assert_int_equal(sqlite_system_error(cases[i].code, "/x", "open", &error),
                                 cases[i].r);
                assert_string_equal(error.text, cases[i].text);
        }
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_accept, test_rows,
                test_step_error, test_errors, test_query_without_row, test_transactions,
                test_a_lock_that_stays_costs_one_wait, test_system_errors)
