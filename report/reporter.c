/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Implements the report client of reporter.h as a sequence of parts. An attempt is one of these
 * four sequences:
 *
 * refresh: list and providers (refresh.c) → sharing providers (sharing.c).
 *
 * publish: [look-up of unknown names] → plan → executor. A plan without steps has no executor, and
 * a settled tree needs no part at all. If a batch (report/publish/plan.h) failed, plan and executor
 * run once more without one, unless the outcome is fatal or the mirror forgot a provider or the
 * list.
 *
 * preparation of a plan: [look-up of unknown names] → [look-up of the name of a new root].
 *
 * gathering: the consumers (gather.c), and at the same time, if asked for, the groundwork of a
 * publish: [look-up of unknown names] → plan → executor.
 *
 * Each part but the plan is an object of its own that ends in one callback. A failure of a part
 * ends the attempt, except one of a batch, of the sharing providers, or of the groundwork if it is
 * not fatal. The callback of the attempt runs last, from a deferred event source, after all parts
 * have been freed. So the caller can start the next attempt in it, or free the reporter.
 * Invariants: at most one attempt is under way (busy), and only the attempt, reporter_restore() and
 * reporter_forget() change the mirror. */

#include "report/reporter.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "report/gather.h"
#include "report/http/event.h"
#include "report/publish/executor.h"
#include "report/publish/mirror-json.h"
#include "report/publish/mirror.h"
#include "report/publish/name-holder.h"
#include "report/publish/step.h"
#include "report/refresh.h"
#include "report/session/session.h"
#include "report/sharing.h"

/* Size of the description of a plan in bytes. */
#define CHANGES_MAX 512
/* Ask again for names that Placement lacked after this time, because Placement can have been
 * upgraded. */
#define MISSING_NAMES_AGE_USEC (3600 * USEC_PER_SEC)

struct Reporter {
        sd_event *event;
        sd_event_source *deferred;
        Session *session;
        Mirror *mirror;
        Mirror *partial; /* the result of a failed refresh; NULL: none */
        Sharing *sharing;
        Uuid root;
        char *root_name;
        NovaMode nova;
        ExecutorMemory memory;
        bool refreshed;  /* the mirror has been read at least once */
        bool knows_root; /* the last list was accepted (reporter_knows_root()) */
        bool restored; /* the first refresh uses, or used, the mirror of reporter_restore() without
                          a change */
        uint64_t names_asked_usec; /* CLOCK_MONOTONIC; the last look-up of names, the last time when
                                      missing ones were forgotten, or the restore */
        ProviderTree *settled; /* a tree for which the plan had no steps, and since which the mirror
                                  did not change; NULL: none */

        /* Members of the attempt under way. */
        bool busy;
        Refresh *refresh; /* the refresh of providers or of names that is under way */
        Gather *gather;
        SessionCall *call; /* the lookup of the name of a new root */
        Plan *plan;
        Executor *executor;
        ProviderTree *desired;
        Allocations *allocations;
        bool waited;   /* a caller waits for the next refresh; set by reporter_ask_at_once() */
        bool prepares; /* the attempt is a preparation: it ends when the names and the provider with
                          the name of a new root are known */
        size_t n_parts; /* running parts of a gathering: the gathering itself, and the groundwork */
        ReporterDone done;
        void *userdata;
        int result;
        Error error;

        char changes[CHANGES_MAX];      /* description of the last plan that was run */
        Allocations *gathered, *others; /* results of a gathering until the caller takes them */
        SessionStatistics at_refresh;   /* counters at the start of the last refresh */
        ReporterStatistics statistics;
};

/* Frees all parts of the attempt. */
static void put_away(Reporter *reporter)
{
        reporter->executor = executor_free(reporter->executor);
        reporter->plan = plan_free(reporter->plan);
        reporter->call = session_call_cancel(reporter->call);
        reporter->refresh = refresh_free(reporter->refresh);
        reporter->gather = gather_free(reporter->gather);
        sharing_cancel(reporter->sharing);
        reporter->desired = provider_tree_free(reporter->desired);
        reporter->allocations = allocations_free(reporter->allocations);
}

static int on_deferred(sd_event_source *source, void *userdata)
{
        Reporter *reporter = userdata;
        Error error = reporter->error;

        put_away(reporter);
        reporter->busy = false;
        log_debug("Attempt ended: %s%s%s", report_outcome_to_text(reporter->result),
                  reporter->result != 0 ? ": " : "", reporter->result != 0 ? error.text : "");
        /* The callback can free the reporter. */
        reporter->done(reporter, reporter->result, &error, reporter->userdata);
        return 0;
}

