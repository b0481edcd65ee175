/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/disk-check.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define SHORT_USEC 20000
#define LONG_USEC  UINT64_C(10000000)

/* A file system that does not answer while it hangs. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool hangs;
        unsigned n_calls, n_returned;
        uint64_t bytes;
        int error;
} fs = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static const DiskPlace guests = { .path = "/mnt/guests" };

static void gather(const DiskPlace *place, RbdFigure *figure, DiskFacts *ret)
{
        assert_string_equal(place->path, "/mnt/guests");
        pthread_mutex_lock(&fs.lock);
        fs.n_calls++;
        while (fs.hangs)
                pthread_cond_wait(&fs.changed, &fs.lock);
        ret->total_bytes = fs.bytes;
        if (fs.error)
                error_setf(&ret->error, fs.error, "bad");
        fs.n_returned++;
        pthread_mutex_unlock(&fs.lock);
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

static void expect_run(DiskCheck *check, uint64_t timeout_usec, uint64_t bytes, int error)
{
        DiskFacts facts;

        disk_check_run(check, timeout_usec, &facts);
        assert_int_equal(facts.total_bytes, bytes);
        assert_int_equal(facts.error.code, error);
        if (error == ETIMEDOUT)
                assert_string_equal(
                        facts.error.text,
                        "[DEFAULT] instances_path: the file system of /mnt/guests does not answer");
}

static void wait_for_return(unsigned n)
{
        for (unsigned i = 0; i < 1000; i++) {
                bool done;

                pthread_mutex_lock(&fs.lock);
                done = fs.n_returned >= n;
                pthread_mutex_unlock(&fs.lock);
                if (done)
                        return;
                usleep(10000);
        }
        fail_msg("the thread did not return");
}

/* The last good figure stays, and no second thread is begun beside one that hangs. */
static void test_a_file_system_that_hangs(void **state)
{
        DiskCheck *check = NULL, *next = NULL;

        assert_int_equal(disk_check_new(&check, &guests, gather), 0);
        set_fs(false, 100, 0);
        expect_run(check, LONG_USEC, 100, 0);
        assert_int_equal(count_calls(), 1);
        set_fs(true, 200, 0);
        expect_run(check, SHORT_USEC, 100, ETIMEDOUT);
        expect_run(check, LONG_USEC, 100, ETIMEDOUT); /* does not wait */
        assert_int_equal(count_calls(), 2);

        /* a driver of the same path that takes the place of this one */
        assert_int_equal(disk_check_new(&next, &guests, gather), 0);
        disk_check_inherit(&next, check);
        check = disk_check_unref(check);
        expect_run(next, LONG_USEC, 100, ETIMEDOUT);
        assert_int_equal(count_calls(), 2);

        set_fs(false, 300, 0);
        wait_for_return(2);
        usleep(SHORT_USEC);
        expect_run(next, LONG_USEC, 300, 0);
        assert_null(disk_check_unref(next));
}

static void test_errors_keep_the_last_good_figure(void **state)
{
        DiskCheck *check = NULL, *other = NULL, *before;

        assert_int_equal(disk_check_new(&check, &guests, gather), 0);
        set_fs(false, 0, ENOENT);
        expect_run(check, LONG_USEC, 0, ENOENT);
        set_fs(false, 7, 0);
        expect_run(check, LONG_USEC, 7, 0);
        set_fs(false, 0, EIO);
        expect_run(check, LONG_USEC, 7, EIO);

        assert_int_equal(disk_check_new(&other, &(DiskPlace){ .path = "/other" }, gather), 0);
        before = other;
        disk_check_inherit(&other, check);
        assert_ptr_equal(other, before);
        disk_check_unref(other);
        disk_check_unref(check);
}

static void test_without_a_path(void **state)
{
        DiskCheck *check = NULL;
        DiskFacts facts;

        assert_int_equal(disk_check_new(&check, &(DiskPlace){ .path = NULL }, gather), 0);
        expect_run(check, 0, 0, 0);
        expect_run(NULL, 0, 0, 0);
        disk_check_inherit(&check, NULL);
        disk_check_unref(check);

        facts = (DiskFacts){ 0 };
        disk_gather(&(DiskPlace){ .path = "/" }, NULL, &facts);
        assert_true(facts.total_bytes > 0 && facts.error.code == 0);
        facts = (DiskFacts){ 0 };
        disk_gather(&(DiskPlace){ .path = "/nowhere" }, NULL, &facts);
        assert_int_equal(facts.error.code, ENOENT);
        assert_string_equal(facts.error.text,
                            "[DEFAULT] instances_path: /nowhere: No such file or directory");
}

TEST_MAIN(test_a_file_system_that_hangs, test_errors_keep_the_last_good_figure, test_without_a_path)
