/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/search.h"

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

typedef struct Warnings {
        size_t n;
        char last[512];
} Warnings;

static void on_warning(const char *text, void *userdata)
{
        Warnings *warnings = userdata;

        warnings->n++;
        snprintf(warnings->last, sizeof(warnings->last), "%s", text);
}

/* Joins the paths below folder, with a space after each. */
static void join(char *const paths[], const char *folder, char *ret, size_t size)
{
        ret[0] = '\0';
        for (; *paths; paths++) {
                size_t n = strlen(ret);

                assert_int_equal(strncmp(*paths, folder, strlen(folder)), 0);
                snprintf(ret + n, size - n, "%s ", *paths + strlen(folder) + 1);
        }
}

typedef struct Tree {
        const char *files[8]; /* empty files */
        const char *masks[4]; /* links to /dev/null */
} Tree;

static void make_tree(const char *folder, const Tree *tree)
{
        for (const char *const *file = tree->files; *file; file++)
                scratch_write(folder, *file, "");
        for (const char *const *mask = tree->masks; *mask; mask++)
                scratch_link(folder, *mask, "/dev/null");
}

#define MAIN "/compute-agent/compute-agent.conf"
#define DROP "/compute-agent/compute-agent.conf.d/"

static void test_roots(void **state)
{
        static const struct {
                Tree tree;
                const char *expected;
        } cases[] = {
                { {}, "" },
                { { .files = { "etc" MAIN } }, "etc" MAIN " " },
                { { .files = { "usr" MAIN } }, "usr" MAIN " " },
                { { .files = { "etc" MAIN, "run" MAIN, "usr" MAIN } }, "etc" MAIN " " },
                { { .files = { "run" MAIN, "usr" MAIN } }, "run" MAIN " " },
                /* A masked main file ends the search. */
                { { .files = { "usr" MAIN }, .masks = { "etc" MAIN } }, "" },
                /* Drop-ins need no main file. They follow it by name, in any folder. */
                { { .files = { "usr" DROP "a.conf" } }, "usr" DROP "a.conf " },
                { { .files = { "usr" MAIN, "etc" DROP "b.conf", "usr" DROP "a.conf",
                               "run" DROP "c.conf" } },
                  "usr" MAIN " usr" DROP "a.conf etc" DROP "b.conf run" DROP "c.conf " },
                { { .files = { "etc" DROP "a.conf", "run" DROP "a.conf", "usr" DROP "a.conf" } },
                  "etc" DROP "a.conf " },
                { { .files = { "usr" DROP "a.conf", "usr" DROP "b.conf" },
                    .masks = { "etc" DROP "a.conf" } },
                  "usr" DROP "b.conf " },
                { { .files = { "etc" DROP "a.conf" }, .masks = { "usr" DROP "a.conf" } },
                  "etc" DROP "a.conf " },
                { { .files = { "etc" DROP ".a.conf", "etc" DROP "a.conf~", "etc" DROP "README",
                               "etc" DROP ".conf", "etc" DROP "x.conf" } },
                  "etc" DROP "x.conf " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *etc = scratch_path(folder, "etc");
                _cleanup_free_ char *run = scratch_path(folder, "run");
                _cleanup_free_ char *usr = scratch_path(folder, "usr");
                /* One folder appears twice, as it does with the prefix /usr. */
                const char *const roots[] = { etc, etc, run, usr, NULL };
                _cleanup_(strings_freep) char **paths = NULL;
                char joined[1024];
                Error error = ERROR_NULL;

                make_tree(folder, &cases[i].tree);
                assert_int_equal(config_search(roots, NULL, NULL, NULL, &paths, &error), 0);
                join(paths, folder, joined, sizeof(joined));
                assert_string_equal(joined, cases[i].expected);
        }
}

static void test_named(void **state)
{
        static const struct {
                Tree tree;
                int r;
                const char *expected;
        } cases[] = {
                { { .files = { "x.conf" } }, 0, "x.conf " },
                { { .files = { "x.conf", "x.conf.d/b.conf", "x.conf.d/a.conf", "y.conf" } },
                  0,
                  "x.conf x.conf.d/a.conf x.conf.d/b.conf " },
                { { .files = { "x.conf" }, .masks = { "x.conf.d/a.conf" } }, 0, "x.conf " },
                { { .files = { "x.conf.d/a.conf" }, .masks = { "x.conf" } },
                  0,
                  "x.conf.d/a.conf " },
                { { .files = { "x.conf.d/a.conf" } }, -ENOENT, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *file = scratch_path(folder, "x.conf");
                _cleanup_(strings_freep) char **paths = NULL;
                Error error = ERROR_NULL;
                char text[1024];

                make_tree(folder, &cases[i].tree);
                assert_int_equal(config_search(NULL, file, NULL, NULL, &paths, &error), cases[i].r);
                if (cases[i].r < 0) {
                        snprintf(text, sizeof(text), "%s does not exist", file);
                        assert_string_equal(error.text, text);
                        assert_null(paths);
                        continue;
                }
                join(paths, folder, text, sizeof(text));
                assert_string_equal(text, cases[i].expected);
        }
}

static void test_warnings(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *file = scratch_path(folder, "x.conf");
        _cleanup_(strings_freep) char **paths = NULL, **more = NULL;
        Warnings warnings = {};
        char expected[512];

        scratch_write(folder, "x.conf", "");
        scratch_link(folder, "x.conf.d/a.conf", "nowhere");
        assert_int_equal(config_search(NULL, file, on_warning, &warnings, &paths, NULL), 0);
        snprintf(expected, sizeof(expected), "%s.d/a.conf: No such file or directory, ignoring",
                 file);
        assert_int_equal(warnings.n, 1);
        assert_string_equal(warnings.last, expected);
        assert_null(paths[1]);

        scratch_write(folder, "y.conf", "");
        scratch_write(folder, "y.conf.d", "");
        free(file);
        file = scratch_path(folder, "y.conf");
        assert_int_equal(config_search(NULL, file, on_warning, &warnings, &more, NULL), 0);
        snprintf(expected, sizeof(expected), "%s.d: Not a directory, ignoring", file);
        assert_int_equal(warnings.n, 2);
        assert_string_equal(warnings.last, expected);
        assert_null(more[1]);
}

static void test_unreadable(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *file = scratch_path(folder, "loop/x.conf");
        char **paths = NULL;
        Error error = ERROR_NULL;

        scratch_link(folder, "loop", "loop");
        assert_int_equal(config_search(NULL, file, NULL, NULL, &paths, &error), -ELOOP);
        assert_non_null(strstr(error.text, "loop/x.conf: Too many levels of symbolic links"));
        assert_null(paths);

        free(file);
        file = scratch_path(folder, "y.conf");
        scratch_write(folder, "y.conf", "");
        scratch_link(folder, "y.conf.d/a.conf", "a.conf");
        assert_int_equal(config_search(NULL, file, NULL, NULL, &paths, &error), -ELOOP);
        assert_null(paths);
}

/* Folders of files with another ending follow the same rules. */
static void test_folders(void **state)
{
        static const struct {
                Tree tree;
                const char *expected;
        } cases[] = {
                { {}, "" },
                { { .files = { "usr/a.yaml", "usr/b.conf", "usr/.c.yaml", "usr/.yaml" } },
                  "usr/a.yaml " },
                { { .files = { "etc/b.yaml", "usr/a.yaml", "usr/b.yaml" } },
                  "usr/a.yaml etc/b.yaml " },
                { { .files = { "usr/a.yaml", "usr/b.yaml" }, .masks = { "etc/a.yaml" } },
                  "usr/b.yaml " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *etc = scratch_path(folder, "etc");
                _cleanup_free_ char *usr = scratch_path(folder, "usr");
                const char *const folders[] = { etc, usr, NULL };
                _cleanup_(strings_freep) char **paths = NULL;
                char text[1024];

                make_tree(folder, &cases[i].tree);
                assert_int_equal(config_search_folders(folders, ".yaml", NULL, NULL, &paths, NULL),
                                 0);
                join(paths, folder, text, sizeof(text));
                assert_string_equal(text, cases[i].expected);
        }
}

TEST_MAIN(test_folders, test_roots, test_named, test_warnings, test_unreadable)
