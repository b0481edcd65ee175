/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/placing/task.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "agent/guests/claim-share.h"
#include "base/jitter.h"
#include "base/log.h"

#define ATTEMPTS_MAX   6
#define PAUSE_USEC     (20 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (2 * USEC_PER_SEC)
#define TIMER_ACCURACY (1 * USEC_PER_MSEC)

/* Whoever is refused wants to know it in time: a poll may hang. */
#define SEARCH_MAX_USEC (5 * USEC_PER_SEC)

static void stop_searching(ClaimTask *task)
{
        if (task->searches)
                (void)task->counter->search(task, true, task->counter->search_userdata);
        task->searches = false;
}

ClaimTask *claim_task_free(ClaimTask *task)
{
        if (!task)
                return NULL;
        stop_searching(task);
        if (task->in_hand)
                claim_service_let_go(task->counter->service, &task->consumer);
        consumers_cancel(task->call);
        sd_event_source_disable_unref(task->timer);
        consumer_free(task->seen);
        consumer_free(task->target);
        consumer_free(task->room);
        claim_handover_done(&task->handover);
        claim_free(task->claim);
        free(task);
        return NULL;
}

void claim_task_fail(ClaimTask *task, int result, const Error *error)
{
        Error words = *error;

        task->done(task, result, NULL, false, &words);
}

static void succeed(ClaimTask *task, Claim *claim, bool told)
{
        static const Error no_error;

        if (claim)
                claim_service_touch(task->counter->service, claim->id);
        claim_free(task->claim);
        task->claim = claim;
        task->done(task, 0, claim, told, &no_error);
}

int claim_task_outcome(int result)
{
        return result <= 0 ? result : CLAIM_DESK_E_PLACEMENT;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        ClaimTask *task = userdata;

        task->timer = sd_event_source_disable_unref(task->timer);
        stop_searching(task);
        claim_task_run(task);
        return 0;
}

static bool run_after(ClaimTask *task, uint64_t pause_usec)
{
        task->seen = consumer_free(task->seen);
        task->target = consumer_free(task->target);
        task->room = consumer_free(task->room);
        task->is_there = false;
        return sd_event_add_time_relative(task->counter->event, &task->timer, CLOCK_MONOTONIC,
                                          pause_usec, TIMER_ACCURACY, on_timer, task) >= 0;
}

bool claim_task_retry(ClaimTask *task)
{
        uint64_t pause = PAUSE_USEC << MIN(task->n_attempts, 6U);

        if (++task->n_attempts >= ATTEMPTS_MAX)
                return false;
        pause = jitter_between(pause / 2, MIN(pause, PAUSE_MAX_USEC), jitter_random());
        return run_after(task, pause);
}

void claim_task_searched(ClaimTask *task)
{
        task->searches = false;
        task->timer = sd_event_source_disable_unref(task->timer);
        claim_task_run(task);
}

/* Refused for want of room: a claim whose guest is gone may have it. Once. */
static void refuse(ClaimTask *task, int r, const Error *error)
{
        const ClaimCounter *counter = task->counter;

        if (r == CLAIM_E_NO_CAPACITY && !task->has_searched && counter->search &&
            counter->search(task, false, counter->search_userdata) >= 0) {
                task->has_searched = task->searches = true;
                if (run_after(task, SEARCH_MAX_USEC))
                        return;
        }
        claim_task_fail(task, r, error);
}

static int set_text(char **text, const char *given, const char *otherwise)
{
        if (*text)
                return 0;
        *text = strdup(given && given[0] ? given : otherwise);
        return *text ? 0 : -ENOMEM;
}

int claim_task_name(Consumer *consumer, const char *project, const char *user, const char *type)
{
        return set_text(&consumer->project_id, project, CONSUMER_UNKNOWN_ID) < 0 ||
                               set_text(&consumer->user_id, user, CONSUMER_UNKNOWN_ID) < 0 ||
                               set_text(&consumer->type, type, "INSTANCE") < 0
                       ? -ENOMEM
                       : 0;
}

/* The open database, or NULL when the task has ended for want of it. */
static Claims *open_claims(ClaimTask *task)
{
        Claims *claims = claim_service_get(task->counter->service);
        Error error = ERROR_NULL;

        if (claims)
                return claims;
        error_setf(&error, EIO, "Claims cannot be used: %s",
                   claim_service_error(task->counter->service)->text);
        claim_task_fail(task, -EIO, &error);
        return NULL;
}

