/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A cycle is a walk through the phases below, driven by callbacks:
 *
 *   IDLE ── begin_cycle() ──▶ POLLING ── snapshot, or a failed poll ──▶ REFRESHING ── mirror ──▶
 * PUBLISHING ──▶ IDLE
 *
 * A poll that fails does not end the cycle: the last good snapshot is kept and Placement is still
 * held equal to it. A poll that hangs does not hold the cycle for ever: after POLL_PATIENCE_USEC it
 * goes on without it. A conflict (somebody else wrote a provider meanwhile) goes back to REFRESHING
 * at once, MAX_CONFLICTS times; each time the driver edits a fresh copy of what Placement holds, so
 * nothing stale is ever written.
 *
 * Invariants: a request for a cycle that comes while one runs is served by the next one, never by
 * the running one; every waiter is told exactly once; the retry timer is armed only in IDLE. */

#include "agent/tracker.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>

#include "agent/bus-interface.h"
#include "base/jitter.h"
#include "base/log.h"
#include "base/message-ids.h"

#define MAX_CONFLICTS        8
#define POLL_PATIENCE_USEC   (30 * USEC_PER_SEC)
#define HUNG_PATIENCE_USEC   (1 * USEC_PER_SEC)    /* while a poll is known to hang */
#define CHANGE_SETTLE_USEC   (200 * USEC_PER_MSEC) /* changes come in flocks: one poll for all */
#define SETTLE_POLL_USEC     USEC_PER_SEC
#define RETRY_FIRST_USEC     (2 * USEC_PER_SEC)
#define RETRY_MAX_USEC       (60 * USEC_PER_SEC)
#define RETRY_AFTER_MAX_USEC (600 * USEC_PER_SEC) /* what a server may ask for */
#define TIMER_ACCURACY       (250 * USEC_PER_MSEC)

typedef enum TrackerPhase {
        PHASE_IDLE,
        PHASE_POLLING,
        PHASE_REFRESHING,
        PHASE_PUBLISHING,
} TrackerPhase;

typedef struct Waiter {
        TrackerDone done;
        void *userdata;
        bool current; /* belongs to the running cycle, not to the next */
} Waiter;

struct Tracker {
        TrackerConfig config;
        sd_event *event;
        sd_event_source *driver_source;
        sd_event_source *cycle_timer;    /* when the next cycle begins */
        sd_event_source *patience_timer; /* when a hanging poll is given up on */
        Reporter *reporter; /* made with the first snapshot, which knows the name of the root */
        char *nodename;
        Snapshot *snapshot;
        TreeMaker maker;
        ReshapeControl *reshape;
        ProviderTree *tree;
        TrackerPhase phase;
        bool refused;          /* who we are is refused, and that was said */
        bool settled;          /* nothing more is waited for before the first publish */
        uint64_t started_usec; /* CLOCK_BOOTTIME */
        uint64_t start_delay_usec;
        bool again; /* a cycle was asked for while one runs */
        unsigned n_conflicts;
        uint64_t writes_before;
        uint64_t retry_usec; /* the last pause after a failure, 0 after a success */
        Error cycle_error;
        Waiter *waiters;
        size_t n_waiters, n_waiters_allocated;
        TrackerStatus status;
};

static const ReporterStatistics no_statistics;

const char *sync_state_to_text(SyncState state)
{
        static const char *const names[] = {
                [SYNC_STANDALONE] = SYNC_STATE_STANDALONE, [SYNC_PENDING] = SYNC_STATE_PENDING,
                [SYNC_SYNCED] = SYNC_STATE_SYNCED,         [SYNC_STALE] = SYNC_STATE_STALE,
                [SYNC_OFFLINE] = SYNC_STATE_OFFLINE,
        };

        return names[state];
}