/* Stores the result and schedules the callback of the attempt. */
static void finish(Reporter *reporter, int result, const Error *error)
{
        reporter->result = result;
        reporter->error = result != REPORT_DONE ? *error : ERROR_NULL;
        sd_event_source_set_enabled(reporter->deferred, SD_EVENT_ONESHOT);
}

static void begin(Reporter *reporter, ReporterDone done, void *userdata)
{
        reporter->busy = true;
        reporter->done = done;
        reporter->userdata = userdata;
}

int reporter_new(Reporter **ret, sd_event *event, const ReporterConfig *config, const Uuid *root,
                 const char *root_name, void (*deleted)(const Uuid *provider, const char *name),
                 Error *reterr)
{
        _cleanup_(reporter_freep) Reporter *reporter = calloc(1, sizeof(Reporter));
        int r;

        if (!reporter)
                return error_oom(reterr);
        reporter->event = sd_event_ref(event);
        reporter->root = *root;
        reporter->root_name = strdup(root_name);
        if (!reporter->root_name || mirror_new(&reporter->mirror) < 0 ||
            event_add_deferred(event, &reporter->deferred, on_deferred, reporter) < 0)
                return error_oom(reterr);
        reporter->nova = config->nova;
        reporter->memory.deleted = deleted;
        r = session_new(&reporter->session, event, &config->http, &config->auth, config->nova,
                        reterr);
        if (r < 0)
                return r;
        if (sharing_new(&reporter->sharing, reporter->session, root, config->disk_use) < 0)
                return error_oom(reterr);
        *ret = TAKE_PTR(reporter);
        return 0;
}

Reporter *reporter_free(Reporter *reporter)
{
        if (!reporter)
                return NULL;
        put_away(reporter);
        allocations_free(reporter->gathered);
        allocations_free(reporter->others);
        sharing_free(reporter->sharing);
        session_free(reporter->session);
        provider_tree_free(reporter->settled);
        mirror_free(reporter->mirror);
        mirror_free(reporter->partial);
        sd_event_source_disable_unref(reporter->deferred);
        sd_event_unref(reporter->event);
        free(reporter->root_name);
        free(reporter);
        return NULL;
}

/* Notes a tree that needs no request while the mirror does not change; NULL: none. */
static void note_settled(Reporter *reporter, const ProviderTree *tree)
{
        provider_tree_free(reporter->settled);
        reporter->settled = tree ? provider_tree_ref(tree) : NULL;
}

static void on_sharing_known(void *userdata)
{
        finish(userdata, REPORT_DONE, NULL);
}

/* Takes the next mirror after a success, or the partial one after a failure. Then starts the
 * refresh of the sharing providers, or ends the attempt. */
static void on_refreshed(int result, Mirror *next, const Error *error, void *userdata)
{
        Reporter *reporter = userdata;
        bool waited = reporter->waited;

        /* Any other failure without a next mirror says nothing about the root. */
        if (result == REPORT_DONE || next)
                reporter->knows_root = true;
        else if (result == REPORT_E_REFUSED && error->code == EEXIST)
                reporter->knows_root = false;
        if (next && result != REPORT_DONE) {
                mirror_free(reporter->partial);
                reporter->partial = next;
        } else if (next) {
                mirror_free(reporter->mirror);
                reporter->mirror = next;
                reporter->partial = mirror_free(reporter->partial);
                note_settled(reporter, NULL);
                reporter->restored &= reporter->refreshed;
        }
        reporter->refreshed |= result == REPORT_DONE;
        reporter->waited = false;
        if (result != REPORT_DONE ||
            sharing_refresh(reporter->sharing, reporter->mirror->tree, waited,
                            event_now_usec(reporter->event, CLOCK_MONOTONIC), on_sharing_known,
                            reporter) <= 0)
                finish(reporter, result, error);
}

int reporter_refresh(Reporter *reporter, ReporterDone done, void *userdata)
{
        int r;

        if (reporter->busy)
                return -EBUSY;
        session_begin_attempt(reporter->session);
        reporter->at_refresh = *session_get_statistics(reporter->session);
        r = refresh_new(&reporter->refresh, reporter->session, reporter->mirror, reporter->partial,
                        &reporter->root, reporter->root_name, on_refreshed, reporter, NULL);
        if (r < 0)
                return r;
        begin(reporter, done, userdata);
        return 0;
}

