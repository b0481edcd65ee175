/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/array.h"

#include "tests/shims/fail-alloc.h"
#include "tests/unit/test.h"

static int order_int(const void *key, const void *item)
{
        int a = *(const int *)key, b = *(const int *)item;

        return (a > b) - (a < b);
}

typedef struct Numbers {
        int *items;
        size_t n_items, n_allocated;
} Numbers;

static bool add(Numbers *numbers, int number)
{
        bool found;
        size_t place = array_find(numbers->items, sizeof(int), numbers->n_items, &number, order_int,
                                  &found);

        if (found)
                return false;
        assert_int_equal(
                array_grow(&numbers->items, sizeof(int), numbers->n_items, &numbers->n_allocated),
                0);
        array_open(numbers->items, sizeof(int), &numbers->n_items, place);
        numbers->items[place] = number;
        return true;
}

static void test_find(void **state)
{
        static const int items[] = { 2, 4, 6, 8, 10 };
        static const struct {
                size_t n;
                int key;
                size_t place;
                bool found;
        } rows[] = {
                { 0, 2, 0, false }, { 1, 1, 0, false },  { 1, 2, 0, true },  { 1, 3, 1, false },
                { 4, 1, 0, false }, { 4, 2, 0, true },   { 4, 5, 2, false }, { 4, 8, 3, true },
                { 4, 9, 4, false }, { 5, 2, 0, true },   { 5, 6, 2, true },  { 5, 7, 3, false },
                { 5, 10, 4, true }, { 5, 11, 5, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                bool found = !rows[i].found;
                size_t place = array_find(rows[i].n ? items : NULL, sizeof(int), rows[i].n,
                                          &rows[i].key, order_int, &found);

                assert_int_equal(place, rows[i].place);
                assert_int_equal(found, rows[i].found);
        }
}

/* Items are sorted and unique for every order and number of insertions and removals. */
static void test_open_and_close(void **state)
{
        Numbers numbers = { 0 };
        bool found;

        for (int i = 0; i < 300; i++)
                assert_int_equal(add(&numbers, i * 37 % 101), i < 101);
        assert_int_equal(numbers.n_items, 101);
        for (int i = 0; i < 101; i++)
                assert_int_equal(numbers.items[i], i);
        for (int i = 0; i < 101; i++) {
                int key = i * 53 % 101;
                size_t place = array_find(numbers.items, sizeof(int), numbers.n_items, &key,
                                          order_int, &found);

                assert_true(found);
                array_close(numbers.items, sizeof(int), &numbers.n_items, place);
                for (size_t j = 1; j < numbers.n_items; j++)
                        assert_true(numbers.items[j - 1] < numbers.items[j]);
                array_find(numbers.items, sizeof(int), numbers.n_items, &key, order_int, &found);
                assert_false(found);
        }
        assert_int_equal(numbers.n_items, 0);
        free(numbers.items);
}

static void test_no_memory(void **state)
{
        Numbers numbers = { 0 };

        for (int i = 0; i < 8; i++)
                add(&numbers, i);
        fail_alloc_at(0);
        assert_int_equal(
                array_grow(&numbers.items, sizeof(int), numbers.n_items, &numbers.n_allocated),
                -ENOMEM);
        assert_true(fail_alloc_done());
        assert_int_equal(numbers.n_allocated, 8);
        for (int i = 0; i < 8; i++)
                assert_int_equal(numbers.items[i], i);
        free(numbers.items);
}

TEST_MAIN(test_find, test_open_and_close, test_no_memory)
