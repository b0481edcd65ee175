/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/plan.h"

#include <locale.h>

#include "base/text.h"
#include "tests/fixtures/ctl-capture.h"

#define STEP(method, path, name, summary) \
        "{'method': '" method "', 'path': '" path "', 'name': '" name "', 'summary': '" summary "'}"
#define UUID "b5ef2f5c-74c4-4a0a-8dd7-9f6a8f0d3b11"

static json_t *status_document;

static void print(const json_t *plan, CtlPage *page)
{
        ctl_plan_print(plan, status_document, page);
}

static void test_pages(void **state)
{
        static const PrintRow rows[] = {
                { "[" STEP("DELETE", "/resource_providers/" UUID, "host1", "") ", 7]",
                  .has = { "DELETE  /resource_providers/" UUID "  host1\n", "\n2 requests.\n" },
                  .all = true },
                { "[" STEP("PUT", "/traits/X", "a\\u001b[0m", "\\u009b") "]",
                  .has = { "a\\x1b[0m  \\xc2\\x9b", "\n1 request.\n" } },
        };

        check_rows(print, rows, ARRAY_SIZE(rows));
}

static void test_an_empty_plan_is_no_proof_of_equality(void **state)
{
        static const struct {
                const char *status, *text;
        } cases[] = {
                { "{'sync_state': 'synced'}", "Nothing to do: Placement is equal to this host.\n" },
                { "{'sync_state': 'left-to-nova'}",
                  "Nothing to do: Placement is equal to this host.\n" },
                { "{'sync_state': 'standalone'}",
                  "Nothing to send: no Placement is configured.\n" },
                { "{'sync_state': 'stale', 'sync_error': 'the tree must change\\u001b shape'}",
                  "Nothing to send now, but Placement is not equal to this host: the tree must change\\x1b shape.\n" },
                { "{'sync_state': 'offline', 'sync_error': 'no route'}",
                  "Nothing to send now; the sync state is offline: no route.\n" },
                { "{'sync_state': 'pending', 'sync_error': ''}",
                  "Nothing to send now; the sync state is pending.\n" },
                { "{'sync_state': 'retired', 'sync_error': ''}",
                  "Nothing to send now; the sync state is retired.\n" },
                { "{}", "Nothing to send now; the sync state is unknown.\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const PrintRow row = { "[]", .text = cases[i].text };

                status_document = parse_quoted(cases[i].status);
                check_rows(print, &row, 1);
                json_decref(status_document);
                status_document = NULL;
        }
}

static void test_names_of_paths(void **state)
{
        static const struct {
                const char *path;
                const char *what;
        } cases[] = {
                { "/resource_classes/CUSTOM_X", "class" },
                { "/traits/CUSTOM_T", "trait" },
                { "/resource_providers", "provider" },
                { "/resource_providers/" UUID, "provider" },
                { "/resource_providers/" UUID "/", "provider" },
                { "/resource_providers/" UUID "/inventories", "inventories" },
                { "/resource_providers/" UUID "/traits", "traits" },
                { "/resource_providers/" UUID "/aggregates", "aggregates" },
                { "/reshaper", "reshape" },
                { "/unknown/thing", "/unknown/thing" },
                { "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(capture_done) Capture capture;
                _cleanup_free_ char *json =
                        text_format("[" STEP("PUT", "%s", "n", "s") "]", cases[i].path);
                _cleanup_free_ char *expected =
                        text_format("\nPUT     %-4s  n     s\n", cases[i].what);

                capture_print(&capture, print, parse_quoted(json), STYLE_PIPE);
                assert_contains(capture.text, expected);
        }
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_pages,
                test_an_empty_plan_is_no_proof_of_equality, test_names_of_paths)
