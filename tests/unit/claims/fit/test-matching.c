/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/fit/matching.h"

#include "tests/unit/test.h"

#define LEFT_MAX  5
#define RIGHT_MAX 4
#define N_RANDOM  20000

static void test_table(void **state)
{
        static const struct {
                size_t n_left, n_right;
                const char *edges; /* rows of 0 and 1 */
                const char *capacity, *right;
                bool ambiguous;
        } cases[] = {
                { 0, 0, "", "", "", false },
                { 1, 1, "1", "1", "0", false },
                { 1, 1, "0", "1", "-", false },
                { 2, 2, "10 01", "11", "01", false },
                { 2, 2, "11 10", "11", "10", false }, /* the first one has to make room */
                { 2, 2, "11 11", "11", "01", true },
                { 2, 2, "10 10", "11", "0-", false },
                { 2, 1, "1 1", "2", "00", false },
                { 1, 2, "11", "11", "0", true },
                { 3, 3, "110 011 101", "111", "012", true },
                { 3, 3, "110 010 011", "111", "012", false },
                { 3, 2, "11 10 10", "21", "100", false },
                { 3, 2, "11 11 10", "21", "100", true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                bool edges[9] = { false }, ambiguous, whole = true;
                size_t capacity[3] = { 0 }, right[3], n = 0, n_matched;
                MatchingProblem problem = { cases[i].n_left, cases[i].n_right, edges, capacity };

                for (const char *c = cases[i].edges; *c; c++)
                        if (*c != ' ')
                                edges[n++] = *c == '1';
                for (size_t j = 0; j < cases[i].n_right; j++)
                        capacity[j] = (size_t)(cases[i].capacity[j] - '0');
                assert_int_equal(matching_find(&problem, right, &n_matched), 0);
                n = 0;
                for (size_t j = 0; j < cases[i].n_left; j++) {
                        bool none = right[j] == MATCHING_NOBODY;
                        char c = none ? '-' : (char)('0' + right[j]);

                        if (c != cases[i].right[j])
                                fail_msg("case %zu: left %zu has %c", i, j, c);
                        n += !none;
                        whole = whole && !none;
                }
                assert_int_equal(n, n_matched);
                if (!whole)
                        continue;
                assert_int_equal(matching_is_ambiguous(&problem, right, &ambiguous), 0);
                if (ambiguous != cases[i].ambiguous)
                        fail_msg("case %zu: ambiguous %d", i, ambiguous);
        }
}

/* What looking at every way says. */
typedef struct Truth {
        size_t most; /* left items that can have one at a time */
        size_t ways; /* in which all of them have one */
} Truth;

static void look(const MatchingProblem *problem, size_t left, size_t n, size_t load[RIGHT_MAX],
                 Truth *truth)
{
        if (left == problem->n_left) {
                truth->most = MAX(truth->most, n);
                truth->ways += n == problem->n_left;
                return;
        }
        look(problem, left + 1, n, load, truth);
        for (size_t i = 0; i < problem->n_right; i++) {
                if (!problem->edges[left * problem->n_right + i] || load[i] >= problem->capacity[i])
                        continue;
                load[i]++;
                look(problem, left + 1, n + 1, load, truth);
                load[i]--;
        }
}

static void check_matching(const MatchingProblem *problem, const size_t *right, size_t n)
{
        size_t load[RIGHT_MAX] = { 0 };

        for (size_t i = 0; i < problem->n_left; i++) {
                if (right[i] == MATCHING_NOBODY)
                        continue;
                assert_true(right[i] < problem->n_right);
                assert_true(problem->edges[i * problem->n_right + right[i]]);
                assert_true(++load[right[i]] <= problem->capacity[right[i]]);
                n--;
        }
        assert_int_equal(n, 0);
}

static uint32_t roll(uint32_t *state, uint32_t below)
{
        *state = *state * 1664525 + 1013904223;
        return (*state >> 16) % below;
}

/* Against every way there is. */
static void test_random(void **state)
{
        uint32_t seed = 1;

        for (int i = 0; i < N_RANDOM; i++) {
                bool edges[LEFT_MAX * RIGHT_MAX], ambiguous;
                size_t capacity[RIGHT_MAX], load[RIGHT_MAX] = { 0 }, right[LEFT_MAX], n;
                MatchingProblem problem = { .n_left = roll(&seed, LEFT_MAX + 1),
                                            .n_right = roll(&seed, RIGHT_MAX + 1),
                                            .edges = edges,
                                            .capacity = capacity };
                uint32_t density = 1 + roll(&seed, 4);
                Truth truth = { 0 };

                for (size_t j = 0; j < ARRAY_SIZE(edges); j++)
                        edges[j] = roll(&seed, 4) < density;
                for (size_t j = 0; j < ARRAY_SIZE(capacity); j++)
                        capacity[j] = roll(&seed, 4);
                look(&problem, 0, 0, load, &truth);
                assert_int_equal(matching_find(&problem, right, &n), 0);
                assert_int_equal(n, truth.most);
                check_matching(&problem, right, n);
                if (n < problem.n_left)
                        continue;
                assert_int_equal(matching_is_ambiguous(&problem, right, &ambiguous), 0);
                assert_int_equal(ambiguous, truth.ways > 1);
        }
}

/* Each left item but the last wants what the next one has: all of them have to move. */
static void test_a_long_chain(void **state)
{
        enum { N = 256 };
        static bool edges[N * N];
        size_t capacity[N], right[N], n;
        const MatchingProblem problem = {
                .n_left = N, .n_right = N, .edges = edges, .capacity = capacity
        };
        bool ambiguous;

        for (size_t i = 0; i < N; i++) {
                capacity[i] = 1;
                if (i < N - 1)
                        edges[i * N + i] = edges[i * N + i + 1] = true;
        }
        edges[(N - 1) * N] = true;
        assert_int_equal(matching_find(&problem, right, &n), 0);
        assert_int_equal(n, N);
        for (size_t i = 0; i < N; i++)
                assert_int_equal(right[i], (i + 1) % N);
        assert_int_equal(matching_is_ambiguous(&problem, right, &ambiguous), 0);
        assert_false(ambiguous);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_a_long_chain),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
