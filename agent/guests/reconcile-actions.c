/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Adopts guests, and completes, extends, confirms, releases, places and checks claims, as
 * claims/reconcile.h decided. Each type of action, except RECONCILE_READ, has two functions in the
 * table "types". The first one writes to the database and fills an effect. The second one logs the
 * effect and notifies the watcher. The caller runs it after the commit, and only for a change that
 * was written, so that the log has no change that a crash undid. No function of this file reads
 * Placement: the caller passes the answers (ReconcileInput).
 *
 * Tests: tests/unit/agent/guests/test-reconcile.c */

#include "agent/guests/reconcile-actions.h"

#include <inttypes.h>
#include <string.h>

#include "agent/guests/claim-share.h"
#include "agent/guests/reconcile.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/claims.h"

/* With started_only, guests claim when they start. A poll that began up to this time after the end
 * of a claim can then still show its guest. */
#define POLL_AGE_USEC (30 * USEC_PER_SEC)

/* Extension of a claim where claims do not expire, except those whose caller gave a time. */
#define EXTEND_USEC (300 * USEC_PER_SEC)

static const ConsumerRead *find_answer(const ReconcileWork *work, const Uuid *consumer)
{
        return consumer_read_find(work->order->answers, work->order->n_answers, consumer);
}

/* Announces the event with the present state of the claim (claim_service_notify()). Does nothing if
 * the claim cannot be read. */
static void notify(const ReconcileWork *work, ClaimEvent event, int64_t id)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_get(work->claims, id, &claim, NULL) == 0)
                claim_service_notify(work->service, event, claim);
}

void reconcile_list_released(const ReconcileWork *work)
{
        uint64_t taken_usec = work->order->facts->taken_usec;
        uint64_t age_usec = work->order->started_only ? MIN(taken_usec, POLL_AGE_USEC) : 0;

        event_list_done(work->released);
        (void)claims_list_releases(work->claims, taken_usec - age_usec, work->released, NULL);
}

/* Returns true if a listed claim was the guest's own, or one that a migration took over from it.
 * The guest can be gone as well; the next poll shows it. Two kinds of end do not count. The end of
 * a claim that expired does not show that the guest is gone, because it can have started late. A
 * claim that ended because of a resize, or to be made again, ended because its guest is here. A
 * time of the future, after the clock was set back, is no evidence of a late end. */
static bool has_just_ended(const ReconcileWork *work, const Uuid *guest)
{
        uint64_t now = clock_usec(CLOCK_REALTIME);

        for (size_t i = 0; i < work->released->n_events; i++) {
                const Event *ended = &work->released->events[i];

                if ((strcmp(ended->consumer, guest->text) == 0 ||
                     strcmp(ended->guest, guest->text) == 0) &&
                    ended->usec <= now && strcmp(ended->reason, CLAIM_EXPIRED) != 0 &&
                    strcmp(ended->reason, CLAIM_RESIZED) != 0 &&
                    strcmp(ended->reason, CLAIM_RESIZE_OVER) != 0 &&
                    strcmp(ended->reason, CLAIM_FOLLOWED) != 0)
                        return true;
        }
        return false;
}

/* Stores the state that was read of the claim's consumer. If the consumer has an allocation here,
 * the claim needs no write any more. But a write state stays, and nothing is stored, if there is no
 * allocation here, or if an earlier claim left a removal that is pending. */
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
 * read. Sets *ret_completed to the consumer if the allocations of the claim changed. Does nothing
 * if the host is not known. */
static int complete(Claims *claims, const Claim *claim, const Consumer *consumer,
                    Uuid *ret_completed, Error *reterr)
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
        if (share)
                r = claims_complete(claims, claim->id, share, reterr);
        if (share && r == 0)
                *ret_completed = claim->consumer;
        return share && r != 0 ? r : note_read(claims, claim, &reported, here, reterr);
}

int claim_complete(Claims *claims, int64_t id, const Consumer *holding, Uuid *ret_completed,
                   Error *reterr)
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
        return complete(claims, claim, holding ? holding : nothing, ret_completed, reterr);
}

void claim_log_completed(int64_t id, const Uuid *consumer)
{
        if (!uuid_empty(consumer))
                log_info("Completed claim %" PRId64 " of %s with its allocation in Placement.", id,
                         consumer->text);
}

/* Actions. Each function writes, and fills the effect. It returns 0, an outcome of claims.h or a
 * negative errno, with the words of the effect. */

/* Makes a claim of a guest, unless a claim of it has just ended. The amounts of the new claim count
 * at once. If the consumer was not read yet, a later answer completes the claim. */
