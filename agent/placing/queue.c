/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs the tasks of the queue: claims, moves, refreshes, and the tasks of settling.
 * agent/placing/queue.h describes the steps of a claim. The kinds are in claiming.c, attaching.c,
 * moving.c and settle.c; this file has their common parts: turns, pauses, refreshes, reads,
 * answers.
 *
 * Tasks are in one list in the order of their arrival. A task that shares a consumer with an
 * earlier one waits for its turn, so each consumer has one running task at a time. Claims, starts
 * of servers and refreshes also wait while guests are being adopted. The end of a task calls its
 * caller, if it has one. Settling adds one task at a time for the pending work in the database. It
 * skips consumers that have a task, and removals of a consumer to which a move is pending. A task
 * frees itself at its end: no function uses it afterwards. A conflict of Placement repeats a task
 * after a random pause that grows. A task has at most CLAIM_TASK_ATTEMPTS_MAX attempts. Pauses for
 * a healer or a refresh are limited, and are no attempts. The order of a round is removals, moves,
 * writes, and each single removal, move or write has at most one task in a round. A refusal of
 * Placement does not end the round, another failure does. Three events mark all removals that are
 * pending then as late: the first round, a round without a session or the permission to remove, and
 * the failure of a task of a round. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/placing/task.h"
#include "base/clock.h"
#include "base/jitter.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/fit/device-choice.h"

/* Upper limits of the pauses between attempts: for the first pause, and for all. */
#define PAUSE_USEC     (20 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (2 * USEC_PER_SEC)
#define TIMER_ACCURACY (1 * USEC_PER_MSEC)

/* Interval and maximum number of waits for a healer, which needs one or two requests. */
#define HEALER_WAIT_USEC (50 * USEC_PER_MSEC)
#define HEALER_WAITS_MAX 40

/* Limits of the wait for a refresh. A D-Bus caller waits longer than either. */
#define GUESTS_PATIENCE_USEC (10 * USEC_PER_SEC)
#define HOST_PATIENCE_USEC   (5 * USEC_PER_SEC)

/* The limits by kind of refresh. */
static const uint64_t patience_usec[] = {
        [CLAIM_REFRESH_GUESTS] = GUESTS_PATIENCE_USEC,
        [CLAIM_REFRESH_HOST] = HOST_PATIENCE_USEC,
};

static void settle(ClaimQueue *queue);
static void settle_next(ClaimQueue *queue);
static void note_settled(ClaimQueue *queue, int result, bool removed, const Error *error);
static int on_turn(sd_event_source *source, void *userdata);
static void on_adopted(void *userdata);

static int on_soon(sd_event_source *source, void *userdata)
{
        settle(userdata);
        return 0;
}

int claim_queue_new(ClaimQueue **ret, const ClaimQueueConfig *config)
{
        _cleanup_(claim_queue_freep) ClaimQueue *queue = calloc(1, sizeof(ClaimQueue));

        if (!queue)
                return -ENOMEM;
        TAILQ_INIT(&queue->tasks);
        queue->config = *config;
        sd_event_ref(config->event);
        if (sd_event_add_defer(config->event, &queue->soon, on_soon, queue) < 0 ||
            sd_event_source_set_enabled(queue->soon, SD_EVENT_OFF) < 0 ||
            sd_event_add_defer(config->event, &queue->turn, on_turn, queue) < 0 ||
            sd_event_source_set_enabled(queue->turn, SD_EVENT_OFF) < 0)
                return -ENOMEM;
        claim_service_on_adopted(config->service, on_adopted, queue);
        *ret = TAKE_PTR(queue);
        return 0;
}

/* Returns the session to read, or also to write allocations. */
static Session *get_session(const ClaimQueue *queue, bool writes)
{
        return queue->config.session(writes, queue->config.userdata);
}

/* Frees everything that the last attempt has read. */
static void forget(ClaimTask *task)
{
        task->seen = consumer_free(task->seen);
        if (task->kind->forget)
                task->kind->forget(task);
}

