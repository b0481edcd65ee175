/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves a claim, with all allocations of its consumer (the source), to another consumer (the
 * target): one POST /allocations. The move is stored in the database after both consumers were
 * read, and before it is sent. If Placement rejects it, the move ends with an error. If the result
 * is unknown, the caller gets an error and the move stays stored. A later round of settling then
 * ends it, without a caller. If the move has arrived in Placement, the claim follows. If not, the
 * move is given up: a write raises the generation of the source, so that a late request fails.
 * There is no such write without the permission to write, if the source has nothing here, or if
 * both consumers have allocations here. A move that was done before succeeds. Any other move fails
 * if the source has no claim or a pending one, if its claim ends before the request, or if the
 * target has a claim. It fails beside another pending move of the same source or target. It fails
 * if both consumers have allocations on this host. If only the source has some, it fails if the
 * agent must not write them, or while a pending write of the claim will replace them. If the target
 * got a claim since the move began, the move fails, the claim stays with the source, and the
 * allocations stay where they are. If another writer moved the allocations, or if neither consumer
 * has any while a caller waits, only the claim moves. Without Placement, only the claim moves too.
 * The allocations that the target has elsewhere stay. */

#include <errno.h>
#include <string.h>

#include "agent/guests/claim-share.h"
#include "agent/placing/task.h"
#include "base/log.h"

/* Returns the consumer type of the target: "INSTANCE" if the claim of the source is of a migration,
 * else "MIGRATION". */
static const char *type_after(Claims *claims, const Uuid *from)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_find(claims, from, false, &claim, NULL) == 0 &&
            strcmp(claim->consumer_type, "MIGRATION") == 0)
                return "INSTANCE";
        return "MIGRATION";
}

/* Returns CLAIM_E_NOT_FOUND with words if the claim of the move has ended. Its resize target can be
 * the first claim of the source now. */
static int check_claim(Claims *claims, const ClaimMove *move, Error *reterr)
{
        _cleanup_(claim_freep) Claim *first = NULL;
        int r = claims_find(claims, &move->from, false, &first, reterr);

        if (r == CLAIM_E_NOT_FOUND || (r == 0 && first->id != move->claim)) {
                error_setf(reterr, ENOENT, "The claim of consumer %s has ended", move->from.text);
                return CLAIM_E_NOT_FOUND;
        }
        return r;
}

/* Stores the move in the database, unless it is there. Returns the results of claims_begin_move(),
 * or of check_claim(). */
static int begin(ClaimTask *task, Claims *claims, Error *reterr)
{
        ClaimMove *wanted = &task->moving.move, begun = { 0 };
        int r = wanted->id == 0 ? check_claim(claims, wanted, reterr) : 0;

        if (r != 0 || wanted->id != 0)
                return r;
        r = claims_begin_move(claims, &wanted->from, &wanted->to,
                              wanted->to_type ? wanted->to_type : type_after(claims, &wanted->from),
                              &begun, reterr);
        if (r != 0)
                return r;
        begun.by = wanted->by;
        claim_move_done(wanted);
        *wanted = begun;
        return 0;
}

/* Ends the move in the database, and the task. A move that was not sent is stored and ended in one
 * transaction, because a stored move counts as sent when it is settled. reported NULL: the move was
 * not done, so the claim stays with the source. It also stays if the target has got a claim since
 * the move began. ours: the agent's request moved the allocations. A result that is not 0 is passed
 * on to the caller. Without a caller it is logged, because nothing is left to settle. If the
 * database fails, a stored move stays, and the task fails with that error. */
