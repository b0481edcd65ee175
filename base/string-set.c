/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/string-set.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

void string_set_done(StringSet *set)
{
        for (size_t i = 0; i < set->n_items; i++)
                free(set->items[i]);
        free(set->items);
        *set = STRING_SET_INIT;
}

static int order_string(const void *key, const void *item)
{
        return strcmp(key, *(char *const *)item);
}

/* Returns the position of string, or the position at which to insert it. */
static size_t find_position(const StringSet *set, const char *string, bool *ret_found)
{
        return array_find(set->items, sizeof(char *), set->n_items, string, order_string,
                          ret_found);
}

/* Grows the array before it copies the string, so a failure loses no memory. */
int string_set_add(StringSet *set, const char *string)
{
        bool found;
        size_t position = find_position(set, string, &found);
        char *copy;

        if (found)
                return 0;
        if (array_grow(&set->items, sizeof(char *), set->n_items, &set->n_allocated) < 0)
                return -ENOMEM;
        copy = strdup(string);
        if (!copy)
                return -ENOMEM;
        array_open(set->items, sizeof(char *), &set->n_items, position);
        set->items[position] = copy;
        return 1;
}

bool string_set_remove(StringSet *set, const char *string)
{
        bool found;
        size_t position = find_position(set, string, &found);

        if (!found)
                return false;
        free(set->items[position]);
        array_close(set->items, sizeof(char *), &set->n_items, position);
        return true;
}

bool string_set_contains(const StringSet *set, const char *string)
{
        bool found;

        find_position(set, string, &found);
        return found;
}

bool string_set_equal(const StringSet *a, const StringSet *b)
{
        if (a->n_items != b->n_items)
                return false;
        for (size_t i = 0; i < a->n_items; i++)
                if (strcmp(a->items[i], b->items[i]) != 0)
                        return false;
        return true;
}

int string_set_copy(StringSet *ret, const StringSet *set)
{
        _cleanup_(string_set_done) StringSet copy = STRING_SET_INIT;

        /* The items are sorted, so each one is appended without a move. */
        for (size_t i = 0; i < set->n_items; i++)
                if (string_set_add(&copy, set->items[i]) < 0)
                        return -ENOMEM;
        string_set_done(ret);
        *ret = TAKE_STRUCT(copy);
        return 0;
}
