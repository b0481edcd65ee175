/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/text.h"

#include <jansson.h>

#include "tests/shims/fail-alloc.h"
#include "tests/unit/test.h"

static void test_format(void **state)
{
        _cleanup_free_ char *made = text_format("%s-%d%%", "a", 7), *empty = text_format("%s", "");
        _cleanup_free_ char *none = NULL;

        assert_string_equal(made, "a-7%");
        assert_string_equal(empty, "");
        fail_alloc_at(0);
        none = text_format("%s", "b");
        assert_true(fail_alloc_done());
        assert_null(none);
}

/* Checks a text with jansson, an independent implementation: it makes strings only of valid
 * UTF-8. */
static bool is_utf8(const char *text)
{
        json_t *string = json_string(text);
        bool valid = string;

        json_decref(string);
        return valid;
}

static void test_sanitize_table(void **state)
{
        static const struct {
                const char *text, *safe;
        } cases[] = {
                { "", "" },
                { "plain ~", "plain ~" },
                { "a\nb\tc\x01\x1f\x7f", "a.b.c..." },
                { "\xc2\x80\xc2\x9f\xc2\xa0", "....\xc2\xa0" },
                { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xa7", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xa7" },
                { "\xc3", "." },
                { "\xc3x", ".x" },
                { "\xe2\x82", ".." },
                { "\xe2\x82x", "..x" },
                { "\xf0\x9f\x90", "..." },
                { "\xf0\x9f\xc3\xa9", "..\xc3\xa9" },
                { "\x80\xbf", ".." },
                { "\xc0\x80\xc1\xbf", "...." },
                { "\xe0\x9f\xbf\xe0\xa0\x80", "...\xe0\xa0\x80" },
                { "\xed\x9f\xbf\xed\xa0\x80", "\xed\x9f\xbf..." },
                { "\xf0\x8f\xbf\xbf\xf0\x90\x80\x80", "....\xf0\x90\x80\x80" },
                { "\xf4\x8f\xbf\xbf\xf4\x90\x80\x80", "\xf4\x8f\xbf\xbf...." },
                { "\xf5\x80\x80\x80\xfe\xff", "......" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[64];

                snprintf(text, sizeof(text), "%s", cases[i].text);
                text_sanitize(text, '.');
                assert_string_equal(text, cases[i].safe);
        }
}

/* All texts of three bytes from the bytes at which the rules of UTF-8 change. */
static void test_sanitize_everything(void **state)
{
        static const unsigned char bytes[] = {
                0x01, 0x1f, 0x20, 0x7e, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2,
                0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff
        };

        for (size_t a = 0; a < sizeof(bytes); a++)
                for (size_t b = 0; b < sizeof(bytes); b++)
                        for (size_t c = 0; c < sizeof(bytes); c++) {
                                char text[] = { (char)bytes[a], (char)bytes[b], (char)bytes[c], 0 };
                                char safe[sizeof(text)];

                                memcpy(safe, text, sizeof(text));
                                text_sanitize(safe, '.');
                                assert_int_equal(strlen(safe), 3);
                                assert_true(is_utf8(safe));
                                if (strpbrk(text, "\x01\x1f\x7f") || strchr(text, '\xc2'))
                                        continue;
                                assert_int_equal(strcmp(text, safe) == 0, is_utf8(text));
                        }
}

static void test_trim_table(void **state)
{
        static const struct {
                const char *text, *trimmed;
        } cases[] = {
                { "", "" },
                { "abc", "abc" },
                { "ab\xc3\xa9", "ab\xc3\xa9" },
                { "ab\xc3", "ab" },
                { "ab\xe2\x82", "ab" },
                { "ab\xe2", "ab" },
                { "ab\xf0\x9f\x90", "ab" },
                { "ab\xf0\x9f\x90\xa7", "ab\xf0\x9f\x90\xa7" },
                { "\xf0", "" },
                { "\x80", "\x80" }, /* invalid, but not cut */
                { "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[64];

                snprintf(text, sizeof(text), "%s", cases[i].text);
                text_trim_cut(text);
                assert_string_equal(text, cases[i].trimmed);
        }
}

static void test_count(void **state)
{
        assert_int_equal(text_count_characters(""), 0);
        assert_int_equal(text_count_characters("abc"), 3);
        assert_int_equal(text_count_characters("\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\xa7"), 3);
}

static void test_strings(void **state)
{
        static char *const words[] = { (char *)"b", (char *)"", (char *)"a", NULL };
        _cleanup_(strings_freep) char **copy = NULL, **empty = NULL;

        assert_int_equal(strings_copy(words, &copy), 0);
        for (size_t i = 0; words[i]; i++) {
                assert_string_equal(copy[i], words[i]);
                assert_ptr_not_equal(copy[i], words[i]);
        }
        assert_null(copy[3]);
        assert_int_equal(strings_copy(NULL, &empty), 0);
        assert_null(empty[0]);
        assert_null(strings_free(NULL));
}

static void test_close(void **state)
{
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        assert_non_null(stream);
        assert_true(fputs("written", stream) >= 0);
        assert_string_equal(text_close(stream, &text), "written");
        free(text);

        /* A stream that cannot be written: the text is freed. */
        text = strdup("lost");
        stream = fopen("/dev/full", "we");
        assert_non_null(stream);
        assert_true(fputs("lost", stream) >= 0);
        assert_null(text_close(stream, &text));
}

TEST_MAIN(test_close, test_format, test_sanitize_table, test_sanitize_everything, test_trim_table,
          test_count, test_strings)
