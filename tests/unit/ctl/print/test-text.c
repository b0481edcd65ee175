/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/text.h"
#include "ctl/print/text.h"
#include "tests/unit/test.h"

static void test_escape_table(void **state)
{
        static const struct {
                const char *foreign;
                const char *utf8;
                const char *ascii;
        } cases[] = {
                { "", "", "" },
                { "host1", "host1", "host1" },
                { "a\033[31mb", "a\\x1b[31mb", "a\\x1b[31mb" },
                { "a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f", "a\\x0ab\\x09c\\x7f" },
                { "grün …", "grün …", "gr\\xc3\\xbcn \\xe2\\x80\\xa6" },
                /* C1: CSI as one character */
                { "\xc2\x9b"
                  "31m",
                  "\\xc2\\x9b31m", "\\xc2\\x9b31m" },
                { "\xc2\xa0", "\xc2\xa0", "\\xc2\\xa0" },
                /* right-to-left override, isolate, line separator */
                { "\xe2\x80\xae"
                  "x",
                  "\\xe2\\x80\\xaex", "\\xe2\\x80\\xaex" },
                { "\xe2\x81\xa6", "\\xe2\\x81\\xa6", "\\xe2\\x81\\xa6" },
                { "\xe2\x80\xa8", "\\xe2\\x80\\xa8", "\\xe2\\x80\\xa8" },
                /* Bytes that are no UTF-8: alone, cut, overlong, surrogate, too large. */
                { "\x80", "\\x80", "\\x80" },
                { "a\xff", "a\\xff", "a\\xff" },
                { "\xe2\x80", "\\xe2\\x80", "\\xe2\\x80" },
                { "\xc0\x80", "\\xc0\\x80", "\\xc0\\x80" },
                { "\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80" },
                { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80" },
                { "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\\xf0\\x9f\\x98\\x80" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *utf8 = ctl_text_escape(cases[i].foreign, true);
                _cleanup_free_ char *ascii = ctl_text_escape(cases[i].foreign, false);

                assert_string_equal(utf8, cases[i].utf8);
                assert_string_equal(ascii, cases[i].ascii);
        }
}

static void test_cut_table(void **state)
{
        static const struct {
                const char *text;
                size_t n;
                const char *utf8;
                const char *ascii;
        } cases[] = {
                { "host1", 5, "host1", "host1" },
                { "host1_pci_0000_41_00_0", 13, "host…_41_00_0", "host~_41_00_0" },
                { "abcdef", 3, "…ef", "~ef" },
                { "äöüäöü", 4, "ä…öü", "ä~öü" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *utf8 = ctl_text_cut(cases[i].text, cases[i].n, true);
                _cleanup_free_ char *ascii = ctl_text_cut(cases[i].text, cases[i].n, false);

                assert_string_equal(utf8, cases[i].utf8);
                assert_string_equal(ascii, cases[i].ascii);
                assert_true(text_count_characters(utf8) <= cases[i].n);
        }
}

static void test_wrap_table(void **state)
{
        static const struct {
                const char *text;
                size_t n;
                const char *wrapped;
        } cases[] = {
                { "", 5, "" },
                { "one two", 7, "one two" },
                { "one two", 6, "one\ntwo" },
                { "one two three four", 9, "one two\nthree\nfour" },
                { "unbreakable", 4, "unbreakable" },
                { "a unbreakable b", 4, "a\nunbreakable\nb" },
                { "ä ö ü", 3, "ä ö\nü" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = strdup(cases[i].text);

                ctl_text_wrap(text, cases[i].n);
                assert_string_equal(text, cases[i].wrapped);
        }
}

static void test_relative_table(void **state)
{
        static const uint64_t now = UINT64_C(1700000000) * USEC_PER_SEC;
        static const struct {
                int64_t seconds; /* from now */
                const char *text;
        } cases[] = {
                { 0, "now" },
                { -1, "1s ago" },
                { -12, "12s ago" },
                { -60, "1min ago" },
                { -200, "3min 20s ago" },
                { -301, "5min ago" },
                { -3600, "1h ago" },
                { -12060, "3h 21min ago" },
                { -86400, "1 day ago" },
                { -90000, "1 day 1h ago" },
                { -2 * 86400 - 3600, "2 days ago" },
                { -8 * 86400, "1 week 1 day ago" },
                { -9 * 86400, "1 week 2 days ago" },
                { -40 * 86400, "1 month 10 days ago" },
                { -800 * 86400, "2 years 2 months ago" },
                { 1, "1s left" },
                { 299, "4min 59s left" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[CTL_TEXT_MAX];

                ctl_text_relative(text, now + (uint64_t)(cases[i].seconds * (int64_t)USEC_PER_SEC),
                                  now);
                assert_string_equal(text, cases[i].text);
        }
}

static void test_time_is_local(void **state)
{
        char text[CTL_TEXT_MAX];

        setenv("TZ", "UTC", true);
        assert_string_equal(ctl_text_time(text, UINT64_C(1700000000) * USEC_PER_SEC),
                            "Tue 2023-11-14 22:13:20 UTC");
        assert_string_equal(ctl_text_time(text, 0), "Thu 1970-01-01 00:00:00 UTC");
}

static void test_kib_table(void **state)
{
        static const struct {
                uint64_t kib;
                const char *text;
        } cases[] = {
                { 0, "0 KiB" },
                { 1023, "1023 KiB" },
                { 1024, "1 MiB" },
                { 1536, "1.5 MiB" },
                { 33554432, "32 GiB" },
                { 32716800, "31.2 GiB" },
                { UINT64_C(1) << 40, "1 PiB" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[CTL_TEXT_MAX];

                assert_string_equal(ctl_text_kib(text, cases[i].kib), cases[i].text);
        }
}

static void test_nearest_table(void **state)
{
        static const char *const words[] = { "status", "tree", "plan", "claims", "claim", NULL };
        static const struct {
                const char *word;
                const char *nearest;
        } cases[] = {
                { "statsu", "status" }, { "stat", "status" }, { "claimes", "claims" },
                { "plna", "plan" },     { "xyzzy", NULL },    { "", NULL },
                { "x", NULL },          { "ttree", "tree" },
        };
        char long_word[200];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *nearest = ctl_text_nearest(cases[i].word, words);

                if (cases[i].nearest)
                        assert_string_equal(nearest, cases[i].nearest);
                else
                        assert_null(nearest);
        }
        memset(long_word, 's', sizeof(long_word) - 1);
        long_word[sizeof(long_word) - 1] = '\0';
        assert_null(ctl_text_nearest(long_word, words));
}

TEST_MAIN(test_escape_table, test_cut_table, test_wrap_table, test_relative_table,
          test_time_is_local, test_kib_table, test_nearest_table)
