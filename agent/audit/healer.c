/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finding by finding: write → done, or conflict → read again → write, while no other program wrote.
 * A failure is its finding's alone; but when Placement is away, it is not asked for the others. */

#include "agent/audit/healer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/audit/evidence.h"
#include "agent/guests/claim-share.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "report/consumers.h"

#define EVACUATED_REASON "evacuated"
#define ATTEMPTS_MAX     3 /* to write one consumer */

struct Healer {
        HealerOrder order;
        size_t finding;         /* that is being healed */
        ClaimReported reported; /* how Placement has its consumer then */
        unsigned n_attempts;
        Uuid in_hand; /* claim_service_take_in_hand(); empty: none */
        Error away;   /* what every write meets from here on; code 0: Placement is not away */
        ConsumersCall *call;
        void (*done)(void *userdata);
        void *userdata;
};

static void let_go(Healer *healer)
{
        if (!uuid_empty(&healer->in_hand))
                claim_service_let_go(healer->order.claims, &healer->in_hand);
        healer->in_hand = (Uuid){ 0 };
}

Healer *healer_free(Healer *healer)
{
        if (!healer)
                return NULL;
        let_go(healer);
        consumers_cancel(healer->call);
        free(healer);
        return NULL;
}

size_t healer_get_position(const Healer *healer)
{
        return healer->finding;
}

static AuditFinding *current(Healer *healer)
{
        return &healer->order.audit->items[healer->finding];
}

static void note_failure(Healer *healer, int result, const Error *words)
{
        AuditFinding *finding = current(healer);

        finding->outcome = AUDIT_FAILED;
        error_setf(&finding->error, result < 0 ? result : EIO, "%s",
                   words->code || result > 0 ? words->text : strerror(-result));
        if (result > 0 && report_outcome_is_fatal(result))
                healer->away = finding->error;
}

/* Notes that a claim is written again: Placement has it from here on. It is an owed write that is
 * done (agent/placing/settle.c), which the queue looks at should this write fail. */
static void mark_sent(Healer *healer, const AuditFinding *finding)
{
        Claims *claims = healer->order.claims->claims;

        if (finding->type == AUDIT_UNTOLD && claims)
                (void)claims_set_write_state(claims, finding->claim_id, CLAIM_WRITE_WRITTEN,
                                             CLAIM_WRITE_SENT, &healer->reported, NULL);
}

/* Placement has what the claim holds, and the generation that it got by it. */
static void note_reported(Healer *healer, const AuditFinding *finding)
{
        Claims *claims = healer->order.claims->claims;
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (finding->remedy != AUDIT_REMEDY_WRITE_CLAIM || !claims ||
            claims_find(claims, &finding->consumer, false, &claim, NULL) != 0)
                return;
        (void)claims_set_write_state(claims, claim->id, claim->write_state,
                                     claim->write_state == CLAIM_WRITE_SENT ? CLAIM_WRITE_WRITTEN
                                                                            : claim->write_state,
                                     &healer->reported, NULL);
}

static void note_healed(Healer *healer)
{
        AuditFinding *finding = current(healer);
        const EventAuthor *by = healer->order.by;
        const EventNote note = { .kind = EVENT_HEALED,
                                 .by = by,
                                 .claim = finding->claim_id,
                                 .consumer = &finding->consumer,
                                 .reason = finding->text };
        char id[24];

        snprintf(id, sizeof(id), "%" PRId64, finding->claim_id);
        finding->outcome = AUDIT_HEALED;
        note_reported(healer, finding);
        claim_service_record(healer->order.claims, &note);
        log_event(LOG_NOTICE, MESSAGE_AUDIT_HEALED,
                  LOG_FIELDS(LOG_FIELD_CONSUMER, finding->consumer.text, LOG_FIELD_CALLER,
                             by ? by->text : NULL, LOG_FIELD_CLAIM,
                             finding->claim_id > 0 ? id : NULL),
                  finding->remedy == AUDIT_REMEDY_RELEASE_SHARE
                          ? "Removed allocations from Placement: %s. Evidence: %s."
                          : "Wrote the allocations of a claim to Placement: %s. Evidence: %s.",
                  finding->text, finding->evidence);
}

