/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The status of the tracker: whether the host, the hypervisor and Placement agree. Each
 * tracker_status_note_…() notes an event in the status. It logs some changes (tracker-status.c
 * lists them), but not each retry. These functions change neither the tree nor Placement. Main
 * thread. */

#include "agent/cycle/overwrites.h"
#include "agent/tree/tree-maker.h"
#include "base/error.h"
#include "base/string-set.h"
#include "base/uuid.h"
#include "report/placement/outcome.h"

/* The state of Placement compared with this host. */
typedef enum SyncState {
        SYNC_STANDALONE, /* no [placement] section */
        SYNC_PENDING,    /* no cycle has reached another state yet, or the last attempt ended with a
                            conflict */
        SYNC_SYNCED,     /* the last publication made Placement equal to the host, except values
                            that another writer overwrites */
        SYNC_STALE,      /* Placement rejects the tree or a part of it, a part is not reported, a
                            reshape is due, or a local step failed: sync_error says why */
        SYNC_OFFLINE,    /* Placement cannot be used: sync_error says why */
        SYNC_LEFT_TO_NOVA, /* the tree in Placement is nova-compute's ([agent] nova) */
        SYNC_RETIRED,      /* the host is retired: it was removed from Placement */
        _SYNC_STATE_MAX,
} SyncState;

const char *sync_state_to_text(SyncState state); /* the SYNC_STATE_… names of formats/interface.h */

/* The status. Times are 0 until the event has happened. */
typedef struct TrackerStatus {
        SyncState sync_state;
        Error sync_error; /* why the state is stale, offline, or pending after a failure; if the
                             tree is nova-compute's, what no request can make equal; code 0: none */
        Error settling;   /* the device that the first publication waits for; code 0: none */
        bool settled;     /* the first publication no longer waits for devices */
        Error hypervisor_error;  /* why the last poll failed, or why the hypervisor went away since;
                                    code 0: neither */
        bool credential_refused; /* the rejected credential was logged, and no other result
                                    followed */
        bool stale_logged;       /* the state was stale since it was last synced */
        ReshaperAccess reshape_access; /* whether Placement permits reshapes */
        bool reshape_needed; /* the tree must change its shape under running guests; the old shape
                                is kept */
        bool reshape_left;   /* the same for the tree of nova-compute, which the agent leaves */
        Error reshape_error; /* why the last reshape failed; code 0: it succeeded, there was none,
                                or none is needed any more */
        Error device_error;  /* why some devices are not reported as configured; code 0: all are */
        LocalDisk local_disk_decision;
        char local_disk[LOCAL_DISK_TEXT_MAX]; /* why local DISK_GB is withheld or left out; or "" */
        Error floating;   /* names unpinned guests that can run on dedicated CPUs; code 0: none */
        Error part_error; /* parts of the host that could not be read; code 0: all were read */
        uint64_t sync_since_usec;  /* CLOCK_REALTIME of the last change of sync_state */
        uint64_t last_sync_usec;   /* CLOCK_REALTIME of the last publication that made the state
                                      synced; beside nova-compute, of the last read without
                                      differences; begins with that of the tracker before; 0: none
                                    */
        uint64_t last_poll_usec;   /* CLOCK_REALTIME of the snapshot in use; 0: none */
        uint64_t n_cycles;         /* cycles that have ended */
        uint64_t cycle_began_usec; /* CLOCK_MONOTONIC of the start of the last cycle */
        bool cycle_published;      /* the last cycle, or the running one, published everything that
                                      it could, and left no value to another writer */
        bool tree_published;       /* this tracker has published the tree, or kept the host
                                      retired */
        uint64_t n_differences; /* SYNC_LEFT_TO_NOVA: requests that would make the tree equal to the
                                   host */
} TrackerStatus;

/* Returns why an audit must not change any allocation, as the end of a finding, or NULL if it can.
 * The reasons: another writer changes the tree, the hypervisor cannot be polled, a reshape is due,
 * or Placement does not have the whole tree, unless nova-compute owns it. The other writer can be a
 * host with the same identity, and consumers that are unknown here can be its guests. */
const char *tracker_status_find_hindrance(const TrackerStatus *status,
                                          const Overwrites *overwrites);

/* Notes that a phase failed: the state becomes offline if Placement cannot be used, pending after a
 * conflict, and stale otherwise, also after a local failure. result: a ReportOutcome or a negative
 * errno. If error has no words, those of the result are used. */
void tracker_status_note_failure(TrackerStatus *status, int result, const Error *error);

/* Notes that Placement has everything that could be reported. The state becomes synced, or stale if
 * a reshape is due, or if a device or part of the host is not reported. */
void tracker_status_note_synced(TrackerStatus *status);

/* Notes that nova-compute owns the tree in Placement, and that n_requests would make it equal to
 * the host. A reshape that would be necessary counts as one more. last_sync_usec changes only if
 * the sum is 0. */
void tracker_status_note_left(TrackerStatus *status, uint64_t n_requests);

/* Notes whether Placement permits reshapes. Logs a change to RESHAPER_FORBIDDEN. */
void tracker_status_note_access(TrackerStatus *status, ReshaperAccess access);

/* Stores in error why a part of the host, or a device, is not reported. Leaves error as it is if
 * all is reported. */
void tracker_status_copy_unread(const TrackerStatus *status, Error *error);

/* Returns why Placement is not equal to the host even if no request is left to send: the shape, or
 * a part of the host that is not reported. code 0: it is equal. runs: the agent is running; false:
 * it will be started. */
Error tracker_status_why_unequal(const TrackerStatus *status, bool runs);

/* Notes that Placement is not used, and clears sync_error. state is SYNC_STANDALONE or
 * SYNC_RETIRED. */
void tracker_status_note_apart(TrackerStatus *status, SyncState state);

/* Returns why a cycle that ended without an error published nothing, as a static text that can
 * follow "because". For states other than SYNC_LEFT_TO_NOVA and SYNC_RETIRED: that there is no
 * [placement] section. */
const char *tracker_status_why_apart(const TrackerStatus *status);

/* Notes the result of a poll or the loss of the hypervisor, and the parts of the host that the
 * snapshot could not read. snapshot: the last one; NULL: no poll has succeeded. error: code 0 if
 * the poll succeeded. logged: the problems that were logged; updated to those of the snapshot. */
void tracker_status_note_poll(TrackerStatus *status, const Uuid *root, const Snapshot *snapshot,
                              const Error *error, StringSet *logged);