/* Saves the mirror and whether a reshape is allowed. A mirror without last-modified is not saved,
 * because its providers could be created again unnoticed. A refused access to the reshaper is saved
 * as unknown, so that a restart notices a new role. */
json_t *reporter_save(const Reporter *reporter)
{
        const PlacementSeen *list = reporter->mirror->list;

        if (!reporter->refreshed || reporter->executor || !list || list->modified_sec == 0 ||
            mirror_has_stale(reporter->mirror) ||
            !provider_tree_find(reporter->mirror->tree, &reporter->root))
                return NULL;
        return json_pack("{sb so}", "may_reshape",
                         (int)(reporter->memory.reshaper == RESHAPER_ALLOWED), "mirror",
                         mirror_to_json(reporter->mirror));
}

int reporter_restore(Reporter *reporter, const json_t *json, Error *reterr)
{
        json_t *object;
        bool may_reshape;
        Mirror *mirror;
        int r;

        if ((r = json_read_bool(json, "may_reshape", &may_reshape, reterr)) < 0 ||
            (r = json_read_object(json, "mirror", &object, reterr)) < 0)
                return r;
        r = mirror_from_json(object, &mirror, reterr);
        if (r < 0)
                return r;
        mirror_free(reporter->mirror);
        reporter->mirror = mirror;
        reporter->names_asked_usec = event_now_usec(reporter->event, CLOCK_MONOTONIC);
        reporter->restored = true;
        if (may_reshape)
                reporter->memory.reshaper = RESHAPER_ALLOWED;
        return 0;
}

/* Forgets also the knowledge of the executor: the reshaper access, failed and lost batches, and
 * that writes must be serial. The counters and the receiver of deleted providers stay. */
void reporter_forget(Reporter *reporter)
{
        mirror_forget_generations(reporter->mirror);
        mirror_forget_names(reporter->mirror, true);
        note_settled(reporter, NULL);
        reporter->partial = mirror_free(reporter->partial);
        sharing_forget(reporter->sharing);
        reporter->memory = (ExecutorMemory){ .n_retries = reporter->memory.n_retries,
                                             .n_writes = reporter->memory.n_writes,
                                             .deleted = reporter->memory.deleted };
}

const ProviderTree *reporter_tree(Reporter *reporter)
{
        return reporter->refreshed ? reporter->mirror->tree : NULL;
}

bool reporter_is_current(const Reporter *reporter)
{
        return reporter->refreshed && !mirror_has_stale(reporter->mirror);
}

int64_t reporter_get_generation(const Reporter *reporter, const Uuid *provider)
{
        return reporter->refreshed ? mirror_get_generation(reporter->mirror, provider) : -1;
}

/* Permits a batch unless the role for it is known to be missing, or a batch failed and no publish
 * with steps has succeeded since. The answer to the first batch shows whether the role is there. */
static int make_plan(const Reporter *reporter, const ProviderTree *desired,
                     const Allocations *allocations, Plan **ret, Error *reterr)
{
        bool may_batch =
                reporter->memory.reshaper != RESHAPER_FORBIDDEN && !reporter->memory.batch_failed;

        return plan_make(desired, reporter->mirror, allocations, may_batch, ret, reterr);
}

static void execute(Reporter *reporter);

/* Ends a publish. If its batch failed, plans again without one in the same attempt, if the file
 * comment permits it. */
static void on_executed(int result, const Error *error, void *userdata)
{
        Reporter *reporter = userdata;
        bool again = reporter->memory.batch_failed && reporter->plan->is_batch &&
                     !report_outcome_is_fatal(result) && reporter_is_current(reporter);

        if (again) {
                reporter->executor = executor_free(reporter->executor);
                reporter->plan = plan_free(reporter->plan);
                execute(reporter);
                return;
        }
        if (result == REPORT_DONE)
                reporter->memory.batch_failed = false;
        finish(reporter, result, error);
}

/* Stores the description of a plan that will be run, and logs its steps at debug level. */
static void note_plan(Reporter *reporter)
{
        const Plan *plan = reporter->plan;

        (void)plan_describe(plan, reporter->changes, sizeof(reporter->changes));
        for (size_t i = 0; i < plan->n_steps; i++)
                log_debug("Plan step %zu: %s %s: %s", i, plan_op_to_text(plan->steps[i].op),
                          plan->steps[i].name, plan->steps[i].summary);
}

