/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Root alone can give a file away: for everybody else nothing happens, which is tested, too. */

#include "base/folder-owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/scratch-folder.h"
#include "tests/test.h"

#define SOMEBODY 12345

static void test_a_file_is_the_folders(void **state)
{
        static const uid_t owners[] = { 0, SOMEBODY };

        for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
                bool root = geteuid() == 0;
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *path = scratch_path(folder, "file");
                _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
                struct stat st;

                assert_true(fd >= 0);
                if (root)
                        assert_int_equal(chown(folder, owners[i], owners[i]), 0);
                assert_int_equal(folder_owner_adopt(fd, path), 0);
                assert_int_equal(fstat(fd, &st), 0);
                assert_int_equal(st.st_uid, root ? owners[i] : geteuid());
                assert_int_equal(st.st_mode & 07777, 0600);
        }
}

static void test_no_folder(void **state)
{
        int r = folder_owner_adopt(STDIN_FILENO, "/nowhere/at/all");

        assert_int_equal(r, geteuid() == 0 ? -ENOENT : 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_file_is_the_folders),
                cmocka_unit_test(test_no_folder),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
