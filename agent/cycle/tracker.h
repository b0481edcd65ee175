/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The resource tracker: runs the cycles that keep claims and Placement equal to the host (order.h).
 * A cycle begins with a timer, with a change that the driver or the claim service reports, and on
 * request. A failed poll, an outage of Placement and repeated conflicts are retried after the
 * pauses of pace.h. A refusal of Placement is retried at the interval. During failures the last
 * state is kept and served. The tracker logs each publication that wrote something, and changes of
 * its status (tracker-status.h). Main thread. It blocks on the disk: the claim database, the saved
 * shape of a reshape, the cordons, the files of the tree maker's parts, and the file of a warm
 * start. */

#include <systemd/sd-event.h>

#include "agent/audit/auditor.h"
#include "agent/cycle/retire.h"
#include "agent/cycle/tracker-status.h"
#include "agent/guests/database.h"
#include "agent/health/monitor.h"
#include "agent/reshape/control.h"
#include "agent/state/last-run.h"
#include "agent/tree/tree-maker.h"
#include "base/digest.h"
#include "base/provider-tree.h"
#include "drivers/driver.h"
#include "report/publish/plan.h"
#include "report/reporter.h"

typedef struct Tracker Tracker;

/* The environment and settings of a tracker. Everything is borrowed and must outlive the
 * tracker. */
typedef struct TrackerConfig {
        Driver *driver;
        TreeMaker maker;                /* the host and its claims; the first poll sets nodename */
        const ReporterConfig *reporter; /* NULL: standalone */
        const Snapshot *known;          /* the host before the first poll; NULL: unknown */
        uint64_t interval_usec;         /* between cycles; UINT64_MAX: none, so time begins only
                                           retries, and waits for devices */
        uint64_t quiet_max_usec;        /* CyclePace.quiet_max_usec */
        uint64_t patience_usec;         /* time after which a poll counts as failed; 0: 30 s */
        bool dry_run;                   /* a cycle writes nothing to Placement or to claims: no
                                           reshape, audit or comparison of claims */
        bool starts;                    /* the first cycle can reshape the tree, and audits
                                           unless a warm start makes that unnecessary */
        bool warm;                      /* use the file of a warm start (warm-start.h) */
        uint64_t last_sync_usec;        /* last_sync_usec of the previous tracker; 0: none */
        const StringSet *warnings;      /* warnings of the configuration; NULL: none */
        Digest digest;                  /* digest of the configuration (config/config-digest.h) */
        StartReason start_reason;       /* reason of the start of this process */
        const HealthView *health;       /* health of devices; NULL: not watched */
        const char *state_dir;          /* directory of the saved shape and of the file of a warm
                                           start; NULL: neither is used */
        uint64_t reshape_patience_usec; /* limit for a reshape; 0: 5 minutes */
        uint64_t device_settle_usec;    /* longest wait of the first publication for devices */
        uint64_t start_jitter_usec; /* smallest range of the delay of the first request; 0: no delay
                                     */
        uint64_t audit_grace_usec;  /* age below which audits ignore a consumer; 0: 300 s */
        uint64_t heal_cycles; /* cycles that reach the audit, between automatic heals; 0: never */
        /* Called when the status might have changed. */
        void (*changed)(Tracker *tracker, void *userdata);
        /* Called when a poll that began at began_usec (CLOCK_MONOTONIC) has ended, and the claims
         * know its guests. After a failed poll began_usec is 0, and error has the reason. Never
         * called from inside tracker_look(). */
        void (*looked)(Tracker *tracker, uint64_t began_usec, const Error *error, void *userdata);
        void *userdata;
} TrackerConfig;

/* Creates a tracker, whose first cycle begins when the loop runs. config is copied, and event is
 * referenced. With config->warm, a state directory and [placement], it reads and removes the file
 * of a warm start, so it blocks on the disk. A file that cannot be used is logged and ignored.
 * Returns a negative errno with words. */
int tracker_new(Tracker **ret, sd_event *event, const TrackerConfig *config, Error *reterr);
Tracker *tracker_free(Tracker *tracker);
DEFINE_CLEANUP(Tracker *, tracker_free);

/* Writes the file for a warm start of the next process (warm-start.h). The caller calls it at the
 * clean end of the service. Writes nothing in a dry run, without a state directory, or if a full
 * read of Placement is due. It also writes nothing if there is no report client, if it has no
 * mirror that can be kept (reporter_save()), or if the content is larger than WARM_SIZE_MAX. Logs a
 * failure. Blocks on the disk. */
void tracker_save(Tracker *tracker);

/* The event that a caller waits for, and the scope of the cycle. */
typedef enum TrackerSync {
        TRACKER_SYNC,           /* the end of a cycle */
        TRACKER_RELOAD,         /* the same, but at most 30 s: systemd waits no longer than 90 s */
        TRACKER_PUBLISH,        /* the end of a cycle that does not put off the publication
                                   (device_settle_usec) */
        TRACKER_PUBLISH_ALL,    /* the same; Placement is read completely (reporter_forget()) */
        TRACKER_PUBLISH_CORDON, /* the same as TRACKER_PUBLISH; the pauses of overwrites.h end */
} TrackerSync;