static uint64_t now_realtime_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static uint64_t random_bits(void)
{
        uint64_t random = 0;

        (void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
        return random;
}

static void begin_cycle(Tracker *tracker);
static void begin_refresh(Tracker *tracker);

static void notify_changed(Tracker *tracker)
{
        if (tracker->config.changed)
                tracker->config.changed(tracker, tracker->config.userdata);
}

/* The end of a cycle: state, waiters, timer. */

static bool has_failed(const Tracker *tracker)
{
        return tracker->status.hypervisor_error.code ||
               tracker->status.sync_state == SYNC_OFFLINE ||
               tracker->status.sync_state == SYNC_PENDING;
}

static uint64_t next_retry_usec(Tracker *tracker)
{
        uint64_t max = MIN(MAX(tracker->config.interval_usec, RETRY_FIRST_USEC), RETRY_MAX_USEC);

        tracker->retry_usec =
                jitter_next(tracker->retry_usec, RETRY_FIRST_USEC, max, random_bits());
        return tracker->retry_usec;
}

/* What the service asked for, and up to half of it more: all clients were told the same. */
static uint64_t get_retry_after_usec(const Tracker *tracker)
{
        uint64_t asked = tracker_get_statistics(tracker)->retry_after_usec;

        asked = MIN(asked, RETRY_AFTER_MAX_USEC);
        return jitter_between(asked, asked + asked / 2, random_bits());
}

static uint64_t next_pause_usec(Tracker *tracker)
{
        uint64_t interval = tracker->config.interval_usec;

        if (has_failed(tracker))
                return MAX(next_retry_usec(tracker), get_retry_after_usec(tracker));
        tracker->retry_usec = 0;
        if (interval == UINT64_MAX)
                return UINT64_MAX;
        return jitter_between(interval - interval / 10, interval + interval / 10, random_bits());
}

static void arm_cycle_timer(Tracker *tracker, uint64_t pause_usec)
{
        if (pause_usec == UINT64_MAX) {
                (void)sd_event_source_set_enabled(tracker->cycle_timer, SD_EVENT_OFF);
                return;
        }
        (void)sd_event_source_set_time_relative(tracker->cycle_timer, pause_usec);
        (void)sd_event_source_set_enabled(tracker->cycle_timer, SD_EVENT_ONESHOT);
}

static void tell_waiters(Tracker *tracker)
{
        /* A waiter may add or cancel others: start over after each. */
        for (size_t i = 0; i < tracker->n_waiters;) {
                Waiter waiter = tracker->waiters[i];

                if (!waiter.current) {
                        i++;
                        continue;
                }
                tracker->n_waiters--;
                memmove(tracker->waiters + i, tracker->waiters + i + 1,
                        (tracker->n_waiters - i) * sizeof(Waiter));
                waiter.done(tracker, &tracker->cycle_error, waiter.userdata);
                i = 0;
        }
}

static void end_cycle(Tracker *tracker)
{
        tracker->phase = PHASE_IDLE;
        /* Not before Placement told its uuids, or did not answer: claims name providers by them. */
        if (!tracker->config.dry_run)
                claim_service_reconcile(tracker->config.claims);
        tracker->status.n_cycles++;
        if (!tracker->cycle_error.code && tracker->status.hypervisor_error.code)
                tracker->cycle_error = tracker->status.hypervisor_error;
        arm_cycle_timer(tracker, tracker->again ? 0 : next_pause_usec(tracker));
        tracker->again = false;
        notify_changed(tracker);
        tell_waiters(tracker);
}

/* Logs once that who we are is refused, whatever the state was before. True when it did: nothing
 * more need be said. */
static bool note_credential(Tracker *tracker, int result, const Error *error)
{
        bool refused = result == REPORT_E_UNAUTHORIZED || result == REPORT_E_FORBIDDEN;
        bool news = refused && !tracker->refused;

        tracker->refused = refused;
        if (news)
                log_event(LOG_ERR, MESSAGE_CREDENTIAL_REFUSED, NULL,
                          "The credential of [placement] is refused: %s. Claims are served from "
                          "this host's own state; retrying slowly.",
                          error->text);
        return news;
}

/* Logs changes of the state, not each retry. */
static void set_sync_state(Tracker *tracker, SyncState state, const Error *error)
{
        SyncState before = tracker->status.sync_state;

        tracker->status.sync_error = error ? *error : ERROR_NULL;
        if (error)
                tracker->cycle_error = *error;
        tracker->status.sync_state = state;
        if (state == before)
                return;
        tracker->status.sync_since_usec = now_realtime_usec();
        if (state == SYNC_OFFLINE)
                log_event(LOG_WARNING, MESSAGE_PLACEMENT_LOST, NULL,
                          "Placement cannot be used (%s). Claims are served from this host's own "
                          "state; "
                          "retrying.",
                          error->text);
        else if (state == SYNC_STALE)
                log_event(LOG_WARNING, MESSAGE_UPDATE_REFUSED, NULL,
                          "Placement is not equal to this host: %s", error->text);
        else if (state == SYNC_SYNCED && before == SYNC_OFFLINE)
                log_event(LOG_NOTICE, MESSAGE_PLACEMENT_BACK, NULL, "Placement can be used again.");
}

static void end_synced(Tracker *tracker)
{
        const ReporterStatistics *statistics = reporter_get_statistics(tracker->reporter);
        uint64_t n_writes = statistics->n_writes - tracker->writes_before;

        tracker->status.last_sync_usec = now_realtime_usec();
        tracker->refused = false;
        if (tracker->status.reshape_needed) {
                Error error;

                error_setf(&error, EAGAIN,
                           "The tree must change shape under running guests, which happens at a "
                           "start only; "
                           "the old shape is kept");
                set_sync_state(tracker, SYNC_STALE, &error);
        } else if (tracker->status.device_error.code) {
                set_sync_state(tracker, SYNC_STALE, &tracker->status.device_error);
        } else {
                set_sync_state(tracker, SYNC_SYNCED, NULL);
        }
        if (n_writes > 0)
                log_event(LOG_INFO, MESSAGE_PUBLISHED,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, tracker->config.root.text),
                          "Published %zu resource provider(s) of %s with %" PRIu64 " write(s).",
                          tracker->tree->n_providers, tracker->nodename, n_writes);
        end_cycle(tracker);
}