/* Makes the plan and runs it. A plan without steps ends the attempt. The names are known here. */
static void execute(Reporter *reporter)
{
        Error error = ERROR_NULL;
        int r;

        r = make_plan(reporter, reporter->desired, reporter->allocations, &reporter->plan, &error);
        note_settled(reporter, r >= 0 && reporter->plan->n_steps == 0 ? reporter->desired : NULL);
        if (r < 0 || reporter->plan->n_steps == 0) {
                finish(reporter, r, r < 0 ? &error : NULL);
                return;
        }
        note_plan(reporter);
        r = executor_new(&reporter->executor, reporter->event, reporter->session, reporter->mirror,
                         reporter->plan, &reporter->memory, on_executed, reporter, &error);
        if (r < 0)
                finish(reporter, r, &error);
}

/* Ends the gathering or its groundwork. The attempt ends with the last part, or with the first that
 * fails. */
static void end_part(Reporter *reporter, int result, const Error *error)
{
        if (reporter->n_parts == 0)
                return;
        reporter->n_parts = result == REPORT_DONE ? reporter->n_parts - 1 : 0;
        if (reporter->n_parts == 0)
                finish(reporter, result, error);
}

/* Ends the groundwork. Only a fatal failure ends the attempt: the publication meets every other
 * failure again. */
static void on_laid(int result, const Error *error, void *userdata)
{
        end_part(userdata, report_outcome_is_fatal(result) ? result : REPORT_DONE, error);
}

/* Plans and runs the groundwork: the steps of a publish that need no consumers. A plan that cannot
 * be made, or has no steps, ends the groundwork without a failure. */
static void create_groundwork(Reporter *reporter)
{
        Error error = ERROR_NULL;
        int r = plan_make_groundwork(reporter->desired, reporter->mirror, &reporter->plan, &error);

        if (r < 0 || reporter->plan->n_steps == 0) {
                on_laid(REPORT_DONE, NULL, reporter);
                return;
        }
        note_plan(reporter);
        note_settled(reporter, NULL);
        r = executor_new(&reporter->executor, reporter->event, reporter->session, reporter->mirror,
                         reporter->plan, &reporter->memory, on_laid, reporter, &error);
        if (r < 0)
                end_part(reporter, r, &error);
}

/* Receives the provider that has the name of a new root, and fails the attempt if there is one. */
static void on_named(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        _cleanup_(placement_providers_done) PlacementProviders holders = PLACEMENT_PROVIDERS_INIT;
        Reporter *reporter = userdata;
        Error words = *error;
        NameHolder holder;

        reporter->call = NULL;
        if (result == REPORT_DONE && placement_read_providers(answer->body, &holders, &words) < 0)
                result = REPORT_E_UNAVAILABLE;
        if (result == REPORT_DONE && holders.n_items > 0) {
                holder = name_holder_from(&holders.items[0], 0);
                (void)name_holder_explain(&holder, true, &words);
                result = REPORT_E_DUPLICATE_NAME;
        }
        finish(reporter, result, &words);
}

/* Looks up the name of a root that does not exist yet, so that a preview reports a conflict as a
 * publication would. Skipped unless [agent] nova is none, because otherwise nova-compute normally
 * makes the root. */
static void end_preparing(Reporter *reporter)
{
        const Provider *root = provider_tree_find(reporter->desired, &reporter->root);
        Error error = ERROR_NULL;
        int r;

        if (!root || reporter->nova != NOVA_NONE ||
            provider_tree_find(reporter->mirror->tree, &reporter->root)) {
                finish(reporter, REPORT_DONE, NULL);
                return;
        }
        r = session_send(reporter->session, placement_get_provider_by_name(root->name), on_named,
                         reporter, &reporter->call, &error);
        if (r < 0)
                finish(reporter, r, &error);
}

/* Continues a groundwork, a preparation or a publish after the look-up of names. */
static void on_looked_up(int result, Mirror *next, const Error *error, void *userdata)
{
        Reporter *reporter = userdata;

        if (reporter->gather && result == REPORT_DONE)
                create_groundwork(reporter);
        else if (reporter->gather)
                on_laid(result, error, reporter);
        else if (result == REPORT_DONE && reporter->prepares)
                end_preparing(reporter);
        else if (result == REPORT_DONE)
                execute(reporter);
        else
                finish(reporter, result, error);
}

/* Looks up the desired traits and custom classes that the mirror does not know. Names that
 * Placement lacked are looked up again after MISSING_NAMES_AGE_USEC. Returns 1 if a look-up is
 * under way, 0 if none is needed, or a negative errno. */
