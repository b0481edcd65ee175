/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/changes.h"

#include <locale.h>

#include "base/text.h"
#include "tests/fixtures/ctl-capture.h"

#define STEP(method, path, name, summary) \
        "{'method': '" method "', 'path': '" path "', 'name': '" name "', 'summary': '" summary "'}"
#define UUID "b5ef2f5c-74c4-4a0a-8dd7-9f6a8f0d3b11"

static json_t *status_document;

static void print_plan(const json_t *plan, CtlPage *page)
{
        ctl_plan_print(plan, status_document, page);
}

static void test_plans(void **state)
{
        static const PrintRow rows[] = {
                { "[" STEP("DELETE", "/resource_providers/" UUID, "host1", "") ", 7]",
                  .has = { "DELETE  /resource_providers/" UUID "  host1\n", "\n2 requests.\n" },
                  .all = true },
                { "[" STEP("PUT", "/traits/X", "a\\u001b[0m", "\\u009b") "]",
                  .has = { "a\\x1b[0m  \\xc2\\x9b", "\n1 request.\n" } },
        };

        check_rows(print_plan, rows, ARRAY_SIZE(rows));
}

/* A reshape is no request, so the requests can leave it. */
static void test_requests_do_not_hide_another_shape(void **state)
{
        static const char plan[] = "[" STEP("PUT", "/traits/X", "", "") "]";
        static const PrintRow rows[] = {
                { plan,
                  .has = { "\n1 request. The sync state is left-to-nova: another shape\\x1b.\n" } },
                { plan, .lacks = { "shape" }, .no_legend = true },
        };

        status_document = parse_quoted(
                "{'sync_state': 'left-to-nova', 'sync_error': 'another shape\\u001b'}");
        check_rows(print_plan, rows, ARRAY_SIZE(rows));
        json_decref(status_document);
        status_document = NULL;
}