/* Frees a task without calling its callback. Cancels its running request. */
static void drop_task(ClaimTask *task)
{
        ClaimQueue *queue = task->queue;

        TAILQ_REMOVE(&queue->tasks, task, link);
        if (queue->settling_task == task)
                queue->settling_task = NULL;
        forget(task);
        if (task->kind->free)
                task->kind->free(task);
        if (task->locked)
                claim_service_unlock_consumer(queue->config.service, &task->consumer);
        consumers_cancel(task->call);
        sd_event_source_disable_unref(task->timer);
        claim_free(task->claim);
        free(task);
}

ClaimQueue *claim_queue_free(ClaimQueue *queue)
{
        if (!queue)
                return NULL;
        claim_queue_dismiss(queue, "The agent ends");
        claim_service_on_adopted(queue->config.service, NULL, NULL);
        sd_event_source_disable_unref(queue->soon);
        sd_event_source_disable_unref(queue->turn);
        sd_event_unref(queue->config.event);
        free(queue);
        return NULL;
}

void claim_queue_set_mode(ClaimQueue *queue, ClaimMode mode, NovaMode nova, bool with_placement)
{
        queue->mode = mode;
        queue->nova = nova;
        queue->with_placement = with_placement;
}

bool claim_queue_writes(const ClaimQueue *queue)
{
        return queue->with_placement &&
               !(queue->mode == CLAIM_MODE_AUTO && (queue->away || !get_session(queue, true))) &&
               !claim_decide_refuses(queue->mode, queue->nova);
}

/* Returns true if the task uses the consumer, also as the target of a move. */
static bool concerns(const ClaimTask *task, const Uuid *consumer)
{
        return uuid_equal(&task->consumer, consumer) || uuid_equal(&task->other, consumer);
}

/* Returns the oldest task that uses the consumer, or NULL. */
static ClaimTask *find_task(const ClaimQueue *queue, const Uuid *consumer)
{
        ClaimTask *task;

        TAILQ_FOREACH(task, &queue->tasks, link)
                if (concerns(task, consumer))
                        return task;
        return NULL;
}

/* Appends a task. Removals and pending writes are also sent in a claim_mode that writes no new
 * claims. NULL: out of memory. */
static ClaimTask *add_task(ClaimQueue *queue, const ClaimTaskKind *kind, const Uuid *consumer)
{
        bool settles = kind == &claim_task_removing || kind == &claim_task_writing;
        bool writes =
                settles || (!kind->reads_only && !claim_decide_refuses(queue->mode, queue->nova));
        ClaimTask *task = calloc(1, sizeof(ClaimTask));

        if (!task)
                return NULL;
        task->queue = queue;
        task->session = queue->with_placement ? get_session(queue, writes) : NULL;
        task->kind = kind;
        task->consumer = *consumer;
        TAILQ_INSERT_TAIL(&queue->tasks, task, link);
        return task;
}

/* Running */

/* Ends a task of claim_queue_refresh() with success. */
static void end_refresh(ClaimTask *task)
{
        claim_task_fail(task, 0, &ERROR_NULL);
}

static const ClaimTaskKind refreshing_alone = { .run = end_refresh };

/* Returns true if a claim, a start of a server, or an answer about capacity must wait: guests are
 * being adopted, and their amounts still look free. */
static bool is_held_up(const ClaimTask *task)
{
        return (task->kind == &claim_task_claiming || task->kind == &claim_task_attaching ||
                task->kind == &refreshing_alone) &&
               task->queue->config.service->is_adopting;
}

/* Runs a task. A task that is held up frees what it has read, and starts again when the guests are
 * adopted (on_turn()). */
static void run(ClaimTask *task)
{
        task->waits = is_held_up(task);
        if (task->waits) {
                forget(task);
                return;
        }
        task->kind->run(task);
}

/* Ends a task that cannot continue without the definitions of all guests. */
static void fail_without_guests(ClaimTask *task, const char *why)
{
        Error error = ERROR_NULL;

        error_setf(&error, EBUSY, "Cannot read the devices of guests: %s", why);
        claim_task_fail(task, -EBUSY, &error);
}

/* Handles the end of a pause, or the limit of the wait for a refresh. If the guests were not
 * refreshed in time, the task fails. If the host was not refreshed in time, the task continues with
 * the known state. */
static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        ClaimTask *task = userdata;
        ClaimRefresh refreshing = task->refreshing;

        task->timer = sd_event_source_disable_unref(task->timer);
        task->refreshing = CLAIM_REFRESH_NONE;
        if (refreshing == CLAIM_REFRESH_GUESTS)
                fail_without_guests(task, "the hypervisor does not answer");
        else
                run(task);
        return 0;
}

