/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/placing/queue.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/placing/claiming.h"
#include "agent/placing/look.h"
#include "agent/placing/moving.h"
#include "agent/placing/settle.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"

typedef TAILQ_HEAD(ClaimTaskList, ClaimTask) ClaimTaskList;

struct ClaimQueue {
        ClaimQueueShared shared;
        ClaimTaskList tasks;
        sd_event_source *soon, *turn;

        /* Settling: one task at a time. */
        ClaimTask *owed_task;
        int64_t after_removal, after_move, after_write;
        int64_t late_removal; /* up to this one they were not looked at when their claims ended */
        bool begun;
        bool again;                   /* asked for meanwhile */
        bool worked, failed;          /* some of this round */
        char trouble[ERROR_TEXT_MAX]; /* that was logged */
};

static void settle_next(ClaimQueue *queue);
static int on_turn(sd_event_source *source, void *userdata);

static int on_soon(sd_event_source *source, void *userdata)
{
        claim_queue_settle(userdata);
        return 0;
}

int claim_queue_new(ClaimQueue **ret, const ClaimQueueConfig *config)
{
        _cleanup_(claim_queue_freep) ClaimQueue *queue = calloc(1, sizeof(ClaimQueue));

        if (!queue)
                return -ENOMEM;
        TAILQ_INIT(&queue->tasks);
        queue->shared.config = *config;
        sd_event_ref(config->event);
        if (sd_event_add_defer(config->event, &queue->soon, on_soon, queue) < 0 ||
            sd_event_source_set_enabled(queue->soon, SD_EVENT_OFF) < 0 ||
            sd_event_add_defer(config->event, &queue->turn, on_turn, queue) < 0 ||
            sd_event_source_set_enabled(queue->turn, SD_EVENT_OFF) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(queue);
        return 0;
}

static Session *get_session(const ClaimQueue *queue)
{
        return queue->shared.config.session(queue->shared.config.userdata);
}

static bool concerns(const ClaimTask *task, const Uuid *consumer)
{
        return uuid_equal(&task->consumer, consumer) || uuid_equal(&task->moving.move.to, consumer);
}

static void drop_task(ClaimQueue *queue, ClaimTask *task)
{
        TAILQ_REMOVE(&queue->tasks, task, link);
        if (queue->owed_task == task)
                queue->owed_task = NULL;
        claim_task_free(task);
}

ClaimQueue *claim_queue_free(ClaimQueue *queue)
{
        if (!queue)
                return NULL;
        while (!TAILQ_EMPTY(&queue->tasks))
                drop_task(queue, TAILQ_FIRST(&queue->tasks));
        sd_event_source_disable_unref(queue->soon);
        sd_event_source_disable_unref(queue->turn);
        sd_event_unref(queue->shared.config.event);
        free(queue);
        return NULL;
}

void claim_queue_set_mode(ClaimQueue *queue, ClaimMode mode, NovaMode nova, bool with_placement)
{
        queue->shared.mode = mode;
        queue->shared.nova = nova;
        queue->shared.with_placement = with_placement;
}

void claim_queue_set_away(ClaimQueue *queue, bool away)
{
        queue->shared.away = away;
}

void claim_queue_searched(void *task)
{
        claim_search_end(task);
}

static ClaimTask *find_task(const ClaimQueue *queue, const Uuid *consumer)
{
        ClaimTask *task;

        TAILQ_FOREACH(task, &queue->tasks, link)
                if (concerns(task, consumer))
                        return task;
        return NULL;
}

static ClaimTask *add_task(ClaimQueue *queue, ClaimTaskRun run, const Uuid *consumer,
                           ClaimTaskDone done)
{
        ClaimTask *task = calloc(1, sizeof(ClaimTask));

        if (!task)
                return NULL;
        task->shared = &queue->shared;
        task->session = queue->shared.with_placement ? get_session(queue) : NULL;
        task->run = run;
        task->consumer = *consumer;
        task->done = done;
        task->owner = queue;
        task->begun_usec = clock_usec(CLOCK_REALTIME);
        TAILQ_INSERT_TAIL(&queue->tasks, task, link);
        return task;
}

/* Of what somebody waits for. Without a claim in the end, something may be left to be removed. */
static void on_asked_done(ClaimTask *task, int result, const Claim *claim, bool is_new,
                          const Error *error)
{
        ClaimQueue *queue = task->owner;

        if ((result != 0 || !claim) && queue->shared.with_placement)
                (void)sd_event_source_set_enabled(queue->soon, SD_EVENT_ONESHOT);
        claim_service_check(queue->shared.config.service, result);
        task->answer(result, claim, is_new, error, task->userdata);
        drop_task(queue, task);
        (void)sd_event_source_set_enabled(queue->turn, SD_EVENT_ONESHOT);
}

static void start(ClaimTask *task)
{
        task->waits = false;
        task->begun_usec = clock_usec(CLOCK_REALTIME);
        if (claim_look_is_due(task))
                claim_look_begin(task);
        else
                task->run(task);
}

/* Those that wait run from the loop, when what they wait for is gone. */
static int on_turn(sd_event_source *source, void *userdata)
{
        ClaimQueue *queue = userdata;
        ClaimTask *task, *other;

        TAILQ_FOREACH(task, &queue->tasks, link) {
                bool free = task->waits;

                for (other = TAILQ_FIRST(&queue->tasks); free && other != task;
                     other = TAILQ_NEXT(other, link))
                        free = !concerns(other, &task->consumer) &&
                               !(!uuid_empty(&task->moving.move.to) &&
                                 concerns(other, &task->moving.move.to));
                if (!free)
                        continue;
                /* One at a time: the list is another one after it. */
                (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                start(task);
                return 0;
        }
        return 0;
}

static ClaimTask *find_looking(const ClaimQueue *queue, uint64_t before_usec)
{
        ClaimTask *task;

        TAILQ_FOREACH(task, &queue->tasks, link)
                if (task->look.waits && task->look.begun_usec <= before_usec)
                        return task;
        return NULL;
}

/* The list is another one after each. */
void claim_queue_looked(ClaimQueue *queue, uint64_t began_usec, const Error *error)
{
        uint64_t before_usec = error->code ? UINT64_MAX : began_usec;
        ClaimTask *task;

        while ((task = find_looking(queue, before_usec))) {
                task->look.waits = false;
                task->look.was_done = true;
                task->timer = sd_event_source_disable_unref(task->timer);
                if (error->code)
                        claim_look_fail(task, error->text);
                else
                        start(task);
        }
}

/* Starts the task, unless it waits for its turn. task NULL: there was no memory for it. */
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
        ClaimTask *task = add_task(queue, claim_claiming_run, &request->consumer, on_asked_done);

        if (task)
                task->request = request;
        ask(task, waits, done, userdata);
}

static void on_look_done(ClaimTask *task, int result, const Claim *claim, bool is_new,
                         const Error *error)
{
        ClaimQueue *queue = task->owner;

        task->answer(result, NULL, false, error, task->userdata);
        drop_task(queue, task);
}

/* A look is all that it waited for. */
static void end_look(ClaimTask *task)
{
        claim_task_end(task, 0, &ERROR_NULL);
}

void claim_queue_look(ClaimQueue *queue, const ClaimRequest *request, ClaimQueueDone done,
                      void *userdata)
{
        const Uuid nobody = uuid_make_random();
        ClaimTask *task = add_task(queue, end_look, &nobody, on_look_done);

        if (task)
                task->request = request;
        ask(task, false, done, userdata);
}

void claim_queue_move(ClaimQueue *queue, const Uuid *from, const Uuid *to, const char *to_type,
                      const EventAuthor *by, ClaimQueueDone done, void *userdata)
{
        bool waits = find_task(queue, from) || find_task(queue, to);
        ClaimTask *task = add_task(queue, claim_moving_run, from, on_asked_done);

        if (task && to_type && !(task->moving.move.to_type = strdup(to_type))) {
                drop_task(queue, task);
                task = NULL;
        }
        if (task) {
                task->moving.move.from = *from;
                task->moving.move.to = *to;
                task->moving.move.by = by;
        }
        ask(task, waits, done, userdata);
}

/* Settling. */

/* One line when it begins, one when it ends. */
static void note_trouble(ClaimQueue *queue, const char *words)
{
        if (words[0] && strcmp(words, queue->trouble) != 0)
                log_event(LOG_WARNING, MESSAGE_PLACEMENT_OWED, NULL,
                          "Cannot yet report all claims to Placement: %s; retrying.", words);
        else if (!words[0] && queue->trouble[0])
                log_event(LOG_NOTICE, MESSAGE_PLACEMENT_SETTLED, NULL,
                          "All claims are reported to Placement.");
        snprintf(queue->trouble, sizeof(queue->trouble), "%s", words);
}

static void notify_settled(ClaimQueue *queue)
{
        if (queue->worked && queue->shared.config.settled)
                queue->shared.config.settled(queue->shared.config.userdata);
        queue->worked = false;
}

/* What is there waits, and somebody may write there meanwhile. */
static void note_late(ClaimQueue *queue)
{
        Claims *claims = queue->shared.config.service->claims;
        ClaimsOwed owed;

        if (claims && claims_count_owed(claims, &owed, NULL) == 0)
                queue->late_removal = owed.last_removal;
}

/* A refusal is this one's alone; where Placement or the disk is away, all others wait, too. */
static void on_owed_done(ClaimTask *task, int result, const Claim *claim, bool is_new,
                         const Error *error)
{
        ClaimQueue *queue = task->owner;

        claim_service_check(queue->shared.config.service, result);
        if (result == 0 && task->run == claim_removing_run)
                queue->shared.n_removals++;
        drop_task(queue, task);
        (void)sd_event_source_set_enabled(queue->turn, SD_EVENT_ONESHOT);
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

static void take_back(Claims *claims, const Claim *claim)
{
        char id[24];

        if (claims_release(claims, claim->id, "not finished", NULL) != 0)
                return;
        snprintf(id, sizeof(id), "%" PRId64, claim->id);
        log_event(LOG_NOTICE, MESSAGE_CLAIM_TAKEN_BACK,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, claim->consumer.text),
                  "Claim %s of %s: was not finished, and is taken back.", id, claim->consumer.text);
}

/* Nobody was promised these, and nobody will be. */
static void release_pending(ClaimQueue *queue, Claims *claims)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list(claims, CLAIMS_PENDING, NULL, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++)
                if (!find_task(queue, &list.claims[i]->consumer))
                        take_back(claims, list.claims[i]);
}

