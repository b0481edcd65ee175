/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is owed to Placement: debts, departures and moves. See agent/placing/task.h. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/guests/claim-share.h"
#include "agent/placing/task.h"
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

/* told NULL: what is known of it stays. CLAIM_E_NOT_FOUND: the claim ended meanwhile. */
static int mark_debt(ClaimTask *task, ClaimStanding standing, const ClaimTold *told, Error *reterr)
{
        Claims *claims = get_claims(task, reterr);
        int r = claims ? claims_set_standing(claims, task->claim->id, task->claim->standing,
                                             standing, told, reterr)
                       : -EIO;

        if (r == 0)
                task->claim->standing = standing;
        return r;
}

static void settle_debt(ClaimTask *task, ClaimStanding standing, const ClaimTold *told)
{
        Error error = ERROR_NULL;
        int r = mark_debt(task, standing, told, &error);

        end(task, r == CLAIM_E_NOT_FOUND ? 0 : r, &error);
}

static void on_debt_paid(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;

        task->call = NULL;
        if (result == REPORT_DONE)
                settle_debt(task, CLAIM_STANDING_WRITTEN, NULL);
        else if (result != REPORT_E_CONFLICT || !claim_task_retry(task))
                claim_task_fail(task, claim_task_outcome(result), error);
}

