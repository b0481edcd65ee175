/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* An audit goes gather → the consumers of claims that hold nothing here, one by one → decide →
 * heal, finding by finding → done. Claims are looked at again right before each write: one may have
 * come or gone while Placement was asked. */

#include "agent/auditor.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "agent/audit-json.h"
#include "agent/claim-build.h"
#include "agent/claim-share.h"
#include "agent/migration-match.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/claims-move.h"
#include "claims/claims-placement.h"
#include "report/consumers.h"

#define EVACUATED_REASON "evacuated"
#define ATTEMPTS_MAX     3 /* to write one consumer */

typedef enum AuditorKind {
        AUDITOR_LOOK,
        AUDITOR_START, /* also completes claims, and ends those of evacuated guests */
        AUDITOR_HEAL,
} AuditorKind;

struct Auditor {
        AuditorConfig config;
        bool at_start, asked, asked_heal;
        uint64_t n_cycles;   /* since it healed by itself */
        uint64_t built_usec; /* of the claim database that was looked at */
        AuditMemory memory;
        json_t *document;
        AuditSummary summary;
        Error error;

        /* while one runs */
        AuditorKind kind;
        Reporter *reporter;
        const Snapshot *snapshot;
        Allocations *consumers;
        ReshapeAlias *aliases;
        ClaimList claims;
        Uuid *wanted; /* consumers that are still to be read */
        size_t n_wanted, n_read;
        ConsumersCall *call;
        AuditInput input;
        Audit audit;
        AuditResult *results;
        size_t finding; /* that is being healed */
        ClaimTold told; /* how Placement has its consumer then */
        unsigned n_attempts;
        AuditorDone done;
        void *userdata;
};

static void read_next(Auditor *auditor);
static void heal_on(Auditor *auditor);

int auditor_new(Auditor **ret, const AuditorConfig *config)
{
        Auditor *auditor = calloc(1, sizeof(Auditor));

        if (!auditor)
                return -ENOMEM;
        auditor->config = *config;
        if (auditor->config.grace_usec == 0)
                auditor->config.grace_usec = AUDITOR_GRACE_USEC;
        auditor->at_start = config->at_start;
        *ret = auditor;
        return 0;
}

static void clear(Auditor *auditor)
{
        auditor->call = consumers_cancel(auditor->call);
        auditor->consumers = allocations_free(auditor->consumers);
        claim_list_done(&auditor->claims);
        audit_done(&auditor->audit);
        free(auditor->aliases);
        free(auditor->wanted);
        free(auditor->results);
        auditor->aliases = NULL;
        auditor->wanted = NULL;
        auditor->results = NULL;
        auditor->n_wanted = auditor->n_read = auditor->finding = 0;
}

Auditor *auditor_free(Auditor *auditor)
{
        if (!auditor)
                return NULL;
        clear(auditor);
        audit_memory_done(&auditor->memory);
        json_decref(auditor->document);
        free(auditor);
        return NULL;
}

void auditor_ask(Auditor *auditor, bool heal)
{
        auditor->asked = true;
        auditor->asked_heal = auditor->asked_heal || heal;
}

bool auditor_is_due(Auditor *auditor)
{
        uint64_t cycles = auditor->config.heal_cycles;

        if (claim_service_get_built_usec(auditor->config.claims) != auditor->built_usec)
                auditor->at_start = true;
        if (cycles > 0 && ++auditor->n_cycles >= cycles) {
                auditor->n_cycles = 0;
                return true;
        }
        return auditor->asked || auditor->at_start;
}

void auditor_give_up(Auditor *auditor, const Error *error)
{
        if (!auditor->asked)
                return;
        auditor->asked = auditor->asked_heal = false;
        auditor->error = *error;
}

const Error *auditor_get_error(const Auditor *auditor)
{
        return &auditor->error;
}

const AuditSummary *auditor_get_summary(const Auditor *auditor)
{
        return &auditor->summary;
}

const json_t *auditor_get_document(const Auditor *auditor)
{
        return auditor->document;
}

void auditor_get_progress(const Auditor *auditor, Progress *ret)
{
        if (auditor->results)
                *ret = (Progress){ "healing", auditor->finding, auditor->audit.n_items };
        else if (auditor->wanted)
                *ret = (Progress){ "reading claims", auditor->n_read, auditor->n_wanted };
        else
                reporter_get_progress(auditor->reporter, ret);
}

