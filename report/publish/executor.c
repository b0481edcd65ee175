/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs the steps of a plan over the session, and writes each result into the mirror. A step waits,
 * runs (a request is under way), pauses (before another attempt), is done or has failed. Each
 * answer and each end of a pause calls pump(), which starts the steps that can start. If no step
 * runs or pauses after that, the plan is done. A step whose prerequisite failed never starts. Lanes
 * ensure that one step of a provider runs at a time. A step that waits for a prerequisite can be
 * overtaken by a later one of its provider.
 *
 * Most steps are one request. Three answers lead to further requests. For an inventory in use the
 * provider's allocations are read, and a set that keeps the used classes is sent. For a name that
 * is in use its holder is read, and then the allocations of a foreign holder. For a class that
 * exists already (204) the request is sent once more: over MySQL, Placement can answer 204 without
 * making the class, if another request got the same number at the same time. For the same reason
 * classes are made one after another. */

#include "report/publish/executor.h"

#include <string.h>

#include "base/jitter.h"
#include "base/log.h"
#include "report/publish/name-holder.h"
#include "report/publish/step.h"

#define PAUSE_MIN_USEC (50 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (2 * USEC_PER_SEC)
#define NO_LANE        SIZE_MAX
#define IN_USE_MAX     320 /* bytes of the text about classes in use */

typedef enum StepState {
        STEP_WAITING,
        STEP_RUNNING,
        STEP_PAUSING,
        STEP_DONE,
        STEP_FAILED,
} StepState;

typedef struct ExecutorStep ExecutorStep;

/* Handles an answer to a request of the step. A 500 goes to step_retry() instead, unless the
 * function is holder_counted(). The function can change words. */
typedef void (*StepAnswered)(ExecutorStep *step, int result, const SessionAnswer *answer,
                             Error *words);

struct ExecutorStep {
        Executor *executor;
        const PlanStep *step;
        StepState state;
        size_t lane; /* index into lanes; NO_LANE: none */
        unsigned n_tries;
        uint64_t pause_usec; /* length of the last pause */
        SessionCall *call;
        StepAnswered answered; /* receives the answer to call */
        sd_event_source *pause;
        Provider kept;     /* the inventories that are sent while classes are in use */
        bool noted_in_use; /* the outcome REPORT_E_IN_USE of this step was noted */
        bool asked_again;  /* the request for an existing class was repeated */
        NameHolder holder; /* the provider that has the name of a new one */
};

/* A lane runs one step at a time. Each provider with steps has one, and the steps that make classes
 * share one. Steps that make traits, and the reshape, have none. */
typedef struct Lane {
        Uuid provider; /* null: the lane of the classes */
        bool busy;
        bool closed; /* after a conflict: no more steps of this provider start */
} Lane;

struct Executor {
        sd_event *event;
        Session *session;
        Mirror *mirror;
        const Plan *plan;
        ExecutorMemory *memory;
        ExecutorStep *steps; /* one for each step of the plan */
        Lane *lanes;
        size_t n_lanes;
        size_t n_running, n_pausing,
                n_shaping; /* numbers of steps that run, pause, or run as a move or reshape */
        bool serial;       /* one request at a time for the rest of this plan */
        bool stopping;     /* no more steps start */
        bool batch_done, batch_raced;
        sd_event_source *deferred;
        bool started;
        int result;
        Error error;
        size_t n_failed;
        void (*done)(int result, const Error *error, void *userdata);
        void *userdata;
};

static void pump(Executor *executor);

static Lane *lane_of(const ExecutorStep *step)
{
        return step->lane == NO_LANE ? NULL : &step->executor->lanes[step->lane];
}

/* Checks for a move or a reshape, which run one at a time for the whole tree. A reshape whose
 * answer is still missing can raise the generation in the answer to a move. And Placement writes
 * the whole tree for each of them, which causes deadlocks in databases. */
static bool shapes_tree(const ExecutorStep *step)
{
        return step->step->op == PLAN_MOVE_PROVIDER || step->step->op == PLAN_RESHAPE;
}

/* Sets the state, counts running and pausing steps, and marks the lane as busy while the step runs
 * or pauses. */