/* From snapshot and mirror to the desired tree. */

static void note_reshape(Tracker *tracker, bool needed)
{
        if (needed && !tracker->status.reshape_needed)
                log_event(LOG_WARNING, MESSAGE_RESHAPE_NEEDED,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, tracker->config.root.text),
                          "The provider tree must change shape under running guests. The old shape "
                          "is kept.");
        tracker->status.reshape_needed = needed;
}

/* Logs each reason once. */
static void note_device_error(Tracker *tracker, const Error *error)
{
        if (error->code && strcmp(error->text, tracker->status.device_error.text) != 0)
                log_event(LOG_WARNING, MESSAGE_DEVICES_REFUSED,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, tracker->config.root.text),
                          "Some devices are not told as configured: %s", error->text);
        tracker->status.device_error = *error;
}

static bool is_placement_read(const Tracker *tracker)
{
        return !tracker->config.reporter || (tracker->reporter && reporter_tree(tracker->reporter));
}

/* What Placement holds; before it answered, what this host held before the start; else nothing. */
static const ProviderTree *base_tree(const Tracker *tracker)
{
        const ProviderTree *mirror = tracker->reporter ? reporter_tree(tracker->reporter) : NULL;
        const ProviderTree *remembered;
        const Provider *root;

        if (mirror)
                return mirror;
        if (tracker->tree)
                return tracker->tree;
        remembered = claim_service_get_remembered_tree(tracker->config.claims);
        root = remembered ? provider_tree_find(remembered, &tracker->config.root) : NULL;
        return root && strcmp(root->name, tracker->nodename) == 0 ? remembered : NULL;
}