/* Frees everything that the task has read, and runs it again after pause_usec. Does not count as an
 * attempt. Returns false when out of memory. */
static bool run_after(ClaimTask *task, uint64_t pause_usec)
{
        forget(task);
        return sd_event_add_time_relative(task->queue->config.event, &task->timer, CLOCK_MONOTONIC,
                                          pause_usec, TIMER_ACCURACY, on_timer, task) >= 0;
}

bool claim_task_retry(ClaimTask *task)
{
        uint64_t pause = PAUSE_USEC << MIN(task->n_attempts, 6U);

        if (++task->n_attempts >= CLAIM_TASK_ATTEMPTS_MAX)
                return false;
        pause = jitter_between(pause / 2, MIN(pause, PAUSE_MAX_USEC), jitter_random());
        return run_after(task, pause);
}

int claim_task_refresh(ClaimTask *task, ClaimRefresh what, Error *reterr)
{
        const ClaimQueueConfig *config = &task->queue->config;
        int r;

        if (!config->refresh)
                return error_setf(reterr, ENOTSUP, "Cannot read the host");
        task->refreshed |= what;
        task->asked_usec = clock_usec(CLOCK_MONOTONIC);
        r = config->refresh(what, config->userdata, reterr);
        if (r < 0)
                return r;
        if (!run_after(task, patience_usec[what]))
                return error_oom(reterr);
        task->refreshing = what;
        return 0;
}

/* Returns true if the task needs a device, and must refresh the guests before. Before the first
 * poll, no need is known. */
static bool needs_guests(const ClaimTask *task)
{
        const HostFacts *facts = task->queue->config.service->facts;

        return task->queue->config.refresh && !(task->refreshed & CLAIM_REFRESH_GUESTS) && facts &&
               (task->kind == &claim_task_attaching ||
                (task->request && devices_are_asked(facts, &task->request->resources)));
}

/* Starts a task at its turn. A task that needs a device refreshes the guests first. */
static void start(ClaimTask *task)
{
        Error error = ERROR_NULL;
        int r;

        task->waits = is_held_up(task);
        if (task->waits || !needs_guests(task)) {
                run(task);
                return;
        }
        r = claim_task_refresh(task, CLAIM_REFRESH_GUESTS, &error);
        if (r < 0)
                fail_without_guests(task, error_text(&error, r));
}

/* Returns the oldest task that waits for the refresh and requested it before that time, or NULL. */
static ClaimTask *find_refreshing(const ClaimQueue *queue, ClaimRefresh what, uint64_t before_usec)
{
        ClaimTask *task;

        TAILQ_FOREACH(task, &queue->tasks, link)
                if (task->refreshing == what && task->asked_usec <= before_usec)
                        return task;
        return NULL;
}

void claim_queue_refreshed(ClaimQueue *queue, ClaimRefresh what, uint64_t began_usec,
                           const Error *error)
{
        uint64_t before_usec = error->code ? UINT64_MAX : began_usec;
        ClaimTask *task;

        /* Each task can modify the list, so restart the search. */
        while ((task = find_refreshing(queue, what, before_usec))) {
                task->refreshing = CLAIM_REFRESH_NONE;
                task->timer = sd_event_source_disable_unref(task->timer);
                if (error->code && what == CLAIM_REFRESH_GUESTS)
                        fail_without_guests(task, error->text);
                else
                        run(task);
        }
}

/* Starts the first waiting task that shares no consumer with an earlier task, and is not held up.
 * The event loop calls it again until no task can start. */
