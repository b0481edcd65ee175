/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/request-mappings.h"

#include <string.h>

#include "base/array.h"

void request_mappings_done(RequestMappings *mappings)
{
        for (size_t i = 0; i < mappings->n_items; i++)
                free(mappings->items[i].suffix);
        free(mappings->items);
        *mappings = REQUEST_MAPPINGS_INIT;
}

static int order_mapping(const void *key, const void *item)
{
        const RequestMapping *a = key, *b = item;
        int order = strcmp(a->suffix, b->suffix);

        return order ? order : uuid_order(&a->provider, &b->provider);
}

/* Where the pair is, or belongs. */
static size_t find(const RequestMappings *mappings, const char *suffix, const Uuid *provider,
                   bool *ret_found)
{
        RequestMapping key = { .suffix = (char *)suffix, .provider = *provider };

        return array_find(mappings->items, sizeof(key), mappings->n_items, &key, order_mapping,
                          ret_found);
}

int request_mappings_add(RequestMappings *mappings, const char *suffix, const Uuid *provider)
{
        bool found;
        size_t position = find(mappings, suffix, provider, &found);
        char *copy;

        if (found)
                return 0;
        if (array_grow(&mappings->items, sizeof(RequestMapping), mappings->n_items,
                       &mappings->n_allocated) < 0)
                return -ENOMEM;
        copy = strdup(suffix);
        if (!copy)
                return -ENOMEM;
        array_open(mappings->items, sizeof(RequestMapping), &mappings->n_items, position);
        mappings->items[position] = (RequestMapping){ .suffix = copy, .provider = *provider };
        return 0;
}

bool request_mappings_contain(const RequestMappings *mappings, const char *suffix,
                              const Uuid *provider)
{
        bool found;

        find(mappings, suffix, provider, &found);
        return found;
}
