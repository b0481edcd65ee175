/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/request-counts.h"

#include "tests/unit/test.h"

static void test_routes(void **state)
{
        static const struct {
                const char *path, *route;
        } cases[] = {
                { "/resource_providers", "/resource_providers" },
                { "/resource_providers?in_tree=x", "/resource_providers" },
                { "/resource_providers/x", "/resource_providers/{uuid}" },
                { "/resource_providers/x/traits", "/resource_providers/{uuid}/traits" },
                { "/resource_providers/x/usages?a=b", "/resource_providers/{uuid}/usages" },
                { "/resource_providers/", "other" },
                { "/resource_providers//traits", "other" },
                { "/resource_providers/x/unheard", "other" },
                { "/allocation_candidates?limit=2&resources=VCPU:1", "/allocation_candidates" },
                { "/allocations", "/allocations" },
                { "/allocations/x", "/allocations/{uuid}" },
                { "/traits?name=in:A", "/traits" },
                { "/traits/CUSTOM_X", "/traits/{name}" },
                { "/reshaper", "/reshaper" },
                { "/reshaper2", "other" },
                { "/", "/" },
                { "", "other" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_string_equal(request_counts_route(cases[i].path), cases[i].route);
}

static void test_counts(void **state)
{
        RequestCounts counts = { 0 };

        request_counts_add(&counts, "PUT", "/resource_providers/x/traits", 200);
        request_counts_add(&counts, "PUT", "/resource_providers/y/traits", 200);
        request_counts_add(&counts, "PUT", "/resource_providers/y/traits", 409);
        request_counts_add(&counts, "GET", "/resource_providers/y/traits", 200);
        request_counts_add(&counts, "BREW", "/coffee", 0);
        assert_int_equal(counts.n_items, 4);
        assert_int_equal(counts.items[0].n, 2);
        assert_int_equal(counts.items[1].status, 409);
        assert_string_equal(counts.items[3].method, "other");
        for (int status = 1000; status < 1000 + 2 * REQUEST_COUNTS_MAX; status++)
                request_counts_add(&counts, "GET", "/", status);
        assert_int_equal(counts.n_items, REQUEST_COUNTS_MAX);
        request_counts_add(&counts, "PUT", "/resource_providers/x/traits", 200);
        assert_int_equal(counts.items[0].n, 3);
}

TEST_MAIN(test_routes, test_counts)
