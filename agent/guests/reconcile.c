/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Acts on the differences between claims and guests. A comparison lists the claims, decides, acts
 * on each action, and then lists and decides again to find the problems that are left. Without
 * actions, the first decision has all problems. An action that fails is a problem of this cycle,
 * unless its claim is gone, and does not stop the others. Only a database that cannot be used, a
 * failed commit, or a lack of memory outside of an action stops them. If the decision needs answers
 * of Placement, and the caller asked for their list, the comparison ends after the actions that
 * need none, and lists no problems. Another comparison with the answers must follow.
 *
 * A first start adopts each guest, which can be thousands. So a comparison can take several turns
 * of the main loop. Several actions are one transaction (act_some()). The results of these actions
 * are logged and announced after the commit, because a crash before the commit undoes all of them.
 *
 * Between two turns callers change claims, and a newer poll replaces the guests. So the claims are
 * listed again if one of them changed or was returned during the listing. From listing LISTINGS_MAX
 * on, one call lists all. In a later turn than that of the decision, each action is compared with
 * the present claim and guest. It is left out if the claim has changed in what the action needs, or
 * the guest is gone (is_current()). A release is also left out after a newer poll, which can show
 * the guest or its folder, and after the claim was returned to a caller. Then another comparison is
 * due, which decides again. Reasons and evidence of actions are constant texts. The guest of an
 * action is in Seen or in the facts, and a later turn looks it up again. After a decision that was
 * made for a new claim database, with all consumers of Placement, the database is marked as read if
 * no action failed or was left out. */

#include "agent/guests/reconcile.h"

#include <inttypes.h>
#include <string.h>

#include "agent/guests/process.h"
#include "agent/guests/reconcile-actions.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/claims.h"

/* The work of one turn ends at the first step that ends after this time. */
#define TURN_USEC (10 * USEC_PER_MSEC)

#define GROUP_MAX  32                   /* most actions of one transaction */
#define GROUP_USEC (10 * USEC_PER_MSEC) /* no action is added to a transaction after this time */

/* Changes interrupt no more from this listing of a comparison on: it and all later ones read all
 * claims in one call. */
#define LISTINGS_MAX 3

/* The claims of a decision, and the guests of claims that are no domains and are alive. */
typedef struct Seen {
        ClaimList claims;      /* living ones, by id */
        HostDomain *processes; /* guests that are not domains */
        size_t n_processes;
} Seen;

static void seen_done(Seen *seen)
{
        claim_list_done(&seen->claims);
        free(seen->processes);
        *seen = (Seen){ 0 };
}

typedef enum Stage {
        STAGE_LIST,
        STAGE_DECIDE,
        STAGE_ACT,
        STAGE_END,
} Stage;

struct ClaimReconcile {
        Stage stage;
        bool is_check;    /* all actions were run: the last decision has the problems */
        bool is_later;    /* the decision was made in an earlier turn than this one */
        bool is_outdated; /* an action was left out, so another comparison is due */
        unsigned n_listings;
        uint64_t n_changes; /* ClaimService.n_changes when the listing began */
        Seen seen;
        Reconcile decided;
        uint64_t n_facts; /* ClaimService.n_facts at the decision */
        size_t n_recent;  /* ReconcileInput.n_recent at the decision */
        size_t next;      /* index of the next action */
        ReconcileProblems found;
        EventList released; /* ReconcileWork.released of the last group of actions */
        int failure;        /* the failure to return, with its words (note_failure()); 0: none */
        Error words;
};

int claim_reconcile_new(ClaimReconcile **ret)
{
        *ret = calloc(1, sizeof(ClaimReconcile));
        return *ret ? 0 : -ENOMEM;
}

ClaimReconcile *claim_reconcile_free(ClaimReconcile *run)
{
        if (!run)
                return NULL;
        seen_done(&run->seen);
        reconcile_done(&run->decided);
        reconcile_problems_done(&run->found);
        event_list_done(&run->released);
        free(run);
        return NULL;
}

/* The comparison and its inputs in one turn. */
typedef struct Turn {
        ReconcileWork work;
        ClaimReconcile *run;
} Turn;

/* Lists a problem until the next comparison replaces the list. If the problem lasts,
 * reconcile_make() finds it again then. */
