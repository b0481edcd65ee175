/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/state/state-file.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/json.h"
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

        assert_int_equal(state_file_read(path, FORMAT, &back, NULL), -ENOENT);
        for (int i = 0; i < 2; i++)
                assert_int_equal(state_file_write(path, json, NULL), 0);
        assert_int_equal(state_file_read(path, FORMAT, &back, NULL), 0);
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
                assert_int_equal(state_file_read(path, FORMAT, &back, &error), -EBADMSG);
                assert_non_null(strstr(error.text, "set aside"));
                assert_int_equal(state_file_read(path, FORMAT, &back, &error), -ENOENT);
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
        assert_int_equal(state_file_read(path, FORMAT, &back, NULL), 0);
        assert_true(state_file_write("/nowhere/at/all", json, NULL) == -ENOENT);
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

        assert_int_equal(state_file_load(path, FORMAT, read_number, &number, &error), 0);
        scratch_write(folder, "s.json", "{\"format\": \"" FORMAT "\", \"number\": 5}");
        assert_int_equal(state_file_load(path, FORMAT, read_number, &number, &error), 1);
        assert_int_equal(number, 5);
        scratch_write(folder, "s.json", "{\"format\": \"" FORMAT "\"}");
        assert_int_equal(state_file_load(path, FORMAT, read_number, &number, &error), -EINVAL);
        assert_string_equal(error.text, "no number");
        aside = scratch_read(folder, "s.json.corrupt");
        assert_non_null(aside);
        assert_int_equal(state_file_load(path, FORMAT, read_number, &number, &error), 0);
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
          test_content_that_is_refused_is_set_aside, test_a_second_process_is_refused)
