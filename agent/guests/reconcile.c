/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Acts on the differences between claims and guests. One call of claim_reconcile() decides, acts on
 * each action, and decides again to find the problems that are left. Actions borrow from the claims
 * and processes of their decision (Seen). An action that fails is a problem of this cycle and does
 * not stop the others, unless the database itself cannot be used.
 *
 * If the decision needs answers of Placement, the call stops after the actions that need none. The
 * caller reads the answers and calls again. Each action logs its result and notifies the watcher
 * after the write. */

#include "agent/guests/reconcile.h"

#include <inttypes.h>
#include <string.h>

#include "agent/guests/claim-share.h"
#include "agent/guests/process.h"
#include "base/array.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/claims.h"

/* Longest time for which a poll that began before a guest stopped can still show it. */
#define POLL_AGE_USEC (30 * USEC_PER_SEC)

/* Extension of a claim where claims do not expire, except those whose caller gave a time. */
#define EXTEND_USEC (300 * USEC_PER_SEC)

/* The state of one call. */
typedef struct Work {
        ClaimService *service;
        const ReconcileInput *order;
        Claims *claims;
        ReconcileProblems *problems; /* problems of this call */
        ClaimList *ended;            /* claims that ended; empty until they are needed */
} Work;

static const ConsumerRead *find_answer(const Work *work, const Uuid *consumer)
{
        return consumer_read_find(work->order->answers, work->order->n_answers, consumer);
}

/* Notifies the watcher with the present state of the claim. */
static void notify(const Work *work, ClaimEvent event, int64_t id)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_get(work->claims, id, &claim, NULL) == 0)
                claim_service_notify(work->service, event, claim);
}

/* Lists a problem for this cycle. reconcile_make() finds a lasting problem again. */
static int note(const Work *work, const ReconcileAction *action, int64_t id, const char *what,
                const Error *words)
{
        return reconcile_add_problem(work->problems, &action->consumer, id, "guest %.60s%s: %s",
                                     action->domain ? action->domain->name : action->consumer.text,
                                     what, words->text);
}

/* Passes an error on, with its words. Returns r. */
static int forward(int r, const Error *words, Error *reterr)
{
        error_setf(reterr, r < 0 ? r : EBUSY, "%s", error_text(words, r < 0 ? r : -EBUSY));
        return r;
}

/* Returns true if a claim of the consumer ended during the poll. The guest can be gone as well; the
 * next poll shows it. Two kinds of end do not count. A claim that expired does not tell whether the
 * guest is gone, because it can have started late. A claim that is made again ended because its
 * guest is here. */
static bool has_just_ended(const Work *work, const Uuid *consumer)
{
        uint64_t age_usec = work->order->started_only ? POLL_AGE_USEC : 0;

        if (work->ended->n_claims == 0 &&
            claims_list(work->claims, CLAIMS_ENDED, NULL, work->ended, NULL) != 0)
                return false;
        for (size_t i = 0; i < work->ended->n_claims; i++) {
                const Claim *ended = work->ended->claims[i];

                if (uuid_equal(&ended->consumer, consumer) &&
                    ended->ended_usec + age_usec > work->order->facts->taken_usec &&
                    strcmp(ended->end_reason, CLAIM_EXPIRED) != 0 &&
                    strcmp(ended->end_reason, CLAIM_RESIZED) != 0 &&
                    strcmp(ended->end_reason, CLAIM_RESIZE_OVER) != 0 &&
                    strcmp(ended->end_reason, CLAIM_FOLLOWED) != 0)
                        return true;
        }
        return false;
}

/* Stores the state that was read of the claim's consumer. If the consumer has an allocation here,
 * the claim needs no write. An allocation that an earlier claim left here does not count. */
static int note_read(Claims *claims, const Claim *claim, const ClaimReported *reported, bool here,
                     Error *reterr)
{
        ClaimRemoval left;
        int r;

        if (claim->write_state != CLAIM_WRITE_NONE &&
            (!here || claims_next_removal(claims, 0, &claim->consumer, &left, NULL) == 0))
                return 0;
        r = claims_set_write_state(claims, claim->id, claim->write_state, CLAIM_WRITE_NONE,
                                   reported, reterr);
        return r == CLAIM_E_NOT_FOUND ? 0 : r;
}

/* Returns true if Placement's allocations of the consumer are the agent's own, left from an earlier
 * claim. */
static bool is_leftover(Claims *claims, const HostView *view, const Consumer *consumer)
{
        _cleanup_(claim_freep) Claim *ended = NULL;
        ClaimRemoval left;

        if (claims_next_removal(claims, 0, &consumer->uuid, &left, NULL) != 0)
                return false;
        (void)claims_get(claims, left.claim, &ended, NULL);
        return claim_share_is_ours(view, claims_node(claims), &left, ended, consumer);
}

