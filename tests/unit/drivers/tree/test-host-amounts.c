/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/host-amounts.h"
#include "tests/unit/test.h"

#define N_SHARES 3

static void test_portions_add_up(void **state)
{
        static const uint64_t weights[] = { 3, 0, 5, 1, 7 };

        for (uint64_t amount = 0; amount < 200; amount++) {
                uint64_t before = 0, sum = 0;

                for (size_t i = 0; i < ARRAY_SIZE(weights); i++) {
                        sum += reshape_portion(amount, before, weights[i], 16);
                        before += weights[i];
                }
                assert_int_equal(sum, amount);
        }
        assert_int_equal(reshape_portion(7, 0, 1, 0), 0);
        assert_true(reshape_portion(UINT64_MAX, 0, UINT64_MAX, UINT64_MAX) == UINT64_MAX);
}

static void test_table(void **state)
{
        static const struct {
                const char *about;
                ReshapeShare shares[N_SHARES];
                uint64_t amount, given[N_SHARES];
                int r;
        } cases[] = {
                { "as wanted",
                  { { .wanted = 3, .room = 8, .step = 1 }, { .wanted = 1, .room = 8, .step = 1 } },
                  4,
                  { 3, 1 },
                  0 },
                { "wanted, but no room: the next",
                  { { .wanted = 4, .room = 3, .step = 1 }, { .room = 8, .step = 1 } },
                  4,
                  { 3, 1 },
                  0 },
                { "together where the least is left over",
                  { { .room = 8, .step = 1 }, { .room = 5, .step = 1 }, { .room = 3, .step = 1 } },
                  4,
                  { 0, 4 },
                  0 },
                { "rank before fit",
                  { { .room = 8, .step = 1 }, { .room = 5, .step = 1, .rank = 1 } },
                  4,
                  { 4 },
                  0 },
                { "split, the largest first",
                  { { .room = 2, .step = 1 }, { .room = 3, .step = 1 }, { .room = 1, .step = 1 } },
                  6,
                  { 2, 3, 1 },
                  0 },
                { "steps", { { .room = 7, .step = 4 }, { .room = 5, .step = 2 } }, 6, { 4, 2 }, 0 },
                { "less than the least",
                  { { .room = 7, .step = 1, .least = 5 }, { .room = 4, .step = 1 } },
                  4,
                  { 0, 4 },
                  0 },
                { "too much",
                  { { .room = 2, .step = 1 }, { .room = 1, .step = 1 } },
                  4,
                  { 2, 1 },
                  -ENOSPC },
                { "no step does", { { .room = 9, .step = 4 } }, 6, { 4 }, -ENOSPC },
                { "nothing", { { .room = 9, .step = 4 } }, 0, { 0 }, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ReshapeShare shares[N_SHARES];

                for (size_t j = 0; j < N_SHARES; j++) {
                        shares[j] = cases[i].shares[j];
                        shares[j].step = MAX(shares[j].step, 1U);
                }
                assert_int_equal(reshape_share_out(shares, N_SHARES, cases[i].amount), cases[i].r);
                for (size_t j = 0; j < N_SHARES; j++)
                        if (shares[j].given != cases[i].given[j])
                                fail_msg("%s: %zu has %llu", cases[i].about, j,
                                         (unsigned long long)shares[j].given);
        }
}

TEST_MAIN(test_portions_add_up, test_table)
