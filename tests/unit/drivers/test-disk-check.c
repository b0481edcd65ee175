/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/disk-check.h"

#include <pthread.h>
#include <sys/statvfs.h>

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define SHORT_USEC 20000
#define LONG_USEC  UINT64_C(10000000)
#define A          "11111111-2222-4333-8444-555555555555"
#define B          "22222222-2222-4333-8444-555555555555"
#define C          "33333333-2222-4333-8444-555555555555"

/* A simulated file system at /mnt/guests, which does not answer while it hangs. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool hangs;
        unsigned n_calls, n_returned;
        uint64_t bytes;
        int error;
} fs = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static const HostConfig guests = { .instances_path = "/mnt/guests" };

int __real_statvfs(const char *path, struct statvfs *ret);
int __wrap_statvfs(const char *path, struct statvfs *ret);
int __wrap_statvfs(const char *path, struct statvfs *ret)
{
        int error;

        if (strcmp(path, "/mnt/guests") != 0)
                return __real_statvfs(path, ret);
        pthread_mutex_lock(&fs.lock);
        fs.n_calls++;
        while (fs.hangs)
                pthread_cond_wait(&fs.changed, &fs.lock);
        *ret = (struct statvfs){ .f_blocks = fs.bytes, .f_frsize = 1 };
        error = fs.error;
        fs.n_returned++;
        pthread_cond_broadcast(&fs.changed);
        pthread_mutex_unlock(&fs.lock);
        errno = error;
        return error ? -1 : 0;
}

static void set_fs(bool hangs, uint64_t bytes, int error)
{
        pthread_mutex_lock(&fs.lock);
        fs.hangs = hangs;
        fs.bytes = bytes;
        fs.error = error;
        pthread_cond_broadcast(&fs.changed);
        pthread_mutex_unlock(&fs.lock);
}

static unsigned count_calls(void)
{
        unsigned n;

        pthread_mutex_lock(&fs.lock);
        n = fs.n_calls;
        pthread_mutex_unlock(&fs.lock);
        return n;
}

/* Runs the check and compares the size of the disk. */
static void expect_run(DiskCheck *check, uint64_t timeout_usec, uint64_t bytes, int error)
{
        Snapshot facts = { 0 };

        disk_check_run(check, timeout_usec, &facts);
        assert_int_equal(facts.disk_total_bytes, bytes);
        assert_int_equal(facts.disk_error.code, error);
        if (error == ETIMEDOUT)
                assert_string_equal(
                        facts.disk_error.text,
                        "[DEFAULT] instances_path: the file system of /mnt/guests does not answer");
        free(facts.instance_folders);
}

/* Runs the check until it has the answer of the call that hung. The thread of that call returns
 * soon. */
static void wait_for_answer(DiskCheck *check, uint64_t bytes)
{
        Snapshot facts = { 0 };

        pthread_mutex_lock(&fs.lock);
        while (fs.n_returned < fs.n_calls)
                pthread_cond_wait(&fs.changed, &fs.lock);
        pthread_mutex_unlock(&fs.lock);
        do {
                facts = (Snapshot){ 0 };
                disk_check_run(check, LONG_USEC, &facts);
                free(facts.instance_folders);
        } while (facts.disk_error.code == ETIMEDOUT);
        assert_int_equal(facts.disk_error.code, 0);
        assert_int_equal(facts.disk_total_bytes, bytes);
}

