/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A cycle goes through these phases, driven by callbacks. AUDITING runs only when an audit is due.
 *
 *   IDLE ──▶ POLLING ──▶ REFRESHING (the mirror) ──▶ PUBLISHING ──▶ AUDITING ──▶ IDLE
 *
 * A poll that fails or hangs does not end the cycle: the last good snapshot is used. After a
 * conflict (another writer changed a provider) the cycle returns to REFRESHING, at most
 * MAX_CONFLICTS times, and the driver edits a fresh copy, so no stale value is written.
 *
 * Where nova-compute owns the tree ([agent] nova), the cycle plans and counts the requests, and
 * sends only those that the mode permits. Claims use the tree of Placement.
 *
 * Invariants: a cycle that is requested while another one runs begins after it. Each waiter is
 * called exactly once. The retry timer is armed only in IDLE. */

#include "agent/cycle/tracker-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/tree/nova-tree.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"

#define MAX_CONFLICTS 8
/* One poll serves a burst of changes: after a quiet time, or at the latest after the maximum. */
#define CHANGE_SETTLE_USEC     (200 * USEC_PER_MSEC)
#define CHANGE_SETTLE_MAX_USEC (2 * USEC_PER_SEC)
#define SETTLE_POLL_USEC       USEC_PER_SEC
#define TIMER_ACCURACY         (250 * USEC_PER_MSEC)
#define BREATH_USEC            USEC_PER_MSEC

static void begin_refresh(Tracker *tracker);

static void notify_changed(Tracker *tracker)
{
        if (tracker->config.changed)
                tracker->config.changed(tracker, tracker->config.userdata);
}

/* The end of a cycle: state, waiters, timer. */

static uint64_t now_usec(const Tracker *tracker)
{
        uint64_t now = 0;

        (void)sd_event_now(tracker->event, CLOCK_BOOTTIME, &now);
        return now;
}

static bool was_polled(const Tracker *tracker)
{
        return tracker->status.hypervisor_error.code == 0;
}

static uint64_t next_pause_usec(Tracker *tracker)
{
        uint64_t now = now_usec(tracker);

        if (tracker->spoke)
                cycle_pace_note_placement(
                        &tracker->pace, tracker_status_has_failed(&tracker->status),
                        tracker->reporter
                                ? reporter_get_statistics(tracker->reporter)->retry_after_usec
                                : 0,
                        now);
        return cycle_pace_next_usec(&tracker->pace, was_polled(tracker), now);
}

static void arm_cycle_timer(Tracker *tracker, uint64_t pause_usec)
{
        if (pause_usec == UINT64_MAX) {
                (void)sd_event_source_set_enabled(tracker->cycle_timer, SD_EVENT_OFF);
                return;
        }
        /* Who asks for one at once waits for it. */
        (void)sd_event_source_set_time_accuracy(tracker->cycle_timer,
                                                pause_usec == 0 ? 1 : TIMER_ACCURACY);
        (void)sd_event_source_set_time_relative(tracker->cycle_timer, pause_usec);
        (void)sd_event_source_set_enabled(tracker->cycle_timer, SD_EVENT_ONESHOT);
}

/* Calls that came meanwhile are read and served before. */
static void go_on_soon(Tracker *tracker, TrackerPhase phase)
{
        tracker->phase = phase;
        (void)sd_event_source_set_time_relative(tracker->end, BREATH_USEC);
        (void)sd_event_source_set_enabled(tracker->end, SD_EVENT_ONESHOT);
}

/* Claims and guests are compared, and all notified, in turns of their own: with very many claims
 * each takes a while. */
static void end_cycle(Tracker *tracker)
{
        go_on_soon(tracker, PHASE_COMPARING);
}

