/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Opening: new, damaged, foreign and newer files, folders that cannot be written, locks. */

#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define HOST "host VCPU=8 MEMORY_MB=1024; gpu<host VGPU=4"

static void write_file(const char *path, const void *bytes, size_t n)
{
        _cleanup_fclose_ FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, n, file), n);
}

static char *read_file(const char *path, size_t *ret_n)
{
        _cleanup_fclose_ FILE *file = fopen(path, "r");
        struct stat st;
        char *bytes;

        assert_non_null(file);
        assert_int_equal(fstat(fileno(file), &st), 0);
        bytes = malloc((size_t)st.st_size + 1);
        assert_non_null(bytes);
        *ret_n = fread(bytes, 1, (size_t)st.st_size, file);
        assert_int_equal(*ret_n, st.st_size);
        return bytes;
}

static void make_store(Fixture *fixture)
{
        fixture_create(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", NULL), CLAIM_DONE);
        fixture_close(fixture);
}

static void test_new_file(void **state)
{
        Fixture *fixture = *state;
        struct stat st;

        assert_int_equal(fixture_open(fixture), CLAIMS_CREATED);
        assert_string_equal(fixture->error.text, "");
        assert_int_equal(stat(fixture->path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_sql(fixture->path, "PRAGMA journal_mode", "wal");
        assert_sql(fixture->path, "PRAGMA application_id", "1129074003");
        assert_sql(fixture->path, "SELECT count(*) || table_name || version FROM versions",
                   "1claims10");
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        fixture_close(fixture);
        assert_int_equal(fixture_count_files(fixture, "claim", NULL), 1);
}

static void test_empty_file(void **state)
{
        Fixture *fixture = *state;

        write_file(fixture->path, "", 0);
        fixture_create(fixture, HOST);
}

/* The file is set aside, its name is in the error text, and claims are possible at once. */
static void assert_set_aside(Fixture *fixture, const char *why)
{
        _cleanup_free_ char *aside = NULL;
        int r = fixture_open(fixture);

        if (r != CLAIMS_SET_ASIDE)
                fail_msg("%s: %d %s", why, r, fixture->error.text);
        assert_int_equal(fixture_count_files(fixture, "claim.sqlite.corrupt-", &aside), 1);
        assert_text(fixture->error.text, "Set aside as ");
        assert_text(fixture->error.text, aside);
        fixture_set_host(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", NULL), CLAIM_DONE);
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        fixture_close(fixture);
        assert_int_equal(unlink(aside), 0);
}

static void test_not_a_database(void **state)
{
        Fixture *fixture = *state;
        static const size_t sizes[] = { 1, 15, 16, 99, 100, 511, 512, 1024, 4096, 100000 };

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                _cleanup_free_ char *bytes = malloc(sizes[i]);

                memset(bytes, 'x', sizes[i]);
                write_file(fixture->path, bytes, sizes[i]);
                assert_set_aside(fixture, "text");
                /* also with SQLite's own first bytes */
                memcpy(bytes, "SQLite format 3", MIN(sizes[i], sizeof("SQLite format 3")));
                write_file(fixture->path, bytes, sizes[i]);
                assert_set_aside(fixture, "header");
                unlink(fixture->path);
        }
}

/* Overwrites, cuts off or zeroes every page of the file in turn. In each case opening works, and
 * either a claim still exists or the file was set aside. */
static void test_damaged_pages(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *good = NULL;
        size_t size, n_set_aside = 0;

        make_store(fixture);
        good = read_file(fixture->path, &size);
        for (size_t page = 0; page < size / 4096; page++)
                for (int how = 0; how < 3; how++) {
                        _cleanup_free_ char *bad = malloc(size);
                        _cleanup_free_ char *aside = NULL;
                        int r;

                        memcpy(bad, good, size);
                        memset(bad + page * 4096, how == 0 ? 0xa5 : 0, 4096);
                        write_file(fixture->path, bad, how == 2 ? page * 4096 : size);
                        r = fixture_open(fixture);
                        if (r == CLAIMS_SET_ASIDE) {
                                n_set_aside++;
                                assert_int_equal(fixture_count_files(
                                                         fixture, "claim.sqlite.corrupt-", &aside),
                                                 1);
                                assert_int_equal(unlink(aside), 0);
                        } else if (r == CLAIMS_CREATED) {
                                assert_true(page == 0 && how == 2);
                        } else {
                                assert_int_equal(r, CLAIMS_OPENED);
                                assert_int_equal(fixture_used(fixture, "host", "VCPU"), 1);
                        }
                        fixture_close(fixture);
                        unlink(fixture->path);
                }
        /* Damage of free and empty pages can stay unnoticed, but not of most pages. */
        assert_true(n_set_aside > size / 4096 * 3 / 2);
}

/* A claim that ended, with the lists of its parts. */
#define ENDED(allocations, cells)                                                           \
        "INSERT INTO ended_claims SELECT 1, 9, host, node, instance_uuid, 0, 0, 0, '', ''," \
        " request, '', 1, '', '', " allocations ", '[]', " cells ", '[]' FROM claims"

/* A file that is sound for SQLite, with rows that no claim store writes. */
static void test_damaged_rows(void **state)
{
        Fixture *fixture = *state;
        static const char *const damages[] = {
                "UPDATE claims SET instance_uuid = 'vm'",
                "UPDATE resource_providers SET uuid = 'x' WHERE name = 'gpu'",
                "UPDATE resource_providers SET name = '' WHERE name = 'gpu'",
                "UPDATE resource_providers SET name = 'host'",
                "UPDATE resource_providers SET position = 9 WHERE name = 'host'",
                "UPDATE inventories SET total = -1",
                "UPDATE inventories SET resource_class = 'x y' WHERE resource_class = 'VGPU'",
                "UPDATE usages SET used = 0",
                "UPDATE usages SET resource_class = ''",
                "UPDATE usages SET resource_provider_id = 99",
                "DELETE FROM provider_epoch",
                "PRAGMA ignore_check_constraints = 1; UPDATE claims SET state = 'x'",
                "UPDATE claims SET created_usec = 'x'",
                "UPDATE claims SET expires_usec = -1",
                "UPDATE claims SET host = x'41'",
                "INSERT INTO removals (claim_id, consumer) VALUES (1, 'x')",
                "INSERT INTO moves (from_consumer, to_consumer, to_type) VALUES ('x', 'y', '')",
                "INSERT INTO unclean_devices (address, device, identity, consumer, claim_id, "
                "since_usec, state, reason, fresh) VALUES ('x', '', '', 'vm', 1, 0, 'dirty', '', 0)",
                ENDED("'no list'", "'[]'"),
                ENDED("'[[\"x\", \"n\", \"VCPU\", 1, \"\"]]'", "'[]'"),
                ENDED("'[]'", "'[[0, 0, 1, 4, \"x\", 0]]'"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
                free((make_store(fixture), run_sql(fixture->path, damages[i])));
                assert_set_aside(fixture, damages[i]);
                assert_int_equal(unlink(fixture->path), 0);
        }
}

/* A killed process leaves -wal and -shm behind. */
static void leave_log(Fixture *fixture)
{
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                if (fixture_open(fixture) != CLAIMS_OPENED ||
                    fixture_claim(fixture, "vm2", "VCPU=1", NULL) != CLAIM_DONE)
                        _exit(1);
                raise(SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
}

/* The log of the damaged file is set aside with it, and must not be replayed into the new file. */
static void test_damaged_with_log(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *log = NULL;
        char garbage[8192];

        make_store(fixture);
        leave_log(fixture);
        log = text_format("%s-wal", fixture->path);
        assert_int_equal(access(log, F_OK), 0);
        memset(garbage, 'x', sizeof(garbage));
        write_file(fixture->path, garbage, sizeof(garbage));
        assert_int_equal(fixture_open(fixture), CLAIMS_SET_ASIDE);
        assert_sql(fixture->path, "SELECT count(*) FROM resource_providers", "0");
        assert_int_equal(fixture_count_files(fixture, "claim.sqlite.corrupt-", NULL), 3);
}

/* The log is set aside also if the file itself is empty or missing. */
static void test_emptied_with_log(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *log = text_format("%s-wal", fixture->path);

        for (int gone = 0; gone < 2; gone++) {
                if (!gone)
                        write_file(fixture->path, "", 0);
                write_file(log, "something", 9);
                assert_int_equal(fixture_open(fixture), CLAIMS_SET_ASIDE);
                assert_text(fixture->error.text, "cut off at 0 bytes");
                fixture_close(fixture);
                assert_int_equal(unlink(fixture->path), 0);
                assert_int_equal(fixture_count_files(fixture, "claim.sqlite.corrupt-", NULL),
                                 gone ? 3 : 2);
        }
}

static void assert_untouched(Fixture *fixture, int expected, const char *const words[])
{
        _cleanup_free_ char *before = NULL, *after = NULL;
        struct stat st_before, st_after;
        size_t n_before, n_after;
        int r;

        before = read_file(fixture->path, &n_before);
        assert_int_equal(stat(fixture->path, &st_before), 0);
        r = fixture_open(fixture);
        if (r != expected)
                fail_msg("%d %s", r, fixture->error.text);
        for (; *words; words++)
                assert_text(fixture->error.text, *words);
        after = read_file(fixture->path, &n_after);
        assert_int_equal(stat(fixture->path, &st_after), 0);
        assert_int_equal(n_before, n_after);
        assert_memory_equal(before, after, n_before);
        assert_int_equal(st_before.st_ino, st_after.st_ino);
        assert_int_equal(st_before.st_mtim.tv_nsec, st_after.st_mtim.tv_nsec);
        assert_int_equal(fixture_count_files(fixture, "claim", NULL), 1);
}

/* Files of a newer program are rejected, and files of versions up to 8 that were never released. */
static void test_newer_file(void **state)
{
        Fixture *fixture = *state;
        static const char *const words[] = { "version 99", "up to 10",
                                             "Install the version that wrote it", NULL };

        make_store(fixture);
        free(run_sql(fixture->path, "UPDATE versions SET version = 99; DROP TABLE allocations;"
                                    "CREATE TABLE hologram (x)"));
        assert_untouched(fixture, -EPROTONOSUPPORT, words);
        /* in the other journal mode, too */
        free(run_sql(fixture->path, "PRAGMA journal_mode = DELETE"));
        assert_untouched(fixture, -EPROTONOSUPPORT, words);
}

/* The newer program was killed: its log stays unchanged, too. */
static void test_newer_file_with_log(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *log = NULL, *before = NULL, *after = NULL;
        size_t n_before, n_after;
        int status;
        pid_t pid;

        make_store(fixture);
        pid = fork();
        if (pid == 0) {
                sqlite3 *db;

                if (sqlite3_open(fixture->path, &db) != SQLITE_OK ||
                    sqlite3_exec(db, "UPDATE versions SET version = 99", NULL, NULL, NULL) !=
                            SQLITE_OK)
                        _exit(1);
                raise(SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        log = text_format("%s-wal", fixture->path);
        before = read_file(log, &n_before);
        assert_true(n_before > 0);
        assert_int_equal(fixture_open(fixture), -EPROTONOSUPPORT);
        after = read_file(log, &n_after);
        assert_int_equal(n_before, n_after);
        assert_memory_equal(before, after, n_before);
}

/* Writes a header that only another version of SQLite writes, with its checksum. */
static void make_other_log(char *log)
{
        uint32_t words[8];
        size_t n;
        _cleanup_free_ char *text = read_file(log, &n);

        memcpy(words, text, sizeof(words));
        words[1] = htobe32(3007001);
        words[6] = words[7] = 0;
        for (size_t i = 0; i < 6; i += 2) {
                words[6] += le32toh(words[i]) + words[7];
                words[7] += le32toh(words[i + 1]) + words[6];
        }
        words[6] = htobe32(words[6]);
        words[7] = htobe32(words[7]);
        memcpy(text, words, sizeof(words));
        write_file(log, text, n);
}

static void test_log_of_another_sqlite(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *log = NULL, *before = NULL, *after = NULL;
        size_t n_before, n_after;

        make_store(fixture);
        leave_log(fixture);
        log = text_format("%s-wal", fixture->path);
        make_other_log(log);
        before = read_file(log, &n_before);
        assert_int_equal(fixture_open(fixture), -EPROTONOSUPPORT);
        assert_text(fixture->error.text, "another version of SQLite");
        after = read_file(log, &n_after);
        assert_int_equal(n_before, n_after);
        assert_memory_equal(before, after, n_before);
}

static void test_foreign_database(void **state)
{
        Fixture *fixture = *state;
        static const char *const words[] = { "a database of another program", "claim_db", NULL };

        free(run_sql(fixture->path, "CREATE TABLE instances (id)"));
        assert_untouched(fixture, -EMEDIUMTYPE, words);
        free(run_sql(fixture->path, "CREATE TABLE versions (table_name TEXT, version INTEGER);"
                                    "INSERT INTO versions VALUES ('claims', 2);"
                                    "PRAGMA application_id = 4711"));
        assert_untouched(fixture, -EMEDIUMTYPE, words);
}

static void test_bad_paths(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *nowhere = text_format("%s/nowhere/claim.sqlite", fixture->folder);
        char *path = fixture->path;

        fixture->path = nowhere;
        assert_int_equal(fixture_open(fixture), -ENOENT);
        assert_text(fixture->error.text, "its folder does not exist");
        assert_text(fixture->error.text, nowhere);
        fixture->path = path;
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(fixture_open(fixture), -EINVAL);
        assert_text(fixture->error.text, "is not a regular file");
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(fixture_open(fixture), -EINVAL);
}

/* Runs f in a child process that permissions apply to. The exit status is its result. */
static void run_unprivileged(Fixture *fixture, int (*f)(Fixture *))
{
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                if (geteuid() == 0 &&
                    (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
                        _exit(99);
                _exit(f(fixture));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

static int expect_denied(Fixture *fixture)
{
        int r = fixture_open(fixture);

        if (r != -EACCES || !strstr(fixture->error.text, "service's user must own") ||
            !strstr(fixture->error.text, fixture->path)) {
                fprintf(stderr, "%d %s\n", r, fixture->error.text);
                return 1;
        }
        return 0;
}

static void test_no_permission(void **state)
{
        Fixture *fixture = *state;

        /* no file, in a folder that is not writable */
        assert_int_equal(chmod(fixture->folder, 0555), 0);
        run_unprivileged(fixture, expect_denied);
        /* a folder that cannot be searched */
        assert_int_equal(chmod(fixture->folder, 0000), 0);
        run_unprivileged(fixture, expect_denied);
        assert_int_equal(chmod(fixture->folder, 0755), 0);
        make_store(fixture);
        /* a file that is not readable, one that is not writable, and one whose log cannot be
         * made */
        assert_int_equal(chmod(fixture->folder, 0777), 0);
        assert_int_equal(chmod(fixture->path, 0000), 0);
        run_unprivileged(fixture, expect_denied);
        assert_int_equal(chmod(fixture->path, 0444), 0);
        run_unprivileged(fixture, expect_denied);
        assert_int_equal(chmod(fixture->path, 0666), 0);
        assert_int_equal(chmod(fixture->folder, 0555), 0);
        run_unprivileged(fixture, expect_denied);
        assert_int_equal(chmod(fixture->folder, 0755), 0);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 1);
}

/* A damaged file in a folder that is not writable is an error, and stays. */
static void test_damaged_in_read_only_folder(void **state)
{
        Fixture *fixture = *state;

        write_file(fixture->path, "not a database", 14);
        assert_int_equal(chmod(fixture->path, 0666), 0);
        assert_int_equal(chmod(fixture->folder, 0555), 0);
        run_unprivileged(fixture, expect_denied);
        assert_int_equal(chmod(fixture->folder, 0755), 0);
        assert_int_equal(fixture_count_files(fixture, "claim.sqlite.corrupt", NULL), 0);
}

static int open_impatient(Fixture *fixture)
{
        const ClaimsConfig config = { .path = fixture->path,
                                      .host = "compute1",
                                      .node = "host",
                                      .busy_usec = 100 * USEC_PER_MSEC };

        fixture_close(fixture);
        fixture->error = ERROR_NULL;
        return claims_open(&fixture->claims, &config, &fixture->error);
}

static void test_locked(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host VCPU=9");
        uint64_t start, n = 7;
        sqlite3 *other;

        make_store(fixture);
        assert_int_equal(open_impatient(fixture), CLAIMS_OPENED);
        assert_int_equal(sqlite3_open(fixture->path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);

        start = clock_usec(CLOCK_MONOTONIC);
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=1", NULL), -EBUSY);
        assert_true(clock_usec(CLOCK_MONOTONIC) - start < 5 * USEC_PER_SEC);
        assert_text(fixture->error.text, "is locked by another process");
        assert_int_equal(claims_release(fixture->claims, 1, "", NULL), -EBUSY);
        assert_int_equal(claims_confirm(fixture->claims, 1, NULL), -EBUSY);
        assert_int_equal(claims_expire(fixture->claims, UINT64_MAX, &n, NULL), -EBUSY);
        assert_int_equal(claims_set_providers(fixture->claims, tree, NULL), -EBUSY);
        /* calls without a write work */
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", NULL), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=99", NULL), CLAIM_E_NO_CAPACITY);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 1);

        assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=1", NULL), CLAIM_DONE);
        fixture_close(fixture);
        assert_int_equal(sqlite3_exec(other,
                                      "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT",
                                      NULL, NULL, NULL),
                         SQLITE_OK);
        assert_int_equal(open_impatient(fixture), -EBUSY);
        assert_text(fixture->error.text, "is locked by another process");
        sqlite3_close(other);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_store_sane(fixture->path);
}

static void test_opening_while_locked(void **state)
{
        Fixture *fixture = *state;
        int folder;

        make_store(fixture);
        folder = open(fixture->folder, O_RDONLY | O_DIRECTORY);
        assert_int_equal(flock(folder, LOCK_EX), 0);
        assert_int_equal(open_impatient(fixture), -EBUSY);
        assert_text(fixture->error.text, "is being opened by another process");
        close(folder);
        assert_int_equal(open_impatient(fixture), CLAIMS_OPENED);
}

/* An operator moved the file away while the program was running: a claim that would be lost at the
 * end of the process is rejected. */
static void test_moved_away(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *moved = NULL;

        make_store(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        moved = text_format("%s/claim.sqlite.moved", fixture->folder);
        assert_int_equal(rename(fixture->path, moved), 0);
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=1", NULL), -ESTALE);
        assert_text(fixture->error.text, "was moved or removed while in use. Restart the service");
        assert_int_equal(claims_release(fixture->claims, 1, "", NULL), -ESTALE);
        assert_int_equal(fixture_open(fixture), CLAIMS_CREATED);
}

/* A new file has no space to grow: opening returns an error, and works again once there is
 * space. */
static void test_no_capacity(void **state)
{
        Fixture *fixture = *state;
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                struct rlimit limit = { 8192, 8192 };

                signal(SIGXFSZ, SIG_IGN);
                if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
                        _exit(2);
                if (fixture_open(fixture) != -ENOSPC ||
                    !strstr(fixture->error.text, "No space left for the claim database")) {
                        fprintf(stderr, "%s\n", fixture->error.text);
                        _exit(1);
                }
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        fixture_create(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", NULL), CLAIM_DONE);
        assert_store_sane(fixture->path);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_new_file,
                test_empty_file, test_not_a_database, test_damaged_pages, test_damaged_rows,
                test_damaged_with_log, test_emptied_with_log, test_newer_file,
                test_newer_file_with_log, test_log_of_another_sqlite, test_foreign_database,
                test_bad_paths, test_no_permission, test_damaged_in_read_only_folder, test_locked,
                test_opening_while_locked, test_moved_away, test_no_capacity)
