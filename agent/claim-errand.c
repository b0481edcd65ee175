/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is owed to Placement: debts, departures and moves. See claim-task.h. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/claim-share.h"
#include "agent/claim-task.h"
#include "base/log.h"

/* Done: r is what the claim database says to it. */
static void end(ClaimTask *task, int r, const Error *error)
{
        Error words = *error;

        task->done(task, r, NULL, false, &words);
}

static Claims *get_claims(ClaimTask *task, Error *reterr)
{
        Claims *claims = claim_service_get(task->counter->service);

        if (!claims)
                error_setf(reterr, EIO, "Claims cannot be used: %s",
                           claim_service_error(task->counter->service)->text);
        return claims;
}

/* Debts. */

/* CLAIM_E_NOT_FOUND: the claim ended meanwhile. */
static int mark_debt(ClaimTask *task, ClaimStanding standing, Error *reterr)
{
        Claims *claims = get_claims(task, reterr);
        int r = claims ? claims_set_standing(claims, task->claim->id, task->claim->standing,
                                             standing, reterr)
                       : -EIO;

        if (r == 0)
                task->claim->standing = standing;
        return r;
}

static void settle_debt(ClaimTask *task, ClaimStanding standing)
{
        Error error = ERROR_NULL;
        int r = mark_debt(task, standing, &error);

        end(task, r == CLAIM_E_NOT_FOUND ? 0 : r, &error);
}

/* Somebody placed it, or a write of ours arrived that went without an answer, or with a 409: a
 * connection that breaks makes curl send it twice. */
static void settle_placed_debt(ClaimTask *task)
{
        settle_debt(task, task->claim->standing == CLAIM_STANDING_SENT &&
                                          claim_share_is(task->claim, task->seen)
                                  ? CLAIM_STANDING_WRITTEN
                                  : CLAIM_STANDING_NONE);
}

static void on_debt_paid(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;

        task->call = NULL;
        if (result == REPORT_DONE)
                settle_debt(task, CLAIM_STANDING_WRITTEN);
        else if (result != REPORT_E_CONFLICT || !claim_task_retry(task))
                claim_task_fail(task, claim_task_outcome(result), error);
}

/* From here on the end of the claim leaves a departure. */
static int pay_debt(ClaimTask *task, Error *reterr)
{
        int r = mark_debt(task, CLAIM_STANDING_SENT, reterr);

        if (r == CLAIM_E_NOT_FOUND) {
                end(task, 0, reterr);
                return 0;
        }
        if (r != 0)
                return r;
        r = claim_share_add(task->claim, task->seen);
        if (r >= 0)
                r = claim_task_name(task->seen, task->claim->project_id, task->claim->user_id,
                                    task->claim->consumer_type);
        return r < 0 ? r
                     : consumers_write(&task->call, task->session, task->seen, NULL, on_debt_paid,
                                       task, reterr);
}

/* Departures. */

static void end_departure(ClaimTask *task)
{
        Error error = ERROR_NULL;
        Claims *claims = get_claims(task, &error);

        end(task, claims ? claims_end_departure(claims, task->departure.id, &error) : -EIO, &error);
}

static void on_departed(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;

        task->call = NULL;
        if (result == REPORT_DONE)
                end_departure(task);
        else if (result != REPORT_E_CONFLICT || !claim_task_retry(task))
                claim_task_fail(task, claim_task_outcome(result), error);
}

/* Another claim of the consumer has what it holds. One that is owed has not: it is written behind
 * this. */
static bool has_heir(Claims *claims, const Uuid *consumer)
{
        for (int target = 0; target < 2; target++) {
                _cleanup_(claim_freep) Claim *claim = NULL;

                if (claims_find(claims, consumer, target, &claim, NULL) == 0 &&
                    claim->standing != CLAIM_STANDING_OWED)
                        return true;
        }
        return false;
}

static int depart(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr)
{
        /* Not again after a conflict. */
        if (!task->claim)
                (void)claims_get(claims, task->departure.claim, &task->claim, NULL);
        if (has_heir(claims, &task->consumer) ||
            !claim_share_remove(view, claims_node(claims), task->claim, task->seen)) {
                end_departure(task);
                return 0;
        }
        log_debug("Removing what consumer %s held of this host.", task->consumer.text);
        return consumers_write(&task->call, task->session, task->seen, NULL, on_departed, task,
                               reterr);
}

/* Moves. */

static void end_move(ClaimTask *task, bool done, int result, const Error *error)
{
        Error words = *error;
        Claims *claims = get_claims(task, &words);
        Claim *claim = NULL;
        int r = claims ? claims_end_handover(claims, &task->handover, done, &words) : -EIO;

        if (r == 0)
                r = result;
        if (r == 0 && claims_find(claims, &task->handover.to, false, &claim, NULL) == 0)
                task->claim = claim;
        task->done(task, r, r == 0 ? claim : NULL, done && r == 0, &words);
}