static void test_an_empty_plan_is_no_proof_of_equality(void **state)
{
        static const struct {
                const char *status, *text;
        } cases[] = {
                { "{'sync_state': 'synced'}", "Nothing to do: Placement is equal to this host.\n" },
                { "{'sync_state': 'left-to-nova'}",
                  "Nothing to do: Placement is equal to this host.\n" },
                { "{'sync_state': 'left-to-nova', 'sync_error': 'another shape'}",
                  "Nothing to send now, but Placement is not equal to this host: another shape.\n" },
                { "{'sync_state': 'standalone'}",
                  "Nothing to send: no Placement is configured.\n" },
                { "{'sync_state': 'stale', 'sync_error': 'the tree must change\\u001b shape'}",
                  "Nothing to send now, but Placement is not equal to this host: the tree must change\\x1b shape.\n" },
                { "{'sync_state': 'offline', 'sync_error': 'no route'}",
                  "Nothing to send now. The sync state is offline: no route.\n" },
                { "{'sync_state': 'pending', 'sync_error': ''}",
                  "Nothing to send now. The sync state is pending.\n" },
                { "{'sync_state': 'retired', 'sync_error': ''}",
                  "Nothing to send now. The sync state is retired.\n" },
                { "{}", "Nothing to send now. The sync state is unknown.\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const PrintRow row = { "[]", .text = cases[i].text };

                status_document = parse_quoted(cases[i].status);
                check_rows(print_plan, &row, 1);
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
                        text_format("\nPUT     %-6s  n     s\n", cases[i].what);

                capture_print(&capture, print_plan, parse_quoted(json), STYLE_PIPE);
                assert_contains(capture.text, expected);
        }
}

#define GUEST "99999999-9999-9999-9999-999999999999"

#define BEFORE_AND_AFTER                                                             \
        "{'before': {'providers': ["                                                 \
        " {'uuid': 'h', 'name': 'host', 'inventories': {'VCPU': {'total': 8},"       \
        "  'VGPU': {'total': 2}}},"                                                  \
        " {'uuid': 'o', 'name': 'old', 'inventories': {'VGPU': {'total': 1}}},"      \
        " {'uuid': 'n', 'name': 'net', 'inventories': {'CUSTOM_N': {'total': 5}}}]," \
        " 'consumers': {'" GUEST "': {'allocations': {"                              \
        "  'h': {'resources': {'VCPU': 2, 'VGPU': 1}},"                              \
        "  'n': {'resources': {'CUSTOM_N': 1}}}}}},"                                 \
        "'after': {'providers': ["                                                   \
        " {'uuid': 'h', 'name': 'host', 'inventories': {'VCPU': {'total': 8}}},"     \
        " {'uuid': 'g', 'name': 'gpu', 'inventories': {'VGPU': {'total': 2}}},"      \
        " {'uuid': 'n', 'name': 'net', 'inventories': {'CUSTOM_N': {'total': 5}}}]," \
        " 'consumers': {'" GUEST "': {'allocations': {"                              \
        "  'h': {'resources': {'VCPU': 2}}, 'g': {'resources': {'VGPU': 1}},"        \
        "  'n': {'resources': {'CUSTOM_N': 1}}}}}},"                                 \
        "'problems': [{'consumer': 'c', 'resource_class': 'PCPU', 'reason': 'it floats'}]}"

static const char *hint;

static void print_moves(const json_t *document, CtlPage *page)
{
        ctl_reshape_print(document, hint, page);
}

static void test_reshapes(void **state)
{
        static const PrintRow
                rows[] = {
                        { BEFORE_AND_AFTER,
                          /* providers: changed, new and removed ones; not those without a change */
                          .has = { "host      VCPU 8, VGPU 2  VCPU 8\n",
                                   "gpu       -               VGPU 2\n",
                                   "old       VGPU 1          -\n", "\nNot yet.\n" },
                          .lacks = { "CUSTOM_N" } },
                        /* consumers: each amount that moves */
                        { BEFORE_AND_AFTER,
                          .has = { GUEST "  host      VCPU 2, VGPU 1  VCPU 2\n",
                                   GUEST "  gpu       -               VGPU 1\n",
                                   "Consumer c: PCPU is not moved: it floats\n" } },
                },
                /* The space is divided between both columns. */
                narrow[] = {
                        { "{'before': {'providers': [{'uuid': 'h', 'name': 'host', 'inventories': {"
                          " 'CUSTOM_HUGEPAGES_1G': {'total': 4}, 'CUSTOM_HUGEPAGES_2M': {'total': 1024},"
                          " 'MEMORY_MB': {'total': 32768}, 'VCPU': {'total': 8}}}]},"
                          " 'after': {'providers': [{'uuid': 'g', 'name': 'cell',"
                          " 'inventories': { 'MEMORY_MB': {'total': 32768}, 'VCPU': {'total': 8}}}]}}",
                          .has = { "cell     -                                   MEMORY_MB 32768, VCPU 8\n",
                                   "\n         32768, VCPU 8\n" },
                          .width = 80 },
                };

        hint = "Not yet.";
        check_rows(print_moves, rows, ARRAY_SIZE(rows));
        hint = "";
        check_rows(print_moves, narrow, ARRAY_SIZE(narrow));
}

static void test_reshapes_without_guests(void **state)
{
        json_t *json = parse_quoted(BEFORE_AND_AFTER);
        _cleanup_(capture_done) Capture capture, nothing;

        hint = "Done.";
        json_object_set_new(json_object_get(json, "after"), "consumers", json_object());
        capture_print(&capture, print_moves, json, STYLE_PIPE);
        assert_contains(capture.text, "No consumer has allocations that move.\n");
        assert_contains(capture.text, "\nDone.\n");
        capture_print(&nothing, print_moves, NULL, STYLE_PIPE);
        assert_string_equal(nothing.text,
                            "Nothing to do: the tree in Placement has the shape of this host.\n");
}

static void test_retirements(void **state)
{
        static const PrintRow rows[] = {
                { "{'providers': ['host1', 7, 'g\\u001b'], 'done': false}",
                  .text = "To be removed from Placement:\n  host1\n  ?\n  g\\x1b\n"
                          "\nNothing was changed. To retire the host, run \"computectl retire\".\n" },
                { "{'providers': ['host1'], 'done': true}",
                  .has = { "Removed from Placement:\n  host1\n", "computectl retire --undo" } },
                { "{'providers': ['host1'], 'done': true}", .lacks = { "--undo" },
                  .no_legend = true },
                { "{'holders': [{'guest': 'web', 'consumer': 'c1', 'claim': 7, 'placed': true},"
                  " {'guest': '', 'consumer': 'c2'}], 'providers': ['host1']}",
                  .has = { "Still on this host:\n  web  c1, claim 7, has allocations in Placement\n"
                           "  c2, runs here\n",
                           "Move the guests away" },
                  .lacks = { "host1", "Providers of this host" } },
                { "{'foreign': ['net'], 'providers': ['host1']}",
                  .has = { "another service created:\n  net\n", "(Neutron, Cyborg)" },
                  .lacks = { "Still on", "Move the guests" } },
        };
        static const bool refused[] = { false, false, false, true, true };

        check_rows(ctl_retire_print, rows, ARRAY_SIZE(rows));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(json_done) json_t *document = parse_quoted(rows[i].document);

                assert_int_equal(ctl_retire_is_refused(document), refused[i]);
        }
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_plans,
                test_requests_do_not_hide_another_shape, test_an_empty_plan_is_no_proof_of_equality,
                test_names_of_paths, test_reshapes, test_reshapes_without_guests, test_retirements)
