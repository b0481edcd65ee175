/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/placing/task.h"

#include <errno.h>

#include "base/jitter.h"

#define PAUSE_USEC     (20 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (2 * USEC_PER_SEC)
#define TIMER_ACCURACY (1 * USEC_PER_MSEC)

static void stop_search(ClaimTask *task)
{
        if (task->claiming.searches)
                (void)task->shared->config.search(task, true, task->shared->config.userdata);
        task->claiming.searches = false;
}

ClaimTask *claim_task_free(ClaimTask *task)
{
        if (!task)
                return NULL;
        stop_search(task);
        if (task->claiming.in_hand)
                claim_service_let_go(task->shared->config.service, &task->consumer);
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
        stop_search(task);
        task->run(task);
        return 0;
}

bool claim_task_run_after(ClaimTask *task, uint64_t pause_usec)
{
        task->seen = consumer_free(task->seen);
        task->moving.target = consumer_free(task->moving.target);
        task->claiming.room = consumer_free(task->claiming.room);
        task->claiming.is_there = false;
        return sd_event_add_time_relative(task->shared->config.event, &task->timer, CLOCK_MONOTONIC,
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

Claims *claim_task_open_claims(ClaimTask *task)
{
        Error error = ERROR_NULL;
        Claims *claims = claim_service_require(task->shared->config.service, &error);

        if (!claims)
                claim_task_end(task, -EIO, &error);
        return claims;
}

void claim_task_end(ClaimTask *task, int r, const Error *error)
{
        Error words = *error;

        task->done(task, r, NULL, false, &words);
}

bool claim_task_has_written(ClaimTask *task, int result, const Error *error)
{
        task->call = NULL;
        if (result != REPORT_DONE && (result != REPORT_E_CONFLICT || !claim_task_retry(task)))
                claim_task_end(task, claim_task_outcome(result), error);
        return result == REPORT_DONE;
}

static void on_read(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        const HostView *view;
        Error words = ERROR_NULL;
        Claims *claims;
        int r;

        task->call = NULL;
        if (result != REPORT_DONE) {
                if (task->away && report_outcome_is_away(result))
                        task->away(task, error);
                else
                        claim_task_end(task, claim_task_outcome(result), error);
                return;
        }
        *task->read = TAKE_PTR(answer->consumer);
        claims = claim_service_require(task->shared->config.service, &words);
        r = claims ? claims_host(claims, &view, &words) : -EIO;
        if (r == 0)
                r = task->next(task, claims, view, &words);
        /* Below: the task may be gone. */
        if (r != 0)
                claim_task_end(task, r, &words);
}

void claim_task_read(ClaimTask *task, const Uuid *consumer, Consumer **ret, ClaimTaskNext next)
{
        Error error = ERROR_NULL;
        int r;

        if (!task->session) {
                error_setf(&error, EAGAIN, "Placement was not reached yet");
                claim_task_end(task, CLAIM_QUEUE_E_PLACEMENT, &error);
                return;
        }
        task->read = ret;
        task->next = next;
        r = consumers_read(&task->call, task->session, consumer, on_read, task, &error);
        if (r < 0)
                claim_task_end(task, r, &error);
}
