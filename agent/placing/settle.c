/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Settles pending work with Placement for single claims: a write that was not sent or not
 * confirmed, or the allocations that an ended claim left (a removal). queue.c starts these tasks in
 * a round, and moving.c settles moves. Each task reads the consumer first. A pure function of
 * agent/placing/decide.h then decides by the allocations that Placement has. Until then, a task
 * changes nothing in the claim database. It marks a write as sent before it sends it, and ends the
 * work in the database after a confirmation, or if there is nothing to send. After a failure the
 * work stays pending for a later round. A pending write waits for a healer of its consumer, whose
 * request can remove the allocations that the task would read.
 *
 * A removal ends without a request if another writer placed the allocations again. It also ends if
 * nothing is left, or another claim of the consumer owns the allocations. But the removal waits
 * while the ended claim's own write can still arrive (CLAIM_WRITE_LATE_USEC). Allocations count as
 * left by the claim if claim_share_is_ours(). They also do within CLAIM_REMOVAL_SOON_USEC after its
 * end, unless the removal was pending while nothing could be settled (ClaimRemovalState.late). The
 * removal of such allocations stays pending while a guest of the consumer is here without a claim.
 * A pending write waits while Placement has allocations that a removal must remove: the task of the
 * removal then replaces them by those of the claim in one request. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/guests/claim-share.h"
#include "agent/guests/comparison.h"
#include "agent/placing/task.h"
#include "base/clock.h"
#include "base/log.h"

/* Pending writes */

/* Sets the write state of the task's claim. reported is the state of the consumer by which the
 * agent's write is recognised later (claim_share_reported()). NULL: the stored one stays. Returns
 * CLAIM_E_NOT_FOUND if the claim has ended, or its write state has changed, since the task read it;
 * -EIO without a database; or another error of it. */
static int mark_write(ClaimTask *task, ClaimWriteState write_state, const ClaimReported *reported,
                      Error *reterr)
{
        Claims *claims = claim_service_require(task->queue->config.service, reterr);
        int r = claims ? claims_set_write_state(claims, task->claim->id, task->claim->write_state,
                                                write_state, reported, reterr)
                       : -EIO;

        if (r == 0)
                task->claim->write_state = write_state;
        return r;
}

/* Sets the write state and ends the task. If the claim has ended or its write state was changed,
 * the task succeeds, because it has nothing to write. */
static void end_write(ClaimTask *task, ClaimWriteState write_state, const ClaimReported *reported)
{
        Error error = ERROR_NULL;
        int r = mark_write(task, write_state, reported, &error);

        claim_task_fail(task, r == CLAIM_E_NOT_FOUND ? 0 : r, &error);
}

static void on_written_late(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        if (claim_task_has_written(userdata, result, error))
                end_write(userdata, CLAIM_WRITE_WRITTEN, NULL);
}

/* Adds the allocations of the claim to task->seen and writes this consumer. Before, it marks the
 * claim as sent, so that the end of the claim leaves a removal. If the claim has ended, the task
 * succeeds without a write. */
static int write_late(ClaimTask *task, const HostView *view, Error *reterr)
{
        ClaimReported reported = claim_share_reported(view, task->seen, true);
        int r = mark_write(task, CLAIM_WRITE_SENT, &reported, reterr);

        if (r == CLAIM_E_NOT_FOUND) {
                claim_task_fail(task, 0, reterr);
                return 0;
        }
        if (r != 0)
                return r;
        r = consumer_add_all(task->seen, task->claim->allocations, task->claim->n_allocations);
        if (r >= 0)
                r = claim_share_name(task->seen, task->claim->project_id, task->claim->user_id,
                                     task->claim->consumer_type);
        return r < 0 ? r
                     : consumers_write(&task->call, task->session, task->seen, NULL,
                                       on_written_late, task, reterr);
}

/* Returns 1 for an evacuated guest, given that its consumer has no allocations here: the consumer
 * has some elsewhere, the claim is confirmed, and the guest does not run here any more. Returns
 * -EAGAIN if the guest was not read yet. Returns 0 otherwise, also if the claim can have a guest
 * that is no domain. */
static int is_gone(const ClaimTask *task)
{
        const ClaimService *service = task->queue->config.service;
        const HostDomain *domain =
                service->facts ? host_facts_find_domain(service->facts, &task->claim->consumer)
                               : NULL;

        if (task->claim->state != CLAIM_STATE_CONFIRMED || task->seen->n_allocations == 0 ||
            claim_service_can_have_other(service, task->claim))
                return 0;
        if (!service->facts || (domain && domain->unread))
                return -EAGAIN;
        return !(domain && domain->running);
}

