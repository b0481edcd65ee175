/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http-lanes.h"

#include "tests/test.h"

static void test_growing(void **state)
{
        HttpLanes lanes;

        http_lanes_init(&lanes, 3);
        assert_int_equal(http_lanes_take(&lanes, 0, false, 0), HTTP_LANE_PROVEN);
        /* A write waits, a read tries. */
        assert_int_equal(http_lanes_take(&lanes, 1, false, 0), HTTP_LANE_NONE);
        assert_int_equal(http_lanes_take(&lanes, 1, true, 0), HTTP_LANE_TRIAL);
        assert_int_equal(http_lanes_take(&lanes, 2, true, 0), HTTP_LANE_TRIAL);
        assert_int_equal(http_lanes_take(&lanes, 3, true, 0), HTTP_LANE_NONE);
        http_lanes_end_trial(&lanes, true);
        assert_int_equal(lanes.n_proven, 2);
        assert_int_equal(http_lanes_take(&lanes, 1, false, 0), HTTP_LANE_PROVEN);
        http_lanes_end_trial(&lanes, true);
        assert_int_equal(lanes.n_proven, 3);
        assert_int_equal(lanes.n_trials, 0);
        assert_int_equal(http_lanes_take(&lanes, 2, false, 0), HTTP_LANE_PROVEN);
        assert_int_equal(http_lanes_take(&lanes, 3, true, 0), HTTP_LANE_NONE);
}

static void test_trial_that_proves_nothing(void **state)
{
        HttpLanes lanes;

        http_lanes_init(&lanes, 4);
        assert_int_equal(http_lanes_take(&lanes, 1, true, 0), HTTP_LANE_TRIAL);
        http_lanes_end_trial(&lanes, false);
        assert_int_equal(lanes.n_proven, 1);
        assert_int_equal(http_lanes_take(&lanes, 1, true, 0), HTTP_LANE_TRIAL);
}

static void test_stall(void **state)
{
        HttpLanes lanes;
        uint64_t now = 1000 * USEC_PER_SEC;

        http_lanes_init(&lanes, 4);
        assert_int_equal(http_lanes_take(&lanes, 1, true, now), HTTP_LANE_TRIAL);
        http_lanes_stall_trial(&lanes, now);
        assert_int_equal(lanes.n_proven, 1);
        assert_int_equal(http_lanes_take(&lanes, 1, true, now + 59 * USEC_PER_SEC), HTTP_LANE_NONE);
        assert_int_equal(http_lanes_take(&lanes, 0, true, now), HTTP_LANE_PROVEN);
        /* The server may have more workers by now. */
        assert_int_equal(http_lanes_take(&lanes, 1, true, now + 60 * USEC_PER_SEC),
                         HTTP_LANE_TRIAL);
}

static void test_patience(void **state)
{
        HttpLanes lanes;

        http_lanes_init(&lanes, 4);
        assert_int_equal(http_lanes_get_patience_usec(&lanes), 200 * USEC_PER_MSEC);
        http_lanes_note_answer(&lanes, 10 * USEC_PER_MSEC);
        assert_int_equal(http_lanes_get_patience_usec(&lanes), 200 * USEC_PER_MSEC);
        for (unsigned i = 0; i < 50; i++)
                http_lanes_note_answer(&lanes, 400 * USEC_PER_MSEC);
        assert_in_range(http_lanes_get_patience_usec(&lanes), 1500 * USEC_PER_MSEC,
                        1600 * USEC_PER_MSEC);
        for (unsigned i = 0; i < 50; i++)
                http_lanes_note_answer(&lanes, 30 * USEC_PER_SEC);
        assert_int_equal(http_lanes_get_patience_usec(&lanes), 5 * USEC_PER_SEC);
}

static void test_another_server(void **state)
{
        HttpLanes lanes;

        http_lanes_init(&lanes, 4);
        assert_int_equal(http_lanes_take(&lanes, 1, true, 0), HTTP_LANE_TRIAL);
        http_lanes_end_trial(&lanes, true);
        assert_int_equal(http_lanes_take(&lanes, 1, false, 0), HTTP_LANE_PROVEN);
        assert_int_equal(http_lanes_take(&lanes, 2, true, 0), HTTP_LANE_TRIAL);
        http_lanes_forget(&lanes);
        assert_int_equal(http_lanes_take(&lanes, 1, false, 0), HTTP_LANE_NONE);
        assert_int_equal(http_lanes_take(&lanes, 0, false, 0), HTTP_LANE_PROVEN);
        /* The trial at the old one ends. */
        http_lanes_end_trial(&lanes, false);
        assert_int_equal(lanes.n_trials, 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_growing),
                cmocka_unit_test(test_trial_that_proves_nothing),
                cmocka_unit_test(test_stall),
                cmocka_unit_test(test_patience),
                cmocka_unit_test(test_another_server),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
