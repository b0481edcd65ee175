/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A sorted set of strings, for traits, aggregates and resource classes. A lookup is a binary
 * search. Two equal sets have the same strings in the same order, so a comparison is a walk. */

#include "base/macros.h"

typedef struct StringSet {
        char **items; /* sorted by strcmp(), no duplicates; owned */
        size_t n_items;
        size_t n_allocated;
} StringSet;

#define STRING_SET_INIT ((StringSet){ 0 })

void string_set_done(StringSet *set);

/* Adds a copy. Returns 1 if it is new, 0 if the set had it, or -ENOMEM. */
int string_set_add(StringSet *set, const char *string);

/* Returns true if the set had it. */
bool string_set_remove(StringSet *set, const char *string);

bool string_set_contains(const StringSet *set, const char *string);
bool string_set_equal(const StringSet *a, const StringSet *b);

/* Replaces ret with a copy of set. -ENOMEM leaves ret as it was. */
int string_set_copy(StringSet *ret, const StringSet *set);