/* Runs a cycle that begins after this call, with a poll that reads everything. done (can be NULL)
 * is called once, after the event or by tracker_dismiss(), never from inside this call. It is not
 * called if it is cancelled or the tracker is freed. Its argument error is borrowed, and has code 0
 * if the poll and all requests of the cycle succeeded, at last after conflicts, and everything that
 * the configuration permits is published. A value that overwrites.h leaves to another writer is an
 * error. A failed audit, retirement or comparison of claims, and pending writes, are no error here.
 * Returns -ENOMEM. */
int tracker_sync(Tracker *tracker, TrackerSync sync,
                 void (*done)(Tracker *tracker, const Error *error, void *userdata),
                 void *userdata);

/* Begins a poll of all guests (DRIVER_POLL_GUESTS), without a cycle. TrackerConfig.looked reports
 * its end. Returns a negative errno with words. */
int tracker_look(Tracker *tracker, Error *reterr);

/* Calls all waiters with ECANCELED and these words, because no other cycle will end. */
void tracker_dismiss(Tracker *tracker, const char *why);

/* Drops the waiters with this userdata. The cycle itself still runs. */
void tracker_sync_cancel(Tracker *tracker, void *userdata);

/* A view of the tracker. Everything is borrowed until the loop runs again; auditor, reshape and
 * retirement are valid as long as the tracker. A caller that requests an operation of these three
 * must also request a cycle: tracker_sync(). */
typedef struct TrackerView {
        const TrackerStatus *status;
        const Snapshot *snapshot;    /* host of the last successful poll, else
                                        TrackerConfig.known; NULL: none */
        const ProviderTree *tree;    /* the tree of the host, to which claims are fitted; NULL: none
                                        was made yet. Can be NULL beside a snapshot. */
        const ProviderTree *mirror;  /* the tree in Placement; NULL: not read, or no [placement] */
        const ProviderTree *sharing; /* sharing providers of the tree; NULL: unknown */
        const DeviceLedger *devices; /* expected devices; NULL: unknown */
        const Retained *retained;    /* allocations that were read; NULL: no [placement] */
        Session *session;            /* the session with Placement; NULL: none */
        Session *writer;             /* the same, to write allocations; NULL also until Placement
                                        has confirmed that the root is this host's
                                        (reporter_knows_root()) */
        NovaMode nova;               /* [agent] nova; NOVA_NONE without [placement] */
        Auditor *auditor;
        ReshapeControl *reshape;
        Retirement *retirement;
} TrackerView;

/* Returns the view. Cheap. */
TrackerView tracker_view(const Tracker *tracker);

/* Returns the progress of the running cycle. Without a running cycle, the phase is "waiting". */
void tracker_get_progress(const Tracker *tracker, Progress *ret);

/* Makes the plan that the next publication would send. Sends no request. It ignores the pauses of
 * overwrites.h, [agent] nova, and a retirement. It moves no allocation: if a reshape is due, the
 * plan has the old shape. Returns -ENODATA with words without [placement], before the first read of
 * Placement, during an outage, and after a failed poll. Other errors are those of making the tree
 * and of reporter_plan(). The caller frees the plan. */
int tracker_plan(Tracker *tracker, Plan **ret, Error *reterr);

/* The facts about this host, its claims and Placement at one time, for the verdict, the metrics and
 * the properties on D-Bus. Everything is borrowed. */
typedef struct CycleFacts {
        const TrackerStatus *status;
        const ReporterStatistics *statistics; /* zeros without a report client */
        const char *driver;                   /* name of the driver; NULL: unknown */
        NovaMode nova;
        const Snapshot *snapshot;    /* the last snapshot; NULL: none */
        const ProviderTree *tree;    /* the tree of the host; NULL: unknown */
        const DeviceLedger *devices; /* expected devices; NULL: unknown */
        const Retained *retained; /* inventories in use that the host lacks; NULL: no [placement] */
        const Overwrites *overwrites; /* values of another writer; NULL: unknown */
        const AuditorState *audit;    /* NULL: none */
        uint64_t spared_usec;         /* CLOCK_REALTIME of the audit of an earlier process, while
                                         this start does not know whether it counts; else 0 */
        const StringSet *config_warnings; /* NULL: none */
        const Digest *config_digest;      /* NULL: unknown */
        StartReason start_reason;
        const Error *claim_error; /* why new claims are rejected; code 0: they are not */
        const HostView *view;     /* the host for the claims; NULL: unknown */
        size_t n_claims;
        size_t n_disagreements; /* differences between claims and guests */
        PendingWrites pending_writes;
        const char *pending_writes_error; /* why pending writes are not settled; "" or NULL: no
                                             reason */
        CordonView cordons;
        HealthView health;
} CycleFacts;

/* Collects the facts. Blocks on the disk of the claim database. The view of the host is valid until
 * the next read of the database; earlier borrowed results are invalid after the call. */
void cycle_facts_look(const Tracker *tracker, const PendingWrites *pending_writes,
                      const char *pending_writes_error, CycleFacts *ret);
