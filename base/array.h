/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Growing arrays and sorted arrays. The owner keeps the pointer and the count, and for a
 * growing array also the count of allocated items. No policy, no state; any thread, never
 * blocks.
 *
 * An insertion has three steps: array_find() finds the place, array_grow() allocates, and
 * array_open() makes the gap. Only array_grow() can fail, and then nothing is changed. The
 * functions are inline, so that the compiler sees the order and the size of the items. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Grows *items (of item_size bytes each) so that one more item fits. *n_alloc counts allocated
 * items. Returns 0, or -ENOMEM without a change. */
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

/* Returns the position of the key among n sorted items. If no item is equal, *ret_found is false,
 * and the key can be inserted at the result. The items can be NULL if n is 0. order compares as for
 * bsearch(3): it returns a value below, equal to or above 0 if the key sorts before, equal to or
 * after the item. */
static inline size_t array_find(const void *items, size_t item_size, size_t n, const void *key,
                                int (*order)(const void *key, const void *item), bool *ret_found)
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

/* Moves the items from place on up by one and increments the count. The caller must fill the
 * item at place. array_grow() must have succeeded before. */
static inline void array_open(void *items, size_t item_size, size_t *n, size_t place)
{
        char *at = (char *)items + place * item_size;

        memmove(at + item_size, at, (*n - place) * item_size);
        ++*n;
}

/* Removes the item at place, moves the later ones down and decrements the count. The caller
 * must first free the members that the item owns. */
static inline void array_close(void *items, size_t item_size, size_t *n, size_t place)
{
        char *at = (char *)items + place * item_size;

        if (place + 1 < *n)
                memmove(at, at + item_size, (*n - place - 1) * item_size);
        --*n;
}
