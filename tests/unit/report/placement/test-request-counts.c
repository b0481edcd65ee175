/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/request-counts.h"

#include "tests/unit/test.h"

#define TRAITS "/resource_providers/{uuid}/traits"

static void test_counts(void **state)
{
        RequestCounts counts = { 0 };

        request_counts_add(&counts, "PUT", TRAITS, 200);
        request_counts_add(&counts, "PUT", TRAITS, 200);
        request_counts_add(&counts, "PUT", TRAITS, 409);
        request_counts_add(&counts, "GET", TRAITS, 200);
        request_counts_add(&counts, "GET", "/allocations/{uuid}", 200);
        assert_int_equal(counts.n_items, 4);
        assert_int_equal(counts.items[0].n, 2);
        assert_int_equal(counts.items[1].status, 409);
        assert_string_equal(counts.items[3].route, "/allocations/{uuid}");
        for (int status = 1000; status < 1000 + 2 * REQUEST_COUNTS_MAX; status++)
                request_counts_add(&counts, "GET", "/", status);
        assert_int_equal(counts.n_items, REQUEST_COUNTS_MAX);
        request_counts_add(&counts, "PUT", TRAITS, 200);
        assert_int_equal(counts.items[0].n, 3);
}

TEST_MAIN(test_counts)
