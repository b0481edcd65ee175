/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/placing/queue.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "agent/placing/task.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/fit/device-choice.h"

#define LOOK_PATIENCE_USEC (10 * USEC_PER_SEC) /* less than who asks over D-Bus waits */
#define TIMER_ACCURACY     (100 * USEC_PER_MSEC)

typedef TAILQ_HEAD(ClaimTaskList, ClaimTask) ClaimTaskList;

struct ClaimDesk {
        ClaimCounter counter;
        ClaimDeskSession session;
        ClaimDeskLook look;
        void *userdata;
        ClaimDeskSettled settled;
        void *settled_userdata;
        ClaimTaskList tasks;
        sd_event_source *soon, *turn;

        /* Settling: one errand at a time. */
        ClaimTask *errand;
        int64_t after_departure, after_handover, after_debt;
        int64_t late_departure; /* up to this one they were not looked at when their claims ended */
        bool begun;
        bool again;                   /* asked for meanwhile */
        bool worked, failed;          /* some of this round */
        char trouble[ERROR_TEXT_MAX]; /* that was logged */
};

static void settle_next(ClaimDesk *desk);
static int on_turn(sd_event_source *source, void *userdata);

static int on_soon(sd_event_source *source, void *userdata)
{
        claim_desk_settle(userdata);
        return 0;
}

int claim_desk_new(ClaimDesk **ret, sd_event *event, ClaimService *service, const Uuid *root,
                   ClaimDeskSession session, void *userdata)
{
        _cleanup_(claim_desk_freep) ClaimDesk *desk = calloc(1, sizeof(ClaimDesk));

        if (!desk)
                return -ENOMEM;
        TAILQ_INIT(&desk->tasks);
        desk->counter = (ClaimCounter){
                .event = sd_event_ref(event),
                .service = service,
                .root = *root,
        };
        desk->session = session;
        desk->userdata = userdata;
        if (sd_event_add_defer(event, &desk->soon, on_soon, desk) < 0 ||
            sd_event_source_set_enabled(desk->soon, SD_EVENT_OFF) < 0 ||
            sd_event_add_defer(event, &desk->turn, on_turn, desk) < 0 ||
            sd_event_source_set_enabled(desk->turn, SD_EVENT_OFF) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(desk);
        return 0;
}

static bool concerns(const ClaimTask *task, const Uuid *consumer)
{
        return uuid_equal(&task->consumer, consumer) || uuid_equal(&task->handover.to, consumer);
}

static void drop_task(ClaimDesk *desk, ClaimTask *task)
{
        TAILQ_REMOVE(&desk->tasks, task, link);
        if (desk->errand == task)
                desk->errand = NULL;
        claim_task_free(task);
}

ClaimDesk *claim_desk_free(ClaimDesk *desk)
{
        if (!desk)
                return NULL;
        while (!TAILQ_EMPTY(&desk->tasks))
                drop_task(desk, TAILQ_FIRST(&desk->tasks));
        sd_event_source_disable_unref(desk->soon);
        sd_event_source_disable_unref(desk->turn);
        sd_event_unref(desk->counter.event);
        free(desk);
        return NULL;
}

void claim_desk_set_mode(ClaimDesk *desk, ClaimMode mode, NovaMode nova, bool with_placement)
{
        desk->counter.mode = mode;
        desk->counter.nova = nova;
        desk->counter.with_placement = with_placement;
}

void claim_desk_watch(ClaimDesk *desk, ClaimDeskSettled settled, void *userdata)
{
        desk->settled = settled;
        desk->settled_userdata = userdata;
}

void claim_desk_set_away(ClaimDesk *desk, bool away)
{
        desk->counter.away = away;
}

void claim_desk_set_search(ClaimDesk *desk, ClaimDeskSearch search)
{
        desk->counter.search = search;
        desk->counter.search_userdata = desk->userdata;
}

void claim_desk_searched(void *task)
{
        claim_task_searched(task);
}

static ClaimTask *find_task(const ClaimDesk *desk, const Uuid *consumer)
{
        ClaimTask *task;

        TAILQ_FOREACH(task, &desk->tasks, link)
        if (concerns(task, consumer))
                return task;
        return NULL;
}

static ClaimTask *add_task(ClaimDesk *desk, ClaimTaskKind kind, const Uuid *consumer,
                           ClaimTaskDone done)
{
        ClaimTask *task = calloc(1, sizeof(ClaimTask));

        if (!task)
                return NULL;
        task->counter = &desk->counter;
        task->session = desk->counter.with_placement ? desk->session(desk->userdata) : NULL;
        task->kind = kind;
        task->consumer = *consumer;
        task->done = done;
        task->owner = desk;
        task->begun_usec = claim_task_now_usec();
        TAILQ_INSERT_TAIL(&desk->tasks, task, link);
        return task;
}

/* Of what somebody waits for. Without a claim in the end, something may be left to be removed. */
static void on_asked_done(ClaimTask *task, int result, const Claim *claim, bool told,
                          const Error *error)
{
        ClaimDesk *desk = task->owner;

        if ((result != 0 || !claim) && desk->counter.with_placement)
                (void)sd_event_source_set_enabled(desk->soon, SD_EVENT_ONESHOT);
        claim_service_check(desk->counter.service, result);
        task->told(result, claim, told, error, task->userdata);
        drop_task(desk, task);
        (void)sd_event_source_set_enabled(desk->turn, SD_EVENT_ONESHOT);
}

/* The move was done before: the answer is what it was. */
static bool is_moved(Claims *claims, const ClaimHandover *wanted, Claim **ret)
{
        _cleanup_(claim_freep) Claim *left = NULL;

        return claims_find(claims, &wanted->from, false, &left, NULL) == CLAIM_E_NOT_FOUND &&
               claims_find(claims, &wanted->to, false, ret, NULL) == 0;
}

static const char *type_after(Claims *claims, const Uuid *from)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_find(claims, from, false, &claim, NULL) == 0 &&
            strcmp(claim->consumer_type, "MIGRATION") == 0)
                return "INSTANCE";
        return "MIGRATION";
}

