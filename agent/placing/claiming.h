/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A claim that somebody asks for, from the look at its consumer to the answer: what was placed is
 * verified and claimed, else the fit chooses, and the choice is written. All of it:
 * agent/placing/queue.h. */

#include <stdbool.h>
#include <stdint.h>

#include "base/allocation.h"

typedef struct ClaimTask ClaimTask;

typedef struct ClaimClaiming {
        bool in_hand;     /* claim_service_take_in_hand() */
        unsigned n_waits; /* for a healer that has the consumer in hand */
        bool is_there;    /* the consumer holds already what the claim has */
        bool searches;    /* for claims whose guests are gone */
        bool has_searched;
        Consumer *room;      /* what Placement has left of this host; NULL: it was not asked */
        bool others_full;    /* a sharing provider seems to be what has none */
        uint64_t n_removals; /* of all tasks, when the consumer was read */
} ClaimClaiming;

/* Ends the task, now or later. */
void claim_claiming_run(ClaimTask *task);

/* The search is over: goes on; or it is not needed any more. */
void claim_search_end(ClaimTask *task);
void claim_search_stop(ClaimTask *task);
