/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Applies the remedies of the findings in their order. A claim is ended in the database at once,
 * and an adoption is only requested. Each other remedy writes one consumer to Placement. Each write
 * has one of these ends: it is done; it fails; or it gets a conflict. After a conflict the consumer
 * is read again, except after that of the last write. If no other client wrote it, the write is
 * repeated, with at most ATTEMPTS_MAX writes in all. If another client wrote it, the finding fails,
 * or counts as healed if the difference is gone.
 *
 * A failure belongs to its finding alone. But after a failure that all writes would meet
 * (report_outcome_is_fatal()), the other writes fail without a request. A write that lowers an
 * amount from this tree is refused if the consumer has a guest, or a claim that explains its
 * allocations. The consumer of a write is reserved (claim_service_lock_consumer()) until the
 * finding is done. Until then, the claim queue makes no claim for it and settles no pending write
 * of it. PrepareGuest() and the comparison of guests can make a claim. Findings without a remedy,
 * those of other consumers than the named one, and without "everything" all but evacuated claims,
 * are skipped. */

#include "agent/audit/healer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/audit/evidence.h"
#include "agent/guests/claim-share.h"
#include "agent/guests/comparison.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "report/consumers.h"

#define EVACUATED_REASON "evacuated"
#define ATTEMPTS_MAX     3 /* limit of writes for one finding */

/* The state of the healing. */
struct Healer {
        HealerOrder order;
        ClaimReported reported; /* state of the present finding's consumer after the write, for the
                                   claim database */
        unsigned n_attempts;
        Uuid locked; /* reserved consumer: claim_service_lock_consumer(); empty: none */
        Error away;  /* error of all further writes; code 0: none */
        ConsumersCall *call;
        void (*done)(void *userdata);
        void *userdata;
};

/* Releases the consumer of the present finding. */
static void unlock_consumer(Healer *healer)
{
        if (!uuid_empty(&healer->locked))
                claim_service_unlock_consumer(healer->order.claims, &healer->locked);
        healer->locked = (Uuid){ 0 };
}

Healer *healer_free(Healer *healer)
{
        if (!healer)
                return NULL;
        unlock_consumer(healer);
        consumers_cancel(healer->call);
        free(healer);
        return NULL;
}

/* Returns the present finding: the first one that is not done. */
static AuditFinding *current(Healer *healer)
{
        return &healer->order.audit->items[healer->order.audit->n_done];
}

/* Sets the error of the present finding. An error that all writes would meet is kept. */
static void note_failure(Healer *healer, int result, const Error *words)
{
        AuditFinding *finding = current(healer);

        finding->outcome = AUDIT_FAILED;
        error_setf(&finding->error, result < 0 ? result : EIO, "%s",
                   words->code || result > 0 ? words->text : strerror(-result));
        if (result > 0 && report_outcome_is_fatal(result))
                healer->away = finding->error;
}

/* Marks the claim of an AUDIT_MISSING finding as sent, before the write is sent. If the write
 * fails, the claim is a pending write, which the queue handles (agent/placing/settle.c). */
static void mark_sent(Healer *healer, const AuditFinding *finding)
{
        Claims *claims = healer->order.claims->claims;

        if (finding->type == AUDIT_MISSING && claims)
                (void)claims_set_write_state(claims, finding->claim_id, CLAIM_WRITE_WRITTEN,
                                             CLAIM_WRITE_SENT, &healer->reported, NULL);
}

/* After AUDIT_REMEDY_WRITE_CLAIM, stores the state of the consumer in the claim database, and marks
 * a claim that was sent as written. */
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

/* Records in the claim database, the history and the journal that the present finding is healed. */
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

/* Returns true if the guest of the finding can be here: it runs, it can be a guest that is no
 * domain of the last poll, or its claim was made or returned to a caller since that poll began. */
static bool can_be_back(const Healer *healer, const AuditFinding *finding)
{
        const ClaimService *service = healer->order.claims;
        const HostDomain *domain =
                service->facts ? host_facts_find_domain(service->facts, &finding->consumer) : NULL;

        _cleanup_(claim_freep) Claim *claim = NULL;

        for (size_t i = 0; i < service->comparison.n_recent; i++)
                if (service->comparison.recent[i].claim_id == finding->claim_id)
                        return true;
        if (service->claims && claims_get(service->claims, finding->claim_id, &claim, NULL) == 0 &&
            claim_service_can_have_other(service, claim))
                return true;
        return domain && domain->running;
}

/* Ends the claim of an evacuated guest. The finding fails if the guest can be back, its consumer is
 * reserved, or the database fails. A claim that has ended already is no failure. */