/* Completes a claim with Placement's allocations of its consumer, and stores the state that was
 * read. */
static int complete(Claims *claims, const Claim *claim, const Consumer *consumer, Error *reterr)
{
        _cleanup_(consumer_freep) Consumer *share = NULL;
        const HostView *view;
        ClaimReported reported;
        size_t root;
        bool here;
        int r = claims_host(claims, &view, reterr);

        if (r != 0 || !host_view_root(view, claims_node(claims), &root))
                return r;
        reported = claim_share_reported(view, consumer, false);
        here = claim_share_has(view, claims_node(claims), consumer);
        r = claim_build_share(claim, consumer, view->tree, &view->tree->providers[root]->uuid,
                              is_leftover(claims, view, consumer), &share);
        if (r < 0)
                return error_oom(reterr);
        if (share) {
                log_info("Completed claim %" PRId64 " of %s with its allocation in Placement.",
                         claim->id, claim->consumer.text);
                r = claims_complete(claims, claim->id, share, reterr);
        }
        return share && r != 0 ? r : note_read(claims, claim, &reported, here, reterr);
}

int claim_complete(Claims *claims, int64_t id, const Consumer *holding, Error *reterr)
{
        _cleanup_(consumer_freep) Consumer *nothing = NULL;
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = claims_get(claims, id, &claim, reterr);

        if (r != 0)
                return r;
        if (claim->state != CLAIM_STATE_CONFIRMED)
                return CLAIM_E_NOT_FOUND;
        if (!holding && consumer_new(&nothing, &claim->consumer) < 0)
                return error_oom(reterr);
        return complete(claims, claim, holding ? holding : nothing, reterr);
}

/* Logs and announces a claim that was made of a guest. */
static void note_adopted(const Work *work, const ReconcileAction *action, int64_t claim_id)
{
        char id[24];

        snprintf(id, sizeof(id), "%" PRId64, claim_id);
        log_event(LOG_NOTICE, MESSAGE_CLAIM_ADOPTED,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, action->consumer.text),
                  "Guest %s (%s) had no claim; created claim %s from its domain.",
                  action->domain->name, action->consumer.text, id);
        notify(work, CLAIM_EVENT_ADDED, claim_id);
}

/* Makes a claim of a guest. Its amounts count at once. If its consumer was not read yet, a later
 * answer completes the claim. */
static int adopt(const Work *work, const ReconcileAction *action, Error *reterr)
{
        const ConsumerRead *answer = find_answer(work, &action->consumer);
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error words = ERROR_NULL;
        int r, completed = 0;

        if (has_just_ended(work, &action->consumer))
                return 0;
        r = claims_adopt(work->claims, action->domain, &claim, &words);

        if (r < 0)
                return forward(r, &words, reterr);
        if (!claim)
                return note(work, action, 0, " has no claim", &words);
        if (answer)
                completed = claim_complete(work->claims, claim->id, answer->holding, reterr);
        note_adopted(work, action, claim->id);
        if (completed != 0)
                return completed;
        return r == CLAIM_DONE ? 0 : note(work, action, claim->id, "", &words);
}

/* Returns the sums over all providers, as in "MEMORY_MB=512,PCPU=3"; the caller frees it. NULL:
 * memory is short. */
static char *format_sums(const Consumer *consumer)
{
        _cleanup_(resources_done) Resources sums = RESOURCES_INIT;

        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Resources *held = &consumer->allocations[i].resources;

                for (size_t j = 0; j < held->n_items; j++)
                        if (resources_add(&sums, held->items[j].resource_class,
                                          held->items[j].amount) < 0)
                                return NULL;
        }
        return resources_format(&sums);
}

/* Logs Placement's amounts of the consumer, which the next claim of the guest will have. */
static void log_followed(const Work *work, const ReconcileAction *action, const char *id)
{
        const ConsumerRead *answer = find_answer(work, &action->consumer);
        _cleanup_free_ char *amounts =
                answer && answer->holding ? format_sums(answer->holding) : NULL;

        log_notice(
                "Released claim %s of %s: Placement has other amounts (%s). A new claim of the guest has them.",
                id, action->consumer.text, amounts ? amounts : "unknown");
}

