/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The reasons of starts, as a table and by files. */

#include "agent/state/last-run.h"

#include "base/json.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

/* Writes the file of another process, from that of this one. */
static void write_last(const char *folder, const char *version, const char *boot_id, bool ended)
{
        _cleanup_free_ char *text = NULL, *changed = NULL;
        _cleanup_json_ json_t *file = NULL;

        assert_int_equal(last_run_end(folder, NULL), 0);
        text = scratch_read(folder, "last-run.json");
        assert_int_equal(json_parse(text, strlen(text), &file, NULL), 0);
        if (strcmp(version, "2") != 0)
                assert_int_equal(json_object_set_new(file, "version", json_string(version)), 0);
        if (strcmp(boot_id, "b") != 0)
                assert_int_equal(json_object_set_new(file, "boot_id", json_string(boot_id)), 0);
        assert_int_equal(json_object_set_new(file, "ended", json_boolean(ended)), 0);
        changed = json_dumps(file, 0);
        scratch_write(folder, "last-run.json", changed);
}

static void test_reasons(void **state)
{
        static const struct {
                bool has_file, is_new;
                struct {
                        const char *version; /* "2": this one */
                        const char *boot_id; /* "b": this one */
                        bool ended;
                } last;
                StartReason reason;
        } cases[] = {
                { false, true, { 0 }, START_FIRST },
                { false, false, { 0 }, START_UNKNOWN },
                { true, false, { "2", "b", true }, START_CLEAN },
                { true, true, { "2", "b", true }, START_CLEAN },
                { true, false, { "1", "b", true }, START_UPGRADE },
                { true, false, { "1", "a", true }, START_UPGRADE },
                { true, false, { "2", "a", true }, START_REBOOT },
                { true, false, { "2", "b", false }, START_CRASH },
                { true, false, { "1", "b", false }, START_CRASH },
                { true, false, { "2", "a", false }, START_CRASH_REBOOT },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                StartReason reason;

                if (cases[i].has_file)
                        write_last(folder, cases[i].last.version, cases[i].last.boot_id,
                                   cases[i].last.ended);
                assert_int_equal(last_run_begin(folder, cases[i].is_new, &reason, NULL), 0);
                if (reason != cases[i].reason)
                        fail_msg("%zu: %d", i, reason);
        }
}

static void test_files(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        StartReason reason;

        assert_int_equal(last_run_begin(folder, true, &reason, NULL), 0);
        assert_int_equal(reason, START_FIRST);
        assert_int_equal(last_run_begin(folder, false, &reason, NULL), 0);
        assert_int_equal(reason, START_CRASH);
        assert_int_equal(last_run_end(folder, NULL), 0);
        assert_int_equal(last_run_begin(folder, false, &reason, NULL), 0);
        assert_int_equal(reason, START_CLEAN);
        /* A damaged file is set aside, and the next start finds the file of this one. */
        scratch_write(folder, "last-run.json", "{");
        assert_true(last_run_begin(folder, false, &reason, NULL) < 0);
        assert_int_equal(reason, START_UNKNOWN);
        assert_int_equal(last_run_begin(folder, false, &reason, NULL), 0);
        assert_int_equal(reason, START_CRASH);
}

TEST_MAIN(test_reasons, test_files)