/* From here on it stands in the database. */
static void begin_move(ClaimTask *task)
{
        const ClaimDesk *desk = task->owner;
        Claims *claims = claim_service_get(desk->counter.service);
        ClaimHandover *wanted = &task->handover, begun = { 0 };
        _cleanup_(claim_freep) Claim *there = NULL;
        Error error = ERROR_NULL;
        int r = -EIO;

        if (claims && is_moved(claims, wanted, &there)) {
                on_asked_done(task, 0, there, false, &error);
                return;
        }
        if (claims)
                r = claims_begin_handover(claims, &wanted->from, &wanted->to,
                                          wanted->to_type ? wanted->to_type
                                                          : type_after(claims, &wanted->from),
                                          &begun, &error);
        else
                error_setf(&error, EIO, "Claims cannot be used: %s",
                           claim_service_error(desk->counter.service)->text);
        if (r != 0) {
                on_asked_done(task, r, NULL, false, &error);
                return;
        }
        claim_handover_done(wanted);
        *wanted = begun;
        claim_task_run(task);
}

/* A look at what guests have. */

static bool must_look(const ClaimTask *task)
{
        const ClaimDesk *desk = task->owner;
        const HostFacts *facts = claim_service_facts(desk->counter.service);

        return desk->look && task->request && !task->looked && facts &&
               devices_are_asked(facts, &task->request->resources);
}

static void fail_look(ClaimTask *task, const char *why)
{
        Error error = ERROR_NULL;

        error_setf(&error, EBUSY, "Which devices guests have cannot be read: %s", why);
        task->done(task, CLAIM_E_BUSY, NULL, false, &error);
}

static int on_look_late(sd_event_source *source, uint64_t usec, void *userdata)
{
        fail_look(userdata, "the hypervisor does not answer");
        return 0;
}

static uint64_t now_monotonic_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static void begin_look(ClaimTask *task)
{
        ClaimDesk *desk = task->owner;
        Error error = ERROR_NULL;
        int r;

        task->looks = true;
        task->look_usec = now_monotonic_usec();
        r = desk->look(desk->userdata, &error);
        if (r >= 0)
                r = sd_event_add_time_relative(desk->counter.event, &task->timer, CLOCK_MONOTONIC,
                                               LOOK_PATIENCE_USEC, TIMER_ACCURACY, on_look_late,
                                               task);
        if (r < 0)
                fail_look(task, error_text(&error, r));
}

