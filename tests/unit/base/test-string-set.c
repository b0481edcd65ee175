/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/string-set.h"

#include "tests/shims/fail-alloc.h"
#include "tests/unit/test.h"

static void fill(StringSet *set, const char *const *strings)
{
        for (; *strings; strings++)
                assert_true(string_set_add(set, *strings) >= 0);
}

static void assert_items(const StringSet *set, const char *const *expected)
{
        size_t n = 0;

        for (; expected[n]; n++) {
                assert_true(n < set->n_items);
                assert_string_equal(set->items[n], expected[n]);
        }
        assert_int_equal(set->n_items, n);
}

#define STRINGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void test_add(void **state)
{
        _cleanup_(string_set_done) StringSet set = STRING_SET_INIT;
        char text[] = "M";

        assert_int_equal(string_set_add(&set, text), 1);
        text[0] = 'X'; /* the set has a copy */
        assert_int_equal(string_set_add(&set, "Z"), 1);
        assert_int_equal(string_set_add(&set, "A"), 1);
        assert_int_equal(string_set_add(&set, "M"), 0);
        assert_int_equal(string_set_add(&set, ""), 1);
        assert_int_equal(string_set_add(&set, "a"), 1);
        assert_int_equal(string_set_add(&set, "\xc3\xa9"), 1); /* the order is that of bytes, not of
                                                                * a locale */
        assert_items(&set, STRINGS("", "A", "M", "Z", "a", "\xc3\xa9"));
        assert_true(string_set_contains(&set, ""));
        assert_true(string_set_contains(&set, "Z"));
        assert_false(string_set_contains(&set, "z"));
        assert_false(string_set_contains(&set, "AA"));
}

static void test_remove(void **state)
{
        _cleanup_(string_set_done) StringSet set = STRING_SET_INIT;

        assert_false(string_set_remove(&set, "A"));
        fill(&set, STRINGS("A", "B", "C"));
        assert_true(string_set_remove(&set, set.items[1])); /* the argument is the set's own
                                                             * string */
        assert_items(&set, STRINGS("A", "C"));
        assert_false(string_set_remove(&set, "B"));
        assert_true(string_set_remove(&set, "C"));
        assert_true(string_set_remove(&set, "A"));
        assert_int_equal(set.n_items, 0);
        assert_int_equal(string_set_add(&set, "A"), 1);
        assert_items(&set, STRINGS("A"));
}

/* Many strings in an order that is neither sorted nor reversed. Each is found again. */
static void test_many(void **state)
{
        _cleanup_(string_set_done) StringSet set = STRING_SET_INIT;
        char text[16];

        for (unsigned i = 0; i < 1000; i++) {
                snprintf(text, sizeof(text), "T%u", i * 377 % 1000);
                assert_int_equal(string_set_add(&set, text), 1);
        }
        assert_int_equal(set.n_items, 1000);
        for (size_t i = 1; i < set.n_items; i++)
                assert_true(strcmp(set.items[i - 1], set.items[i]) < 0);
        for (unsigned i = 0; i < 1000; i++) {
                snprintf(text, sizeof(text), "T%u", i);
                assert_true(string_set_contains(&set, text));
                assert_int_equal(string_set_remove(&set, text), true);
        }
        assert_int_equal(set.n_items, 0);
}

static void test_equal_and_copy(void **state)
{
        _cleanup_(string_set_done) StringSet a = STRING_SET_INIT, b = STRING_SET_INIT;

        assert_true(string_set_equal(&a, &b));
        fill(&a, STRINGS("B", "A"));
        fill(&b, STRINGS("A"));
        assert_false(string_set_equal(&a, &b));
        fill(&b, STRINGS("C"));
        assert_false(string_set_equal(&a, &b));
        assert_int_equal(string_set_copy(&b, &a), 0);
        assert_true(string_set_equal(&a, &b));
        assert_int_equal(string_set_copy(&a, &a), 0);
        assert_items(&a, STRINGS("A", "B"));
        string_set_done(&a);
        assert_items(&b, STRINGS("A", "B"));
        assert_int_equal(string_set_copy(&b, &a), 0);
        assert_int_equal(b.n_items, 0);
}

static void test_add_without_memory(void **state)
{
        _cleanup_(string_set_done) StringSet set = STRING_SET_INIT;
        char text[16];
        unsigned failures = 0, at;

        for (unsigned i = 0; i < 20; i++) {
                int r;

                snprintf(text, sizeof(text), "T%02u", i);
                FAIL_ALLOC_EACH(at, r = string_set_add(&set, text)) {
                        failures++;
                        assert_int_equal(r, -ENOMEM);
                        assert_int_equal(set.n_items, i);
                        assert_false(string_set_contains(&set, text));
                }
                assert_int_equal(r, 1);
        }
        assert_int_equal(set.n_items, 20);
        assert_true(failures > 20); /* both the array and the copy of a string failed */
}

static void test_copy_without_memory(void **state)
{
        _cleanup_(string_set_done) StringSet from = STRING_SET_INIT, to = STRING_SET_INIT;
        unsigned at;
        int r;

        fill(&from, STRINGS("A", "B", "C"));
        fill(&to, STRINGS("OLD"));
        FAIL_ALLOC_EACH(at, r = string_set_copy(&to, &from)) {
                assert_int_equal(r, -ENOMEM);
                assert_items(&to, STRINGS("OLD"));
        }
        assert_int_equal(at, 4);
        assert_items(&to, STRINGS("A", "B", "C"));
}

TEST_MAIN(test_add, test_remove, test_many, test_equal_and_copy, test_add_without_memory,
          test_copy_without_memory)