static int make_tree(Tracker *tracker, MadeTree *ret, Error *reterr)
{
        StringSet *kept = reshape_control_get_kept(tracker->reshape);
        DriverReshape reshape = { .kept = *kept };
        int r = tree_maker_make(&tracker->maker, tracker->snapshot, base_tree(tracker),
                                is_placement_read(tracker), &reshape, ret, reterr);

        driver_reshape_clear(&reshape);
        *kept = reshape.kept;
        /* the driver only knows that the class stays, not whose fault it is */
        if (r >= 0 && kept->n_items > 0 && ret->device_error.code)
                ret->device_error = *reshape_control_get_blocked(tracker->reshape);
        return r;
}

static void take_tree(Tracker *tracker, ProviderTree *tree)
{
        bool reshaped = !tracker->status.reshape_needed && is_placement_read(tracker);

        if (reshaped && !tracker->config.dry_run)
                claim_service_follow(tracker->config.claims, &tracker->maker, tracker->snapshot,
                                     tree, reshape_control_get_image(tracker->reshape));
        provider_tree_free(tracker->tree);
        tracker->tree = tree;
        claim_service_set_snapshot(tracker->config.claims, tracker->snapshot);
        claim_service_set_tree(tracker->config.claims, tree);
}

/* Makes the tree of this moment and lets the claims know. */
static int update_tree(Tracker *tracker, Error *reterr)
{
        MadeTree made = { 0 };
        int r = make_tree(tracker, &made, reterr);

        if (r < 0)
                return r;
        note_reshape(tracker, made.reshape_needed);
        note_device_error(tracker, &made.device_error);
        take_tree(tracker, made.tree);
        return 0;
}

/* Publishing. */

static SyncState state_of_outcome(int result)
{
        switch (result) {
        case REPORT_E_UNREACHABLE:
        case REPORT_E_UNAVAILABLE:
        case REPORT_E_UNAUTHORIZED:
                return SYNC_OFFLINE;
        case REPORT_E_CONFLICT:
                return SYNC_PENDING;
        default:
                return SYNC_STALE;
        }
}

/* True when the attempt starts over. */
static bool retry_conflict(Tracker *tracker, int result)
{
        if (result != REPORT_E_CONFLICT || ++tracker->n_conflicts > MAX_CONFLICTS)
                return false;
        log_debug("Somebody else changed the tree in Placement meanwhile; reading it again.");
        begin_refresh(tracker);
        return true;
}

static void end_failed(Tracker *tracker, int result, const Error *error)
{
        Error words = error ? *error : ERROR_NULL;

        if (!words.code)
                error_setf(&words, result < 0 ? result : EIO, "%s",
                           result > 0 ? report_outcome_to_text(result) : strerror(-result));
        if (note_credential(tracker, result, &words))
                tracker->status.sync_state = state_of_outcome(result);
        set_sync_state(tracker, state_of_outcome(result), &words);
        end_cycle(tracker);
}

static void on_published(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        if (retry_conflict(tracker, result))
                return;
        if (result != 0)
                end_failed(tracker, result, error);
        else
                end_synced(tracker);
}

static void on_prepared(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        if (retry_conflict(tracker, result))
                return;
        if (result != 0)
                end_failed(tracker, result, error);
        else
                end_cycle(tracker);
}

static void publish_tree(Tracker *tracker)
{
        int r;

        if (!tracker->config.dry_run)
                claim_service_reconcile(tracker->config.claims);
        tracker->phase = PHASE_PUBLISHING;
        if (tracker->config.dry_run)
                r = reporter_prepare(tracker->reporter, tracker->tree, on_prepared, tracker);
        else
                r = reporter_publish(tracker->reporter, tracker->tree, NULL, on_published, tracker);
        if (r < 0)
                end_failed(tracker, r, NULL);
}

