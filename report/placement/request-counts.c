/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/request-counts.h"

#include <string.h>

static const char *const methods[] = { "GET", "PUT", "POST", "DELETE" };

/* "{…}" stands for one part of a path. */
static const char *const routes[] = {
        "/",
        "/allocation_candidates",
        "/allocations",
        "/allocations/{uuid}",
        "/reshaper",
        "/resource_classes/{name}",
        "/resource_providers",
        "/resource_providers/{uuid}",
        "/resource_providers/{uuid}/aggregates",
        "/resource_providers/{uuid}/allocations",
        "/resource_providers/{uuid}/inventories",
        "/resource_providers/{uuid}/traits",
        "/resource_providers/{uuid}/usages",
        "/traits",
        "/traits/{name}",
};

static bool path_matches(const char *path, const char *route)
{
        while (*route) {
                if (*route == '{') {
                        if (strcspn(path, "/?") == 0)
                                return false;
                        path += strcspn(path, "/?");
                        route += strcspn(route, "}") + 1;
                } else if (*path++ != *route++) {
                        return false;
                }
        }
        return *path == '\0' || *path == '?';
}

const char *request_counts_route(const char *path)
{
        for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
                if (path_matches(path, routes[i]))
                        return routes[i];
        return "other";
}

static const char *known_method(const char *method)
{
        for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
                if (strcmp(methods[i], method) == 0)
                        return methods[i];
        return "other";
}

void request_counts_add(RequestCounts *counts, const char *method, const char *path, int status)
{
        RequestCount item = {
                .method = known_method(method),
                .route = request_counts_route(path),
                .status = status,
                .n = 1,
        };

        for (size_t i = 0; i < counts->n_items; i++) {
                RequestCount *old = &counts->items[i];

                if (old->method == item.method && old->route == item.route &&
                    old->status == status) {
                        old->n++;
                        return;
                }
        }
        if (counts->n_items < REQUEST_COUNTS_MAX)
                counts->items[counts->n_items++] = item;
}