static void step_set_state(ExecutorStep *step, StepState state)
{
        Executor *executor = step->executor;
        Lane *lane = lane_of(step);

        if (shapes_tree(step)) {
                executor->n_shaping -= step->state == STEP_RUNNING;
                executor->n_shaping += state == STEP_RUNNING;
        }
        executor->n_running -= step->state == STEP_RUNNING;
        executor->n_pausing -= step->state == STEP_PAUSING;
        step->state = state;
        executor->n_running += state == STEP_RUNNING;
        executor->n_pausing += state == STEP_PAUSING;
        if (lane)
                lane->busy = state == STEP_RUNNING || state == STEP_PAUSING;
}

/* Keeps the worst outcome with its words, and counts the step once. After a fatal outcome no
 * further step starts. */
static void note_outcome(ExecutorStep *step, int outcome, const Error *error)
{
        Executor *executor = step->executor;

        if (report_outcome_worse(executor->result, outcome) != executor->result) {
                executor->result = outcome;
                executor->error = *error;
        }
        executor->n_failed += !step->noted_in_use;
        if (report_outcome_is_fatal(outcome))
                executor->stopping = true;
}

/* Notes the failure with the provider's name in front of the text of the answer. */
static void step_fail(ExecutorStep *step, int outcome, const Error *error)
{
        const PlanStep *plan_step = step->step;
        Error words = *error;

        if (!uuid_empty(&plan_step->provider))
                error_prefixf(&words, -words.code, "%s", plan_step->name);
        note_outcome(step, outcome, &words);
        step_set_state(step, STEP_FAILED);
}

/* Fails a step because Placement and the mirror differ. The mirror forgets the provider (for a
 * reshape: the list), and the waiting steps of the provider are skipped. */
static void step_conflict(ExecutorStep *step, const Error *error)
{
        Lane *lane = lane_of(step);

        step->executor->batch_raced |= step->step->op == PLAN_RESHAPE;
        step_forget(step->step, step->executor->mirror);
        if (lane)
                lane->closed = true;
        step_fail(step, REPORT_E_CONFLICT, error);
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata);

/* Sends a request of the step, whose answer goes to answered. */
static int step_send(ExecutorStep *step, PlacementRequest request, StepAnswered answered,
                     Error *reterr)
{
        bool writes = placement_request_writes(&request);
        int r;

        step->answered = answered;
        r = session_send(step->executor->session, request, on_answer, step, &step->call, reterr);
        if (r >= 0)
                step->executor->memory->n_writes += writes;
        if (r >= 0 && step->state != STEP_RUNNING)
                step_set_state(step, STEP_RUNNING);
        return r;
}

/* Sends a further request of a running step, or fails the step. */
static void step_detour(ExecutorStep *step, PlacementRequest request, StepAnswered answered)
{
        Error error = ERROR_NULL;
        int r = step_send(step, request, answered, &error);

        if (r < 0)
                step_fail(step, r, &error);
}

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata)
{
        ExecutorStep *step = userdata;

        step->pause = sd_event_source_disable_unref(step->pause);
        /* The step waits again, because with serial writes it must wait for its turn. */
        step_set_state(step, STEP_WAITING);
        pump(step->executor);
        return 0;
}

/* Starts a pause with jitter. Returns false if the timer cannot be made. */
static bool step_pause(ExecutorStep *step)
{
        step->pause_usec =
                jitter_next(step->pause_usec, PAUSE_MIN_USEC, PAUSE_MAX_USEC, jitter_random());
        if (sd_event_add_time_relative(step->executor->event, &step->pause, CLOCK_MONOTONIC,
                                       step->pause_usec, USEC_PER_MSEC, on_pause_over, step) < 0)
                return false;
        step_set_state(step, STEP_PAUSING);
        return true;
}

/* Lets a step wait without a pause if its first try found the database locked, normally by the
 * parallel writes of this plan. The step starts again when no other step runs. Returns false in all
 * other cases. */
static bool step_wait_turn(ExecutorStep *step, const SessionAnswer *answer)
{
        if (!answer->verdict.database_locked || step->n_tries > 1)
                return false;
        step_set_state(step, STEP_WAITING);
        return true;
}

