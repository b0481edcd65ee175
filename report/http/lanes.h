/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides how many requests are sent to a server at a time. Pure.
 *
 * No server announces how many requests at a time raise its throughput, so this is measured. Reads
 * and writes have a limit each, because they take different times; each limit counts all requests
 * under way. A limit is one at first. The measured value is the time of an answer divided by the
 * number of requests under way. It is measured over a window of answers beside at least as many
 * requests as the limit, then the limit is doubled, up to the maximum, and measured again. The new
 * connections are given back if they do not raise the answers per second by half of their share:
 * more requests at a time than a server can serve only cost it CPU. After such a refusal, or at the
 * maximum, nothing is measured for a minute. Then the measurement begins at half of the limit, so
 * that a limit also shrinks with the server. After a pause of a second a measurement starts again
 * at its last measured limit, because requests of another kind follow.
 *
 * Some servers give each connection a worker for as long as it is open. A request on one connection
 * more than there are workers stalls, even if all other connections are idle. So a request that
 * waits long for its first byte on a new connection, while other connections are served or idle, is
 * a sign of such a crowd. Then http.c closes idle connections; both limits shrink to at most the
 * number of served and idle connections, and stay for a minute.
 *
 * After a 5xx to a write the limit of writes is one for a minute, because a database without
 * concurrent writes fails one of two. */

#include "base/macros.h"

/* The limit of one kind of requests. */
typedef struct HttpLane {
        size_t limit;       /* 1 … HttpLanes.max */
        size_t base_limit;  /* the limit before it was doubled */
        uint64_t base_usec; /* the time for each answer at base_limit; 0: not measured */
        uint64_t sum_usec;  /* sum of the times for each answer in this window */
        size_t n_answers;   /* answers that count since the limit changed, with those before the
                               window */
        uint64_t last_usec; /* time of the last answer that counted */
        uint64_t closed_until_usec; /* end of the minute without measurement; 0: not closed */
} HttpLane;

/* max is at least 1. At first each limit is 1, and the rest is 0. */
typedef struct HttpLanes {
        size_t max;
        HttpLane reads, writes;
        uint64_t answer_usec; /* smoothed time of an answer to a read; 0: unknown */
} HttpLanes;

/* Checks whether one more request can start beside n_active requests of both kinds. */
bool http_lanes_may_start(const HttpLanes *lanes, size_t n_active, bool writes);

/* Returns how long a request can wait for its first byte before it counts as stalled. */
uint64_t http_lanes_get_patience_usec(const HttpLanes *lanes, bool writes);

/* Notes an answer that came after usec. failed: its status is 500 or more. A request without an
 * answer is not noted. n_active includes its own request. */
void http_lanes_note_answer(HttpLanes *lanes, bool writes, bool failed, uint64_t usec,
                            size_t n_active, uint64_t now_usec);

/* Notes that only n_served connections are served and further ones wait. */
void http_lanes_note_crowd(HttpLanes *lanes, size_t n_served, uint64_t now_usec);