static int note(const Turn *turn, const ReconcileAction *action, int64_t id, const char *what,
                const Error *words)
{
        return reconcile_add_problem(&turn->run->found, &action->consumer, id, "guest %.60s%s: %s",
                                     action->domain ? action->domain->name : action->consumer.text,
                                     what, words->text);
}

/* Copies the words of a result to reterr. Returns r. */
static int forward(int r, const Error *words, Error *reterr)
{
        error_setf(reterr, r < 0 ? r : EBUSY, "%s", error_text(words, r < 0 ? r : -EBUSY));
        return r;
}

/* Records that all consumers of the host were read from Placement for a new claim database, and
 * that they have their claims now. Records nothing if an action was left out: the next comparison
 * must have all consumers too. After an action that failed, end_acting() does not call it. */
static int end_unread(const Turn *turn, Error *reterr)
{
        const Reconcile *reconcile = &turn->run->decided;
        size_t n = 0;
        int r;

        if (!turn->work.order->unread || !turn->work.order->complete || turn->run->is_outdated)
                return 0;
        r = claims_note_read(turn->work.claims, reterr);
        if (r != 0)
                return r;
        for (size_t i = 0; i < reconcile->n_actions; i++)
                n += reconcile->actions[i].type == RECONCILE_PLACE;
        log_info(
                "Read Placement for the new claim database: %zu consumers had neither claim nor guest.",
                n);
        return 0;
}

static bool has_problem(const ReconcileProblems *problems, const Uuid *consumer, const char *text)
{
        for (size_t i = 0; i < problems->n_items; i++)
                if (strcmp(problems->items[i].text, text) == 0 &&
                    uuid_equal(&problems->items[i].consumer, consumer))
                        return true;
        return false;
}

static void log_problem(const Uuid *consumer, const char *text)
{
        if (strcmp(text, RECONCILE_UNREAD) == 0)
                log_notice("%s.", text);
        else
                log_event(LOG_WARNING, MESSAGE_CLAIM_DISAGREES,
                          LOG_FIELDS(LOG_FIELD_CONSUMER, consumer->text),
                          "Claims and guests disagree: %s.", text);
}

/* Returns whether claims and guests disagree. An unread database is no disagreement: each new host
 * has one until its first read of Placement, whose end is logged. */
static bool is_disagreement(const ReconcileProblems *problems)
{
        for (size_t i = 0; i < problems->n_items; i++)
                if (strcmp(problems->items[i].text, RECONCILE_UNREAD) != 0)
                        return true;
        return false;
}

/* Logs each new problem once, and once the end of all disagreements. */
static void log_problems(const ReconcileProblems *before, const ReconcileProblems *now)
{
        for (size_t i = 0; i < now->n_items; i++)
                if (!has_problem(before, &now->items[i].consumer, now->items[i].text))
                        log_problem(&now->items[i].consumer, now->items[i].text);
        if (is_disagreement(before) && !is_disagreement(now))
                log_notice("Claims and guests agree again.");
}

/* Lists the guests of claims that are not domains and are alive (agent/guests/process.h). */
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

/* Begins a listing of the claims, for the next decision. */
static void begin_listing(const Turn *turn)
{
        ClaimReconcile *run = turn->run;

        seen_done(&run->seen);
        run->n_changes = turn->work.service->n_changes;
        run->n_listings++;
        run->stage = STAGE_LIST;
}

/* Lists the next claims. The listing starts again if the change of a claim was announced, or a
 * claim was returned, since its begin (ClaimService.n_changes), so that it shows one state. Changes
 * that are not announced, such as that of a pending claim, do not count. From listing LISTINGS_MAX
 * on, one call lists all. */
static int list_some(const Turn *turn, Error *reterr)
{
        ClaimReconcile *run = turn->run;
        ClaimList *list = &run->seen.claims;
        size_t before = list->n_claims;
        int64_t after = before > 0 ? list->claims[before - 1]->id : 0;
        bool all = run->n_listings >= LISTINGS_MAX;
        int r = all ? claims_list(turn->work.claims, CLAIMS_LIVING, NULL, list, reterr)
                    : claims_list_some(turn->work.claims, after, list, reterr);

        if (r != 0)
                return r;
        if (!all && run->n_changes != turn->work.service->n_changes)
                begin_listing(turn);
        else if (all || list->n_claims < before + CLAIMS_LOT)
                run->stage = STAGE_DECIDE;
        return 0;
}

