/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs one audit at a time, as a chain of callbacks. The audit first gathers the consumers of the
 * tree (on_gathered()), and reads claims and history from the claim database. Then it reads the
 * consumers of claims and stopped guests without an allocation here, one after the other
 * (on_consumer()). If gathered consumers have events, a consumer that does not exist is read last,
 * as a clock (is_clock()). Then it makes the findings (compare_some()), and completes claims
 * (complete_some()). An audit of the kind AUDITOR_START and one that heals pass the evacuated
 * guests to the claim service, so that these are not adopted, and the findings to
 * agent/audit/healer.h. The last stage makes the document for D-Bus and the list of problems for
 * people, and stores both (finish()). An error ends the audit with fail(), except that of a remedy
 * or of the completion of a claim. The function fail() stores the error, keeps the last results,
 * and leaves the audit of a start due. If memory is short in finish() itself, the error is stored,
 * too, but the audit of a start is over.
 *
 * A host can have thousands of guests, so the stages without requests take several turns of the
 * main loop (on_next()). Between two turns a newer poll can replace the facts of the guests. The
 * comparison or the document then begins again, the BEGUN_MAX-th time without a further pause.
 *
 * The members after "While one runs" are valid only during an audit, and clear() frees them at its
 * end. The members memory (AuditMemory) and state, which has the results, outlive the audit. */

#include "agent/audit/auditor.h"

#include <errno.h>
#include <string.h>

#include "agent/audit/document.h"
#include "agent/audit/evidence.h"
#include "agent/audit/healer.h"
#include "agent/guests/process.h"
#include "agent/guests/reconcile.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"
#include "report/consumers.h"

/* The work of one turn of the main loop ends at the first step that ends after TURN_USEC. A step of
 * the comparison or the document looks at about STEP_SIZE things. A pause follows. */
#define TURN_USEC       (5 * USEC_PER_MSEC)
#define TURN_PAUSE_USEC USEC_PER_MSEC
#define STEP_SIZE       64
#define COMPLETED_MAX   16 /* claims that are completed in one transaction, which is one step */
#define BEGUN_MAX       3

/* The kind of the audit that runs. */
typedef enum AuditorKind {
        AUDITOR_AUDIT,
        AUDITOR_START, /* at a start or with a new database: ends claims of evacuated guests, and
                          applies no other remedy */
        AUDITOR_HEAL,
} AuditorKind;

/* The work of an audit that needs turns of the main loop. */
typedef enum AuditorStage {
        STAGE_LIST,     /* reads the claims */
        STAGE_HISTORY,  /* reads the events of the gathered consumers, then the ended claims */
        STAGE_COMPARE,  /* compares Placement, claims and guests */
        STAGE_COMPLETE, /* completes claims, and begins to heal */
        STAGE_DESCRIBE, /* writes the document */
} AuditorStage;

struct Auditor {
        AuditorConfig config;
        sd_event_source *next; /* begins the next turn */
        bool at_start, asked, asked_heal;
        bool is_left;         /* the audit of the start left an evacuated guest unchanged */
        Uuid asked_consumer;  /* consumer that will be healed; empty: none */
        EventAuthor asked_by; /* caller of the last request to heal; "": none */
        uint64_t n_cycles;    /* number of cycles since the last audit by heal_cycles */
        uint64_t built_usec;  /* ClaimService.built_usec when the last audit of a start, or that
                                 heals all, began */
        AuditMemory memory;
        AuditorState state;

        /* While one runs */
        AuditorKind kind;
        EventAuthor by; /* caller who requested to heal; "": none */
        Reporter *reporter;
        Allocations *consumers;
        ClaimList claims, ended;
        EventList history; /* events of the gathered consumers, newest first */
        Uuid clock;        /* a consumer that does not exist: see is_clock(); empty: none */
        Uuid named;        /* the consumer that is healed; empty: none */
        bool heals_all;
        Uuid *pools;  /* sharing providers of this host */
        Uuid *wanted; /* consumers that must be read besides the gathered ones */
        size_t n_wanted, n_read;
        size_t n_checked; /* claims that were checked for a completion */
        ConsumersCall *call;
        AuditInput input;
        AuditorStage stage;
        int64_t before;          /* id of the last event that was read; INT64_MAX: none */
        uint64_t n_facts;        /* ClaimService.n_facts at the begin of run or document */
        unsigned n_begun;        /* how often run or document was begun */
        AuditRun *run;           /* NULL: none */
        AuditDocument *document; /* NULL: none */
        Audit audit;
        Healer *healer;
        void (*done)(void *userdata);
        void *userdata;
};

