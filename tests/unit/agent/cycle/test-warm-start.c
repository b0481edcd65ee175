/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/warm-start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/text.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define SEC  USEC_PER_SEC
#define HOUR (3600 * SEC)
#define NOON (1000000 * HOUR)
#define BOOT "0123456789abcdef0123456789abcdef"

static char *folder;
static const Uuid root = { "11111111-1111-4111-8111-111111111111" };

static int begin(void **state)
{
        folder = scratch_folder_make();
        return 0;
}

static int end(void **state)
{
        scratch_folder_remove(folder);
        return 0;
}

/* Returns a file of 10 s ago; the caller frees it. */
static WarmStart make(void)
{
        return (WarmStart){
                .root = root,
                .saved = { .real_usec = NOON - 10 * SEC, .boot_usec = 90 * SEC, .boot_id = BOOT },
                .full_at_usec = NOON + HOUR,
                .audited_usec = NOON - HOUR,
                .held_stamp = 12,
                .reporter = json_pack("{sfss}", "ratio", 1.5, "text", "x")
        };
}

static void write_file(void)
{
        _cleanup_(warm_start_done) WarmStart warm = make();

        assert_int_equal(warm_start_write(&warm, folder, NULL), 0);
}

static int take(const Uuid *of, WarmStart *ret, Error *reterr)
{
        const WarmMoment now = { .real_usec = NOON };

        return warm_start_take(folder, of, &now, ret, reterr);
}

/* Writes the content and returns what is read at that moment. */
static WarmStart judge(const WarmStart *written, const WarmMoment *now)
{
        WarmStart warm = { 0 };

        assert_int_equal(warm_start_write(written, folder, NULL), 0);
        assert_int_equal(warm_start_take(folder, &root, now, &warm, NULL), 1);
        json_decref(warm.reporter);
        warm.reporter = NULL;
        return warm;
}

static char *path_of(const char *name)
{
        char *path = text_format("%s/%s", folder, name);

        assert_non_null(path);
        return path;
}

static bool exists(const char *name)
{
        char *path = path_of(name);
        bool found = access(path, F_OK) == 0;

        free(path);
        return found;
}

static void test_a_file_is_read_once(void **state)
{
        _cleanup_(warm_start_done) WarmStart expected = make(), warm = { 0 };
        const Uuid other = { "22222222-2222-4222-8222-222222222222" };

        assert_int_equal(take(&root, &warm, NULL), 0);
        write_file();
        assert_int_equal(take(&root, &warm, NULL), 1);
        assert_true(json_equal(warm.reporter, expected.reporter));
        assert_int_equal(warm.saved.real_usec, expected.saved.real_usec);
        assert_int_equal(warm.saved.boot_usec, expected.saved.boot_usec);
        assert_string_equal(warm.saved.boot_id, expected.saved.boot_id);
        assert_int_equal(warm.full_at_usec, expected.full_at_usec);
        assert_int_equal(warm.audited_usec, expected.audited_usec);
        assert_int_equal(warm.held_stamp, expected.held_stamp);
        warm_start_done(&warm);
        assert_int_equal(take(&root, &warm, NULL), 0);
        /* The file of another host is removed, too. */
        write_file();
        assert_int_equal(take(&other, &warm, NULL), -ESTALE);
        assert_null(warm.reporter);
        assert_false(exists("placement.json"));
}

/* Each byte of the file but spaces and line breaks counts. */
static void test_a_damaged_file_is_set_aside(void **state)
{
        char *path = path_of("placement.json");
        struct stat status;

        write_file();
        assert_int_equal(stat(path, &status), 0);
        for (off_t i = 0; i < status.st_size; i++) {
                WarmStart warm = { 0 };
                Error error = ERROR_NULL;
                FILE *file;
                int c;

                write_file();
                file = fopen(path, "r+");
                assert_non_null(file);
                assert_int_equal(fseek(file, i, SEEK_SET), 0);
                c = fgetc(file);
                assert_int_equal(fseek(file, i, SEEK_SET), 0);
                fputc(c == ' ' || c == '\n' ? c : c ^ 1, file);
                fclose(file);
                if (c == ' ' || c == '\n')
                        continue;
                if (take(&root, &warm, &error) != -EBADMSG || !error.text[0])
                        fail_msg("byte %d: %s", (int)i, error.text);
                assert_false(exists("placement.json"));
                assert_true(exists("placement.json.corrupt"));
        }
        free(path);
}

static void test_a_large_tree_is_not_kept(void **state)
{
        char *text = calloc(1, WARM_SIZE_MAX + 1);
        WarmStart warm = { .root = root, .reporter = json_object() };

        assert_non_null(text);
        memset(text, 'x', WARM_SIZE_MAX);
        json_object_set_new(warm.reporter, "text", json_string(text));
        assert_int_equal(warm_start_write(&warm, folder, NULL), 0);
        assert_false(exists("placement.json"));
        free(text);
        warm_start_done(&warm);
}

static void test_full_read(void **state)
{
        static const struct {
                uint64_t saved, full_at, expected;
        } cases[] = {
                { NOON - SEC, NOON + HOUR, HOUR },
                { NOON - SEC, NOON + 36 * HOUR, 36 * HOUR },
                { NOON - SEC, NOON, 0 },
                { NOON - 48 * HOUR, NOON - HOUR, 0 },
                /* The clock was set back. */
                { NOON + SEC, NOON + HOUR, 0 },
                { NOON - SEC, NOON + 37 * HOUR, 0 },
        };
        const WarmMoment now = { .real_usec = NOON };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(warm_start_done) WarmStart warm = make();

                warm.saved.real_usec = cases[i].saved;
                warm.full_at_usec = cases[i].full_at;
                if (judge(&warm, &now).full_in_usec != cases[i].expected)
                        fail_msg("case %zu", i);
        }
}

static void test_audit(void **state)
{
        static const struct {
                const char *boot_id;
                uint64_t boot, audited;
                bool expected;
        } cases[] = {
                { BOOT, 100 * SEC, NOON - HOUR, true },
                { BOOT, 150 * SEC, NOON - 24 * HOUR + 1, true },
                { BOOT, 151 * SEC, NOON - HOUR, false },      /* a long stop */
                { BOOT, 89 * SEC, NOON - HOUR, false },       /* a wrong clock */
                { BOOT, 100 * SEC, 0, false },                /* no audit, or one with findings */
                { BOOT, 100 * SEC, NOON - 24 * HOUR, false }, /* an old audit */
                { BOOT, 100 * SEC, NOON + 1, false },         /* a clock that was set back */
                { "f", 100 * SEC, NOON - HOUR, false },       /* another boot */
                { "", 100 * SEC, NOON - HOUR, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                WarmMoment now = { .real_usec = NOON, .boot_usec = cases[i].boot };
                WarmStart warm = make();

                strcpy(now.boot_id, cases[i].boot_id);
                warm.audited_usec = cases[i].audited;
                if (!cases[i].boot_id[0])
                        warm.saved.boot_id[0] = '\0';
                if (judge(&warm, &now).is_audited != cases[i].expected)
                        fail_msg("case %zu", i);
                warm_start_done(&warm);
        }
}

TEST_MAIN_WITH(begin, end, test_a_file_is_read_once, test_a_damaged_file_is_set_aside,
               test_a_large_tree_is_not_kept, test_full_read, test_audit)