/* Decides about the listed claims. The decision borrows from run->seen and from the facts. */
static int decide(const Turn *turn, Error *reterr)
{
        Claims *claims = turn->work.claims;
        ClaimReconcile *run = turn->run;
        ReconcileInput input = *turn->work.order;
        int r = 0;

        reconcile_done(&run->decided);
        input.claims = &run->seen.claims;
        input.node = claims_node(claims);
        input.boot_id = claims_boot_id(claims);
        if (find_lives(input.facts, &run->seen) < 0)
                return error_oom(reterr);
        input.processes = run->seen.processes;
        input.n_processes = run->seen.n_processes;
        if (!input.recorded)
                r = claims_host(claims, &input.view, reterr);
        if (r != 0)
                return r;
        if (reconcile_make(&input, &turn->work.service->comparison.memory, &run->decided) < 0)
                return error_oom(reterr);
        run->n_facts = turn->work.service->n_facts;
        run->n_recent = input.n_recent;
        run->next = 0;
        run->is_later = false;
        run->stage = run->is_check ? STAGE_END : STAGE_ACT;
        return 0;
}

static int order_uuids(const void *a, const void *b)
{
        return uuid_order(a, b);
}

/* Lists the consumers of RECONCILE_READ, sorted and each once, and whether all of the host are
 * wanted. */
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

/* Returns true if the result of an action means that the database file cannot be used. No further
 * action is tried then, because each would wait as long for the file. */
static bool is_of_file(int r)
{
        return r == -EBUSY || r == -ESTALE || r == -EUCLEAN;
}

/* Returns the claim as the decision saw it, or NULL. */
static const Claim *find_seen(const ClaimReconcile *run, int64_t id)
{
        size_t low = 0, high = run->seen.claims.n_claims;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const Claim *claim = run->seen.claims.claims[middle];

                if (claim->id == id)
                        return claim;
                if (claim->id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

/* Finds the guest of an action among the guests that are no domains, or in the facts of the last
 * poll. Returns NULL if there is none any more. */
static const HostDomain *find_guest(const Turn *turn, const ReconcileAction *action)
{
        const Claim *claim = find_seen(turn->run, action->claim_id);
        const Uuid *guest = claim && !uuid_empty(&claim->guest) ? &claim->guest : &action->consumer;

        for (size_t i = 0; i < turn->run->seen.n_processes; i++)
                if (uuid_equal(&turn->run->seen.processes[i].uuid, guest))
                        return &turn->run->seen.processes[i];
        return host_facts_find_domain(turn->work.order->facts, guest);
}

/* Returns true if the action still applies to the claim. The claim must have the same consumer and
 * guest as at the decision. To end, extend or complete the claim, its state, expiry, write state
 * and process must also be unchanged. */
static bool applies_to(const ReconcileAction *action, const Claim *seen, const Claim *now)
{
        if (!uuid_equal(&seen->consumer, &now->consumer) || !uuid_equal(&seen->guest, &now->guest))
                return false;
        if (action->type == RECONCILE_CONFIRM || action->type == RECONCILE_CHECK)
                return true;
        return seen->state == now->state && seen->expires_usec == now->expires_usec &&
               seen->write_state == now->write_state && strcmp(seen->process, now->process) == 0;
}

/* Returns true if the consumer can get a claim. The decision must have seen each of its present
 * claims, also those of its migrations. The consumer itself must have no claim, except the target
 * of a resize. */
static bool can_have_claim(const Turn *turn, const Uuid *consumer)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list(turn->work.claims, CLAIMS_OF_GUEST, consumer->text, &list, NULL) != 0)
                return false;
        for (size_t i = 0; i < list.n_claims; i++) {
                const Claim *claim = list.claims[i], *seen = find_seen(turn->run, claim->id);

                if (!seen || !uuid_equal(&seen->consumer, &claim->consumer) ||
                    (!claim->resize_target && uuid_equal(&claim->consumer, consumer)))
                        return false;
        }
        return true;
}

/* Returns true if a newer poll was taken since the decision, or the claim was returned to a caller.
 * Either can contradict that the claim has no guest. */