/* Frees the members of the audit that runs, and cancels the requests that read or write one
 * consumer. */
static void clear(Auditor *auditor)
{
        (void)sd_event_source_set_enabled(auditor->next, SD_EVENT_OFF);
        auditor->healer = healer_free(auditor->healer);
        auditor->call = consumers_cancel(auditor->call);
        auditor->run = audit_run_free(auditor->run);
        auditor->document = audit_document_free(auditor->document);
        auditor->consumers = allocations_free(auditor->consumers);
        claim_list_done(&auditor->claims);
        claim_list_done(&auditor->ended);
        event_list_done(&auditor->history);
        audit_done(&auditor->audit);
        free(auditor->pools);
        free(auditor->wanted);
        auditor->pools = auditor->wanted = NULL;
        auditor->n_wanted = auditor->n_read = auditor->n_checked = 0;
}

Auditor *auditor_free(Auditor *auditor)
{
        if (!auditor)
                return NULL;
        clear(auditor);
        sd_event_source_disable_unref(auditor->next);
        free(auditor->memory.items);
        free(auditor->state.document);
        reconcile_problems_done(&auditor->state.findings);
        free(auditor);
        return NULL;
}

/* The callback of the timer, which exists from the begin. */
static int on_next(sd_event_source *source, uint64_t usec, void *userdata);

int auditor_new(Auditor **ret, sd_event *event, const AuditorConfig *config)
{
        _cleanup_(auditor_freep) Auditor *auditor = calloc(1, sizeof(Auditor));

        if (!auditor ||
            sd_event_add_time(event, &auditor->next, CLOCK_MONOTONIC, 0, 1, on_next, auditor) < 0 ||
            sd_event_source_set_enabled(auditor->next, SD_EVENT_OFF) < 0)
                return -ENOMEM;
        auditor->config = *config;
        if (auditor->config.grace_usec == 0)
                auditor->config.grace_usec = AUDITOR_GRACE_USEC;
        auditor->at_start = config->at_start;
        *ret = TAKE_PTR(auditor);
        return 0;
}

void auditor_inherit(Auditor *auditor, Auditor *before)
{
        auditor->at_start = before->at_start;
        auditor->is_left = before->is_left;
        auditor->built_usec = before->built_usec;
        auditor->memory = TAKE_STRUCT(before->memory);
        auditor->state = TAKE_STRUCT(before->state);
}

void auditor_ask(Auditor *auditor, bool heals, const Uuid *consumer, const EventAuthor *by)
{
        auditor->asked = true;
        auditor->asked_heal = auditor->asked_heal || (heals && !consumer);
        if (heals && consumer)
                auditor->asked_consumer = *consumer;
        if (heals)
                auditor->asked_by = by ? *by : (EventAuthor){ 0 };
}

void auditor_spare(Auditor *auditor, uint64_t ended_usec)
{
        auditor->at_start = false;
        auditor->state.ended_usec = ended_usec;
}

bool auditor_is_due(Auditor *auditor, const char *waits)
{
        uint64_t cycles = auditor->config.heal_cycles;

        if (auditor->config.claims->built_usec != auditor->built_usec)
                auditor->at_start = true;
        if (auditor->is_left && !waits) {
                auditor->is_left = false;
                auditor->at_start = true;
        }
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
        auditor->asked_consumer = UUID_NULL;
        auditor->state.error = *error;
}

const AuditorState *auditor_get_state(const Auditor *auditor)
{
        return &auditor->state;
}

void auditor_get_progress(const Auditor *auditor, Progress *ret)
{
        if (auditor->healer)
                *ret = (Progress){ "healing", auditor->audit.n_done, auditor->audit.n_items };
        else if (auditor->wanted)
                *ret = (Progress){ "reading claims", auditor->n_read, auditor->n_wanted };
        else
                reporter_get_progress(auditor->reporter, ret);
}

