/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/claim-reconcile.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/message-ids.h"

#define ORPHAN_REASON "orphan: its guest is gone"

/* A poll that began before a guest stopped may tell of it so much later. */
#define POLL_AGE_USEC (30 * USEC_PER_SEC)

typedef struct Work {
        ClaimService *service;
        const HostFacts *facts;
        Claims *claims;
        ReconcileProblems *problems; /* of this time */
} Work;

static void tell(const Work *work, ClaimEvent event, int64_t id)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_get(work->claims, id, &claim, NULL) == 0)
                claim_service_tell(work->service, event, claim);
}

/* The problem stays listed for this cycle; what is wrong for longer, reconcile_make() sees itself.
 */
static int note(const Work *work, const ReconcileAction *action, int64_t id, const char *what,
                const Error *words)
{
        return reconcile_add_problem(work->problems, &action->consumer, id, "guest %.60s%s: %s",
                                     action->domain ? action->domain->name : action->consumer.text,
                                     what, words->text);
}

/* What was not done, with its words. */
static int forward(int r, const Error *words, Error *reterr)
{
        error_setf(reterr, r < 0 ? r : EBUSY, "%s", error_text(words, r < 0 ? r : -EBUSY));
        return r;
}

/* Where guests claim when they start: did this one give its claim back while the host was polled?
 * One that expired says nothing of the guest, which may have started late. */
static bool has_just_stopped(const Work *work, const Uuid *consumer)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (!claim_service_is_started_only(work->service) ||
            claims_list(work->claims, true, &list, NULL) != 0)
                return false;
        for (size_t i = 0; i < list.n_claims; i++)
                if (uuid_equal(&list.claims[i]->consumer, consumer) &&
                    list.claims[i]->ended_usec + POLL_AGE_USEC > work->facts->taken_usec &&
                    strcmp(list.claims[i]->end_reason, CLAIM_EXPIRED) != 0)
                        return true;
        return false;
}

static int adopt(const Work *work, const ReconcileAction *action, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error words = ERROR_NULL;
        char id[24] = "";
        int r;

        if (has_just_stopped(work, &action->consumer))
                return 0;
        r = claims_adopt(work->claims, action->domain, &claim, &words);

        if (r < 0 || r == CLAIM_E_BUSY)
                return forward(r, &words, reterr);
        if (!claim)
                return note(work, action, 0, " has no claim", &words);
        snprintf(id, sizeof(id), "%" PRId64, claim->id);
        log_event(LOG_NOTICE, MESSAGE_CLAIM_ADOPTED,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, claim->consumer.text),
                  "Guest %s (%s) had no claim: made claim %s of what it has.", action->domain->name,
                  claim->consumer.text, id);
        claim_service_tell(work->service, CLAIM_EVENT_ADDED, claim);
        return r == CLAIM_DONE ? 0 : note(work, action, claim->id, "", &words);
}

static int release(const Work *work, const ReconcileAction *action, Error *reterr)
{
        char id[24];
        int r = claims_release(work->claims, action->claim_id, ORPHAN_REASON, reterr);

        if (r != 0)
                return r;
        snprintf(id, sizeof(id), "%" PRId64, action->claim_id);
        log_event(LOG_NOTICE, MESSAGE_CLAIM_ORPHAN,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, action->consumer.text),
                  "Released claim %s: guest %s is not on this host any more.", id,
                  action->consumer.text);
        tell(work, CLAIM_EVENT_REMOVED, action->claim_id);
        return 0;
}

static int confirm(const Work *work, const ReconcileAction *action, Error *reterr)
{
        int r = claims_confirm(work->claims, action->claim_id, reterr);

        if (r != 0)
                return r;
        log_notice("Confirmed claim %" PRId64 ": it was about to expire, and its guest %s is here.",
                   action->claim_id, action->domain->name);
        tell(work, CLAIM_EVENT_CHANGED, action->claim_id);
        return 0;
}

static int check(const Work *work, const ReconcileAction *action, Error *reterr)
{
        Error words = ERROR_NULL;
        int r = claims_check_again(work->claims, action->claim_id, action->domain, &words);

        if (r == CLAIM_E_NO_CAPACITY)
                return note(work, action, action->claim_id, "", &words);
        if (r != 0)
                return forward(r, &words, reterr);
        log_info("Checked claim %" PRId64 " of an earlier boot or program again.",
                 action->claim_id);
        tell(work, CLAIM_EVENT_CHANGED, action->claim_id);
        return 0;
}