/* Releases a claim, and logs the reason and the evidence. */
static int release(const Work *work, const ReconcileAction *action, Error *reterr)
{
        char id[24];
        int r = claims_release(work->claims, action->claim_id, action->reason, reterr);

        if (r != 0)
                return r;
        snprintf(id, sizeof(id), "%" PRId64, action->claim_id);
        if (strcmp(action->reason, CLAIM_EXPIRED) == 0)
                log_notice("Released claim %s of %s: it was not confirmed in time, and %s.", id,
                           action->consumer.text, action->evidence);
        else if (strcmp(action->reason, CLAIM_RESIZE_OVER) == 0)
                log_event(
                        LOG_NOTICE, MESSAGE_CLAIM_RESIZE_OVER,
                        LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, action->consumer.text),
                        "Released claim %s of %s: its resize is over. Guest %s and Placement have the amounts of claim %" PRId64
                        ", and no migration of the project has those of claim %s.",
                        id, action->consumer.text, action->domain->name, action->other_id, id);
        else if (strcmp(action->reason, CLAIM_RESIZED) == 0)
                log_notice("Released claim %s of %s to claim its resized guest again: %s.", id,
                           action->consumer.text, action->evidence);
        else if (strcmp(action->reason, CLAIM_FOLLOWED) == 0)
                log_followed(work, action, id);
        else
                log_event(
                        LOG_NOTICE, MESSAGE_CLAIM_ORPHAN,
                        LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, action->consumer.text),
                        "Released claim %s: guest %s is not on this host any more, and %s.", id,
                        action->consumer.text, action->evidence);
        notify(work, CLAIM_EVENT_REMOVED, action->claim_id);
        return 0;
}

/* Extends a claim that expired while Placement has its allocations here. Its consumer is read again
 * after that time. */
static int extend(const Work *work, const ReconcileAction *action, Error *reterr)
{
        /* A claim that changed since the decision is left to the next comparison. */
        uint64_t expiry = work->order->expiry_usec > 0 ? work->order->expiry_usec : EXTEND_USEC;
        int r = claims_extend(work->claims, action->claim_id,
                              work->order->facts->taken_usec + expiry, reterr);

        if (r != 0)
                return r == CLAIM_E_CONFLICT ? 0 : r;
        log_info("Claim %" PRId64
                 " of %s was not confirmed in time, but stays. Placement has its allocations here.",
                 action->claim_id, action->consumer.text);
        notify(work, CLAIM_EVENT_CHANGED, action->claim_id);
        return 0;
}

static int confirm(const Work *work, const ReconcileAction *action, Error *reterr)
{
        int r = claims_confirm(work->claims, action->claim_id, reterr);

        if (r != 0)
                return r;
        log_notice("Confirmed claim %" PRId64 ": its guest is here (%s).", action->claim_id,
                   action->domain->name);
        notify(work, CLAIM_EVENT_CHANGED, action->claim_id);
        return 0;
}

/* Logs the host CPUs that the first layout holds and the second one does not. */
static void log_cpus(const Work *work, const ReconcileAction *action, const Layout *with,
                     const Layout *without, const char *what)
{
        _cleanup_(cpu_set_done) CpuSet cpus = CPU_SET_INIT;
        _cleanup_free_ char *text = NULL;

        CPU_SET_FOREACH(cpu, &with->held)
                if (!cpu_set_contains(&without->held, cpu) && cpu_set_add(&cpus, cpu) < 0)
                        return;
        if (cpu_set_count(&cpus) > 0 && (text = cpu_set_format(&cpus)))
                log_notice("Claim %" PRId64 " of %s %s host CPUs %s.", action->claim_id,
                           action->consumer.text, what, text);
}

/* Logs the changes of a claim that was checked again. */
static void log_checked(const Work *work, const ReconcileAction *action, const Claim *before)
{
        _cleanup_(claim_freep) Claim *after = NULL;

        if (strcmp(before->boot_id, claims_boot_id(work->claims)) != 0)
                log_info("Checked claim %" PRId64 " of an earlier boot again.", action->claim_id);
        if (claims_get(work->claims, action->claim_id, &after, NULL) != 0)
                return;
        log_cpus(work, action, &after->layout, &before->layout,
                 "follows its guest, which is pinned to");
        log_cpus(work, action, &before->layout, &after->layout,
                 "follows its guest, which is no longer pinned to");
}

/* Checks a claim against its guest again. A claim that does not fit is a problem, not a failure. */
static int check(const Work *work, const ReconcileAction *action, Error *reterr)
{
        _cleanup_(claim_freep) Claim *before = NULL;
        Error words = ERROR_NULL;
        int r = claims_get(work->claims, action->claim_id, &before, &words);

        if (r == 0)
                r = claims_check_again(work->claims, action->claim_id, action->domain, &words);
        if (r == CLAIM_E_NO_CAPACITY)
                return note(work, action, action->claim_id, "", &words);
        if (r != 0)
                return forward(r, &words, reterr);
        log_checked(work, action, before);
        notify(work, CLAIM_EVENT_CHANGED, action->claim_id);
        return 0;
}