/* Handles a 500: starts the step again later, and sends only one request at a time for the rest of
 * this plan. After the last try, if no further step starts, or without a timer, the step fails. The
 * result of the write is unknown then, so the mirror forgets the provider. */
static void step_retry(ExecutorStep *step, const SessionAnswer *answer, int result,
                       const Error *error)
{
        Executor *executor = step->executor;

        executor->serial = true;
        executor->memory->serial_writes |= answer->verdict.database_locked;
        if (!executor->stopping && step->n_tries < EXECUTOR_TRIES_MAX &&
            (step_wait_turn(step, answer) || step_pause(step))) {
                executor->memory->n_retries++;
                log_debug("%s; next attempt in %llu ms", error->text,
                          (unsigned long long)(step->pause_usec / USEC_PER_MSEC));
                return;
        }
        step_forget(step->step, executor->mirror);
        step_fail(step, result, error);
}

/* Returns the provider of a step in the desired tree; NULL for steps without one and for
 * deletions. */
static const Provider *wanted(const ExecutorStep *step)
{
        return provider_tree_find(step->executor->plan->desired, &step->step->provider);
}

static const Provider *mirrored(const ExecutorStep *step)
{
        return provider_tree_find(step->executor->mirror->tree, &step->step->provider);
}

/* Handles the answer to the PUT of inventories that keep the classes in use. */
static void kept_answered(ExecutorStep *step, int result, const SessionAnswer *answer, Error *words)
{
        Mirror *mirror = step->executor->mirror;
        int64_t generation;

        if (result == REPORT_DONE &&
            (placement_read_generation(answer->body, PLACEMENT_GENERATION_OF_PART, &generation,
                                       words) < 0 ||
             mirror_write(mirror, &step->kept, PLACEMENT_INVENTORIES, generation) < 0))
                result = REPORT_E_UNAVAILABLE;
        if (result == REPORT_DONE) {
                step_set_state(step, STEP_DONE);
        } else if (result == REPORT_E_CONFLICT) {
                step_conflict(step, words);
        } else {
                if (report_outcome_is_fatal(result))
                        step_forget(step->step, mirror);
                step_fail(step, result, words);
        }
}

/* Sends the set that keeps the classes in use, which words names. Nothing is sent if the mirror has
 * that set already. */
static void step_send_kept(ExecutorStep *step, const char *words)
{
        Executor *executor = step->executor;
        int64_t generation = mirror_get_generation(executor->mirror, &step->kept.uuid);
        Error error = ERROR_NULL;

        if (!step->noted_in_use) {
                error_setf(&error, EBUSY,
                           "%s: %s cannot be removed yet. All other changes are published",
                           step->step->name, words);
                note_outcome(step, REPORT_E_IN_USE, &error);
                step->noted_in_use = true;
        }
        if (provider_inventories_equal(&step->kept, mirrored(step))) {
                step_set_state(step, STEP_DONE);
                return;
        }
        step_detour(step, placement_put_part(&step->kept, PLACEMENT_INVENTORIES, generation),
                    kept_answered);
}

/* Starts the step again if tries are left, because the classes that must be removed are no longer
 * in use. Otherwise fails it. */
static void step_again(ExecutorStep *step)
{
        Error error = ERROR_NULL;

        if (step->n_tries < EXECUTOR_TRIES_MAX) {
                step_set_state(step, STEP_WAITING);
                return;
        }
        error_setf(&error, EBUSY, "The classes in use change faster than they can be written");
        step_fail(step, REPORT_E_IN_USE, &error);
}

/* Makes the set to send from the allocations in body, and the text about the classes in use. */
static int keep_used(ExecutorStep *step, const Provider *old, const json_t *body, char *words,
                     size_t size, Error *reterr)
{
        _cleanup_(allocations_freep) Allocations *holdings = NULL;
        int r;

        if (allocations_new(&holdings) < 0)
                return error_oom(reterr);
        r = placement_read_provider_allocations(body, &old->uuid, holdings, reterr);
        if (r < 0)
                return r == -EBADMSG ? REPORT_E_UNAVAILABLE : r;
        r = step_keep_used(wanted(step), old, holdings, &step->kept, words, size);
        return r < 0 ? error_oom(reterr) : REPORT_DONE;
}