/* From here on the end of the claim leaves a departure. */
static int pay_debt(ClaimTask *task, const HostView *view, Error *reterr)
{
        ClaimTold told = claim_share_told(view, task->seen, true);
        int r = mark_debt(task, CLAIM_STANDING_SENT, &told, reterr);

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

/* Evacuated: its consumer holds something elsewhere, and its guest, which was here, does not run
 * here. */
static bool is_gone(const ClaimTask *task)
{
        const HostFacts *facts = claim_service_facts(task->counter->service);
        const HostDomain *domain =
                facts ? host_facts_find_domain(facts, &task->claim->consumer) : NULL;

        return task->claim->state == CLAIM_STATE_CONFIRMED && task->seen->n_allocations > 0 &&
               !(domain && domain->running);
}

/* Ends the task itself when there is nothing to send. */
static int go_on_with_debt(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr)
{
        ClaimTold told = claim_share_told(view, task->seen, false);

        switch (claim_course_of_debt(task->claim->standing,
                                     claim_share_has(view, claims_node(claims), task->seen),
                                     claim_share_is(task->claim, task->seen), is_gone(task))) {
        case CLAIM_DEBT_PAY:
                return pay_debt(task, view, reterr);
        case CLAIM_DEBT_PAID:
                settle_debt(task, CLAIM_STANDING_WRITTEN, &told);
                break;
        case CLAIM_DEBT_PLACED:
                /* One that was made of a guest is completed by what was placed once that runs. */
                settle_debt(task, CLAIM_STANDING_NONE,
                            strcmp(task->claim->consumer_type, CLAIM_TYPE_GUEST) == 0 ? NULL
                                                                                      : &told);
                break;
        }
        return 0;
}

/* Departures. */

static void end_departure(ClaimTask *task)
{
        Error error = ERROR_NULL;
        Claims *claims = get_claims(task, &error);

        end(task, claims ? claims_end_departure(claims, task->departure.id, &error) : -EIO, &error);
}

/* What is there now is gone; a write that was given up may arrive yet. */
static void on_departed(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        Error words = ERROR_NULL;
        Claims *claims;

        task->call = NULL;
        if (result != REPORT_DONE) {
                if (result != REPORT_E_CONFLICT || !claim_task_retry(task))
                        claim_task_fail(task, claim_task_outcome(result), error);
                return;
        }
        claims = get_claims(task, &words);
        if (claims && claim_task_departure(task, claims, &task->departure, task->claim, task->late,
                                           false) == CLAIM_DEPARTURE_WAIT)
                end(task, 0, &words);
        else
                end_departure(task);
}

/* Another claim of the consumer has what it holds. One that is owed (ret_owed) has not, but gets
 * it.
 */
static bool has_heir(Claims *claims, const Uuid *consumer, Claim **ret_owed)
{
        for (int target = 0; target < 2; target++) {
                _cleanup_(claim_freep) Claim *claim = NULL;

                if (claims_find(claims, consumer, target, &claim, NULL) != 0)
                        continue;
                if (claim->standing != CLAIM_STANDING_OWED)
                        return true;
                if (!*ret_owed)
                        *ret_owed = TAKE_PTR(claim);
        }
        return false;
}

/* What an owed claim (NULL: none) holds is written in its place by the same request: a guest that
 * lives is not without its share in between. The departure is inherited then. */
static int remove_share(ClaimTask *task, Claims *claims, Claim **owed, Error *reterr)
{
        const HostView *view;
        int r = claims_host(claims, &view, reterr);

        if (r != 0)
                return r;
        (void)claim_share_remove(view, claims_node(claims), task->claim, task->seen);
        if (*owed) {
                claim_free(task->claim);
                task->claim = TAKE_PTR(*owed);
                task->kind = CLAIM_TASK_DEBT;
                return pay_debt(task, view, reterr);
        }
        log_debug("Removing what consumer %s held of this host.", task->consumer.text);
        return consumers_write(&task->call, task->session, task->seen, NULL, on_departed, task,
                               reterr);
}

/* Ends the task itself when there is nothing to send. */
static int depart(ClaimTask *task, Claims *claims, Error *reterr)
{
        _cleanup_(claim_freep) Claim *owed = NULL;

        /* Not again after a conflict. */
        if (!task->claim)
                (void)claims_get(claims, task->departure.claim, &task->claim, NULL);
        switch (claim_task_departure(task, claims, &task->departure, task->claim, task->late,
                                     has_heir(claims, &task->consumer, &owed))) {
        case CLAIM_DEPARTURE_REMOVE:
                return remove_share(task, claims, &owed, reterr);
        case CLAIM_DEPARTURE_KEEP:
                log_notice("Consumer %s was placed here again before its release was told to "
                           "Placement: that stays.",
                           task->consumer.text);
                end_departure(task);
                break;
        case CLAIM_DEPARTURE_END:
                end_departure(task);
                break;
        case CLAIM_DEPARTURE_WAIT:
                end(task, 0, reterr);
                break;
        }
        return 0;
}

/* Moves. */

/* told NULL: it was not done. */
static void end_move(ClaimTask *task, const ClaimTold *told, bool ours, int result,
                     const Error *error)
{
        Error words = *error;
        Claims *claims = get_claims(task, &words);
        Claim *claim = NULL;
        int r = claims ? claims_end_handover(claims, &task->handover, told, ours, &words) : -EIO;

        if (r == 0)
                r = result;
        if (r == 0 && claims_find(claims, &task->handover.to, false, &claim, NULL) == 0) {
                claim_free(task->claim);
                task->claim = claim;
        }
        task->done(task, r, r == 0 ? claim : NULL, told && r == 0, &words);
}

static void on_moved(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        ClaimWriteCourse course = claim_course_of_write(result, answer->status);

        task->call = NULL;
        if (course == CLAIM_WRITE_DONE)
                end_move(task, &task->after, true, 0, error);
        else if (course == CLAIM_WRITE_UNKNOWN)
                claim_task_fail(task, claim_task_outcome(result), error); /* repaired later */
        else if (course != CLAIM_WRITE_RACED || !claim_task_retry(task))
                end_move(task, NULL, false, claim_task_outcome(result), error);
}

/* All that one holds is added to what the other holds elsewhere. */
static int move_all(ClaimTask *task, const HostView *view, Error *reterr)
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
        task->after = claim_share_told(view, to, true);
        consumer_clear(from);
        if (r >= 0 && (r = allocations_add(both, from)) >= 0)
                task->seen = NULL;
        if (r >= 0 && (r = allocations_add(both, to)) >= 0)
                task->target = NULL;
        return r < 0 ? r : consumers_move(&task->call, task->session, both, on_moved, task, reterr);
}