static void compare_claims(Tracker *tracker)
{
        /* Not before Placement gave its uuids, or did not answer: claims name providers by them. */
        if (!tracker->config.dry_run)
                claim_service_reconcile(tracker->config.claims,
                                        tracker->config.reporter ? RECONCILE_AWAY : RECONCILE_ALONE,
                                        NULL);
        go_on_soon(tracker, PHASE_ENDING);
}

static void notify_end(Tracker *tracker)
{
        /* What is withheld is given back in time, also where nothing else begins a cycle. */
        uint64_t pause_usec = MIN(next_pause_usec(tracker), tracker->pause_max_usec);
        uint64_t due_in_usec = tracker->maker.device_watch
                                       ? device_watch_due_in_usec(tracker->maker.device_watch)
                                       : UINT64_MAX;

        tracker->phase = PHASE_IDLE;
        tracker->status.n_cycles++;
        if (!tracker->cycle_error.code && tracker->status.hypervisor_error.code)
                tracker->cycle_error = tracker->status.hypervisor_error;
        arm_cycle_timer(tracker, tracker->again ? 0 : MIN(pause_usec, due_in_usec));
        tracker->again = false;
        notify_changed(tracker);
        cycle_waiters_notify(&tracker->waiters, tracker, &tracker->cycle_error,
                             tracker->status.settling.code != 0);
}

static int on_end(sd_event_source *source, uint64_t usec, void *userdata)
{
        Tracker *tracker = userdata;

        if (tracker->phase == PHASE_COMPARING)
                compare_claims(tracker);
        else
                notify_end(tracker);
        return 0;
}

static void keep_sync_error(Tracker *tracker)
{
        if (tracker->status.sync_error.code)
                tracker->cycle_error = tracker->status.sync_error;
}

static void on_audited(void *userdata)
{
        end_cycle(userdata);
}

/* Placement was read, and written as far as that went: who holds what of it can be looked at. */
static void end_with_audit(Tracker *tracker)
{
        Error error = ERROR_NULL;

        if (tracker->config.dry_run || !auditor_is_due(tracker->auditor)) {
                end_cycle(tracker);
                return;
        }
        tracker->phase = PHASE_AUDITING;
        if (auditor_begin(tracker->auditor, tracker->reporter,
                          tracker_status_find_hindrance(&tracker->status, &tracker->contest),
                          on_audited, tracker, &error) >= 0)
                return;
        auditor_give_up(tracker->auditor, &error);
        end_cycle(tracker);
}

static void end_synced(Tracker *tracker)
{
        const ReporterStatistics *statistics = reporter_get_statistics(tracker->reporter);
        uint64_t n_writes = statistics->n_writes - tracker->writes_before;
        const char *changes = statistics->changes;

        contest_leave(&tracker->contest, reporter_tree(tracker->reporter));
        tracker_status_note_synced(&tracker->status);
        claim_service_note_published(tracker->config.claims);
        keep_sync_error(tracker);
        if (n_writes > 0)
                log_event(LOG_INFO, MESSAGE_PUBLISHED,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, tracker->maker.root.text),
                          "Published %zu resource provider%s of %s with %" PRIu64 " write%s%s%s.",
                          tracker->tree->n_providers, text_plural(tracker->tree->n_providers),
                          tracker->maker.nodename, n_writes, text_plural(n_writes),
                          changes ? ": " : "", changes ? changes : "");
        end_with_audit(tracker);
}

/* Publishing. */

/* True when the attempt starts over. An inventory that was allocated since its holders were read is
 * retained by the next attempt; one that is refused once more is left to the next cycle. */
static bool retry_conflict(Tracker *tracker, int result)
{
        bool in_use = result == REPORT_E_IN_USE && !tracker->in_use_again;

        tracker->in_use_again |= in_use;
        if ((result != REPORT_E_CONFLICT && !in_use) || ++tracker->n_conflicts > MAX_CONFLICTS)
                return false;
        log_debug("Another writer changed the tree in Placement meanwhile; reading it again.");
        begin_refresh(tracker);
        return true;
}