static int look_up_names(Reporter *reporter)
{
        _cleanup_(string_set_done) StringSet traits = STRING_SET_INIT, classes = STRING_SET_INIT;
        uint64_t now = event_now_usec(reporter->event, CLOCK_MONOTONIC);
        int r;

        if (now - reporter->names_asked_usec > MISSING_NAMES_AGE_USEC) {
                mirror_forget_names(reporter->mirror, false);
                reporter->names_asked_usec = now;
        }
        r = mirror_list_unknown(reporter->mirror, reporter->desired, &traits, &classes);
        if (r < 0 || traits.n_items + classes.n_items == 0)
                return r;
        reporter->names_asked_usec = now;
        r = refresh_names_new(&reporter->refresh, reporter->session, reporter->mirror, &traits,
                              &classes, on_looked_up, reporter, NULL);
        return r < 0 ? r : 1;
}

static void on_gathered(int result, Allocations *consumers, Allocations *others, const Error *error,
                        void *userdata)
{
        Reporter *reporter = userdata;

        allocations_free(reporter->gathered);
        allocations_free(reporter->others);
        reporter->gathered = consumers;
        reporter->others = others;
        end_part(reporter, result, error);
}

/* Starts to gather the consumers of the providers below the host's root, and of the root. With
 * skips_new, the providers that this process created since the last refresh are left out. The
 * result is about the tree of that refresh, in which they did not exist. Returns 1 if a gathering
 * is under way, 0 if its result is empty, and -ENODATA for an empty tree. */
static int start_gathering(Reporter *reporter, const StringSet *classes, bool skips_new)
{
        const ProviderTree *tree = reporter->mirror->tree;
        _cleanup_free_ Uuid *uuids = calloc(tree->n_providers + 1, sizeof(Uuid));
        size_t n = 0, n_skipped = 0;
        int r;

        if (!uuids)
                return -ENOMEM;
        for (size_t i = 0; i < tree->n_providers; i++) {
                const Uuid *uuid = &tree->providers[i]->uuid;

                if (!provider_tree_in_subtree(tree, tree->providers[i], &reporter->root))
                        continue;
                if (skips_new && mirror_is_new(reporter->mirror, uuid))
                        n_skipped++;
                else
                        uuids[n++] = *uuid;
        }
        if (n == 0)
                return n_skipped > 0 ? 0 : -ENODATA;
        r = gather_new(&reporter->gather, reporter->session, uuids, n, classes, on_gathered,
                       reporter, NULL);
        return r < 0 ? r : 1;
}

/* Replaces the result of the last gathering by an empty one. */
static int make_empty_result(Reporter *reporter)
{
        reporter->gathered = allocations_free(reporter->gathered);
        reporter->others = allocations_free(reporter->others);
        return allocations_new(&reporter->gathered) < 0 || allocations_new(&reporter->others) < 0
                       ? -ENOMEM
                       : 0;
}

int reporter_gather(Reporter *reporter, const StringSet *classes, const ProviderTree *ahead,
                    ReporterDone done, void *userdata)
{
        int r;

        if (reporter->busy)
                return -EBUSY;
        if (!reporter_is_current(reporter))
                return -ENODATA;
        r = start_gathering(reporter, classes, !ahead);
        if (r == 0)
                r = make_empty_result(reporter);
        if (r >= 0 && ahead) {
                reporter->desired = provider_tree_ref(ahead);
                r = look_up_names(reporter);
        }
        if (r < 0) {
                put_away(reporter);
                return r;
        }
        reporter->n_parts = ahead ? 2 : 1;
        begin(reporter, done, userdata);
        if (ahead && r == 0)
                create_groundwork(reporter);
        else if (!reporter->gather)
                end_part(reporter, REPORT_DONE, NULL);
        return 0;
}

int reporter_read_holders(Reporter *reporter, const Uuid *providers, size_t n_providers,
                          ReporterDone done, void *userdata)
{
        const StringSet no_class = STRING_SET_INIT;
        int r;

        if (reporter->busy)
                return -EBUSY;
        if (!reporter_is_current(reporter))
                return -ENODATA;
        r = gather_new(&reporter->gather, reporter->session, providers, n_providers, &no_class,
                       on_gathered, reporter, NULL);
        if (r < 0) {
                put_away(reporter);
                return r;
        }
        reporter->n_parts = 1;
        begin(reporter, done, userdata);
        return 0;
}

