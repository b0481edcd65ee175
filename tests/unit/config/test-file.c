/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/file.h"

#include <malloc.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define SECRET "swordfish"

static bool watches_free;

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
        if (watches_free && memory)
                assert_null(memmem(memory, malloc_usable_size(memory), SECRET, strlen(SECRET)));
        __real_free(memory);
}

/* Returns the settings as text: sections as "[name]@line", entries as "line:section.key=value". */
static char *describe(const ConfigSettings *file, const char *path)
{
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        for (size_t i = 0; i < file->n_sections; i++)
                fprintf(f, "[%s]@%u\n", file->sections[i].name, file->sections[i].line);
        for (size_t i = 0; i < file->n_entries; i++) {
                const ConfigEntry *entry = &file->entries[i];

                assert_ptr_equal(entry->file, path);
                fprintf(f, "%u:%s.%s=%s\n", entry->line, entry->section, entry->key, entry->value);
        }
        assert_int_equal(fclose(f), 0);
        return text;
}

static void test_good(void **state)
{
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { "", "" },
                { "\n", "" },
                { "# only\n; remarks", "" },
                { "[a]", "[a]@1\n" },
                { "[a]\nk=v", "[a]@1\n2:a.k=v\n" },
                { "[DEFAULT]\nk = v \n", "[DEFAULT]@1\n2:DEFAULT.k=v\n" },
                { "[default]\nk=v\n", "[default]@1\n2:DEFAULT.k=v\n" },
                { "[a]\nk=\n", "[a]@1\n2:a.k=\n" },
                { "[a]\nk=a=b#c;d\n", "[a]@1\n2:a.k=a=b#c;d\n" },
                { "[a]\n/*=v\n", "[a]@1\n2:a./*=v\n" },
                /* Quotes, as in oslo.config. */
                { "[a]\nk=\"v \"\n", "[a]@1\n2:a.k=v \n" },
                { "[a]\nk=''\n", "[a]@1\n2:a.k=\n" },
                { "[a]\nk='v\"\nl=\"\n", "[a]@1\n2:a.k='v\"\n3:a.l=\"\n" },
                /* Values of several lines. */
                { "[a]\nk=x,\n  y,\n\tz\nl=1\n", "[a]@1\n2:a.k=x,\ny,\nz\n5:a.l=1\n" },
                { "[a]\nk=\n  y\n", "[a]@1\n2:a.k=\ny\n" },
                { "[a]\r\nk=x,\r\n y\r\n", "[a]@1\n2:a.k=x,\ny\n" },
                { "[a]\nk=x\n # y\n", "[a]@1\n2:a.k=x\n# y\n" },
                /* White space as in oslo.config: no-break space, thin space, ideographic space. */
                { "[a]\n\xc2\xa0k = \xe2\x80\x89v\xc2\xa0\xe3\x80\x80\n \xc2\xa0w\xc2\xa0 \n\xc2\xa0\nl=\xc3\xa0",
                  "[a]@1\n2:a.k=v\nw\n5:a.l=\xc3\xa0\n" },
                /* The first of '=' and ':' ends the name. */
                { "[a]\nk: v=w\n", "[a]@1\n2:a.k=v=w\n" },
                { "[a]\nk=v:w\n", "[a]@1\n2:a.k=v:w\n" },
                { "[a]\nk\t=\tv\n", "[a]@1\n2:a.k=v\n" },
                /* All values with their lines; the caller decides which one counts. */
                { "[a]\nk=1\nl=2\nk=3\n", "[a]@1\n2:a.k=1\n3:a.l=2\n4:a.k=3\n" },
                { "[a]\nk=1\n[b]\nk=2\n[a]\nk=3\n", "[a]@1\n[b]@3\n2:a.k=1\n4:b.k=2\n6:a.k=3\n" },
                { "[a]\nk=1\n[A]\nK=3\n", "[a]@1\n2:a.k=1\n4:A.K=3\n" },
                { "[mdev_nvidia-35]\nk=1\n", "[mdev_nvidia-35]@1\n2:mdev_nvidia-35.k=1\n" },
                { "\xef\xbb\xbf[a]\nk=\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n",
                  "[a]@1\n2:a.k=\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n" },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(config_settings_done) ConfigSettings file = {};
                _cleanup_free_ char *text = NULL;
                Error error = ERROR_NULL;

                scratch_write(folder, "x.conf", cases[i].text);
                if (config_file_read(&file, path, &error) < 0)
                        fail_msg("\"%s\": %s", cases[i].text, error.text);
                text = describe(&file, path);
                assert_string_equal(text, cases[i].expected);
        }
}

static void expect_error(const char *path, int r, const char *expected)
{
        _cleanup_(config_settings_done) ConfigSettings file = {};
        Error error = ERROR_NULL;
        const char *text;

        assert_int_equal(config_file_read(&file, path, &error), r);
        assert_int_equal(error.code, -r);
        text = strstr(error.text, path);
        assert_non_null(text);
        assert_string_equal(text + strlen(path), expected);
}

