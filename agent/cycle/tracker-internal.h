/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tracker as its own files see it: tracker.c changes it, tracker-facts.c describes it,
 * tracker-tree.c makes its tree. */

#include "agent/cycle/host-poll.h"
#include "agent/cycle/pace.h"
#include "agent/cycle/tracker.h"
#include "agent/guests/witness.h"

typedef enum TrackerPhase {
        PHASE_IDLE,
        PHASE_POLLING,
        PHASE_REFRESHING,
        PHASE_PUBLISHING,
        PHASE_AUDITING,
        PHASE_COMPARING,
        PHASE_ENDING,
} TrackerPhase;

struct Tracker {
        TrackerConfig config;
        sd_event *event;
        sd_event_source *cycle_timer; /* when the next cycle begins */
        sd_event_source *end;         /* the rest of this one */
        uint64_t pause_max_usec;      /* before the next one */
        HostPoll *poll;
        Snapshot *snapshot; /* the last good one, borrowed from poll */
        Reporter *reporter; /* made with the first snapshot, which knows the name of the root */
        TreeMaker maker;
        ReshapeControl *reshape;
        ClaimWitness *witness; /* while Placement is asked about claims */
        Auditor *auditor;
        ProviderTree *tree;
        ProviderTree *wanted; /* where the tree is nova-compute's: as the agent would have it */
        bool reshape_left;    /* and that it would change its shape */
        TrackerPhase phase;
        uint64_t started_usec; /* CLOCK_BOOTTIME */
        CyclePace pace;
        bool spoke;            /* to Placement, in this cycle */
        bool again;            /* a cycle was asked for while one runs */
        uint64_t changed_usec; /* CLOCK_BOOTTIME: when the first change that waits for the next
                                * cycle was heard of; 0: none */
        bool all;              /* the next poll reads everything: somebody asked */
        bool full;             /* so does the next refresh */
        Retirement retirement;
        unsigned n_conflicts;
        bool in_use_again; /* no further attempt for an inventory that is in use */
        uint64_t writes_before;
        Error cycle_error;
        CycleWaiters waiters;
        TrackerStatus status;
        Contest contest;
        StringSet logged_problems; /* of the snapshot, that were logged */
};

/* Asks for a cycle with a poll that reads everything; publication as in waiters.h. -ENOMEM. */
int tracker_ask_cycle(Tracker *tracker, TrackerDone done, void *userdata, bool publication);

/* Returns true if [agent] nova permits the action. */
static inline bool tracker_may(const Tracker *tracker, NovaAction action)
{
        return !nova_mode_refuses(tracker_get_nova(tracker), action);
}

/* Makes the tree from the last snapshot, before Placement is asked: a device that is gone is not
 * allocated while requests are under way. Also reshapes the tree of a standalone host. -ENOMEM;
 * of a standalone host also the errors of tree_maker_make(). */
int tracker_tree_after_poll(Tracker *tracker, Error *reterr);

/* Makes the tree again, from the tree that Placement has: only that one has the ratios, reserves
 * and traits of other writers. As tree_maker_make(). */
int tracker_tree_after_read(Tracker *tracker, Error *reterr);

/* Takes the tree that a reshape made. */
void tracker_tree_reshaped(Tracker *tracker, ProviderTree *tree);