static int end_claim(Healer *healer, AuditFinding *finding)
{
        Claims *claims = healer->order.claims->claims;
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error error = ERROR_NULL;
        char id[24];
        int r = claims ? claims_release(claims, finding->claim_id, EVACUATED_REASON, &error)
                       : -ENODATA;

        if (r != 0)
                return r == CLAIM_E_NOT_FOUND ? 0 : (note_failure(healer, -EIO, &error), r);
        snprintf(id, sizeof(id), "%" PRId64, finding->claim_id);
        finding->outcome = AUDIT_HEALED;
        log_event(
                LOG_NOTICE, MESSAGE_CLAIM_EVACUATED,
                LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, finding->consumer.text),
                "Released claim %s: guest %s does not run here, and all that it holds in Placement is on other hosts.",
                id, finding->consumer.text);
        if (claims_get(claims, finding->claim_id, &claim, NULL) == 0)
                claim_service_notify(healer->order.claims, CLAIM_EVENT_REMOVED, claim);
        return 0;
}

/* The claim as it is now; NULL when the finding is of no living claim. */
static int get_claim(Healer *healer, const AuditFinding *finding, Claim **ret, Error *reterr)
{
        Claims *claims = healer->order.claims->claims;
        int r = claims ? claims_find(claims, &finding->consumer, false, ret, reterr) : -ENODATA;

        return r == CLAIM_E_NOT_FOUND ? 0 : r;
}

/* Takes this tree's part away; with a claim only what it is compared by. */
static int drop_share(const AuditInput *input, const Claim *claim, Consumer *consumer)
{
        for (size_t i = consumer->n_allocations; i > 0; i--) {
                const Uuid provider = consumer->allocations[i - 1].provider;
                _cleanup_(resources_done) Resources held = RESOURCES_INIT;

                if (!audit_own_provider(input, &provider))
                        continue;
                if (resources_copy(&held, &consumer->allocations[i - 1].resources) < 0)
                        return -ENOMEM;
                for (size_t j = 0; j < held.n_items; j++)
                        if ((!claim ||
                             audit_is_compared(input, claim, held.items[j].resource_class)) &&
                            consumer_set(consumer, &provider, held.items[j].resource_class, 0) < 0)
                                return -ENOMEM;
        }
        return 0;
}

/* Returns the first class of which after holds less than before in this tree, NULL if none. */
static const char *find_lowered(const AuditInput *input, const Consumer *before,
                                const Consumer *after)
{
        for (size_t i = 0; i < before->n_allocations; i++) {
                const Resources *held = &before->allocations[i].resources;

                for (size_t j = 0; j < held->n_items; j++)
                        if (audit_sum_here(input, after, held->items[j].resource_class) <
                            audit_sum_here(input, before, held->items[j].resource_class))
                                return held->items[j].resource_class;
        }
        return NULL;
}

/* Refuses a write that lowers an amount of a consumer which has a claim or a guest. The agent
 * writes for a claim what the claim holds, so a larger amount is another writer's. */
static int check_lowered(Healer *healer, const Claim *claim, const Consumer *before,
                         const Consumer *after, Error *reterr)
{
        const AuditInput *input = healer->order.input;
        const HostFacts *facts = healer->order.claims->facts;
        const HostDomain *domain = facts ? host_facts_find_domain(facts, &before->uuid) : NULL;
        const char *name = claim || domain ? find_lowered(input, before, after) : NULL;

        if (!name)
                return 0;
        return error_setf(reterr, EPERM,
                          "Refused to lower %.60s of %s from %" PRIu64 " to %" PRIu64
                          ": another writer set it, and the consumer has a %s",
                          name, before->uuid.text, audit_sum_here(input, before, name),
                          audit_sum_here(input, after, name), claim ? "claim" : "guest here");
}

