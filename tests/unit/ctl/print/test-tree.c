/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/tree.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"

#define INVENTORY(total, used)                                                              \
        "{'total': " #total ", 'reserved': 0, 'allocation_ratio': 1.5, 'capacity': " #total \
        ", 'used': " #used "}"
/* parent: "'uuid'" or "null"; traits: "'A', 'B'" */
#define PROVIDER(uuid, name, parent, traits, inventories)                                   \
        "{'uuid': '" uuid "', 'name': '" name "', 'parent': " parent ", 'traits': [" traits \
        "], 'inventories': {" inventories "}}"
#define TREE(providers) "{'providers': [" providers "]}"

#define MEMORY INVENTORY(100, 50)
#define CPUS   INVENTORY(8, 8)
#define GPU_A  INVENTORY(16, 1)
#define GPU_B  INVENTORY(16, 0)
#define ONE    INVENTORY(1, 0)
#define NONE   INVENTORY(0, 0)
/* Children of one parent are not adjacent here, but they are in the output. */
#define PROVIDERS                                                                        \
        "{'uuid': 'r', 'name': 'host1', 'parent': null, 'traits': ['A', 'B', 'C', 'D']," \
        " 'inventories': {'MEMORY_MB': " MEMORY ", 'VCPU': " CPUS "}},"                  \
        "{'uuid': 'a', 'name': 'gpu_a', 'parent': 'r', 'traits': [],"                    \
        " 'inventories': {'VGPU': " GPU_A "}},"                                          \
        "{'uuid': 'b', 'name': 'gpu_b', 'parent': 'r', 'traits': ['X'],"                 \
        " 'inventories': {'VGPU': " GPU_B "}},"                                          \
        "{'uuid': 'c', 'name': 'below_a', 'parent': 'a', 'traits': [],"                  \
        " 'inventories': {'P': " ONE ", 'Q': " NONE "}},"                                \
        "{'uuid': 's', 'name': 'shared', 'parent': null, 'traits': [], 'inventories': {}}"
#define HOST TREE(PROVIDERS)

static void print(const json_t *tree, CtlPage *page)
{
        assert_int_equal(ctl_tree_print(tree, page, NULL), 0);
}

static void test_pages(void **state)
{
        static const PrintRow rows[] = {
                { HOST, .text = "PROVIDER     CLASS      USED  CAPACITY  USAGE            TRAITS\n"
                                "host1        MEMORY_MB    50       100  ▉▉▉▉▉░░░░░  50%  A\n"
                                "│            VCPU          8         8  ▉▉▉▉▉▉▉▉▉▉ 100%  B +2\n"
                                "├─gpu_a      VGPU          1        16  ▉░░░░░░░░░   6%\n"
                                "│ └─below_a  P             0         1  ░░░░░░░░░░   0%\n"
                                "│            Q             0         0  ░░░░░░░░░░    -\n"
                                "└─gpu_b      VGPU          0        16  ░░░░░░░░░░   0%  X\n"
                                "shared\n" },
                /* names can be arbitrary text, and a list can have other values */
                { "{'shares': ['pool', 'x\\u001b[m', 5], 'providers': [" PROVIDERS "]}",
                  .has = { "shared\nshares: pool\nshares: x\\x1b[m\nshares: \n" } },
                /* siblings are sorted by name */
                { "{'providers': [{'uuid': 'r', 'name': 'host1', 'parent': null},"
                  " {'uuid': 'a', 'name': 'cell10', 'parent': 'r'},"
                  " {'uuid': 'b', 'name': 'cell2', 'parent': 'r'},"
                  " {'uuid': 'c', 'name': 'cell1', 'parent': 'r'}]}",
                  .has = { "\nhost1\n├─cell1\n├─cell2\n└─cell10\n" } },
                /* traits of each host are only counted, so that specific ones are visible */
                { TREE(PROVIDER("r", "h", "null",
                                "'COMPUTE_NODE', 'COMPUTE_STATUS_DISABLED', 'CUSTOM_A',"
                                " 'HW_CPU_X86_SSE', 'OWNER_NOVA'",
                                "'A': " INVENTORY(1, 0) ", 'B': " INVENTORY(1, 0))),
                  .has = { "0%  COMPUTE_STATUS_DISABLED\n", "0%  CUSTOM_A +3\n" } },
                { TREE(PROVIDER("r", "h", "null", "'COMPUTE_NODE'", "'A': " INVENTORY(1, 0))),
                  .has = { "0%  +1\n" } },
                { HOST,
                  .has = { "UUID", "RATIO", "1.5  A", " D\n" /* on a line without an inventory */ },
                  .lacks = { "+2" }, .all = true },
                { TREE(PROVIDER("r", "h", "null", "",
                                "'A': " INVENTORY(10, 1) ", 'B': " INVENTORY(
                                        10, 9) ", 'C': " INVENTORY(10, 10))),
                  .has = { "\033[0;1;32m▉░", "\033[0;1;33m▉▉▉▉▉▉▉▉▉░  90%",
                           "\033[0;1;31m▉▉▉▉▉▉▉▉▉▉ 100%" },
                  .colours = true },
        };

        check_rows(print, rows, ARRAY_SIZE(rows));
}