/* End of an audit */

/* Replaces the problems for people. A healed problem is dropped, except an evacuated guest: the
 * operator should know of it. */
static int take_findings(Auditor *auditor)
{
        ReconcileProblems problems = { 0 };

        for (size_t i = 0; i < auditor->audit.n_items; i++) {
                const AuditFinding *finding = &auditor->audit.items[i];

                if ((finding->outcome == AUDIT_HEALED && finding->type != AUDIT_EVACUATED) ||
                    !audit_type_is_problem(finding->type))
                        continue;
                if (reconcile_add_problem(&problems, &finding->consumer, finding->claim_id, "%s",
                                          finding->text) < 0) {
                        reconcile_problems_done(&problems);
                        return -ENOMEM;
                }
        }
        reconcile_problems_done(&auditor->state.findings);
        auditor->state.findings = problems;
        return 0;
}

/* Returns the number of findings that are problems and are not healed. */
static size_t count_open(const Audit *audit)
{
        size_t n = 0;

        for (size_t i = 0; i < audit->n_items; i++)
                n += audit_type_is_problem(audit->items[i].type) &&
                     audit->items[i].outcome != AUDIT_HEALED;
        return n;
}

static void sum_up(Auditor *auditor)
{
        auditor->state.ended_usec = clock_usec(CLOCK_REALTIME);
        auditor->state.n_open = count_open(&auditor->audit);
}

/* Returns true if an evacuated guest is unchanged, because nothing can be released yet, or because
 * the end of its claim failed. */
static bool leaves_evacuated(const Auditor *auditor)
{
        for (size_t i = 0; i < auditor->audit.n_items; i++)
                if (auditor->audit.items[i].type == AUDIT_EVACUATED &&
                    (auditor->input.waits || auditor->audit.items[i].outcome == AUDIT_FAILED))
                        return true;
        return false;
}

/* Ends the audit: stores its results, or the error, and calls done. Takes the document. The start
 * audit stays due after an error, or after a heal of one consumer alone. It is repeated if it
 * leaves an evacuated guest unchanged. If memory for the document (NULL) or the problems is short,
 * that error is stored, but the audit of the start is over. */
static void finish(Auditor *auditor, char *document, const Error *error)
{
        auditor->state.error = error ? *error : ERROR_NULL;
        if (!error) {
                if (!document || take_findings(auditor) < 0)
                        error_oom(&auditor->state.error);
                sum_up(auditor);
                if (auditor->kind == AUDITOR_START || auditor->heals_all) {
                        auditor->at_start = false;
                        auditor->is_left = leaves_evacuated(auditor);
                }
        } else {
                log_debug("Cannot audit Placement: %s", error->text);
        }
        if (document) {
                free(auditor->state.document);
                auditor->state.document = document;
        }
        clear(auditor);
        /* The callback can free the auditor. */
        auditor->done(auditor->userdata);
}

/* Ends the audit with an error. Makes words if there are none. */
static void fail(Auditor *auditor, int result, const Error *words)
{
        Error error = *words;

        if (!error.code)
                error_setf(&error, result < 0 ? result : EIO, "%s",
                           result < 0 ? strerror(-result) : report_outcome_to_text(result));
        finish(auditor, NULL, &error);
}

/* Decision */

/* Passes the evacuated guests to the claim service, so that they do not get claims as new
 * guests. */
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

/* Returns the first finding that is a problem, or NULL. */
static const AuditFinding *find_problem(const Audit *audit)
{
        for (size_t i = 0; i < audit->n_items; i++)
                if (audit_type_is_problem(audit->items[i].type))
                        return &audit->items[i];
        return NULL;
}

/* Logs the number of problems of an audit of the kind AUDITOR_START. */
static void log_findings(const Auditor *auditor)
{
        const AuditFinding *first = find_problem(&auditor->audit);

        if (first && auditor->kind == AUDITOR_START)
                log_event(
                        LOG_WARNING, MESSAGE_AUDIT_FINDINGS, NULL,
                        "Placement, claims and guests disagree in %zu point%s. \"computectl audit\" lists all. First: %s.",
                        count_open(&auditor->audit), text_plural(count_open(&auditor->audit)),
                        first->text);
}

