/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/progress-line.h"
#include "tests/unit/test.h"

static void test_lines(void **state)
{
        static const struct {
                const char *kind;
                Progress progress;
                unsigned width;
                const char *line;
        } cases[] = {
                { "sync", { "polling", 0, 0 }, 80, "sync: polling" },
                { "sync", { "polling", 3, 0 }, 80, "sync: polling" },
                { "reshape",
                  { "gathering", 12, 40 },
                  46,
                  "reshape: gathering 12/40 [=====>             ]" },
                { "reshape",
                  { "gathering", 0, 40 },
                  45,
                  "reshape: gathering 0/40 [>                  ]" },
                { "reshape",
                  { "gathering", 40, 40 },
                  46,
                  "reshape: gathering 40/40 [===================]" },
                { "reshape", { "gathering", 41, 40 }, 46, "reshape: gathering" },
                { "reshape", { "gathering", 1, 4 }, 30, "reshape: gathering 1/4" },
                { "reshape", { "gathering", 12, 40 }, 12, "reshape: gat" },
                { "sync",
                  { "publishing", 1, 2 },
                  0,
                  "sync: publishing 1/2 [====================>                   ]" },
                { "sync",
                  { "publishing", UINT64_MAX, UINT64_MAX },
                  40,
                  "sync: publishing 18446744073709551615/18" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const CtlStyle style = { .width = cases[i].width };
                char line[512];

                ctl_progress_format(cases[i].kind, &cases[i].progress, &style, line, sizeof(line));
                assert_string_equal(line, cases[i].line);
                if (cases[i].width > 0)
                        assert_true(strlen(line) <= cases[i].width);
        }
}

static void test_a_small_buffer(void **state)
{
        const CtlStyle style = { .width = 200 };
        const Progress progress = { "gathering", 1, 2 };
        char line[16];

        ctl_progress_format("reshape", &progress, &style, line, sizeof(line));
        assert_string_equal(line, "reshape: gather");
}

TEST_MAIN(test_lines, test_a_small_buffer)