static void write_chosen(ClaimTask *task);

/* Claims with what is known, and ends the task. */
static void claim_locally(ClaimTask *task, const ClaimPlacing *placing)
{
        Claims *claims = open_claims(task);
        Error error = ERROR_NULL;
        bool ambiguous = false;
        Claim *claim = NULL;
        int r;

        if (!claims)
                return;
        r = claims_claim_placed(claims, task->request, placing, &claim, &ambiguous, &error);
        if (r != 0) {
                if (placing->holding)
                        refuse(task, r, &error);
                else
                        claim_task_fail(task, r, &error);
                return;
        }
        if (ambiguous)
                log_info("Claim %" PRId64 ": which provider each group of consumer %s got is known "
                         "from the amounts alone, and could be otherwise.",
                         claim->id, claim->consumer.text);
        succeed(task, claim, claim->created_usec >= task->begun_usec);
}

/* Placement cannot be asked. */
static void go_without(ClaimTask *task, const Error *error)
{
        static const ClaimPlacing owed = { .standing = CLAIM_STANDING_OWED };

        if (task->counter->mode == CLAIM_MODE_AUTO &&
            !claim_course_refuses(task->counter->mode, task->counter->nova))
                claim_locally(task, &owed);
        else
                claim_task_fail(task, CLAIM_DESK_E_PLACEMENT, error);
}

/* Writing. */

/* Nothing was written, and that is known: the claim goes without a trace to be removed. */
static void undo(ClaimTask *task, const char *why)
{
        Claims *claims = claim_service_get(task->counter->service);

        if (claims && task->claim)
                (void)claims_withdraw(claims, task->claim->id, why, NULL);
        task->claim = claim_free(task->claim);
}

/* The write may have been done, or be done yet: what ends here leaves a departure. */
static void abandon(ClaimTask *task, const char *why)
{
        Claims *claims = claim_service_get(task->counter->service);

        if (claims && task->claim)
                (void)claims_release(claims, task->claim->id, why, NULL);
        task->claim = claim_free(task->claim);
}

/* Placement has it. */
static void finish_write(ClaimTask *task)
{
        Claims *claims = open_claims(task);
        Error error = ERROR_NULL;
        int r;

        if (!claims)
                return;
        r = claims_set_standing(claims, task->claim->id, CLAIM_STANDING_PENDING,
                                CLAIM_STANDING_WRITTEN, NULL, &error);
        if (r != 0) {
                claim_task_fail(task, r, &error);
                return;
        }
        task->claim->standing = CLAIM_STANDING_WRITTEN;
        task->claim->state = CLAIM_STATE_CLAIMED;
        succeed(task, TAKE_PTR(task->claim), true);
}

/* What was chosen is free here, and not in Placement: others have some of it that no claim tells
 * of.
 */

static bool is_left(const Consumer *room, const Allocation *chosen)
{
        const Resources *left = consumer_find(room, &chosen->provider);

        for (size_t i = 0; i < chosen->resources.n_items; i++)
                if (!left || resources_get(left, chosen->resources.items[i].resource_class) <
                                     chosen->resources.items[i].amount)
                        return false;
        return true;
}

/* All that was chosen of this host is there: then it was a sharing provider that refused. */
static bool is_left_here(const ClaimTask *task, const HostView *view, const char *node)
{
        bool left = true;

        for (size_t i = 0; i < task->claim->n_allocations; i++) {
                const Allocation *chosen = &task->claim->allocations[i];

                if (claim_share_is_own(view, node, &chosen->provider))
                        left = left && is_left(task->room, chosen);
        }
        return left;
}

/* Is something of this host still to be removed? What only may arrive yet is not waited for. */
static bool is_leaving(Claims *claims)
{
        ClaimDeparture departure = { 0 };

        while (claims_next_departure(claims, departure.id, NULL, &departure, NULL) == 0)
                if (!departure.unsure)
                        return true;
        return false;
}