/* Makes a claim for a consumer without a guest, from its allocation in Placement, for a new claim
 * database. */
static int place(const Work *work, const ReconcileAction *action, Error *reterr)
{
        const ConsumerRead *answer = find_answer(work, &action->consumer);
        ClaimPlacing placing = { .holding = answer->holding, .write_state = CLAIM_WRITE_NONE };
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error words = ERROR_NULL;
        const HostView *view;
        char id[24];
        int r = claims_host(work->claims, &view, reterr);

        if (r < 0)
                return r;
        placing.reported = claim_share_reported(view, answer->holding, false);
        r = claims_claim_placed(work->claims, &placing, &claim, &words);
        if (r < 0)
                return forward(r, &words, reterr);
        if (!claim)
                return note(work, action, 0, " has no claim", &words);
        snprintf(id, sizeof(id), "%" PRId64, claim->id);
        log_event(LOG_NOTICE, MESSAGE_CLAIM_PLACED,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, action->consumer.text),
                  "Consumer %s had no claim; created claim %s from its allocation in Placement.",
                  action->consumer.text, id);
        notify(work, CLAIM_EVENT_ADDED, claim->id);
        return r == CLAIM_DONE ? 0 : note(work, action, claim->id, "", &words);
}

/* Records the end of the complete read for a new claim database: all consumers have their
 * claims. */
static int end_unread(const Work *work, const Reconcile *reconcile, Error *reterr)
{
        size_t n = 0;
        int r;

        if (!work->order->unread || !work->order->complete)
                return 0;
        r = claims_note_read(work->claims, reterr);
        if (r != 0)
                return r;
        for (size_t i = 0; i < reconcile->n_actions; i++)
                n += reconcile->actions[i].type == RECONCILE_PLACE;
        log_info(
                "Read Placement for the new claim database: %zu consumers had neither claim nor guest.",
                n);
        return 0;
}