static void end_fence(ClaimTask *task)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error error = ERROR_NULL;
        Claims *claims = get_claims(task, &error);

        if (claims && claims_find(claims, &task->handover.from, false, &claim, NULL) == 0)
                (void)claims_set_standing(claims, claim->id, claim->standing, claim->standing,
                                          &task->after, NULL);
        end_move(task, NULL, false, 0, &error);
}

static void on_fenced(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;

        task->call = NULL;
        if (result == REPORT_DONE)
                end_fence(task);
        else if (result != REPORT_E_CONFLICT || !claim_task_retry(task))
                claim_task_fail(task, claim_task_outcome(result), error);
}

/* The request that was given up may arrive yet: the generation that it names is made stale. */
static int fence_move(ClaimTask *task, const HostView *view, Error *reterr)
{
        if (claim_task_name(task->seen, NULL, NULL, NULL) < 0)
                return error_oom(reterr);
        task->after = claim_share_told(view, task->seen, true);
        return consumers_write(&task->call, task->session, task->seen, NULL, on_fenced, task,
                               reterr);
}

static void refuse_move(ClaimTask *task, ClaimMoveCourse course)
{
        Error words = ERROR_NULL;

        if (course == CLAIM_MOVE_TAKEN)
                error_setf(&words, EEXIST, "Consumer %s holds something of this host already",
                           task->handover.to.text);
        else
                error_setf(&words, ENOENT,
                           "The allocations of consumer %s were not moved yet, and %s",
                           task->handover.from.text,
                           claim_course_refuses(task->counter->mode, task->counter->nova));
        end_move(task, NULL, false,
                 course == CLAIM_MOVE_TAKEN ? CLAIM_E_CONFLICT : CLAIM_DESK_E_NOT_PLACED, &words);
}

/* Both consumers were read. */
static void go_on_with_move(ClaimTask *task, Claims *claims, const HostView *view)
{
        const ClaimTold told = claim_share_told(view, task->target, false);
        ClaimMoveState state = {
                .left = claim_share_has(view, claims_node(claims), task->seen),
                .there = claim_share_has(view, claims_node(claims), task->target),
                .sent = task->repairs || task->n_attempts > 0,
                .repairs = task->repairs,
                .refused = claim_course_refuses(task->counter->mode, task->counter->nova),
        };
        ClaimMoveCourse course = claim_course_of_move(&state);
        Error words = ERROR_NULL;
        int r = 0;

        switch (course) {
        case CLAIM_MOVE_SEND:
                r = move_all(task, view, &words);
                break;
        case CLAIM_MOVE_FENCE:
                r = fence_move(task, view, &words);
                break;
        case CLAIM_MOVE_DONE:
        case CLAIM_MOVE_ARRIVED:
                end_move(task, &told, course == CLAIM_MOVE_ARRIVED, 0, &words);
                break;
        case CLAIM_MOVE_GIVE_UP:
                end_move(task, NULL, false, 0, &words);
                break;
        case CLAIM_MOVE_TAKEN:
        case CLAIM_MOVE_NOT_PLACED:
                refuse_move(task, course);
                break;
        }
        if (r < 0 && task->repairs)
                claim_task_fail(task, r, &words);
        else if (r < 0)
                end_move(task, NULL, false, r, &words);
}

static void on_target_read(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
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
        task->target = TAKE_PTR(answer->consumer);
        r = claims ? claims_host(claims, &view, &words) : -EIO;
        if (r != 0)
                claim_task_fail(task, r, &words);
        else
                go_on_with_move(task, claims, view);
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
        if (r == 0 && task->kind == CLAIM_TASK_MOVE)
                r = read_target(task, &words);
        else if (r == 0 && task->kind == CLAIM_TASK_DEPARTURE)
                r = depart(task, claims, &words);
        else if (r == 0)
                r = go_on_with_debt(task, claims, view, &words);
        /* Below: the task may be gone. */
        if (r != 0)
                claim_task_fail(task, r, &words);
}

void claim_errand_run(ClaimTask *task)
{
        Error error = ERROR_NULL;
        int r;

        if (task->kind == CLAIM_TASK_MOVE && !task->counter->with_placement) {
                end_move(task, &task->after, false, 0, &error);
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