static void end_move(ClaimTask *task, const ClaimReported *reported, bool ours, int result,
                     const Error *error)
{
        Error words = *error;
        Claims *claims = claim_service_require(task->queue->config.service, &words);
        Claim *claim = NULL;
        int r = claims ? claims_begin_group(claims, &words) : -EIO;

        if (r == 0) {
                r = begin(task, claims, &words);
                if (r == 0)
                        r = claims_end_move(claims, &task->moving.move, reported, ours, &words);
                r = claims_end_group(claims, r, &words);
        }
        if (r == -EEXIST) {
                result = CLAIM_E_CONFLICT;
                error_setf(&words, EEXIST, "Consumer %s has got a claim of its own",
                           task->moving.move.to.text);
                r = claims_end_move(claims, &task->moving.move, NULL, false, &words);
        }
        if (r == 0 && result != 0 && task->moving.repairs)
                log_event(LOG_NOTICE, NULL,
                          LOG_FIELDS(LOG_FIELD_CONSUMER, task->moving.move.from.text),
                          "Gave up the move of the claim of %s: %s.", task->moving.move.from.text,
                          words.text);
        else if (r == 0)
                r = result;
        if (r == 0 && claims_find(claims, &task->moving.move.to, false, &claim, NULL) == 0) {
                claim_free(task->claim);
                task->claim = claim;
        }
        claim_task_end(task, r, r == 0 ? claim : NULL, reported && r == 0, &words);
}

/* Evaluates the result of the move. If it is unknown, the move stays in the database, and is
 * settled later. After a conflict the task runs again. After the last attempt the result is
 * unknown, because Placement can have done a move that it answered with a conflict. */
static void on_moved(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        ReportWritten written = report_outcome_of_write(result, answer->status);

        task->call = NULL;
        if (written == REPORT_WRITTEN)
                end_move(task, &task->moving.after, true, 0, error);
        else if (written != REPORT_WRITTEN_UNKNOWN && written != REPORT_WRITTEN_RACED)
                end_move(task, NULL, false, claim_task_outcome(result), error);
        else if (written == REPORT_WRITTEN_UNKNOWN || !claim_task_retry(task))
                claim_task_fail(task, claim_task_outcome(result), error); /* settled later */
}

/* Sends the move: adds all allocations of the source to those that the target has elsewhere, and
 * clears the source. One request replaces the allocations of both consumers, with both
 * generations. */
static int move_all(ClaimTask *task, const HostView *view, Error *reterr)
{
        _cleanup_(allocations_freep) Allocations *both = NULL;
        Consumer *from = task->seen, *to = task->moving.target;
        int r = allocations_new(&both);

        if (r >= 0)
                r = consumer_add_all(to, from->allocations, from->n_allocations);
        if (r >= 0)
                r = claim_share_name(to, from->project_id, from->user_id,
                                     task->moving.move.to_type);
        task->moving.after = claim_share_reported(view, to, true);
        consumer_clear(from);
        if (r >= 0 && (r = allocations_add(both, from)) >= 0)
                task->seen = NULL;
        if (r >= 0 && (r = allocations_add(both, to)) >= 0)
                task->moving.target = NULL;
        return r < 0 ? r : consumers_move(&task->call, task->session, both, on_moved, task, reterr);
}

/* Ends a move that was not done, after the generation of the source was raised, and stores the new
 * generation with the claim. */
static void end_fence(ClaimTask *task)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error error = ERROR_NULL;
        Claims *claims = claim_service_require(task->queue->config.service, &error);

        if (claims && claims_find(claims, &task->moving.move.from, false, &claim, NULL) == 0)
                (void)claims_set_write_state(claims, claim->id, claim->write_state,
                                             claim->write_state, &task->moving.after, NULL);
        end_move(task, NULL, false, 0, &error);
}

static void on_fenced(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        if (claim_task_has_written(userdata, result, error))
                end_fence(userdata);
}

/* Writes the source unchanged, which increases its generation. A late request names the old
 * generation and fails. */
static int fence_move(ClaimTask *task, const HostView *view, Error *reterr)
{
        if (claim_share_name(task->seen, NULL, NULL, NULL) < 0)
                return error_oom(reterr);
        task->moving.after = claim_share_reported(view, task->seen, true);
        return consumers_write(&task->call, task->session, task->seen, NULL, on_fenced, task,
                               reterr);
}

/* Returns true if the claim of the source has a pending write. The allocations of the source can
 * then be those of an earlier claim or of an earlier request, and must not become the target's. */
static bool has_pending_write(Claims *claims, const Uuid *from)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        return claims_find(claims, from, false, &claim, NULL) == 0 &&
               (claim->write_state == CLAIM_WRITE_UNSENT || claim->write_state == CLAIM_WRITE_SENT);
}