static void end_failed(Tracker *tracker, int result, const Error *error)
{
        tracker_status_note_failure(&tracker->status, result, error);
        keep_sync_error(tracker);
        if (tracker->status.sync_state == SYNC_STALE && tracker->reporter) {
                end_with_audit(tracker);
                return;
        }
        auditor_give_up(tracker->auditor, &tracker->status.sync_error);
        end_cycle(tracker);
}

/* False when the attempt starts over, or the cycle ended without it. */
static bool has_ended(Tracker *tracker, int result, const Error *error)
{
        if (retry_conflict(tracker, result))
                return false;
        if (result != 0)
                end_failed(tracker, result, error);
        return result == 0;
}

static void on_published(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        tracker_status_note_access(&tracker->status, reporter_get_reshaper_access(reporter));
        if (has_ended(tracker, result, error))
                end_synced(tracker);
}

static void on_prepared(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        if (has_ended(tracker, result, error))
                end_cycle(tracker);
}

static void end_left(Tracker *tracker)
{
        _cleanup_(plan_freep) Plan *plan = NULL;
        Error error = ERROR_NULL;
        int r = reporter_plan(tracker->reporter, tracker->wanted, NULL, &plan, &error);

        if (r < 0) {
                end_failed(tracker, r, &error);
                return;
        }
        contest_leave(&tracker->contest, reporter_tree(tracker->reporter));
        tracker_status_note_left(&tracker->status, plan->n_steps + tracker->reshape_left);
        end_with_audit(tracker);
}

static void on_reserved(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        if (has_ended(tracker, result, error))
                end_left(tracker);
}

/* What is reserved of devices is written where nova-compute leaves it alone. */
static void on_compared(Reporter *reporter, int result, const Error *error, void *userdata)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        Tracker *tracker = userdata;
        const ProviderTree *remote = reporter_tree(reporter);
        int r;

        if (!has_ended(tracker, result, error))
                return;
        r = nova_tree_to_send(remote, tracker->wanted, &tracker->maker.root, &tree);
        if (r >= 0)
                r = contest_give_in(&tracker->contest, tree, remote, now_usec(tracker));
        if (r >= 0 && !tracker->config.dry_run && tracker_may(tracker, NOVA_ACTION_RESERVE) &&
            !provider_tree_equal(tree, remote))
                r = reporter_publish(reporter, tree, NULL, on_reserved, tracker);
        else if (r >= 0)
                end_left(tracker);
        if (r < 0)
                end_failed(tracker, r, NULL);
}

/* But what somebody else undoes again and again. */
static int publish_own(Tracker *tracker)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        int r = 0;

        if (contest_count(&tracker->contest) > 0)
                r = provider_tree_copy(&tree, tracker->tree);
        if (r >= 0 && tree)
                r = contest_give_in(&tracker->contest, tree, reporter_tree(tracker->reporter),
                                    now_usec(tracker));
        return r < 0 ? r
                     : reporter_publish(tracker->reporter, tree ? tree : tracker->tree, NULL,
                                        on_published, tracker);
}

static void publish_tree(Tracker *tracker)
{
        int r;

        tracker->phase = PHASE_PUBLISHING;
        if (!tracker_may(tracker, NOVA_ACTION_PUBLISH))
                r = reporter_prepare(tracker->reporter, tracker->wanted, on_compared, tracker);
        else if (tracker->config.dry_run)
                r = reporter_prepare(tracker->reporter, tracker->tree, on_prepared, tracker);
        else
                r = publish_own(tracker);
        if (r < 0)
                end_failed(tracker, r, NULL);
}

static void on_witnessed(void *userdata)
{
        Tracker *tracker = userdata;

        tracker->witness = claim_witness_free(tracker->witness);
        publish_tree(tracker);
}

/* Claims first: Placement answers, and what they wait for can be asked. */
static void reconcile_and_publish(Tracker *tracker)
{
        if (tracker->config.dry_run ||
            claim_witness_begin(&tracker->witness, tracker->config.claims, tracker->reporter,
                                &tracker->maker.root, on_witnessed, tracker) == 0)
                publish_tree(tracker);
}