/* The end */

static int take_findings(Auditor *auditor)
{
        ReconcileProblems problems = { 0 };

        for (size_t i = 0; i < auditor->audit.n_items; i++) {
                const AuditFinding *finding = &auditor->audit.items[i];

                if (auditor->results[i].outcome == AUDIT_HEALED && finding->type != AUDIT_EVACUATED)
                        continue;
                if (reconcile_add_problem(&problems, &finding->consumer, finding->claim_id, "%s",
                                          finding->text) < 0) {
                        reconcile_problems_done(&problems);
                        return -ENOMEM;
                }
        }
        claim_service_set_findings(auditor->config.claims, &problems);
        return 0;
}

static uint64_t clock_usec(clockid_t clock)
{
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static void sum_up(Auditor *auditor)
{
        auditor->summary = (AuditSummary){ .ended_usec = clock_usec(CLOCK_REALTIME) };
        for (size_t i = 0; i < auditor->audit.n_items; i++)
                auditor->summary.n_open += auditor->results[i].outcome != AUDIT_HEALED;
}

static void finish(Auditor *auditor, const Error *error)
{
        json_t *document = NULL;

        auditor->error = error ? *error : ERROR_NULL;
        if (!error) {
                document = audit_to_json(&auditor->input, &auditor->audit, auditor->results);
                if (!document || take_findings(auditor) < 0)
                        error_oom(&auditor->error);
                sum_up(auditor);
                auditor->at_start = false;
                auditor->built_usec = claim_service_get_built_usec(auditor->config.claims);
        } else {
                log_debug("Placement could not be audited: %s", error->text);
        }
        if (document) {
                json_decref(auditor->document);
                auditor->document = document;
        }
        clear(auditor);
        /* The auditor may be gone after this. */
        auditor->done(auditor->userdata);
}

static void fail(Auditor *auditor, int result, const Error *words)
{
        Error error = *words;

        if (!error.code)
                error_setf(&error, result < 0 ? result : EIO, "%s",
                           result < 0 ? strerror(-result) : report_outcome_to_text(result));
        finish(auditor, &error);
}

/* Healing */

static AuditResult *result_of(Auditor *auditor)
{
        return &auditor->results[auditor->finding];
}

static void note_failure(Auditor *auditor, int result, const Error *words)
{
        AuditResult *note = result_of(auditor);

        note->outcome = AUDIT_FAILED;
        error_setf(&note->error, result < 0 ? result : EIO, "%s",
                   words->code || result > 0 ? words->text : strerror(-result));
        /* the others cannot go better */
        if (!report_outcome_is_fatal(result))
                return;
        for (size_t i = auditor->finding + 1; i < auditor->audit.n_items; i++)
                auditor->results[i] = *note;
        auditor->finding = auditor->audit.n_items;
}

/* What nobody wrote is ours from here on, and goes when the claim ends: as a debt that is paid
 * (agent/claim-errand.c), which the desk looks at should this write fail. */
static void mark_untold(Auditor *auditor, const AuditFinding *finding)
{
        Claims *claims = claim_service_get(auditor->config.claims);

        if (finding->type == AUDIT_UNTOLD && claims)
                (void)claims_set_standing(claims, finding->claim_id, CLAIM_STANDING_NONE,
                                          CLAIM_STANDING_SENT, &auditor->told, NULL);
}

/* Placement has what the claim holds, and the generation that it got by it. */
static void note_told(Auditor *auditor, const AuditFinding *finding)
{
        Claims *claims = claim_service_get(auditor->config.claims);
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (finding->remedy != AUDIT_REMEDY_WRITE_CLAIM || !claims ||
            claims_find(claims, &finding->consumer, false, &claim, NULL) != 0)
                return;
        (void)claims_set_standing(claims, claim->id, claim->standing,
                                  claim->standing == CLAIM_STANDING_SENT ? CLAIM_STANDING_WRITTEN
                                                                         : claim->standing,
                                  &auditor->told, NULL);
}

static void note_healed(Auditor *auditor)
{
        const AuditFinding *finding = &auditor->audit.items[auditor->finding];

        result_of(auditor)->outcome = AUDIT_HEALED;
        note_told(auditor, finding);
        log_event(LOG_NOTICE, MESSAGE_AUDIT_HEALED,
                  LOG_FIELDS(LOG_FIELD_CONSUMER, finding->consumer.text),
                  finding->remedy == AUDIT_REMEDY_RELEASE_SHARE
                          ? "Removed from Placement what has no owner here: %s."
                          : "Told Placement what the claim holds: %s.",
                  finding->text);
}

static int end_claim(Auditor *auditor, const AuditFinding *finding)
{
        Claims *claims = claim_service_get(auditor->config.claims);
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error error = ERROR_NULL;
        char id[24];
        int r = claims ? claims_release(claims, finding->claim_id, EVACUATED_REASON, &error)
                       : -ENODATA;

        if (r != 0)
                return r == CLAIM_E_NOT_FOUND ? 0 : (note_failure(auditor, -EIO, &error), r);
        snprintf(id, sizeof(id), "%" PRId64, finding->claim_id);
        result_of(auditor)->outcome = AUDIT_HEALED;
        log_event(LOG_NOTICE, MESSAGE_CLAIM_EVACUATED,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, finding->consumer.text),
                  "Released claim %s: guest %s does not run here, and all that it holds in "
                  "Placement is on other hosts.",
                  id, finding->consumer.text);
        if (claims_get(claims, finding->claim_id, &claim, NULL) == 0)
                claim_service_tell(auditor->config.claims, CLAIM_EVENT_REMOVED, claim);
        return 0;
}

