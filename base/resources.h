/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Amounts by resource class ("VCPU": 2, "MEMORY_MB": 2048), the "resources" object of Placement.
 * Sorted by class. Functions that edit do not check the names of classes; the parser does. */

#include "base/error.h"

typedef struct ResourceAmount {
        char *resource_class;
        uint64_t amount;
} ResourceAmount;

typedef struct Resources {
        ResourceAmount *items;
        size_t n_items;
        size_t n_allocated;
} Resources;

#define RESOURCES_INIT ((Resources){ 0 })

void resources_done(Resources *resources);

/* Sets the amount of a class and adds the class (copied) if needed; 0 removes it. -ENOMEM. */
int resources_set(Resources *resources, const char *resource_class, uint64_t amount);

/* Adds to the amount of a class. -ENOMEM or -EOVERFLOW; then nothing is changed. */
int resources_add(Resources *resources, const char *resource_class, uint64_t amount);

/* Returns the amount of a class, 0 if there is none. */
uint64_t resources_get(const Resources *resources, const char *resource_class);

bool resources_equal(const Resources *a, const Resources *b);

/* Replaces ret with a copy. -ENOMEM leaves ret as it was. */
int resources_copy(Resources *ret, const Resources *resources);

/* Parses "VCPU=2,VGPU=1" or "VCPU:2,VGPU:1" (the form of Placement's query strings). Amounts are 1
 * to 2147483647, and each class occurs once. An empty text, an empty item and blanks are errors.
 * Replaces *ret, which must be initialised and is unchanged on failure. -EINVAL with words,
 * -ENOMEM. */
int resources_parse(const char *text, Resources *ret, Error *reterr);

/* Returns a text such as "VCPU=2,VGPU=1", or NULL when out of memory. The caller frees it. */
char *resources_format(const Resources *resources);