/* Returns the consumer of the next claim that had no allocations in Placement when it was made, and
 * has some here now. NULL if there is none. */
static const Consumer *next_allocated(Auditor *auditor, int64_t *ret_claim)
{
        while (auditor->n_checked < auditor->claims.n_claims) {
                const Claim *claim = auditor->claims.claims[auditor->n_checked++];
                const Consumer *consumer =
                        claim->is_unallocated
                                ? allocations_find(auditor->consumers, &claim->consumer)
                                : NULL;

                *ret_claim = claim->id;
                if (consumer && audit_holds_here(&auditor->input, consumer))
                        return consumer;
        }
        return NULL;
}

/* Lets the main loop serve the calls that have arrived before the next turn. */
static void rest(Auditor *auditor)
{
        (void)sd_event_source_set_time_relative(auditor->next, TURN_PAUSE_USEC);
        (void)sd_event_source_set_enabled(auditor->next, SD_EVENT_ONESHOT);
}

static void begin_stage(Auditor *auditor, AuditorStage stage)
{
        auditor->stage = stage;
        auditor->n_begun = 0;
        rest(auditor);
}

static void on_healed(void *userdata)
{
        begin_stage(userdata, STAGE_DESCRIBE);
}

/* Begins to heal. An audit at a start only ends claims. */
static int heal(Auditor *auditor)
{
        const HealerOrder order = {
                .claims = auditor->config.claims,
                .reporter = auditor->reporter,
                .input = &auditor->input,
                .audit = &auditor->audit,
                .consumers = auditor->consumers,
                .everything = auditor->kind == AUDITOR_HEAL,
                .only = auditor->kind == AUDITOR_HEAL && !auditor->heals_all ? &auditor->named
                                                                             : NULL,
                .by = auditor->by.text[0] ? &auditor->by : NULL,
                .refused = auditor->config.refused,
        };

        return healer_begin(&auditor->healer, &order, on_healed, auditor);
}

/* Checks whether the work that uses the facts must begin (again): it has not begun, or a newer poll
 * replaced them. The BEGUN_MAX-th time the work ends in the turn in which it begins. */
static bool must_begin(Auditor *auditor, bool has_begun)
{
        uint64_t n_facts = auditor->config.claims->n_facts;

        if (has_begun && auditor->n_facts == n_facts)
                return false;
        auditor->n_facts = n_facts;
        auditor->n_begun++;
        return true;
}

static size_t step_size(const Auditor *auditor)
{
        return auditor->n_begun >= BEGUN_MAX ? SIZE_MAX : STEP_SIZE;
}

/* Compares some consumers, claims and guests. The last step draws the consequences that need no
 * write. */
static int compare_some(Auditor *auditor)
{
        int r = 0;

        if (must_begin(auditor, auditor->run)) {
                auditor->run = audit_run_free(auditor->run);
                r = audit_run_new(&auditor->run, &auditor->input, &auditor->memory);
        }
        if (r >= 0)
                r = audit_run_step(auditor->run, step_size(auditor), &auditor->audit);
        if (r != 0)
                return r;
        auditor->run = audit_run_free(auditor->run);
        if (auditor->kind != AUDITOR_AUDIT && note_away(auditor) < 0)
                return -ENOMEM;
        log_findings(auditor);
        auditor->stage = STAGE_COMPLETE;
        return 1;
}

/* Completes some claims in one transaction, even if the audit does not heal. Ignores failures.
 * After the last claims, begins to heal, or to describe the result. */