static int end_claim(Healer *healer, AuditFinding *finding)
{
        Claims *claims = healer->order.claims->claims;
        const EventAuthor *by = healer->order.by;
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error error = ERROR_NULL;
        int r = -ENODATA;
        char id[24];

        if (can_be_back(healer, finding) ||
            !claim_service_lock_consumer(healer->order.claims, &finding->consumer)) {
                r = error_setf(&error, EBUSY, "The guest can be here, or a claim of it is made");
                note_failure(healer, REPORT_E_CONFLICT, &error);
                return r;
        }
        if (claims) {
                claims_set_author(claims, by);
                r = claims_release(claims, finding->claim_id, EVACUATED_REASON, &error);
                claims_set_author(claims, NULL);
        }
        claim_service_unlock_consumer(healer->order.claims, &finding->consumer);
        if (r != 0)
                return r == CLAIM_E_NOT_FOUND ? 0 : (note_failure(healer, -EIO, &error), r);
        snprintf(id, sizeof(id), "%" PRId64, finding->claim_id);
        finding->outcome = AUDIT_HEALED;
        log_event(
                LOG_NOTICE, MESSAGE_CLAIM_EVACUATED,
                LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, finding->consumer.text,
                           LOG_FIELD_CALLER, by ? by->text : NULL),
                "Released claim %s: guest %s does not run here, and all its allocations are on other hosts.",
                id, finding->consumer.text);
        if (claims_get(claims, finding->claim_id, &claim, NULL) == 0)
                claim_service_notify(healer->order.claims, CLAIM_EVENT_REMOVED, claim);
        return 0;
}

/* Returns the present claim of the finding's consumer in *ret. NULL: there is no living claim. */
static int get_claim(Healer *healer, const AuditFinding *finding, Claim **ret, Error *reterr)
{
        Claims *claims = healer->order.claims->claims;
        int r = claims ? claims_find(claims, &finding->consumer, false, ret, reterr) : -ENODATA;

        return r == CLAIM_E_NOT_FOUND ? 0 : r;
}

/* Removes the consumer's allocations from this tree. With a claim, only the classes are removed in
 * which the claim is compared. Without one, the allocations from sharing providers are removed,
 * too, if the consumer names no other host: no audit would find them later. All others stay. */
