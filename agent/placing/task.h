/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tasks of a ClaimQueue. A task is one claim, one start of a server, one move, one removal, one
 * pending write or one refresh. It keeps its state between requests to Placement.
 * agent/placing/queue.c runs the tasks; each kind has its own file. Internal to agent/placing. */

#include <sys/queue.h>

#include "agent/placing/decide.h"
#include "agent/placing/queue.h"
#include "claims/claims.h"
#include "report/consumers.h"

typedef struct ClaimTask ClaimTask;

/* The functions of a kind of tasks. */
typedef struct ClaimTaskKind {
        /* Begins the work, or begins it again after a pause, a conflict or a refresh. Ends the
         * task, now or later. */
        void (*run)(ClaimTask *task);
        /* Continues if Placement cannot be used for a read. NULL: the task fails. */
        void (*away)(ClaimTask *task, const Error *error);
        /* Frees everything that was read besides task->seen, before another attempt and before the
         * end. NULL: nothing else was read. */
        void (*forget)(ClaimTask *task);
        /* Frees everything else of this kind at the end of the task. NULL: there is nothing to
         * free. */
        void (*free)(ClaimTask *task);
        bool reads_only; /* it writes nothing to Placement */
} ClaimTaskKind;

extern const ClaimTaskKind claim_task_claiming;  /* agent/placing/claiming.c */
extern const ClaimTaskKind claim_task_attaching; /* agent/placing/attaching.c */
extern const ClaimTaskKind claim_task_moving;    /* agent/placing/moving.c */
extern const ClaimTaskKind claim_task_removing;  /* agent/placing/settle.c: a removal */
extern const ClaimTaskKind claim_task_writing;   /* agent/placing/settle.c: a pending write */

/* Continues after a consumer was read. A result other than 0 makes the task fail with it and the
 * words. 0: a request is running, the task waits, or it has ended already. */
typedef int (*ClaimTaskNext)(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr);

struct ClaimTask {
        TAILQ_ENTRY(ClaimTask) link;
        ClaimQueue *queue;
        const ClaimTaskKind *kind;
        Uuid consumer, other; /* other: the target of a move, else empty */
        bool waits; /* for an earlier task of these consumers, or until guests are adopted */

        const ClaimRequest *request; /* borrowed; of a claim or a refresh, else NULL */
        ClaimQueueDone answer;       /* NULL: a task of settling, without a caller */
        void *userdata;

        ClaimRefresh refreshing; /* the refresh that the task waits for */
        unsigned refreshed;      /* bits: each ClaimRefresh that the task has requested */
        uint64_t asked_usec;     /* CLOCK_MONOTONIC of the request of the last refresh */
        sd_event_source *timer;  /* limit of a refresh, or end of a pause */
        unsigned n_attempts;     /* attempts that a conflict or a lack of capacity ended */

        bool locked;         /* true after claim_service_lock_consumer() succeeded */
        unsigned n_waits;    /* pauses because a healer uses the consumer */
        Session *session;    /* NULL: none */
        ConsumersCall *call; /* the running request; NULL: none */
        ClaimTaskNext next;  /* continuation of a read */
        Consumer **read;     /* destination of the consumer that is read */
        Consumer *seen;      /* the consumer as Placement has it; NULL: not read */
        Claim *claim; /* the claim that is pending, that must be written, or that has ended */

        union {
                struct {
                        bool is_there;   /* Placement already has the allocations of the claim */
                        bool had_placed; /* a claim without a request was released for this one */
                        Consumer *capacity;  /* free capacity in Placement; NULL: unread */
                        bool others_full;    /* a sharing provider has probably refused the write */
                        uint64_t n_removals; /* ClaimQueue.n_removals before the read of the
                                                capacity */
                } claiming;
                struct {
                        const StringSet *classes; /* borrowed */
                        const EventAuthor *by;    /* borrowed */
                } attaching;
                struct {
                        ClaimMove move;      /* id 0: not stored in the database yet */
                        bool repairs;        /* settles a stored move, for which no caller waits */
                        Consumer *target;    /* the target as Placement has it */
                        ClaimReported after; /* state of the target after the move, or of the source
                                                after a fence (moving.c) */
                } moving;
                struct {
                        ClaimRemoval removal;
                        bool late; /* the removal was pending while nothing could be settled */
                } leaving;
        };
};