static int complete_some(Auditor *auditor)
{
        Claims *claims = auditor->config.claims->claims;
        struct {
                const Consumer *consumer;
                int64_t claim;
                Uuid completed;
        } items[COMPLETED_MAX] = { 0 };
        size_t n = 0;

        while (n < COMPLETED_MAX && (items[n].consumer = next_allocated(auditor, &items[n].claim)))
                n++;
        if (n > 0 && claims && claims_begin_group(claims, NULL) == 0) {
                for (size_t i = 0; i < n; i++)
                        (void)claim_complete(claims, items[i].claim, items[i].consumer,
                                             &items[i].completed, NULL);
                if (claims_end_group(claims, 0, NULL) == 0)
                        for (size_t i = 0; i < n; i++)
                                claim_log_completed(items[i].claim, &items[i].completed);
        }
        if (n == COMPLETED_MAX)
                return 1;
        if (auditor->kind != AUDITOR_AUDIT)
                return heal(auditor);
        begin_stage(auditor, STAGE_DESCRIBE);
        return 0;
}

/* Describes some findings or consumers. Ends the audit after the last one. */
static int describe_some(Auditor *auditor)
{
        char *document;
        int r = 0;

        if (must_begin(auditor, auditor->document)) {
                auditor->document = audit_document_free(auditor->document);
                r = audit_document_new(&auditor->document, &auditor->input, &auditor->audit);
        }
        if (r >= 0)
                r = audit_document_step(auditor->document, step_size(auditor), &document);
        if (r == 0)
                finish(auditor, document, NULL);
        return r;
}

/* Reading */

/* Returns true if the consumer is the one that serves as a clock. Placement's answer about a
 * consumer without allocations has the time of the answer as its last-modified (facts E1). So a
 * consumer that does not exist is read to know Placement's clock. */
static bool is_clock(const Auditor *auditor, const Uuid *consumer)
{
        return !uuid_empty(&auditor->clock) && uuid_equal(&auditor->clock, consumer);
}

static void read_next(Auditor *auditor);

/* Stores an answer and reads the next consumer. Consumers without allocations are not stored. */
static void on_consumer(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        Auditor *auditor = userdata;

        auditor->call = NULL;
        if (result == REPORT_DONE && is_clock(auditor, &answer->consumer->uuid)) {
                auditor->input.placement_sec = answer->consumer->modified_sec;
                auditor->input.now_usec = clock_usec(CLOCK_REALTIME);
        } else if (result == REPORT_DONE && answer->consumer->n_allocations > 0) {
                result = allocations_add(auditor->consumers, answer->consumer);
                if (result == 0)
                        answer->consumer = NULL;
        }
        if (result != REPORT_DONE)
                fail(auditor, result, error);
        else
                read_next(auditor);
}

/* Reads the next consumer, or continues with the decision after the last one. */
static void read_next(Auditor *auditor)
{
        Error error = ERROR_NULL;
        int r;

        if (auditor->n_read >= auditor->n_wanted) {
                begin_stage(auditor, STAGE_COMPARE);
                return;
        }
        r = consumers_read(&auditor->call, reporter_get_session(auditor->reporter),
                           &auditor->wanted[auditor->n_read++], on_consumer, auditor, &error);
        if (r < 0)
                fail(auditor, r, &error);
}

static int order_wanted(const void *a, const void *b)
{
        return uuid_order(a, b);
}

/* Lists the consumers of claims, and of guests that do not run, because both can be on other hosts.
 * With started_only, the guests are left out. Gathered consumers are left out. The clock is needed
 * only with a history. It comes last, so that its answer is as new as possible. */
static void list_wanted(Auditor *auditor)
{
        const HostFacts *facts = auditor->input.facts;
        size_t n = 0, n_kept = 0;

        for (size_t i = 0; i < auditor->claims.n_claims; i++)
                auditor->wanted[n++] = auditor->claims.claims[i]->consumer;
        for (size_t i = 0; i < facts->n_domains; i++)
                if (!facts->domains[i].running && !auditor->input.started_only)
                        auditor->wanted[n++] = facts->domains[i].uuid;
        if (n > 1)
                qsort(auditor->wanted, n, sizeof(Uuid), order_wanted);
        for (size_t i = 0; i < n; i++)
                if ((n_kept == 0 ||
                     !uuid_equal(&auditor->wanted[n_kept - 1], &auditor->wanted[i])) &&
                    !allocations_find(auditor->consumers, &auditor->wanted[i]))
                        auditor->wanted[n_kept++] = auditor->wanted[i];
        auditor->clock = UUID_NULL;
        if (auditor->history.n_events > 0)
                auditor->wanted[n_kept++] = auditor->clock = uuid_make_random();
        auditor->n_wanted = n_kept;
}

