/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/session/nova-mode.h"
#include "tests/unit/test.h"

/* The complete decision: one row for each action, with the result of each mode. */
static void test_decision(void **state)
{
        static const struct {
                NovaAction action;
                bool beside;
        } cases[] = {
                { NOVA_ACTION_PUBLISH, false },   { NOVA_ACTION_RESERVE, true },
                { NOVA_ACTION_RESHAPE, false },   { NOVA_ACTION_CLAIM, true },
                { NOVA_ACTION_REMOVE, true },     { NOVA_ACTION_MOVE, true },
                { NOVA_ACTION_HEAL, true },       { NOVA_ACTION_CORDON_HOST, false },
                { NOVA_ACTION_CORDON_PCI, true }, { NOVA_ACTION_CORDON_DEVICE, false },
                { NOVA_ACTION_RENAME, false },
        };

        assert_int_equal(ARRAY_SIZE(cases), _NOVA_ACTION_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                NovaAction action = cases[i].action;

                assert_null(nova_mode_refuses(NOVA_NONE, action));
                assert_null(nova_mode_refuses(NOVA_TOP, action));
                assert_non_null(strstr(nova_mode_refuses(NOVA_OBSERVE, action), "is observe"));
                if (!nova_mode_refuses(NOVA_BESIDE, action) != cases[i].beside)
                        fail_msg("beside, action %u", action);
        }
}

static void test_requests(void **state)
{
        static const struct {
                const char *method, *path;
                bool beside;
        } cases[] = {
                { "GET", "/resource_providers?in_tree=x", true },
                { "PUT", "/allocations/x", true },
                { "POST", "/allocations", true },
                { "DELETE", "/allocations/x", true },
                { "PUT", "/resource_providers/x/inventories", true },
                { "DELETE", "/resource_providers/x/inventories", false },
                { "PUT", "/resource_providers/x/traits", false },
                { "PUT", "/resource_providers/x/aggregates", false },
                { "PUT", "/resource_providers/x", false },
                { "POST", "/resource_providers", false },
                { "DELETE", "/resource_providers/x", false },
                { "PUT", "/traits/CUSTOM_A", false },
                { "PUT", "/resource_classes/CUSTOM_A", false },
                { "POST", "/reshaper", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *method = cases[i].method, *path = cases[i].path;
                bool reads = strcmp(method, "GET") == 0;

                assert_null(nova_mode_refuses_request(NOVA_NONE, method, path));
                assert_null(nova_mode_refuses_request(NOVA_TOP, method, path));
                assert_int_equal(!nova_mode_refuses_request(NOVA_OBSERVE, method, path), reads);
                if (!nova_mode_refuses_request(NOVA_BESIDE, method, path) != cases[i].beside)
                        fail_msg("beside, %s %s", method, path);
        }
}

static void test_names(void **state)
{
        assert_string_equal(nova_mode_to_text(NOVA_NONE), "none");
        assert_string_equal(nova_mode_to_text(NOVA_OBSERVE), "observe");
        assert_string_equal(nova_mode_to_text(NOVA_BESIDE), "beside");
        assert_string_equal(nova_mode_to_text(NOVA_TOP), "top");
}

TEST_MAIN(test_decision, test_requests, test_names)
