/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rows by tables of columns: the SQL, a row bound and read again, and each hostile value. */

#include "claims/claim/claim.h"
#include "claims/store/columns.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

typedef struct Item {
        int64_t id;
        uint64_t amount;
        unsigned number;
        bool flag;
        double ratio;
        Uuid uuid, other;
        char *text;
        char address[5];
        CpuSet cpus;
        ClaimState state;
} Item;

ROW(item, Item, "item", COLUMN("id", Item, id), COLUMN("amount", Item, amount),
    COLUMN("number", Item, number, .max = 9), COLUMN("flag", Item, flag),
    COLUMN("ratio", Item, ratio), COLUMN("uuid", Item, uuid),
    COLUMN("other", Item, other, .optional = true), COLUMN("text", Item, text),
    COLUMN("address", Item, address), COLUMN("cpus", Item, cpus),
    COLUMN("state", Item, state, .max = _CLAIM_STATE_MAX - 1, .to_text = claim_state_to_text));

#define UUID "11111111-2222-4333-8444-555555555501"

static void prepare(Sqlite *sqlite, const char *text, sqlite3_stmt **ret)
{
        _cleanup_free_ char *sql =
                columns_format(text, (const Row *const[]){ &item_row, &item_row, NULL });

        assert_non_null(sql);
        assert_int_equal(sqlite_prepare(sqlite, sql, ret, NULL), 0);
}

static void open_table(Fixture *fixture, Sqlite **ret)
{
        free(run_sql(fixture->path, "CREATE TABLE t (id, amount, number, flag, ratio, uuid, other,"
                                    " text, address, cpus, state)"));
        assert_int_equal(sqlite_open(ret, fixture->path, 0, NULL), 0);
}

/* Inserts a row whose values are all valid. */
static void insert(Sqlite *sqlite)
{
        _cleanup_(statement_finalizep) sqlite3_stmt *statement = NULL;
        Item item = { .id = -3,
                      .amount = UINT64_MAX,
                      .number = 9,
                      .flag = true,
                      .ratio = 1.5,
                      .uuid = { UUID },
                      .text = (char *)"words",
                      .address = "0000",
                      .state = CLAIM_STATE_CONFIRMED };

        assert_int_equal(cpu_set_parse("0-3,8", &item.cpus, NULL), 0);
        prepare(sqlite, "INSERT INTO t (%) VALUES ($)", &statement);
        assert_int_equal(row_bind(sqlite, statement, 1, &item_row, &item, NULL), 0);
        assert_int_equal(sqlite_step(sqlite, statement, NULL), 0);
        cpu_set_done(&item.cpus);
}

static int read_item(Sqlite *sqlite, Item *item, Error *reterr)
{
        _cleanup_(statement_finalizep) sqlite3_stmt *statement = NULL;

        prepare(sqlite, "SELECT % FROM t", &statement);
        assert_int_equal(sqlite_step(sqlite, statement, NULL), 1);
        return row_read(sqlite, statement, 0, &item_row, item, reterr);
}

static void test_format(void **state)
{
        static const Column columns[] = { COLUMN("a", Item, id), COLUMN("b", Item, amount) };
        static const Row row = { .what = "x", .columns = columns, .n_columns = 2 };
        _cleanup_free_ char *sql =
                columns_format("x (%, c) ($, ?) #", (const Row *const[]){ &row, &row, NULL });

        assert_string_equal(sql, "x (a, b, c) (?, ?, ?) json_extract(value, '$[0]'),"
                                 " json_extract(value, '$[1]')");
}

static void test_bound_row_is_read(void **state)
{
        _cleanup_(sqlite_closep) Sqlite *sqlite = NULL;
        _cleanup_free_ char *cpus = NULL;
        Item item = { 0 };

        open_table(*state, &sqlite);
        insert(sqlite);
        assert_int_equal(read_item(sqlite, &item, NULL), 0);
        assert_int_equal(item.id, -3);
        assert_true(item.amount == INT64_MAX); /* SQLite has no larger number */
        assert_int_equal(item.number, 9);
        assert_true(item.flag && item.ratio == 1.5 && uuid_empty(&item.other));
        assert_string_equal(item.uuid.text, UUID);
        assert_string_equal(item.text, "words");
        assert_string_equal(item.address, "0000");
        assert_int_equal(item.state, CLAIM_STATE_CONFIRMED);
        cpus = cpu_set_format(&item.cpus);
        assert_string_equal(cpus, "0-3,8");
        row_done(&item_row, &item);
        assert_null(item.text);
}

static void test_hostile_values(void **state)
{
        static const struct {
                const char *set, *words;
        } cases[] = {
                { "id = 'x'", "id of item has another type" },
                { "id = NULL", "id of item is NULL" },
                { "id = 1.5", "id of item has another type" },
                { "amount = -1", "amount of item -3 is out of range" },
                { "amount = '5'", "amount of item -3 has another type" },
                { "number = 10", "number of item -3 is out of range" },
                { "flag = 2", "flag of item -3 is out of range" },
                { "ratio = 'x'", "ratio of item -3 has another type" },
                { "uuid = ''", "uuid of item -3 is malformed" },
                { "uuid = 7", "uuid of item -3 has another type" },
                { "other = 'x'", "other of item -3 is malformed" },
                { "text = NULL", "text of item -3 is NULL" },
                { "text = x'41'", "text of item -3 has another type" },
                { "text = 'a' || char(0) || 'b'", "text of item -3 is malformed" },
                { "text = printf('%.20000000c', 'x')", "text of item -3 is too long" },
                { "address = '00000'", "address of item -3 is too long" },
                { "cpus = '99999'", "cpus of item -3 is malformed" },
                { "state = 'x'", "state of item -3 is malformed" },
        };
        _cleanup_(sqlite_closep) Sqlite *sqlite = NULL;
        Item item = { 0 };

        open_table(*state, &sqlite);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;
                char sql[100];

                assert_int_equal(sqlite_exec(sqlite, "DELETE FROM t", NULL), 0);
                insert(sqlite);
                snprintf(sql, sizeof(sql), "UPDATE t SET %s", cases[i].set);
                assert_int_equal(sqlite_exec(sqlite, sql, NULL), 0);
                if (read_item(sqlite, &item, &error) != -EUCLEAN ||
                    !strstr(error.text, cases[i].words))
                        fail_msg("%s: %s", cases[i].set, error.text);
                row_done(&item_row, &item);
        }
        /* An optional value can be NULL. */
        assert_int_equal(sqlite_exec(sqlite, "DELETE FROM t", NULL), 0);
        insert(sqlite);
        assert_int_equal(sqlite_exec(sqlite, "UPDATE t SET other = NULL", NULL), 0);
        assert_int_equal(read_item(sqlite, &item, NULL), 0);
        row_done(&item_row, &item);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_format,
                test_bound_row_is_read, test_hostile_values)
