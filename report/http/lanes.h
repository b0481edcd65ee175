/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides how many requests are sent to a server at a time. Pure.
 *
 * No server announces how many it serves, so the number is measured. It is one at first, and grows
 * by one with each successful answer that came while the limit was used up. It shrinks when the
 * server turns out to serve fewer. Some servers give each connection a worker for as long as it is
 * open. A request on one connection more than there are workers stalls, even if all other
 * connections are idle. So a request that waits long for its first byte on a new connection, while
 * other connections are served, is a sign of such a crowd. Then http.c closes idle connections; the
 * number shrinks to the served connections and does not grow for a minute.
 *
 * Writes have a limit of their own. It is two at first and grows by one after as many successes as
 * the limit. After a failure it is one for a minute, because a database without concurrent writes
 * fails one of two. */

#include "base/macros.h"

typedef struct HttpLanes {
        size_t max;
        size_t limit, limit_writes; /* 1 … max */
        size_t n_well;              /* successful writes since their limit grew */
        uint64_t closed_until_usec, writes_closed_until_usec;
        uint64_t answer_usec; /* smoothed time of an answer to a read; 0: unknown */
} HttpLanes;

void http_lanes_init(HttpLanes *lanes, size_t max);

/* Checks whether one more request can start beside n_active requests, of which n_writes are
 * writes. */
bool http_lanes_may_start(const HttpLanes *lanes, size_t n_active, size_t n_writes, bool writes);

/* Returns how long a request can wait for its first byte before it counts as stalled. */
uint64_t http_lanes_get_patience_usec(const HttpLanes *lanes, bool writes);

/* Notes an answer that came after usec. failed: its status is 500 or more. A request without an
 * answer is not noted. n_active and n_writes include its own request. */
void http_lanes_note_answer(HttpLanes *lanes, bool writes, bool failed, uint64_t usec,
                            size_t n_active, size_t n_writes, uint64_t now_usec);

/* Notes that only n_served connections are served and further ones wait. */
void http_lanes_note_crowd(HttpLanes *lanes, size_t n_served, uint64_t now_usec);
