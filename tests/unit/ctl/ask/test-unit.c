/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/unit.h"
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

TEST_MAIN(test_explain, test_find_config)