/* Ends a move as not done: with CLAIM_E_CONFLICT for CLAIM_MOVE_TAKEN, else with
 * CLAIM_QUEUE_E_NOT_PLACED. unwritten: a pending write of the claim is the reason. */
static void refuse_move(ClaimTask *task, ClaimMoveDecision decision, bool unwritten)
{
        Error words = ERROR_NULL;

        if (decision == CLAIM_MOVE_TAKEN)
                error_setf(&words, EEXIST, "Consumer %s already has resources of this host",
                           task->moving.move.to.text);
        else
                error_setf(&words, ENOENT,
                           "The allocations of consumer %s were not moved yet, and %s",
                           task->moving.move.from.text,
                           unwritten ? "the claim's own allocations are not written yet"
                                     : claim_decide_refuses(task->queue->mode, task->queue->nova));
        end_move(task, NULL, false,
                 decision == CLAIM_MOVE_TAKEN ? CLAIM_E_CONFLICT : CLAIM_QUEUE_E_NOT_PLACED,
                 &words);
}

/* Continues after both consumers were read. Stores the move only before its request. If a request
 * cannot be sent, a move with a caller ends. A move without a caller stays in the database for the
 * next round. */
static int go_on_with_move(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr)
{
        const ClaimReported reported = claim_share_reported(view, task->moving.target, false);
        ClaimMoveState state = {
                .left = claim_share_has(view, claims_node(claims), task->seen),
                .there = claim_share_has(view, claims_node(claims), task->moving.target),
                .sent = task->moving.repairs || task->n_attempts > 0,
                .repairs = task->moving.repairs,
                .refused = claim_decide_refuses(task->queue->mode, task->queue->nova),
                .unwritten = has_pending_write(claims, &task->moving.move.from),
        };
        ClaimMoveDecision decision = claim_decide_move(&state);
        int r = 0;

        switch (decision) {
        case CLAIM_MOVE_SEND:
                r = check_claim(claims, &task->moving.move, reterr);
                if (r == 0)
                        r = begin(task, claims, reterr);
                if (r == 0)
                        r = move_all(task, view, reterr);
                break;
        case CLAIM_MOVE_FENCE:
                r = fence_move(task, view, reterr);
                break;
        case CLAIM_MOVE_DONE:
        case CLAIM_MOVE_ARRIVED:
                end_move(task, &reported, decision == CLAIM_MOVE_ARRIVED, 0, reterr);
                break;
        case CLAIM_MOVE_GIVE_UP:
                end_move(task, NULL, false, 0, reterr);
                break;
        case CLAIM_MOVE_TAKEN:
        case CLAIM_MOVE_NOT_PLACED:
                refuse_move(task, decision, !state.refused);
                break;
        }
        if (r >= 0 || task->moving.repairs)
                return r;
        end_move(task, NULL, false, r, reterr);
        return 0;
}

static int read_target(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr)
{
        claim_task_read(task, &task->moving.move.to, &task->moving.target, go_on_with_move);
        return 0;
}

static void move(ClaimTask *task)
{
        _cleanup_(claim_freep) Claim *first = NULL, *there = NULL;
        Claims *claims = claim_task_open_claims(task);
        ClaimMove *wanted = &task->moving.move;
        Error error = ERROR_NULL;
        int r;

        if (!claims)
                return;
        r = wanted->id == 0 ? claims_find(claims, &wanted->from, false, &first, &error) : 0;
        if (first)
                wanted->claim = first->id;
        if (r == CLAIM_E_NOT_FOUND && claims_find(claims, &wanted->to, false, &there, NULL) == 0) {
                claim_task_end(task, 0, there, false, &error); /* the move was done before */
        } else if (r != 0) {
                claim_task_fail(task, r, &error);
        } else if (task->queue->with_placement) {
                claim_task_read(task, &task->consumer, &task->seen, read_target);
        } else {
                end_move(task, &task->moving.after, false, 0, &error);
        }
}

static void forget(ClaimTask *task)
{
        task->moving.target = consumer_free(task->moving.target);
}

static void free_move(ClaimTask *task)
{
        claim_move_done(&task->moving.move);
}

const ClaimTaskKind claim_task_moving = { .run = move, .forget = forget, .free = free_move };
