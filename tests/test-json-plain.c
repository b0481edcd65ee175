/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/json-plain.h"

#include "base/json.h"
#include "tests/test.h"

#define N_MUTATIONS 20000

static json_t *read_by_jansson(const char *text, size_t n)
{
        return json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
}

/* True: it is plain, and jansson reads the same. */
static bool is_plain(const char *text, size_t n)
{
        _cleanup_json_ json_t *json = json_parse_plain(text, n);
        _cleanup_json_ json_t *expected = json ? read_by_jansson(text, n) : NULL;

        if (json && (!expected || !json_equal(json, expected)))
                fail_msg("jansson does not read that: %.*s", (int)n, text);
        return json != NULL;
}

static void test_plain(void **state)
{
        static const char *const texts[] = {
                "{}",
                "[]",
                " \t\r\n{ } \n",
                "[1, 0, 999999999999999999, 1.0, 16.25, 0.5]",
                "[123456789012345678.123456789012345678]",
                "[true, false, null, \"\", \"a b/~\"]",
                "{\"a\": {\"b\": [{}, [[]]]}, \"\": 1}",
                "{\"allocations\":{\"x\":{\"resources\":{\"VCPU\":1}}},\"project_id\":\"p\"}",
                "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (!is_plain(texts[i], strlen(texts[i])))
                        fail_msg("not plain: %s", texts[i]);
}

/* Some of it is JSON, and jansson's to read. */
static void test_not_plain(void **state)
{
        static const char *const texts[] = {
                "",
                " ",
                "1",
                "\"a\"",
                "null",
                "{",
                "[",
                "[1",
                "[1,",
                "[1,]",
                "[,1]",
                "[1 2]",
                "[1]]",
                "[1] x",
                "{\"a\"}",
                "{\"a\":}",
                "{\"a\":1,}",
                "{a:1}",
                "{\"a\":1 \"b\":2}",
                "{\"a\":1,\"a\":2}",
                "{\"a\":[1}",
                "[\"a]",
                "[\"\\n\"]",
                "[\"\\u0000\"]",
                "[\"\xc3\xb6\"]",
                "[\"\xff\"]",
                "[\"\x7f\"]",
                "[\"\t\"]",
                "[-1]",
                "[+1]",
                "[01]",
                "[00]",
                "[1.]",
                "[.5]",
                "[1e3]",
                "[1.5e3]",
                "[1x]",
                "[1000000000000000000]",
                "[tru]",
                "[truex]",
                "[nul",
                "[NaN]",
                "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (is_plain(texts[i], strlen(texts[i])))
                        fail_msg("plain: %s", texts[i]);
        assert_false(is_plain("[1]\0", 4));
        assert_false(is_plain("[\0]", 3));
        assert_false(is_plain("[\"\0\"]", 5));
}

/* Whatever happens to a text: what is read is what jansson reads. The copies end with their
 * memory, so that a sanitizer sees a step behind it. */
static void test_mutations(void **state)
{
        static const char text[] =
                "{\"resource_providers\": [{\"uuid\": \"a-1\", \"generation\": 12, \"ratio\": 1.5,"
                " \"parent\": null, \"links\": [{\"rel\": \"self\", \"href\": \"/x\"}, true]}]}";
        static const char bytes[] = "{}[]\",:.0123456789-+eE\\ntrufalsn \t\n\x01\x7f\x80\xc3";
        uint64_t random = 1;
        unsigned n_plain = 0;

        for (unsigned i = 0; i < N_MUTATIONS; i++) {
                size_t n = strlen(text);
                char *copy = malloc(n);

                assert_non_null(copy);
                memcpy(copy, text, n);
                for (unsigned j = 0; j <= i % 3; j++) {
                        random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
                        copy[(random >> 33) % n] = bytes[(random >> 20) % sizeof(bytes)];
                }
                if (i % 7 == 0)
                        copy = realloc(copy, n = 1 + (random >> 40) % n);
                n_plain += is_plain(copy, n);
                free(copy);
        }
        assert_true(n_plain > N_MUTATIONS / 20 && n_plain < N_MUTATIONS);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plain),
                cmocka_unit_test(test_not_plain),
                cmocka_unit_test(test_mutations),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
