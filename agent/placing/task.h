/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One claim, one move or one owed write on its way to Placement and back: the parts of a
 * ClaimQueue.
 */

#include <sys/queue.h>

#include "agent/placing/claiming.h"
#include "agent/placing/decide.h"
#include "agent/placing/look.h"
#include "agent/placing/moving.h"
#include "agent/placing/settle.h"
#include "claims/claims-placement.h"
#include "report/consumers.h"

/* What all tasks share. */
typedef struct ClaimQueueShared {
        sd_event *event;
        ClaimService *service;
        Uuid root;
        ClaimMode mode;
        NovaMode nova;
        bool with_placement;
        bool away;               /* Placement did not answer last */
        uint64_t n_removals;     /* that were reported to Placement */
        ClaimQueueSearch search; /* NULL: none */
        ClaimQueueLook look;     /* NULL: claims go by what is known */
        void *userdata;
} ClaimQueueShared;

typedef struct ClaimTask ClaimTask;

/* The task is gone after it, and words with it. */
typedef void (*ClaimTaskDone)(ClaimTask *task, int result, const Claim *claim, bool is_new,
                              const Error *error);

typedef enum ClaimTaskKind {
        CLAIM_TASK_CLAIM,  /* of request */
        CLAIM_TASK_LOOK,   /* at what guests have, for the request; the queue's own */
        CLAIM_TASK_MOVE,   /* of move, which is in the database */
        CLAIM_TASK_WRITE,  /* claim is owed */
        CLAIM_TASK_REMOVAL /* removal is to be finished */
} ClaimTaskKind;

struct ClaimTask {
        TAILQ_ENTRY(ClaimTask) link;
        const ClaimQueueShared *shared;
        ClaimTaskKind kind;
        Uuid consumer;               /* that it is about */
        const ClaimRequest *request; /* of a claim or a look */
        bool waits;                  /* for another task of the consumer */
        uint64_t begun_usec;

        ClaimTaskDone done;
        ClaimQueueDone answer; /* the queue's business */
        void *owner, *userdata;

        Session *session; /* NULL: none */
        ConsumersCall *call;
        Consumer *seen; /* as Placement has it */
        Claim *claim;   /* that is pending or owed, or that ended */
        unsigned n_attempts;
        sd_event_source *timer;

        ClaimLook look;
        ClaimClaiming claiming;
        ClaimMoving moving;
        ClaimLeaving leaving;
};

ClaimTask *claim_task_free(ClaimTask *task);
DEFINE_CLEANUP(ClaimTask *, claim_task_free);

/* Begins, or begins anew after a conflict. */
void claim_task_run(ClaimTask *task);

/* Reads the consumer; fails where Placement cannot be asked. */
void claim_task_read(ClaimTask *task, ConsumersDone done);

/* Ends without a claim, with these words. */
void claim_task_end(ClaimTask *task, int result, const Error *error);

/* The result of a consumers call as one of a task. */
int claim_task_outcome(int result);

/* The open database, or NULL: with words, or when the task has ended for want of it. */
Claims *claim_task_get_claims(ClaimTask *task, Error *reterr);
Claims *claim_task_open_claims(ClaimTask *task);

/* After a conflict: runs again in a moment. False when it was tried often enough. */
bool claim_task_retry(ClaimTask *task);

/* The same after that time, which counts for no try. */
bool claim_task_run_after(ClaimTask *task, uint64_t pause_usec);

#define CLAIM_TASK_ATTEMPTS_MAX 6
