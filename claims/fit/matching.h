/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Bipartite matching with augmenting paths: each left item gets one right item that an edge allows,
 * and a right item takes as many as its capacity. Pure; at most n_left * edges steps. */

#include "base/macros.h"

#define MATCHING_NOBODY SIZE_MAX

typedef struct MatchingProblem {
        size_t n_left, n_right;
        const bool *edges;      /* left * n_right + right */
        const size_t *capacity; /* by right */
} MatchingProblem;

/* Writes the right item of each left one, or MATCHING_NOBODY, and how many have one: as many as
 * possible. -ENOMEM. */
int matching_find(const MatchingProblem *problem, size_t *ret_right, size_t *ret_n);

/* Could the left items, which all have a right one, have others, too? -ENOMEM. */
int matching_is_ambiguous(const MatchingProblem *problem, const size_t *right, bool *ret);
