/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Arrays that grow, and arrays kept in order. The owner keeps the pointer, the count, and where it
 * grows, the count of allocated items. No policy, no state; any thread, never blocks.
 *
 * What is put in order goes in three steps: array_find() finds the place, array_grow() makes sure
 * of the memory, array_open() makes the gap. Only the second can fail, and nothing is changed then.
 * Inline, so that the compiler sees the order and the size of the items. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* As for bsearch(3): below, at or above 0 as the key stands before, at or after the item. */
typedef int (*ArrayOrder)(const void *key, const void *item);

/* Grows *items (of size item_size) so that one more fits; *n_alloc counts allocated items. -ENOMEM
 * or 0. */
static inline int array_grow(void *items, size_t item_size, size_t n, size_t *n_alloc)
{
        void **array = items;
        size_t want;
        void *grown;

        if (n < *n_alloc)
                return 0;
        want = *n_alloc ? *n_alloc * 2 : 8;
        grown = reallocarray(*array, want, item_size);
        if (!grown)
                return -ENOMEM;
        *array = grown;
        *n_alloc = want;
        return 0;
}

/* The place of the key among n items in order, or, with *ret_found false, where it belongs. The
 * items may be NULL when n is 0. */
static inline size_t array_find(const void *items, size_t item_size, size_t n, const void *key,
                                ArrayOrder order, bool *ret_found)
{
        size_t low = 0, high = n;

        *ret_found = false;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int r = order(key, (const char *)items + middle * item_size);

                if (r == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (r > 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Moves what stands at place and behind it one up and counts one more: the item at place is the
 * caller's to fill. There must be room (array_grow()). */
static inline void array_open(void *items, size_t item_size, size_t *n, size_t place)
{
        char *at = (char *)items + place * item_size;

        memmove(at + item_size, at, (*n - place) * item_size);
        ++*n;
}

/* Closes the gap that the item at place leaves, and counts one less. What the item owned is the
 * caller's to free before. */
static inline void array_close(void *items, size_t item_size, size_t *n, size_t place)
{
        char *at = (char *)items + place * item_size;

        if (place + 1 < *n)
                memmove(at, at + item_size, (*n - place - 1) * item_size);
        --*n;
}