/* Lists the sharing providers, and records whether one of them has DISK_GB. The listed claims lose
 * their amounts of sharing providers, because the audit compares only the host's own tree. */
static int hide_shared(Auditor *auditor, const HostView *view)
{
        size_t n = 0, at;

        auditor->pools = calloc(view->n_providers + 1, sizeof(Uuid));
        if (!auditor->pools)
                return -ENOMEM;
        for (size_t i = 0; i < view->n_providers; i++) {
                if (!host_view_shares(view, i))
                        continue;
                auditor->pools[n++] = view->tree->providers[i]->uuid;
                auditor->input.disk_is_shared |=
                        provider_find_inventory(view->tree->providers[i], "DISK_GB") != NULL;
        }
        auditor->input.pools = auditor->pools;
        auditor->input.n_pools = n;
        for (size_t i = 0; i < auditor->claims.n_claims; i++) {
                Claim *claim = auditor->claims.claims[i];

                for (size_t j = 0; j < claim->n_allocations; j++)
                        if (host_view_find(view, &claim->allocations[j].provider, &at) &&
                            host_view_shares(view, at))
                                resources_done(&claim->allocations[j].resources);
        }
        return 0;
}

/* Stores the events of gathered consumers; takes them from page. */
static int keep_events(Auditor *auditor, EventList *page)
{
        for (size_t i = 0; i < page->n_events; i++) {
                Event *event = &page->events[i], *kept;
                Uuid consumer;

                if (uuid_from_text(event->consumer, &consumer) < 0 ||
                    !allocations_find(auditor->consumers, &consumer))
                        continue;
                if (event_list_add(&auditor->history, &kept) < 0)
                        return -ENOMEM;
                *kept = TAKE_STRUCT(*event);
        }
        return 0;
}

/* Lists the next living claims. A claim that changes during the listing counts in its state before
 * or after the change, as with the consumers, which are read one after another. Returns 1, or a
 * negative errno. */
static int list_some(Auditor *auditor, Claims *claims, Error *reterr)
{
        ClaimList *list = &auditor->claims;
        size_t before = list->n_claims;
        int64_t after = before > 0 ? list->claims[before - 1]->id : 0;
        int r = claims_list_some(claims, after, list, reterr);

        if (r != 0)
                return r < 0 ? r : -EBUSY;
        if (list->n_claims < before + CLAIMS_LOT)
                auditor->stage = STAGE_HISTORY;
        return 1;
}

/* Reads the ended claims, and lists the consumers to read. The array for them has space for the
 * clock. */
static int prepare(Auditor *auditor, Claims *claims, Error *reterr)
{
        const HostView *view;
        int r = claims_host(claims, &view, reterr);

        if (r == 0 && hide_shared(auditor, view) < 0)
                return error_oom(reterr);
        if (r == 0)
                r = claims_list(claims, CLAIMS_ENDED, NULL, &auditor->ended, reterr);
        if (r != 0)
                return r < 0 ? r : -EBUSY;
        auditor->wanted = calloc(auditor->claims.n_claims + auditor->input.facts->n_domains + 2,
                                 sizeof(Uuid));
        if (!auditor->wanted)
                return error_oom(reterr);
        list_wanted(auditor);
        auditor->input.consumers = auditor->consumers;
        auditor->input.claims = &auditor->claims;
        auditor->input.ended = &auditor->ended;
        auditor->input.history = &auditor->history;
        auditor->input.now_usec = clock_usec(CLOCK_REALTIME);
        auditor->input.boot_usec = clock_usec(CLOCK_BOOTTIME);
        return 0;
}

/* Reads a page of this host's history, newest first, and keeps the events of gathered consumers.
 * After the last page, begins to read consumers. Returns 1 if pages are left. */
static int read_some(Auditor *auditor, Claims *claims, Error *reterr)
{
        _cleanup_(event_list_done) EventList page = { 0 };
        int r = claims_list_events(claims, auditor->before, &page, reterr);

        if (r != 0)
                return r < 0 ? r : -EBUSY;
        if (page.n_events > 0) {
                auditor->before = page.events[page.n_events - 1].id;
                return keep_events(auditor, &page) < 0 ? error_oom(reterr) : 1;
        }
        r = prepare(auditor, claims, reterr);
        if (r == 0)
                read_next(auditor);
        return r;
}