static void start(ClaimTask *task)
{
        task->waits = false;
        task->begun_usec = claim_task_now_usec();
        if (must_look(task))
                begin_look(task);
        else if (task->kind == CLAIM_TASK_LOOK)
                task->done(task, 0, NULL, false, &ERROR_NULL);
        else if (task->kind == CLAIM_TASK_MOVE && task->handover.id == 0)
                begin_move(task);
        else
                claim_task_run(task);
}

/* Those that wait run from the loop, when what they wait for is gone. */
static int on_turn(sd_event_source *source, void *userdata)
{
        ClaimDesk *desk = userdata;
        ClaimTask *task, *other;

        TAILQ_FOREACH(task, &desk->tasks, link)
        {
                bool free = task->waits;

                for (other = TAILQ_FIRST(&desk->tasks); free && other != task;
                     other = TAILQ_NEXT(other, link))
                        free = !concerns(other, &task->consumer) &&
                               !(task->kind == CLAIM_TASK_MOVE &&
                                 concerns(other, &task->handover.to));
                if (!free)
                        continue;
                /* One at a time: the list is another one after it. */
                (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                start(task);
                return 0;
        }
        return 0;
}

static ClaimTask *find_looking(const ClaimDesk *desk, uint64_t before_usec)
{
        ClaimTask *task;

        TAILQ_FOREACH(task, &desk->tasks, link)
        if (task->looks && task->look_usec <= before_usec)
                return task;
        return NULL;
}

/* The list is another one after each. */
void claim_desk_looked(ClaimDesk *desk, uint64_t began_usec, const Error *error)
{
        uint64_t before_usec = error->code ? UINT64_MAX : began_usec;
        ClaimTask *task;

        while ((task = find_looking(desk, before_usec))) {
                task->looks = false;
                task->looked = true;
                task->timer = sd_event_source_disable_unref(task->timer);
                if (error->code)
                        fail_look(task, error->text);
                else
                        start(task);
        }
}

void claim_desk_set_look(ClaimDesk *desk, ClaimDeskLook look)
{
        desk->look = look;
}

static void refuse(int result, ClaimDeskDone done, void *userdata, const Error *error)
{
        done(result, NULL, false, error, userdata);
}

void claim_desk_claim(ClaimDesk *desk, const ClaimRequest *request, ClaimDeskDone done,
                      void *userdata)
{
        bool waits = find_task(desk, &request->consumer);
        Error error = ERROR_NULL;
        ClaimTask *task;

        task = add_task(desk, CLAIM_TASK_CLAIM, &request->consumer, on_asked_done);
        if (!task) {
                refuse(error_oom(&error), done, userdata, &error);
                return;
        }
        task->request = request;
        task->told = done;
        task->userdata = userdata;
        task->waits = waits;
        if (!waits)
                start(task);
}

static void on_look_done(ClaimTask *task, int result, const Claim *claim, bool told,
                         const Error *error)
{
        ClaimDesk *desk = task->owner;

        task->told(result, NULL, false, error, task->userdata);
        drop_task(desk, task);
}

void claim_desk_look(ClaimDesk *desk, const ClaimRequest *request, ClaimDeskDone done,
                     void *userdata)
{
        const Uuid nobody = uuid_make_random();
        ClaimTask *task = add_task(desk, CLAIM_TASK_LOOK, &nobody, on_look_done);
        Error error = ERROR_NULL;

        if (!task) {
                refuse(error_oom(&error), done, userdata, &error);
                return;
        }
        task->request = request;
        task->told = done;
        task->userdata = userdata;
        start(task);
}

void claim_desk_move(ClaimDesk *desk, const Uuid *from, const Uuid *to, const char *to_type,
                     ClaimDeskDone done, void *userdata)
{
        bool waits = find_task(desk, from) || find_task(desk, to);
        ClaimTask *task = add_task(desk, CLAIM_TASK_MOVE, from, on_asked_done);
        Error error = ERROR_NULL;

        if (task && to_type && !(task->handover.to_type = strdup(to_type))) {
                drop_task(desk, task);
                task = NULL;
        }
        if (!task) {
                refuse(error_oom(&error), done, userdata, &error);
                return;
        }
        task->handover.from = *from;
        task->handover.to = *to;
        task->told = done;
        task->userdata = userdata;
        task->waits = waits;
        if (!waits)
                start(task);
}

/* Settling. */

/* One line when it begins, one when it ends. */
static void note_trouble(ClaimDesk *desk, const char *words)
{
        if (words[0] && strcmp(words, desk->trouble) != 0)
                log_event(LOG_WARNING, MESSAGE_PLACEMENT_OWED, NULL,
                          "Cannot yet report all claims to Placement: %s; retrying.", words);
        else if (!words[0] && desk->trouble[0])
                log_event(LOG_NOTICE, MESSAGE_PLACEMENT_SETTLED, NULL,
                          "All claims are reported to Placement.");
        snprintf(desk->trouble, sizeof(desk->trouble), "%s", words);
}

static void tell_settled(ClaimDesk *desk)
{
        if (desk->worked && desk->settled)
                desk->settled(desk->settled_userdata);
        desk->worked = false;
}

/* What is there waits, and somebody may write there meanwhile. */
static void note_late(ClaimDesk *desk)
{
        Claims *claims = claim_service_get(desk->counter.service);
        ClaimDebts debts;

        if (claims && claims_count_debts(claims, &debts, NULL) == 0)
                desk->late_departure = debts.last_departure;
}

/* A refusal is this one's alone; where Placement or the disk is away, all others wait, too. */
static void on_errand_done(ClaimTask *task, int result, const Claim *claim, bool told,
                           const Error *error)
{
        ClaimDesk *desk = task->owner;

        claim_service_check(desk->counter.service, result);
        if (result == 0 && task->kind == CLAIM_TASK_DEPARTURE)
                desk->counter.n_removals++;
        drop_task(desk, task);
        (void)sd_event_source_set_enabled(desk->turn, SD_EVENT_ONESHOT);
        if (result != 0) {
                note_late(desk);
                desk->failed = true;
                note_trouble(desk, error->text);
        }
        if (result == 0 || error->code == EREMOTEIO)
                settle_next(desk);
        else
                tell_settled(desk);
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
static void release_pending(ClaimDesk *desk, Claims *claims)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list_pending(claims, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++)
                if (!find_task(desk, &list.claims[i]->consumer))
                        take_back(claims, list.claims[i]);
}

/* Something may have been moved to it that no claim of it tells of yet: what is there says nothing
 * of what an earlier claim left, until it is known what became of the move. */
static bool is_moved_to(Claims *claims, const Uuid *consumer)
{
        ClaimHandover handover;
        int64_t after = 0;

        while (claims_next_handover(claims, after, &handover, NULL) == 0) {
                bool is = uuid_equal(&handover.to, consumer);

                after = handover.id;
                claim_handover_done(&handover);
                if (is)
                        return true;
        }
        return false;
}

static ClaimTask *next_departure(ClaimDesk *desk, Claims *claims)
{
        ClaimDeparture departure;

        while (claims_next_departure(claims, desk->after_departure, NULL, &departure, NULL) == 0) {
                ClaimTask *task;

                desk->after_departure = departure.id;
                if (find_task(desk, &departure.consumer) ||
                    is_moved_to(claims, &departure.consumer))
                        continue;
                task = add_task(desk, CLAIM_TASK_DEPARTURE, &departure.consumer, on_errand_done);
                if (task) {
                        task->departure = departure;
                        task->late = departure.id <= desk->late_departure;
                }
                return task;
        }
        return NULL;
}

static ClaimTask *next_move(ClaimDesk *desk, Claims *claims)
{
        ClaimHandover handover;

        while (claims_next_handover(claims, desk->after_handover, &handover, NULL) == 0) {
                ClaimTask *task = NULL;

                desk->after_handover = handover.id;
                if (!find_task(desk, &handover.from) && !find_task(desk, &handover.to))
                        task = add_task(desk, CLAIM_TASK_MOVE, &handover.from, on_errand_done);
                if (!task) {
                        claim_handover_done(&handover);
                        continue;
                }
                task->handover = handover;
                task->repairs = true;
                return task;
        }
        return NULL;
}

static ClaimTask *next_debt(ClaimDesk *desk, Claims *claims)
{
        for (;;) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                ClaimTask *task;

                if (claims_next_debt(claims, desk->after_debt, &claim, NULL) != 0)
                        return NULL;
                desk->after_debt = claim->id;
                if (find_task(desk, &claim->consumer))
                        continue;
                task = add_task(desk, CLAIM_TASK_DEBT, &claim->consumer, on_errand_done);
                if (task)
                        task->claim = TAKE_PTR(claim);
                return task;
        }
}