/* Yields the consumer as a remedy leaves it, with its own project, user and generation. consumer:
 * whole, as Placement has it now; claim: as it is now, or NULL. The caller owns ret. Returns 1 if
 * there is nothing to write any more, -ENOMEM. */
static int edit(const AuditInput *input, AuditRemedy remedy, const Consumer *consumer,
                const Claim *claim, Consumer **ret)
{
        _cleanup_(consumer_freep) Consumer *edited = NULL;

        if (remedy == AUDIT_REMEDY_WRITE_CLAIM && !claim)
                return 1;
        if (consumer_copy(&edited, consumer) < 0 ||
            drop_share(input, remedy == AUDIT_REMEDY_WRITE_CLAIM ? claim : NULL, edited) < 0 ||
            (remedy == AUDIT_REMEDY_WRITE_CLAIM &&
             consumer_set_all(edited, claim->allocations, claim->n_allocations) < 0))
                return -ENOMEM;
        if (consumer_holds_equal(edited, consumer))
                return 1;
        *ret = TAKE_PTR(edited);
        return 0;
}

static void on_written(int result, ConsumersAnswer *answer, const Error *error, void *userdata);

/* How Placement has it when it is written. */
static int keep_reported(Healer *healer, const Consumer *edited, Error *reterr)
{
        Claims *claims = healer->order.claims->claims;
        const HostView *view;
        int r = claims ? claims_host(claims, &view, reterr) : -ENODATA;

        if (r == 0)
                healer->reported = claim_share_reported(view, edited, true);
        return r;
}

/* False while it is being claimed: that is looked at by the next audit. */
static bool take_in_hand(Healer *healer, const AuditFinding *finding)
{
        Error words;

        if (uuid_empty(&healer->in_hand) &&
            !claim_service_take_in_hand(healer->order.claims, &finding->consumer)) {
                error_setf(&words, EBUSY, "It is being claimed");
                note_failure(healer, REPORT_E_CONFLICT, &words);
                return false;
        }
        healer->in_hand = finding->consumer;
        return true;
}

/* 1 when a write is under way. */
static int write_consumer(Healer *healer, const AuditFinding *finding, Error *reterr)
{
        const Consumer *held = allocations_find(healer->order.consumers, &finding->consumer);
        _cleanup_(consumer_freep) Consumer *fresh = NULL, *edited = NULL;
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = get_claim(healer, finding, &claim, reterr);

        if (r != 0)
                return r < 0 ? r : -EBUSY;
        if (!take_in_hand(healer, finding))
                return 0;
        /* it was claimed since the audit, or the claim ended */
        if ((claim ? claim->id : 0) != finding->claim_id)
                return 0;
        if (!held && !claim)
                return 0;
        if (!held &&
            (consumer_new(&fresh, &claim->consumer) < 0 ||
             claim_share_name(fresh, claim->project_id, claim->user_id, claim->consumer_type) < 0))
                return error_oom(reterr);
        r = edit(healer->order.input, finding->remedy, held ? held : fresh, claim, &edited);
        if (r != 0)
                return r < 0 ? error_oom(reterr) : 0;
        if (held)
                r = check_lowered(healer, claim, held, edited, reterr);
        if (r < 0)
                return r;
        r = keep_reported(healer, edited, reterr);
        if (r != 0)
                return r < 0 ? r : -EBUSY;
        mark_sent(healer, finding);
        r = consumers_write(&healer->call, reporter_get_session(healer->order.reporter), edited,
                            NULL, on_written, healer, reterr);
        return r < 0 ? r : 1;
}

static void run(Healer *healer);

static void next_finding(Healer *healer)
{
        let_go(healer);
        healer->finding++;
        healer->n_attempts = 0;
        run(healer);
}

/* A write of ours may have been done though it was answered with a conflict: a connection that
 * breaks makes curl send it twice. */