/* The claim as it is now; NULL when the finding is of no living claim. */
static int get_claim(Auditor *auditor, const AuditFinding *finding, Claim **ret, Error *reterr)
{
        Claims *claims = claim_service_get(auditor->config.claims);
        int r = claims ? claims_find(claims, &finding->consumer, false, ret, reterr) : -ENODATA;

        return r == CLAIM_E_NOT_FOUND ? 0 : r;
}

static int make_new_consumer(const Claim *claim, Consumer **ret)
{
        _cleanup_(consumer_freep) Consumer *consumer = NULL;

        if (consumer_new(&consumer, &claim->consumer) < 0)
                return -ENOMEM;
        consumer->project_id =
                strdup(claim->project_id[0] ? claim->project_id : CONSUMER_UNKNOWN_ID);
        consumer->user_id = strdup(claim->user_id[0] ? claim->user_id : CONSUMER_UNKNOWN_ID);
        consumer->type = strdup(claim->consumer_type[0] ? claim->consumer_type : "INSTANCE");
        if (!consumer->project_id || !consumer->user_id || !consumer->type)
                return -ENOMEM;
        *ret = TAKE_PTR(consumer);
        return 0;
}

static void on_written(int result, ConsumersAnswer *answer, const Error *error, void *userdata);

/* How Placement has it when it is written. */
static int keep_told(Auditor *auditor, const Consumer *edited, Error *reterr)
{
        Claims *claims = claim_service_get(auditor->config.claims);
        const HostView *view;
        int r = claims ? claims_host(claims, &view, reterr) : -ENODATA;

        if (r == 0)
                auditor->told = claim_share_told(view, edited, true);
        return r;
}

/* 1 when a write is under way. */
static int write_consumer(Auditor *auditor, const AuditFinding *finding, Error *reterr)
{
        const Consumer *held = allocations_find(auditor->consumers, &finding->consumer);
        _cleanup_(consumer_freep) Consumer *fresh = NULL, *edited = NULL;
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = get_claim(auditor, finding, &claim, reterr);

        if (r != 0)
                return r < 0 ? r : -EBUSY;
        /* it was claimed meanwhile, or the claim ended */
        if ((finding->remedy == AUDIT_REMEDY_RELEASE_SHARE) == (claim != NULL))
                return 0;
        if (!held && !claim)
                return 0;
        if (!held && make_new_consumer(claim, &fresh) < 0)
                return error_oom(reterr);
        r = audit_edit(&auditor->input, finding->remedy, held ? held : fresh, claim, &edited);
        if (r != 0)
                return r < 0 ? error_oom(reterr) : 0;
        r = keep_told(auditor, edited, reterr);
        if (r != 0)
                return r < 0 ? r : -EBUSY;
        mark_untold(auditor, finding);
        r = consumers_write(&auditor->call, reporter_get_session(auditor->reporter), edited, NULL,
                            on_written, auditor, reterr);
        return r < 0 ? r : 1;
}