static int adopt(const ReconcileWork *work, ReconcileEffect *effect)
{
        const ReconcileAction *action = effect->action;
        const ConsumerRead *answer = find_answer(work, &action->consumer);
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r;

        if (has_just_ended(work, &action->consumer))
                return 0;
        r = claims_adopt(work->claims, action->domain, &claim, &effect->words);
        if (r < 0)
                return r;
        effect->done = claim != NULL;
        if (!claim || r != CLAIM_DONE)
                effect->problem = claim ? "" : " has no claim";
        if (!claim)
                return 0;
        effect->claim_id = claim->id;
        r = 0;
        if (answer) {
                Error words = ERROR_NULL;

                r = claim_complete(work->claims, claim->id, answer->holding, &effect->completed,
                                   &words);
                if (r != 0)
                        effect->words = words;
        }
        return r;
}

/* Logs and announces a claim that was made of a guest. */
static void announce_adopted(const ReconcileWork *work, const ReconcileEffect *effect)
{
        const ReconcileAction *action = effect->action;
        char id[24];

        claim_log_completed(effect->claim_id, &effect->completed);
        snprintf(id, sizeof(id), "%" PRId64, effect->claim_id);
        log_event(LOG_NOTICE, MESSAGE_CLAIM_ADOPTED,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, action->consumer.text),
                  "Guest %s (%s) had no claim; created claim %s from its domain.",
                  action->domain->name, action->consumer.text, id);
        notify(work, CLAIM_EVENT_ADDED, effect->claim_id);
}

static int complete_claim(const ReconcileWork *work, ReconcileEffect *effect)
{
        const ConsumerRead *answer = find_answer(work, &effect->action->consumer);
        int r = claim_complete(work->claims, effect->action->claim_id, answer->holding,
                               &effect->completed, &effect->words);

        effect->done = r == 0;
        return r;
}