static bool can_have_guest(const Turn *turn, int64_t claim_id)
{
        if (turn->run->n_facts != turn->work.service->n_facts)
                return true;
        for (size_t i = turn->run->n_recent; i < turn->work.order->n_recent; i++)
                if (turn->work.order->recent[i].claim_id == claim_id)
                        return true;
        return false;
}

/* Compares an action with the present state. In the turn of its decision, nothing has changed.
 * Later, the guest of the action, if it has one, must still be there, and its claim, or the claims
 * of the consumer, must be those of the decision. A guest that gets a claim must still be one that
 * gets one. For a release, the facts must be those of the decision, too. Replaces the guest of the
 * action by its present facts. */
static bool is_current(const Turn *turn, ReconcileAction *action)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        const Claim *seen;

        if (!turn->run->is_later)
                return true;
        if (action->domain && !(action->domain = find_guest(turn, action)))
                return false;
        if (action->type == RECONCILE_RELEASE && can_have_guest(turn, action->claim_id))
                return false;
        if (action->claim_id == 0)
                return can_have_claim(turn, &action->consumer) &&
                       (!action->domain || reconcile_adopts(turn->work.order, action->domain));
        seen = find_seen(turn->run, action->claim_id);
        return seen && claims_get(turn->work.claims, action->claim_id, &claim, NULL) == 0 &&
               applies_to(action, seen, claim);
}

/* Runs one action if it is_current(). effect gets the result. */
static void act(const Turn *turn, ReconcileAction *action, ReconcileEffect *effect)
{
        *effect = (ReconcileEffect){ .action = action };
        if (is_current(turn, action))
                reconcile_act(&turn->work, effect);
        else
                turn->run->is_outdated = true;
}

/* Keeps a failure: the first one, or the last one of the file. */
static void note_failure(ClaimReconcile *run, int result, const Error *words)
{
        if (run->failure == 0 || is_of_file(result))
                run->failure = forward(result, words, &run->words);
}

/* Logs and announces the effect of an action, and lists its problem. Returns -ENOMEM on failure. */
static int announce(const Turn *turn, const ReconcileEffect *effect)
{
        const ReconcileAction *action = effect->action;

        reconcile_announce(&turn->work, effect);
        /* Another program can have ended it since the claims were listed. */
        if (effect->result != 0 && effect->result != CLAIM_E_NOT_FOUND) {
                note_failure(turn->run, effect->result, &effect->words);
                return note(turn, action, action->claim_id, "", &effect->words);
        }
        return effect->problem
                       ? note(turn, action, effect->claim_id, effect->problem, &effect->words)
                       : 0;
}

/* Returns true if actions are left that change claims. Questions are the last ones. */
static bool has_action(const ClaimReconcile *run)
{
        return run->next < run->decided.n_actions &&
               run->decided.actions[run->next].type != RECONCILE_READ;
}

/* Runs actions until none is left, one of them cannot use the file, GROUP_USEC has passed, or
 * GROUP_MAX have run. Returns the error of the file, or 0. */
static int act_group(const Turn *turn, ReconcileEffect *effects, size_t *n)
{
        ClaimReconcile *run = turn->run;
        uint64_t end_usec = clock_usec(CLOCK_MONOTONIC) + GROUP_USEC;
        int r = 0;

        while (r == 0 && *n < GROUP_MAX && has_action(run) &&
               (*n == 0 || clock_usec(CLOCK_MONOTONIC) < end_usec)) {
                ReconcileEffect *effect = &effects[(*n)++];

                act(turn, &run->decided.actions[run->next++], effect);
                if (is_of_file(effect->result)) {
                        note_failure(run, effect->result, &effect->words);
                        r = effect->result;
                }
        }
        return r;
}

/* Runs some actions in one transaction, and announces their effects after its commit. If the commit
 * fails, each of them has failed, and no further one is tried in this comparison. Returns an error
 * only if the file cannot be used, no transaction can begin, or memory is short. */