/* Handles the allocations of a provider that has classes in use. */
static void holdings_answered(ExecutorStep *step, int result, const SessionAnswer *answer,
                              Error *words)
{
        const Provider *old = mirrored(step);
        char in_use[IN_USE_MAX] = "";

        if (result == REPORT_DONE && old)
                result = keep_used(step, old, answer->body, in_use, sizeof(in_use), words);
        if (result != REPORT_DONE)
                step_fail(step, result, words);
        else if (in_use[0] != '\0')
                step_send_kept(step, in_use);
        else
                step_again(step);
}

/* Handles the allocations of the provider that has the name of the new one. */
static void holder_counted(ExecutorStep *step, int result, const SessionAnswer *answer,
                           Error *words)
{
        *words = ERROR_NULL;
        if (result == REPORT_DONE)
                (void)name_holder_count(&step->holder, answer->body, NULL);
        (void)name_holder_explain(&step->holder, uuid_empty(&wanted(step)->parent), words);
        step_fail(step, REPORT_E_DUPLICATE_NAME, words);
}

/* Returns whether this provider, which has the name and uuid of the new one, is in the host's tree.
 * Another writer can have moved it to another tree. */
static bool is_in_tree(const ExecutorStep *step, const PlacementProvider *provider)
{
        if (uuid_empty(&provider->parent))
                return uuid_empty(&wanted(step)->parent);
        return provider_tree_find(step->executor->plan->desired, &provider->parent);
}

/* Decides what a name in use means: another provider has the name, the uuid has another name, or
 * the provider itself was just created or is in another tree. */
static void judge_holder(ExecutorStep *step, const PlacementProviders *holders,
                         uint64_t modified_sec)
{
        const PlanStep *plan_step = step->step;
        Error error = ERROR_NULL;

        if (holders->n_items == 0) {
                error_setf(
                        &error, EEXIST,
                        "Placement has the uuid %s under another name. Run \"computectl identity check\" to see its owner",
                        plan_step->provider.text);
                step_fail(step, REPORT_E_DUPLICATE_NAME, &error);
        } else if (!uuid_equal(&holders->items[0].uuid, &plan_step->provider)) {
                step->holder = name_holder_from(&holders->items[0], modified_sec);
                step_detour(step, placement_get_provider_allocations(&step->holder.uuid),
                            holder_counted);
        } else if (is_in_tree(step, &holders->items[0])) {
                error_setf(&error, ESTALE, "It was created after the last read of Placement");
                step_conflict(step, &error);
        } else {
                error_setf(
                        &error, EEXIST,
                        "This host's provider %s is in another tree in Placement. If another writer moved it, set its parent_provider_uuid back to %s",
                        plan_step->provider.text,
                        uuid_empty(&wanted(step)->parent) ? "null" : wanted(step)->parent.text);
                step_fail(step, REPORT_E_DUPLICATE_NAME, &error);
        }
}

/* Handles the provider that has the name of the new one. */
static void holder_answered(ExecutorStep *step, int result, const SessionAnswer *answer,
                            Error *words)
{
        _cleanup_(placement_providers_done) PlacementProviders holders = PLACEMENT_PROVIDERS_INIT;

        if (result == REPORT_DONE && placement_read_providers(answer->body, &holders, words) < 0)
                result = REPORT_E_UNAVAILABLE;
        if (result == REPORT_DONE)
                judge_holder(step, &holders, answer->modified_sec);
        else
                step_fail(step, result, words);
}

/* Writes the result of a step into the mirror. */
static void step_done(ExecutorStep *step, const json_t *body)
{
        Executor *executor = step->executor;
        Error error = ERROR_NULL;
        int r;

        executor->batch_done |= step->step->op == PLAN_RESHAPE;
        r = step_apply(executor->plan, step->step, executor->mirror, body, &error);
        if (r < 0)
                step_fail(step, r == -EBADMSG ? REPORT_E_UNAVAILABLE : r, &error);
        else
                step_set_state(step, STEP_DONE);
        if (r >= 0 && step->step->op == PLAN_DELETE_PROVIDER && executor->memory->deleted)
                executor->memory->deleted(&step->step->provider, step->step->name);
}