static int on_turn(sd_event_source *source, void *userdata)
{
        ClaimQueue *queue = userdata;
        ClaimTask *task, *other;

        TAILQ_FOREACH(task, &queue->tasks, link) {
                bool is_next = task->waits && !is_held_up(task);

                for (other = TAILQ_FIRST(&queue->tasks); is_next && other != task;
                     other = TAILQ_NEXT(other, link))
                        is_next = !concerns(other, &task->consumer) &&
                                  !(!uuid_empty(&task->other) && concerns(other, &task->other));
                if (!is_next)
                        continue;
                /* One task for each call, because it can modify the list. */
                (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                start(task);
                return 0;
        }
        return 0;
}

/* Lets the tasks that were held up start, one in each iteration of the loop, because the guests are
 * adopted. */
static void on_adopted(void *userdata)
{
        (void)sd_event_source_set_enabled(((ClaimQueue *)userdata)->turn, SD_EVENT_ONESHOT);
}

/* Ending */

int claim_task_outcome(int result)
{
        return result <= 0 ? result : CLAIM_QUEUE_E_PLACEMENT;
}

void claim_task_end(ClaimTask *task, int result, const Claim *claim, bool is_new,
                    const Error *error)
{
        ClaimQueue *queue = task->queue;
        bool removed = result == 0 && task->kind == &claim_task_removing;
        bool is_settling = !task->answer;
        Error words = *error;

        if (task->kind != &refreshing_alone)
                claim_service_check(queue->config.service, result);
        if (!is_settling) {
                /* Without a claim, the task can have left a removal. */
                if ((result != 0 || !claim) && queue->with_placement &&
                    task->kind != &refreshing_alone)
                        claim_queue_settle_soon(queue);
                task->answer(result, claim, is_new, &words, task->userdata);
        }
        drop_task(task);
        (void)sd_event_source_set_enabled(queue->turn, SD_EVENT_ONESHOT);
        if (is_settling)
                note_settled(queue, result, removed, &words);
}

void claim_task_fail(ClaimTask *task, int result, const Error *error)
{
        claim_task_end(task, result, NULL, false, error);
}

Claims *claim_task_open_claims(ClaimTask *task)
{
        Error error = ERROR_NULL;
        Claims *claims = claim_service_require(task->queue->config.service, &error);

        if (!claims)
                claim_task_fail(task, -EIO, &error);
        return claims;
}

bool claim_task_has_written(ClaimTask *task, int result, const Error *error)
{
        task->call = NULL;
        if (result != REPORT_DONE && (result != REPORT_E_CONFLICT || !claim_task_retry(task)))
                claim_task_fail(task, claim_task_outcome(result), error);
        return result == REPORT_DONE;
}

/* Reading */

/* Stores the consumer that was read and continues the task. A task that is held up now starts again
 * later instead. If the read failed, the task continues with away() or fails. */
static void on_read(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        ClaimTask *task = userdata;
        const HostView *view;
        Error words = ERROR_NULL;
        Claims *claims;
        int r;

        task->call = NULL;
        if (result != REPORT_DONE) {
                if (task->kind->away && report_outcome_is_away(result))
                        task->kind->away(task, error);
                else
                        claim_task_fail(task, claim_task_outcome(result), error);
                return;
        }
        if (is_held_up(task)) {
                run(task);
                return;
        }
        *task->read = TAKE_PTR(answer->consumer);
        claims = claim_service_require(task->queue->config.service, &words);
        r = claims ? claims_host(claims, &view, &words) : -EIO;
        if (r == 0)
                r = task->next(task, claims, view, &words);
        /* After 0 the task might be freed. */
        if (r != 0)
                claim_task_fail(task, r, &words);
}

void claim_task_explain_away(Error *ret)
{
        error_setf(ret, EAGAIN,
                   "Placement cannot be used now (\"computectl status\" shows the reason)");
}

void claim_task_read(ClaimTask *task, const Uuid *consumer, Consumer **ret, ClaimTaskNext next)
{
        Error error = ERROR_NULL;
        int r;

        if (!task->session) {
                claim_task_explain_away(&error);
                claim_task_fail(task, CLAIM_QUEUE_E_PLACEMENT, &error);
                return;
        }
        task->read = ret;
        task->next = next;
        r = consumers_read(&task->call, task->session, consumer, on_read, task, &error);
        if (r < 0)
                claim_task_fail(task, r, &error);
}

void claim_task_read_locked(ClaimTask *task, ClaimTaskNext next)
{
        Error error = ERROR_NULL;

        if (!task->locked)
                task->locked =
                        claim_service_lock_consumer(task->queue->config.service, &task->consumer);
        if (!task->locked && task->n_waits++ < HEALER_WAITS_MAX &&
            run_after(task, HEALER_WAIT_USEC))
                return;
        if (!task->locked && !task->answer) {
                /* a later round writes it, and the other tasks of this round continue */
                claim_task_end(task, 0, NULL, false, &error);
                return;
        }
        if (!task->locked) {
                error_setf(&error, EBUSY, "The consumer is being healed. Try again");
                claim_task_fail(task, -EBUSY, &error);
                return;
        }
        claim_task_read(task, &task->consumer, &task->seen, next);
}

/* Asking */

/* Stores the caller in the task, and starts it unless it waits for its turn. task NULL: out of
 * memory; the caller gets this error at once. */
static void ask(ClaimTask *task, bool waits, ClaimQueueDone done, void *userdata)
{
        Error error = ERROR_NULL;

        if (!task) {
                done(error_oom(&error), NULL, false, &error, userdata);
                return;
        }
        task->answer = done;
        task->userdata = userdata;
        task->waits = waits;
        if (!waits)
                start(task);
}

void claim_queue_claim(ClaimQueue *queue, const ClaimRequest *request, ClaimQueueDone done,
                       void *userdata)
{
        bool waits = find_task(queue, &request->consumer);
        ClaimTask *task = add_task(queue, &claim_task_claiming, &request->consumer);

        if (task)
                task->request = request;
        ask(task, waits, done, userdata);
}

void claim_queue_attach(ClaimQueue *queue, const Uuid *consumer, const StringSet *classes,
                        const EventAuthor *by, ClaimQueueDone done, void *userdata)
{
        bool waits = find_task(queue, consumer);
        ClaimTask *task = add_task(queue, &claim_task_attaching, consumer);

        if (task) {
                task->attaching.classes = classes;
                task->attaching.by = by;
        }
        ask(task, waits, done, userdata);
}

void claim_queue_refresh(ClaimQueue *queue, const ClaimRequest *request, ClaimQueueDone done,
                         void *userdata)
{
        const Uuid no_consumer = uuid_make_random();
        ClaimTask *task = add_task(queue, &refreshing_alone, &no_consumer);

        if (task)
                task->request = request;
        ask(task, false, done, userdata);
}

void claim_queue_move(ClaimQueue *queue, const Uuid *from, const Uuid *to, const char *to_type,
                      const EventAuthor *by, ClaimQueueDone done, void *userdata)
{
        bool waits = find_task(queue, from) || find_task(queue, to);
        ClaimTask *task = add_task(queue, &claim_task_moving, from);

        if (task && to_type && !(task->moving.move.to_type = strdup(to_type))) {
                drop_task(task);
                task = NULL;
        }
        if (task) {
                task->other = *to;
                task->moving.move.from = *from;
                task->moving.move.to = *to;
                task->moving.move.by = by;
        }
        ask(task, waits, done, userdata);
}

/* Settling */

/* Stores why work is not settled, and logs a reason that differs from the last one. words "": no
 * trouble. Work can still be pending then, for example for a guest that was not read. So it logs
 * the end of the trouble later, once when nothing is pending. */
static void note_trouble(ClaimQueue *queue, const char *words)
{
        PendingWrites pending_writes;

        if (words[0] && strcmp(words, queue->trouble) != 0) {
                log_event(LOG_WARNING, MESSAGE_PLACEMENT_WRITES_PENDING, NULL,
                          "Cannot report all claims to Placement: %s. Retrying.", words);
                queue->was_in_trouble = true;
        }
        snprintf(queue->trouble, sizeof(queue->trouble), "%s", words);
        if (words[0] || !queue->was_in_trouble)
                return;
        (void)claim_queue_count_pending_writes(queue, &pending_writes);
        if (pending_writes_sum(&pending_writes) > 0)
                return;
        log_event(LOG_NOTICE, MESSAGE_PLACEMENT_SETTLED, NULL,
                  "All claims are reported to Placement.");
        queue->was_in_trouble = false;
}

/* Reports the end of a round to the owner, if a task ran since the last report. */
static void notify_settled(ClaimQueue *queue)
{
        if (queue->worked && queue->config.settled)
                queue->config.settled(queue->config.userdata);
        queue->worked = false;
}

/* Marks the removals that are pending now as late, because they cannot be settled now. Another
 * writer can place their consumers before they are settled. So they later require evidence that the
 * agent wrote the allocations. */
static void note_late(ClaimQueue *queue)
{
        Claims *claims = queue->config.service->claims;
        PendingWrites pending_writes;

        if (claims && claims_count_pending_writes(claims, &pending_writes, NULL) == 0)
                queue->late_removal = pending_writes.last_removal;
}

/* Continues the round after one of its tasks has ended. A refusal by Placement (EREMOTEIO) concerns
 * only this task. After another error, of Placement or of the disk, the round ends. */
static void note_settled(ClaimQueue *queue, int result, bool removed, const Error *error)
{
        queue->n_removals += removed;
        if (result != 0) {
                note_late(queue);
                queue->failed = true;
                note_trouble(queue, error->text);
        }
        if (result == 0 || error->code == EREMOTEIO)
                settle_next(queue);
        else
                notify_settled(queue);
}

/* Releases one pending claim and logs it. */
static void roll_back(Claims *claims, const Claim *claim)
{
        char id[24];

        if (claims_release(claims, claim->id, "not finished", NULL) != 0)
                return;
        snprintf(id, sizeof(id), "%" PRId64, claim->id);
        log_event(LOG_NOTICE, MESSAGE_CLAIM_ROLLED_BACK,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, claim->consumer.text),
                  "Claim %s of %s rolled back: not finished.", id, claim->consumer.text);
}

