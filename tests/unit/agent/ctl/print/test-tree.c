/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/tree.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"

#define INVENTORY(total, used)                                                 \
        "{\"total\": " #total ", \"reserved\": 0, \"allocation_ratio\": 1.5, " \
        "\"capacity\": " #total ", \"used\": " #used "}"
#define PROVIDER(uuid, name, parent, traits, inventories)                      \
        "{\"uuid\": \"" uuid "\", \"name\": \"" name "\", \"parent\": " parent \
        ", \"traits\": [" traits "], \"inventories\": {" inventories "}}"
#define TREE(providers) "{\"providers\": [" providers "]}"

/* Children of one parent are not next to each other: order is that of the tree all the same. */
#define HOST                                                                                                                          \
        TREE(PROVIDER(                                                                                                                \
                "r", "host1", "null", "\"A\", \"B\", \"C\", \"D\"",                                                                   \
                "\"MEMORY_MB\": " INVENTORY(100, 50) ", \"VCPU\": " INVENTORY(                                                        \
                        8,                                                                                                            \
                        8)) "," PROVIDER("a", "gpu_a", "\"r\"", "",                                                                   \
                                         "\"VGPU\": " INVENTORY(                                                                      \
                                                 16,                                                                                  \
                                                 1)) "," PROVIDER("b", "gpu_b", "\"r\"", "\"X\"",                                     \
                                                                  "\"VGPU\": " INVENTORY(                                             \
                                                                          16,                                                         \
                                                                          0)) "," PROVIDER("c",                                       \
                                                                                           "below"                                    \
                                                                                           "_a",                                      \
                                                                                           "\"a"                                      \
                                                                                           "\"",                                      \
                                                                                           "",                                        \
                                                                                           "\"P\""                                    \
                                                                                           ":"                                        \
                                                                                           " " INVENTORY(1, 0) ", \"Q\": " INVENTORY( \
                                                                                                   0,                                 \
                                                                                                   0)) "," PROVIDER("s",              \
                                                                                                                    "shared",         \
                                                                                                                    "null",           \
                                                                                                                    "",               \
                                                                                                                    ""))

static int print(const char *json, CtlStyle style, Capture *capture, Error *reterr)
{
        _cleanup_(json_done) json_t *tree = parse_json(json);
        int r;

        capture_begin(capture);
        r = ctl_tree_print(tree, &style, capture->stream, reterr);
        capture_end(capture);
        return r;
}

static void test_tree(void **state)
{
        _cleanup_(capture_done) Capture capture;

        assert_int_equal(print(HOST, STYLE_PIPE, &capture, NULL), 0);
        assert_string_equal(capture.text,
                            "PROVIDER     CLASS      USED  CAPACITY  USAGE            TRAITS\n"
                            "host1        MEMORY_MB    50       100  ▉▉▉▉▉░░░░░  50%  A\n"
                            "│            VCPU          8         8  ▉▉▉▉▉▉▉▉▉▉ 100%  B +2\n"
                            "├─gpu_a      VGPU          1        16  ▉░░░░░░░░░   6%\n"
                            "│ └─below_a  P             0         1  ░░░░░░░░░░   0%\n"
                            "│            Q             0         0  ░░░░░░░░░░    -\n"
                            "└─gpu_b      VGPU          0        16  ░░░░░░░░░░   0%  X\n"
                            "shared\n");
}

/* Names are foreign, and so is whatever stands among them. */
static void test_siblings_stand_by_name(void **state)
{
        _cleanup_(capture_done) Capture capture;

        assert_int_equal(
                print(TREE(PROVIDER("r", "host1", "null", "", "") "," PROVIDER(
                              "a", "cell10", "\"r\"", "",
                              "") "," PROVIDER("b", "cell2", "\"r\"", "",
                                               "") "," PROVIDER("c", "cell1", "\"r\"", "", "")),
                      STYLE_PIPE, &capture, NULL),
                0);
        assert_contains(capture.text, "\nhost1\n├─cell1\n├─cell2\n└─cell10\n");
}

static void test_who_shares(void **state)
{
        _cleanup_(json_done) json_t *tree = parse_json(HOST),
                                    *names = parse_json("[\"pool\", \"x\\u001b[m\", 5]");
        _cleanup_(capture_done) Capture capture;
        const CtlStyle style = STYLE_PIPE;

        assert_int_equal(json_object_set(tree, "shares", names), 0);
        capture_begin(&capture);
        assert_int_equal(ctl_tree_print(tree, &style, capture.stream, NULL), 0);
        capture_end(&capture);
        assert_contains(capture.text, "shared\nshares: pool\nshares: x\\x1b[m\nshares: \n");
}

static void test_cordons_are_named(void **state)
{
        _cleanup_(json_done) json_t *tree = parse_json(HOST);
        _cleanup_(capture_done) Capture capture;
        json_t *providers = json_object_get(tree, "providers");
        const CtlStyle style = STYLE_PIPE;

        for (size_t i = 0; i < json_array_size(providers); i++)
                assert_int_equal(json_object_set_new(json_array_get(providers, i), "cordoned",
                                                     json_boolean(i == 0 || i == 2)),
                                 0);
        capture_begin(&capture);
        assert_int_equal(ctl_tree_print(tree, &style, capture.stream, NULL), 0);
        capture_end(&capture);
        assert_contains(capture.text, "\nhost1 cordoned    MEMORY_MB");
        assert_contains(capture.text, "\n│                 VCPU");
        assert_contains(capture.text, "\n├─gpu_a           VGPU");
        assert_contains(capture.text, "\n└─gpu_b cordoned  VGPU");
}