/* Something may have been moved to it that no claim of it has yet: what is there says nothing
 * of what an earlier claim left, until it is known what became of the move. */
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

static ClaimTask *next_removal(ClaimQueue *queue, Claims *claims)
{
        ClaimRemoval removal;

        while (claims_next_removal(claims, queue->after_removal, NULL, &removal, NULL) == 0) {
                ClaimTask *task;

                queue->after_removal = removal.id;
                if (find_task(queue, &removal.consumer) || is_moved_to(claims, &removal.consumer))
                        continue;
                task = add_task(queue, claim_removing_run, &removal.consumer, on_owed_done);
                if (task) {
                        task->leaving.removal = removal;
                        task->leaving.late = removal.id <= queue->late_removal;
                }
                return task;
        }
        return NULL;
}

static ClaimTask *next_move(ClaimQueue *queue, Claims *claims)
{
        ClaimMove move;

        while (claims_next_move(claims, queue->after_move, &move, NULL) == 0) {
                ClaimTask *task = NULL;

                queue->after_move = move.id;
                if (!find_task(queue, &move.from) && !find_task(queue, &move.to))
                        task = add_task(queue, claim_moving_run, &move.from, on_owed_done);
                if (!task) {
                        claim_move_done(&move);
                        continue;
                }
                task->moving.move = move;
                task->moving.repairs = true;
                return task;
        }
        return NULL;
}

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
                task = add_task(queue, claim_writing_run, &claim->consumer, on_owed_done);
                if (task)
                        task->claim = TAKE_PTR(claim);
                return task;
        }
}

