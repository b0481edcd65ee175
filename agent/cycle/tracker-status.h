/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How host, hypervisor and Placement stand to each other, and the one place that logs it: when it
 * changes, not at each retry. It decides nothing. Main thread. */

#include "agent/cycle/contest.h"
#include "agent/tree/local-disk.h"
#include "base/error.h"
#include "base/string-set.h"
#include "base/uuid.h"
#include "report/placement/outcome.h"

typedef enum SyncState {
        SYNC_STANDALONE, /* there is no Placement to report to */
        SYNC_PENDING,    /* nothing was published yet, or a change is on its way */
        SYNC_SYNCED,     /* Placement is equal to the host */
        SYNC_STALE,      /* Placement refuses (part of) the tree: error has the words */
        SYNC_OFFLINE,    /* Placement cannot be used: error has the words */
        SYNC_LEFT,       /* Placement was read; its tree is nova-compute's ([agent] nova) */
        SYNC_RETIRED,    /* what there was of this host in Placement was removed */
        _SYNC_STATE_MAX,
} SyncState;

const char *sync_state_to_text(SyncState state); /* the SYNC_STATE_… names of formats/interface.h */
const char *reshape_access_to_text(ReshaperAccess access); /* the RESHAPE_ACCESS_… names */

typedef struct TrackerStatus {
        SyncState sync_state;
        Error sync_error;        /* why stale or offline */
        Error settling;          /* the device that the first publication waits for; code 0: none */
        bool settled;            /* the first publication no longer waits for devices */
        Error hypervisor_error;  /* why the last poll failed; code 0 when it did not */
        bool credential_refused; /* who we are is refused, and that was said */
        bool stale_logged;       /* it was stale since it was synced last, and that was logged */
        ReshaperAccess reshape_access; /* whether Placement lets this user reshape */
        bool reshape_needed; /* the tree must change shape under running guests; the old one is kept
                              */
        Error reshape_error; /* why the last reshape failed; code 0: it did not */
        Error device_error;  /* why some devices are not reported as configured; code 0: all are */
        LocalDisk local_disk_decision;
        char local_disk[LOCAL_DISK_TEXT_MAX]; /* why local DISK_GB is withheld or left out; or "" */
        Error floating;   /* names unpinned guests that can run on dedicated CPUs; code 0: none */
        Error part_error; /* what of the host could not be read, and how many more; code
                             0: all was */
        uint64_t sync_since_usec; /* CLOCK_REALTIME: since when sync_state is what it is */
        uint64_t last_sync_usec; /* CLOCK_REALTIME of the last cycle that ended synced, 0: not since
                                  * the start */
        uint64_t last_poll_usec; /* CLOCK_REALTIME of the snapshot in use, 0: none */
        uint64_t n_cycles;
        uint64_t cycle_began_usec; /* CLOCK_MONOTONIC: the running or last cycle */
        bool cycle_published;   /* the running or last cycle sent everything that it could send */
        bool tree_published;    /* by the tracker that has this status, whose the tree is */
        uint64_t n_differences; /* of SYNC_LEFT: requests that would make the tree equal to the host
                                 */
} TrackerStatus;

void tracker_status_init(TrackerStatus *status, bool standalone);

/* Why nothing is to be done about who holds what, whatever an audit finds, in words that end a
 * finding; NULL: it may be. Where somebody else writes the tree, it may be another host with the
 * same identity, and what nobody here knows may be its guests'. */
const char *tracker_status_find_hindrance(const TrackerStatus *status, const Contest *contest);

/* A cycle could not be ended. error may have no words: those of the result are taken then. */
void tracker_status_note_failure(TrackerStatus *status, int result, const Error *error);

/* Placement has all that could be reported. */
void tracker_status_note_synced(TrackerStatus *status);

/* Logs each part once that somebody else undoes again and again. */
void tracker_status_note_contest(Contest *contest);

/* Returns true if the first publication still waits for missing devices, and sets settling to words
 * that name the first of them. spent_usec: since the start; limit_usec: [agent] device_settle_sec.
 * After it returned false once, it returns false. */
bool tracker_status_is_settling(TrackerStatus *status, const char *missing, size_t n_missing,
                                uint64_t spent_usec, uint64_t limit_usec);

/* Logs that Placement deleted a provider by order of this agent, with the evidence. userdata is
 * not used: the function is a receiver of reporter_set_deleted(). */
void tracker_status_log_deleted(const Uuid *provider, const char *name, void *userdata);

/* Placement was read, and the tree is left as it is. */
void tracker_status_note_left(TrackerStatus *status, uint64_t n_differences);

/* Notes that the host is well without a Placement, also after a cycle that failed. */
void tracker_status_note_standalone(TrackerStatus *status);

/* Nothing is reported to Placement. */
void tracker_status_note_retired(TrackerStatus *status);

/* root: the host, for the journal. */
void tracker_status_note_reshape(TrackerStatus *status, const Uuid *root, bool needed);
void tracker_status_note_access(TrackerStatus *status, ReshaperAccess access);
void tracker_status_note_devices(TrackerStatus *status, const Uuid *root, const Error *error);

/* Logs each change of the decision about the root's DISK_GB. was_there: Placement has it. */
void tracker_status_note_local_disk(TrackerStatus *status, const Uuid *root, LocalDisk decision,
                                    bool was_there, const LocalDiskFacts *facts);

/* Notes the unpinned guests that can run on dedicated CPUs. Logs each text once, and the end. */
void tracker_status_note_floating(TrackerStatus *status, const Uuid *root, const HostConfig *config,
                                  const Snapshot *snapshot);

/* problems: what the last poll could not read; logged: what of it was logged, made equal. */
void tracker_status_note_parts(TrackerStatus *status, const Uuid *root, const StringSet *problems,
                               StringSet *logged);

/* error NULL: it answers. known: an earlier poll succeeded. */
void tracker_status_note_hypervisor(TrackerStatus *status, const Error *error, bool known);
