/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/state/state-file.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/json.h"
#include "base/log.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define FORMAT "thing/1"

static void test_write_and_read(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "s.json");
        _cleanup_json_ json_t *json = json_pack("{s:s, s:i}", "format", FORMAT, "n", 5);
        _cleanup_json_ json_t *back = NULL;
        struct stat st;

        assert_int_equal(state_file_read(path, FORMAT, false, &back, NULL), -ENOENT);
        for (int i = 0; i < 2; i++)
                assert_int_equal(state_file_write(path, json, NULL), 0);
        assert_int_equal(state_file_read(path, FORMAT, false, &back, NULL), 0);
        assert_true(json_equal(json, back));
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_corrupt_is_set_aside(void **state)
{
        static const char *const texts[] = {
                "", "{", "[]", "{\"format\": 5}", "{\"format\": \"thing/2\"}", "\xff"
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *path = scratch_path(folder, "s.json");
                _cleanup_free_ char *aside = NULL;
                json_t *back = NULL;
                Error error = ERROR_NULL;

                scratch_write(folder, "s.json", texts[i]);
                assert_int_equal(state_file_read(path, FORMAT, false, &back, &error), -EBADMSG);
                assert_non_null(strstr(error.text, "set aside"));
                assert_int_equal(state_file_read(path, FORMAT, false, &back, &error), -ENOENT);
                if (!texts[i][0])
                        continue;
                aside = scratch_read(folder, "s.json.corrupt");
                assert_string_equal(aside, texts[i]);
        }
}

static void test_old_file_stays_when_writing_fails(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "s.json");
        _cleanup_json_ json_t *json = json_pack("{s:s}", "format", FORMAT);
        _cleanup_json_ json_t *back = NULL;
        Error error = ERROR_NULL;

        assert_int_equal(state_file_write(path, json, NULL), 0);
        scratch_mkdir(folder, "s.json.new"); /* a folder prevents the write, also for root */
        assert_true(state_file_write(path, json, &error) < 0);
        assert_non_null(strstr(error.text, "Cannot write"));
        assert_int_equal(state_file_read(path, FORMAT, false, &back, NULL), 0);
        assert_true(state_file_write("/nowhere/at/all", json, NULL) == -ENOENT);
}

static unsigned n_syncs_left = UINT_MAX; /* calls of fsync() until it fails */

/* Fails on demand, as a disk does. Linked with --wrap. */
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
        if (n_syncs_left-- != 0)
                return __real_fsync(fd);
        errno = EIO;
        return -1;
}

/* The result says which file is in force. The first sync is that of the file, the second that of
 * the folder after the rename. */
static void test_result_says_which_file_is_in_force(void **state)
{
        static const struct {
                bool replace;
                unsigned n_syncs;
                int result;
                const char *content;
        } cases[] = {
                { true, 0, -EIO, "old" }, { true, 1, 0, "new" },  { true, 2, 0, "new" },
                { false, 0, -EIO, NULL }, { false, 1, 0, "new" }, { false, 2, 0, "new" },
        };

        log_set_level(LOG_EMERG);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *path = scratch_path(folder, "s"), *content = NULL;
                _cleanup_free_ char *temporary = scratch_path(folder, "s.x");

                if (cases[i].replace)
                        scratch_write(folder, "s", "old");
                n_syncs_left = cases[i].n_syncs;
                assert_int_equal(state_file_put(path, "x", "new", 0600, cases[i].replace),
                                 cases[i].result);
                n_syncs_left = UINT_MAX;
                assert_int_equal(access(temporary, F_OK), -1);
                if (!cases[i].content) {
                        assert_int_equal(access(path, F_OK), -1);
                        continue;
                }
                content = scratch_read(folder, "s");
                assert_string_equal(content, cases[i].content);
        }
}

static void test_removal_needs_the_sync_of_the_folder(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "s");

        scratch_write(folder, "s", "old");
        for (int i = 0; i < 2; i++) { /* the second time, the file is gone already */
                n_syncs_left = 0;
                assert_int_equal(state_file_remove(path), -EIO);
        }
        n_syncs_left = UINT_MAX;
        assert_int_equal(state_file_remove(path), 0);
        assert_int_equal(state_file_remove("/nowhere/at/all"), 0);
}

static int read_number(const json_t *json, void *userdata, Error *reterr)
{
        const json_t *number = json_object_get(json, "number");

        *(json_int_t *)userdata = json_integer_value(number);
        return json_is_integer(number) ? 0 : error_setf(reterr, EINVAL, "no number");
}

static void test_content_that_is_refused_is_set_aside(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "s.json"), *aside = NULL;
        Error error = ERROR_NULL;
        json_int_t number = 0;

        assert_int_equal(state_file_load(path, FORMAT, false, read_number, &number, &error), 0);
        scratch_write(folder, "s.json", "{\"format\": \"" FORMAT "\", \"number\": 5}");
        assert_int_equal(state_file_load(path, FORMAT, false, read_number, &number, &error), 1);
        assert_int_equal(number, 5);
        scratch_write(folder, "s.json", "{\"format\": \"" FORMAT "\"}");
        assert_int_equal(state_file_load(path, FORMAT, false, read_number, &number, &error),
                         -EBADMSG);
        assert_non_null(strstr(error.text, "no number"));
        aside = scratch_read(folder, "s.json.corrupt");
        assert_non_null(aside);
        assert_int_equal(state_file_load(path, FORMAT, false, read_number, &number, &error), 0);
}

/* A dry run reports damaged content, and the service finds the file as it was. */
static void test_a_dry_run_leaves_damaged_content(void **state)
{
        static const char *const texts[] = { "{", "{\"format\": \"" FORMAT "\"}" };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *path = scratch_path(folder, "s.json"), *left = NULL;
                _cleanup_free_ char *aside = scratch_path(folder, "s.json.corrupt");
                Error error = ERROR_NULL;
                json_int_t number = 0;

                scratch_write(folder, "s.json", texts[i]);
                assert_int_equal(state_file_load(path, FORMAT, true, read_number, &number, &error),
                                 -EBADMSG);
                assert_non_null(strstr(error.text, "s.json: damaged"));
                left = scratch_read(folder, "s.json");
                assert_string_equal(left, texts[i]);
                assert_int_equal(access(aside, F_OK), -1);
        }
}

/* A process never rejects its own lock, so a child tries to take it. */
static void test_a_second_process_is_refused(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_close_ int fd = -EBADF;
        Error error = ERROR_NULL;
        char pid[32];
        int status, other;
        pid_t child;

        assert_int_equal(state_lock_take("/nowhere/at/all", &fd, &error), -ENOENT);
        assert_int_equal(state_lock_take(folder, &fd, &error), 0);
        assert_true(fd >= 0);
        snprintf(pid, sizeof(pid), "Process %d ", (int)getpid());
        child = fork();
        if (child == 0)
                _exit(state_lock_take(folder, &other, &error) == -EBUSY && strstr(error.text, pid)
                              ? 0
                              : 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

TEST_MAIN(test_write_and_read, test_corrupt_is_set_aside, test_old_file_stays_when_writing_fails,
          test_result_says_which_file_is_in_force, test_removal_needs_the_sync_of_the_folder,
          test_content_that_is_refused_is_set_aside, test_a_dry_run_leaves_damaged_content,
          test_a_second_process_is_refused)