static void test_what_is_withheld_is_named(void **state)
{
        _cleanup_(json_done) json_t *tree = parse_json(HOST);
        _cleanup_(capture_done) Capture capture;
        json_t *providers = json_object_get(tree, "providers");
        const CtlStyle style = STYLE_PIPE;

        json_object_set_new(json_array_get(providers, 1), "withheld", json_string("missing"));
        json_object_set_new(json_array_get(providers, 2), "withheld", json_string("held"));
        json_object_set_new(json_array_get(providers, 2), "cordoned", json_true());
        capture_begin(&capture);
        assert_int_equal(ctl_tree_print(tree, &style, capture.stream, NULL), 0);
        capture_end(&capture);
        assert_contains(capture.text, "\n├─gpu_a missing ");
        assert_contains(capture.text, "\n└─gpu_b cordoned, held  VGPU");
}

/* What every host has is folded, so that what this one has is seen. */
static void test_traits_that_tell(void **state)
{
        _cleanup_(capture_done) Capture capture, other;

        assert_int_equal(
                print(TREE(PROVIDER("r", "h", "null",
                                    "\"COMPUTE_NODE\", \"COMPUTE_STATUS_DISABLED\", \"CUSTOM_A\", "
                                    "\"HW_CPU_X86_SSE\", \"OWNER_NOVA\"",
                                    "\"A\": " INVENTORY(1, 0) ", \"B\": " INVENTORY(1, 0))),
                      STYLE_PIPE, &capture, NULL),
                0);
        assert_contains(capture.text, "0%  COMPUTE_STATUS_DISABLED\n");
        assert_contains(capture.text, "0%  CUSTOM_A +3\n");
        assert_int_equal(print(TREE(PROVIDER("r", "h", "null", "\"COMPUTE_NODE\"",
                                             "\"A\": " INVENTORY(1, 0))),
                               STYLE_PIPE, &other, NULL),
                         0);
        assert_contains(other.text, "0%  +1\n");
}

static void test_ascii(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.utf8 = false;
        style.legend = false;
        style.width = 80;
        assert_int_equal(print(HOST, style, &capture, NULL), 0);
        assert_contains(capture.text, "|-gpu_a");
        assert_contains(capture.text, "| `-below_a");
        assert_contains(capture.text, "`-gpu_b");
        assert_contains(capture.text, "###--  50%");
        for (const char *c = capture.text; *c; c++)
                assert_true(*c > 0);
}

static void test_all(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.all = true;
        assert_int_equal(print(HOST, style, &capture, NULL), 0);
        assert_lacks(capture.text, "+2");
        assert_contains(capture.text, "UUID");
        assert_contains(capture.text, "RATIO");
        assert_contains(capture.text, "1.5  A");
        assert_contains(capture.text, " D\n"); /* on a line that has no inventory */
}

static void test_usage_colours(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.colours = true;
        assert_int_equal(print(TREE(PROVIDER("r", "h", "null", "",
                                             "\"A\": " INVENTORY(10, 1) ", \"B\": " INVENTORY(
                                                     10, 9) ", \"C\": " INVENTORY(10, 10))),
                               style, &capture, NULL),
                         0);
        assert_contains(capture.text, "\033[0;1;32m▉░");
        assert_contains(capture.text, "\033[0;1;33m▉▉▉▉▉▉▉▉▉░  90%");
        assert_contains(capture.text, "\033[0;1;31m▉▉▉▉▉▉▉▉▉▉ 100%");
}

static void test_strange_documents(void **state)
{
        static const struct {
                const char *json;
                int r;
                const char *part;
        } cases[] = {
                { "{}", -EBADMSG, "" },
                { "{\"providers\": {}}", -EBADMSG, "" },
                { TREE(""), 0, "No providers." },
                { TREE("null, 7, []"), 0, "PROVIDER" },
                /* its own parent, and a parent that comes later: roots */
                { TREE(PROVIDER("a", "self", "\"a\"", "", "")), 0, "self" },
                { TREE(PROVIDER("a", "one", "\"b\"", "", "") "," PROVIDER("b", "two", "\"a\"", "",
                                                                          "")),
                  0, "└─two" },
                { TREE(PROVIDER("a", "e\\u001bvil", "null", "\"T\\n\"", "")), 0, "e\\x1bvil" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(capture_done) Capture capture;
                Error error = ERROR_NULL;

                assert_int_equal(print(cases[i].json, STYLE_PIPE, &capture, &error), cases[i].r);
                assert_contains(capture.text, cases[i].part);
                assert_true((cases[i].r < 0) == (error.text[0] != '\0'));
        }
}

static void test_depth_is_bounded(void **state)
{
        _cleanup_(json_done) json_t *tree = json_pack("{s[]}", "providers");
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;
        Error error = ERROR_NULL;

        for (int i = 0; i < 1000; i++) {
                char uuid[16], parent[16];

                snprintf(uuid, sizeof(uuid), "%d", i);
                snprintf(parent, sizeof(parent), "%d", i - 1);
                json_array_append_new(
                        json_object_get(tree, "providers"),
                        json_pack("{ss ss ss}", "uuid", uuid, "name", uuid, "parent", parent));
        }
        capture_begin(&capture);
        assert_int_equal(ctl_tree_print(tree, &style, capture.stream, &error), -EBADMSG);
        assert_string_equal(capture_end(&capture), "");
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_tree, test_siblings_stand_by_name,
                test_who_shares, test_cordons_are_named, test_what_is_withheld_is_named,
                test_traits_that_tell, test_ascii, test_all, test_usage_colours,
                test_strange_documents, test_depth_is_bounded)