static void next_finding(Auditor *auditor)
{
        auditor->finding++;
        auditor->n_attempts = 0;
        heal_on(auditor);
}

/* A write of ours may have been done though it was answered with a conflict: a connection that
 * breaks makes curl send it twice. */
static bool is_put_right(Auditor *auditor, const AuditFinding *finding)
{
        const Consumer *held = allocations_find(auditor->consumers, &finding->consumer);
        _cleanup_(consumer_freep) Consumer *edited = NULL;
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (finding->remedy == AUDIT_REMEDY_RELEASE_SHARE)
                return !held || !audit_holds_here(&auditor->input, held);
        return held && get_claim(auditor, finding, &claim, NULL) == 0 && claim &&
               audit_edit(&auditor->input, finding->remedy, held, claim, &edited) == 1;
}

/* Takes the consumer as it is now; true when it was written since it was looked at. */
static bool replace_consumer(Auditor *auditor, Consumer **fresh)
{
        const Consumer *old = allocations_find(auditor->consumers, &(*fresh)->uuid);
        bool written = (old ? old->generation : -1) != (*fresh)->generation;

        (void)allocations_remove(auditor->consumers, &(*fresh)->uuid);
        if ((*fresh)->n_allocations > 0 && allocations_add(auditor->consumers, *fresh) == 0)
                *fresh = NULL;
        return written;
}

/* Who wrote it meanwhile knows better than what was found before. */
static void on_read_again(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        Auditor *auditor = userdata;
        Error words = ERROR_NULL;

        auditor->call = NULL;
        if (result != REPORT_DONE) {
                note_failure(auditor, result, error);
                next_finding(auditor);
        } else if (!replace_consumer(auditor, &answer->consumer)) {
                heal_on(auditor);
        } else {
                if (is_put_right(auditor, &auditor->audit.items[auditor->finding])) {
                        note_healed(auditor);
                } else {
                        error_setf(&words, EBUSY, "Somebody else wrote it meanwhile");
                        note_failure(auditor, REPORT_E_CONFLICT, &words);
                }
                next_finding(auditor);
        }
}

static void on_written(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        Auditor *auditor = userdata;
        const AuditFinding *finding = &auditor->audit.items[auditor->finding];
        Error words = *error;
        int r;

        auditor->call = NULL;
        if (result == REPORT_E_CONFLICT && ++auditor->n_attempts < ATTEMPTS_MAX) {
                r = consumers_read(&auditor->call, reporter_get_session(auditor->reporter),
                                   &finding->consumer, on_read_again, auditor, &words);
                if (r >= 0)
                        return;
                result = r;
        }
        if (result == REPORT_DONE)
                note_healed(auditor);
        else
                note_failure(auditor, result, &words);
        next_finding(auditor);
}

/* 1 when something is under way. */
static int heal_one(Auditor *auditor, const AuditFinding *finding)
{
        Error error = ERROR_NULL;
        int r;

        if (finding->remedy == AUDIT_REMEDY_END_CLAIM) {
                (void)end_claim(auditor, finding);
                return 0;
        }
        if (auditor->kind != AUDITOR_HEAL)
                return 0;
        if (finding->remedy == AUDIT_REMEDY_ADOPT) {
                claim_service_look_again(auditor->config.claims);
                result_of(auditor)->outcome = AUDIT_HEALED;
                return 0;
        }
        if (finding->remedy == AUDIT_REMEDY_NONE)
                return 0;
        r = write_consumer(auditor, finding, &error);
        if (r < 0)
                note_failure(auditor, r, &error);
        return MAX(r, 0);
}

static void heal_on(Auditor *auditor)
{
        while (auditor->finding < auditor->audit.n_items) {
                if (heal_one(auditor, &auditor->audit.items[auditor->finding]) > 0)
                        return;
                auditor->finding++;
        }
        finish(auditor, NULL);
}

/* Deciding */

