/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tracker as its own files see it. tracker.c owns it and calls phases.c, which runs its cycles
 * and calls tracker-tree.c, which makes its tree. */

#include "agent/cycle/host-poll.h"
#include "agent/cycle/order.h"
#include "agent/cycle/pace.h"
#include "agent/cycle/tracker.h"
#include "agent/guests/comparison.h"

/* A caller that waits for the end of a cycle. */
typedef struct CycleWaiter {
        TrackerDone done;
        void *userdata;
        bool publication; /* waits for a cycle that does not put off the publication */
        uint64_t asked;   /* Tracker.n_begun at the request: only a later cycle counts, because the
                             running one may have read the host already */
} CycleWaiter;

/* The running cycle. Cleared when one begins. */
typedef struct TrackerCycle {
        OrderFacts facts;
        Error error;            /* for its waiters */
        bool spoke;             /* this cycle sent requests to Placement */
        uint64_t writes_before; /* writes of the report client before this cycle */
} TrackerCycle;

struct Tracker {
        TrackerConfig config;
        sd_event *event;
        sd_event_source *cycle_timer; /* begins the next cycle */
        sd_event_source *soon;        /* ends the phase, behind calls that arrived meanwhile */
        HostPoll *poll;
        Snapshot *snapshot; /* the last one, borrowed from poll; NULL: no poll has succeeded */
        Reporter *reporter; /* made with the first snapshot, which has the name of the root */
        TreeMaker maker;
        ReshapeControl *reshape;
        ClaimWitness *witness; /* while Placement is asked about claims */
        Auditor *auditor;
        ProviderTree *tree;
        ProviderTree *wanted;  /* that the agent would make, if nova-compute owns the tree */
        bool reshape_left;     /* wanted has another shape */
        uint64_t started_usec; /* CLOCK_BOOTTIME */
        CyclePhase phase;
        TrackerCycle cycle;
        CyclePace pace;
        bool again;            /* another cycle begins at once after this one */
        bool all;              /* the next poll reads everything */
        bool full;             /* the next cycle reads all of Placement */
        uint64_t changed_usec; /* CLOCK_BOOTTIME of the first change since the last poll; 0: none */
        Retirement retirement;
        uint64_t n_begun; /* cycles */
        CycleWaiter *waiters;
        size_t n_waiters, n_waiters_allocated;
        TrackerStatus status;
        Contest contest;
        StringSet logged_problems; /* problems of the snapshot that were logged */
};

/* Begins the next cycle after this pause; UINT64_MAX: never. */
void tracker_arm_timer(Tracker *tracker, uint64_t pause_usec);

/* Ends the phase with a result (cycle_outcome() in order.h; error as of the reporter, or NULL), and
 * begins those that follow until one waits for an answer. */
void tracker_end_phase(Tracker *tracker, int result, const Error *error);

/* Takes the result of a poll, or other news of the host. */
void tracker_take_news(HostPoll *poll, HostPollNews news, const Error *error, void *userdata);

/* Calls the waiters of the cycle that ended, each exactly once. put_off: it put off the
 * publication, so those that wait for one wait for the next cycle. A waiter can add and cancel
 * waiters. */
void tracker_call_waiters(Tracker *tracker, const Error *error, bool put_off);

/* Returns true if [agent] nova permits the action. */
static inline bool tracker_may(const Tracker *tracker, NovaAction action)
{
        const ReporterConfig *reporter = tracker->config.reporter;

        return !reporter || !nova_mode_refuses(reporter->nova, action);
}

/* Makes the tree from the last snapshot, before Placement is asked: a device that is gone is not
 * allocated while requests are under way. Also reshapes the tree of a standalone host. -ENOMEM;
 * of a standalone host also the errors of tree_maker_make(). */
int tracker_tree_after_poll(Tracker *tracker, Error *reterr);

/* Makes the tree again, from the tree that Placement has: only that one has the ratios, reserves
 * and traits of other writers. As tree_maker_make(). */
int tracker_tree_after_read(Tracker *tracker, Error *reterr);

/* Takes the tree that a reshape made. device_error: why some devices are not as configured. */
void tracker_tree_reshaped(Tracker *tracker, ProviderTree *tree, const Error *device_error);
