/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One claim, one move or one owed write on its way to Placement and back: the parts of a
 * ClaimQueue. What is done is the kind's own (claiming.h, moving.h, settle.h), which a task knows
 * by its run alone. */

#include <sys/queue.h>

#include "agent/placing/queue.h"
#include "claims/claims.h"
#include "report/consumers.h"

/* What all tasks share. */
typedef struct ClaimQueueShared {
        ClaimQueueConfig config;
        ClaimMode mode;
        NovaMode nova;
        bool with_placement;
        bool away;           /* Placement did not answer last */
        uint64_t n_removals; /* that were reported to Placement */
} ClaimQueueShared;

typedef struct ClaimTask ClaimTask;

/* The task is gone after it, and words with it. */
typedef void (*ClaimTaskDone)(ClaimTask *task, int result, const Claim *claim, bool is_new,
                              const Error *error);

/* Begins, or begins anew after a conflict. Ends the task, now or later. */
typedef void (*ClaimTaskRun)(ClaimTask *task);

/* What follows when a consumer was read. Below and above 0: the task ends with it and the words;
 * 0: something is under way, or it ended already. */
typedef int (*ClaimTaskNext)(ClaimTask *task, Claims *claims, const HostView *view, Error *reterr);

/* See agent/placing/look.h. */
typedef struct ClaimLook {
        bool waits; /* for a poll that begins after begun_usec */
        bool was_done;
        uint64_t begun_usec; /* CLOCK_MONOTONIC */
} ClaimLook;

typedef struct ClaimClaiming {
        bool in_hand;     /* claim_service_take_in_hand() */
        unsigned n_waits; /* for a healer that has the consumer in hand */
        bool is_there;    /* the consumer holds already what the claim has */
        bool searches;    /* for claims whose guests are gone */
        bool has_searched;
        bool had_placed;     /* a claim without a request was released for this one */
        Consumer *room;      /* what Placement has left of this host; NULL: it was not asked */
        bool others_full;    /* a sharing provider seems to be what has none */
        uint64_t n_removals; /* of all tasks, when the consumer was read */
} ClaimClaiming;

typedef struct ClaimMoving {
        ClaimMove move;      /* as the database has it; id 0: not yet */
        bool repairs;        /* nobody waits for the move: what was not done is taken back */
        Consumer *target;    /* who it goes to, as Placement has it */
        ClaimReported after; /* how Placement has its consumer when that is written */
} ClaimMoving;

typedef struct ClaimLeaving {
        ClaimRemoval removal;
        bool late; /* the removal could not be looked at when the claim ended */
} ClaimLeaving;

struct ClaimTask {
        TAILQ_ENTRY(ClaimTask) link;
        const ClaimQueueShared *shared;
        ClaimTaskRun run;
        Uuid consumer;               /* that it is about */
        const ClaimRequest *request; /* of a claim or a look */
        bool waits;                  /* for another task of the consumer */
        uint64_t begun_usec;

        ClaimTaskDone done;
        ClaimQueueDone answer; /* the queue's business */
        void *owner, *userdata;

        Session *session; /* NULL: none */
        ConsumersCall *call;
        ClaimTaskNext next;                                /* of a read */
        Consumer **read;                                   /* where it goes */
        void (*away)(ClaimTask *task, const Error *error); /* where Placement does not answer; NULL:
                                                              the task ends */
        Consumer *seen;                                    /* as Placement has it */
        Claim *claim; /* that is pending or owed, or that ended */
        unsigned n_attempts;
        sd_event_source *timer;

        ClaimLook look;
        ClaimClaiming claiming;
        ClaimMoving moving;
        ClaimLeaving leaving;
};

ClaimTask *claim_task_free(ClaimTask *task);
DEFINE_CLEANUP(ClaimTask *, claim_task_free);

/* Reads a consumer to *ret (NULL before), a member of the task; fails where Placement cannot be
 * asked. */
void claim_task_read(ClaimTask *task, const Uuid *consumer, Consumer **ret, ClaimTaskNext next);

/* The end of a write: true when it was done. Else the task has ended, or runs again in a moment. */
bool claim_task_has_written(ClaimTask *task, int result, const Error *error);

/* Ends without a claim, with these words. */
void claim_task_end(ClaimTask *task, int result, const Error *error);

/* The result of a consumers call as one of a task. */
int claim_task_outcome(int result);

/* The open database, or NULL when the task has ended for want of it. */
Claims *claim_task_open_claims(ClaimTask *task);

/* After a conflict: runs again in a moment. False when it was tried often enough. */
bool claim_task_retry(ClaimTask *task);

/* The same after that time, which counts for no try. */
bool claim_task_run_after(ClaimTask *task, uint64_t pause_usec);

#define CLAIM_TASK_ATTEMPTS_MAX 6
