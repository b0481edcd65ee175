/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/fit/matching.h"

#include <string.h>

typedef struct Augment {
        const MatchingProblem *problem;
        size_t *right; /* by left */
        size_t *load;  /* by right */
        bool *seen;    /* by right, in this round */
} Augment;

static bool has_edge(const MatchingProblem *problem, size_t left, size_t right)
{
        return problem->edges[left * problem->n_right + right];
}

static bool augment(Augment *state, size_t left);

/* Makes room on a right item that is full, if one of those on it can go elsewhere. */
static bool make_room(Augment *state, size_t right)
{
        const MatchingProblem *problem = state->problem;

        if (state->load[right] < problem->capacity[right])
                return true;
        for (size_t i = 0; i < problem->n_left; i++)
                if (state->right[i] == right && augment(state, i)) {
                        state->load[right]--;
                        return true;
                }
        return false;
}

/* Free right items go first: who has one keeps it as long as possible. The depth is at most the
 * number of right items: each is seen once. */
static bool augment(Augment *state, size_t left)
{
        const MatchingProblem *problem = state->problem;

        for (size_t i = 0; i < problem->n_right; i++)
                if (!state->seen[i] && has_edge(problem, left, i) &&
                    state->load[i] < problem->capacity[i]) {
                        state->seen[i] = true;
                        state->right[left] = i;
                        state->load[i]++;
                        return true;
                }
        for (size_t i = 0; i < problem->n_right; i++) {
                if (state->seen[i] || !has_edge(problem, left, i))
                        continue;
                state->seen[i] = true;
                if (!make_room(state, i))
                        continue;
                state->right[left] = i;
                state->load[i]++;
                return true;
        }
        return false;
}

int matching_find(const MatchingProblem *problem, size_t *ret_right, size_t *ret_n)
{
        _cleanup_free_ size_t *load = calloc(problem->n_right + 1, sizeof(size_t));
        _cleanup_free_ bool *seen = calloc(problem->n_right + 1, sizeof(bool));
        Augment state = { .problem = problem, .right = ret_right, .load = load, .seen = seen };
        size_t n = 0;

        if (!load || !seen)
                return -ENOMEM;
        for (size_t i = 0; i < problem->n_left; i++)
                ret_right[i] = MATCHING_NOBODY;
        for (size_t i = 0; i < problem->n_left; i++) {
                memset(seen, 0, problem->n_right * sizeof(bool));
                n += augment(&state, i);
        }
        *ret_n = n;
        return 0;
}

typedef enum Colour { WHITE, GREY, BLACK } Colour;

/* From right to right, where a left item could move: is there a way back, or to a place that is
 * free? */
static bool leads_on(const MatchingProblem *problem, const size_t *right, const size_t *load,
                     Colour *colours, size_t from)
{
        colours[from] = GREY;
        for (size_t i = 0; i < problem->n_left; i++)
                for (size_t j = 0; right[i] == from && j < problem->n_right; j++) {
                        if (j == from || !has_edge(problem, i, j) || problem->capacity[j] == 0)
                                continue;
                        if (load[j] < problem->capacity[j] || colours[j] == GREY ||
                            (colours[j] == WHITE && leads_on(problem, right, load, colours, j)))
                                return true;
                }
        colours[from] = BLACK;
        return false;
}

int matching_is_ambiguous(const MatchingProblem *problem, const size_t *right, bool *ret)
{
        _cleanup_free_ size_t *load = calloc(problem->n_right + 1, sizeof(size_t));
        _cleanup_free_ Colour *colours = calloc(problem->n_right + 1, sizeof(Colour));
        bool ambiguous = false;

        if (!load || !colours)
                return -ENOMEM;
        for (size_t i = 0; i < problem->n_left; i++)
                load[right[i]]++;
        for (size_t i = 0; i < problem->n_right && !ambiguous; i++)
                ambiguous = colours[i] == WHITE && leads_on(problem, right, load, colours, i);
        *ret = ambiguous;
        return 0;
}
