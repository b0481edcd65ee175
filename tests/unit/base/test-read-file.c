/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/read-file.h"

#include <sys/stat.h>

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define MAX_BYTES 8

static void write_file(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void test_sizes(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        static const struct {
                const char *text, *start;
                int r;
        } cases[] = {
                { "", "", 0 },
                { "1234567", "1234", 0 },
                { "12345678", "1234", 0 },
                { "123456789", "1234", -EFBIG },
        };
        char path[200];

        snprintf(path, sizeof(path), "%s/file", folder);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = NULL;
                char start[5] = "";
                size_t n = 0;
                mode_t mode = 0;

                write_file(path, cases[i].text);
                assert_int_equal(chmod(path, 0600), 0);
                assert_int_equal(read_file_text(path, MAX_BYTES, &text, &n, &mode), cases[i].r);
                assert_int_equal(mode & 0777, 0600);
                if (cases[i].r == 0) {
                        assert_string_equal(text, cases[i].text);
                        assert_int_equal(n, strlen(cases[i].text));
                } else {
                        assert_null(text);
                }
                assert_int_equal(read_file_start(path, start, 4, &n, NULL), 0);
                assert_string_equal(start, cases[i].start);
                assert_int_equal(n, strlen(cases[i].start));
        }
}

/* A FIFO without a writer must not block the caller. */
static void test_other_files(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        char fifo[200], missing[200];
        const struct {
                const char *path;
                int r;
        } cases[] = { { folder, -EISDIR },
                      { fifo, -EINVAL },
                      { "/dev/null", -EINVAL },
                      { missing, -ENOENT } };

        snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
        snprintf(missing, sizeof(missing), "%s/missing", folder);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *text = NULL;
                size_t n;

                assert_int_equal(read_file_text(cases[i].path, MAX_BYTES, &text, &n, NULL),
                                 cases[i].r);
                assert_null(text);
        }
}

TEST_MAIN(test_sizes, test_other_files)
