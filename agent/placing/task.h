/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One claim, one move or one debt on its way to Placement and back: the parts of a ClaimDesk. */

#include <sys/queue.h>

#include "agent/placing/decide.h"
#include "claims/claims-placement.h"
#include "report/consumers.h"

/* What all tasks share. */
typedef struct ClaimCounter {
        sd_event *event;
        ClaimService *service;
        Uuid root;
        ClaimMode mode;
        NovaMode nova;
        bool with_placement;
        bool away;              /* Placement did not answer last */
        uint64_t n_removals;    /* that Placement was told of */
        ClaimDeskSearch search; /* NULL: none */
        void *search_userdata;
} ClaimCounter;

typedef struct ClaimTask ClaimTask;

/* The task is gone after it, and words with it. */
typedef void (*ClaimTaskDone)(ClaimTask *task, int result, const Claim *claim, bool told,
                              const Error *error);

typedef enum ClaimTaskKind {
        CLAIM_TASK_CLAIM,    /* of request */
        CLAIM_TASK_LOOK,     /* at what guests have, for the request; the desk's own */
        CLAIM_TASK_MOVE,     /* of handover, which is in the database */
        CLAIM_TASK_DEBT,     /* claim is owed */
        CLAIM_TASK_DEPARTURE /* departure is to be finished */
} ClaimTaskKind;

struct ClaimTask {
        TAILQ_ENTRY(ClaimTask) link;
        const ClaimCounter *counter;
        Session *session; /* NULL: none */
        ClaimTaskKind kind;
        Uuid consumer; /* that it is about */
        const ClaimRequest *request;
        ClaimHandover handover;
        bool waits;   /* for another task of the consumer */
        bool in_hand; /* claim_service_take_in_hand() */
        bool looks;   /* at what guests have: waits for a poll that begins after look_usec */
        bool looked;
        uint64_t look_usec; /* CLOCK_MONOTONIC */
        bool repairs;       /* nobody waits for the move: what was not done is taken back */
        ClaimDeparture departure;
        bool late;       /* the departure could not be looked at when the claim ended */
        ClaimTold after; /* of a move: how Placement has its consumer when that is written */
        Claim *claim;    /* that is pending or owed, or that ended */
        bool is_there;   /* the consumer holds already what the claim has */
        bool searches;   /* for claims whose guests are gone */
        bool has_searched;

        ClaimTaskDone done;
        ClaimDeskDone told; /* the desk's business */
        void *owner, *userdata;

        unsigned n_attempts;
        sd_event_source *timer;
        ConsumersCall *call;
        Consumer *seen, *target; /* as Placement has it; target: who a move goes to */
        Consumer *room;          /* what Placement has left of this host; NULL: it was not asked */
        bool others_full;        /* a sharing provider seems to be what has none */
        uint64_t n_removals;     /* of the counter, when the consumer was read */
        uint64_t begun_usec;
};

ClaimTask *claim_task_free(ClaimTask *task);
DEFINE_CLEANUP(ClaimTask *, claim_task_free);

/* Begins, or begins anew after a conflict; agent/placing/task.c has the claims,
 * agent/placing/settle.c the rest. */
void claim_task_run(ClaimTask *task);
void claim_errand_run(ClaimTask *task);

/* Ends with these words. */
void claim_task_fail(ClaimTask *task, int result, const Error *error);

/* The result of a consumers call as one of a task. */
int claim_task_outcome(int result);

/* What to do about what a claim (ended; NULL: not known any more) left of the consumer that was
 * read. */
ClaimDepartureCourse claim_task_departure(const ClaimTask *task, Claims *claims,
                                          const ClaimDeparture *departure, const Claim *ended,
                                          bool late, bool inherited);

/* CLOCK_REALTIME, as claims have it. */
uint64_t claim_task_now_usec(void);

/* After a conflict: runs again in a moment. False when it was tried often enough. */
bool claim_task_retry(ClaimTask *task);

/* The search is over. */
void claim_task_searched(ClaimTask *task);

/* Who holds it, where nobody said. */
int claim_task_name(Consumer *consumer, const char *project, const char *user, const char *type);
