/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which provider each group of a request got something from: "mappings" of Placement's allocation
 * candidates (spec 5). A suffixed group has one provider, the group without a suffix one or more.
 * Plain data. */

#include "base/error.h"
#include "base/uuid.h"

typedef struct RequestMapping {
        char *suffix; /* "" for the unsuffixed group */
        Uuid provider;
} RequestMapping;

typedef struct RequestMappings {
        RequestMapping *items; /* by suffix, then provider */
        size_t n_items, n_allocated;
} RequestMappings;

#define REQUEST_MAPPINGS_INIT ((RequestMappings){ 0 })

void request_mappings_done(RequestMappings *mappings);

/* Adds a pair (the suffix is copied); once more is no error. -ENOMEM. */
int request_mappings_add(RequestMappings *mappings, const char *suffix, const Uuid *provider);

/* Is the pair there? */
bool request_mappings_contain(const RequestMappings *mappings, const char *suffix,
                              const Uuid *provider);