static void on_moved(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;

        task->call = NULL;
        if (result == REPORT_DONE)
                end_move(task, true, 0, error);
        else if (answer->status == 0 || answer->status >= 500)
                claim_task_fail(task, claim_task_outcome(result), error); /* repaired later */
        else if (result != REPORT_E_CONFLICT || !claim_task_retry(task))
                end_move(task, false, claim_task_outcome(result), error);
}

/* All that one holds is added to what the other holds elsewhere. */
static int move_all(ClaimTask *task, Error *reterr)
{
        _cleanup_(allocations_freep) Allocations *both = NULL;
        Consumer *from = task->seen, *to = task->target;
        int r = allocations_new(&both);

        for (size_t i = 0; r >= 0 && i < from->n_allocations; i++)
                for (size_t j = 0; r >= 0 && j < from->allocations[i].resources.n_items; j++)
                        r = consumer_add(to, &from->allocations[i].provider,
                                         from->allocations[i].resources.items[j].resource_class,
                                         from->allocations[i].resources.items[j].amount);
        if (r >= 0)
                r = claim_task_name(to, from->project_id, from->user_id, task->handover.to_type);
        consumer_clear(from);
        if (r >= 0 && (r = allocations_add(both, from)) >= 0)
                task->seen = NULL;
        if (r >= 0 && (r = allocations_add(both, to)) >= 0)
                task->target = NULL;
        return r < 0 ? r : consumers_move(&task->call, task->session, both, on_moved, task, reterr);
}

static void on_target_read(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        Error words = ERROR_NULL;
        Claims *claims = get_claims(task, &words);
        const HostView *view;
        bool left, there;
        int r;

        task->call = NULL;
        if (result != REPORT_DONE) {
                claim_task_fail(task, claim_task_outcome(result), error);
                return;
        }
        r = claims ? claims_host(claims, &view, &words) : -EIO;
        if (r != 0) {
                claim_task_fail(task, r, &words);
                return;
        }
        task->target = TAKE_PTR(answer->consumer);
        left = claim_share_has(view, claims_node(claims), task->seen);
        there = claim_share_has(view, claims_node(claims), task->target);
        if (left && there) {
                error_setf(&words, EEXIST, "Consumer %s holds something of this host already",
                           task->handover.to.text);
                end_move(task, false, CLAIM_E_CONFLICT, &words);
        } else if (!left) {
                /* Done by somebody else, or Placement knows of neither. */
                end_move(task, !task->repairs || there, 0, &words);
        } else if (task->repairs) {
                end_move(task, false, 0, &words);
        } else if (task->counter->mode == CLAIM_MODE_VERIFY) {
                error_setf(&words, ENOENT,
                           "The allocations of consumer %s were not moved yet, and [agent] "
                           "claim_mode is verify",
                           task->handover.from.text);
                end_move(task, false, CLAIM_DESK_E_NOT_PLACED, &words);
        } else {
                r = move_all(task, &words);
                if (r < 0)
                        end_move(task, false, r, &words);
        }
}

static int read_target(ClaimTask *task, Error *reterr)
{
        return consumers_read(&task->call, task->session, &task->handover.to, on_target_read, task,
                              reterr);
}

/* All. */

static void on_read(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        Error words = ERROR_NULL;
        Claims *claims = get_claims(task, &words);
        const HostView *view;
        int r;

        task->call = NULL;
        if (result != REPORT_DONE) {
                claim_task_fail(task, claim_task_outcome(result), error);
                return;
        }
        task->seen = TAKE_PTR(answer->consumer);
        r = claims ? claims_host(claims, &view, &words) : -EIO;
        if (r == 0 && task->kind == CLAIM_TASK_MOVE) {
                r = read_target(task, &words);
        } else if (r == 0 && task->kind == CLAIM_TASK_DEPARTURE) {
                /* It ends the task itself when there is nothing to send. */
                r = depart(task, claims, view, &words);
                if (r == 0)
                        return;
        } else if (r == 0 && claim_share_has(view, claims_node(claims), task->seen)) {
                settle_placed_debt(task);
                return;
        } else if (r == 0) {
                r = pay_debt(task, &words);
        }
        if (r != 0)
                claim_task_fail(task, r, &words);
}

void claim_errand_run(ClaimTask *task)
{
        Error error = ERROR_NULL;
        int r;

        if (task->kind == CLAIM_TASK_MOVE && !task->counter->with_placement) {
                end_move(task, true, 0, &error);
                return;
        }
        if (!task->session) {
                error_setf(&error, EAGAIN, "Placement was not spoken to yet");
                claim_task_fail(task, CLAIM_DESK_E_PLACEMENT, &error);
                return;
        }
        r = consumers_read(&task->call, task->session, &task->consumer, on_read, task, &error);
        if (r < 0)
                claim_task_fail(task, r, &error);
}
