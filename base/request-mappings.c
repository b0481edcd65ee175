/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/request-mappings.h"

#include <string.h>

void request_mappings_done(RequestMappings *mappings)
{
        for (size_t i = 0; i < mappings->n_items; i++)
                free(mappings->items[i].suffix);
        free(mappings->items);
        *mappings = REQUEST_MAPPINGS_INIT;
}

/* Where the pair is, or belongs. */
static size_t find(const RequestMappings *mappings, const char *suffix, const Uuid *provider,
                   bool *ret_found)
{
        size_t low = 0, high = mappings->n_items;

        *ret_found = false;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(mappings->items[middle].suffix, suffix);

                if (order == 0)
                        order = uuid_order(&mappings->items[middle].provider, provider);
                if (order == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
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
        memmove(mappings->items + position + 1, mappings->items + position,
                (mappings->n_items - position) * sizeof(RequestMapping));
        mappings->items[position] = (RequestMapping){ .suffix = copy, .provider = *provider };
        mappings->n_items++;
        return 0;
}

bool request_mappings_contain(const RequestMappings *mappings, const char *suffix,
                              const Uuid *provider)
{
        bool found;

        find(mappings, suffix, provider, &found);
        return found;
}

bool request_mappings_have(const RequestMappings *mappings, const char *suffix)
{
        bool found;
        size_t position = find(mappings, suffix, &UUID_NULL, &found);

        return position < mappings->n_items &&
               strcmp(mappings->items[position].suffix, suffix) == 0;
}