/* Releases pending claims whose consumer has no task. A crash, or a task that was dismissed or
 * could not store its result, left them, and their callers have received no claim. */
static void release_pending(ClaimQueue *queue, Claims *claims)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list(claims, CLAIMS_PENDING, NULL, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++)
                if (!find_task(queue, &list.claims[i]->consumer))
                        roll_back(claims, list.claims[i]);
}

/* Returns true if a move to this consumer is pending. Until it is settled, the allocations of the
 * consumer are no evidence about an earlier claim. */
static bool is_moved_to(Claims *claims, const Uuid *consumer)
{
        ClaimMove move;
        int64_t after = 0;

        while (claims_next_move(claims, after, &move, NULL) == 0) {
                bool is = uuid_equal(&move.to, consumer);

                after = move.id;
                claim_move_done(&move);
                if (is)
                        return true;
        }
        return false;
}

/* Adds a task for the next removal of the round. Skips consumers that have a task, or to which a
 * move is pending. NULL: there is none, or out of memory. */
static ClaimTask *next_removal(ClaimQueue *queue, Claims *claims)
{
        ClaimRemoval removal;

        while (claims_next_removal(claims, queue->after_removal, NULL, &removal, NULL) == 0) {
                ClaimTask *task;

                queue->after_removal = removal.id;
                if (find_task(queue, &removal.consumer) || is_moved_to(claims, &removal.consumer))
                        continue;
                task = add_task(queue, &claim_task_removing, &removal.consumer);
                if (task) {
                        task->leaving.removal = removal;
                        task->leaving.late = removal.id <= queue->late_removal;
                }
                return task;
        }
        return NULL;
}