/* Nothing that fits is left in Placement. */
static void fail_for_others(ClaimTask *task, const Error *error)
{
        Claims *claims = claim_service_get(task->counter->service);
        Error words = *error;

        /* What was released a moment ago is on its way out, or left after Placement looked. */
        if (claims && (is_leaving(claims) || task->n_removals != task->counter->n_removals) &&
            claim_task_retry(task))
                return;
        error_prefixf(&words, -ENOSPC,
                      "It would fit here, but other consumers hold in Placement what is free here");
        claim_task_fail(task, CLAIM_E_NO_CAPACITY, &words);
}

static void on_room(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        Claims *claims = claim_service_get(task->counter->service);
        const HostView *view;

        task->call = NULL;
        consumer_free(task->room);
        task->room = TAKE_PTR(answer->consumer);
        if (task->room && claims && claims_host(claims, &view, NULL) == 0)
                task->others_full = is_left_here(task, view, claims_node(claims));
        undo(task, "Placement refused it");
        if (result == REPORT_DONE)
                write_chosen(task);
        else
                claim_task_fail(task, claim_task_outcome(result), error);
}

/* True: it is tried again with what Placement has left. */
static bool ask_for_room(ClaimTask *task)
{
        Claims *claims = claim_service_get(task->counter->service);
        const Allocation *chosen = task->claim->allocations;
        const HostView *view;

        if (task->is_there || ++task->n_attempts >= ATTEMPTS_MAX || !claims ||
            claims_host(claims, &view, NULL) != 0)
                return false;
        for (size_t i = 0; i < task->claim->n_allocations; i++)
                if (claim_share_is_own(view, claims_node(claims),
                                       &task->claim->allocations[i].provider))
                        chosen = &task->claim->allocations[i];
        task->n_removals = task->counter->n_removals;
        return room_read(&task->call, task->session, &task->counter->root,
                         chosen->resources.items[0].resource_class,
                         chosen->resources.items[0].amount, on_room, task, NULL) >= 0;
}

static void on_put(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        int outcome = claim_task_outcome(result);

        task->call = NULL;
        switch (claim_course_of_write(result, answer->status)) {
        case CLAIM_WRITE_DONE:
                finish_write(task);
                return;
        case CLAIM_WRITE_RACED:
                abandon(task, "somebody else wrote the consumer");
                if (claim_task_retry(task))
                        return;
                outcome = CLAIM_E_BUSY;
                break;
        case CLAIM_WRITE_NO_ROOM:
                if (ask_for_room(task))
                        return;
                undo(task, "Placement refused it");
                if (!task->is_there || !claim_task_retry(task))
                        fail_for_others(task, error);
                return;
        case CLAIM_WRITE_REFUSED:
                undo(task, "Placement refused it");
                break;
        case CLAIM_WRITE_UNKNOWN:
                abandon(task, "Placement did not answer");
                break;
        }
        claim_task_fail(task, outcome, error);
}

/* The claim is pending: Placement is told. */
static void put(ClaimTask *task)
{
        const ClaimRequest *request = task->request;
        _cleanup_(consumer_freep) Consumer *consumer = NULL;
        Error error = ERROR_NULL;
        int r = consumer_copy(&consumer, task->seen);

        if (r >= 0 && !task->is_there)
                r = claim_share_add(task->claim, consumer);
        if (r >= 0)
                r = claim_task_name(consumer, request->project_id, request->user_id,
                                    request->consumer_type);
        if (r >= 0)
                r = consumers_write(&task->call, task->session, consumer, &task->claim->mappings,
                                    on_put, task, &error);
        if (r < 0) {
                undo(task, "nothing was sent");
                claim_task_fail(task, r, &error);
        }
}

/* 0: the claim is pending. */
static int claim_pending(ClaimTask *task, Error *reterr)
{
        Claims *claims = claim_service_get(task->counter->service);
        ClaimPlacing placing = {
                .standing = CLAIM_STANDING_PENDING,
                .room = task->room,
                .others_full = task->others_full,
        };
        const HostView *view;
        int r;

        if (!claims)
                return error_setf(reterr, EIO, "Claims cannot be used: %s",
                                  claim_service_error(task->counter->service)->text);
        r = claims_host(claims, &view, reterr);
        if (r != 0)
                return r;
        placing.told = claim_share_told(view, task->seen, true);
        return claims_claim_placed(claims, task->request, &placing, &task->claim, NULL, reterr);
}