/* The last good size stays, and no second thread starts beside one that hangs. */
static void test_a_file_system_that_hangs(void **state)
{
        DiskCheck *check = NULL, *next = NULL;

        assert_int_equal(disk_check_new(&check, &guests), 0);
        set_fs(false, 100, 0);
        expect_run(check, LONG_USEC, 100, 0);
        assert_int_equal(count_calls(), 1);
        set_fs(true, 200, 0);
        expect_run(check, SHORT_USEC, 100, ETIMEDOUT);
        expect_run(check, LONG_USEC, 100, ETIMEDOUT); /* does not wait */
        assert_int_equal(count_calls(), 2);

        /* a driver with the same path replaces this one */
        assert_int_equal(disk_check_new(&next, &guests), 0);
        disk_check_inherit(&next, check);
        check = disk_check_unref(check);
        expect_run(next, LONG_USEC, 100, ETIMEDOUT);
        assert_int_equal(count_calls(), 2);

        set_fs(false, 300, 0);
        wait_for_answer(next, 300);
        assert_null(disk_check_unref(next));
}

static void test_errors_keep_the_last_good_figure(void **state)
{
        DiskCheck *check = NULL, *other = NULL, *before;

        assert_int_equal(disk_check_new(&check, &guests), 0);
        set_fs(false, 0, ENOENT);
        expect_run(check, LONG_USEC, 0, ENOENT);
        set_fs(false, 7, 0);
        expect_run(check, LONG_USEC, 7, 0);
        set_fs(false, 0, EIO);
        expect_run(check, LONG_USEC, 7, EIO);

        assert_int_equal(disk_check_new(&other, &(HostConfig){ .instances_path = "/other" }), 0);
        before = other;
        disk_check_inherit(&other, check);
        assert_ptr_equal(other, before);
        disk_check_unref(other);
        disk_check_unref(check);
}

/* Checks a path once. The caller frees the folders. */
static Snapshot check_path(const char *path)
{
        const HostConfig config = { .instances_path = path };
        DiskCheck *check = NULL;
        Snapshot facts = { 0 };

        assert_int_equal(disk_check_new(&check, &config), 0);
        disk_check_run(check, LONG_USEC, &facts);
        disk_check_inherit(&check, NULL);
        disk_check_unref(check);
        return facts;
}

static void test_paths(void **state)
{
        static const struct {
                const char *path;
                int error;
        } cases[] = {
                { NULL, 0 },
                { "", 0 },
                { "/", 0 },
                { "/nonexistent/instances", ENOENT },
                { "/dev/null/instances", ENOTDIR },
        };
        Snapshot facts;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                facts = check_path(cases[i].path);
                assert_int_equal(facts.disk_error.code, cases[i].error);
                assert_int_equal(facts.disk_total_bytes > 0,
                                 cases[i].path && cases[i].path[0] && !cases[i].error);
                /* a path that does not exist has no folders */
                assert_int_equal(facts.folders_error.code, 0);
                assert_int_equal(facts.n_instance_folders, 0);
                free(facts.instance_folders);
        }
        facts = check_path("/nowhere");
        assert_string_equal(facts.disk_error.text,
                            "[DEFAULT] instances_path: /nowhere: No such file or directory");
        expect_run(NULL, 0, 0, 0);
}

static void test_instance_folders(void **state)
{
        static const char *const names[] = {
                B, A "_resize", A, C "_del", C "x", "_base", "locks", "compute_nodes", "11111111",
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        Snapshot facts;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                scratch_mkdir(folder, names[i]);
        facts = check_path(folder);
        assert_int_equal(facts.folders_error.code, 0);
        assert_int_equal(facts.n_instance_folders, 2);
        assert_string_equal(facts.instance_folders[0].text, A);
        assert_string_equal(facts.instance_folders[1].text, B);
        free(facts.instance_folders);
}

static void test_a_path_that_cannot_be_read_is_an_error(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "loop");
        Snapshot facts;

        scratch_link(folder, "loop", "loop");
        facts = check_path(path);
        assert_int_equal(facts.folders_error.code, ELOOP);
        assert_non_null(strstr(facts.folders_error.text, "[DEFAULT] instances_path: "));
        assert_null(facts.instance_folders);
}

TEST_MAIN(test_a_file_system_that_hangs, test_errors_keep_the_last_good_figure, test_paths,
          test_instance_folders, test_a_path_that_cannot_be_read_is_an_error)
