/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/reshape.h"

#include "tests/fixtures/ctl-capture.h"

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

static void print(const json_t *document, CtlPage *page)
{
        ctl_reshape_print(document, hint, page);
}

static void test_what_moves(void **state)
{
        static const PrintRow
                rows[] = {
                        { BEFORE_AND_AFTER,
                          /* providers: changed, new, gone; not those that stay as they are */
                          .has = { "host      VCPU 8, VGPU 2  VCPU 8\n",
                                   "gpu       -               VGPU 2\n",
                                   "old       VGPU 1          -\n", "\nNot yet.\n" },
                          .lacks = { "CUSTOM_N" } },
                        /* consumers: each amount that moves */
                        { BEFORE_AND_AFTER,
                          .has = { GUEST "  host      VCPU 2, VGPU 1  VCPU 2\n",
                                   GUEST "  gpu       -               VGPU 1\n",
                                   "Consumer c: PCPU stays where it is: it floats\n" } },
                },
                /* Of both columns, each has room beside the other. */
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
        check_rows(print, rows, ARRAY_SIZE(rows));
        hint = "";
        check_rows(print, narrow, ARRAY_SIZE(narrow));
}

static void test_what_was_done(void **state)
{
        json_t *json = parse_quoted(BEFORE_AND_AFTER);
        _cleanup_(capture_done) Capture capture, nothing;

        hint = "Done.";
        json_object_set_new(json_object_get(json, "after"), "consumers", json_object());
        capture_print(&capture, print, json, STYLE_PIPE);
        assert_contains(capture.text, "No guest holds anything that moves.\n");
        assert_contains(capture.text, "\nDone.\n");
        capture_print(&nothing, print, NULL, STYLE_PIPE);
        assert_string_equal(nothing.text, "Nothing to do: the tree has the shape of this host.\n");
}

TEST_MAIN(test_what_moves, test_what_was_done)