static bool is_put_right(Healer *healer, const AuditFinding *finding)
{
        const Consumer *held = allocations_find(healer->order.consumers, &finding->consumer);
        _cleanup_(consumer_freep) Consumer *edited = NULL;
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (finding->remedy == AUDIT_REMEDY_RELEASE_SHARE)
                return !held || !audit_holds_here(healer->order.input, held);
        return held && get_claim(healer, finding, &claim, NULL) == 0 && claim &&
               edit(healer->order.input, finding->remedy, held, claim, &edited) == 1;
}

/* Takes the consumer as it is now; true when it was written since it was looked at. */
static bool replace_consumer(Healer *healer, Consumer **fresh)
{
        const Consumer *old = allocations_find(healer->order.consumers, &(*fresh)->uuid);
        bool written = (old ? old->generation : -1) != (*fresh)->generation;

        (void)allocations_remove(healer->order.consumers, &(*fresh)->uuid);
        if ((*fresh)->n_allocations > 0 && allocations_add(healer->order.consumers, *fresh) == 0)
                *fresh = NULL;
        return written;
}

/* A writer since the audit knows better than the finding. */
static void on_read_again(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        Healer *healer = userdata;
        Error words = ERROR_NULL;

        healer->call = NULL;
        if (result != REPORT_DONE) {
                note_failure(healer, result, error);
                next_finding(healer);
        } else if (!replace_consumer(healer, &answer->consumer)) {
                run(healer);
        } else {
                if (is_put_right(healer, current(healer))) {
                        note_healed(healer);
                } else {
                        error_setf(&words, EBUSY, "Somebody else wrote it meanwhile");
                        note_failure(healer, REPORT_E_CONFLICT, &words);
                }
                next_finding(healer);
        }
}

static void on_written(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        Healer *healer = userdata;
        const AuditFinding *finding = current(healer);
        Error words = *error;
        int r;

        healer->call = NULL;
        if (result == REPORT_E_CONFLICT && ++healer->n_attempts < ATTEMPTS_MAX) {
                r = consumers_read(&healer->call, reporter_get_session(healer->order.reporter),
                                   &finding->consumer, on_read_again, healer, &words);
                if (r >= 0)
                        return;
                result = r;
        }
        if (result == REPORT_DONE)
                note_healed(healer);
        else
                note_failure(healer, result, &words);
        next_finding(healer);
}

/* 1 when something is under way. */
static int heal_one(Healer *healer, AuditFinding *finding)
{
        Error error = ERROR_NULL;
        int r;

        if (healer->order.only && !uuid_equal(healer->order.only, &finding->consumer))
                return 0;
        if (finding->remedy == AUDIT_REMEDY_END_CLAIM) {
                (void)end_claim(healer, finding);
                return 0;
        }
        if (!healer->order.everything)
                return 0;
        if (finding->remedy == AUDIT_REMEDY_ADOPT) {
                claim_service_look_again(healer->order.claims);
                finding->outcome = AUDIT_HEALED;
                return 0;
        }
        if (finding->remedy == AUDIT_REMEDY_NONE)
                return 0;
        if (healer->away.code) {
                finding->outcome = AUDIT_FAILED;
                finding->error = healer->away;
                return 0;
        }
        r = healer->order.refused ? error_setf(&error, EPERM, "%s", healer->order.refused)
                                  : write_consumer(healer, finding, &error);
        if (r < 0)
                note_failure(healer, r, &error);
        return MAX(r, 0);
}

static void run(Healer *healer)
{
        while (healer->finding < healer->order.audit->n_items) {
                if (heal_one(healer, current(healer)) > 0)
                        return;
                let_go(healer);
                healer->finding++;
        }
        /* The healer may be gone after this. */
        healer->done(healer->userdata);
}

int healer_begin(Healer **ret, const HealerOrder *order, void (*done)(void *userdata),
                 void *userdata)
{
        Healer *healer = calloc(1, sizeof(Healer));

        if (!healer)
                return -ENOMEM;
        *healer = (Healer){ .order = *order, .done = done, .userdata = userdata };
        *ret = healer;
        run(healer);
        return 0;
}