static void settle_next(ClaimDesk *desk)
{
        Claims *claims = claim_service_get(desk->counter.service);
        ClaimTask *task = NULL;

        if (claims) {
                task = next_departure(desk, claims);
                if (!task)
                        task = next_move(desk, claims);
                if (!task)
                        task = next_debt(desk, claims);
        }
        if (task) {
                desk->errand = task;
                desk->worked = true;
                claim_task_run(task);
                return;
        }
        if (!desk->failed)
                note_trouble(desk, "");
        tell_settled(desk);
        if (desk->again)
                (void)sd_event_source_set_enabled(desk->soon, SD_EVENT_ONESHOT);
}

/* True when nothing of it may be written. */
static bool leave_owed(ClaimDesk *desk)
{
        const char *why = nova_mode_refuses(desk->counter.nova, NOVA_ACTION_REMOVE);
        ClaimDebts debts = claim_desk_count_debts(desk);

        if (!why)
                return false;
        note_late(desk);
        note_trouble(desk, claim_debts_sum(&debts) > 0 ? why : "");
        return true;
}

void claim_desk_settle(ClaimDesk *desk)
{
        Claims *claims = claim_service_get(desk->counter.service);

        if (!desk->counter.with_placement || !claims)
                return;
        if (desk->errand) {
                desk->again = true;
                return;
        }
        release_pending(desk, claims);
        if (leave_owed(desk))
                return;
        if (!desk->begun || !desk->session(desk->userdata))
                note_late(desk);
        desk->begun = true;
        if (!desk->session(desk->userdata))
                return;
        desk->after_departure = desk->after_handover = desk->after_debt = 0;
        desk->again = desk->failed = false;
        settle_next(desk);
}

