/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures the answers per second of each limit and changes the limits. The time of an answer
 * divided by the requests under way is the time that the server needs for each answer, also in the
 * pauses of the caller. So no clock runs between answers. measure() adds an answer to the window of
 * its kind, and judge() ends a window. A closed lane measures nothing until its minute is over. */

#include "report/http/lanes.h"

/* The constants of the model in lanes.h: the answers of a window for each request at a time, the
 * pause that ends a measurement, the limits of the patience, and the time between measurements. */
#define WINDOW             8
#define PAUSE_USEC         USEC_PER_SEC
#define PATIENCE_MIN_USEC  (500 * USEC_PER_MSEC)
#define PATIENCE_MAX_USEC  (5 * USEC_PER_SEC)
#define WRITE_PATIENCE_MIN USEC_PER_SEC
#define CLOSED_USEC        (60 * USEC_PER_SEC)

bool http_lanes_may_start(const HttpLanes *lanes, size_t n_active, bool writes)
{
        return n_active < (writes ? lanes->writes.limit : lanes->reads.limit);
}

/* Returns the time of eight usual answers to reads, also for writes, within fixed limits. The lower
 * one of the two is larger for writes. */
uint64_t http_lanes_get_patience_usec(const HttpLanes *lanes, bool writes)
{
        uint64_t min_usec = writes ? WRITE_PATIENCE_MIN : PATIENCE_MIN_USEC;

        return MIN(MAX(lanes->answer_usec * 8, min_usec), PATIENCE_MAX_USEC);
}

/* Sets the limit and begins a window. */
static void set_limit(HttpLane *lane, size_t limit)
{
        lane->limit = limit;
        lane->sum_usec = 0;
        lane->n_answers = 0;
}

/* Sets the limit and measures nothing for a minute. */
static void close_lane(HttpLane *lane, size_t limit, uint64_t now_usec)
{
        set_limit(lane, limit);
        lane->closed_until_usec = now_usec + CLOSED_USEC;
}

/* Begins a measurement at this limit. */
static void measure_from(HttpLane *lane, size_t limit)
{
        set_limit(lane, MAX(limit, (size_t)1));
        lane->base_usec = 0;
        lane->closed_until_usec = 0;
}

/* Checks whether the answers per second did not rise by half of the share of the requests that were
 * added: from 2 to 4 at a time they must rise to 3/2, from 4 to 6 to 5/4. */
static bool is_no_gain(const HttpLane *lane, uint64_t usec)
{
        return lane->base_usec > 0 &&
               usec * (lane->base_limit + lane->limit) > lane->base_usec * 2 * lane->base_limit;
}

/* Ends a window in which the server needed usec for each answer, on average. */
static void judge(HttpLane *lane, size_t max, uint64_t usec, uint64_t now_usec)
{
        if (is_no_gain(lane, usec)) {
                close_lane(lane, lane->base_limit, now_usec);
        } else if (lane->limit >= max) {
                close_lane(lane, lane->limit, now_usec);
        } else {
                lane->base_limit = lane->limit;
                lane->base_usec = usec;
                set_limit(lane, MIN(lane->limit * 2, max));
        }
}

/* Adds an answer to the window, unless fewer requests than the limit were under way or the lane is
 * closed. The first answers after a change of the limit are not measured: their requests began
 * under the old limit, or made a connection. */
static void measure(HttpLane *lane, size_t max, uint64_t usec, size_t n_active, uint64_t now_usec)
{
        uint64_t began_usec = now_usec - MIN(usec, now_usec);

        if (n_active < lane->limit || now_usec < lane->closed_until_usec)
                return;
        if (lane->closed_until_usec > 0)
                measure_from(lane, lane->limit / 2);
        else if (began_usec > lane->last_usec + PAUSE_USEC)
                measure_from(lane, lane->base_usec > 0 ? lane->base_limit : lane->limit);
        lane->last_usec = now_usec;
        if (++lane->n_answers <= lane->limit)
                return;
        lane->sum_usec += usec / n_active;
        if (lane->n_answers == lane->limit * (WINDOW + 1))
                judge(lane, max, MAX(lane->sum_usec / (lane->limit * WINDOW), UINT64_C(1)),
                      now_usec);
}

/* Smooths the usual time of an answer to a read: a new one counts a quarter. A failed answer is not
 * measured. */
void http_lanes_note_answer(HttpLanes *lanes, bool writes, bool failed, uint64_t usec,
                            size_t n_active, uint64_t now_usec)
{
        if (!writes)
                lanes->answer_usec =
                        lanes->answer_usec ? (lanes->answer_usec * 3 + usec) / 4 : usec;
        if (!failed)
                measure(writes ? &lanes->writes : &lanes->reads, lanes->max, usec, n_active,
                        now_usec);
        else if (writes)
                close_lane(&lanes->writes, 1, now_usec);
}

void http_lanes_note_crowd(HttpLanes *lanes, size_t n_served, uint64_t now_usec)
{
        size_t limit = MAX(n_served, (size_t)1);

        close_lane(&lanes->reads, MIN(lanes->reads.limit, limit), now_usec);
        close_lane(&lanes->writes, MIN(lanes->writes.limit, limit), now_usec);
}