static void test_bad(void **state)
{
#define BYTES(text) text, sizeof(text) - 1
        static const struct {
                const char *text;
                size_t n;
                const char *expected;
        } cases[] = {
                { BYTES("[a]\nsecret\n"), ":2: the line is not of the form OPTION = VALUE" },
                { BYTES("k=v\n"), ":1: an option before the first section. Is [DEFAULT] missing?" },
                { BYTES("[a]\nk=1\n\n[b\n"), ":4: no ']' at the end of the section's name" },
                { BYTES("[a] x\n"), ":1: text after the ']' of the section's name" },
                { BYTES("[]\n"), ":1: a section without a name" },
                { BYTES("[a]\n=1\n"), ":2: an option without a name" },
                { BYTES("[a]\n k=1\n"),
                  ":2: the line begins with white space, but there is no value to continue" },
                { BYTES("[a]\n\tk=1\n"),
                  ":2: the line begins with white space, but there is no value to continue" },
                { BYTES("[a]\nk=1\n\n l=2\n"),
                  ":4: the line begins with white space, but there is no value to continue" },
                { BYTES("[a]\nk=1\n# c\n l=2\n"),
                  ":4: the line begins with white space, but there is no value to continue" },
                { BYTES("[a]\nk=secret\0x\n"), ":2: a control character" },
                { BYTES("\0"), ":1: a control character" },
                { BYTES("[a]\n# \x1b\n"), ":2: a control character" },
                { BYTES("[a]\nk=\x7f\n"), ":2: a control character" },
                { BYTES("[a]\nk=\xff\n"), ":2: text that is not UTF-8" },
                { BYTES("[a]\nk=\xc3"), ":2: text that is not UTF-8" },
                { BYTES("[a]\nk=\xc3\nl=1\n"), ":2: text that is not UTF-8" },
                { BYTES("[a]\nk=\xed\xa0\x80\n"), ":2: text that is not UTF-8" },
                { BYTES("\xff\xfe[\0a\0]\0"), ":1: text that is not UTF-8" },
                { BYTES("[a]\nk\xc3\xa9=1\n"),
                  ":2: an option's name with a character that is not allowed" },
                { BYTES("[a\xc3\xa9]\nk=1\n"),
                  ":1: a section's name with a character that is not allowed" },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scratch_write_bytes(folder, "x.conf", cases[i].text, cases[i].n);
                expect_error(path, -EINVAL, cases[i].expected);
        }
}

static void test_secrets_are_wiped(void **state)
{
        static const struct {
                const char *text;
                size_t n;
        } cases[] = {
                { BYTES("[a]\npassword=" SECRET "\n") },
                { BYTES("[a]\npassword=" SECRET "\nk\n") },
                { BYTES("[a]\nk=\0\npassword=" SECRET "\n") },
                { BYTES("\0password=" SECRET) },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ConfigSettings file = {};

                scratch_write_bytes(folder, "x.conf", cases[i].text, cases[i].n);
                watches_free = true;
                (void)config_file_read(&file, path, NULL);
                config_settings_done(&file);
                watches_free = false;
        }
}

static char *repeat(const char *head, const char *text, size_t n)
{
        size_t n_head = strlen(head), length = strlen(text);
        char *all = malloc(n_head + length * n + 1);

        assert_non_null(all);
        memcpy(all, head, n_head);
        for (size_t i = 0; i < n; i++)
                memcpy(all + n_head + i * length, text, length);
        all[n_head + length * n] = '\0';
        return all;
}

static void test_large(void **state)
{
        static const struct {
                const char *head, *text;
                size_t n;
                const char *expected; /* NULL: accepted */
        } cases[] = {
                { "[a]\nk=", "x", CONFIG_FILE_MAX_BYTES - 6, NULL },
                { "[a]\nk=", "x", CONFIG_FILE_MAX_BYTES - 5, " is larger than 1048576 bytes" },
                { "[a]\nk=", "x", 10 * CONFIG_FILE_MAX_BYTES, " is larger than 1048576 bytes" },
                { "[a]\nk=x\n", " y,\n", 20000, NULL },
                { "", "# remark\n", 20000, NULL },
                { "[a]\n", "k=1\n", CONFIG_FILE_MAX_SETTINGS - 1, NULL },
                { "[a]\n", "k=1\n", CONFIG_FILE_MAX_SETTINGS,
                  ":5001: more than 5000 settings in a file" },
                { "", "[a]\n", CONFIG_FILE_MAX_SETTINGS + 1,
                  ":5001: more than 5000 settings in a file" },
                { "[a]\n", "k", 5000, ":2: the line is not of the form OPTION = VALUE" },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "x.conf");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = repeat(cases[i].head, cases[i].text, cases[i].n);
                _cleanup_(config_settings_done) ConfigSettings file = {};

                scratch_write(folder, "x.conf", text);
                if (cases[i].expected)
                        expect_error(path, -EINVAL, cases[i].expected);
                else
                        assert_int_equal(config_file_read(&file, path, NULL), 0);
        }
}

static void test_not_files(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *missing = scratch_path(folder, "missing");
        _cleanup_free_ char *fifo = scratch_path(folder, "fifo");
        _cleanup_free_ char *loop = scratch_path(folder, "loop");
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        expect_error(missing, -ENOENT, ": No such file or directory");
        expect_error(folder, -EINVAL, " is a folder, not a file");
        assert_int_equal(mkfifo(fifo, 0600), 0);
        expect_error(fifo, -EINVAL, " is not a regular file");
        scratch_link(folder, "loop", "loop");
        expect_error(loop, -ELOOP, ": Too many levels of symbolic links");

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        expect_error(address.sun_path, -EINVAL, " is not a regular file");
        expect_error("/dev/zero", -EINVAL, " is not a regular file");
}

TEST_MAIN(test_good, test_bad, test_secrets_are_wiped, test_large, test_not_files)
