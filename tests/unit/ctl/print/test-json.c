/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/json.h"

#include "tests/fixtures/ctl-capture.h"

static void check_print(const char *json, CtlJson mode, bool terminal, const char *expected)
{
        _cleanup_(json_done) json_t *document = parse_json(json);
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.terminal = terminal;
        ctl_json_print(document, mode, capture_begin(&capture, style));
        assert_string_equal(capture_end(&capture), expected);
}

static void test_print(void **state)
{
        check_print("{\"b\": 1.1, \"a\": \"ü\"}", CTL_JSON_SHORT, false,
                    "{\"b\":1.1,\"a\":\"ü\"}\n");
        check_print("{\"b\": [1]}", CTL_JSON_PRETTY, false,
                    "{\n    \"b\": [\n        1\n    ]\n}\n");
        /* JSON allows C1 controls in text, but a terminal obeys them. */
        check_print("[\"\xc2\x9b\"]", CTL_JSON_SHORT, true, "[\"\\u009B\"]\n");
}

static void test_members(void **state)
{
        _cleanup_(json_done) json_t *object =
                parse_json("{\"text\": \"a\", \"number\": 7, \"negative\": -1}");

        assert_string_equal(ctl_json_text(object, "text"), "a");
        assert_string_equal(ctl_json_text(object, "number"), "");
        assert_string_equal(ctl_json_text(object, "none"), "");
        assert_string_equal(ctl_json_text(NULL, "none"), "");
        assert_int_equal(ctl_json_u64(object, "number"), 7);
        assert_int_equal(ctl_json_u64(object, "negative"), 0);
        assert_int_equal(ctl_json_u64(object, "text"), 0);
}

static void test_read_document(void **state)
{
        static const struct {
                const char *text;
                const char *format;
                int r;
        } cases[] = {
                { "{\"format\": \"x/1\"}", "x/1", 0 },
                { "{\"format\": \"x/2\"}", "x/1", -EBADMSG },
                { "{}", "x/1", -EBADMSG },
                { "{}", NULL, -EBADMSG },
                { "[]", NULL, 0 },
                { "[]", "x/1", -EBADMSG },
                { "[", NULL, -EBADMSG },
                { "", NULL, -EBADMSG },
                { "<html>", NULL, -EBADMSG },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *document = NULL;
                Error error = ERROR_NULL;

                assert_int_equal(
                        ctl_json_read_document(cases[i].text, cases[i].format, &document, &error),
                        cases[i].r);
                assert_true((cases[i].r < 0) == (error.text[0] != '\0'));
                assert_true((cases[i].r < 0) == (document == NULL));
        }
}

static void test_format_resources(void **state)
{
        _cleanup_(json_done) json_t *resources = parse_json("{\"VCPU\": 2, \"MEMORY_MB\": 512}");
        _cleanup_free_ char *text = ctl_json_format(resources, ctl_json_write_resources);
        _cleanup_free_ char *none = ctl_json_format(NULL, ctl_json_write_resources);

        assert_string_equal(text, "VCPU=2, MEMORY_MB=512");
        assert_string_equal(none, "");
}

TEST_MAIN(test_print, test_members, test_read_document, test_format_resources)