static void settle_next(ClaimQueue *queue)
{
        Claims *claims = queue->shared.config.service->claims;
        ClaimTask *task = NULL;

        if (claims) {
                task = next_removal(queue, claims);
                if (!task)
                        task = next_move(queue, claims);
                if (!task)
                        task = next_write(queue, claims);
        }
        if (task) {
                queue->owed_task = task;
                queue->worked = true;
                task->run(task);
                return;
        }
        if (!queue->failed)
                note_trouble(queue, "");
        notify_settled(queue);
        if (queue->again)
                (void)sd_event_source_set_enabled(queue->soon, SD_EVENT_ONESHOT);
}

/* True when nothing of it may be written. */
static bool leave_owed(ClaimQueue *queue)
{
        const char *why = nova_mode_refuses(queue->shared.nova, NOVA_ACTION_REMOVE);
        ClaimsOwed owed = claim_queue_count_owed(queue);

        if (!why)
                return false;
        note_late(queue);
        note_trouble(queue, claims_owed_sum(&owed) > 0 ? why : "");
        return true;
}

void claim_queue_settle(ClaimQueue *queue)
{
        Claims *claims = queue->shared.config.service->claims;

        if (!queue->shared.with_placement || !claims)
                return;
        if (queue->owed_task) {
                queue->again = true;
                return;
        }
        release_pending(queue, claims);
        if (leave_owed(queue))
                return;
        if (!queue->begun || !get_session(queue))
                note_late(queue);
        queue->begun = true;
        if (!get_session(queue))
                return;
        queue->after_removal = queue->after_move = queue->after_write = 0;
        queue->again = queue->failed = false;
        settle_next(queue);
}

