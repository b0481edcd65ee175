/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Creates and frees the tracker, begins its cycles by a timer or on request, and collects its state
 * for readers (TrackerView, CycleFacts). After changes of the host, phases.c sets that timer. This
 * file also reads the file of a warm start at the creation, and writes it in tracker_save(). The
 * order of a cycle is in agent/cycle/order.h, its phases are in phases.c, and tracker-tree.c makes
 * the tree.
 *
 * Invariants: a cycle that is requested while another one runs begins after it. Each waiter is
 * called once, unless it is cancelled or the tracker is freed: at the end of such a cycle, or with
 * an error by on_late() or tracker_dismiss(). A waiter for a publication is not called by a cycle
 * that puts it off. The cycle timer is armed only in CYCLE_IDLE. A valid file of a warm start is
 * used unless a full read of Placement is due. The report client then begins with the saved mirror,
 * and the time of the next full read is set. If WarmStart.is_audited is set too, the first audit is
 * skipped, and so is the read of allocations that the last process knew. Both are required after
 * all if Placement differs from the mirror. An audit counts as clean only if it had no error, found
 * nothing, and is newer than the claim database. */

#include <errno.h>
#include <string.h>
#include <systemd/sd-id128.h>

#include "agent/cycle/tracker-internal.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"

#define TIMER_ACCURACY (250 * USEC_PER_MSEC)

#define RELOAD_USEC (30 * USEC_PER_SEC)

/* Begins a cycle by the end of CYCLE_IDLE. Does nothing while a cycle runs. */
static int on_cycle_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        Tracker *tracker = userdata;

        if (tracker->phase == CYCLE_IDLE)
                tracker_end_phase(tracker, 0, NULL);
        return 0;
}

/* Ends CYCLE_END, the pause in which the main loop serves the calls that have arrived. begin_soon()
 * in phases.c began it. */
static int on_soon(sd_event_source *source, uint64_t usec, void *userdata)
{
        tracker_end_phase(userdata, 0, NULL);
        return 0;
}

/* Calls the waiters of a reload with ETIMEDOUT, because its cycle takes longer than RELOAD_USEC. */
static int on_late(sd_event_source *source, uint64_t usec, void *userdata)
{
        static const Error late = { ETIMEDOUT, "The first cycle has not ended yet" };
        Tracker *tracker = userdata;

        for (size_t i = 0; i < tracker->n_waiters;) {
                const CycleWaiter waiter = tracker->waiters[i];

                if (!waiter.is_reload) {
                        i++;
                        continue;
                }
                array_close(tracker->waiters, sizeof(CycleWaiter), &tracker->n_waiters, i);
                waiter.done(tracker, &late, waiter.userdata);
                i = 0;
        }
        return 0;
}