/* The queue: all tasks in the order of their arrival, and the state of the current round of
 * settling. */
struct ClaimQueue {
        ClaimQueueConfig config;
        ClaimMode mode;
        NovaMode nova;
        bool with_placement;
        bool away;           /* the last cycle could not use Placement */
        uint64_t n_removals; /* tasks of removals that have succeeded, also as a write */
        TAILQ_HEAD(, ClaimTask) tasks;
        sd_event_source *soon, *turn; /* soon settles; turn starts a task that waited */

        /* Settling: one task at a time. */
        ClaimTask *settling_task; /* NULL: no round is running */
        /* Ids of the last removal, move and claim to write that this round has handled. */
        int64_t after_removal, after_move, after_write;
        int64_t late_removal; /* last removal that was pending while nothing could be settled */
        bool begun;           /* settling was requested since the start */
        bool again;           /* another round was requested during this one */
        bool worked, failed;  /* worked: this round had a task; failed: one of its tasks failed */
        bool was_in_trouble;  /* a reason was logged since all was reported */
        char trouble[ERROR_TEXT_MAX]; /* logged reason why work is not settled; "": none */
};

/* Sets the words of a task that cannot use Placement now. */
void claim_task_explain_away(Error *ret);

/* Reads a consumer from Placement to *ret, a member of the task that is NULL before. Calls next
 * after a success, unless the task is held up now and must start again later. If Placement cannot
 * be used, calls away() of the kind. Without away() or without a session, and after another
 * failure, the task fails. */
void claim_task_read(ClaimTask *task, const Uuid *consumer, Consumer **ret, ClaimTaskNext next);

/* Reserves the consumer until the task ends, so that no healer changes it, and reads it to
 * task->seen; then calls next. While a healer has it, the task runs again after a pause. It fails
 * with -EBUSY after about 2 s. */
void claim_task_read_locked(ClaimTask *task, ClaimTaskNext next);

/* Evaluates the result of a write. Returns true if Placement has it. Otherwise the task has ended,
 * or after a conflict it runs again after a pause. */
bool claim_task_has_written(ClaimTask *task, int result, const Error *error);

/* Answers the caller, ends the task and frees it. result, claim and is_new are as in
 * ClaimQueueDone. The end of a task of settling continues or ends the round. */
void claim_task_end(ClaimTask *task, int result, const Claim *claim, bool is_new,
                    const Error *error);

/* Ends and frees the task without a claim. result 0: a task that needs no claim succeeded. */
void claim_task_fail(ClaimTask *task, int result, const Error *error);

/* Translates a result of report/consumers.h to the result of a task. */
int claim_task_outcome(int result);

/* Returns the open database. Without one, ends the task and returns NULL. */
Claims *claim_task_open_claims(ClaimTask *task);

/* Counts an attempt, and runs the task again after a random pause that grows with each attempt.
 * Returns false after CLAIM_TASK_ATTEMPTS_MAX attempts, or when out of memory. */
bool claim_task_retry(ClaimTask *task);

/* Requests a refresh from the owner of the queue. The task runs again after the refresh. If the
 * refresh takes too long, the task fails (guests), or runs again with the known state (host).
 * Returns a negative errno with words if the data cannot be read now; then the task does not
 * wait. */
int claim_task_refresh(ClaimTask *task, ClaimRefresh what, Error *reterr);

/* Finds allocations that an earlier claim of the consumer left and that must be removed. Ends those
 * pending removals of the consumer that find no allocations, or only allocations that must stay,
 * for example because a living claim of the consumer owns them.
 * Returns true if there are such allocations. *ret is the claim that left them; NULL: it is no
 * longer in the database. The caller frees it. */
bool claim_task_find_leftover(ClaimTask *task, Claims *claims, Claim **ret);

#define CLAIM_TASK_ATTEMPTS_MAX 6
