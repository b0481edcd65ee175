/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Copies of the claim database in memory: they never change the file. */

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/read-file.h"
#include "base/text.h"
#include "claims/store/sqlite.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define HOST "host VCPU=8 MEMORY_MB=1024; gpu<host VGPU=4"
#define SIZE (8 << 20)

static size_t count_claims(const Fixture *fixture)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        _cleanup_(claims_freep) Claims *copy = NULL;
        Error error = ERROR_NULL;

        if (claims_open_copy(&copy, fixture->path, 0, &error) < 0)
                fail_msg("%s", error.text);
        assert_int_equal(claims_list(copy, CLAIMS_LIVING, NULL, &list, NULL), 0);
        return list.n_claims;
}

static char *read_bytes(const char *path, size_t *ret_n)
{
        char *bytes;

        assert_int_equal(read_file_text(path, SIZE, &bytes, ret_n, NULL), 0);
        return bytes;
}

static void make_store(Fixture *fixture)
{
        fixture_create(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", NULL), CLAIM_DONE);
        fixture_close(fixture);
}

static void test_missing_file_is_not_created(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claims_freep) Claims *copy = NULL;
        Error error = ERROR_NULL;

        assert_int_equal(claims_open_copy(&copy, fixture->path, 0, &error), -ENOENT);
        assert_text(error.text, "does not exist");
        assert_int_equal(fixture_count_files(fixture, "claim", NULL), 0);
}

static void test_closed_file_stays_unchanged(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *before = NULL, *after = NULL;
        size_t n_before, n_after;

        make_store(fixture);
        before = read_bytes(fixture->path, &n_before);
        assert_int_equal(count_claims(fixture), 1);
        after = read_bytes(fixture->path, &n_after);
        assert_int_equal(n_before, n_after);
        assert_memory_equal(before, after, n_before);
        assert_int_equal(fixture_count_files(fixture, "claim", NULL), 1);
}

/* The agent has the file open, and the newest claims are in its log. */
static void test_open_file_is_copied_with_its_log(void **state)
{
        Fixture *fixture = *state;

        make_store(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=1", NULL), CLAIM_DONE);
        assert_int_equal(count_claims(fixture), 2);
        assert_int_equal(fixture_claim(fixture, "vm3", "VCPU=1", NULL), CLAIM_DONE);
        assert_int_equal(count_claims(fixture), 3);
}

/* A killed agent leaves its log, which the copy does not move into the file. */
static void test_log_of_a_killed_agent_is_read(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *log = NULL, *before = NULL, *after = NULL;
        size_t n_before, n_after;
        int status;
        pid_t pid;

        make_store(fixture);
        pid = fork();
        if (pid == 0) {
                if (fixture_open(fixture) != CLAIMS_OPENED ||
                    fixture_claim(fixture, "vm2", "VCPU=1", NULL) != CLAIM_DONE)
                        _exit(1);
                raise(SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        log = text_format("%s-wal", fixture->path);
        before = read_bytes(log, &n_before);
        assert_int_equal(count_claims(fixture), 2);
        after = read_bytes(log, &n_after);
        assert_int_equal(n_before, n_after);
        assert_memory_equal(before, after, n_before);
        assert_int_equal(count_claims(fixture), 2);
}

/* A writer in the middle of a transaction does not block the copy, which shows the state before. */
static void test_transaction_of_another_process_is_not_seen(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(sqlite_closep) Sqlite *writer = NULL;

        make_store(fixture);
        assert_int_equal(sqlite_open(&writer, fixture->path, 0, NULL), 0);
        assert_int_equal(sqlite_begin_write(writer, NULL), 0);
        assert_int_equal(sqlite_exec(writer, "DELETE FROM allocations", NULL), 0);
        assert_int_equal(count_claims(fixture), 1);
        sqlite_rollback(writer);
}

/* A write to the copy is lost. */
static void test_writes_stay_in_memory(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claims_freep) Claims *copy = NULL;

        make_store(fixture);
        assert_int_equal(claims_open_copy(&copy, fixture->path, 0, NULL), 0);
        assert_int_equal(claims_release(copy, 1, "over", NULL), 0);
        assert_int_equal(count_claims(fixture), 1);
}

static void expect_refused(Fixture *fixture, int expected, const char *words)
{
        _cleanup_(claims_freep) Claims *copy = NULL;
        _cleanup_free_ char *before = NULL, *after = NULL;
        size_t n_before, n_after;
        Error error = ERROR_NULL;

        before = read_bytes(fixture->path, &n_before);
        assert_int_equal(claims_open_copy(&copy, fixture->path, 0, &error), expected);
        assert_text(error.text, words);
        after = read_bytes(fixture->path, &n_after);
        assert_int_equal(n_before, n_after);
        assert_memory_equal(before, after, n_before);
        assert_int_equal(fixture_count_files(fixture, "claim", NULL), 1);
}

static void test_bad_files_are_refused_and_kept(void **state)
{
        Fixture *fixture = *state;

        make_store(fixture);
        free(run_sql(fixture->path, "UPDATE claims SET instance_uuid = 'vm'"));
        expect_refused(fixture, -EUCLEAN, "is damaged");
        free(run_sql(fixture->path, "UPDATE versions SET version = 99"));
        expect_refused(fixture, -EPROTONOSUPPORT, "Install the version that wrote it");
        free(run_sql(fixture->path, "PRAGMA application_id = 5"));
        expect_refused(fixture, -EMEDIUMTYPE, "a database of another program");
        assert_int_equal(truncate(fixture->path, 100), 0);
        expect_refused(fixture, -EUCLEAN, "cut off at 100 bytes");
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_missing_file_is_not_created,
               test_closed_file_stays_unchanged, test_open_file_is_copied_with_its_log,
               test_log_of_a_killed_agent_is_read, test_transaction_of_another_process_is_not_seen,
               test_writes_stay_in_memory, test_bad_files_are_refused_and_kept)