void reporter_take_gathered(Reporter *reporter, Allocations **ret_consumers,
                            Allocations **ret_others)
{
        *ret_consumers = TAKE_PTR(reporter->gathered);
        *ret_others = TAKE_PTR(reporter->others);
}

/* Checks whether the tree needs no request: it equals the last one that needed none, the mirror did
 * not change since, and it is too early to look up missing names again. */
static bool is_settled(const Reporter *reporter, const ProviderTree *desired)
{
        uint64_t now = event_now_usec(reporter->event, CLOCK_MONOTONIC);

        return reporter->settled && now - reporter->names_asked_usec <= MISSING_NAMES_AGE_USEC &&
               provider_tree_equal(reporter->settled, desired);
}

/* Starts a publish or a preparation. desired is sealed by a reference and not copied. A publish of
 * a settled tree ends at once without a request. */
static int start_attempt(Reporter *reporter, const ProviderTree *desired,
                         const Allocations *allocations, bool prepares, ReporterDone done,
                         void *userdata)
{
        int r;

        if (reporter->busy)
                return -EBUSY;
        if (!reporter_is_current(reporter))
                return -ENODATA;
        if (!allocations && !prepares && is_settled(reporter, desired)) {
                begin(reporter, done, userdata);
                finish(reporter, REPORT_DONE, NULL);
                return 0;
        }
        reporter->desired = provider_tree_ref(desired);
        r = allocations ? allocations_copy(&reporter->allocations, allocations) : 0;
        if (r >= 0)
                r = look_up_names(reporter);
        if (r < 0) {
                put_away(reporter);
                return r;
        }
        reporter->prepares = prepares;
        begin(reporter, done, userdata);
        if (r == 0 && prepares)
                end_preparing(reporter);
        else if (r == 0)
                execute(reporter);
        return 0;
}

int reporter_publish(Reporter *reporter, const ProviderTree *desired,
                     const Allocations *allocations, ReporterDone done, void *userdata)
{
        return start_attempt(reporter, desired, allocations, false, done, userdata);
}

int reporter_prepare(Reporter *reporter, const ProviderTree *desired, ReporterDone done,
                     void *userdata)
{
        return start_attempt(reporter, desired, NULL, true, done, userdata);
}

int reporter_plan(Reporter *reporter, const ProviderTree *desired, const Allocations *allocations,
                  Plan **ret, Error *reterr)
{
        if (!reporter_is_current(reporter))
                return error_setf(reterr, ENODATA, "Placement has not been read yet");
        return make_plan(reporter, desired, allocations, ret, reterr);
}

const Sharing *reporter_get_sharing(const Reporter *reporter)
{
        return reporter->sharing;
}

void reporter_get_progress(const Reporter *reporter, Progress *ret)
{
        *ret = (Progress){ .phase = reporter->busy ? "reading" : "" };
        if (reporter->gather)
                gather_get_progress(reporter->gather, ret);
        else if (reporter->executor)
                executor_get_progress(reporter->executor, ret);
        else if (reporter->refresh)
                refresh_get_progress(reporter->refresh, ret);
}

const ReporterStatistics *reporter_get_statistics(Reporter *reporter)
{
        const SessionStatistics *now = session_get_statistics(reporter->session);

        reporter->statistics = (ReporterStatistics){
                .n_requests = now->n_requests,
                .n_writes = now->n_writes,
                .n_conflicts = now->n_conflicts,
                .n_retries = reporter->memory.n_retries,
                .counts = &now->counts,
                .n_plan_writes = reporter->memory.n_writes,
                .changes = reporter->changes[0] ? reporter->changes : NULL,
                .last_attempt_requests = now->n_requests - reporter->at_refresh.n_requests,
                .last_attempt_writes = now->n_writes - reporter->at_refresh.n_writes,
                .retry_after_usec = now->retry_after_usec,
                .reshaper = reporter->memory.reshaper,
                .is_restored = reporter->refreshed && reporter->restored,
        };
        return &reporter->statistics;
}

bool reporter_knows_root(const Reporter *reporter)
{
        return reporter->knows_root || (reporter->refresh && refresh_knows_root(reporter->refresh));
}

Session *reporter_get_session(Reporter *reporter)
{
        return reporter->session;
}

void reporter_ask_at_once(Reporter *reporter)
{
        reporter->waited = true;
        auth_ask_at_once(session_get_auth(reporter->session));
}
