/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How many requests a server is sent at a time. Pure; the one place that decides it.
 *
 * Nothing says how many a server serves, so it is found out: one at first, one more with each
 * answer that came while as many were under way as may be. It shrinks when the server turns out to
 * serve fewer. Some give each connection a worker for as long as it is open: what is sent over one
 * connection more than there are workers stands and waits, though all the others may be idle. So a
 * request that waits long for the first byte over a new connection, while other connections are
 * served, stands in such a crowd (http.c makes room for it); the number goes down to those that are
 * served, and does not grow for a minute.
 *
 * Writes may be fewer: two at first, one more each time that as many as now went well, and one
 * alone for a minute after one failed. A database that cannot do two at a time fails one of them.
 */

#include "base/macros.h"

typedef struct HttpLanes {
        size_t max;
        size_t limit, limit_writes; /* 1 … max */
        size_t n_well;              /* writes, since their limit grew */
        uint64_t closed_until_usec, writes_closed_until_usec;
        uint64_t answer_usec; /* how long an answer to a read takes, smoothed; 0: unknown */
} HttpLanes;

void http_lanes_init(HttpLanes *lanes, size_t max);

/* May one more start beside so many? */
bool http_lanes_may_start(const HttpLanes *lanes, size_t n_active, size_t n_writes, bool writes);

/* How long the first byte may be waited for before a request seems to stand in a crowd. */
uint64_t http_lanes_get_patience_usec(const HttpLanes *lanes, bool writes);

/* An answer came after so long, beside n_active requests and n_writes, itself among them. */
void http_lanes_note_answer(HttpLanes *lanes, bool writes, bool failed, uint64_t usec,
                            size_t n_active, size_t n_writes, uint64_t now_usec);

/* So many connections are served, and further ones wait. */
void http_lanes_note_crowd(HttpLanes *lanes, size_t n_served, uint64_t now_usec);