static int drop_share(const AuditInput *input, const Claim *claim, Consumer *consumer)
{
        bool whole = !claim && audit_names_no_other(input, consumer);

        for (size_t i = consumer->n_allocations; i > 0; i--) {
                const Uuid provider = consumer->allocations[i - 1].provider;
                _cleanup_(resources_done) Resources held = RESOURCES_INIT;

                if (!whole && !audit_own_provider(input, &provider))
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

/* Returns the first class of which after has less than before in this tree, or NULL. */
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

/* Rejects a write that lowers an amount from this tree of a consumer with a guest, or with a claim
 * that explains its allocations. The agent writes only the amounts of claims, so a larger amount
 * belongs to another writer. */
static int check_lowered(Healer *healer, const Claim *claim, const Consumer *before,
                         const Consumer *after, Error *reterr)
{
        const AuditInput *input = healer->order.input;
        const HostFacts *facts = healer->order.claims->facts;
        const HostDomain *domain = facts ? host_facts_find_domain(facts, &before->uuid) : NULL;
        bool is_owned = domain || audit_explains(claim);
        const char *name = is_owned ? find_lowered(input, before, after) : NULL;

        if (!name)
                return 0;
        return error_setf(reterr, EPERM,
                          "Refused to lower %.60s of %s from %" PRIu64 " to %" PRIu64
                          ". Another writer set it, and the consumer has a %s",
                          name, before->uuid.text, audit_sum_here(input, before, name),
                          audit_sum_here(input, after, name), claim ? "claim" : "guest here");
}

/* Sets the amounts of the claim. If Placement has allocations of the consumer, those from sharing
 * providers stay: an audit does not compare them, and another writer can have changed them. */
static int set_share(const AuditInput *input, const Claim *claim, bool is_held, Consumer *consumer)
{
        for (size_t i = 0; i < claim->n_allocations; i++)
                if ((!is_held || audit_own_provider(input, &claim->allocations[i].provider)) &&
                    consumer_set_all(consumer, &claim->allocations[i], 1) < 0)
                        return -ENOMEM;
        return 0;
}

/* Makes the consumer that a remedy leaves, with its own project, user and generation. consumer has
 * all of Placement's present allocations. claim is the present one, or NULL. The caller owns ret.
 * Returns 1 if nothing has to be written any more, or -ENOMEM. */
static int edit(const AuditInput *input, AuditRemedy remedy, const Consumer *consumer,
                const Claim *claim, Consumer **ret)
{
        _cleanup_(consumer_freep) Consumer *edited = NULL;

        if (remedy == AUDIT_REMEDY_WRITE_CLAIM ? !claim : !audit_holds_here(input, consumer))
                return 1;
        if (consumer_copy(&edited, consumer) < 0 ||
            drop_share(input, remedy == AUDIT_REMEDY_WRITE_CLAIM ? claim : NULL, edited) < 0 ||
            (remedy == AUDIT_REMEDY_WRITE_CLAIM &&
             set_share(input, claim, consumer->n_allocations > 0, edited) < 0))
                return -ENOMEM;
        if (consumer_holds_equal(edited, consumer))
                return 1;
        *ret = TAKE_PTR(edited);
        return 0;
}

static void on_written(int result, ConsumersAnswer *answer, const Error *error, void *userdata);

/* Computes the state that the consumer has after the write, by which the agent recognises its own
 * write later. */
static int keep_reported(Healer *healer, const Consumer *edited, Error *reterr)
{
        Claims *claims = healer->order.claims->claims;
        const HostView *view;
        int r = claims ? claims_host(claims, &view, reterr) : -ENODATA;

        if (r == 0)
                healer->reported = claim_share_reported(view, edited, true);
        return r;
}

/* Reserves the consumer of the finding. Returns false with a failed finding while the queue makes a
 * claim for it, or if memory is short; the next audit checks it again. A repeated attempt has the
 * reservation already. */
static bool lock_consumer(Healer *healer, const AuditFinding *finding)
{
        Error words;

        if (uuid_empty(&healer->locked) &&
            !claim_service_lock_consumer(healer->order.claims, &finding->consumer)) {
                error_setf(&words, EBUSY, "A claim for this consumer is in progress");
                note_failure(healer, REPORT_E_CONFLICT, &words);
                return false;
        }
        healer->locked = finding->consumer;
        return true;
}

/* Writes the consumer of the finding, after a last check against its claim. Returns 1 if a request
 * is on its way, or a negative errno. Returns 0 if nothing has to be written any more, if the claim
 * ended or was made since the audit, or if lock_consumer() set the failure. */
static int write_consumer(Healer *healer, const AuditFinding *finding, Error *reterr)
{
        const Consumer *held = allocations_find(healer->order.consumers, &finding->consumer);
        _cleanup_(consumer_freep) Consumer *fresh = NULL, *edited = NULL;
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = get_claim(healer, finding, &claim, reterr);

        if (r != 0)
                return r < 0 ? r : -EBUSY;
        if (!lock_consumer(healer, finding))
                return 0;
        /* A claim was made since the audit, or the claim ended. */
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

/* Continues with the next finding. */
static void next_finding(Healer *healer)
{
        unlock_consumer(healer);
        healer->order.audit->n_done++;
        healer->n_attempts = 0;
        run(healer);
}

/* Returns true if the difference of the finding is gone. A write can succeed and still get a
 * conflict as its answer: curl sends a request twice if the connection breaks. */
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

/* Replaces the stored consumer by the fresh one. Returns true if its generation shows a write since
 * it was read. */
static bool replace_consumer(Healer *healer, Consumer **fresh)
{
        const Consumer *old = allocations_find(healer->order.consumers, &(*fresh)->uuid);
        bool written = (old ? old->generation : -1) != (*fresh)->generation;

        (void)allocations_remove(healer->order.consumers, &(*fresh)->uuid);
        if ((*fresh)->n_allocations > 0 && allocations_add(healer->order.consumers, *fresh) == 0)
                *fresh = NULL;
        return written;
}

/* Handles the consumer after a conflict. A client that wrote it since the audit has newer knowledge
 * than the finding, so its write stays. */
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
                        error_setf(&words, EBUSY,
                                   "Another writer changed the allocations at the same time");
                        note_failure(healer, REPORT_E_CONFLICT, &words);
                }
                next_finding(healer);
        }
}

/* Handles the answer to a write. After a conflict the consumer is read again, until ATTEMPTS_MAX
 * writes were tried. */
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

/* Applies the remedy of one finding. Returns 1 if a request is on its way, 0 if the finding is
 * finished. */
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
        /* The next comparison of claims and guests makes the claim. */
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

/* Applies remedies until one needs to wait for an answer, or until all are done. */
static void run(Healer *healer)
{
        while (healer->order.audit->n_done < healer->order.audit->n_items) {
                if (heal_one(healer, current(healer)) > 0)
                        return;
                unlock_consumer(healer);
                healer->order.audit->n_done++;
                healer->n_attempts = 0;
        }
        /* The callback can free the healer. */
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
