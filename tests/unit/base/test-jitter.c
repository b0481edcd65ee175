/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/jitter.h"

#include "tests/unit/test.h"

#define N_CLIENTS 10000
#define FIRST     (2 * USEC_PER_SEC)
#define LIMIT     (60 * USEC_PER_SEC)

/* Returns the next number of a small generator, so that every run of the test is the same. */
static uint64_t next_random(uint64_t *state)
{
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static void test_random(void **state)
{
        assert_true(jitter_random() != jitter_random());
}

static void test_bounds(void **state)
{
        uint64_t random = 1;

        assert_int_equal(jitter_between(5, 5, 77), 5);
        assert_int_equal(jitter_between(5, 4, 77), 5);
        assert_int_equal(jitter_between(0, UINT64_MAX, 77), 77);
        assert_int_equal(jitter_next(0, 10, 60, 0), 10);
        assert_int_equal(jitter_next(0, 10, 60, 20), 30);
        assert_int_equal(jitter_next(UINT64_MAX, 10, 60, 50), 60);
        assert_int_equal(jitter_next(0, 100, 60, 5), 60);
        for (uint64_t last = 0; last < 100; last++) {
                uint64_t pause = jitter_next(last, 10, 60, next_random(&random));

                assert_true(pause >= 10 && pause <= 60 && pause <= 3 * MAX(last, 10));
        }
}

/* All clients lose the service at the same moment for ten minutes. Counts the clients whose next
 * attempt is in the same second. */
static void test_a_fleet_that_lost_its_service(void **state)
{
        static unsigned seconds[128];
        uint64_t random = 42, away = 600 * USEC_PER_SEC;
        unsigned busiest = 0, n = 0;

        memset(seconds, 0, sizeof(seconds));
        for (unsigned i = 0; i < N_CLIENTS; i++) {
                uint64_t at = 0, pause = 0;

                while (at < away) {
                        pause = jitter_next(pause, FIRST, LIMIT, next_random(&random));
                        at += pause;
                }
                seconds[MIN((at - away) / USEC_PER_SEC, ARRAY_SIZE(seconds) - 1)]++;
        }
        for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
                busiest = MAX(busiest, seconds[i]);
                n += seconds[i];
        }
        assert_int_equal(n, N_CLIENTS);
        assert_int_equal(seconds[ARRAY_SIZE(seconds) - 1], 0);
        print_message("%u of %u speak in the busiest second\n", busiest, N_CLIENTS);
        /* Evenly spread over a minute, a sixtieth of the clients would be in one second. */
        assert_true(busiest < N_CLIENTS / 12);
}

TEST_MAIN(test_random, test_bounds, test_a_fleet_that_lost_its_service)