/* Does a step of the stage. Returns 1 if the next step can follow at once, and 0 if a callback or
 * the timer continues, or the audit has ended. */
static int step(Auditor *auditor, Error *reterr)
{
        Claims *claims = auditor->config.claims->claims;
        bool reads = auditor->stage == STAGE_LIST || auditor->stage == STAGE_HISTORY;
        int r;

        if (reads && !claims)
                return error_setf(reterr, ENODATA, "Claims cannot be used");
        if (reads)
                return auditor->stage == STAGE_LIST ? list_some(auditor, claims, reterr)
                                                    : read_some(auditor, claims, reterr);
        r = auditor->stage == STAGE_COMPARE    ? compare_some(auditor)
            : auditor->stage == STAGE_COMPLETE ? complete_some(auditor)
                                               : describe_some(auditor);
        return r < 0 ? error_oom(reterr) : r;
}

/* Works for one turn of the main loop. */
static int on_next(sd_event_source *source, uint64_t usec, void *userdata)
{
        uint64_t end = clock_usec(CLOCK_MONOTONIC) + TURN_USEC;
        Auditor *auditor = userdata;
        Error error = ERROR_NULL;
        int r;

        do
                r = step(auditor, &error);
        while (r > 0 && clock_usec(CLOCK_MONOTONIC) < end);
        if (r < 0)
                fail(auditor, r, &error);
        else if (r > 0)
                rest(auditor);
        return 0;
}

/* Continues after the consumers of the tree were read. */
static void on_gathered(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Auditor *auditor = userdata;
        Allocations *others = NULL;
        Error words = *error;

        reporter_take_gathered(reporter, &auditor->consumers, &others);
        allocations_free(others);
        auditor->before = INT64_MAX;
        if (result == 0)
                begin_stage(auditor, STAGE_LIST);
        else
                fail(auditor, result, &words);
}

int auditor_begin(Auditor *auditor, Reporter *reporter, const char *waits,
                  void (*done)(void *userdata), void *userdata, Error *reterr)
{
        const HostFacts *facts = auditor->config.claims->facts;
        const Snapshot *snapshot = auditor->config.claims->comparison.snapshot;
        bool by_itself = !auditor->asked && !auditor->at_start;
        bool named = !uuid_empty(&auditor->asked_consumer);
        int r;

        if (!facts)
                return error_setf(reterr, ENODATA,
                                  "The guests of this host have not been read yet");
        auditor->by = auditor->asked_heal || named ? auditor->asked_by : (EventAuthor){ 0 };
        auditor->named = auditor->asked_consumer;
        auditor->heals_all = auditor->asked_heal || by_itself;
        auditor->kind = auditor->at_start ? AUDITOR_START : AUDITOR_AUDIT;
        if (auditor->heals_all || named)
                auditor->kind = AUDITOR_HEAL;
        /* A database that is created during this audit makes another one due. */
        if (auditor->kind == AUDITOR_START || auditor->heals_all)
                auditor->built_usec = auditor->config.claims->built_usec;
        auditor->reporter = reporter;
        auditor->done = done;
        auditor->userdata = userdata;
        auditor->input = (AuditInput){
                .tree = reporter_tree(reporter),
                .root = auditor->config.root,
                .facts = facts,
                .guests_unknown = snapshot && snapshot->guests_unknown,
                .is_alive = process_is_alive,
                .grace_usec = auditor->config.grace_usec,
                .started_only = auditor->config.claims->settings.started_only,
                .waits = waits,
                .named = named ? &auditor->named : NULL,
                .named_by = auditor->by.text[0] ? auditor->by.text : "the operator",
        };
        r = reporter_gather(reporter, NULL, NULL, on_gathered, auditor);
        if (r < 0)
                return error_setf(reterr, r, "Placement cannot be read: %s", strerror(-r));
        auditor->asked = auditor->asked_heal = false;
        auditor->asked_consumer = UUID_NULL;
        return 0;
}
