/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/request-counts.h"

#include <string.h>

static bool is_of(const RequestCount *item, const char *method, const char *route, int status)
{
        return item->status == status && strcmp(item->route, route) == 0 &&
               strcmp(item->method, method) == 0;
}

void request_counts_add(RequestCounts *counts, const char *method, const char *route, int status)
{
        for (size_t i = 0; i < counts->n_items; i++)
                if (is_of(&counts->items[i], method, route, status)) {
                        counts->items[i].n++;
                        return;
                }
        if (counts->n_items < REQUEST_COUNTS_MAX)
                counts->items[counts->n_items++] = (RequestCount){
                        .method = method, .route = route, .status = status, .n = 1
                };
}