void claim_queue_settle_soon(ClaimQueue *queue)
{
        (void)sd_event_source_set_enabled(queue->soon, SD_EVENT_ONESHOT);
}

ClaimsOwed claim_queue_count_owed(const ClaimQueue *queue)
{
        Claims *claims = queue->shared.config.service->claims;
        ClaimsOwed owed = { 0 };

        if (claims)
                (void)claims_count_owed(claims, &owed, NULL);
        return owed;
}

const char *claim_queue_get_trouble(const ClaimQueue *queue)
{
        return queue->trouble;
}

/* Whatever was written there is ours to remove from now on. */
static int take_on(Claims *claims, int64_t id, Error *reterr)
{
        static const ClaimWriteState others[] = { CLAIM_WRITE_NONE, CLAIM_WRITE_OWED };

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
        Claims *claims = claim_service_require(queue->shared.config.service, reterr);
        const char *why = nova_mode_refuses(queue->shared.nova, NOVA_ACTION_REMOVE);
        int r = 0;

        if (!claims)
                return -EIO;
        if (everywhere && queue->shared.with_placement && why) {
                error_setf(reterr, EPERM, "%s", why);
                return CLAIM_QUEUE_E_REFUSED;
        }
        if (everywhere && queue->shared.with_placement)
                r = take_on(claims, id, reterr);
        if (r == 0)
                r = claims_release(claims, id, reason, reterr);
        if (r == 0)
                (void)sd_event_source_set_enabled(queue->soon, SD_EVENT_ONESHOT);
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
                drop_task(queue, task);
        }
}
