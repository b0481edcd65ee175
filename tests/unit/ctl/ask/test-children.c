/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/children.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/test.h"

/* Does the work of a word: "out", "err", "code 7", "hang", "die", "flood". */
static int work(void *data)
{
        const char *word = data;
        char byte;

        if (strcmp(word, "hang") == 0)
                pause();
        if (strcmp(word, "die") == 0)
                abort();
        for (size_t i = 0; strcmp(word, "flood") == 0 && i < 80; i++) {
                static char block[1 << 20];

                memset(block, 'x', sizeof(block));
                if (fwrite(block, 1, sizeof(block), stdout) < sizeof(block))
                        return 9;
        }
        if (read(STDIN_FILENO, &byte, 1) != 0)
                return 99;
        fputs(word, strcmp(word, "err") == 0 ? stderr : stdout);
        return strncmp(word, "code ", 5) == 0 ? atoi(word + 5) : 0;
}

static void test_each_output_is_kept(void **state)
{
        static const struct {
                const char *word, *output, *errors;
                int code;
        } cases[] = {
                { "out", "out", "", 0 },       { "err", "", "err", 0 },
                { "code 7", "code 7", "", 7 }, { "die", "", "", 128 + SIGABRT },
                { "more", "more", "", 0 },
        };
        static const size_t at_once[] = { 1, 2, 8 };

        for (size_t j = 0; j < ARRAY_SIZE(at_once); j++) {
                CtlChild children[ARRAY_SIZE(cases)] = { 0 };

                for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                        children[i].data = (void *)(uintptr_t)cases[i].word;
                assert_int_equal(
                        ctl_children_run(children, ARRAY_SIZE(cases), work, at_once[j], 0, NULL),
                        0);
                for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                        assert_int_equal(children[i].code, cases[i].code);
                        assert_string_equal(children[i].output, cases[i].output);
                        if (cases[i].code < 128) /* a sanitizer can print at abort() */
                                assert_string_equal(children[i].errors, cases[i].errors);
                        assert_false(children[i].timed_out);
                }
                ctl_children_done(children, ARRAY_SIZE(cases));
        }
}

static void test_hanging_child_is_killed(void **state)
{
        CtlChild children[] = { { .data = (char *)"hang" }, { .data = (char *)"out" } };

        assert_int_equal(ctl_children_run(children, 2, work, 2, USEC_PER_SEC / 5, NULL), 0);
        assert_true(children[0].timed_out);
        assert_int_equal(children[0].code, 128 + SIGKILL);
        assert_string_equal(children[1].output, "out");
        ctl_children_done(children, 2);
}

static void test_a_long_output_is_cut(void **state)
{
        CtlChild child = { .data = (char *)"flood" };

        assert_int_equal(ctl_children_run(&child, 1, work, 1, 0, NULL), 0);
        assert_true(strlen(child.output) <= 64 << 20);
        assert_int_not_equal(child.code, 0);
        ctl_children_done(&child, 1);
}

TEST_MAIN(test_each_output_is_kept, test_hanging_child_is_killed, test_a_long_output_is_cut)