/* The fit chooses; Placement has a look at the amounts when it is written. */
static void write_chosen(ClaimTask *task)
{
        Error error = ERROR_NULL;
        int r = claim_pending(task, &error);

        if (r == 0)
                put(task);
        else if (r == CLAIM_E_NO_CAPACITY && task->room)
                fail_for_others(task, &error);
        else
                claim_task_fail(task, r, &error);
}

static void write_claim(ClaimTask *task)
{
        Error error = ERROR_NULL;

        const char *why = claim_course_refuses(task->counter->mode, task->counter->nova);

        if (why) {
                error_setf(&error, ENOENT, "Consumer %s has no allocations on this host, and %s",
                           task->consumer.text, why);
                claim_task_fail(task, CLAIM_DESK_E_NOT_PLACED, &error);
                return;
        }
        write_chosen(task);
}

/* Reading. */

static ClaimPlacing what_is_placed(const ClaimTask *task, const HostView *view,
                                   ClaimStanding standing)
{
        return (ClaimPlacing){
                .holding = task->seen,
                .mappings = task->request->mappings.n_items > 0 ? &task->request->mappings : NULL,
                .standing = standing,
                .told = claim_share_told(view, task->seen, false),
        };
}

uint64_t claim_task_now_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static uint64_t age_usec(const Claim *ended)
{
        uint64_t now = claim_task_now_usec();

        return ended && ended->ended_usec <= now ? now - ended->ended_usec : UINT64_MAX;
}

ClaimDepartureCourse claim_task_departure(const ClaimTask *task, Claims *claims,
                                          const ClaimDeparture *departure, const Claim *ended,
                                          bool late, bool inherited)
{
        const char *node = claims_node(claims);
        ClaimDepartureState state = {
                .inherited = inherited,
                .late = late,
                .unsure = departure->unsure,
                .lives = task->kind == CLAIM_TASK_DEPARTURE &&
                         claim_service_has_guest(task->counter->service, &task->consumer),
                .age_usec = age_usec(ended),
        };
        const HostView *view;

        if (claims_host(claims, &view, NULL) != 0)
                return CLAIM_DEPARTURE_WAIT;
        state.here = claim_share_has(view, node, task->seen);
        state.ours = claim_share_is_ours(view, node, departure, ended, task->seen);
        return claim_course_of_departure(&state);
}

/* Looks at what earlier claims of the consumer left; true when some of it is still there, and the
 * claim that left it is in ret (NULL: not known any more). */
static bool find_left_over(ClaimTask *task, Claims *claims, Claim **ret)
{
        ClaimDeparture departure = { 0 };

        while (claims_next_departure(claims, departure.id, &task->consumer, &departure, NULL) ==
               0) {
                _cleanup_(claim_freep) Claim *ended = NULL;
                ClaimDepartureCourse course;

                (void)claims_get(claims, departure.claim, &ended, NULL);
                course = claim_task_departure(task, claims, &departure, ended, true, false);
                if (course == CLAIM_DEPARTURE_REMOVE) {
                        *ret = TAKE_PTR(ended);
                        return true;
                }
                if (course != CLAIM_DEPARTURE_WAIT)
                        (void)claims_end_departure(claims, departure.id, NULL);
        }
        return false;
}

/* What is left is taken over, if it is what is asked for, and written as it is, lest a removal that
 * was given up arrives yet; else what is chosen takes its place. */
static void use_left_over(ClaimTask *task, Claims *claims, const HostView *view, const Claim *ended)
{
        ClaimPlacing placing = what_is_placed(task, view, CLAIM_STANDING_PENDING);

        placing.told = claim_share_told(view, task->seen, true);
        if (claims_claim_placed(claims, task->request, &placing, &task->claim, NULL, NULL) == 0) {
                task->is_there = true;
                put(task);
        } else {
                (void)claim_share_remove(view, claims_node(claims), ended, task->seen);
                write_claim(task);
        }
}

/* Has it a claim? What the agent wrote is on disk as Placement has it; what somebody else placed
 * (ret_placed) may have been placed anew since. */