/* Continues after the consumer of a pending write was read: writes the claim, or sets its final
 * write state. The write stays pending if the guest must be read first, or if a removal must
 * replace the allocations. */
static int continue_write(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr)
{
        _cleanup_(claim_freep) Claim *ended = NULL;
        ClaimReported reported = claim_share_reported(view, task->seen, false);
        bool here = claim_share_has(view, claims_node(claims), task->seen);
        int gone = here ? 0 : is_gone(task);
        ClaimWriteState next = claim_decide_pending_write(
                task->claim->write_state, here, claim_share_is(task->claim, task->seen), gone > 0);
        /* A claim that was made of a guest keeps its ClaimReported, because Placement's allocations
         * complete the claim later, when its guest runs (claim_complete()). */
        bool is_guest = strcmp(task->claim->consumer_type, CLAIM_TYPE_GUEST) == 0;

        if (gone < 0 || (here && claim_task_find_leftover(task, claims, &ended))) {
                claim_task_fail(task, 0, reterr);
                return 0;
        }
        if (next == CLAIM_WRITE_SENT)
                return write_late(task, view, reterr);
        end_write(task, next, next == CLAIM_WRITE_NONE && is_guest ? NULL : &reported);
        return 0;
}

/* Removals */

/* Returns the time since the claim ended. UINT64_MAX: unknown, because the claim is not in the
 * history or the clock was set back. */
static uint64_t age_usec(const Claim *ended)
{
        uint64_t now = clock_usec(CLOCK_REALTIME);

        return ended && ended->ended_usec <= now ? now - ended->ended_usec : UINT64_MAX;
}

/* Returns true if a living claim of the consumer owns its allocations. A claim whose write was not
 * sent (CLAIM_WRITE_UNSENT) owns none. A claim whose write was sent without a confirmation
 * (CLAIM_WRITE_SENT) owns none while they are still those of the removal (ours). Sets
 * *ret_unwritten to the first claim of these two kinds, if there is one. The caller frees it. */
static bool has_successor(const ClaimTask *task, Claims *claims, bool ours, Claim **ret_unwritten)
{
        for (int target = 0; target < 2; target++) {
                _cleanup_(claim_freep) Claim *claim = NULL;

                if (claims_find(claims, &task->consumer, target, &claim, NULL) != 0)
                        continue;
                if (claim->write_state != CLAIM_WRITE_UNSENT &&
                    !(claim->write_state == CLAIM_WRITE_SENT && ours))
                        return true;
                if (!*ret_unwritten)
                        *ret_unwritten = TAKE_PTR(claim);
        }
        return false;
}

/* Decides about the allocations that an ended claim left to the consumer in task->seen;
 * CLAIM_REMOVAL_WAIT if the host cannot be read from the database. ended is the claim; NULL: it is
 * no longer in the database. The caller sets the members late and has_guest of state (decide.h
 * explains them), and this function the others. ret_unwritten is that of has_successor(); NULL: no
 * other claim inherits the allocations. */
static ClaimRemovalDecision decide_removal(const ClaimTask *task, Claims *claims,
                                           const ClaimRemoval *removal, const Claim *ended,
                                           ClaimRemovalState state, Claim **ret_unwritten)
{
        const char *node = claims_node(claims);
        const HostView *view;

        if (claims_host(claims, &view, NULL) != 0)
                return CLAIM_REMOVAL_WAIT;
        state.unsure = removal->unsure;
        state.age_usec = age_usec(ended);
        state.here = claim_share_has(view, node, task->seen);
        state.ours = claim_share_is_ours(view, node, removal, ended, task->seen);
        state.inherited = ret_unwritten && has_successor(task, claims, state.ours, ret_unwritten);
        return claim_decide_removal(&state);
}

bool claim_task_find_leftover(ClaimTask *task, Claims *claims, Claim **ret)
{
        ClaimRemoval removal = { 0 };

        while (claims_next_removal(claims, removal.id, &task->consumer, &removal, NULL) == 0) {
                _cleanup_(claim_freep) Claim *ended = NULL, *unwritten = NULL;
                ClaimRemovalDecision decision;

                (void)claims_get(claims, removal.claim, &ended, NULL);
                decision = decide_removal(task, claims, &removal, ended,
                                          (ClaimRemovalState){ .late = true }, &unwritten);
                if (decision == CLAIM_REMOVAL_SEND) {
                        *ret = TAKE_PTR(ended);
                        return true;
                }
                if (decision != CLAIM_REMOVAL_WAIT)
                        (void)claims_end_removal(claims, removal.id, NULL);
        }
        return false;
}