/* Made of a guest, since the database was made anew. */
static bool is_built(const Auditor *auditor, const Claim *claim)
{
        uint64_t built_usec = claim_service_get_built_usec(auditor->config.claims);

        if (built_usec == 0 || claim->created_usec < built_usec || claim->project_id[0] ||
            claim->state != CLAIM_STATE_CONFIRMED || claim->resize_target)
                return false;
        for (size_t i = 0; i < claim->n_mappings; i++)
                if (claim->mappings[i].suffix[0])
                        return false;
        return true;
}

static int build_one(Auditor *auditor, Claims *claims, const Claim *claim, Error *reterr)
{
        const Consumer *consumer = allocations_find(auditor->consumers, &claim->consumer);
        _cleanup_(consumer_freep) Consumer *share = NULL;
        int r;

        if (!is_built(auditor, claim) || !consumer || !audit_holds_here(&auditor->input, consumer))
                return 0;
        r = claim_build_share(claim, consumer, auditor->input.tree, &auditor->input.root, &share);
        if (r != 0)
                return r < 0 ? error_oom(reterr) : 0;
        r = claims_settle(claims, claim->id, share, reterr);
        if (r == CLAIM_E_NOT_FOUND)
                return 0;
        if (r == 0)
                log_info("Completed claim %" PRId64 " of %s by what Placement has of it.",
                         claim->id, claim->consumer.text);
        return r;
}

static int build(Auditor *auditor, Claims *claims, Error *reterr)
{
        for (size_t i = 0; i < auditor->claims.n_claims; i++) {
                int r = build_one(auditor, claims, auditor->claims.claims[i], reterr);

                if (r != 0)
                        return r;
        }
        claim_list_done(&auditor->claims);
        return claims_list(claims, false, &auditor->claims, reterr);
}

/* Guests that are not to be taken for new ones. */
static int note_away(Auditor *auditor)
{
        Uuid *away = calloc(auditor->audit.n_items + 1, sizeof(Uuid));
        size_t n = 0;

        if (!away)
                return -ENOMEM;
        for (size_t i = 0; i < auditor->audit.n_items; i++)
                if (auditor->audit.items[i].type == AUDIT_EVACUATED)
                        away[n++] = auditor->audit.items[i].consumer;
        claim_service_set_away(auditor->config.claims, away, n);
        return 0;
}

static void log_findings(const Auditor *auditor)
{
        if (auditor->audit.n_items > 0 && auditor->kind == AUDITOR_START)
                log_event(LOG_WARNING, MESSAGE_AUDIT_FINDINGS, NULL,
                          "Placement, claims and guests disagree in %zu point(s); \"computectl "
                          "audit\" lists them. First: %s.",
                          auditor->audit.n_items, auditor->audit.items[0].text);
}

static int decide(Auditor *auditor, Error *reterr)
{
        Claims *claims = claim_service_get(auditor->config.claims);
        int r = 0;

        if (!claims)
                return error_setf(reterr, ENODATA, "The claims cannot be used");
        if (auditor->kind == AUDITOR_START)
                r = build(auditor, claims, reterr);
        if (r != 0)
                return r;
        if (audit_make(&auditor->input, &auditor->memory, &auditor->audit) < 0 ||
            !(auditor->results = calloc(auditor->audit.n_items + 1, sizeof(AuditResult))) ||
            (auditor->kind != AUDITOR_LOOK && note_away(auditor) < 0))
                return error_oom(reterr);
        log_findings(auditor);
        return 0;
}

static void go_on(Auditor *auditor)
{
        Error error = ERROR_NULL;
        int r = decide(auditor, &error);

        if (r != 0)
                fail(auditor, r < 0 ? r : -EBUSY, &error);
        else if (auditor->kind == AUDITOR_LOOK)
                finish(auditor, NULL);
        else
                heal_on(auditor);
}

/* Reading */

static void on_consumer(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        Auditor *auditor = userdata;

        auditor->call = NULL;
        if (result == REPORT_DONE && answer->consumer->n_allocations > 0) {
                result = allocations_add(auditor->consumers, answer->consumer);
                if (result == 0)
                        answer->consumer = NULL;
        }
        if (result != REPORT_DONE)
                fail(auditor, result, error);
        else
                read_next(auditor);
}

