/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs the task of a claim that a caller requests, from the check of the request to the answer. A
 * claim that the agent wrote, or has still to write, is answered without a read. Otherwise the
 * consumer is read. Allocations that another writer placed on this host are verified and claimed.
 * Allocations that an earlier claim left are claimed or replaced. Without any, the fit chooses, the
 * choice is claimed as pending, and it is written to Placement, if claim_mode and [agent] nova
 * permit it. A host without Placement claims by its own state. During an outage of Placement, a
 * claim that exists is answered, and a new one is made by the known state and written later. The
 * new one needs claim_mode auto and the permission of [agent] nova. agent/placing/queue.h describes
 * all steps.
 *
 * A pending claim ends in one of two ways if its write fails, and the task fails or tries again.
 * claims_withdraw() is for a write that certainly did not happen: nothing must be removed from
 * Placement. claims_release() is for a write that can have happened or can still happen, also after
 * a conflict: it leaves a removal. If the success cannot be stored, the claim stays pending, and
 * the next round of settling releases it with a removal. */

#include <errno.h>
#include <inttypes.h>

#include "agent/guests/claim-share.h"
#include "agent/guests/comparison.h"
#include "agent/guests/process.h"
#include "agent/placing/task.h"
#include "base/log.h"

/* Placing for answers that write nothing to Placement and read nothing from it: on a host without
 * Placement, and for a consumer that has its claim. */
static const ClaimPlacing local = { .write_state = CLAIM_WRITE_NONE };

static void write_chosen(ClaimTask *task);

/* Ends the task with the claim, which the task owns from here on. */
static void succeed(ClaimTask *task, Claim *claim, bool is_new)
{
        claim_service_touch(task->queue->config.service, claim->id);
        claim_free(task->claim);
        task->claim = claim;
        claim_task_end(task, 0, claim, is_new, &ERROR_NULL);
}

/* Makes the claim without a request again from placing->holding, if end_of_before() has released it
 * for a request whose claim has failed now. The guest must not lose its claim because of the
 * attempt. */
static void claim_placed_again(ClaimTask *task, Claims *claims, const ClaimPlacing *placing)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (!task->claiming.had_placed || !placing->holding ||
            claims_claim_placed(claims, placing, &claim, NULL) < 0 || !claim)
                return;
        task->claiming.had_placed = false;
        claim_service_notify(task->queue->config.service, CLAIM_EVENT_ADDED, claim);
}

/* Makes the claim in the database, from the placing and the known state of the host, or yields the
 * one that the consumer has. Writes nothing to Placement. Ends the task, or starts a refresh. */
static void claim_locally(ClaimTask *task, const ClaimPlacing *placing)
{
        Claims *claims = claim_task_open_claims(task);
        _cleanup_(claim_freep) Claim *before = NULL;
        Error error = ERROR_NULL;
        bool ambiguous = false;
        Claim *claim = NULL;
        int r;

        if (!claims)
                return;
        (void)claims_find(claims, &task->consumer, task->request->resize_target, &before, NULL);
        r = claims_claim(claims, task->request, placing, &claim, &ambiguous, &error);
        if (r != 0)
                claim_placed_again(task, claims, placing);
        /* Retry a placed claim once: the refresh can end a claim whose guest is gone, and so free
         * capacity. */
        if (r == CLAIM_E_NO_CAPACITY && placing->holding &&
            !(task->refreshed & CLAIM_REFRESH_HOST) &&
            claim_task_refresh(task, CLAIM_REFRESH_HOST, NULL) >= 0)
                return;
        if (r != 0) {
                claim_task_fail(task, r, &error);
                return;
        }
        if (ambiguous)
                log_info(
                        "Claim %" PRId64
                        " has the providers of its groups from the amounts alone. They might be wrong for consumer %s.",
                        claim->id, claim->consumer.text);
        succeed(task, claim, !before || before->id != claim->id);
}

/* Makes a claim during an outage of Placement, with a pending write. Fails with
 * CLAIM_QUEUE_E_PLACEMENT unless claim_mode is auto and [agent] nova permits the write. */
