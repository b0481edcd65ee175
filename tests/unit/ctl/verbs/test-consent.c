/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/consent.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixtures/ctl-capture.h"

static void test_only_yes_is_consent(void **state)
{
        static const struct {
                const char *answer;
                bool given;
        } cases[] = {
                { "y\n", true },    { "Y\n", true },          { "yes\n", true },
                { "YES", true },    { "  yes \r\n", true },   { "\n", false },
                { "", false },      { NULL, false },          { "n\n", false },
                { "no\n", false },  { "yesterday\n", false }, { "ye\n", false },
                { "y n\n", false }, { "yes, but\n", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (ctl_consent_is_given(cases[i].answer) != cases[i].given)
                        fail_msg("case %zu: \"%s\"", i,
                                 cases[i].answer ? cases[i].answer : "(end)");
}

static void test_only_a_person_is_asked(void **state)
{
        static const CtlOptions plain = { 0 }, yes = { .yes = true }, dry_run = { .dry_run = true };

        assert_true(ctl_consent_is_needed(&plain, true));
        assert_false(ctl_consent_is_needed(&plain, false));
        assert_false(ctl_consent_is_needed(&yes, true));
        assert_false(ctl_consent_is_needed(&dry_run, true));
}

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

static void test_one_line_is_read_for_a_question(void **state)
{
        Error error = ERROR_NULL;

        type("y\nn\n");
        assert_int_equal(ctl_consent_ask("Go on?", &error), 0);
        assert_int_equal(ctl_consent_ask("Go on?", &error), -ECANCELED);
        assert_string_equal(error.text, "Nothing was changed");
        assert_int_equal(ctl_consent_ask("Go on?", &error), -ECANCELED);
}

TEST_MAIN(test_only_yes_is_consent, test_only_a_person_is_asked,
          test_one_line_is_read_for_a_question)