static void read_next(Auditor *auditor)
{
        Error error = ERROR_NULL;
        int r;

        if (auditor->n_read >= auditor->n_wanted) {
                go_on(auditor);
                return;
        }
        r = consumers_read(&auditor->call, reporter_get_session(auditor->reporter),
                           &auditor->wanted[auditor->n_read++], on_consumer, auditor, &error);
        if (r < 0)
                fail(auditor, r, &error);
}

static bool is_wanted(const Auditor *auditor, const Uuid *consumer)
{
        for (size_t i = 0; i < auditor->n_wanted; i++)
                if (uuid_equal(&auditor->wanted[i], consumer))
                        return false;
        return !allocations_find(auditor->consumers, consumer);
}

/* A consumer that says that it is none is no migration, however like a guest it is. */
static void drop_instances(Auditor *auditor, size_t n)
{
        size_t kept = 0;

        for (size_t i = 0; i < n; i++) {
                const Consumer *consumer =
                        allocations_find(auditor->consumers, &auditor->aliases[i].consumer);

                if (consumer->type && strcmp(consumer->type, "MIGRATION") != 0 &&
                    strcmp(consumer->type, "unknown") != 0)
                        continue;
                auditor->aliases[kept++] = auditor->aliases[i];
        }
        auditor->input.n_aliases = kept;
}

static int prepare(Auditor *auditor, Error *reterr)
{
        Claims *claims = claim_service_get(auditor->config.claims);
        size_t n_aliases = 0;
        int r;

        if (!claims)
                return error_setf(reterr, ENODATA, "The claims cannot be used");
        r = claims_list(claims, false, &auditor->claims, reterr);
        if (r != 0)
                return r;
        auditor->wanted = calloc(auditor->claims.n_claims + 1, sizeof(Uuid));
        if (!auditor->wanted ||
            migration_match(auditor->consumers, auditor->snapshot, &auditor->claims,
                            &auditor->aliases, &n_aliases) < 0)
                return error_oom(reterr);
        drop_instances(auditor, n_aliases);
        for (size_t i = 0; i < auditor->claims.n_claims; i++)
                if (is_wanted(auditor, &auditor->claims.claims[i]->consumer))
                        auditor->wanted[auditor->n_wanted++] = auditor->claims.claims[i]->consumer;
        auditor->input.consumers = auditor->consumers;
        auditor->input.aliases = auditor->aliases;
        auditor->input.claims = &auditor->claims;
        auditor->input.now_usec = clock_usec(CLOCK_REALTIME);
        auditor->input.boot_usec = clock_usec(CLOCK_BOOTTIME);
        return 0;
}

static void on_gathered(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Auditor *auditor = userdata;
        Allocations *others = NULL;
        Error words = *error;

        reporter_take_gathered(reporter, &auditor->consumers, &others);
        allocations_free(others);
        if (result == 0)
                result = prepare(auditor, &words);
        if (result != 0)
                fail(auditor, result, &words);
        else
                read_next(auditor);
}

int auditor_begin(Auditor *auditor, Reporter *reporter, const Snapshot *snapshot, AuditorDone done,
                  void *userdata, Error *reterr)
{
        const HostFacts *facts = claim_service_get_facts(auditor->config.claims);
        bool heal = auditor->asked_heal || (!auditor->asked && !auditor->at_start);
        int r;

        if (!facts)
                return error_setf(reterr, ENODATA, "The guests of this host are not known yet");
        auditor->kind = auditor->at_start ? AUDITOR_START : AUDITOR_LOOK;
        if (heal)
                auditor->kind = AUDITOR_HEAL;
        auditor->reporter = reporter;
        auditor->snapshot = snapshot;
        auditor->done = done;
        auditor->userdata = userdata;
        auditor->input = (AuditInput){
                .tree = reporter_tree(reporter),
                .root = auditor->config.root,
                .facts = facts,
                .grace_usec = auditor->config.grace_usec,
                .started_only = claim_service_is_started_only(auditor->config.claims),
        };
        r = reporter_gather(reporter, NULL, NULL, on_gathered, auditor);
        if (r < 0)
                return error_setf(reterr, r, "Placement cannot be read: %s", strerror(-r));
        auditor->asked = auditor->asked_heal = false;
        return 0;
}