static void announce_completed(const ReconcileWork *work, const ReconcileEffect *effect)
{
        claim_log_completed(effect->action->claim_id, &effect->completed);
        notify(work, CLAIM_EVENT_CHANGED, effect->action->claim_id);
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

/* Logs the release of a claim with Placement's amounts of the consumer, which the next claim of the
 * guest will have. */
static void log_followed(const ReconcileWork *work, const ReconcileAction *action, const char *id)
{
        const ConsumerRead *answer = find_answer(work, &action->consumer);
        _cleanup_free_ char *amounts =
                answer && answer->holding ? format_sums(answer->holding) : NULL;

        log_notice(
                "Released claim %s of %s: Placement has other amounts (%s). A new claim of the guest has them.",
                id, action->consumer.text, amounts ? amounts : "unknown");
}

static int release(const ReconcileWork *work, ReconcileEffect *effect)
{
        int r = claims_release(work->claims, effect->action->claim_id, effect->action->reason,
                               &effect->words);

        effect->done = r == 0;
        return r;
}

/* Logs the release of a claim with its reason and the evidence. */
static void announce_released(const ReconcileWork *work, const ReconcileEffect *effect)
{
        const ReconcileAction *action = effect->action;
        char id[24];

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
}

/* Extends a claim that expired while Placement has its allocations here, or its guest is here but
 * cannot be read. After the new time, which counts from the begin of the poll, it is decided again.
 */
static int extend(const ReconcileWork *work, ReconcileEffect *effect)
{
        uint64_t expiry = work->order->expiry_usec > 0 ? work->order->expiry_usec : EXTEND_USEC;
        int r = claims_extend(work->claims, effect->action->claim_id,
                              work->order->facts->taken_usec + expiry, &effect->words);

        effect->done = r == 0;
        /* A claim that was confirmed since the decision is left to the next comparison. */
        return r == CLAIM_E_CONFLICT ? 0 : r;
}

static void announce_extended(const ReconcileWork *work, const ReconcileEffect *effect)
{
        log_info("Claim %" PRId64 " of %s was not confirmed in time, but stays. %s.",
                 effect->action->claim_id, effect->action->consumer.text,
                 effect->action->domain ? "Its guest is here, and its domain cannot be read"
                                        : "Placement has its allocations here");
        notify(work, CLAIM_EVENT_CHANGED, effect->action->claim_id);
}

static int confirm(const ReconcileWork *work, ReconcileEffect *effect)
{
        int r = claims_confirm_guest(work->claims, effect->action->claim_id, effect->action->domain,
                                     &effect->words);

        effect->done = r == 0;
        return r;
}

static void announce_confirmed(const ReconcileWork *work, const ReconcileEffect *effect)
{
        log_notice("Confirmed claim %" PRId64 ": its guest is here (%s).", effect->action->claim_id,
                   effect->action->domain->name);
        notify(work, CLAIM_EVENT_CHANGED, effect->action->claim_id);
}

/* Logs the host CPUs that the first layout holds and the second one does not. */
static void log_cpus(const ReconcileWork *work, const ReconcileAction *action, const Layout *with,
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

/* Checks a claim against its guest again (claims_check_again()), and keeps the claim as it was
 * before for the log. A claim that does not fit is a problem, not a failure. It is announced if the
 * check wrote it, because it can have changed in other ways. */
static int check(const ReconcileWork *work, ReconcileEffect *effect)
{
        const ReconcileAction *action = effect->action;
        int r = claims_get(work->claims, action->claim_id, &effect->before, &effect->words);

        if (r == 0)
                r = claims_check_again(work->claims, action->claim_id, action->domain,
                                       &effect->done, &effect->words);
        if (r != CLAIM_E_NO_CAPACITY)
                return r;
        effect->problem = "";
        effect->claim_id = action->claim_id;
        return 0;
}

/* Logs some changes of a claim that was checked again: its boot, and its host CPUs. */
static void announce_checked(const ReconcileWork *work, const ReconcileEffect *effect)
{
        const ReconcileAction *action = effect->action;
        const Claim *before = effect->before;
        _cleanup_(claim_freep) Claim *after = NULL;

        if (strcmp(before->boot_id, claims_boot_id(work->claims)) != 0)
                log_info("Checked claim %" PRId64 " of an earlier boot again.", action->claim_id);
        if (claims_get(work->claims, action->claim_id, &after, NULL) == 0) {
                log_cpus(work, action, &after->layout, &before->layout,
                         "follows its guest, which is pinned to");
                log_cpus(work, action, &before->layout, &after->layout,
                         "follows its guest, which is no longer pinned to");
        }
        notify(work, CLAIM_EVENT_CHANGED, action->claim_id);
}

/* Makes a claim for a consumer without a guest, from its allocation in Placement, for a new claim
 * database. */
static int place(const ReconcileWork *work, ReconcileEffect *effect)
{
        const ConsumerRead *answer = find_answer(work, &effect->action->consumer);
        ClaimPlacing placing = { .holding = answer->holding, .write_state = CLAIM_WRITE_NONE };
        _cleanup_(claim_freep) Claim *claim = NULL;
        const HostView *view;
        int r = claims_host(work->claims, &view, &effect->words);

        if (r < 0)
                return r;
        placing.reported = claim_share_reported(view, answer->holding, false);
        r = claims_claim_placed(work->claims, &placing, &claim, &effect->words);
        if (r < 0)
                return r;
        effect->done = claim != NULL;
        if (claim)
                effect->claim_id = claim->id;
        if (!claim || r != CLAIM_DONE)
                effect->problem = claim ? "" : " has no claim";
        return 0;
}

static void announce_placed(const ReconcileWork *work, const ReconcileEffect *effect)
{
        const ReconcileAction *action = effect->action;
        char id[24];

        snprintf(id, sizeof(id), "%" PRId64, effect->claim_id);
        log_event(LOG_NOTICE, MESSAGE_CLAIM_PLACED,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, action->consumer.text),
                  "Consumer %s had no claim; created claim %s from its allocation in Placement.",
                  action->consumer.text, id);
        notify(work, CLAIM_EVENT_ADDED, effect->claim_id);
}

/* The functions of each type of action. RECONCILE_READ has none: the caller reads its consumer. */
static const struct {
        int (*act)(const ReconcileWork *work, ReconcileEffect *effect);
        void (*announce)(const ReconcileWork *work, const ReconcileEffect *effect);
} types[_RECONCILE_TYPE_MAX] = {
        [RECONCILE_ADOPT] = { adopt, announce_adopted },
        [RECONCILE_COMPLETE] = { complete_claim, announce_completed },
        [RECONCILE_EXTEND] = { extend, announce_extended },
        [RECONCILE_CONFIRM] = { confirm, announce_confirmed },
        [RECONCILE_RELEASE] = { release, announce_released },
        [RECONCILE_PLACE] = { place, announce_placed },
        [RECONCILE_CHECK] = { check, announce_checked },
};

void reconcile_act(const ReconcileWork *work, ReconcileEffect *effect)
{
        effect->result = types[effect->action->type].act(work, effect);
}

void reconcile_announce(const ReconcileWork *work, const ReconcileEffect *effect)
{
        if (effect->done)
                types[effect->action->type].announce(work, effect);
}
