/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/error.h"

#include <jansson.h>

#include "tests/unit/test.h"

/* Checks a text with jansson, an independent implementation: it makes strings only of valid
 * UTF-8. */
static bool is_utf8(const char *text)
{
        json_t *string = json_string(text);
        bool valid = string;

        json_decref(string);
        return valid;
}

static void test_set_table(void **state)
{
        static const struct {
                int code;
                const char *argument;
                int r;
                const char *text;
        } cases[] = {
                { EINVAL, "plain", -EINVAL, "[plain]" },
                { -EINVAL, "either sign", -EINVAL, "[either sign]" },
                { ENOMEM, "", -ENOMEM, "[]" },
                { EIO, "line\nbreak\ttab\r", -EIO, "[line?break?tab?]" },
                { EIO, "\033[31mred\033[0m", -EIO, "[?[31mred?[0m]" },
                { EIO, "\x01\x1f\x7f", -EIO, "[???]" },
                { EIO, "caf\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x90\xa7", -EIO,
                  "[caf\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x90\xa7]" },
                /* A terminal also obeys the C1 controls; CSI is U+009B. */
                { EIO,
                  "\xc2\x9b"
                  "31m",
                  -EIO, "[??31m]" },
                { EIO, "latin-1 \xe9t\xe9", -EIO, "[latin-1 ?t?]" },
                { EIO, "cut \xe2\x80", -EIO, "[cut ??]" },
                { EIO, "overlong \xc0\xaf \xe0\x80\xaf", -EIO, "[overlong ?? ???]" },
                { EIO, "surrogate \xed\xa0\x80", -EIO, "[surrogate ???]" },
                { EIO, "too big \xf4\x90\x80\x80 \xff", -EIO, "[too big ???? ?]" },
                { 0, "a failure is never a success", -EIO, "[a failure is never a success]" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;
                int r = error_setf(&error, cases[i].code, "[%s]", cases[i].argument);

                assert_int_equal(r, cases[i].r);
                assert_int_equal(error.code, -cases[i].r);
                assert_string_equal(error.text, cases[i].text);
                assert_true(is_utf8(error.text));
                assert_int_equal(error_setf(NULL, cases[i].code, "%s", "x"), cases[i].r);
        }
}

/* Cuts characters of each width at each byte. */
static void test_cut_is_utf8(void **state)
{
        static const char *const characters[] = { "x", "\xc3\xa9", "\xe2\x82\xac",
                                                  "\xf0\x9f\x90\xa7" };

        for (size_t i = 0; i < ARRAY_SIZE(characters); i++)
                for (int indent = 0; indent < 4; indent++) {
                        size_t width = strlen(characters[i]),
                               space = ERROR_TEXT_MAX - sizeof("…") - (size_t)indent;
                        Error error = ERROR_NULL;
                        char text[4 * ERROR_TEXT_MAX + 1] = "";

                        for (int j = 0; j < ERROR_TEXT_MAX; j++)
                                strcat(text, characters[i]);
                        error_setf(&error, EIO, "%*s%s", indent, "", text);
                        assert_true(is_utf8(error.text));
                        assert_int_equal(strlen(error.text),
                                         (size_t)indent + space / width * width + strlen("…"));
                        assert_string_equal(error.text + strlen(error.text) - strlen("…"), "…");
                        assert_null(strchr(error.text, '?'));
                }
}

static void test_exact_length_is_not_cut(void **state)
{
        Error error = ERROR_NULL;
        char text[ERROR_TEXT_MAX];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        error_setf(&error, EIO, "%s", text);
        assert_string_equal(error.text, text);
}

static void test_prefix(void **state)
{
        Error error = ERROR_NULL;

        error_setf(&error, EBADMSG, "\"total\" is missing");
        assert_int_equal(error_prefixf(&error, -EBADMSG, "Provider %s", "gpu0"), -EBADMSG);
        assert_string_equal(error.text, "Provider gpu0: \"total\" is missing");
        assert_int_equal(error.code, EBADMSG);
        assert_int_equal(error_prefixf(&error, -EBADMSG, "Tree"), -EBADMSG);
        assert_string_equal(error.text, "Tree: Provider gpu0: \"total\" is missing");

        error = ERROR_NULL;
        assert_int_equal(error_prefixf(&error, -ENOENT, "/etc/\x1b[2J"), -ENOENT);
        assert_string_equal(error.text, "/etc/?[2J: No such file or directory");
        assert_int_equal(error.code, ENOENT);
        assert_int_equal(error_prefixf(NULL, -ENOENT, "x"), -ENOENT);
}

static void test_long_prefix_is_cut(void **state)
{
        Error error = ERROR_NULL;
        char text[2 * ERROR_TEXT_MAX];

        memset(text, 'p', sizeof(text));
        text[sizeof(text) - 1] = '\0';
        memcpy(text + ERROR_TEXT_MAX - 6, "\xe2\x82\xac", 3); /* the cut is inside this character */
        error_setf(&error, EIO, "cause");
        error_prefixf(&error, -EIO, "%s", text);
        assert_true(is_utf8(error.text));
        assert_int_equal(strlen(error.text), ERROR_TEXT_MAX - 3);
}

/* A caller can quote the text that it replaces. */
static void test_quotes_itself(void **state)
{
        Error error = ERROR_NULL;

        error_setf(&error, EIO, "first");
        error_setf(&error, EIO, "second, after %s", error.text);
        assert_string_equal(error.text, "second, after first");
        error_prefixf(&error, -EIO, "third, %s", error_text(&error, -EIO));
        assert_string_equal(error.text, "third, second, after first: second, after first");
}

static void test_text(void **state)
{
        Error error = ERROR_NULL;

        assert_string_equal(error_text(NULL, -ENOENT), "No such file or directory");
        assert_string_equal(error_text(&error, ENOENT), "No such file or directory");
        assert_int_equal(error_oom(&error), -ENOMEM);
        assert_int_equal(error.code, ENOMEM);
        assert_string_equal(error_text(&error, -ENOENT), "Out of memory");
        assert_int_equal(error_oom(NULL), -ENOMEM);
}

static void test_join(void **state)
{
        const Error none = ERROR_NULL, one = { EINVAL, "one" }, two = { EIO, "two" };
        Error all = ERROR_NULL;

        error_join(NULL, &one);
        error_join(&all, &none);
        assert_int_equal(all.code, 0);
        assert_string_equal(all.text, "");
        error_join(&all, &one);
        error_join(&all, &none);
        error_join(&all, &two);
        assert_int_equal(all.code, EINVAL);
        assert_string_equal(all.text, "one; two");
        for (size_t i = 0; i < ERROR_TEXT_MAX; i++)
                error_join(&all, &two);
        assert_int_equal(strlen(all.text), ERROR_TEXT_MAX - 1);
}

TEST_MAIN(test_join, test_set_table, test_cut_is_utf8, test_exact_length_is_not_cut, test_prefix,
          test_long_prefix_is_cut, test_quotes_itself, test_text)