static void claim_without_placement(ClaimTask *task, const Error *error)
{
        static const ClaimPlacing unsent = { .write_state = CLAIM_WRITE_UNSENT };

        if (task->queue->mode == CLAIM_MODE_AUTO &&
            !claim_decide_refuses(task->queue->mode, task->queue->nova))
                claim_locally(task, &unsent);
        else
                claim_task_fail(task, CLAIM_QUEUE_E_PLACEMENT, error);
}

/* Writing */

/* The function that ends a pending claim: claims_withdraw() or claims_release(). */
typedef int (*ClaimEnd)(Claims *claims, int64_t id, const char *reason, Error *reterr);

/* Ends the pending claim with this function. If that fails, the next round of settling releases it.
 * why is the reason in the history. */
static void give_up(ClaimTask *task, ClaimEnd end, const char *why)
{
        Claims *claims = task->queue->config.service->claims;

        if (claims && task->claim)
                (void)end(claims, task->claim->id, why, NULL);
        task->claim = claim_free(task->claim);
}

/* Marks the pending claim as claimed and written, and ends the task with it. If that fails, the
 * task fails and the claim stays pending. */
static void finish_write(ClaimTask *task)
{
        Claims *claims = claim_task_open_claims(task);
        Error error = ERROR_NULL;
        int r;

        if (!claims)
                return;
        r = claims_set_write_state(claims, task->claim->id, CLAIM_WRITE_UNANSWERED,
                                   CLAIM_WRITE_WRITTEN, NULL, &error);
        if (r != 0) {
                claim_task_fail(task, r, &error);
                return;
        }
        task->claim->write_state = CLAIM_WRITE_WRITTEN;
        task->claim->state = CLAIM_STATE_CLAIMED;
        succeed(task, TAKE_PTR(task->claim), true);
}

/* Capacity in Placement. The choice can be free by the claims and allocated in Placement, if
 * another consumer has allocations without a claim. */

/* Returns true if Placement has enough free capacity of one provider. */
static bool is_left(const Consumer *capacity, const Allocation *chosen)
{
        const Resources *left = consumer_find(capacity, &chosen->provider);

        for (size_t i = 0; i < chosen->resources.n_items; i++)
                if (!left || resources_get(left, chosen->resources.items[i].resource_class) <
                                     chosen->resources.items[i].amount)
                        return false;
        return true;
}

/* Returns true if Placement has free capacity for all parts of the choice on this host. The refusal
 * was then probably due to the other parts, which come from providers that share with this host. */
static bool is_left_here(const ClaimTask *task, const HostView *view, const char *node)
{
        bool left = true;

        for (size_t i = 0; i < task->claim->n_allocations; i++) {
                const Allocation *chosen = &task->claim->allocations[i];

                if (claim_share_is_own(view, node, &chosen->provider))
                        left = left && is_left(task->claiming.capacity, chosen);
        }
        return left;
}

/* Returns true if a pending removal can free capacity soon. A removal of a write with an unknown
 * result does not count, because it can wait long. */
static bool is_leaving(Claims *claims)
{
        ClaimRemoval removal = { 0 };

        while (claims_next_removal(claims, removal.id, NULL, &removal, NULL) == 0)
                if (!removal.unsure)
                        return true;
        return false;
}

/* Ends the task because Placement lacks capacity, or retries it if a removal frees capacity now and
 * an attempt is left. */
static void fail_for_others(ClaimTask *task, const Error *error)
{
        Claims *claims = task->queue->config.service->claims;
        Error words = *error;

        /* A removal will free capacity, or has freed some after Placement reported its free
         * capacity. So another attempt can succeed. */
        if (claims &&
            (is_leaving(claims) || task->claiming.n_removals != task->queue->n_removals) &&
            claim_task_retry(task))
                return;
        error_prefixf(
                &words, -ENOSPC,
                "It would fit here, but other consumers have allocations of the free resources in Placement");
        claim_task_fail(task, CLAIM_E_NO_CAPACITY, &words);
}

/* Receives the free capacity. Withdraws the refused choice, and lets the fit choose again from this
 * capacity. If the capacity could not be read, the task fails. */
