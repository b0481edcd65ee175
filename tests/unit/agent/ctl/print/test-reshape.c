/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/reshape.h"

#include "tests/fixtures/ctl-capture.h"

#define GUEST "99999999-9999-9999-9999-999999999999"

static const char document[] =
        "{\"before\": {\"providers\": ["
        " {\"uuid\": \"h\", \"name\": \"host\", \"inventories\": {\"VCPU\": {\"total\": 8},"
        "  \"VGPU\": {\"total\": 2}}},"
        " {\"uuid\": \"o\", \"name\": \"old\", \"inventories\": {\"VGPU\": {\"total\": 1}}},"
        " {\"uuid\": \"n\", \"name\": \"net\", \"inventories\": {\"CUSTOM_N\": {\"total\": 5}}}],"
        " \"consumers\": {\"" GUEST "\": {\"allocations\": {"
        "  \"h\": {\"resources\": {\"VCPU\": 2, \"VGPU\": 1}},"
        "  \"n\": {\"resources\": {\"CUSTOM_N\": 1}}}}}},"
        "\"after\": {\"providers\": ["
        " {\"uuid\": \"h\", \"name\": \"host\", \"inventories\": {\"VCPU\": {\"total\": 8}}},"
        " {\"uuid\": \"g\", \"name\": \"gpu\", \"inventories\": {\"VGPU\": {\"total\": 2}}},"
        " {\"uuid\": \"n\", \"name\": \"net\", \"inventories\": {\"CUSTOM_N\": {\"total\": 5}}}],"
        " \"consumers\": {\"" GUEST "\": {\"allocations\": {"
        "  \"h\": {\"resources\": {\"VCPU\": 2}}, \"g\": {\"resources\": {\"VGPU\": 1}},"
        "  \"n\": {\"resources\": {\"CUSTOM_N\": 1}}}}}},"
        "\"problems\": [{\"consumer\": \"c\", \"resource_class\": \"PCPU\", \"reason\": \"it floats\"}]}";

static void test_what_moves(void **state)
{
        _cleanup_(json_done) json_t *json = parse_json(document);
        _cleanup_(capture_done) Capture capture;
        const char *text;

        assert_int_equal(ctl_reshape_print(json, "Not yet.", &STYLE_PIPE,
                                           capture_begin(&capture)->stream, NULL),
                         0);
        text = capture_end(&capture);
        /* providers: changed, new, gone; not those that stay as they are */
        assert_contains(text, "host      VCPU 8, VGPU 2  VCPU 8\n");
        assert_contains(text, "gpu       -               VGPU 2\n");
        assert_contains(text, "old       VGPU 1          -\n");
        assert_lacks(text, "CUSTOM_N");
        /* consumers: each amount that moves */
        assert_contains(text, GUEST "  host      VCPU 2, VGPU 1  VCPU 2\n");
        assert_contains(text, GUEST "  gpu       -               VGPU 1\n");
        assert_contains(text, "Consumer c: PCPU stays where it is: it floats\n");
        assert_contains(text, "\nNot yet.\n");
}

static void test_what_was_done(void **state)
{
        _cleanup_(json_done) json_t *json = parse_json(document);
        _cleanup_(capture_done) Capture capture;

        json_object_set_new(json_object_get(json, "after"), "consumers", json_object());
        assert_int_equal(ctl_reshape_print(json, "Done.", &STYLE_PIPE,
                                           capture_begin(&capture)->stream, NULL),
                         0);
        assert_contains(capture_end(&capture), "No guest holds anything that moves.\n");
        assert_contains(capture.text, "\nDone.\n");
}

/* Of both columns, each has room beside the other. */
static void test_80_columns(void **state)
{
        _cleanup_(json_done) json_t *json = parse_json(
                "{\"before\": {\"providers\": [{\"uuid\": \"h\", \"name\": \"host\", "
                "\"inventories\": {"
                " \"CUSTOM_HUGEPAGES_1G\": {\"total\": 4}, \"CUSTOM_HUGEPAGES_2M\": "
                "{\"total\": 1024},"
                " \"MEMORY_MB\": {\"total\": 32768}, \"VCPU\": {\"total\": 8}}}]},"
                " \"after\": {\"providers\": [{\"uuid\": \"g\", \"name\": \"cell\", "
                "\"inventories\": { \"MEMORY_MB\": {\"total\": 32768}, \"VCPU\": {\"total\": 8}}}]}}");
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.width = 80;
        assert_int_equal(ctl_reshape_print(json, "", &style, capture_begin(&capture)->stream, NULL),
                         0);
        capture_end(&capture);
        assert_contains(capture.text,
                        "cell     -                                   MEMORY_MB 32768, VCPU 8\n");
        assert_contains(capture.text, "\n         32768, VCPU 8\n");
}

static void test_nothing_moves(void **state)
{
        _cleanup_(capture_done) Capture capture;

        assert_int_equal(
                ctl_reshape_print(NULL, "", &STYLE_PIPE, capture_begin(&capture)->stream, NULL), 0);
        assert_string_equal(capture_end(&capture),
                            "Nothing to do: the tree has the shape of this host.\n");
}

TEST_MAIN(test_what_moves, test_what_was_done, test_80_columns, test_nothing_moves)
