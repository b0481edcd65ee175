/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/placing/task.h"

#include <errno.h>

#include "base/jitter.h"

#define PAUSE_USEC     (20 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (2 * USEC_PER_SEC)
#define TIMER_ACCURACY (1 * USEC_PER_MSEC)

ClaimTask *claim_task_free(ClaimTask *task)
{
        if (!task)
                return NULL;
        claim_search_stop(task);
        if (task->claiming.in_hand)
                claim_service_let_go(task->shared->service, &task->consumer);
        consumers_cancel(task->call);
        sd_event_source_disable_unref(task->timer);
        consumer_free(task->seen);
        consumer_free(task->moving.target);
        consumer_free(task->claiming.room);
        claim_move_done(&task->moving.move);
        claim_free(task->claim);
        free(task);
        return NULL;
}

int claim_task_outcome(int result)
{
        return result <= 0 ? result : CLAIM_QUEUE_E_PLACEMENT;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        ClaimTask *task = userdata;

        task->timer = sd_event_source_disable_unref(task->timer);
        claim_search_stop(task);
        claim_task_run(task);
        return 0;
}

bool claim_task_run_after(ClaimTask *task, uint64_t pause_usec)
{
        task->seen = consumer_free(task->seen);
        task->moving.target = consumer_free(task->moving.target);
        task->claiming.room = consumer_free(task->claiming.room);
        task->claiming.is_there = false;
        return sd_event_add_time_relative(task->shared->event, &task->timer, CLOCK_MONOTONIC,
                                          pause_usec, TIMER_ACCURACY, on_timer, task) >= 0;
}

bool claim_task_retry(ClaimTask *task)
{
        uint64_t pause = PAUSE_USEC << MIN(task->n_attempts, 6U);

        if (++task->n_attempts >= CLAIM_TASK_ATTEMPTS_MAX)
                return false;
        pause = jitter_between(pause / 2, MIN(pause, PAUSE_MAX_USEC), jitter_random());
        return claim_task_run_after(task, pause);
}

Claims *claim_task_get_claims(ClaimTask *task, Error *reterr)
{
        Claims *claims = claim_service_get(task->shared->service);

        if (!claims)
                error_setf(reterr, EIO, "Claims cannot be used: %s",
                           claim_service_error(task->shared->service)->text);
        return claims;
}

Claims *claim_task_open_claims(ClaimTask *task)
{
        Error error = ERROR_NULL;
        Claims *claims = claim_task_get_claims(task, &error);

        if (!claims)
                claim_task_end(task, -EIO, &error);
        return claims;
}

void claim_task_end(ClaimTask *task, int r, const Error *error)
{
        Error words = *error;

        task->done(task, r, NULL, false, &words);
}

void claim_task_run(ClaimTask *task)
{
        switch (task->kind) {
        case CLAIM_TASK_CLAIM:
                claim_claiming_run(task);
                return;
        case CLAIM_TASK_MOVE:
                claim_moving_run(task);
                return;
        case CLAIM_TASK_WRITE:
        case CLAIM_TASK_REMOVAL:
        default:
                claim_settling_run(task);
        }
}

void claim_task_read(ClaimTask *task, ConsumersDone done)
{
        Error error = ERROR_NULL;
        int r = 0;

        if (!task->session) {
                error_setf(&error, EAGAIN, "Placement was not reached yet");
                claim_task_end(task, CLAIM_QUEUE_E_PLACEMENT, &error);
                return;
        }
        r = consumers_read(&task->call, task->session, &task->consumer, done, task, &error);
        if (r < 0)
                claim_task_end(task, r, &error);
}