/* The marks of each provider, by its index in the document. */
static void test_marks(void **state)
{
        static const struct {
                bool cordoned[5];
                const char *withheld[5];
                const char *has[4];
        } cases[] = {
                { { true, false, true },
                  { NULL },
                  { "\nhost1 cordoned    MEMORY_MB", "\n│                 VCPU",
                    "\n├─gpu_a           VGPU", "\n└─gpu_b cordoned  VGPU" } },
                { { false, false, true },
                  { NULL, "missing", "held" },
                  { "\n├─gpu_a missing ", "\n└─gpu_b cordoned, held  VGPU" } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                json_t *tree = parse_quoted(HOST);
                _cleanup_(capture_done) Capture capture;

                for (size_t j = 0; j < 5; j++) {
                        json_t *provider = json_array_get(json_object_get(tree, "providers"), j);
                        const char *withheld = cases[i].withheld[j];

                        json_object_set_new(provider, "cordoned",
                                            json_boolean(cases[i].cordoned[j]));
                        json_object_set_new(provider, "withheld",
                                            json_string(withheld ? withheld : ""));
                }
                capture_print(&capture, print, tree, STYLE_PIPE);
                for (size_t j = 0; j < 4 && cases[i].has[j]; j++)
                        assert_contains(capture.text, cases[i].has[j]);
        }
}

static void test_ascii(void **state)
{
        static const PrintRow row = {
                HOST,          .has = { "|-gpu_a", "| `-below_a", "`-gpu_b", "###--  50%" },
                .ascii = true, .no_legend = true,
                .width = 80,
        };

        check_rows(print, &row, 1);
}

/* Any usage has a mark, and only a bar without free capacity is full. */
static void test_usage_bars(void **state)
{
        static const struct {
                uint64_t used, capacity;
                const char *cell;
        } cases[] = {
                { 0, 0, "\033[2m-----" },
                { 0, 4, "\033[2m-----" },
                { 1, 1000, "\033[0;1;32m#----" },
                { 1, 4, "\033[0;1;32m#----" },
                { 2, 4, "\033[0;1;32m###--" },
                { 95, 100, "\033[0;1;33m####-" },
                { 999, 1000, "\033[0;1;33m####-" },
                { 4, 4, "\033[0;1;31m#####" },
                { 5, 4, "\033[0;1;31m#####" },
                { 1, 0, "\033[0;1;33m#####" }, /* cordoned or withheld, and in use */
                { INT64_MAX / 2, INT64_MAX, "\033[0;1;32m###--" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CtlStyle style = { .colours = true, .terminal = true, .width = 80 };
                json_t *tree = parse_quoted(TREE(PROVIDER("r", "h", "null", "", "'A': {}")));
                json_t *record = json_object_get(
                        json_object_get(json_array_get(json_object_get(tree, "providers"), 0),
                                        "inventories"),
                        "A");
                _cleanup_(capture_done) Capture capture;

                json_object_set_new(record, "used", json_integer((json_int_t)cases[i].used));
                json_object_set_new(record, "capacity",
                                    json_integer((json_int_t)cases[i].capacity));
                capture_print(&capture, print, tree, style);
                assert_contains(capture.text, cases[i].cell);
        }
}

static void test_strange_documents(void **state)
{
        static const struct {
                const char *json;
                int r;
                const char *part;
        } cases[] = {
                { "{}", -EBADMSG, "" },
                { "{'providers': {}}", -EBADMSG, "" },
                { TREE(""), 0, "No providers." },
                { TREE("null, 7, []"), 0, "PROVIDER" },
                /* a provider that is its own parent, or whose parent comes later, is a root */
                { TREE(PROVIDER("a", "self", "'a'", "", "")), 0, "self" },
                { "{'providers': [{'uuid': 'a', 'name': 'one', 'parent': 'b'},"
                  " {'uuid': 'b', 'name': 'two', 'parent': 'a'}]}",
                  0, "└─two" },
                { TREE(PROVIDER("a", "e\\u001bvil", "null", "'T\\n'", "")), 0, "e\\x1bvil" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *tree = parse_quoted(cases[i].json);
                _cleanup_(capture_done) Capture capture;
                Error error = ERROR_NULL;

                assert_int_equal(ctl_tree_print(tree, capture_begin(&capture, STYLE_PIPE), &error),
                                 cases[i].r);
                assert_contains(capture_end(&capture), cases[i].part);
                assert_true((cases[i].r < 0) == (error.text[0] != '\0'));
        }
}

static void test_depth_is_bounded(void **state)
{
        _cleanup_(json_done) json_t *tree = json_pack("{s[]}", "providers");
        _cleanup_(capture_done) Capture capture;
        Error error = ERROR_NULL;

        for (int i = 0; i < 1000; i++) {
                char uuid[16], parent[16];

                snprintf(uuid, sizeof(uuid), "%d", i);
                snprintf(parent, sizeof(parent), "%d", i - 1);
                json_array_append_new(
                        json_object_get(tree, "providers"),
                        json_pack("{ss ss ss}", "uuid", uuid, "name", uuid, "parent", parent));
        }
        assert_int_equal(ctl_tree_print(tree, capture_begin(&capture, STYLE_PIPE), &error),
                         -EBADMSG);
        assert_string_equal(capture_end(&capture), "");
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_pages, test_marks, test_ascii,
                test_usage_bars, test_strange_documents, test_depth_is_bounded)
