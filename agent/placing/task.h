/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tasks of a ClaimQueue: one claim, one move, one removal or one owed write on its way to
 * Placement and back. agent/placing/queue.c runs them; each kind is in a file of its own. Internal
 * to agent/placing. */

#include <sys/queue.h>

#include "agent/placing/decide.h"
#include "agent/placing/queue.h"
#include "claims/claims.h"
#include "report/consumers.h"

typedef struct ClaimTask ClaimTask;

/* The work of a kind of tasks. */
typedef struct ClaimTaskKind {
        /* Begins the work, or begins it again after a conflict. Ends the task, now or later. */
        void (*run)(ClaimTask *task);
        /* Goes on where Placement does not answer a read. NULL: the task ends. */
        void (*away)(ClaimTask *task, const Error *error);
        /* Frees everything that was read, before another attempt and before the end. NULL: nothing
         * but task->seen. */
        void (*forget)(ClaimTask *task);
        /* Frees the rest at the end. NULL: nothing. */
        void (*free)(ClaimTask *task);
} ClaimTaskKind;

extern const ClaimTaskKind claim_task_claiming; /* agent/placing/claiming.c */
extern const ClaimTaskKind claim_task_moving;   /* agent/placing/moving.c */
extern const ClaimTaskKind claim_task_removing; /* agent/placing/settle.c: a removal */
extern const ClaimTaskKind claim_task_writing;  /* agent/placing/settle.c: an owed write */

/* Continues after a consumer was read. Below and above 0: the task ends with this result and the
 * words; 0: a request is under way, or the task has ended already. */
typedef int (*ClaimTaskNext)(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr);

struct ClaimTask {
        TAILQ_ENTRY(ClaimTask) link;
        ClaimQueue *queue;
        const ClaimTaskKind *kind;
        Uuid consumer, other; /* other: who gets the claim of a move, else empty */
        bool waits;           /* for another task of these consumers */
        uint64_t begun_usec;  /* CLOCK_REALTIME, the last attempt */

        const ClaimRequest *request; /* of a claim or a refresh, else NULL */
        ClaimQueueDone answer;       /* NULL: no caller waits for it */
        void *userdata;

        ClaimRefresh refreshing; /* it waits for this, asked for at asked_usec */
        unsigned refreshed;      /* each ClaimRefresh that was asked for */
        uint64_t asked_usec;     /* CLOCK_MONOTONIC */
        sd_event_source *timer;  /* of a refresh or a pause */
        unsigned n_attempts;

        Session *session; /* NULL: none */
        ConsumersCall *call;
        ClaimTaskNext next; /* of a read */
        Consumer **read;    /* the place of its result */
        Consumer *seen;     /* the consumer as Placement has it */
        Claim *claim;       /* that is pending or owed, or that ended */

        union {
                struct {
                        bool in_hand;     /* claim_service_take_in_hand() */
                        unsigned n_waits; /* for a healer that has the consumer in hand */
                        bool is_there;    /* the consumer holds already what the claim has */
                        bool had_placed;  /* a claim without a request was released for it */
                        Consumer *room;   /* what Placement has left of this host; NULL: unread */
                        bool others_full; /* a sharing provider seems to be full */
                        uint64_t n_removals; /* of the queue, when the consumer was read */
                } claiming;
                struct {
                        ClaimMove move;      /* as the database has it; id 0: not yet */
                        bool repairs;        /* no caller waits: an undone move is taken back */
                        Consumer *target;    /* who the claim goes to, as Placement has it */
                        ClaimReported after; /* the consumer as Placement has it after the write */
                } moving;
                struct {
                        ClaimRemoval removal;
                        bool late; /* the removal was not examined when the claim ended */
                } leaving;
        };
};

struct ClaimQueue {
        ClaimQueueConfig config;
        ClaimMode mode;
        NovaMode nova;
        bool with_placement;
        bool away;           /* Placement did not answer the last cycle */
        uint64_t n_removals; /* that were reported to Placement */
        TAILQ_HEAD(, ClaimTask) tasks;
        sd_event_source *soon, *turn;

        /* Settling: one task at a time. */
        ClaimTask *owed_task;
        int64_t after_removal, after_move, after_write;
        int64_t late_removal; /* the last one that was not examined when its claim ended */
        bool begun;
        bool again;                   /* another round was asked for meanwhile */
        bool worked, failed;          /* some task of this round */
        char trouble[ERROR_TEXT_MAX]; /* that was logged */
};

/* Reads a consumer to *ret (NULL before), a member of the task; then calls next. */
void claim_task_read(ClaimTask *task, const Uuid *consumer, Consumer **ret, ClaimTaskNext next);

/* Evaluates the end of a write. True when Placement has it; else the task has ended, or runs again
 * in a moment. */
bool claim_task_has_written(ClaimTask *task, int result, const Error *error);

/* Ends the task and frees it: result and claim are as in ClaimQueueDone. */
void claim_task_end(ClaimTask *task, int result, const Claim *claim, bool is_new,
                    const Error *error);

/* Ends the task without a claim. */
void claim_task_fail(ClaimTask *task, int result, const Error *error);

/* Translates the result of a consumers call to one of a task. */
int claim_task_outcome(int result);

/* Returns the open database, or NULL when the task has ended because there is none. */
Claims *claim_task_open_claims(ClaimTask *task);

/* Runs the task again in a moment, after a conflict. False when it was tried often enough. */
bool claim_task_retry(ClaimTask *task);

/* Runs the task again after that time, which counts for no attempt. */
bool claim_task_run_after(ClaimTask *task, uint64_t pause_usec);

/* Has the queue's owner read something anew and runs the task again after it. Negative errno with
 * words: it cannot be read now, and the task does not wait. */
int claim_task_refresh(ClaimTask *task, ClaimRefresh what, Error *reterr);

/* Decides about the allocations that a claim (ended; NULL: not known any more) left of the consumer
 * that was read. The caller sets late, inherited and lives of state. */
ClaimRemovalDecision claim_task_decide_removal(const ClaimTask *task, Claims *claims,
                                               const ClaimRemoval *removal, const Claim *ended,
                                               ClaimRemovalState state);

#define CLAIM_TASK_ATTEMPTS_MAX 6