static ClaimRemovalDecision decide(const ClaimTask *task, Claims *claims, Claim **ret_unwritten)
{
        const ClaimRemovalState state = {
                .late = task->leaving.late,
                .has_guest = claim_service_has_guest(task->queue->config.service, &task->consumer),
        };

        return decide_removal(task, claims, &task->leaving.removal, task->claim, state,
                              ret_unwritten);
}

static void end_removal(ClaimTask *task)
{
        Error error = ERROR_NULL;
        Claims *claims = claim_service_require(task->queue->config.service, &error);

        claim_task_fail(
                task, claims ? claims_end_removal(claims, task->leaving.removal.id, &error) : -EIO,
                &error);
}

/* Handles the answer to a removal. After a success it ends the removal, unless the claim's own
 * write can still arrive: then the removal stays pending, as after a failure. */
static void on_removed(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        Error words = ERROR_NULL;
        Claims *claims;

        if (!claim_task_has_written(task, result, error))
                return;
        claims = claim_service_require(task->queue->config.service, &words);
        if (claims && decide(task, claims, NULL) == CLAIM_REMOVAL_WAIT)
                claim_task_fail(task, 0, &words);
        else
                end_removal(task);
}

/* Logs the removal with the evidence for it: the claim for which this agent wrote the allocations,
 * and why it ended. */
static void log_removal(const ClaimTask *task)
{
        const Claim *ended = task->claim;
        char id[24];

        snprintf(id, sizeof(id), "%" PRId64, task->leaving.removal.claim);
        log_event(
                LOG_INFO, NULL,
                LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, task->consumer.text),
                "Removing the allocations of %s on this host from Placement. This agent wrote them for claim %s, which ended (%s).",
                task->consumer.text, id, ended ? ended->end_reason : "no longer in the history");
}

/* Removes the consumer's allocations on this host, and those of the ended claim on other providers.
 * If another claim of the consumer waits for its write (*unwritten), the same request writes that
 * claim, so the consumer is not without allocations in between. A later round ends the removal,
 * because the allocations then belong to the other claim (CLAIM_REMOVAL_END). If the request fails,
 * removal and write both stay pending. */
static int remove_share(ClaimTask *task, Claims *claims, Claim **unwritten, Error *reterr)
{
        const HostView *view;
        int r = claims_host(claims, &view, reterr);

        if (r != 0)
                return r;
        (void)claim_share_remove(view, claims_node(claims), task->claim, task->seen);
        if (*unwritten) {
                claim_free(task->claim);
                task->claim = TAKE_PTR(*unwritten);
                return write_late(task, view, reterr);
        }
        log_removal(task);
        return consumers_write(&task->call, task->session, task->seen, NULL, on_removed, task,
                               reterr);
}

/* Continues after the consumer of a removal was read: removes the allocations, ends the removal, or
 * leaves it pending. */
static int continue_removal(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr)
{
        _cleanup_(claim_freep) Claim *unwritten = NULL;

        (void)claims_get(claims, task->leaving.removal.claim, &task->claim, NULL);
        switch (decide(task, claims, &unwritten)) {
        case CLAIM_REMOVAL_SEND:
                return remove_share(task, claims, &unwritten, reterr);
        case CLAIM_REMOVAL_KEEP:
                log_notice(
                        "Consumer %s was placed here again before its release was reported to Placement. Its allocations stay.",
                        task->consumer.text);
                end_removal(task);
                break;
        case CLAIM_REMOVAL_END:
                end_removal(task);
                break;
        case CLAIM_REMOVAL_WAIT:
                claim_task_fail(task, 0, reterr);
                break;
        }
        return 0;
}

static void settle_write(ClaimTask *task)
{
        claim_task_read_locked(task, continue_write);
}

static void settle_removal(ClaimTask *task)
{
        claim_task_read(task, &task->consumer, &task->seen, continue_removal);
}

/* Frees the claim of the last attempt, because the next one reads it again. This is the ended
 * claim, or the other claim that remove_share() wrote in its place. */
static void forget_claim(ClaimTask *task)
{
        task->claim = claim_free(task->claim);
}

const ClaimTaskKind claim_task_writing = { .run = settle_write };
const ClaimTaskKind claim_task_removing = { .run = settle_removal, .forget = forget_claim };