static int act_some(const Turn *turn, Error *reterr)
{
        ClaimReconcile *run = turn->run;
        _cleanup_free_ ReconcileEffect *effects = calloc(GROUP_MAX, sizeof(ReconcileEffect));
        Error words = ERROR_NULL;
        size_t n = 0;
        int r, announced = 0;

        if (!effects)
                return error_oom(reterr);
        r = claims_begin_group(turn->work.claims, reterr);
        if (r < 0)
                return r;
        reconcile_list_released(&turn->work);
        r = act_group(turn, effects, &n);
        r = claims_end_group(turn->work.claims, r, &words);
        for (size_t i = 0; i < n; i++) {
                ReconcileEffect *effect = &effects[i];

                if (r < 0)
                        *effect = (ReconcileEffect){ .action = effect->action,
                                                     .before = effect->before,
                                                     .result = r,
                                                     .words = words };
                if (announced == 0 && !is_of_file(r))
                        announced = announce(turn, effect);
                reconcile_effect_done(effect);
        }
        if (is_of_file(r))
                return forward(r, run->failure ? &run->words : &words, reterr);
        if (r < 0)
                run->next = run->decided.n_actions;
        return announced < 0 ? error_oom(reterr) : 0;
}

/* Adds to the list "into" the problems of the list "from" that it does not have. */
static int merge(ReconcileProblems *into, ReconcileProblems *from)
{
        for (size_t i = 0; i < from->n_items; i++)
                if (!has_problem(into, &from->items[i].consumer, from->items[i].text) &&
                    reconcile_add_problem(into, &from->items[i].consumer, from->items[i].claim_id,
                                          "%s", from->items[i].text) < 0)
                        return -ENOMEM;
        return 0;
}

/* Follows the last action. Ends the comparison if answers of Placement are necessary, and begins
 * the check otherwise. Without actions, the first decision has all problems. */
static int end_acting(const Turn *turn, ClaimWanted *wanted, Error *reterr)
{
        ClaimReconcile *run = turn->run;
        Error words = ERROR_NULL;
        int r;

        run->stage = STAGE_END;
        if (wanted && collect_wanted(&run->decided, wanted) < 0)
                return error_oom(reterr);
        if (wanted && !claim_wanted_is_empty(wanted))
                return 0;
        if (run->failure == 0 && (r = end_unread(turn, &words)) != 0)
                note_failure(run, r, &words);
        run->is_check = true;
        if (run->decided.n_actions > 0)
                begin_listing(turn);
        return 0;
}

/* Replaces the problems of the service by those of this comparison, and logs the new ones. Without
 * memory the old ones stay. */
static int end_check(const Turn *turn, Error *reterr)
{
        ClaimReconcile *run = turn->run;
        ReconcileProblems *problems = &turn->work.service->comparison.problems;

        if (merge(&run->found, &run->decided.problems) < 0)
                return error_oom(reterr);
        log_problems(problems, &run->found);
        reconcile_problems_done(problems);
        *problems = TAKE_STRUCT(run->found);
        return 0;
}

static int step(const Turn *turn, ClaimWanted *wanted, Error *reterr)
{
        switch (turn->run->stage) {
        case STAGE_LIST:
                return list_some(turn, reterr);
        case STAGE_DECIDE:
                return decide(turn, reterr);
        case STAGE_ACT:
                return has_action(turn->run) ? act_some(turn, reterr)
                                             : end_acting(turn, wanted, reterr);
        case STAGE_END:
        default:
                return 0;
        }
}

int claim_reconcile(ClaimReconcile *run, ClaimService *service, const ReconcileInput *order,
                    ClaimWanted *wanted, Error *reterr)
{
        const Turn turn = {
                .work = { .service = service,
                          .order = order,
                          .claims = service->claims,
                          .released = &run->released },
                .run = run,
        };
        uint64_t end_usec = clock_usec(CLOCK_MONOTONIC) + TURN_USEC;
        int r;

        run->is_later = true;
        if (run->n_listings == 0)
                begin_listing(&turn);
        do
                r = step(&turn, wanted, reterr);
        while (r == 0 && run->stage != STAGE_END && clock_usec(CLOCK_MONOTONIC) < end_usec);
        if (r != 0)
                return r;
        if (run->stage != STAGE_END)
                return run->is_check ? CLAIM_RECONCILE_CHECKS : CLAIM_RECONCILE_MORE;
        r = run->is_check ? end_check(&turn, reterr) : 0;
        service->comparison.is_due = service->comparison.is_due || run->is_outdated;
        return r != 0 || run->failure == 0 ? r : forward(run->failure, &run->words, reterr);
}
