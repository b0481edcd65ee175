/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/common.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixtures/ctl-capture.h"

/* Makes the words the standard input of this process. */
static void type(const char *words)
{
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], words, strlen(words)), (ssize_t)strlen(words));
        close(ends[1]);
        assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
        close(ends[0]);
        clearerr(stdin);
}

static int ask(Ctl *ctl, Error *error)
{
        return ctl_ask(ctl, NULL, NULL, "Go on?", error);
}

static void test_only_yes_is_consent(void **state)
{
        static const struct {
                const char *answer;
                bool given;
        } cases[] = {
                { "y\n", true },         { "Y\n", true },          { "yes\n", true },
                { "YES", true },         { "  yes \r\n", true },   { "\n", false },
                { "", false },           { "n\n", false },         { "no\n", false },
                { "ye\n", false },       { "yesterday\n", false }, { "y n\n", false },
                { "yes, but\n", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Ctl ctl = { 0 };
                Error error = ERROR_NULL;

                type(cases[i].answer);
                if (ask(&ctl, &error) != (cases[i].given ? 0 : -ECANCELED))
                        fail_msg("case %zu: \"%s\"", i, cases[i].answer);
                if (!cases[i].given)
                        assert_string_equal(error.text, "Nothing was changed");
        }
}

static void test_one_line_is_read_for_a_question(void **state)
{
        Ctl ctl = { 0 };

        type("y\nn\n");
        assert_int_equal(ask(&ctl, NULL), 0);
        assert_int_equal(ask(&ctl, NULL), -ECANCELED);
        assert_int_equal(ask(&ctl, NULL), -ECANCELED);
}

static void test_only_a_person_is_asked(void **state)
{
        const Ctl plain = { 0 }, yes = { .options.yes = true }, dry = { .options.dry_run = true };
        int terminal = posix_openpt(O_RDWR | O_NOCTTY);

        type("");
        assert_false(ctl_must_ask(&plain));
        assert_true(terminal >= 0 && dup2(terminal, STDIN_FILENO) >= 0);
        close(terminal);
        assert_true(ctl_must_ask(&plain));
        assert_false(ctl_must_ask(&yes));
        assert_false(ctl_must_ask(&dry));
}

/* Shows the changes before the question. With JSON, nothing is shown. */
static void print(const json_t *document, CtlPage *page)
{
        fputs("shown", page->output);
}

static void test_documents(void **state)
{
        static const struct {
                CtlOptions options;
                const char *asked, *printed;
        } cases[] = {
                { { .json = CTL_JSON_OFF }, "shown\n", "shown" },
                { { .json = CTL_JSON_SHORT }, "", "[]\n" },
                { { .quiet = true }, "", "shown" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(capture_done) Capture asked, printed;
                _cleanup_(json_done) json_t *document = json_array();
                Ctl ctl = { .options = cases[i].options };

                type("y\n");
                ctl.page = *capture_begin(&asked, STYLE_PIPE);
                assert_int_equal(ctl_ask(&ctl, document, print, "Go on?", NULL), 0);
                assert_string_equal(capture_end(&asked), cases[i].asked);
                ctl.page = *capture_begin(&printed, STYLE_PIPE);
                ctl_print_document(&ctl, document, print);
                assert_string_equal(capture_end(&printed), cases[i].printed);
        }
}

/* A text of the agent cannot control the terminal; the lines stay. */
static void test_results_are_escaped(void **state)
{
        _cleanup_(capture_done) Capture printed;
        Ctl ctl = { 0 };

        ctl.page = *capture_begin(&printed, STYLE_PIPE);
        ctl_print_done(&ctl, json_object(), "Not yet: %s.\nMore.\n",
                       "\xc2\x9b"
                       "2J");
        assert_string_equal(capture_end(&printed), "Not yet: \\xc2\\x9b2J.\nMore.\n");
}

TEST_MAIN(test_only_yes_is_consent, test_one_line_is_read_for_a_question,
          test_only_a_person_is_asked, test_documents, test_results_are_escaped)