static void step_refused(ExecutorStep *step, int result, const Error *error)
{
        /* A known class or trait can have been deleted: the next attempt makes it again. */
        if (result == REPORT_E_REFUSED)
                mirror_forget_names(step->executor->mirror, true);
        if (report_outcome_is_fatal(result))
                step_forget(step->step, step->executor->mirror);
        step_fail(step, result, error);
}

static bool is_put(PlanOp op)
{
        return op == PLAN_MOVE_PROVIDER || op == PLAN_PUT_INVENTORIES ||
               op == PLAN_PUT_AGGREGATES || op == PLAN_PUT_TRAITS;
}

/* Checks for the 204 that can mean that the class was not made (see the file comment). */
static bool may_not_be_made(const ExecutorStep *step, const SessionAnswer *answer)
{
        return step->step->op == PLAN_ENSURE_CLASS && answer->status == 204 && !step->asked_again;
}

/* Handles the answer to the request of the plan. */
static void step_answered(ExecutorStep *step, int result, const SessionAnswer *answer, Error *error)
{
        bool gone = answer->status == 404 && answer->verdict.from_placement;
        PlanOp op = step->step->op;

        if (may_not_be_made(step, answer)) {
                step->asked_again = true;
                step_set_state(step, STEP_WAITING);
        } else if (result == REPORT_DONE ||
                   (gone && (op == PLAN_EMPTY_PROVIDER || op == PLAN_DELETE_PROVIDER)))
                step_done(step, answer->body);
        else if (op == PLAN_RESHAPE && step->executor->plan->is_batch &&
                 (result == REPORT_E_FORBIDDEN || result == REPORT_E_IN_USE ||
                  result == REPORT_E_REFUSED || result == REPORT_E_TOO_OLD))
                /* Placement refused a batch, because of one provider, the role or its version.
                 * Nothing was changed, and each inventory can be sent in a request of its own. */
                step_fail(step, REPORT_E_CONFLICT, error);
        else if (result == REPORT_E_CONFLICT || (gone && is_put(op)))
                step_conflict(step, error);
        else if (op == PLAN_PUT_INVENTORIES &&
                 answer->verdict.code == PLACEMENT_CODE_INVENTORY_IN_USE)
                step_detour(step, placement_get_provider_allocations(&step->step->provider),
                            holdings_answered);
        else if (op == PLAN_CREATE_PROVIDER && result == REPORT_E_DUPLICATE_NAME)
                step_detour(step, placement_get_provider_by_name(step->step->name),
                            holder_answered);
        else if (op == PLAN_MOVE_PROVIDER && result == REPORT_E_TOO_OLD)
                /* The service is too old to move a provider, which keeps its parent. It accepts
                 * all other requests. */
                step_fail(step, REPORT_E_REFUSED, error);
        else
                step_refused(step, result, error);
}

/* Treats 204, and 400 and 409 of Placement, as access, because Placement reads the body only with
 * the role. */
static ReshaperAccess access_of(int status, bool from_placement)
{
        if (status == 204)
                return RESHAPER_ALLOWED;
        if (!from_placement)
                return status == 403 ? RESHAPER_FORBIDDEN : RESHAPER_UNKNOWN;
        switch (status) {
        case 400:
        case 409:
                return RESHAPER_ALLOWED;
        case 403:
        case 404: /* no reshaper, or none in this microversion */
        case 406:
                return RESHAPER_FORBIDDEN;
        default:
                return RESHAPER_UNKNOWN;
        }
}

static void note_access(ExecutorStep *step, const SessionAnswer *answer)
{
        ReshaperAccess access = access_of(answer->status, answer->verdict.from_placement);

        if (step->step->op == PLAN_RESHAPE && access != RESHAPER_UNKNOWN)
                step->executor->memory->reshaper = access;
}

