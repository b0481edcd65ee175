/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The status of the tracker: how the host, the hypervisor and Placement agree. Each function notes
 * an event and logs the change, but not each retry. It decides nothing. Main thread. */

#include "agent/cycle/contest.h"
#include "agent/tree/tree-maker.h"
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
        bool credential_refused; /* and that was logged */
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

/* Returns why an audit must not change any allocation, in words that end a finding; NULL: it may.
 * If another writer changes the tree, it can be another host with the same identity, and consumers
 * that are unknown here can be guests of that host. */
const char *tracker_status_find_hindrance(const TrackerStatus *status, const Contest *contest);

/* Notes that a cycle failed. If error has no words, those of the result are used. */
void tracker_status_note_failure(TrackerStatus *status, int result, const Error *error);

/* Notes that Placement has all that could be reported. */
void tracker_status_note_synced(TrackerStatus *status);

/* Notes that Placement was read, and its tree was left as it is. */
void tracker_status_note_left(TrackerStatus *status, uint64_t n_differences);

/* Notes that Placement is not used: SYNC_STANDALONE, also after a cycle that failed, or
 * SYNC_RETIRED. */
void tracker_status_note_apart(TrackerStatus *status, SyncState state);

/* Notes what the tree that was just made says of the host root, and logs each change. known: it was
 * made from the tree of Placement, so the decision about the local disk is final. */
void tracker_status_note_tree(TrackerStatus *status, const TreeMaker *maker,
                              const Snapshot *snapshot, const MadeTree *made, bool known);

/* Notes that the tree has the shape of the host. error: why some devices are not reported as
 * configured; code 0: all are. */
void tracker_status_note_reshaped(TrackerStatus *status, const Uuid *root, const Error *error);
void tracker_status_note_access(TrackerStatus *status, ReshaperAccess access);

/* Notes how a poll ended, and which parts of the host the snapshot (NULL: no poll has succeeded)
 * could not read. error: code 0 if the hypervisor answers. logged: the problems that were logged;
 * it is made equal to those of the snapshot. */
void tracker_status_note_poll(TrackerStatus *status, const Uuid *root, const Snapshot *snapshot,
                              const Error *error, StringSet *logged);
