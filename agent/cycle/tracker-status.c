/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Keeps the status of the tracker and logs its changes. The state of Placement and the one of the
 * hypervisor are logged when they change; another reason for the same state is not logged. A
 * rejected credential, and another number of differences from nova-compute's tree, are logged
 * nevertheless. A change to pending or standalone is not logged. A change to synced is logged only
 * after an outage, or if the state was stale since it was last synced. Unread parts of the host are
 * logged when they are new. If a publication leaves the state stale, only the reason is logged, and
 * not the state. So a failure that repeats without another state in between is logged once.
 * phases.c calls the note functions; tracker-tree.c itself notes and logs the results of making a
 * tree. The status is plain data, which other modules read through tracker_view().
 *
 * Tests: tests/unit/agent/cycle/test-tracker.c tests/unit/agent/cycle/test-verdict.c */

#include "agent/cycle/tracker-status.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"
#include "formats/interface.h"
#include "report/placement/outcome.h"

#define PARTS_LENGTH 300 /* length of the list of unread parts, in bytes */

const char *sync_state_to_text(SyncState state)
{
        static const char *const names[] = {
                [SYNC_STANDALONE] = SYNC_STATE_STANDALONE,
                [SYNC_PENDING] = SYNC_STATE_PENDING,
                [SYNC_SYNCED] = SYNC_STATE_SYNCED,
                [SYNC_STALE] = SYNC_STATE_STALE,
                [SYNC_OFFLINE] = SYNC_STATE_OFFLINE,
                [SYNC_LEFT_TO_NOVA] = SYNC_STATE_LEFT_TO_NOVA,
                [SYNC_RETIRED] = SYNC_STATE_RETIRED,
        };

        return names[state];
}

const char *tracker_status_find_hindrance(const TrackerStatus *status, const Overwrites *overwrites)
{
        if (overwrites_count(overwrites) > 0)
                return "left unchanged while another writer changes this host's tree, because it can be another host's guest";
        if (status->hypervisor_error.code)
                return "left unchanged until the hypervisor lists its guests again";
        if (status->reshape_needed)
                return "left unchanged until the tree is reshaped";
        if (status->sync_state != SYNC_SYNCED && status->sync_state != SYNC_LEFT_TO_NOVA)
                return "left unchanged until Placement has the whole tree";
        return NULL;
}

/* Logs that the credential is rejected, once until another result follows. With REPORT_E_FORBIDDEN
 * claims still use Placement. Returns true if it logged; the caller then does not log the failure.
 */
static bool note_credential(TrackerStatus *status, int result, const Error *error)
{
        bool reads = result == REPORT_E_FORBIDDEN;
        bool refused = reads || result == REPORT_E_UNAUTHORIZED || result == REPORT_E_UNREADABLE;
        bool changed = refused && !status->credential_refused;

        status->credential_refused = refused;
        if (changed)
                log_event(
                        LOG_ERR, MESSAGE_CREDENTIAL_REFUSED, NULL,
                        "The credential of [placement] is refused: %s. %s", error->text,
                        reads ? "Retrying."
                              : "Claims are served from this host's own state. Retrying at growing intervals.");
        return changed;
}

/* Sets the state and its reason. Logs a change to offline or stale unless logged is true: then the
 * reason was logged. In any case logs the first synced state after a stale one. */
static void set_sync_state(TrackerStatus *status, SyncState state, const Error *error, bool logged)
{
        SyncState before = status->sync_state;

        status->sync_error = error ? *error : ERROR_NULL;
        status->sync_state = state;
        if (state == before)
                return;
        if (state == SYNC_SYNCED && status->stale_logged)
                log_event(LOG_NOTICE, MESSAGE_EQUAL_AGAIN, NULL,
                          "Placement is equal to this host again.");
        if (state == SYNC_SYNCED || state == SYNC_STALE)
                status->stale_logged = state == SYNC_STALE;
        status->sync_since_usec = clock_usec(CLOCK_REALTIME);
        if (logged)
                return;
        if (state == SYNC_OFFLINE)
                log_event(
                        LOG_WARNING, MESSAGE_PLACEMENT_LOST, NULL,
                        "Placement cannot be used (%s). Claims are served from this host's own state. Retrying.",
                        error->text);
        else if (state == SYNC_STALE)
                log_event(LOG_WARNING, MESSAGE_UPDATE_REFUSED, NULL,
                          "Placement is not equal to this host: %s", error->text);
}

void tracker_status_note_failure(TrackerStatus *status, int result, const Error *error)
{
        Error words = error ? *error : ERROR_NULL;
        SyncState state = report_outcome_is_away(result) ? SYNC_OFFLINE
                          : result == REPORT_E_CONFLICT  ? SYNC_PENDING
                                                         : SYNC_STALE;

        if (!words.code)
                error_setf(&words, result < 0 ? result : EIO, "%s",
                           result > 0 ? report_outcome_to_text(result) : strerror(-result));
        set_sync_state(status, state, &words, note_credential(status, result, &words));
}

/* Notes that Placement can be used, and logs this if the state is offline. */
static void note_back(TrackerStatus *status)
{
        status->credential_refused = false;
        if (status->sync_state == SYNC_OFFLINE)
                log_event(LOG_NOTICE, MESSAGE_PLACEMENT_BACK, NULL, "Placement can be used again.");
}

void tracker_status_copy_unread(const TrackerStatus *status, Error *error)
{
        if (status->device_error.code)
                *error = status->device_error;
        else if (status->part_error.code)
                *error = status->part_error;
}