static void on_capacity(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        Claims *claims = task->queue->config.service->claims;
        const HostView *view;

        task->call = NULL;
        consumer_free(task->claiming.capacity);
        task->claiming.capacity = TAKE_PTR(answer->consumer);
        if (task->claiming.capacity && claims && claims_host(claims, &view, NULL) == 0)
                task->claiming.others_full = is_left_here(task, view, claims_node(claims));
        give_up(task, claims_withdraw, "Placement refused it");
        if (result == REPORT_DONE)
                write_chosen(task);
        else
                claim_task_fail(task, claim_task_outcome(result), error);
}

/* Reads the free capacity in Placement, and counts an attempt. Returns true if the request was
 * sent: on_capacity() then continues. The request names a class and amount of the choice,
 * preferably of a provider of this host. Returns false if nothing was sent. That is so if the
 * refused write only repeated allocations of Placement, after the last attempt, and on failure. */
static bool ask_for_capacity(ClaimTask *task)
{
        Claims *claims = task->queue->config.service->claims;
        const Allocation *chosen = task->claim->allocations;
        const HostView *view;

        if (task->claiming.is_there || ++task->n_attempts >= CLAIM_TASK_ATTEMPTS_MAX || !claims ||
            claims_host(claims, &view, NULL) != 0)
                return false;
        for (size_t i = 0; i < task->claim->n_allocations; i++)
                if (claim_share_is_own(view, claims_node(claims),
                                       &task->claim->allocations[i].provider))
                        chosen = &task->claim->allocations[i];
        task->claiming.n_removals = task->queue->n_removals;
        return capacity_read(&task->call, task->session, &task->queue->config.root,
                             chosen->resources.items[0].resource_class,
                             chosen->resources.items[0].amount, on_capacity, task, NULL) >= 0;
}

/* Evaluates the result of the write: see the file comment for the two ways in which the claim
 * ends. */
static void on_put(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        int outcome = claim_task_outcome(result);

        task->call = NULL;
        switch (report_outcome_of_write(result, answer->status)) {
        case REPORT_WRITTEN:
                finish_write(task);
                return;
        case REPORT_WRITTEN_RACED:
                give_up(task, claims_release, "another writer changed the consumer");
                if (claim_task_retry(task))
                        return;
                outcome = -EBUSY;
                break;
        case REPORT_WRITTEN_NO_CAPACITY:
                if (ask_for_capacity(task))
                        return;
                give_up(task, claims_withdraw, "Placement refused it");
                if (!task->claiming.is_there || !claim_task_retry(task))
                        fail_for_others(task, error);
                return;
        case REPORT_WRITTEN_REFUSED:
                give_up(task, claims_withdraw, "Placement refused it");
                break;
        case REPORT_WRITTEN_UNKNOWN:
                give_up(task, claims_release, "Placement did not answer");
                break;
        }
        claim_task_fail(task, outcome, error);
}

/* Writes the pending claim to Placement; withdraws it if nothing can be sent. is_there: the
 * allocations are written unchanged. A claim that is not pending is the answer: the consumer got it
 * while it was read, for example from its guest. */
static void put(ClaimTask *task)
{
        const ClaimRequest *request = task->request;
        _cleanup_(consumer_freep) Consumer *consumer = NULL;
        Error error = ERROR_NULL;
        int r;

        if (task->claim->state != CLAIM_STATE_PENDING) {
                succeed(task, TAKE_PTR(task->claim), false);
                return;
        }
        r = consumer_copy(&consumer, task->seen);
        if (r >= 0 && !task->claiming.is_there)
                r = consumer_add_all(consumer, task->claim->allocations,
                                     task->claim->n_allocations);
        if (r >= 0)
                r = claim_share_name(consumer, request->project_id, request->user_id,
                                     request->consumer_type);
        if (r >= 0)
                r = consumers_write(&task->call, task->session, consumer, &task->claim->mappings,
                                    on_put, task, &error);
        if (r < 0) {
                give_up(task, claims_withdraw, "nothing was sent");
                claim_task_fail(task, r, &error);
        }
}

/* Makes the pending claim, or yields the one that the consumer has. Returns 0, an outcome of
 * claims.h or a negative errno. */
