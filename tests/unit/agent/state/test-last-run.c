/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The reasons of starts, as a table and by files. */

#include "agent/state/last-run.h"

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

static void test_reasons(void **state)
{
        static const struct {
                bool has_file, is_new;
                LastRun last;
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
                StartReason reason = last_run_judge(cases[i].has_file ? &cases[i].last : NULL,
                                                    cases[i].is_new, "2", "b");

                if (reason != cases[i].reason)
                        fail_msg("%zu: %s", i, start_reason_to_text(reason));
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
