/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tracker for its own files. tracker.c owns the object. phases.c runs the cycles.
 * tracker-tree.c makes the tree when a phase needs it. */

#include "agent/cycle/host-poll.h"
#include "agent/cycle/order.h"
#include "agent/cycle/pace.h"
#include "agent/cycle/tracker.h"
#include "agent/cycle/warm-start.h"
#include "agent/guests/comparison.h"

/* A caller that waits for the end of a cycle. */
typedef struct CycleWaiter {
        void (*done)(Tracker *tracker, const Error *error, void *userdata); /* see tracker_sync() */
        void *userdata;
        bool publication; /* waits for a cycle that does not put off the publication */
        bool is_reload;   /* waits at most RELOAD_USEC */
        uint64_t asked;   /* Tracker.n_begun at the request: only a later cycle counts, because the
                             running one might have read the host already */
} CycleWaiter;

/* The resource tracker. One cycle runs at a time; phase and cycle describe it. */
struct Tracker {
        TrackerConfig config;
        sd_event *event;
        sd_event_source *cycle_timer; /* begins the next cycle */
        sd_event_source *soon;        /* ends the phase after the calls that have arrived */
        sd_event_source *late;        /* ends the wait of a reload */
        HostPoll *poll;
        const Snapshot *snapshot; /* borrowed from poll; NULL: no poll has succeeded, and none was
                                     known before */
        Reporter *reporter; /* made after the first snapshot, which has the name of the root */
        TreeMaker maker;
        ReshapeControl *reshape;
        ComparisonRun *comparison_run; /* compares claims and guests; NULL: no comparison runs */
        Auditor *auditor;
        ProviderTree *tree;
        ProviderTree *wanted;  /* the agent's own tree, if nova-compute owns tree */
        uint64_t started_usec; /* CLOCK_BOOTTIME */
        CyclePhase phase;
        /* The running cycle. Cleared at its start. */
        struct {
                OrderFacts facts;
                Error error; /* passed to the waiters */
                bool spoke;  /* the scope of this cycle was CYCLE_PLACEMENT */
                bool audits; /* an audit is due, which the choice of the scope found */
                bool wanted; /* begun by a request or a change, and not only by the timer */
                bool yields; /* values are left to another writer (overwrites.h) */
                uint64_t writes_before; /* n_plan_writes of the report client before this cycle */
        } cycle;
        CyclePace pace;
        bool again;            /* another cycle follows at once */
        bool all;              /* a cycle was requested, and its poll reads everything */
        bool full;             /* the next cycle reads all of Placement */
        uint64_t changed_usec; /* CLOCK_BOOTTIME of the first change since the last cycle began; 0:
                                  none */
        int64_t generations;   /* sum of the generations of Placement's tree at the end of the last
                                  cycle with Placement */
        Retirement retirement;
        uint64_t n_begun; /* number of cycles that have begun, and of calls of tracker_dismiss() */
        CycleWaiter *waiters;
        size_t n_waiters, n_waiters_allocated;
        TrackerStatus status;
        Overwrites overwrites;
        /* The last answer about the consumers of lost inventories (agent/tree/retained.h). */
        uint64_t holders_read_usec;  /* CLOCK_BOOTTIME; 0: never */
        int64_t holders_generations; /* sum of the generations of the providers at that time */
        WarmStart warm;              /* reporter: for the first reporter; NULL: none */
        bool spares_audit;         /* no audit at this start, if the first refresh confirms warm */
        StringSet logged_problems; /* problems of the snapshot that were logged */
};

/* Sets the timer that begins the next cycle after this pause. UINT64_MAX: stops the timer. */
void tracker_arm_timer(Tracker *tracker, uint64_t pause_usec);

/* Ends the phase, and runs the following phases until one waits for a callback or a timer. result:
 * 0, a ReportOutcome or a negative errno. error has its words, or is NULL. */
void tracker_end_phase(Tracker *tracker, int result, const Error *error);

/* Handles the result of a poll, the loss of the hypervisor, or a change of the host. userdata is
 * the tracker. */
void tracker_on_host_poll(const Snapshot *snapshot, HostPollEvent event, const Error *error,
                          void *userdata);

/* Begins a cycle soon, because the host, claims that change what a device offers, or the state of
 * such a device have changed. During a cycle, the next one follows at once. userdata is the
 * tracker. */
void tracker_note_cards(void *userdata);

/* Calls and removes the waiters that asked before the last cycle began, each exactly once. put_off:
 * the publication was put off, so waiters for a publication keep waiting. A waiter can add and
 * cancel waiters. */
void tracker_call_waiters(Tracker *tracker, const Error *error, bool put_off);

/* Returns true if [agent] nova permits the action. */
static inline bool tracker_may(const Tracker *tracker, NovaAction action)
{
        const ReporterConfig *reporter = tracker->config.reporter;

        return !reporter || !nova_mode_refuses(reporter->nova, action);
}

/* Makes the tree from the last snapshot before Placement is read, so that no new claim gets a
 * device that is gone. Also reshapes the tree of a standalone host. Returns -ENOMEM on failure; for
 * a standalone host also the errors of tree_maker_make() and of the reshape. With Placement, other
 * errors are ignored. A preview is then made from the last tree, or the last tree stays in use. */
int tracker_tree_after_poll(Tracker *tracker, Error *reterr);

/* Makes the tree again, from the tree of Placement that was just read: only this tree has the
 * current ratios, reserved amounts and traits of other writers. Returns the errors of
 * tree_maker_make(), after which the last tree stays. */
int tracker_tree_after_read(Tracker *tracker, Error *reterr);

/* Takes ownership of the tree that a reshape made. device_error: why some devices are not reported
 * as configured. */
void tracker_tree_reshaped(Tracker *tracker, ProviderTree *tree, const Error *device_error);