static void on_answer(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        ExecutorStep *step = userdata;
        Error words = *error;

        step->call = NULL;
        note_access(step, answer);
        /* The number of consumers only completes the message of a step that has already failed. */
        if (answer->status == 500 && step->answered != holder_counted)
                step_retry(step, answer, result, &words);
        else
                step->answered(step, result, answer, &words);
        pump(step->executor);
}

static void step_start(ExecutorStep *step)
{
        Executor *executor = step->executor;
        PlacementRequest request;
        Error error = ERROR_NULL;
        int r;

        step->n_tries++;
        r = step_make_request(executor->plan, step->step, executor->mirror, &request, &error);
        if (r == -ESTALE) {
                step_conflict(step, &error);
                return;
        }
        if (r >= 0)
                r = step_send(step, request, step_answered, &error);
        if (r < 0)
                step_fail(step, r, &error);
}

static bool prerequisites_done(const ExecutorStep *step)
{
        for (size_t i = 0; i < step->step->n_after; i++)
                if (step->executor->steps[step->step->after[i]].state != STEP_DONE)
                        return false;
        return true;
}

/* Checks whether a waiting step can start: its lane is free and not closed, its prerequisites are
 * done, and no move or reshape runs if it is one. */
static bool may_start(const ExecutorStep *step)
{
        const Lane *lane = lane_of(step);

        return step->state == STEP_WAITING && (!lane || (!lane->busy && !lane->closed)) &&
               (!shapes_tree(step) || step->executor->n_shaping == 0) && prerequisites_done(step);
}

static uint64_t limit(const Executor *executor)
{
        return executor->serial ? 1 : session_get_statistics(executor->session)->max_connections;
}

/* Returns whether the step was sent and has no end yet. Its write can have reached Placement, also
 * if the answer was a 500. */
static bool has_unknown_result(const ExecutorStep *step)
{
        return step->n_tries > 0 && step->state < STEP_DONE;
}

/* Ends the steps that would start again, because no further step starts. They fail, and the mirror
 * forgets their providers. */
static void end_retries(Executor *executor)
{
        for (size_t i = 0; i < executor->plan->n_steps; i++) {
                ExecutorStep *step = &executor->steps[i];

                if (step->state == STEP_RUNNING || !has_unknown_result(step))
                        continue;
                step->pause = sd_event_source_disable_unref(step->pause);
                step_forget(step->step, executor->mirror);
                step_set_state(step, STEP_FAILED);
        }
}

/* Starts the steps that can start, up to the limit, and ends the plan when no step runs or pauses.
 */
static void pump(Executor *executor)
{
        for (size_t i = 0; i < executor->plan->n_steps; i++) {
                if (executor->stopping || executor->n_running >= limit(executor))
                        break;
                if (may_start(&executor->steps[i]))
                        step_start(&executor->steps[i]);
        }
        if (executor->stopping)
                end_retries(executor);
        if (executor->n_running == 0 && executor->n_pausing == 0)
                sd_event_source_set_enabled(executor->deferred, SD_EVENT_ONESHOT);
}

/* Notes the end of a plan with a batch, which is a reshape that has many inventories and moves no
 * consumer (Plan.is_batch). A batch that lost a race EXECUTOR_BATCH_RACES_MAX times in a row, or
 * that was not done for another reason, counts as failed. The caller then plans without one: single
 * writes lose fewer races. */
static void note_batch(Executor *executor)
{
        ExecutorMemory *memory = executor->memory;

        memory->n_batch_races = executor->batch_raced ? memory->n_batch_races + 1 : 0;
        memory->batch_failed |= executor->batch_raced
                                        ? memory->n_batch_races >= EXECUTOR_BATCH_RACES_MAX
                                        : !executor->batch_done;
}

/* Runs twice: first to start the plan, so that no callback runs inside executor_new(), and last to
 * report its end. */
static int on_deferred(sd_event_source *source, void *userdata)
{
        Executor *executor = userdata;

        if (!executor->started) {
                executor->started = true;
                pump(executor);
                return 0;
        }
        if (executor->plan->is_batch)
                note_batch(executor);
        if (executor->n_failed > 1 && executor->error.text[0] != '\0')
                error_prefixf(&executor->error, -executor->error.code, "%zu steps failed, first",
                              executor->n_failed);
        /* The callback can free the executor. */
        executor->done(executor->result, &executor->error, executor->userdata);
        return 0;
}

