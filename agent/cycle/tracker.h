/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The resource tracker: runs the cycles that keep claims and Placement equal to the host (order.h).
 * A cycle begins with a timer, with a change that the driver reports, and on request. A failure is
 * retried with growing, jittered pauses; the last state is kept and served meanwhile. The tracker
 * logs the result of a cycle if it changed. Main thread; only the claim database's disk blocks. */

#include <systemd/sd-event.h>

#include "agent/audit/auditor.h"
#include "agent/cycle/retire.h"
#include "agent/cycle/tracker-status.h"
#include "agent/guests/database.h"
#include "agent/reshape/control.h"
#include "agent/tree/tree-maker.h"
#include "base/provider-tree.h"
#include "drivers/driver.h"
#include "report/publish/plan.h"
#include "report/reporter.h"

typedef struct Tracker Tracker;

/* Called once when the cycle ended: error->code is 0 when everything was polled and published. */
typedef void (*TrackerDone)(Tracker *tracker, const Error *error, void *userdata);

/* Everything is borrowed and must outlive the tracker. */
typedef struct TrackerConfig {
        Driver *driver;
        TreeMaker maker;                /* the host and its claims; without a nodename */
        const ReporterConfig *reporter; /* NULL: standalone */
        const Snapshot *known;          /* the host before the first poll; NULL: not known */
        uint64_t interval_usec;         /* between polls; UINT64_MAX: none */
        uint64_t patience_usec;         /* how long a poll is waited for; 0: 30 s */
        bool dry_run;                   /* stop before the first write */
        bool starts;                    /* the first cycle may reshape the tree */
        uint64_t last_sync_usec;        /* of the tracker before this one (TrackerStatus) */
        const StringSet *warnings;      /* of the configuration in force; NULL: none */
        const char *state_dir;          /* where the old shape is kept; NULL: nowhere */
        uint64_t reshape_patience_usec; /* 0: 5 minutes */
        uint64_t device_settle_usec;    /* how long the first publish waits for missing devices */
        uint64_t start_jitter_usec;     /* Placement hears of us within this; 0: at once */
        uint64_t audit_grace_usec;      /* how long consumers may be on their way; 0: 300 s */
        uint64_t heal_cycles;           /* heal by itself each so many cycles; 0: never */
        /* Called when anything of the status may have changed. */
        void (*changed)(Tracker *tracker, void *userdata);
        /* Called when a poll that began at this time (CLOCK_MONOTONIC) ended, and the claims know
         * the guests of it; or when one failed, with the reason. Not from inside tracker_look(). */
        void (*looked)(Tracker *tracker, uint64_t began_usec, const Error *error, void *userdata);
        void *userdata;
} TrackerConfig;

int tracker_new(Tracker **ret, sd_event *event, const TrackerConfig *config, Error *reterr);
Tracker *tracker_free(Tracker *tracker);
DEFINE_CLEANUP(Tracker *, tracker_free);

/* The event that a caller waits for. */
typedef enum TrackerSync {
        TRACKER_SYNC,        /* the end of a cycle */
        TRACKER_PUBLISH,     /* waits for a cycle that does not put off the publication
                                (device_settle_usec) */
        TRACKER_PUBLISH_ALL, /* the same; Placement is read anew (reporter_forget()) */
} TrackerSync;

/* Runs a cycle that begins after this call, with a poll that reads everything anew. done (may be
 * NULL) is called after the event, never from inside the call. -ENOMEM. */
int tracker_sync(Tracker *tracker, TrackerSync sync, TrackerDone done, void *userdata);

/* Asks for a poll that reads every guest that does not run, without a cycle: see
 * TrackerConfig.looked. Negative errno with words. */
int tracker_look(Tracker *tracker, Error *reterr);

/* Notifies everybody who waits for a cycle that there will be none, with these words. */
void tracker_dismiss(Tracker *tracker, const char *why);

/* Forgets every request that was made with this userdata. */
void tracker_sync_cancel(Tracker *tracker, void *userdata);

/* A view of the tracker. Everything is borrowed until the loop runs again; auditor, reshape and
 * retirement as long as the tracker. A caller that requests something of these three also requests
 * the cycle that does it: tracker_sync(). */
typedef struct TrackerView {
        const TrackerStatus *status;
        const Snapshot *snapshot;    /* the host by the last poll that succeeded; NULL: none */
        const ProviderTree *tree;    /* that the host should have; NULL before the first poll */
        const ProviderTree *sharing; /* the sharing providers of the tree; NULL: none is known */
        const DeviceLedger *devices; /* that are expected; NULL: not known */
        Session *session;            /* the session with Placement; NULL: none (yet) */
        NovaMode nova;               /* [agent] nova; NOVA_NONE without a Placement */
        Auditor *auditor;
        ReshapeControl *reshape;
        Retirement *retirement;
} TrackerView;

TrackerView tracker_view(const Tracker *tracker);

/* Of the cycle that runs, or is about to: phase "waiting". */
void tracker_get_progress(const Tracker *tracker, Progress *ret);

/* What the next publish would send. -ENODATA with words when it cannot be known yet. The caller
 * frees. */
int tracker_plan(Tracker *tracker, Plan **ret, Error *reterr);

/* What is known of this host, its claims and Placement at a moment, for the verdict, the metrics
 * and the properties on D-Bus. Everything is borrowed. */
typedef struct CycleFacts {
        const TrackerStatus *status;
        const ReporterStatistics *statistics; /* zeros when standalone */
        const char *driver;                   /* its name; NULL: not known */
        NovaMode nova;
        const Snapshot *snapshot;    /* the last that a poll brought; NULL: none */
        const ProviderTree *tree;    /* that the host should have; NULL: not known yet */
        const DeviceLedger *devices; /* that are expected; NULL: not known */
        const Retained *retained;    /* inventories in use that are gone; NULL: no Placement */
        const Contest *contest;      /* what somebody else writes in the tree; NULL: not known */
        const AuditorState *audit;   /* NULL: none yet */
        const StringSet *config_warnings; /* NULL: none */
        const Error *claim_error;         /* why claims cannot be taken; code 0: they can */
        const HostView *view;             /* the host as claims have it; NULL: not known */
        size_t n_claims;
        size_t n_disagreements; /* of claims and guests */
        ClaimsOwed owed;
        const char *owed_trouble; /* why the owed writes are not settled; "": they are on their way,
                                   * or NULL */
        const char *host_cordoned, *devices_cordoned; /* NULL: nothing is */
        size_t n_devices_cordoned;
} CycleFacts;

/* Collects the facts. Blocks on the disk of the claim database. The view of the host is valid until
 * the next call; what was borrowed from the database before is not valid any more. */
void cycle_facts_look(const Tracker *tracker, const ClaimsOwed *owed, const char *owed_trouble,
                      CycleFacts *ret);