static int add_timers(Tracker *tracker)
{
        int r = sd_event_add_time_relative(tracker->event, &tracker->cycle_timer, CLOCK_BOOTTIME, 0,
                                           TIMER_ACCURACY, on_cycle_timer, tracker);

        if (r >= 0)
                r = sd_event_add_time(tracker->event, &tracker->soon, CLOCK_MONOTONIC, 0, 1,
                                      on_soon, tracker);
        /* The timer "soon" has the priority of the source that serves calls (agent/bus/gate.c), so
         * that the loop runs both in turn. */
        if (r >= 0)
                r = sd_event_source_set_priority(tracker->soon, SD_EVENT_PRIORITY_NORMAL + 10);
        if (r >= 0)
                r = sd_event_source_set_enabled(tracker->soon, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(tracker->event, &tracker->late, CLOCK_MONOTONIC, 0,
                                      TIMER_ACCURACY, on_late, tracker);
        return r < 0 ? r : sd_event_source_set_enabled(tracker->late, SD_EVENT_OFF);
}

/* Returns the current moment. */
static WarmMoment moment_now(void)
{
        WarmMoment now = { .real_usec = clock_usec(CLOCK_REALTIME),
                           .boot_usec = clock_usec(CLOCK_BOOTTIME) };
        sd_id128_t boot;

        if (sd_id128_get_boot(&boot) >= 0)
                (void)sd_id128_to_string(boot, now.boot_id);
        return now;
}

/* Reads the file of a warm start, which the last process has written, and sets the time of the next
 * full read. A file that cannot be used, or whose full read is due, is ignored; the first cycle
 * then reads all of Placement. Returns true if this start needs no audit, unless Placement has
 * changed since then. */
static bool take_warm_start(Tracker *tracker)
{
        const TrackerConfig *config = &tracker->config;
        const WarmMoment now = moment_now();
        Error error = ERROR_NULL;
        int r;

        if (!config->warm || !config->reporter || !config->state_dir)
                return false;
        r = warm_start_take(config->state_dir, &config->maker.root, &now, &tracker->warm, &error);
        if (r < 0)
                log_warning("Ignoring the saved state of Placement: %s. Reading all of it.",
                            error_text(&error, r));
        if (r <= 0)
                return false;
        if (tracker->warm.full_in_usec > 0) {
                tracker->pace.full_at_usec = now.boot_usec + tracker->warm.full_in_usec;
                return tracker->warm.is_audited;
        }
        log_info("Ignoring the saved state of Placement: a full read is due.");
        json_decref(tracker->warm.reporter);
        tracker->warm.reporter = NULL;
        return false;
}

/* Returns the time of the last audit, or 0 if it was not clean, so that the next start must audit.
 */
static uint64_t find_clean_audit(const Tracker *tracker)
{
        const AuditorState *audit = auditor_get_state(tracker->auditor);
        bool clean = !audit->error.code && audit->n_open == 0 && audit->findings.n_items == 0 &&
                     audit->ended_usec > tracker->maker.claims->built_usec;

        return clean ? audit->ended_usec : 0;
}

void tracker_save(Tracker *tracker)
{
        const WarmMoment now = moment_now();
        _cleanup_(warm_start_done)
                WarmStart warm = { .root = tracker->config.maker.root, .saved = now };
        const char *state_dir = tracker->config.state_dir;
        Error error = ERROR_NULL;
        int r;

        if (!tracker->reporter || !state_dir || tracker->config.dry_run ||
            tracker->pace.full_at_usec <= now.boot_usec)
                return;
        warm.reporter = reporter_save(tracker->reporter);
        if (!warm.reporter)
                return;
        warm.full_at_usec = now.real_usec + (tracker->pace.full_at_usec - now.boot_usec);
        warm.audited_usec = find_clean_audit(tracker);
        if (!tracker->comparison_run)
                warm.held_stamp = tracker->maker.claims->comparison.held_stamp;
        r = warm_start_write(&warm, state_dir, &error);
        if (r < 0)
                log_warning(
                        "Cannot save the state of Placement: %s. The next start reads all of it.",
                        error_text(&error, r));
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
        if (reshape_control_new(
                    &tracker->reshape, event, config->dry_run ? NULL : config->state_dir,
                    config->reshape_patience_usec, config->starts, config->maker.claims) < 0)
                return error_oom(reterr);
        tracker->pace = (CyclePace){ .interval_usec = config->interval_usec,
                                     .quiet_max_usec = config->quiet_max_usec,
                                     .start_jitter_usec = config->start_jitter_usec };
        tracker->spares_audit = take_warm_start(tracker);
        no_heal = nova_mode_refuses(tracker_view(tracker).nova, NOVA_ACTION_HEAL);
        if (auditor_new(&tracker->auditor, event,
                        &(AuditorConfig){ .claims = config->maker.claims,
                                          .root = config->maker.root,
                                          .at_start = config->starts,
                                          .grace_usec = config->audit_grace_usec,
                                          .heal_cycles = no_heal ? 0 : config->heal_cycles,
                                          .refused = no_heal }) < 0)
                return error_oom(reterr);
        tracker->started_usec = clock_usec(CLOCK_BOOTTIME);
        tracker->status = (TrackerStatus){
                .sync_state = config->reporter ? SYNC_PENDING : SYNC_STANDALONE,
                .sync_since_usec = clock_usec(CLOCK_REALTIME),
                .last_sync_usec = config->last_sync_usec,
        };
        r = host_poll_new(&tracker->poll, event, config->driver, config->known,
                          config->patience_usec, tracker_on_host_poll, tracker, reterr);
        if (r < 0)
                return r;
        tracker->snapshot = config->known;
        if (tracker->snapshot)
                tracker->status.last_poll_usec = tracker->snapshot->taken_realtime_usec;
        r = add_timers(tracker);
        if (r < 0)
                return error_setf(reterr, r, "Cannot set up a timer: %s", strerror(-r));
        claim_service_watch_cards(config->maker.claims, tracker_note_cards, tracker);
        *ret = TAKE_PTR(tracker);
        return 0;
}

Tracker *tracker_free(Tracker *tracker)
{
        if (!tracker)
                return NULL;
        claim_service_watch_cards(tracker->maker.claims, NULL, tracker);
        sd_event_source_disable_unref(tracker->cycle_timer);
        sd_event_source_disable_unref(tracker->soon);
        sd_event_source_disable_unref(tracker->late);
        host_poll_free(tracker->poll);
        comparison_run_free(tracker->comparison_run);
        reshape_control_free(tracker->reshape);
        auditor_free(tracker->auditor);
        reporter_free(tracker->reporter);
        provider_tree_free(tracker->tree);
        provider_tree_free(tracker->wanted);
        overwrites_done(&tracker->overwrites);
        free(tracker->waiters);
        string_set_done(&tracker->logged_problems);
        json_decref(tracker->retirement.document);
        warm_start_done(&tracker->warm);
        sd_event_unref(tracker->event);
        free(tracker);
        return NULL;
}

/* Adds a waiter. The waiter stores n_begun, so no cycle that has begun already calls it. */
static int add_waiter(Tracker *tracker, CycleWaiter waiter)
{
        if (array_grow(&tracker->waiters, sizeof(CycleWaiter), tracker->n_waiters,
                       &tracker->n_waiters_allocated) < 0)
                return -ENOMEM;
        waiter.asked = tracker->n_begun;
        tracker->waiters[tracker->n_waiters++] = waiter;
        return 0;
}

int tracker_sync(Tracker *tracker, TrackerSync sync,
                 void (*done)(Tracker *tracker, const Error *error, void *userdata), void *userdata)
{
        const CycleWaiter waiter = { .done = done,
                                     .userdata = userdata,
                                     .publication = sync >= TRACKER_PUBLISH,
                                     .is_reload = sync == TRACKER_RELOAD };

        if (done && add_waiter(tracker, waiter) < 0)
                return -ENOMEM;
        if (waiter.is_reload) {
                (void)sd_event_source_set_time_relative(tracker->late, RELOAD_USEC);
                (void)sd_event_source_set_enabled(tracker->late, SD_EVENT_ONESHOT);
        }
        cycle_pace_note_change(&tracker->pace, clock_usec(CLOCK_BOOTTIME));
        tracker->all = true;
        tracker->full |= sync == TRACKER_PUBLISH_ALL;
        if (sync == TRACKER_PUBLISH_CORDON)
                overwrites_end_pauses(&tracker->overwrites);
        if (tracker->phase == CYCLE_IDLE)
                tracker_arm_timer(tracker, 0);
        else
                tracker->again = true;
        return 0;
}

int tracker_look(Tracker *tracker, Error *reterr)
{
        return host_poll_begin(tracker->poll, DRIVER_POLL_GUESTS, reterr);
}

/* Increments n_begun, so that all waiters count as waiters of an earlier cycle. */
void tracker_dismiss(Tracker *tracker, const char *why)
{
        Error error;

        error_setf(&error, ECANCELED, "%s", why);
        tracker->n_begun++;
        tracker_call_waiters(tracker, &error, false);
}

void tracker_sync_cancel(Tracker *tracker, void *userdata)
{
        size_t kept = 0;

        for (size_t i = 0; i < tracker->n_waiters; i++)
                if (tracker->waiters[i].userdata != userdata)
                        tracker->waiters[kept++] = tracker->waiters[i];
        tracker->n_waiters = kept;
}

/* Parts that do not exist yet are NULL. */
TrackerView tracker_view(const Tracker *tracker)
{
        const DeviceWatch *watch = tracker->maker.device_watch;
        Reporter *reporter = tracker->reporter;

        return (TrackerView){
                .status = &tracker->status,
                .snapshot = tracker->snapshot,
                .tree = tracker->tree,
                .mirror = reporter ? reporter_tree(reporter) : NULL,
                .sharing = reporter ? sharing_get(reporter_get_sharing(reporter)) : NULL,
                .devices = watch ? &watch->ledger : NULL,
                .retained = tracker->maker.retained,
                .session = reporter ? reporter_get_session(reporter) : NULL,
                .writer = reporter && reporter_knows_root(reporter) ? reporter_get_session(reporter)
                                                                    : NULL,
                .nova = tracker->config.reporter ? tracker->config.reporter->nova : NOVA_NONE,
                .auditor = tracker->auditor,
                .reshape = tracker->reshape,
                .retirement = (Retirement *)&tracker->retirement,
        };
}

void tracker_get_progress(const Tracker *tracker, Progress *ret)
{
        CyclePhase phase = tracker->phase;

        *ret = (Progress){ .phase = phase == CYCLE_IDLE   ? "waiting"
                                    : phase == CYCLE_POLL ? "polling"
                                                          : "working" };
        if (phase == CYCLE_AUDIT)
                auditor_get_progress(tracker->auditor, ret);
        else if (phase > CYCLE_POLL && phase < CYCLE_AUDIT)
                reporter_get_progress(tracker->reporter, ret);
}

void cycle_facts_look(const Tracker *tracker, const PendingWrites *pending_writes,
                      const char *pending_writes_error, CycleFacts *ret)
{
        static const ReporterStatistics no_statistics;
        const TrackerView view = tracker_view(tracker);
        Claims *claims = tracker->maker.claims->claims;

        *ret = (CycleFacts){
                .status = &tracker->status,
                .statistics = tracker->reporter ? reporter_get_statistics(tracker->reporter)
                                                : &no_statistics,
                .driver = tracker->config.driver->name,
                .nova = view.nova,
                .snapshot = tracker->snapshot,
                .tree = tracker->tree,
                .devices = view.devices,
                .retained = view.retained,
                .overwrites = &tracker->overwrites,
                .audit = auditor_get_state(tracker->auditor),
                .spared_usec = tracker->spares_audit ? tracker->warm.audited_usec : 0,
                .config_warnings = tracker->config.warnings,
                .config_digest = &tracker->config.digest,
                .start_reason = tracker->config.start_reason,
                .claim_error = &tracker->maker.claims->error,
                .n_claims = claim_service_count(tracker->maker.claims),
                .n_disagreements = tracker->maker.claims->comparison.problems.n_items,
                .pending_writes = *pending_writes,
                .pending_writes_error = pending_writes_error,
                .cordons = cordon_view(tracker->maker.cordon),
                .health = tracker->config.health ? *tracker->config.health : (HealthView){ 0 },
        };
        /* This must be the last read of the database here, because the next one makes the view
         * invalid. */
        if (claims && claims_host(claims, &ret->view, NULL) != 0)
                ret->view = NULL;
}