/* With a tree: Placement holds it. Else the old shape is kept, and the rest of it is published. */
static void on_reshaped(int result, ProviderTree *tree, const Error *device_error,
                        const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        tracker->status.reshape_error = *reshape_control_get_error(tracker->reshape);
        if (tracker->status.reshape_error.code)
                tracker->cycle_error = tracker->status.reshape_error;
        if (tree) {
                note_reshape(tracker, false);
                note_device_error(tracker, device_error);
                take_tree(tracker, tree);
                begin_refresh(tracker); /* limits that were left wide for the move */
        } else if (state_of_outcome(result) == SYNC_OFFLINE) {
                end_failed(tracker, result, error);
        } else {
                begin_refresh(tracker);
        }
}

static void begin_reshape(Tracker *tracker)
{
        Error error = ERROR_NULL;
        int r;

        tracker->phase = PHASE_PUBLISHING;
        r = reshape_control_begin(tracker->reshape, &tracker->maker, tracker->reporter,
                                  tracker->snapshot, on_reshaped, tracker, &error);
        if (r < 0)
                end_failed(tracker, r, &error);
}

static void on_refreshed(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;
        Error words = ERROR_NULL;
        int r;

        if (retry_conflict(tracker, result))
                return;
        if (result != 0) {
                end_failed(tracker, result, error);
                return;
        }
        r = update_tree(tracker, &words);
        if (r < 0) {
                end_failed(tracker, r, &words);
                return;
        }
        if (!tracker->config.dry_run &&
            reshape_control_is_due(tracker->reshape, tracker->status.reshape_needed,
                                   reporter_tree(reporter)))
                begin_reshape(tracker);
        else
                publish_tree(tracker);
}

static void begin_refresh(Tracker *tracker)
{
        int r;

        tracker->phase = PHASE_REFRESHING;
        r = reporter_refresh(tracker->reporter, on_refreshed, tracker);
        if (r < 0)
                end_failed(tracker, r, NULL);
}

static int ensure_reporter(Tracker *tracker, Error *reterr)
{
        if (tracker->reporter)
                return 0;
        return reporter_new(&tracker->reporter, tracker->event, tracker->config.reporter,
                            &tracker->config.root, tracker->nodename, reterr);
}

/* Before the first publish: devices that were there before a reboot may be on their way. */
static bool is_settling(Tracker *tracker)
{
        uint64_t now = 0;

        if (tracker->settled)
                return false;
        (void)sd_event_now(tracker->event, CLOCK_BOOTTIME, &now);
        tracker->settled = !tracker->config.device_watch ||
                           device_watch_count_missing(tracker->config.device_watch) == 0 ||
                           now - tracker->started_usec >= tracker->config.device_settle_usec;
        return !tracker->settled;
}

/* How long Placement is left alone yet after the start. Whoever asked for a cycle does not wait. */
static uint64_t get_early_usec(const Tracker *tracker)
{
        uint64_t now = 0, due = tracker->started_usec + tracker->start_delay_usec;

        (void)sd_event_now(tracker->event, CLOCK_BOOTTIME, &now);
        return tracker->n_waiters > 0 || now >= due ? 0 : due - now;
}

/* Without a Placement only the claims have to follow. */
static int reshape_alone(Tracker *tracker, Error *reterr)
{
        ProviderTree *tree;
        int r;

        if (!reshape_control_is_due(tracker->reshape, tracker->status.reshape_needed,
                                    tracker->tree))
                return 0;
        r = reshape_control_alone(tracker->reshape, &tracker->maker, tracker->tree,
                                  tracker->snapshot, &tree, reterr);
        if (r < 0)
                return r;
        note_reshape(tracker, false);
        take_tree(tracker, tree);
        return 0;
}

