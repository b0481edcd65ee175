/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How often each route of Placement was asked, by method and status of the answer. Plain data of
 * bounded size: a route has placeholders for uuids and names (report/placement/request.h). */

#include <stdint.h>

#include "base/macros.h"

#define REQUEST_COUNTS_MAX 96

typedef struct RequestCount {
        const char *method, *route; /* "PUT", "/resource_providers/{uuid}/traits"; static */
        int status;                 /* 0: there was no answer */
        uint64_t n;
} RequestCount;

typedef struct RequestCounts {
        RequestCount items[REQUEST_COUNTS_MAX];
        size_t n_items;
} RequestCounts;

/* method and route are static. One that no longer fits is not counted. */
void request_counts_add(RequestCounts *counts, const char *method, const char *route, int status);