/* Adds a task for the next pending move of the round. Skips moves of which a consumer has a task,
 * and all moves when out of memory. NULL: there is none. */
static ClaimTask *next_move(ClaimQueue *queue, Claims *claims)
{
        ClaimMove move;

        while (claims_next_move(claims, queue->after_move, &move, NULL) == 0) {
                ClaimTask *task = NULL;

                queue->after_move = move.id;
                if (!find_task(queue, &move.from) && !find_task(queue, &move.to))
                        task = add_task(queue, &claim_task_moving, &move.from);
                if (!task) {
                        claim_move_done(&move);
                        continue;
                }
                task->other = move.to;
                task->moving.move = move;
                task->moving.repairs = true;
                return task;
        }
        return NULL;
}

/* Adds a task for the next pending write of the round. Skips consumers that have a task. NULL:
 * there is none, or out of memory. */
static ClaimTask *next_write(ClaimQueue *queue, Claims *claims)
{
        for (;;) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                ClaimTask *task;

                if (claims_next_write(claims, queue->after_write, &claim, NULL) != 0)
                        return NULL;
                queue->after_write = claim->id;
                if (find_task(queue, &claim->consumer))
                        continue;
                task = add_task(queue, &claim_task_writing, &claim->consumer);
                if (task)
                        task->claim = TAKE_PTR(claim);
                return task;
        }
}