/* The poll is over, well or not: hold claims and Placement equal to the last good snapshot. */
static void reconcile(Tracker *tracker)
{
        Error error = ERROR_NULL;
        uint64_t early_usec;
        int r;

        (void)sd_event_source_set_enabled(tracker->patience_timer, SD_EVENT_OFF);
        claim_service_tend(tracker->config.claims);
        if (!tracker->snapshot) {
                end_cycle(tracker);
                return;
        }
        r = update_tree(tracker, &error);
        if (r >= 0 && !tracker->config.reporter)
                r = reshape_alone(tracker, &error);
        if (r >= 0 && !tracker->config.reporter) {
                end_cycle(tracker);
                return;
        }
        if (r >= 0 && is_settling(tracker)) {
                end_cycle(tracker);
                arm_cycle_timer(tracker, SETTLE_POLL_USEC);
                return;
        }
        early_usec = get_early_usec(tracker);
        if (r >= 0 && early_usec > 0) {
                end_cycle(tracker);
                arm_cycle_timer(tracker, early_usec);
                return;
        }
        if (r >= 0)
                r = ensure_reporter(tracker, &error);
        if (r < 0) {
                end_failed(tracker, r, &error);
                return;
        }
        tracker->n_conflicts = 0;
        tracker->writes_before = reporter_get_statistics(tracker->reporter)->n_writes;
        begin_refresh(tracker);
}

/* What the driver tells. */

static void set_hypervisor_error(Tracker *tracker, const Error *error)
{
        bool failed_before = tracker->status.hypervisor_error.code;

        if (error && !failed_before)
                log_event(LOG_WARNING, MESSAGE_HYPERVISOR_LOST, NULL, "%s. %s; retrying.",
                          error->text,
                          tracker->snapshot ? "The host is served as it was last seen"
                                            : "Nothing is known of this host yet");
        if (!error && failed_before)
                log_event(LOG_NOTICE, MESSAGE_HYPERVISOR_BACK, NULL,
                          "The hypervisor can be polled again.");
        tracker->status.hypervisor_error = error ? *error : ERROR_NULL;
        notify_changed(tracker);
}

static void take_snapshot(Tracker *tracker, Snapshot *snapshot)
{
        if (!tracker->nodename) {
                tracker->nodename = strdup(snapshot->nodename);
                claim_service_set_node(tracker->config.claims, snapshot->nodename);
        }
        tracker->maker.nodename = tracker->nodename;
        if (!tracker->nodename || strcmp(tracker->nodename, snapshot->nodename) != 0) {
                Error error;

                error_setf(&error, EEXIST,
                           "The host's name changed from \"%.60s\" to \"%.60s\": give it the old "
                           "name back, or "
                           "restart the agent",
                           tracker->nodename ? tracker->nodename : "?", snapshot->nodename);
                set_hypervisor_error(tracker, &error);
                snapshot_unref(snapshot);
                return;
        }
        snapshot_unref(tracker->snapshot);
        tracker->snapshot = snapshot;
        tracker->status.last_poll_usec = snapshot->taken_realtime_usec;
        set_hypervisor_error(tracker, NULL);
}

static void handle_driver_event(Tracker *tracker, DriverEvent *event)
{
        bool poll_ended = false;

        switch (event->type) {
        case DRIVER_EVENT_SNAPSHOT:
                take_snapshot(tracker, TAKE_PTR(event->snapshot));
                poll_ended = true;
                break;
        case DRIVER_EVENT_POLL_FAILED:
                set_hypervisor_error(tracker, &event->error);
                poll_ended = true;
                break;
        case DRIVER_EVENT_LOST:
                set_hypervisor_error(tracker, &event->error);
                if (tracker->phase == PHASE_IDLE)
                        arm_cycle_timer(tracker, next_retry_usec(tracker));
                break;
        case DRIVER_EVENT_CHANGED:
                if (tracker->phase == PHASE_IDLE)
                        arm_cycle_timer(tracker, CHANGE_SETTLE_USEC);
                else
                        tracker->again = true;
                break;
        default:
                break;
        }
        if (poll_ended && tracker->phase == PHASE_POLLING)
                reconcile(tracker);
}

