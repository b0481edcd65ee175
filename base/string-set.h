/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A sorted set of strings: traits, aggregates, resource classes. Lookup is a binary search; two
 * equal sets list the same strings in the same order, so comparing and printing need no further
 * work. */

#include "base/macros.h"

typedef struct StringSet {
        char **items; /* sorted by strcmp(), no duplicates; owned */
        size_t n_items;
        size_t n_allocated;
} StringSet;

#define STRING_SET_INIT ((StringSet){ 0 })

void string_set_done(StringSet *set);

/* Adds a copy. 1 when it is new, 0 when it was there, -ENOMEM. */
int string_set_add(StringSet *set, const char *string);

/* True when it was there. */
bool string_set_remove(StringSet *set, const char *string);

bool string_set_contains(const StringSet *set, const char *string);
bool string_set_equal(const StringSet *a, const StringSet *b);

/* Replaces ret with a copy of set. -ENOMEM leaves ret as it was. */
int string_set_copy(StringSet *ret, const StringSet *set);
