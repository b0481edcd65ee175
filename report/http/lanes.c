/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http/lanes.h"

/* The constants of the model in lanes.h: the number of writes at first, the limits of the patience,
 * and the time without growth after a crowd or a failed write. */
#define WRITES_FIRST       2
#define PATIENCE_MIN_USEC  (500 * USEC_PER_MSEC)
#define PATIENCE_MAX_USEC  (5 * USEC_PER_SEC)
#define WRITE_PATIENCE_MIN USEC_PER_SEC
#define CLOSED_USEC        (60 * USEC_PER_SEC)

void http_lanes_init(HttpLanes *lanes, size_t max)
{
        *lanes = (HttpLanes){ .max = max, .limit = 1, .limit_writes = MIN(max, WRITES_FIRST) };
}

bool http_lanes_may_start(const HttpLanes *lanes, size_t n_active, size_t n_writes, bool writes)
{
        return n_active < lanes->limit && (!writes || n_writes < lanes->limit_writes);
}

/* Returns the time of eight usual answers, within fixed limits. */
uint64_t http_lanes_get_patience_usec(const HttpLanes *lanes, bool writes)
{
        uint64_t min_usec = writes ? WRITE_PATIENCE_MIN : PATIENCE_MIN_USEC;

        return MIN(MAX(lanes->answer_usec * 8, min_usec), PATIENCE_MAX_USEC);
}

/* Closes the writes to one after a failure. The limit grows by one after as many successes at the
 * limit. */
static void note_write(HttpLanes *lanes, bool failed, size_t n_writes, uint64_t now_usec)
{
        if (failed) {
                lanes->limit_writes = 1;
                lanes->n_well = 0;
                lanes->writes_closed_until_usec = now_usec + CLOSED_USEC;
        } else if (n_writes >= lanes->limit_writes && lanes->limit_writes < lanes->max &&
                   now_usec >= lanes->writes_closed_until_usec &&
                   ++lanes->n_well >= lanes->limit_writes) {
                lanes->limit_writes++;
                lanes->n_well = 0;
        }
}

/* Smooths the usual time of an answer: a new one counts a quarter. */
void http_lanes_note_answer(HttpLanes *lanes, bool writes, bool failed, uint64_t usec,
                            size_t n_active, size_t n_writes, uint64_t now_usec)
{
        if (writes)
                note_write(lanes, failed, n_writes, now_usec);
        else
                lanes->answer_usec =
                        lanes->answer_usec ? (lanes->answer_usec * 3 + usec) / 4 : usec;
        if (!failed && n_active >= lanes->limit && lanes->limit < lanes->max &&
            now_usec >= lanes->closed_until_usec)
                lanes->limit++;
}

void http_lanes_note_crowd(HttpLanes *lanes, size_t n_served, uint64_t now_usec)
{
        lanes->limit = MAX(MIN(lanes->limit, n_served), (size_t)1);
        lanes->closed_until_usec = now_usec + CLOSED_USEC;
}