/* Runs one action. Returns 0, a ClaimOutcome or a negative errno with words. */
static int act(const Work *work, const ReconcileAction *action, Error *reterr)
{
        const ConsumerRead *answer;
        int r;

        switch (action->type) {
        case RECONCILE_READ:
                return 0;
        case RECONCILE_ADOPT:
                return adopt(work, action, reterr);
        case RECONCILE_COMPLETE:
                answer = find_answer(work, &action->consumer);
                r = claim_complete(work->claims, action->claim_id, answer->holding, reterr);
                if (r == 0)
                        notify(work, CLAIM_EVENT_CHANGED, action->claim_id);
                return r;
        case RECONCILE_EXTEND:
                return extend(work, action, reterr);
        case RECONCILE_CONFIRM:
                return confirm(work, action, reterr);
        case RECONCILE_RELEASE:
                return release(work, action, reterr);
        case RECONCILE_PLACE:
                return place(work, action, reterr);
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

/* Logs each new problem once, and once the end of all problems. */
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

/* The claims and processes that actions borrow from. */
typedef struct Seen {
        ClaimList claims;
        HostDomain *processes; /* guests that are not domains */
        size_t n_processes;
} Seen;

static void seen_done(Seen *seen)
{
        claim_list_done(&seen->claims);
        free(seen->processes);
}

/* Finds the claims of guests that are not domains and are alive. */
static int find_lives(const HostFacts *facts, Seen *seen)
{
        seen->processes = calloc(seen->claims.n_claims + 1, sizeof(HostDomain));
        if (!seen->processes)
                return -ENOMEM;
        for (size_t i = 0; i < seen->claims.n_claims; i++) {
                const Claim *claim = seen->claims.claims[i];
                const Uuid *guest = uuid_empty(&claim->guest) ? &claim->consumer : &claim->guest;

                if (claim->process[0] && !host_facts_find_domain(facts, guest) &&
                    process_is_alive(claim->process))
                        seen->processes[seen->n_processes++] = (HostDomain){ .uuid = *guest,
                                                                             .name = claim->process,
                                                                             .running = true,
                                                                             .unread = true };
        }
        return 0;
}

/* Lists the living claims and decides about them. ret borrows from seen. */
static int decide(const Work *work, Seen *seen, Reconcile *ret, Error *reterr)
{
        Claims *claims = work->claims;
        ReconcileInput input = *work->order;
        int r;

        input.claims = &seen->claims;
        input.node = claims_node(claims);
        input.boot_id = claims_boot_id(claims);
        r = claims_list(claims, CLAIMS_LIVING, NULL, &seen->claims, reterr);
        if (r != 0)
                return r;
        if (find_lives(input.facts, seen) < 0)
                return error_oom(reterr);
        input.processes = seen->processes;
        input.n_processes = seen->n_processes;
        if (!input.recorded)
                r = claims_host(claims, &input.view, reterr);
        if (r != 0)
                return r;
        return reconcile_make(&input, &work->service->comparison.memory, ret) < 0
                       ? error_oom(reterr)
                       : 0;
}

static int order_uuids(const void *a, const void *b)
{
        return uuid_order(a, b);
}

/* Lists the consumers of RECONCILE_READ, sorted and each once. */
static int collect_wanted(const Reconcile *reconcile, ClaimWanted *ret)
{
        size_t n = 0;

        ret->uuids = calloc(reconcile->n_actions + 1, sizeof(Uuid));
        if (!ret->uuids)
                return -ENOMEM;
        ret->all = reconcile->wants_all;
        for (size_t i = 0; i < reconcile->n_actions; i++)
                if (reconcile->actions[i].type == RECONCILE_READ)
                        ret->uuids[n++] = reconcile->actions[i].consumer;
        qsort(ret->uuids, n, sizeof(Uuid), order_uuids);
        for (size_t i = 0; i < n; i++)
                if (i == 0 || !uuid_equal(&ret->uuids[i], &ret->uuids[i - 1]))
                        ret->uuids[ret->n_uuids++] = ret->uuids[i];
        return 0;
}

/* Returns true if the file cannot be used. Then the other actions would only wait as long again. */
static bool is_of_file(int r)
{
        return r == -EBUSY || r == -ESTALE || r == -EUCLEAN;
}

/* Runs all actions, also after a failure of one. Returns the first failure, or the one of the
 * file. */
static int act_on_all(const Work *work, const Reconcile *reconcile, Error *reterr)
{
        int failure = 0;

        for (size_t i = 0; i < reconcile->n_actions && !is_of_file(failure); i++) {
                Error words = ERROR_NULL;
                int r = act(work, &reconcile->actions[i], &words);

                /* Another program can have ended it since the claims were read. */
                if (r == 0 || r == CLAIM_E_NOT_FOUND)
                        continue;
                if (!is_of_file(r) && note(work, &reconcile->actions[i],
                                           reconcile->actions[i].claim_id, "", &words) < 0)
                        return error_oom(reterr);
                if (failure == 0 || is_of_file(r))
                        failure = forward(r, &words, reterr);
        }
        return failure;
}

/* Adds the problems of from that into lacks. */
static int merge(ReconcileProblems *into, ReconcileProblems *from)
{
        for (size_t i = 0; i < from->n_items; i++)
                if (!has_problem(into, &from->items[i]) &&
                    reconcile_add_problem(into, &from->items[i].consumer, from->items[i].claim_id,
                                          "%s", from->items[i].text) < 0)
                        return -ENOMEM;
        return 0;
}

int claim_reconcile(ClaimService *service, const ReconcileInput *order, ClaimWanted *wanted,
                    Error *reterr)
{
        _cleanup_(reconcile_done) Reconcile reconcile = { 0 }, after = { 0 };
        _cleanup_(seen_done) Seen seen = { 0 }, seen_after = { 0 };
        _cleanup_(reconcile_problems_done) ReconcileProblems found = { 0 };
        _cleanup_(claim_list_done) ClaimList ended = { 0 };
        const Work work = { .service = service,
                            .order = order,
                            .claims = service->claims,
                            .problems = &found,
                            .ended = &ended };
        int r, failure;

        r = decide(&work, &seen, &reconcile, reterr);
        if (r != 0)
                return r;
        failure = act_on_all(&work, &reconcile, reterr);
        if (is_of_file(failure))
                return failure;
        if (wanted && collect_wanted(&reconcile, wanted) < 0)
                return error_oom(reterr);
        if (wanted && !claim_wanted_is_empty(wanted))
                return failure;
        if (failure == 0)
                failure = end_unread(&work, &reconcile, reterr);
        /* Finds the problems that are left after the actions. */
        if (reconcile.n_actions > 0)
                r = decide(&work, &seen_after, &after, reterr);
        if (r != 0)
                return r;
        if (merge(&found, reconcile.n_actions > 0 ? &after.problems : &reconcile.problems) < 0)
                return error_oom(reterr);
        log_problems(&service->comparison.problems, &found);
        reconcile_problems_done(&service->comparison.problems);
        service->comparison.problems = TAKE_STRUCT(found);
        return failure;
}
