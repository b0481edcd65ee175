/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/scratch-folder.h"

#include <ftw.h>
#include <sys/stat.h>

#include "tests/test.h"

/* A test that fails jumps over its cleanup: what is left is removed at the end. */
static char *left[64];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        return remove(path);
}

static void remove_left(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(left); i++)
                if (left[i])
                        scratch_folder_remove(left[i]);
}

char *scratch_folder_make(void)
{
        static bool registered;
        const char *base = getenv("TMPDIR") ?: "/tmp";
        char *folder;
        size_t i = 0;

        if (!registered)
                assert_int_equal(atexit(remove_left), 0);
        registered = true;
        while (i < ARRAY_SIZE(left) && left[i])
                i++;
        assert_true(i < ARRAY_SIZE(left));
        assert_true(asprintf(&folder, "%s/compute-agent-test-XXXXXX", base) > 0);
        assert_non_null(mkdtemp(folder));
        left[i] = folder;
        return folder;
}

void scratch_folder_remove(char *folder)
{
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        for (size_t i = 0; i < ARRAY_SIZE(left); i++)
                if (left[i] == folder)
                        left[i] = NULL;
        free(folder);
}

char *scratch_path(const char *folder, const char *name)
{
        char *path;

        assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
        return path;
}

static void make_parents(const char *folder, char *path)
{
        for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash;
             slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
                *slash = '/';
        }
}

void scratch_write_bytes(const char *folder, const char *name, const void *bytes, size_t n)
{
        _cleanup_free_ char *path = scratch_path(folder, name);
        FILE *file;

        make_parents(folder, path);
        file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, n, file), n);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(chmod(path, 0600), 0);
}

void scratch_write(const char *folder, const char *name, const char *text)
{
        scratch_write_bytes(folder, name, text, strlen(text));
}

void scratch_chmod(const char *folder, const char *name, mode_t mode)
{
        _cleanup_free_ char *path = scratch_path(folder, name);

        assert_int_equal(chmod(path, mode), 0);
}

void scratch_link(const char *folder, const char *name, const char *target)
{
        _cleanup_free_ char *path = scratch_path(folder, name);

        make_parents(folder, path);
        assert_int_equal(symlink(target, path), 0);
}

void scratch_mkdir(const char *folder, const char *name)
{
        _cleanup_free_ char *path = scratch_path(folder, name);

        make_parents(folder, path);
        assert_int_equal(mkdir(path, 0755), 0);
}

char *scratch_read(const char *folder, const char *name)
{
        _cleanup_free_ char *path = scratch_path(folder, name);
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        char *text = NULL;
        size_t size = 0;

        if (!file)
                return NULL;
        if (getdelim(&text, &size, '\0', file) < 0)
                assert_false(ferror(file));
        return text;
}