/* With a tree: Placement holds it. Else the old shape is kept, and the rest of it is published. */
static void on_reshaped(int result, ProviderTree *tree, const Error *device_error,
                        const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        tracker->status.reshape_error = reshape_control_get_state(tracker->reshape)->error;
        if (tracker->status.reshape_error.code)
                tracker->cycle_error = tracker->status.reshape_error;
        if (tree) {
                tracker_status_note_devices(&tracker->status, &tracker->maker.root, device_error);
                tracker_tree_reshaped(tracker, tree);
                begin_refresh(tracker); /* limits that were left wide for the move */
        } else if (sync_state_of_outcome(result) == SYNC_OFFLINE) {
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
        else if (r > 0)
                publish_tree(tracker);
}

/* After a refusal the tree is published again. Then the next cycle finds what was removed. */
static void on_emptied(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        if (!retirement_end(&tracker->retirement, &tracker->maker, tracker->config.claims, result,
                            error)) {
                begin_refresh(tracker);
                return;
        }
        tracker_status_note_retired(&tracker->status);
        end_cycle(tracker);
}

static int remove_host(Tracker *tracker)
{
        _cleanup_(provider_tree_freep) ProviderTree *nothing = NULL;
        int r = provider_tree_new(&nothing);

        contest_leave(&tracker->contest, NULL);
        if (r >= 0)
                r = reporter_publish(tracker->reporter, nothing, NULL, on_emptied, tracker);
        if (r < 0)
                retirement_fail(&tracker->retirement, r);
        return r;
}

static void on_holders(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        if (!has_ended(tracker, result, error))
                return;
        if (!retirement_check(&tracker->retirement, &tracker->maker, tracker->config.claims,
                              reporter, tracker->snapshot) ||
            remove_host(tracker) < 0)
                reconcile_and_publish(tracker);
}

static int look_for_others(Tracker *tracker)
{
        bool own = tracker_may(tracker, NOVA_ACTION_PUBLISH);
        int r = contest_look(&tracker->contest, own ? tracker->tree : tracker->wanted,
                             reporter_tree(tracker->reporter), &tracker->maker.root,
                             now_usec(tracker));

        tracker_status_note_contest(&tracker->contest);
        return r;
}

/* The tree is made of what Placement holds. */
static void go_on_with_tree(Tracker *tracker, Error *error)
{
        int r = look_for_others(tracker);

        if (r >= 0 && tracker->retirement.kind != RETIRE_NONE) {
                r = reporter_gather(tracker->reporter, NULL, NULL, on_holders, tracker);
                if (r >= 0)
                        return;
        }
        if (r < 0) {
                end_failed(tracker, r, error);
                return;
        }
        if (!tracker->config.dry_run &&
            reshape_control_is_due(
                    tracker->reshape, tracker->status.reshape_needed || tracker->reshape_left,
                    tracker_may(tracker, NOVA_ACTION_RESHAPE), reporter_tree(tracker->reporter)))
                begin_reshape(tracker);
        else
                reconcile_and_publish(tracker);
}

/* The tree is made once more: what is held stays. */
static void on_in_use_read(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Allocations *consumers, *holders;
        Tracker *tracker = userdata;
        Error words = ERROR_NULL;

        if (!has_ended(tracker, result, error))
                return;
        reporter_take_gathered(reporter, &consumers, &holders);
        allocations_free(consumers);
        retained_set_holders(tracker->maker.retained, holders);
        result = tracker_tree_after_read(tracker, &words);
        if (result < 0)
                end_failed(tracker, result, &words);
        else
                go_on_with_tree(tracker, &words);
}

/* Asks Placement who holds what would go, because it refuses to remove what is allocated. A
 * positive number when there is nothing to ask. */
static int read_in_use(Tracker *tracker)
{
        const Uuid *asked = NULL;
        size_t n = 0;
        int r = tracker->maker.retained ? retained_ask(tracker->maker.retained, &asked, &n) : 0;

        if (r < 0 || n == 0)
                return r < 0 ? r : 1;
        return reporter_read_holders(tracker->reporter, asked, n, on_in_use_read, tracker);
}

static void on_refreshed(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;
        Error words = ERROR_NULL;
        int r;

        if (!has_ended(tracker, result, error))
                return;
        r = tracker_tree_after_read(tracker, &words);
        if (r >= 0)
                r = read_in_use(tracker);
        if (r < 0)
                end_failed(tracker, r, &words);
        else if (r > 0)
                go_on_with_tree(tracker, &words);
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
        int r;

        if (tracker->reporter)
                return 0;
        r = reporter_new(&tracker->reporter, tracker->event, tracker->config.reporter,
                         &tracker->maker.root, tracker->maker.nodename, reterr);
        if (r == 0)
                reporter_set_deleted(tracker->reporter, tracker_status_log_deleted, NULL);
        return r;
}

static bool is_settling(Tracker *tracker)
{
        const DeviceWatch *watch = tracker->maker.device_watch;
        const char *first = "";
        size_t n_missing = watch ? device_watch_count_missing(watch, &first) : 0;

        return tracker_status_is_settling(&tracker->status, first, n_missing,
                                          now_usec(tracker) - tracker->started_usec,
                                          tracker->config.device_settle_usec);
}

/* One list, and the parts of each provider. */
#define N_READS(n_providers) (1 + 3 * (n_providers))

/* Is Placement left alone in this cycle? Whoever asked for one does not wait. */
static bool is_quiet(Tracker *tracker)
{
        uint64_t now = now_usec(tracker);

        cycle_pace_start(&tracker->pace, N_READS(tracker->tree ? tracker->tree->n_providers : 1),
                         now);
        return tracker->waiters.n_items == 0 &&
               cycle_pace_quiet_usec(&tracker->pace, was_polled(tracker), now) > 0;
}

/* Returns true if this cycle sends nothing to Placement; *ret says why. */
static bool stays_here(Tracker *tracker, Error *ret)
{
        if (!tracker->config.reporter) {
                error_setf(ret, ENODATA, "There is no [placement] section: nothing to audit");
                tracker_status_note_standalone(&tracker->status);
        } else if (tracker->maker.cordon && cordon_is_retired(tracker->maker.cordon)) {
                error_setf(ret, ENODATA, "The host is retired: nothing of it is in Placement");
                tracker_status_note_retired(&tracker->status);
        } else if (is_settling(tracker)) {
                *ret = tracker->cycle_error = tracker->status.settling;
                tracker->pause_max_usec = SETTLE_POLL_USEC;
        }
        return ret->code != 0;
}

/* The poll is over, well or not: hold claims and Placement equal to the last good snapshot. */
static void reconcile(Tracker *tracker)
{
        Error error = ERROR_NULL, why_not = ERROR_NULL;
        int r;

        claim_service_tend(tracker->config.claims);
        if (!tracker->snapshot) {
                auditor_give_up(tracker->auditor, &tracker->status.hypervisor_error);
                end_cycle(tracker);
                return;
        }
        r = tracker_tree_after_poll(tracker, &error);
        if (r >= 0 && stays_here(tracker, &why_not)) {
                auditor_give_up(tracker->auditor, &why_not);
                end_cycle(tracker);
                return;
        }
        if (r >= 0 && is_quiet(tracker)) {
                keep_sync_error(tracker);
                end_cycle(tracker);
                return;
        }
        tracker->spoke = true;
        if (r >= 0)
                r = ensure_reporter(tracker, &error);
        if (r < 0) {
                end_failed(tracker, r, &error);
                return;
        }
        if (tracker->waiters.n_items > 0)
                reporter_ask_at_once(tracker->reporter);
        if (cycle_pace_reads_all(&tracker->pace, tracker->full, now_usec(tracker)))
                reporter_forget(tracker->reporter);
        tracker->full = false;
        tracker->n_conflicts = 0;
        tracker->in_use_again = !tracker->maker.retained;
        tracker->writes_before = reporter_get_statistics(tracker->reporter)->n_writes;
        begin_refresh(tracker);
}

/* What the driver reports. */

static void note_hypervisor(Tracker *tracker, const Error *error)
{
        tracker_status_note_hypervisor(&tracker->status, error->code ? error : NULL,
                                       tracker->snapshot);
        notify_changed(tracker);
}

/* earlier: of a poll that began before this cycle's was asked for: it shows what it saw, and the
 * cycle waits on, so that whoever asked gets what was read since. */
static void end_poll(Tracker *tracker, bool earlier, const Error *error)
{
        tracker->snapshot = host_poll_get_snapshot(tracker->poll);
        if (tracker->snapshot && !tracker->maker.nodename) {
                tracker->maker.nodename = host_poll_get_nodename(tracker->poll);
                claim_service_set_node(tracker->config.claims, tracker->maker.nodename);
        }
        if (tracker->snapshot) {
                tracker->status.last_poll_usec = tracker->snapshot->taken_realtime_usec;
                tracker_status_note_parts(&tracker->status, &tracker->maker.root,
                                          &tracker->snapshot->problems, &tracker->logged_problems);
        }
        note_hypervisor(tracker, error);
        if (tracker->phase == PHASE_POLLING && !earlier)
                reconcile(tracker);
        if (tracker->snapshot)
                claim_service_set_guests(tracker->config.claims, tracker->snapshot);
        if (tracker->config.looked)
                tracker->config.looked(tracker, error->code ? 0 : tracker->snapshot->began_usec,
                                       error, tracker->config.userdata);
}

static void settle(Tracker *tracker)
{
        uint64_t now = clock_usec(CLOCK_BOOTTIME), latest;

        if (tracker->changed_usec == 0)
                tracker->changed_usec = now;
        latest = tracker->changed_usec + CHANGE_SETTLE_MAX_USEC;
        arm_cycle_timer(tracker, MIN(CHANGE_SETTLE_USEC, latest > now ? latest - now : 0));
}

static void on_host_news(HostPoll *poll, HostPollNews news, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;
        bool idle = tracker->phase == PHASE_IDLE;

        switch (news) {
        case HOST_POLL_ENDED:
        case HOST_POLL_EARLIER:
                end_poll(tracker, news == HOST_POLL_EARLIER, error);
                break;
        case HOST_POLL_LOST:
                note_hypervisor(tracker, error);
                if (idle)
                        arm_cycle_timer(tracker, cycle_pace_poll_retry_usec(&tracker->pace));
                break;
        case HOST_POLL_CHANGED:
                if (idle)
                        settle(tracker);
                else
                        tracker->again = true;
                break;
        }
}

static void begin_cycle(Tracker *tracker)
{
        Error error = ERROR_NULL;

        (void)sd_event_source_set_enabled(tracker->cycle_timer, SD_EVENT_OFF);
        tracker->phase = PHASE_POLLING;
        tracker->changed_usec = 0;
        tracker->cycle_error = ERROR_NULL;
        tracker->spoke = false;
        tracker->pause_max_usec = UINT64_MAX;
        cycle_waiters_begin(&tracker->waiters);
        retirement_begin(&tracker->retirement);
        if (host_poll_begin(tracker->poll, tracker->all ? DRIVER_POLL_ALL : DRIVER_POLL_CHANGES,
                            &error) < 0)
                end_poll(tracker, false, &error);
        tracker->all = false;
}

static int on_cycle_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        Tracker *tracker = userdata;

        if (tracker->phase == PHASE_IDLE)
                begin_cycle(tracker);
        return 0;
}

