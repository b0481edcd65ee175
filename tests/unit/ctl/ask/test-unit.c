/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/unit.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#include <string.h>

static void test_explain(void **state)
{
        static const struct {
                const char *active, *result, *status;
                const char *text; /* NULL: the unit is only stopped */
        } cases[] = {
                { "inactive", "success", "", NULL },
                { "inactive", "success", "Placement is equal to this host", NULL },
                { "failed", "exit-code", "failed: x.conf:3: [DEFAULT] y: not a number",
                  "compute-agent failed: x.conf:3: [DEFAULT] y: not a number" },
                { "activating", "exit-code", "failed: no room",
                  "compute-agent failed: no room" }, /* systemd waits before the restart */
                /* the status of a service that ran is no reason */
                { "failed", "exit-code", "Placement is equal to this host",
                  "compute-agent failed with exit code 78. See: journalctl -u compute-agent" },
                { "failed", "watchdog", "failed: long ago",
                  "compute-agent failed (watchdog). See: journalctl -u compute-agent" },
                { "activating", "success", "",
                  "compute-agent is starting. See: systemctl status compute-agent" },
                { "active", "success", "",
                  "compute-agent is running, but is not on the system bus. See: journalctl -u compute-agent" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const CtlUnit unit = { .active_state = (char *)cases[i].active,
                                       .result = (char *)cases[i].result,
                                       .status_text = (char *)cases[i].status,
                                       .exit_status = 78 };
                Error error = ERROR_NULL;

                assert_int_equal(ctl_unit_explain(&unit, &error), cases[i].text != NULL);
                assert_string_equal(error.text, cases[i].text ? cases[i].text : "");
        }
}

static void test_find_config(void **state)
{
        static const struct {
                const char *argv[4], *config;
        } cases[] = {
                { { NULL }, "" },
                { { "compute-agentd" }, "" },
                { { "compute-agentd", "--dry-run", "--configure" }, "" },
                { { "compute-agentd", "--config=/a" }, "/a" },
                { { "compute-agentd", "--config", "/a" }, "/a" },
                { { "compute-agentd", "-c", "/a" }, "/a" },
                { { "compute-agentd", "-c/a" }, "/a" },
                { { "compute-agentd", "-c" }, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_string_equal(ctl_unit_find_config((char *const *)(uintptr_t)cases[i].argv),
                                    cases[i].config);
}

static void test_may_write(void **state)
{
        static char *const paths[] = { (char *)"/run/compute-agent", (char *)"/srv/agent/", NULL };
        const CtlUnit strict = { .read_only = true, .writable = (char **)(uintptr_t)paths },
                      nothing = { .read_only = true }, open = { .read_only = false };
        static const struct {
                const char *folder;
                bool may;
        } cases[] = {
                { "/run/compute-agent", true },
                { "/run/compute-agent/x", true },
                { "/run/compute-agent2", false },
                { "/srv/agent/state", true },
                { "/srv/agent", true },
                { "/srv", false },
                { "/", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(ctl_unit_may_write(&strict, cases[i].folder), cases[i].may);
                assert_false(ctl_unit_may_write(&nothing, cases[i].folder));
                assert_true(ctl_unit_may_write(&open, cases[i].folder));
        }
}

static void test_compare_credential(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "file"),
                            *gone = scratch_path(folder, "gone");
        const CtlUnitCredential same = { .name = (char *)"same", .path = path },
                                other = { .name = (char *)"other", .path = path },
                                added = { .name = (char *)"added", .path = path },
                                missing = { .name = (char *)"same", .path = gone },
                                of_systemd = { .name = (char *)"other", .path = (char *)"stored" };

        scratch_write(folder, "file", "one\n");
        scratch_write(folder, "same", "one\n");
        scratch_write(folder, "other", "two\n");
        assert_null(ctl_unit_compare_credential(&same, folder));
        assert_null(ctl_unit_compare_credential(&of_systemd, folder));
        assert_string_equal(ctl_unit_compare_credential(&other, folder),
                            "changed after the start of the service");
        assert_string_equal(ctl_unit_compare_credential(&added, folder),
                            "was added to the unit after the start of the service");
        assert_string_equal(ctl_unit_compare_credential(&missing, folder),
                            "is missing, so the next start fails");
        /* the service does not run, and its next start reads the file */
        assert_null(ctl_unit_compare_credential(&added, gone));
}

TEST_MAIN(test_explain, test_find_config, test_may_write, test_compare_credential)