static int claim_pending(ClaimTask *task, Error *reterr)
{
        Claims *claims = claim_service_require(task->queue->config.service, reterr);
        ClaimPlacing placing = {
                .write_state = CLAIM_WRITE_UNANSWERED,
                .capacity = task->claiming.capacity,
                .others_full = task->claiming.others_full,
        };
        const HostView *view;
        int r;

        r = claims ? claims_host(claims, &view, reterr) : -EIO;
        if (r != 0)
                return r;
        placing.reported = claim_share_reported(view, task->seen, true);
        return claims_claim(claims, task->request, &placing, &task->claim, NULL, reterr);
}

/* Lets the fit choose, and writes the choice. Also called again with the free capacity of
 * Placement. */
static void write_chosen(ClaimTask *task)
{
        Error error = ERROR_NULL;
        int r = claim_pending(task, &error);

        if (r == 0)
                put(task);
        else if (r == CLAIM_E_NO_CAPACITY && task->claiming.capacity)
                fail_for_others(task, &error);
        else
                claim_task_fail(task, r, &error);
}

/* Lets the fit choose and writes the choice, or fails with CLAIM_QUEUE_E_NOT_PLACED if the
 * configuration forbids it. */
static void write_claim(ClaimTask *task)
{
        Error error = ERROR_NULL;

        const char *why = claim_decide_refuses(task->queue->mode, task->queue->nova);

        if (why) {
                error_setf(&error, ENOENT, "Consumer %s has no allocations on this host, and %s",
                           task->consumer.text, why);
                claim_task_fail(task, CLAIM_QUEUE_E_NOT_PLACED, &error);
                return;
        }
        write_chosen(task);
}

/* Reading */

/* Returns the placing for a claim of the consumer's allocations. */
static ClaimPlacing placing_of_consumer(const ClaimTask *task, const HostView *view,
                                        ClaimWriteState write_state)
{
        return (ClaimPlacing){
                .holding = task->seen,
                .mappings = task->request->mappings.n_items > 0 ? &task->request->mappings : NULL,
                .write_state = write_state,
                .reported = claim_share_reported(view, task->seen, false),
        };
}

/* Claims the left allocations if they match the request, and writes them unchanged. The write
 * raises the consumer's generation, so a late removal fails. If they cannot be claimed, the choice
 * of the fit replaces them, by the rules of write_claim(). */
static void use_leftover(ClaimTask *task, Claims *claims, const HostView *view, const Claim *ended)
{
        ClaimPlacing placing = placing_of_consumer(task, view, CLAIM_WRITE_UNANSWERED);

        placing.reported = claim_share_reported(view, task->seen, true);
        if (claims_claim(claims, task->request, &placing, &task->claim, NULL, NULL) == 0) {
                task->claiming.is_there = true;
                put(task);
        } else {
                (void)claim_share_remove(view, claims_node(claims), ended, task->seen);
                write_claim(task);
        }
}

/* Returns true if the consumer has a claim that is not pending. Releases a pending claim. Without a
 * claim, *ret_placed stays unset. It is true if the agent does not write the claim's allocations.
 * Another writer can have changed them since, so Placement must be read. If the agent writes them,
 * the claim in the database is enough. */
static bool has_claim(ClaimTask *task, Claims *claims, bool *ret_placed)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_find(claims, &task->consumer, task->request->resize_target, &claim, NULL) != 0)
                return false;
        *ret_placed = claim->write_state == CLAIM_WRITE_NONE;
        if (claim->state != CLAIM_STATE_PENDING)
                return true;
        /* A pending claim without a task was not finished: no caller has received it. */
        (void)claims_release(claims, claim->id, "not finished", NULL);
        return false;
}

/* Returns true for a claim that claims_claim_placed() made from Placement's allocations, after the
 * claim database was lost. Such a claim has no request, and is not confirmed. */
static bool is_without_request(const Claim *claim)
{
        return claim->request[0] == '\0' && claim->state == CLAIM_STATE_CLAIMED;
}

/* Returns true if the host can have a guest of the claim, also before the first poll. If the claim
 * names no process, a living one that the request names counts as its guest. A claim without a
 * request has no guest yet, except a domain. */
