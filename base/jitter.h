/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When to try again, so that many clients of one service do not come together: decorrelated jitter.
 * Pure but for jitter_random(); the caller brings the randomness. */

#include <stdint.h>

/* 64 random bits; 0 where the kernel has none yet, for which nothing waits. */
uint64_t jitter_random(void);

/* Evenly spread over [low, high]. random: 64 random bits. */
uint64_t jitter_between(uint64_t low, uint64_t high, uint64_t random);

/* The pause after one of last: between first and three times the last one, at most max. last 0: the
 * first pause. */
uint64_t jitter_next(uint64_t last, uint64_t first, uint64_t max, uint64_t random);
