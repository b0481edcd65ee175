/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/instance-folders.h"

#include <errno.h>

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define A "11111111-2222-4333-8444-555555555555"
#define B "22222222-2222-4333-8444-555555555555"
#define C "33333333-2222-4333-8444-555555555555"

static void test_which_folders_count(void **state)
{
        static const char *const names[] = {
                B, A "_resize", A, C "_del", C "x", "_base", "locks", "compute_nodes", "11111111",
        };
        char *folder = scratch_folder_make();
        Uuid *uuids = NULL;
        size_t n = 0;
        Error error;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                scratch_mkdir(folder, names[i]);
        assert_int_equal(instance_folders_read(folder, &uuids, &n, &error), 0);
        assert_int_equal(n, 2);
        assert_string_equal(uuids[0].text, A);
        assert_string_equal(uuids[1].text, B);
        free(uuids);
        scratch_folder_remove(folder);
}

static void test_a_path_that_does_not_exist_has_no_folders(void **state)
{
        static const char *const paths[] = { "", NULL, "/nonexistent/instances",
                                             "/dev/null/instances" };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                Uuid *uuids = NULL;
                size_t n = 7;
                Error error;

                assert_int_equal(instance_folders_read(paths[i], &uuids, &n, &error), 0);
                assert_int_equal(n, 0);
                free(uuids);
        }
}

static void test_a_path_that_cannot_be_read_is_an_error(void **state)
{
        char *folder = scratch_folder_make(), *path = scratch_path(folder, "loop");
        Uuid *uuids = NULL;
        size_t n = 7;
        Error error;

        scratch_link(folder, "loop", "loop");
        assert_int_equal(instance_folders_read(path, &uuids, &n, &error), -ELOOP);
        assert_non_null(strstr(error.text, "[DEFAULT] instances_path: "));
        assert_int_equal(n, 7);
        assert_null(uuids);
        free(path);
        scratch_folder_remove(folder);
}

TEST_MAIN(test_which_folders_count, test_a_path_that_does_not_exist_has_no_folders,
          test_a_path_that_cannot_be_read_is_an_error)
