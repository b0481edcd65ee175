/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The claim of a server that starts, and whose devices the agent chooses. The task refreshes the
 * guests, reads the consumer from Placement, and lets claims/fit/attach.h decide. The present claim
 * is answered, a new one is made of the allocations, or the task fails. The task writes nothing to
 * Placement. A repeated task has the same answer while the claim, the allocations and the devices
 * stay the same. Three kinds of claims are not replaced, and give CLAIM_E_CONFLICT if they have
 * other devices than the allocations: one of another program, one that a migration took over, and
 * one whose allocations the agent writes.
 *
 * While Placement cannot be read, only the present claim can be the answer, because no other claim
 * has its devices. If it lacks a device for a class, or the host offers none of its devices for the
 * class, the result is CLAIM_QUEUE_E_PLACEMENT, as without a claim. Otherwise the result is
 * CLAIM_QUEUE_E_UNAVAILABLE if one of its devices of the classes is missing or was replaced.
 *
 * The result is -EBUSY for a pending claim and before the first poll of the host, also while
 * Placement cannot be read. It is also -EBUSY if the guests cannot be refreshed, or if a healer has
 * the consumer for too long before the read.
 *
 * If no device is free, the task refreshes the host once and tries again. Invariant: the task ends
 * a claim only if the allocations of its consumer differ from its devices. If no new claim can be
 * made then, the task fails and the old claim stays ended. A guest that exists is adopted by the
 * next cycle. */

#include <errno.h>
#include <inttypes.h>

#include "agent/placing/task.h"
#include "base/log.h"
#include "claims/fit/attach.h"

/* Translates a verdict that is an error to the result of a task. */
static int outcome_of(AttachVerdict verdict)
{
        switch (verdict) {
        case ATTACH_E_NOT_PLACED:
                return CLAIM_QUEUE_E_NOT_PLACED;
        case ATTACH_E_UNKNOWN_CLASS:
                return CLAIM_E_UNKNOWN_CLASS;
        case ATTACH_E_UNAVAILABLE:
                return CLAIM_QUEUE_E_UNAVAILABLE;
        case ATTACH_E_CONFLICT:
                return CLAIM_E_CONFLICT;
        default:
                return -EINVAL;
        }
}

/* Yields the living claim of the consumer and returns 0; NULL if there is none. For a pending claim
 * it returns -EBUSY: a round of settling ends that claim. */
static int find_claim(ClaimTask *task, Claims *claims, Claim **ret, Error *reterr)
{
        int r = claims_find(claims, &task->consumer, false, ret, reterr);

        if (r == CLAIM_E_NOT_FOUND)
                return 0;
        if (r == 0 && (*ret)->state == CLAIM_STATE_PENDING)
                return error_setf(reterr, EBUSY, "Claim %" PRId64 " is being written to Placement",
                                  (*ret)->id);
        return r;
}

/* Ends the task with the claim as its answer, and frees both. */
static void succeed(ClaimTask *task, Claim *claim, bool is_new)
{
        claim_service_touch(task->queue->config.service, claim->id);
        task->claim = claim;
        claim_task_end(task, 0, claim, is_new, &ERROR_NULL);
}

/* Ends a claim that has other devices than the allocations. */
static int end_claim(ClaimTask *task, Claims *claims, const Claim *claim, Error *reterr)
{
        int r = claims_release(claims, claim->id, "its server starts with other devices", reterr);

        if (r != 0)
                return r;
        log_notice("Released claim %" PRId64
                   " of %s: its server starts, and Placement has other devices for it.",
                   claim->id, claim->consumer.text);
        claim_service_notify(task->queue->config.service, CLAIM_EVENT_REMOVED, claim);
        return 0;
}

/* Makes the claim of the allocations that were read. After 0 the task has ended. */
static int make_claim(ClaimTask *task, Claims *claims, Error *reterr)
{
        ClaimPlacing placing = { .holding = task->seen, .write_state = CLAIM_WRITE_NONE };
        const HostView *view;
        Claim *claim = NULL;
        int r = claims_host(claims, &view, reterr);

        if (r != 0)
                return r;
        placing.reported = claim_share_reported(view, task->seen, false);
        r = claims_claim_starting(claims, &placing, task->attaching.classes, &claim, reterr);
        if (r == 0)
                succeed(task, claim, true);
        return r;
}

/* Acts on the verdict. placed NULL: Placement is away. After 0 the task has ended, or waits for a
 * refresh. */
static int decide(ClaimTask *task, Claims *claims, const HostView *view, const Consumer *placed,
                  Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        AttachInput input = { .facts = task->queue->config.service->facts,
                              .view = view,
                              .node = claims_node(claims),
                              .classes = task->attaching.classes,
                              .placed = placed };
        AttachVerdict verdict;
        int r = find_claim(task, claims, &claim, reterr);

        if (r == 0 && !input.facts)
                r = error_setf(reterr, EBUSY, "The host was not polled yet");
        if (r != 0)
                return r;
        input.claim = claim;
        verdict = attach_decide(&input, reterr);
        if (verdict == ATTACH_KEEP) {
                succeed(task, TAKE_PTR(claim), false);
                return 0;
        }
        if (verdict != ATTACH_MAKE && verdict != ATTACH_REPLACE)
                return outcome_of(verdict);
        claims_set_author(claims, task->attaching.by);
        if (verdict == ATTACH_REPLACE)
                r = end_claim(task, claims, claim, reterr);
        if (r == 0)
                r = make_claim(task, claims, reterr);
        claims_set_author(claims, NULL);
        /* If r is 0, the task is freed. One retry: the refresh can end a claim whose server is
         * gone. */
        if (r == CLAIM_E_NO_CAPACITY && !(task->refreshed & CLAIM_REFRESH_HOST) &&
            claim_task_refresh(task, CLAIM_REFRESH_HOST, NULL) >= 0)
                return 0;
        return r;
}

static int continue_attach(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr)
{
        return decide(task, claims, view, task->seen, reterr);
}

/* Continues without Placement. */
static void on_away(ClaimTask *task, const Error *error)
{
        Claims *claims = claim_task_open_claims(task);
        const HostView *view;
        Error words = ERROR_NULL;
        int r;

        if (!claims)
                return;
        r = claims_host(claims, &view, &words);
        if (r == 0)
                r = decide(task, claims, view, NULL, &words);
        /* If r is 0, the task is freed. */
        if (r == CLAIM_QUEUE_E_NOT_PLACED)
                claim_task_fail(task, CLAIM_QUEUE_E_PLACEMENT, error);
        else if (r != 0)
                claim_task_fail(task, r, &words);
}

static void attach(ClaimTask *task)
{
        Error error = ERROR_NULL;

        if (!task->queue->with_placement) {
                error_setf(&error, ENOENT, "This host has no [placement]: no scheduler placed it");
                claim_task_fail(task, CLAIM_QUEUE_E_NOT_PLACED, &error);
        } else if (!task->session) {
                claim_task_explain_away(&error);
                on_away(task, &error);
        } else {
                claim_task_read_locked(task, continue_attach);
        }
}

const ClaimTaskKind claim_task_attaching = { .run = attach, .away = on_away, .reads_only = true };