static bool has_claim(ClaimTask *task, Claims *claims, bool *ret_placed)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_find(claims, &task->consumer, task->request->resize_target, &claim, NULL) != 0)
                return false;
        *ret_placed = claim->standing == CLAIM_STANDING_NONE;
        if (claim->state != CLAIM_STATE_PENDING)
                return true;
        /* Of before a crash: nobody was promised it. */
        (void)claims_release(claims, claim->id, "not finished", NULL);
        return false;
}

/* A guest that left, and was placed here again before its claim ended: that names what it had. */
static void end_of_before(ClaimTask *task, Claims *claims)
{
        const HostFacts *facts = claim_service_facts(task->counter->service);
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_find(claims, &task->consumer, task->request->resize_target, &claim, NULL) != 0 ||
            claim->standing != CLAIM_STANDING_NONE || claim_share_is(claim, task->seen) || !facts ||
            host_facts_find_domain(facts, &task->consumer))
                return;
        if (claims_release(claims, claim->id, "placed anew", NULL) == 0)
                log_info("Released claim %" PRId64 " of %s: it was placed here anew.", claim->id,
                         claim->consumer.text);
}

/* Placement does not answer. */
static void on_away(ClaimTask *task, const Error *error)
{
        static const ClaimPlacing local = { .standing = CLAIM_STANDING_NONE };
        Claims *claims = open_claims(task);
        bool placed;

        if (!claims)
                return;
        if (has_claim(task, claims, &placed))
                claim_locally(task, &local);
        else
                go_without(task, error);
}

static void on_read(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        _cleanup_(claim_freep) Claim *ended = NULL;
        Error words = ERROR_NULL;
        const HostView *view;
        ClaimPlacing placing;
        Claims *claims;
        bool left_over;
        int r;

        task->call = NULL;
        if (claim_course_is_away(result)) {
                on_away(task, error);
                return;
        }
        if (result != REPORT_DONE) {
                claim_task_fail(task, claim_task_outcome(result), error);
                return;
        }
        task->seen = TAKE_PTR(answer->consumer);
        claims = open_claims(task);
        if (!claims)
                return;
        end_of_before(task, claims);
        left_over = !nova_mode_refuses(task->counter->nova, NOVA_ACTION_REMOVE) &&
                    find_left_over(task, claims, &ended);
        r = claims_host(claims, &view, &words);
        if (r != 0) {
                claim_task_fail(task, r, &words);
        } else if (left_over) {
                use_left_over(task, claims, view, ended);
        } else if (claim_share_has(view, claims_node(claims), task->seen)) {
                placing = what_is_placed(task, view, CLAIM_STANDING_NONE);
                claim_locally(task, &placing);
        } else {
                write_claim(task);
        }
}

/* A healer that has it in hand takes away what would be verified. */
static void read_consumer(ClaimTask *task)
{
        Error error = ERROR_NULL;
        int r;

        if (!task->in_hand)
                task->in_hand = claim_service_take_in_hand(task->counter->service, &task->consumer);
        if (!task->in_hand && claim_task_retry(task))
                return;
        r = task->in_hand ? consumers_read(&task->call, task->session, &task->consumer, on_read,
                                           task, &error)
                          : error_setf(&error, EBUSY, "The consumer is being healed: try again");
        if (r < 0)
                claim_task_fail(task, r, &error);
}

static void run_claim(ClaimTask *task)
{
        static const ClaimPlacing local = { .standing = CLAIM_STANDING_NONE };
        Claims *claims = open_claims(task);
        Error error = ERROR_NULL;
        bool placed = false, away;
        int r;

        if (!claims)
                return;
        away = !task->session || (task->counter->away && task->counter->mode == CLAIM_MODE_AUTO);
        r = claim_request_check(task->request, &error);
        if (r < 0) {
                claim_task_fail(task, r, &error);
        } else if (!task->counter->with_placement ||
                   (has_claim(task, claims, &placed) && (!placed || away))) {
                claim_locally(task, &local);
        } else if (away) {
                error_setf(&error, EAGAIN, "Placement was not spoken to yet");
                go_without(task, &error);
        } else {
                read_consumer(task);
        }
}

void claim_task_run(ClaimTask *task)
{
        if (task->kind == CLAIM_TASK_CLAIM)
                run_claim(task);
        else
                claim_errand_run(task);
}
