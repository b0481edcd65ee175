/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http-lanes.h"

#include <assert.h>

#define PATIENCE_MIN_USEC (200 * USEC_PER_MSEC)
#define PATIENCE_MAX_USEC (5 * USEC_PER_SEC)
#define CLOSED_USEC       (60 * USEC_PER_SEC)

void http_lanes_init(HttpLanes *lanes, size_t max)
{
        *lanes = (HttpLanes){ .max = max, .n_proven = 1 };
}

void http_lanes_forget(HttpLanes *lanes)
{
        lanes->n_proven = 1;
        lanes->closed_until_usec = 0;
        lanes->answer_usec = 0;
}

HttpLane http_lanes_take(HttpLanes *lanes, size_t n_active, bool repeatable, uint64_t now_usec)
{
        if (n_active < lanes->n_proven)
                return HTTP_LANE_PROVEN;
        if (!repeatable || n_active >= lanes->max || now_usec < lanes->closed_until_usec)
                return HTTP_LANE_NONE;
        lanes->n_trials++;
        return HTTP_LANE_TRIAL;
}

uint64_t http_lanes_get_patience_usec(const HttpLanes *lanes)
{
        return MIN(MAX(lanes->answer_usec * 4, PATIENCE_MIN_USEC), PATIENCE_MAX_USEC);
}

void http_lanes_note_answer(HttpLanes *lanes, uint64_t usec)
{
        lanes->answer_usec = lanes->answer_usec ? (lanes->answer_usec * 3 + usec) / 4 : usec;
}

void http_lanes_end_trial(HttpLanes *lanes, bool answered_on_its_own)
{
        assert(lanes->n_trials > 0);
        lanes->n_trials--;
        if (answered_on_its_own && lanes->n_proven < lanes->max)
                lanes->n_proven++;
}

void http_lanes_stall_trial(HttpLanes *lanes, uint64_t now_usec)
{
        http_lanes_end_trial(lanes, false);
        lanes->closed_until_usec = now_usec + CLOSED_USEC;
}