int tracker_new(Tracker **ret, sd_event *event, const TrackerConfig *config, Error *reterr)
{
        _cleanup_(tracker_freep) Tracker *tracker = calloc(1, sizeof(Tracker));
        const char *no_heal;
        int r;

        if (!tracker)
                return error_oom(reterr);
        tracker->config = *config;
        tracker->event = sd_event_ref(event);
        tracker->maker = config->maker;
        if (reshape_control_new(&tracker->reshape, event,
                                config->dry_run ? NULL : config->state_dir,
                                config->reshape_patience_usec, config->starts, config->claims) < 0)
                return error_oom(reterr);
        no_heal = nova_mode_refuses(tracker_get_nova(tracker), NOVA_ACTION_HEAL);
        if (auditor_new(&tracker->auditor,
                        &(AuditorConfig){ .claims = config->claims,
                                          .root = config->maker.root,
                                          .at_start = config->starts,
                                          .grace_usec = config->audit_grace_usec,
                                          .heal_cycles = no_heal ? 0 : config->heal_cycles,
                                          .refused = no_heal }) < 0)
                return error_oom(reterr);
        tracker->started_usec = now_usec(tracker);
        cycle_pace_init(&tracker->pace, config->interval_usec, config->start_jitter_usec);
        tracker_status_init(&tracker->status, !config->reporter);
        tracker->status.last_sync_usec = config->last_sync_usec;
        r = host_poll_new(&tracker->poll, event, config->driver, config->known,
                          config->patience_usec, on_host_news, tracker, reterr);
        if (r < 0)
                return r;
        tracker->snapshot = host_poll_get_snapshot(tracker->poll);
        if (tracker->snapshot)
                tracker->status.last_poll_usec = tracker->snapshot->taken_realtime_usec;
        r = sd_event_add_time_relative(event, &tracker->cycle_timer, CLOCK_BOOTTIME, 0,
                                       TIMER_ACCURACY, on_cycle_timer, tracker);
        if (r < 0)
                return error_setf(reterr, r, "Cannot set up a timer: %s", strerror(-r));
        r = sd_event_add_time(event, &tracker->end, CLOCK_MONOTONIC, 0, 1, on_end, tracker);
        /* In turn with calls (agent/bus/gate.c). */
        if (r >= 0)
                r = sd_event_source_set_priority(tracker->end, SD_EVENT_PRIORITY_NORMAL + 10);
        if (r < 0)
                return error_setf(reterr, r, "Cannot end cycles: %s", strerror(-r));
        (void)sd_event_source_set_enabled(tracker->end, SD_EVENT_OFF);
        *ret = TAKE_PTR(tracker);
        return 0;
}

Tracker *tracker_free(Tracker *tracker)
{
        if (!tracker)
                return NULL;
        sd_event_source_disable_unref(tracker->cycle_timer);
        sd_event_source_disable_unref(tracker->end);
        host_poll_free(tracker->poll);
        claim_witness_free(tracker->witness);
        reshape_control_free(tracker->reshape);
        auditor_free(tracker->auditor);
        reporter_free(tracker->reporter);
        provider_tree_free(tracker->tree);
        provider_tree_free(tracker->wanted);
        contest_done(&tracker->contest);
        cycle_waiters_done(&tracker->waiters);
        string_set_done(&tracker->logged_problems);
        retirement_done(&tracker->retirement);
        sd_event_unref(tracker->event);
        free(tracker);
        return NULL;
}

int tracker_ask_cycle(Tracker *tracker, TrackerDone done, void *userdata, bool publication)
{
        if (done && cycle_waiters_add(&tracker->waiters, done, userdata, publication) < 0)
                return -ENOMEM;
        tracker->all = true;
        if (tracker->phase == PHASE_IDLE)
                arm_cycle_timer(tracker, 0);
        else
                tracker->again = true;
        return 0;
}
