/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/plan.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"

#define STEP(method, path, name, summary)                                        \
        "{\"method\": \"" method "\", \"path\": \"" path "\", \"name\": \"" name \
        "\", \"summary\": \"" summary "\"}"
#define UUID "b5ef2f5c-74c4-4a0a-8dd7-9f6a8f0d3b11"

static const char *differs = "";

static void print(const char *json, CtlStyle style, Capture *capture)
{
        _cleanup_(json_done) json_t *plan = parse_json(json);

        capture_begin(capture);
        assert_int_equal(ctl_plan_print(plan, differs, &style, capture->stream, NULL), 0);
        capture_end(capture);
}

static void test_nothing(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print("[]", STYLE_PIPE, &capture);
        assert_string_equal(capture.text, "Nothing to do: Placement is equal to this host.\n");
        capture_done(&capture);
        differs = "the tree must change\x1b shape";
        print("[]", STYLE_PIPE, &capture);
        differs = "";
        assert_string_equal(
                capture.text,
                "Nothing to send now, but Placement is not equal to this host: the tree must change\\x1b shape.\n");
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
                _cleanup_free_ char *json = NULL, *expected = NULL;

                assert_true(asprintf(&json, "[" STEP("PUT", "%s", "n", "s") "]", cases[i].path) >
                            0);
                assert_true(asprintf(&expected, "\nPUT     %-4s  n     s\n", cases[i].what) > 0);
                print(json, STYLE_PIPE, &capture);
                assert_contains(capture.text, expected);
        }
}

static void test_all_shows_paths(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.all = true;
        print("[" STEP("DELETE", "/resource_providers/" UUID, "host1", "") ", 7]", style, &capture);
        assert_contains(capture.text, "DELETE  /resource_providers/" UUID "  host1\n");
        assert_contains(capture.text, "\n2 requests.\n");
}

static void test_foreign_names(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print("[" STEP("PUT", "/traits/X", "a\\u001b[0m", "\\u009b") "]", STYLE_PIPE, &capture);
        assert_contains(capture.text, "a\\x1b[0m  \\xc2\\x9b");
        assert_contains(capture.text, "\n1 request.\n");
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_nothing, test_names_of_paths,
                test_all_shows_paths, test_foreign_names)