static int on_driver_event(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        Tracker *tracker = userdata;

        for (;;) {
                DriverEvent event = { 0 };

                if (driver_take(tracker->config.driver, &event) < 0 ||
                    event.type == DRIVER_EVENT_NONE)
                        return 0;
                handle_driver_event(tracker, &event);
        }
}

static int on_patience_ended(sd_event_source *source, uint64_t usec, void *userdata)
{
        Tracker *tracker = userdata;
        Error error;

        if (tracker->phase != PHASE_POLLING)
                return 0;
        error_setf(&error, ETIMEDOUT, "The hypervisor has not answered for %" PRIu64 " s",
                   tracker->config.patience_usec / USEC_PER_SEC);
        set_hypervisor_error(tracker, &error);
        reconcile(tracker);
        return 0;
}

static void arm_patience(Tracker *tracker)
{
        uint64_t patience_usec = tracker->config.patience_usec;

        if (tracker->status.hypervisor_error.code == ETIMEDOUT)
                patience_usec = MIN(patience_usec, HUNG_PATIENCE_USEC);
        (void)sd_event_source_set_time_relative(tracker->patience_timer, patience_usec);
        (void)sd_event_source_set_enabled(tracker->patience_timer, SD_EVENT_ONESHOT);
}

static void begin_cycle(Tracker *tracker)
{
        Error error = ERROR_NULL;
        int r;

        (void)sd_event_source_set_enabled(tracker->cycle_timer, SD_EVENT_OFF);
        tracker->phase = PHASE_POLLING;
        tracker->cycle_error = ERROR_NULL;
        for (size_t i = 0; i < tracker->n_waiters; i++)
                tracker->waiters[i].current = true;
        arm_patience(tracker);
        r = driver_poll(tracker->config.driver);
        if (r < 0) {
                error_setf(&error, r, "The hypervisor cannot be asked: %s", strerror(-r));
                set_hypervisor_error(tracker, &error);
                reconcile(tracker);
        }
}

static int on_cycle_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        Tracker *tracker = userdata;

        if (tracker->phase == PHASE_IDLE)
                begin_cycle(tracker);
        return 0;
}

/* Life. */

static int add_sources(Tracker *tracker)
{
        int r;

        r = sd_event_add_io(tracker->event, &tracker->driver_source,
                            driver_get_fd(tracker->config.driver), EPOLLIN, on_driver_event,
                            tracker);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(tracker->event, &tracker->cycle_timer, CLOCK_BOOTTIME, 0,
                                       TIMER_ACCURACY, on_cycle_timer, tracker);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(tracker->event, &tracker->patience_timer, CLOCK_MONOTONIC,
                                       POLL_PATIENCE_USEC, TIMER_ACCURACY, on_patience_ended,
                                       tracker);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(tracker->patience_timer, SD_EVENT_OFF);
}

int tracker_new(Tracker **ret, sd_event *event, const TrackerConfig *config, Error *reterr)
{
        _cleanup_(tracker_freep) Tracker *tracker = calloc(1, sizeof(Tracker));
        int r;

        if (!tracker)
                return error_oom(reterr);
        tracker->config = *config;
        if (tracker->config.patience_usec == 0)
                tracker->config.patience_usec = POLL_PATIENCE_USEC;
        tracker->event = sd_event_ref(event);
        tracker->maker = (TreeMaker){
                .driver = config->driver,
                .device_watch = config->device_watch,
                .provider_config = config->provider_config,
                .root = config->root,
        };
        if (reshape_control_new(&tracker->reshape, event,
                                config->dry_run ? NULL : config->state_path,
                                config->reshape_patience_usec, config->starts, config->claims) < 0)
                return error_oom(reterr);
        (void)sd_event_now(event, CLOCK_BOOTTIME, &tracker->started_usec);
        tracker->start_delay_usec = jitter_between(0, config->start_jitter_usec, random_bits());
        tracker->status.sync_state = config->reporter ? SYNC_PENDING : SYNC_STANDALONE;
        tracker->status.sync_since_usec = now_realtime_usec();
        r = add_sources(tracker);
        if (r < 0)
                return error_setf(reterr, r, "Cannot watch the driver: %s", strerror(-r));
        *ret = TAKE_PTR(tracker);
        return 0;
}