/* Starts the next task of the round: removals first, then moves, then writes. If none is left, ends
 * the round. */
static void settle_next(ClaimQueue *queue)
{
        Claims *claims = queue->config.service->claims;
        ClaimTask *task = NULL;

        if (claims) {
                task = next_removal(queue, claims);
                if (!task)
                        task = next_move(queue, claims);
                if (!task)
                        task = next_write(queue, claims);
        }
        if (task) {
                queue->settling_task = task;
                queue->worked = true;
                run(task);
                return;
        }
        if (!queue->failed)
                note_trouble(queue, "");
        notify_settled(queue);
        if (queue->again)
                claim_queue_settle_soon(queue);
}

/* Returns true if the agent must not settle, because [agent] nova forbids removals. Marks pending
 * removals as late then, and reports the reason only if work is pending. */
static bool is_settling_refused(ClaimQueue *queue)
{
        const char *why = nova_mode_refuses(queue->nova, NOVA_ACTION_REMOVE);
        PendingWrites pending_writes;

        if (!why)
                return false;
        (void)claim_queue_count_pending_writes(queue, &pending_writes);
        note_late(queue);
        note_trouble(queue, pending_writes_sum(&pending_writes) > 0 ? why : "");
        return true;
}

static void settle(ClaimQueue *queue)
{
        Claims *claims = queue->config.service->claims;

        if (!claims)
                return;
        if (queue->settling_task) {
                queue->again = true;
                return;
        }
        release_pending(queue, claims);
        if (!queue->with_placement || is_settling_refused(queue))
                return;
        if (!queue->begun || !get_session(queue, true))
                note_late(queue);
        queue->begun = true;
        if (!get_session(queue, true))
                return;
        queue->after_removal = queue->after_move = queue->after_write = 0;
        queue->again = queue->failed = false;
        settle_next(queue);
}

void claim_queue_tend(ClaimQueue *queue, bool away, bool settles)
{
        queue->away = away;
        if (settles && !away)
                settle(queue);
}

void claim_queue_settle_soon(ClaimQueue *queue)
{
        (void)sd_event_source_set_enabled(queue->soon, SD_EVENT_ONESHOT);
}

const char *claim_queue_count_pending_writes(const ClaimQueue *queue, PendingWrites *ret)
{
        Claims *claims = queue->config.service->claims;

        *ret = (PendingWrites){ 0 };
        if (claims)
                (void)claims_count_pending_writes(claims, ret, NULL);
        return queue->trouble;
}

/* Marks a claim that the agent has not written as written by the agent, so that its end also
 * removes allocations of another writer. A claim that the agent has sent or written is
 * unchanged. */
static int mark_written(Claims *claims, int64_t id, Error *reterr)
{
        static const ClaimWriteState others[] = { CLAIM_WRITE_NONE, CLAIM_WRITE_UNSENT };

        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                int r = claims_set_write_state(claims, id, others[i], CLAIM_WRITE_WRITTEN, NULL,
                                               reterr);

                if (r != CLAIM_E_NOT_FOUND)
                        return r;
        }
        return 0;
}

int claim_queue_release(ClaimQueue *queue, int64_t id, const char *reason, bool everywhere,
                        Error *reterr)
{
        Claims *claims = claim_service_require(queue->config.service, reterr);
        const char *why = nova_mode_refuses(queue->nova, NOVA_ACTION_REMOVE);
        int r = 0;

        if (!claims)
                return -EIO;
        if (everywhere && queue->with_placement && why) {
                error_setf(reterr, EPERM, "%s", why);
                return CLAIM_QUEUE_E_REFUSED;
        }
        if (everywhere && queue->with_placement)
                r = mark_written(claims, id, reterr);
        if (r == 0)
                r = claims_release(claims, id, reason, reterr);
        if (r == 0)
                claim_queue_settle_soon(queue);
        return r;
}

void claim_queue_dismiss(ClaimQueue *queue, const char *why)
{
        Error error = ERROR_NULL;

        error_setf(&error, ECANCELED, "%s", why);
        while (!TAILQ_EMPTY(&queue->tasks)) {
                ClaimTask *task = TAILQ_FIRST(&queue->tasks);

                if (task->answer)
                        task->answer(-EBUSY, NULL, false, &error, task->userdata);
                drop_task(task);
        }
}
