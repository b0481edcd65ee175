/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How many requests a server serves at a time. Pure.
 *
 * Some servers give each connection a worker for as long as it is open: what is sent over one
 * connection more than there are workers stands and waits until another is closed, though all the
 * others are idle. So the number is found out. It begins with one. A request that can be sent twice
 * without harm may go over one connection more, as a trial: when it is answered the connection
 * counts, when it is not for a while it is given up, sent over one that works, and no further trial
 * is made for a minute. Writes use connections that count only. */

#include "base/macros.h"

typedef struct HttpLanes {
        size_t max;
        size_t n_proven; /* 1 … max */
        size_t n_trials; /* under way */
        uint64_t closed_until_usec;
        uint64_t answer_usec; /* how long an answer takes, smoothed; 0: unknown */
} HttpLanes;

typedef enum HttpLane {
        HTTP_LANE_NONE, /* wait */
        HTTP_LANE_PROVEN,
        HTTP_LANE_TRIAL,
} HttpLane;

void http_lanes_init(HttpLanes *lanes, size_t max);

/* Another server: nothing is known of it. Trials under way at the old one may still end. */
void http_lanes_forget(HttpLanes *lanes);

/* May a request start beside n_active others (trials included)? A trial is counted as started. */
HttpLane http_lanes_take(HttpLanes *lanes, size_t n_active, bool repeatable, uint64_t now_usec);

/* How long a trial may wait for its answer. */
uint64_t http_lanes_get_patience_usec(const HttpLanes *lanes);

/* An answer to a request that can be repeated came after so long. */
void http_lanes_note_answer(HttpLanes *lanes, uint64_t usec);

/* A trial ended: answered over a connection of its own or not (failed, cancelled, or over a
 * connection that was there). */
void http_lanes_end_trial(HttpLanes *lanes, bool answered_on_its_own);

/* A trial was given up. */
void http_lanes_stall_trial(HttpLanes *lanes, uint64_t now_usec);