static bool can_have_guest(const ClaimTask *task, const Claim *claim)
{
        const ClaimService *service = task->queue->config.service;

        if (!service->facts || host_facts_find_domain(service->facts, &task->consumer))
                return true;
        if (is_without_request(claim))
                return false;
        return claim_service_can_have_other(service, claim) ||
               (!claim->process[0] && task->request->process[0] &&
                process_is_alive(task->request->process));
}

/* Releases a claim that the agent does not write and that the new claim must replace, if the host
 * can have no guest of it. There are two cases. The claim has other allocations than the consumer
 * in Placement, for example because the guest left and was placed here again. Or the claim has no
 * request, and this caller has one. */
static void end_of_before(ClaimTask *task, Claims *claims)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        bool without_request;

        if (claims_find(claims, &task->consumer, task->request->resize_target, &claim, NULL) != 0 ||
            claim->write_state != CLAIM_WRITE_NONE || can_have_guest(task, claim))
                return;
        without_request = is_without_request(claim);
        if (!without_request && claim_share_is(claim, task->seen))
                return;
        if (claims_release(claims, claim->id,
                           without_request ? "its request is known" : "placed again", NULL) != 0)
                return;
        task->claiming.had_placed = without_request;
        claim_service_notify(task->queue->config.service, CLAIM_EVENT_REMOVED, claim);
        log_info("Released claim %" PRId64 " of %s: %s.", claim->id, claim->consumer.text,
                 without_request ? "a claim with its known request replaces it"
                                 : "it was placed here again");
}

/* Continues without Placement. A consumer with a claim gets it as the answer, or CLAIM_E_CONFLICT
 * if the request differs. */
static void on_away(ClaimTask *task, const Error *error)
{
        Claims *claims = claim_task_open_claims(task);
        bool placed;

        if (!claims)
                return;
        if (has_claim(task, claims, &placed))
                claim_locally(task, &local);
        else
                claim_without_placement(task, error);
}

/* Continues after the consumer was read, with step (2), (3) or (4) of agent/placing/queue.h. If
 * [agent] nova forbids removals, left allocations count as placed ones. The session of a task in
 * claim_mode verify can only be for reads, and left allocations are written. A release of an old
 * claim changes the view of the host, so the view is read again. */
static int continue_run(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr)
{
        const ClaimQueueConfig *config = &task->queue->config;
        _cleanup_(claim_freep) Claim *ended = NULL;
        ClaimPlacing placing;
        bool leftover;
        int r;

        end_of_before(task, claims);
        leftover = !nova_mode_refuses(task->queue->nova, NOVA_ACTION_REMOVE) &&
                   claim_task_find_leftover(task, claims, &ended);
        r = claims_host(claims, &view, reterr);
        if (r != 0)
                return r;
        if (leftover && !config->session(true, config->userdata)) {
                claim_task_explain_away(reterr);
                return CLAIM_QUEUE_E_PLACEMENT;
        }
        if (leftover) {
                use_leftover(task, claims, view, ended);
        } else if (claim_share_has(view, claims_node(claims), task->seen)) {
                placing = placing_of_consumer(task, view, CLAIM_WRITE_NONE);
                claim_locally(task, &placing);
        } else {
                write_claim(task);
        }
        return 0;
}

/* Begins the task, or repeats it: steps (1) and (2) of agent/placing/queue.h. */
static void claim(ClaimTask *task)
{
        Claims *claims = claim_task_open_claims(task);
        Error error = ERROR_NULL;
        bool placed, away;
        int r;

        if (!claims)
                return;
        away = task->queue->with_placement &&
               (!task->session || (task->queue->away && task->queue->mode == CLAIM_MODE_AUTO));
        r = claim_request_check(task->request, &error);
        if (r < 0) {
                claim_task_fail(task, r, &error);
        } else if (away) {
                claim_task_explain_away(&error);
                on_away(task, &error);
        } else if ((has_claim(task, claims, &placed) && !placed) || !task->queue->with_placement) {
                claim_locally(task, &local);
        } else {
                claim_task_read_locked(task, continue_run);
        }
}

static void forget(ClaimTask *task)
{
        task->claiming.capacity = consumer_free(task->claiming.capacity);
        task->claiming.is_there = false;
}

const ClaimTaskKind claim_task_claiming = {
        .run = claim,
        .away = on_away,
        .forget = forget,
};