Tracker *tracker_free(Tracker *tracker)
{
        if (!tracker)
                return NULL;
        sd_event_source_disable_unref(tracker->driver_source);
        sd_event_source_disable_unref(tracker->cycle_timer);
        sd_event_source_disable_unref(tracker->patience_timer);
        reshape_control_free(tracker->reshape);
        reporter_free(tracker->reporter);
        snapshot_unref(tracker->snapshot);
        provider_tree_free(tracker->tree);
        free(tracker->nodename);
        free(tracker->waiters);
        sd_event_unref(tracker->event);
        free(tracker);
        return NULL;
}

int tracker_reshape(Tracker *tracker, ReshapeKind kind, TrackerDone done, void *userdata)
{
        int r = tracker_sync(tracker, done, userdata);

        if (r >= 0)
                reshape_control_ask(tracker->reshape, kind);
        return r;
}

const json_t *tracker_get_reshape(const Tracker *tracker)
{
        return reshape_control_get_document(tracker->reshape);
}

int tracker_sync(Tracker *tracker, TrackerDone done, void *userdata)
{
        if (done) {
                if (array_grow(&tracker->waiters, sizeof(Waiter), tracker->n_waiters,
                               &tracker->n_waiters_allocated) < 0)
                        return -ENOMEM;
                tracker->waiters[tracker->n_waiters++] =
                        (Waiter){ .done = done, .userdata = userdata };
        }
        if (tracker->phase == PHASE_IDLE)
                arm_cycle_timer(tracker, 0);
        else
                tracker->again = true;
        return 0;
}

void tracker_dismiss(Tracker *tracker, const char *why)
{
        error_setf(&tracker->cycle_error, ECANCELED, "%s", why);
        for (size_t i = 0; i < tracker->n_waiters; i++)
                tracker->waiters[i].current = true;
        tell_waiters(tracker);
}

void tracker_sync_cancel(Tracker *tracker, void *userdata)
{
        size_t kept = 0;

        for (size_t i = 0; i < tracker->n_waiters; i++)
                if (tracker->waiters[i].userdata != userdata)
                        tracker->waiters[kept++] = tracker->waiters[i];
        tracker->n_waiters = kept;
}

const TrackerStatus *tracker_get_status(const Tracker *tracker)
{
        return &tracker->status;
}

const ReporterStatistics *tracker_get_statistics(const Tracker *tracker)
{
        return tracker->reporter ? reporter_get_statistics(tracker->reporter) : &no_statistics;
}

const ProviderTree *tracker_get_tree(const Tracker *tracker)
{
        return tracker->tree;
}

const Snapshot *tracker_get_snapshot(const Tracker *tracker)
{
        return tracker->snapshot;
}

int tracker_plan(Tracker *tracker, Plan **ret, Error *reterr)
{
        MadeTree made = { 0 };
        int r;

        if (!tracker->config.reporter)
                return error_setf(reterr, ENODATA,
                                  "There is no [placement] section: nothing is ever sent");
        if (!tracker->reporter || !reporter_tree(tracker->reporter))
                return error_setf(reterr, ENODATA, "Placement was not read yet%s%s",
                                  tracker->status.sync_error.code ? ": " : "",
                                  tracker->status.sync_error.text);
        if (tracker->status.sync_state == SYNC_OFFLINE)
                return error_setf(
                        reterr, ENODATA,
                        "Placement cannot be used (%s), so what it holds now is not known",
                        tracker->status.sync_error.text);
        r = make_tree(tracker, &made, reterr);
        if (r < 0)
                return r;
        r = reporter_plan(tracker->reporter, made.tree, NULL, ret, reterr);
        provider_tree_free(made.tree);
        return r;
}