static int act(const Work *work, const ReconcileAction *action, Error *reterr)
{
        switch (action->type) {
        case RECONCILE_ADOPT:
                return adopt(work, action, reterr);
        case RECONCILE_CONFIRM:
                return confirm(work, action, reterr);
        case RECONCILE_RELEASE:
                return release(work, action, reterr);
        case RECONCILE_CHECK:
        default:
                return check(work, action, reterr);
        }
}

static bool has_problem(const ReconcileProblems *problems, const ReconcileProblem *problem)
{
        for (size_t i = 0; i < problems->n_items; i++)
                if (strcmp(problems->items[i].text, problem->text) == 0 &&
                    uuid_equal(&problems->items[i].consumer, &problem->consumer))
                        return true;
        return false;
}

/* Once when it comes, once when all are gone. */
static void log_problems(const ReconcileProblems *before, const ReconcileProblems *now)
{
        for (size_t i = 0; i < now->n_items; i++) {
                const ReconcileProblem *problem = &now->items[i];

                if (has_problem(before, problem))
                        continue;
                log_event(LOG_WARNING, MESSAGE_CLAIM_DISAGREES,
                          LOG_FIELDS(LOG_FIELD_CONSUMER, problem->consumer.text),
                          "Claims and guests disagree: %s.", problem->text);
        }
        if (before->n_items > 0 && now->n_items == 0)
                log_notice("Claims and guests agree again.");
}

static int decide(const Work *work, const HostFacts *facts, uint64_t expiry_usec,
                  ReconcileMemory *memory, Reconcile *ret, Error *reterr)
{
        Claims *claims = work->claims;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        ReconcileInput input = { .claims = &list,
                                 .facts = facts,
                                 .node = claims_node(claims),
                                 .boot_id = claims_boot_id(claims),
                                 .expiry_usec = expiry_usec,
                                 .started_only = claim_service_is_started_only(work->service) };
        int r;

        input.away = claim_service_get_away(work->service, &input.n_away);
        r = claims_list(claims, false, &list, reterr);
        if (r != 0)
                return r;
        r = claims_host(claims, &input.view, reterr);
        if (r != 0)
                return r;
        return reconcile_make(&input, memory, ret) < 0 ? error_oom(reterr) : 0;
}

static int act_on_all(const Work *work, const Reconcile *reconcile, Error *reterr)
{
        for (size_t i = 0; i < reconcile->n_actions; i++) {
                int r = act(work, &reconcile->actions[i], reterr);

                /* Somebody else may have ended it meanwhile. */
                if (r != 0 && r != CLAIM_E_NOT_FOUND)
                        return r;
        }
        return 0;
}

/* Problems that both lists have are kept once. */
static int merge(ReconcileProblems *into, ReconcileProblems *from)
{
        for (size_t i = 0; i < from->n_items; i++)
                if (!has_problem(into, &from->items[i]) &&
                    reconcile_add_problem(into, &from->items[i].consumer, from->items[i].claim_id,
                                          "%s", from->items[i].text) < 0)
                        return -ENOMEM;
        return 0;
}

int claim_reconcile(ClaimService *service, Claims *claims, const HostFacts *facts,
                    uint64_t expiry_usec, ReconcileMemory *memory, ReconcileProblems *problems,
                    Error *reterr)
{
        _cleanup_(reconcile_done) Reconcile reconcile = { 0 }, after = { 0 };
        _cleanup_(reconcile_problems_done) ReconcileProblems found = { 0 };
        const Work work = {
                .service = service, .facts = facts, .claims = claims, .problems = &found
        };
        int r;

        r = decide(&work, facts, expiry_usec, memory, &reconcile, reterr);
        if (r != 0)
                return r;
        r = act_on_all(&work, &reconcile, reterr);
        if (r != 0)
                return r;
        /* What is wrong now, not what was before it was put right. */
        if (reconcile.n_actions > 0)
                r = decide(&work, facts, expiry_usec, memory, &after, reterr);
        if (r != 0)
                return r;
        if (merge(&found, reconcile.n_actions > 0 ? &after.problems : &reconcile.problems) < 0)
                return error_oom(reterr);
        log_problems(problems, &found);
        reconcile_problems_done(problems);
        *problems = found;
        found = (ReconcileProblems){ 0 };
        return 0;
}
