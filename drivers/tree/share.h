/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How an amount is shared out over providers: as wanted, else where it fits best, else split. Pure
 * arithmetic. */

#include "base/macros.h"

typedef struct ReshapeShare {
        uint64_t wanted; /* this much belongs here, as far as there is room */
        uint64_t room;   /* more than this cannot be given */
        uint64_t step;   /* 1 …: what is given is a multiple */
        uint64_t least;  /* less than this cannot be given, but 0 can */
        unsigned rank;   /* the lower is taken first for what is wanted nowhere */
        uint64_t given;  /* out */
} ReshapeShare;

/* The part of amount that falls to weight, of the weights before and all: parts of consecutive
 * weights add up to amount. 0 when all is. */
uint64_t reshape_portion(uint64_t amount, uint64_t before, uint64_t weight, uint64_t all);

/* Shares out amount. What is wanted somewhere goes there first. The rest stays together where it
 * can, where the least room is left over; else it is split, the largest room first. -ENOSPC when
 * there is not room for all. */
int reshape_share_out(ReshapeShare *shares, size_t n_shares, uint64_t amount);