void claim_desk_settle_soon(ClaimDesk *desk)
{
        (void)sd_event_source_set_enabled(desk->soon, SD_EVENT_ONESHOT);
}

ClaimDebts claim_desk_count_debts(const ClaimDesk *desk)
{
        Claims *claims = claim_service_get(desk->counter.service);
        ClaimDebts debts = { 0 };

        if (claims)
                (void)claims_count_debts(claims, &debts, NULL);
        return debts;
}

const char *claim_desk_get_trouble(const ClaimDesk *desk)
{
        return desk->trouble;
}

/* Whatever was written there is ours to remove from now on. */
static int take_on(Claims *claims, int64_t id, Error *reterr)
{
        static const ClaimStanding others[] = { CLAIM_STANDING_NONE, CLAIM_STANDING_OWED };

        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                int r = claims_set_standing(claims, id, others[i], CLAIM_STANDING_WRITTEN, NULL,
                                            reterr);

                if (r != CLAIM_E_NOT_FOUND)
                        return r;
        }
        return 0;
}

int claim_desk_release(ClaimDesk *desk, int64_t id, const char *reason, bool everywhere,
                       Error *reterr)
{
        Claims *claims = claim_service_get(desk->counter.service);
        const char *why = nova_mode_refuses(desk->counter.nova, NOVA_ACTION_REMOVE);
        int r = 0;

        if (!claims)
                return error_setf(reterr, EIO, "Claims cannot be used: %s",
                                  claim_service_error(desk->counter.service)->text);
        if (everywhere && desk->counter.with_placement && why) {
                error_setf(reterr, EPERM, "%s", why);
                return CLAIM_DESK_E_REFUSED;
        }
        if (everywhere && desk->counter.with_placement)
                r = take_on(claims, id, reterr);
        if (r == 0)
                r = claims_release(claims, id, reason, reterr);
        if (r == 0)
                (void)sd_event_source_set_enabled(desk->soon, SD_EVENT_ONESHOT);
        return r;
}

void claim_desk_dismiss(ClaimDesk *desk, const char *why)
{
        Error error = ERROR_NULL;

        error_setf(&error, ECANCELED, "%s", why);
        while (!TAILQ_EMPTY(&desk->tasks)) {
                ClaimTask *task = TAILQ_FIRST(&desk->tasks);

                if (task->told)
                        task->told(CLAIM_E_BUSY, NULL, false, &error, task->userdata);
                drop_task(desk, task);
        }
}