static int compare_lanes(const void *a, const void *b)
{
        return uuid_order(&((const Lane *)a)->provider, &((const Lane *)b)->provider);
}

/* Checks whether a step has a lane: all but traits and a reshape do. */
static bool takes_turns(const PlanStep *step)
{
        return step->op == PLAN_ENSURE_CLASS || !uuid_empty(&step->provider);
}

/* Makes one lane for each provider, sorted for find_lane(). Classes have the null uuid and share a
 * lane. */
static int make_lanes(Executor *executor)
{
        const Plan *plan = executor->plan;
        size_t n = 0;

        executor->lanes = calloc(plan->n_steps + 1, sizeof(Lane));
        if (!executor->lanes)
                return -ENOMEM;
        for (size_t i = 0; i < plan->n_steps; i++)
                if (takes_turns(&plan->steps[i]))
                        executor->lanes[n++].provider = plan->steps[i].provider;
        qsort(executor->lanes, n, sizeof(Lane), compare_lanes);
        for (size_t i = 0; i < n; i++)
                if (executor->n_lanes == 0 || compare_lanes(&executor->lanes[executor->n_lanes - 1],
                                                            &executor->lanes[i]) != 0)
                        executor->lanes[executor->n_lanes++] = executor->lanes[i];
        return 0;
}

static size_t find_lane(const Executor *executor, const PlanStep *step)
{
        Lane key = { .provider = step->provider };
        const Lane *lane =
                bsearch(&key, executor->lanes, executor->n_lanes, sizeof(Lane), compare_lanes);

        return takes_turns(step) && lane ? (size_t)(lane - executor->lanes) : NO_LANE;
}

static int make_steps(Executor *executor)
{
        const Plan *plan = executor->plan;

        executor->steps = calloc(plan->n_steps + 1, sizeof(ExecutorStep));
        if (!executor->steps)
                return -ENOMEM;
        for (size_t i = 0; i < plan->n_steps; i++) {
                executor->steps[i].executor = executor;
                executor->steps[i].step = &plan->steps[i];
                executor->steps[i].lane = find_lane(executor, &plan->steps[i]);
        }
        return 0;
}

int executor_new(Executor **ret, sd_event *event, Session *session, Mirror *mirror,
                 const Plan *plan, ExecutorMemory *memory,
                 void (*done)(int result, const Error *error, void *userdata), void *userdata,
                 Error *reterr)
{
        _cleanup_(executor_freep) Executor *executor = calloc(1, sizeof(Executor));

        if (!executor)
                return error_oom(reterr);
        executor->event = sd_event_ref(event);
        executor->session = session;
        executor->mirror = mirror;
        executor->plan = plan;
        executor->memory = memory;
        executor->serial = memory->serial_writes;
        executor->done = done;
        executor->userdata = userdata;
        if (make_lanes(executor) < 0 || make_steps(executor) < 0 ||
            sd_event_add_defer(event, &executor->deferred, on_deferred, executor) < 0)
                return error_oom(reterr);
        *ret = TAKE_PTR(executor);
        return 0;
}

void executor_get_progress(const Executor *executor, Progress *ret)
{
        *ret = (Progress){ .phase = "publishing", .n_total = executor->plan->n_steps };
        for (size_t i = 0; i < executor->plan->n_steps; i++)
                ret->n_done += executor->steps[i].state >= STEP_DONE;
}

Executor *executor_free(Executor *executor)
{
        if (!executor)
                return NULL;
        for (size_t i = 0; executor->steps && i < executor->plan->n_steps; i++) {
                ExecutorStep *step = &executor->steps[i];

                if (has_unknown_result(step))
                        step_forget(step->step, executor->mirror);
                session_call_cancel(step->call);
                sd_event_source_disable_unref(step->pause);
                provider_clear_inventories(&step->kept);
                free(step->kept.inventories);
        }
        free(executor->steps);
        free(executor->lanes);
        sd_event_source_disable_unref(executor->deferred);
        sd_event_unref(executor->event);
        free(executor);
        return NULL;
}