Error tracker_status_why_unequal(const TrackerStatus *status, bool runs)
{
        Error error = ERROR_NULL;

        tracker_status_copy_unread(status, &error);
        if (status->reshape_needed)
                error_setf(
                        &error, EAGAIN, "The tree must change shape under running guests. %s",
                        runs ? "Run \"computectl reshape\", or restart the agent. The old shape is kept"
                             : "The next start of the agent moves their allocations");
        else if (status->reshape_left)
                error_setf(
                        &error, EAGAIN,
                        "The tree must change shape under running guests. \"computectl reshape --dry-run\" shows the moves");
        return error;
}

void tracker_status_note_left(TrackerStatus *status, uint64_t n_requests)
{
        const Error why = tracker_status_why_unequal(status, true);
        uint64_t n_differences = n_requests + status->reshape_left;

        note_back(status);
        if (status->sync_state != SYNC_LEFT_TO_NOVA || status->n_differences != n_differences)
                log_event(LOG_INFO, MESSAGE_LEFT_TO_NOVA, NULL,
                          "nova-compute owns the tree in Placement. %" PRIu64
                          " request%s would make it equal to this host.",
                          n_differences, text_plural(n_differences));
        if (n_differences == 0)
                status->last_sync_usec = clock_usec(CLOCK_REALTIME);
        status->n_differences = n_differences;
        set_sync_state(status, SYNC_LEFT_TO_NOVA, &why, true);
}

void tracker_status_note_access(TrackerStatus *status, ReshaperAccess access)
{
        if (access == RESHAPER_FORBIDDEN && status->reshape_access != RESHAPER_FORBIDDEN)
                log_event(
                        LOG_WARNING, MESSAGE_RESHAPE_FORBIDDEN, NULL,
                        "The user of [placement] cannot reshape, because it lacks the role service. Everything else is published. A change of shape under running guests will fail.");
        status->reshape_access = access;
}

void tracker_status_note_apart(TrackerStatus *status, SyncState state)
{
        if (state == SYNC_RETIRED && status->sync_state != SYNC_RETIRED)
                log_notice(
                        "This host is retired. Nothing is reported to Placement until \"computectl retire --undo\".");
        if (state == SYNC_RETIRED)
                status->tree_published = true;
        set_sync_state(status, state, NULL, true);
}

const char *tracker_status_why_apart(const TrackerStatus *status)
{
        return status->sync_state == SYNC_LEFT_TO_NOVA
                       ? "nova-compute owns the tree in Placement ([agent] nova)"
               : status->sync_state == SYNC_RETIRED ? "the host is retired"
                                                    : "there is no [placement] section";
}

void tracker_status_note_synced(TrackerStatus *status)
{
        const Error why = tracker_status_why_unequal(status, true);

        status->tree_published = status->cycle_published = true;
        note_back(status);
        if (!why.code)
                status->last_sync_usec = clock_usec(CLOCK_REALTIME);
        set_sync_state(status, why.code ? SYNC_STALE : SYNC_SYNCED, &why, true);
}

/* Joins the problems up to PARTS_LENGTH bytes, but at least one, and adds the number of the omitted
 * ones. */
static void name_parts(const StringSet *problems, Error *ret)
{
        size_t n = 0;

        *ret = ERROR_NULL;
        while (n < problems->n_items &&
               (n == 0 || strlen(ret->text) + strlen(problems->items[n]) < PARTS_LENGTH)) {
                Error one;

                error_setf(&one, EBADMSG, "%.*s", PARTS_LENGTH, problems->items[n++]);
                error_join(ret, &one);
        }
        if (n < problems->n_items)
                error_setf(ret, EBADMSG, "%s (and %zu more)", ret->text, problems->n_items - n);
}

/* Logs each new problem of the snapshot, and notes all of them. */
static void note_parts(TrackerStatus *status, const Uuid *root, const StringSet *problems,
                       StringSet *logged)
{
        for (size_t i = 0; i < problems->n_items; i++)
                if (!string_set_contains(logged, problems->items[i]))
                        log_event(LOG_WARNING, MESSAGE_DEVICES_REFUSED,
                                  LOG_FIELDS(LOG_FIELD_PROVIDER, root->text),
                                  "A part of this host could not be read: %s", problems->items[i]);
        name_parts(problems, &status->part_error);
        (void)string_set_copy(logged, problems);
}

/* Notes the result of a poll. error NULL: it succeeded. known: there is an earlier snapshot. */
static void note_hypervisor(TrackerStatus *status, const Error *error, bool known)
{
        bool failed_before = status->hypervisor_error.code;

        if (error && !failed_before)
                log_event(LOG_WARNING, MESSAGE_HYPERVISOR_LOST, NULL, "%s. %s. Retrying.",
                          error->text,
                          known ? "The last known state of the host stays in use"
                                : "This host has not been polled yet");
        if (!error && failed_before)
                log_event(LOG_NOTICE, MESSAGE_HYPERVISOR_BACK, NULL,
                          "The hypervisor can be polled again.");
        status->hypervisor_error = error ? *error : ERROR_NULL;
}

void tracker_status_note_poll(TrackerStatus *status, const Uuid *root, const Snapshot *snapshot,
                              const Error *error, StringSet *logged)
{
        if (snapshot) {
                status->last_poll_usec = snapshot->taken_realtime_usec;
                note_parts(status, root, &snapshot->problems, logged);
        }
        note_hypervisor(status, error->code ? error : NULL, snapshot);
}
