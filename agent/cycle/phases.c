/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Implements the phases of a cycle. The table phases[] has two functions for each phase, begin()
 * and done(). The function begin() starts at most one operation of the host poll, the report
 * client, the reshape, the comparison or the auditor. The callback of this operation ends the
 * phase. Then done() handles the result if it is a success. The loop is in tracker_end_phase(): it
 * asks cycle_next() (agent/cycle/order.h) for the next phase and begins it. The other functions
 * only set the facts for that. This file also has the timer that begins a cycle, the events of the
 * host poll, and the calls of the waiters. Invariant: only one callback, or the timer, can end the
 * current phase. A failed phase that is not retried notes its reason in the status, from where the
 * waiters receive it (note_failure()). A failed poll, audit, comparison or removal does not fail
 * its phase. A retry begins with a new read of Placement, but with the same poll. In a dry run the
 * reshape, the comparison, the audit and all writes to Placement are skipped.
 *
 * Tests: tests/unit/agent/cycle/test-tracker.c */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/cycle/tracker-internal.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"

/* One poll serves a burst of changes of the host between cycles: it begins CHANGE_SETTLE_USEC after
 * the last one, but at most CHANGE_SETTLE_MAX_USEC after the first. */
#define CHANGE_SETTLE_USEC     (200 * USEC_PER_MSEC)
#define CHANGE_SETTLE_MAX_USEC (2 * USEC_PER_SEC)
#define TIMER_ACCURACY         (250 * USEC_PER_MSEC)

#define SETTLE_POLL_USEC USEC_PER_SEC  /* between polls while the publication waits for devices */
#define BREATH_USEC      USEC_PER_MSEC /* pause in which CYCLE_END serves calls */

/* Age at which the consumers of lost inventories, and of devices that can be cleaned, are read
 * again without another reason. */
#define HOLDERS_AGE_USEC  (600 * USEC_PER_SEC)
#define HOLDERS_WAIT_USEC (30 * USEC_PER_SEC) /* the same while a cleaning waits for the answer */

/* The results of begin() that are not errors. */
enum {
        PHASE_WAITS,   /* a callback or the timer will end the phase */
        PHASE_ENDED,   /* the phase ended within the call */
        PHASE_SKIPPED, /* the phase started nothing, so its done() is not called */
};

void tracker_arm_timer(Tracker *tracker, uint64_t pause_usec)
{
        if (pause_usec == UINT64_MAX) {
                (void)sd_event_source_set_enabled(tracker->cycle_timer, SD_EVENT_OFF);
                return;
        }
        /* A cycle without a pause was requested, and a caller can wait for it. */
        (void)sd_event_source_set_time_accuracy(tracker->cycle_timer,
                                                pause_usec == 0 ? 1 : TIMER_ACCURACY);
        (void)sd_event_source_set_time_relative(tracker->cycle_timer, pause_usec);
        (void)sd_event_source_set_enabled(tracker->cycle_timer, SD_EVENT_ONESHOT);
}

/* Copies status.sync_error into the result of the cycle, so that the waiters receive it. */
static void keep_sync_error(Tracker *tracker)
{
        if (tracker->status.sync_error.code)
                tracker->cycle.error = tracker->status.sync_error;
}

/* Ends the phase whose request the report client has answered. The result is that of the
 * request. */
static void on_answer(Reporter *reporter, int result, const Error *error, void *userdata)
{
        tracker_end_phase(userdata, result, error);
}

static void end_poll(Tracker *tracker, const Error *error);

/* Begins a cycle: resets its state and requests a poll. A poll that cannot be requested counts as
 * failed. */
static int begin_poll(Tracker *tracker, Error *reterr)
{
        DriverPollKind kind = tracker->all ? DRIVER_POLL_ALL : DRIVER_POLL_CHANGES;

        memset(&tracker->cycle, 0, sizeof(tracker->cycle));
        tracker->cycle.facts = (OrderFacts){ .owns_tree = tracker_may(tracker, NOVA_ACTION_PUBLISH),
                                             .dry_run = tracker->config.dry_run,
                                             .retries_in_use = tracker->maker.retained };
        tracker->cycle.wanted = tracker->all || tracker->changed_usec > 0;
        tracker->status.cycle_published = tracker->all = false;
        tracker->changed_usec = 0;
        tracker_arm_timer(tracker, UINT64_MAX);
        tracker->n_begun++;
        tracker->status.cycle_began_usec = clock_usec(CLOCK_MONOTONIC);
        retirement_begin(&tracker->retirement);
        if (host_poll_begin(tracker->poll, kind, reterr) < 0)
                end_poll(tracker, reterr);
        return PHASE_WAITS;
}

/* Returns true if the first publication still waits for missing devices, and sets status->settling
 * to words that name one of them. After it has returned false once, it always returns false. */
static bool is_settling(Tracker *tracker)
{
        const DeviceWatch *watch = tracker->maker.device_watch;
        TrackerStatus *status = &tracker->status;
        uint64_t limit_usec = tracker->config.device_settle_usec,
                 spent_usec = clock_usec(CLOCK_BOOTTIME) - tracker->started_usec;
        char more[40] = "";
        size_t n_missing = watch ? watch->n_missing : 0;

        status->settling = ERROR_NULL;
        status->settled |= n_missing == 0 || spent_usec >= limit_usec;
        if (status->settled)
                return false;
        if (n_missing > 1)
                snprintf(more, sizeof(more), " and %zu more", n_missing - 1);
        error_setf(&status->settling, EAGAIN,
                   "Not published yet: waiting for device %.100s%s (%" PRIu64 " s left)",
                   watch->missing, more,
                   (limit_usec - spent_usec + USEC_PER_SEC - 1) / USEC_PER_SEC);
        return true;
}

/* Returns true if this cycle sends no request to Placement, because a pause of the pace has not
 * ended. A cycle with a waiter does not wait for a pause. Begins the start delay at its first
 * call. */
static bool is_quiet(Tracker *tracker)
{
        size_t n_providers = tracker->tree ? tracker->tree->n_providers : 1;
        /* The range of the start delay depends on the number of requests of a first read: one for
         * the list of providers, and three for each of them. */
        uint64_t quiet_usec = cycle_pace_quiet_usec(&tracker->pace, 1 + 3 * n_providers,
                                                    !tracker->status.hypervisor_error.code,
                                                    clock_usec(CLOCK_BOOTTIME));

        return tracker->n_waiters == 0 && quiet_usec > 0;
}

/* Returns why an audit must leave all unchanged, or NULL. */
static const char *find_hindrance(const Tracker *tracker)
{
        return tracker_status_find_hindrance(&tracker->status, &tracker->overwrites);
}

/* Returns true if this cycle does not check Placement, because nothing has changed for long. A
 * cycle with an own reason checks: a request, a change of the host or its tree, an audit. But such
 * a reason does not end a pause: is_quiet() comes first, and only a waiter prevents it. */
static bool skips_check(Tracker *tracker)
{
        if (tracker->n_waiters > 0 || tracker->cycle.wanted ||
            clock_usec(CLOCK_BOOTTIME) >= tracker->pace.check_at_usec)
                return false;
        tracker->cycle.audits = auditor_is_due(tracker->auditor, find_hindrance(tracker));
        return !tracker->cycle.audits;
}

/* Returns the scope of the cycle, and notes in the status that a host is standalone or retired.
 * Without Placement, *ret is the reason, with which a requested audit fails. CYCLE_QUIET sets no
 * reason: a requested audit stays requested. CYCLE_UNCHANGED sets none either, because it is not
 * returned while an audit is due (skips_check()). */
static CycleScope find_scope(Tracker *tracker, Error *ret)
{
        TrackerStatus *status = &tracker->status;

        if (!tracker->snapshot) {
                *ret = status->hypervisor_error;
                return CYCLE_HOST_UNKNOWN;
        }
        if (!tracker->config.reporter) {
                error_setf(ret, ENODATA,
                           "There is no [placement] section, so there is nothing to audit");
                tracker_status_note_apart(status, SYNC_STANDALONE);
                return CYCLE_STANDALONE;
        }
        if (tracker->maker.cordon && cordon_view(tracker->maker.cordon).is_retired) {
                error_setf(ret, ENODATA, "The host is retired and has no provider in Placement");
                tracker_status_note_apart(status, SYNC_RETIRED);
                return CYCLE_RETIRED;
        }
        if (status->sync_state == SYNC_RETIRED)
                status->tree_published = false; /* the retirement has ended, without a tree yet */
        if (is_settling(tracker)) {
                *ret = tracker->cycle.error = status->settling;
                return CYCLE_SETTLING;
        }
        if (is_quiet(tracker))
                return CYCLE_QUIET;
        return skips_check(tracker) ? CYCLE_UNCHANGED : CYCLE_PLACEMENT;
}

/* Logs a provider that this agent has deleted from Placement, with the evidence. */
static void log_deleted(const Uuid *provider, const char *name)
{
        log_event(
                LOG_INFO, MESSAGE_PROVIDER_DELETED, LOG_FIELDS(LOG_FIELD_PROVIDER, provider->text),
                "Deleted provider %.200s (%s) from Placement. This host no longer reports it, and Placement has no allocation of it.",
                name, provider->text);
}

/* Restores the mirror of Placement that the last process saved at its end (warm-start.h). If it
 * cannot be restored, the report client reads everything. */
static void restore(Tracker *tracker)
{
        Error error = ERROR_NULL;
        int r;

        if (!tracker->warm.reporter)
                return;
        r = reporter_restore(tracker->reporter, tracker->warm.reporter, &error);
        if (r < 0)
                log_warning("Ignoring the saved state of Placement: %s. Reading all of it.",
                            error_text(&error, r));
        json_decref(tracker->warm.reporter);
        tracker->warm.reporter = NULL;
}

/* Prepares the report client for this cycle. Creates it in the first cycle that uses Placement; the
 * snapshot has the name of the root provider. Makes it forget its mirror for a full read. */
static int begin_attempt(Tracker *tracker, Error *reterr)
{
        int r = 0;

        if (!tracker->reporter) {
                r = reporter_new(&tracker->reporter, tracker->event, tracker->config.reporter,
                                 &tracker->maker.root, tracker->maker.nodename, log_deleted,
                                 reterr);
                if (r < 0)
                        return r;
                restore(tracker);
        }
        if (tracker->n_waiters > 0)
                reporter_ask_at_once(tracker->reporter);
        if (cycle_pace_reads_all(&tracker->pace, tracker->full, clock_usec(CLOCK_BOOTTIME)))
                reporter_forget(tracker->reporter);
        tracker->full = false;
        tracker->cycle.writes_before = reporter_get_statistics(tracker->reporter)->n_plan_writes;
        return 0;
}

/* Opens the claim database if necessary, makes the tree from the poll, and decides about the scope
 * of the cycle. If memory runs out, or the tree of a standalone host cannot be made or reshaped,
 * the error ends the phase as a failure, and no scope is chosen: it keeps its initial value,
 * CYCLE_PLACEMENT. After another failure to make the tree, the cycle continues with the last tree,
 * or a preview of it. Passes the reason of a cycle without Placement to a requested audit. */
static int done_poll(Tracker *tracker, Error *reterr)
{
        OrderFacts *facts = &tracker->cycle.facts;
        Error why_not = ERROR_NULL;
        int r;

        claim_service_tend(tracker->maker.claims);
        r = tracker->snapshot ? tracker_tree_after_poll(tracker, reterr) : 0;
        if (r >= 0)
                facts->scope = find_scope(tracker, &why_not);
        if (why_not.code)
                auditor_give_up(tracker->auditor, &why_not);
        if (facts->scope == CYCLE_QUIET)
                keep_sync_error(tracker);
        if (facts->scope != CYCLE_PLACEMENT)
                return 0;
        tracker->cycle.spoke = true;
        if (r >= 0)
                r = begin_attempt(tracker, reterr);
        facts->has_client = tracker->reporter;
        return r;
}

/* Notes the result of a poll in the status, and calls the owner's changed(). */
static void note_poll(Tracker *tracker, const Error *error)
{
        tracker_status_note_poll(&tracker->status, &tracker->maker.root, tracker->snapshot, error,
                                 &tracker->logged_problems);
        tracker->config.changed(tracker, tracker->config.userdata);
}

/* Handles the end of a poll, also of one without a cycle (tracker_look()). If the poll succeeded,
 * but began before the cycle, CYCLE_POLL waits for the next result. The phase ends before the
 * guests are passed to the claims and the owner's looked() is called. */
static void end_poll(Tracker *tracker, const Error *error)
{
        const Snapshot *snapshot = tracker->snapshot;

        if (snapshot) {
                if (!tracker->maker.nodename)
                        claim_service_set_node(tracker->maker.claims, snapshot->nodename);
                tracker->maker.nodename = snapshot->nodename;
        }
        note_poll(tracker, error);
        if (tracker->phase == CYCLE_POLL &&
            (error->code || snapshot->began_usec >= tracker->status.cycle_began_usec))
                tracker_end_phase(tracker, 0, NULL);
        if (snapshot)
                claim_service_set_guests(tracker->maker.claims, snapshot);
        tracker->config.looked(tracker, error->code ? 0 : snapshot->began_usec, error,
                               tracker->config.userdata);
}

/* Lets the next cycle begin after this pause, unless it begins earlier anyway. */
static void hasten(Tracker *tracker, uint64_t pause_usec)
{
        uint64_t due_usec = 0;

        if (sd_event_source_get_enabled(tracker->cycle_timer, NULL) > 0 &&
            sd_event_source_get_time(tracker->cycle_timer, &due_usec) >= 0 &&
            due_usec <= clock_usec(CLOCK_BOOTTIME) + pause_usec)
                return;
        tracker_arm_timer(tracker, pause_usec);
}

/* Sets the timer so that a cycle begins when the host has not changed for CHANGE_SETTLE_USEC, but
 * at most CHANGE_SETTLE_MAX_USEC after the first change. Each change postpones the cycle, but not a
 * cycle that was requested. */
static void settle(Tracker *tracker)
{
        uint64_t now = clock_usec(CLOCK_BOOTTIME),
                 latest = tracker->changed_usec + CHANGE_SETTLE_MAX_USEC;

        if (tracker->all)
                return;
        tracker_arm_timer(tracker, MIN(CHANGE_SETTLE_USEC, latest > now ? latest - now : 0));
}

void tracker_note_cards(void *userdata)
{
        Tracker *tracker = userdata;

        if (tracker->changed_usec == 0)
                tracker->changed_usec = clock_usec(CLOCK_BOOTTIME);
        if (tracker->phase == CYCLE_IDLE)
                settle(tracker);
        else
                tracker->again = true;
}

void tracker_on_host_poll(const Snapshot *snapshot, HostPollEvent event, const Error *error,
                          void *userdata)
{
        Tracker *tracker = userdata;
        bool idle = tracker->phase == CYCLE_IDLE;

        switch (event) {
        case HOST_POLL_ENDED:
                tracker->snapshot = snapshot;
                end_poll(tracker, error);
                break;
        case HOST_POLL_LOST:
                note_poll(tracker, error);
                if (idle)
                        hasten(tracker, cycle_pace_poll_retry_usec(&tracker->pace));
                break;
        case HOST_POLL_CHANGED:
                tracker_note_cards(tracker);
                break;
        }
}

static int begin_read(Tracker *tracker, Error *reterr)
{
        return reporter_refresh(tracker->reporter, on_answer, tracker);
}

/* Returns the sum of the generations of these providers. Each generation only rises, so an equal
 * sum of the same providers means no change. */
static int64_t sum_generations(const Tracker *tracker, const Uuid *providers, size_t n)
{
        int64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += reporter_get_generation(tracker->reporter, &providers[i]);
        return sum;
}

/* Returns true if the last answer about the consumers of these inventories can be used again. Each
 * new allocation raises the generation of its provider, but the end of an allocation does not
 * (doc/facts.md, facts E3). So an old answer is wrong in one direction only: until the first read
 * after HOLDERS_AGE_USEC a free inventory can stay retained, and after HOLDERS_WAIT_USEC a free
 * device uncleaned. A cycle with a waiter, and a retry, read again, and so does a cycle with an
 * inventory about which no answer is known. */
static bool has_holders(const Tracker *tracker, int64_t generations, bool is_answered)
{
        const DeviceWatch *watch = tracker->maker.device_watch;
        uint64_t age_usec = watch && watch->awaits_end ? HOLDERS_WAIT_USEC : HOLDERS_AGE_USEC;

        return tracker->n_waiters == 0 && tracker->cycle.facts.n_retries == 0 &&
               tracker->holders_read_usec > 0 && tracker->holders_generations == generations &&
               clock_usec(CLOCK_BOOTTIME) - tracker->holders_read_usec < age_usec && is_answered;
}

/* Reads the consumers of inventories that the new tree lacks, and of devices that can be cleaned.
 * Skipped if there is neither, or if has_holders() permits the last answer. */
static int begin_holders(Tracker *tracker, Error *reterr)
{
        const Uuid *asked = NULL;
        int64_t generations;
        size_t n = 0;
        bool is_answered;
        int r = tracker->maker.retained
                        ? retained_ask(tracker->maker.retained, &asked, &n, &is_answered)
                        : 0;

        if (r < 0 || n == 0)
                return r < 0 ? r : PHASE_SKIPPED;
        generations = sum_generations(tracker, asked, n);
        if (has_holders(tracker, generations, is_answered))
                return PHASE_SKIPPED;
        /* A look at the devices must not use the old answer if this read fails. */
        if (tracker->holders_generations != generations)
                retained_forget_answer(tracker->maker.retained);
        tracker->holders_read_usec = 0;
        tracker->holders_generations = generations;
        return reporter_read_holders(tracker->reporter, asked, n, on_answer, tracker);
}

/* Stores the consumers that begin_holders() has read, and makes the tree again. The new tree
 * retains each inventory that one of these consumers uses. */
static int done_holders(Tracker *tracker, Error *reterr)
{
        Allocations *consumers, *holders;

        reporter_take_gathered(tracker->reporter, &consumers, &holders);
        allocations_free(consumers);
        retained_set_holders(tracker->maker.retained, holders);
        tracker->holders_read_usec = clock_usec(CLOCK_BOOTTIME);
        return tracker_tree_after_read(tracker, reterr);
}

/* Returns the tree that the agent would publish, also if nova-compute owns the published tree. */
static const ProviderTree *find_wanted(const Tracker *tracker)
{
        return tracker_may(tracker, NOVA_ACTION_PUBLISH) ? tracker->tree : tracker->wanted;
}

/* Logs each value that another writer keeps overwriting, once until it is forgotten. */
static void log_overwrites(Overwrites *overwrites)
{
        for (size_t i = 0; i < overwrites->n_parts; i++) {
                Overwrite *part = &overwrites->parts[i];

                if (part->logged || !overwrite_is_repeated(part))
                        continue;
                part->logged = true;
                log_event(
                        LOG_WARNING, MESSAGE_SECOND_REPORTER,
                        LOG_FIELDS(LOG_FIELD_PROVIDER, part->uuid.text),
                        "Another writer changes this host's tree in Placement: %s%s%s was overwritten %u times (%s). It is left unchanged for now. Retrying at growing intervals.",
                        part->part, part->part[0] ? " of " : "", part->name, part->n, part->how);
        }
}

static int begin_overwrites(Tracker *tracker, Error *reterr)
{
        int r = overwrites_update(&tracker->overwrites, find_wanted(tracker),
                                  reporter_tree(tracker->reporter), &tracker->maker.root,
                                  clock_usec(CLOCK_BOOTTIME));

        log_overwrites(&tracker->overwrites);
        return r < 0 ? r : PHASE_ENDED;
}

/* Reads the consumers of the host if a retirement was requested. A host without a provider has
 * none. While the hypervisor cannot be polled, the present guests are not known, so the request
 * fails. */
static int begin_check(Tracker *tracker, Error *reterr)
{
        const Error *unpolled = &tracker->status.hypervisor_error;

        if (tracker->retirement.kind == RETIRE_NONE)
                return PHASE_SKIPPED;
        if (unpolled->code) {
                tracker->retirement.error = *unpolled;
                error_prefixf(&tracker->retirement.error, unpolled->code,
                              "The guests of this host are not known");
                return PHASE_SKIPPED;
        }
        if (reporter_tree(tracker->reporter)->n_providers == 0)
                return PHASE_ENDED;
        return reporter_gather(tracker->reporter, NULL, NULL, on_answer, tracker);
}

static int done_check(Tracker *tracker, Error *reterr)
{
        tracker->cycle.facts.removes = retirement_check(&tracker->retirement, &tracker->maker,
                                                        tracker->reporter, tracker->snapshot);
        return 0;
}

/* Ends the phase that removes the providers of the host from Placement. A failure is the error of
 * the retirement (retire.h), and not of the cycle, which reads Placement again and publishes the
 * tree. After a success the scope is CYCLE_RETIRED, so Placement is not read again. A requested
 * reshape is dropped then, because the end of the retirement must not begin it. */
static void on_removed(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        if (retirement_end(&tracker->retirement, &tracker->maker, result, error)) {
                tracker->cycle.facts.scope = CYCLE_RETIRED;
                tracker_status_note_apart(&tracker->status, SYNC_RETIRED);
                (void)reshape_control_cancel(tracker->reshape);
        }
        tracker_end_phase(tracker, 0, NULL);
}

/* Publishes an empty tree, which deletes all providers of the host. */
static int begin_remove(Tracker *tracker, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *nothing = NULL;
        int r = provider_tree_new(&nothing);

        overwrites_keep_tree(&tracker->overwrites, NULL);
        if (r >= 0)
                r = reporter_publish(tracker->reporter, nothing, NULL, on_removed, tracker);
        if (r < 0)
                on_removed(tracker->reporter, r, reterr, tracker);
        return PHASE_WAITS;
}

/* Handles the end of a reshape. Without a new tree, the old shape stays in use, and the cycle
 * continues and publishes it. So a refused reshape counts as done, and its reason is the error of
 * the cycle. Only an outage of Placement is a failure of the phase. */
static void on_reshaped(int result, ProviderTree *tree, const Error *device_error,
                        const Error *error, void *userdata)
{
        Tracker *tracker = userdata;
        TrackerStatus *status = &tracker->status;

        status->reshape_error = reshape_control_get_state(tracker->reshape)->error;
        if (status->reshape_error.code)
                tracker->cycle.error = status->reshape_error;
        if (tree)
                tracker_tree_reshaped(tracker, tree, device_error);
        tracker_end_phase(tracker, !tree && report_outcome_is_away(result) ? result : 0, error);
}

/* Begins a reshape if one is due: at the start, or because the operator requested it. The operator
 * can also request the undo of the last reshape, or only the document of a reshape. An undo is
 * skipped if the shape before that reshape was not saved, or cannot be read. A dry run never
 * reshapes. */
static int begin_reshape(Tracker *tracker, Error *reterr)
{
        bool needed = tracker->status.reshape_needed || tracker->status.reshape_left;
        int r;

        if (tracker->config.dry_run)
                return PHASE_SKIPPED;
        r = reshape_control_begin(tracker->reshape, needed,
                                  tracker_may(tracker, NOVA_ACTION_RESHAPE), &tracker->maker,
                                  tracker->reporter, tracker->snapshot, on_reshaped, tracker,
                                  reterr);
        tracker->status.reshape_error = reshape_control_get_state(tracker->reshape)->error;
        return r < 0 ? r : r > 0 ? PHASE_WAITS : PHASE_SKIPPED;
}

static void on_compared(void *userdata)
{
        Tracker *tracker = userdata;

        tracker->comparison_run = comparison_run_free(tracker->comparison_run);
        tracker_end_phase(tracker, 0, NULL);
}

/* Compares claims and guests, and repairs differences. Reads the consumers in Placement on whose
 * allocations a decision depends (agent/guests/comparison.h). After a confirmed warm start without
 * an audit, it reads what the last process would have read. Skipped in a dry run, and if
 * comparison_run_begin() returns 0: nothing is due, it has ended already, or memory is short. */
static int begin_consumers(Tracker *tracker, Error *reterr)
{
        bool asks;

        /* The stamp tells for which generations of providers the last process read their
         * allocations. It is restored only once, because a later comparison can have cleared it so
         * that the allocations are read again. */
        if (tracker->spares_audit && tracker->warm.held_stamp > 0 &&
            reporter_get_statistics(tracker->reporter)->is_restored) {
                claim_service_restore_held(tracker->maker.claims, tracker->warm.held_stamp);
                tracker->warm.held_stamp = 0;
        }
        asks = !tracker->config.dry_run &&
               comparison_run_begin(&tracker->comparison_run, tracker->maker.claims, tracker->event,
                                    tracker->reporter, &tracker->maker.root, on_compared,
                                    tracker) > 0;
        return asks ? PHASE_WAITS : PHASE_SKIPPED;
}

/* Keeps Placement's tree for the detection of another writer. A refused step leaves the rest of the
 * tree known. A step without an answer leaves none. */
static void keep_tree(Tracker *tracker)
{
        overwrites_keep_tree(&tracker->overwrites, reporter_is_current(tracker->reporter)
                                                           ? reporter_tree(tracker->reporter)
                                                           : NULL);
}

static void on_published(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Tracker *tracker = userdata;

        keep_tree(tracker);
        tracker_status_note_access(&tracker->status, reporter_get_statistics(reporter)->reshaper);
        tracker_end_phase(tracker, result, error);
}

/* Publishes the tree. A value that another writer keeps overwriting stays as it is in Placement
 * during its pause (overwrites.h). */
static int begin_publish(Tracker *tracker, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        int r = 0;

        if (overwrites_count(&tracker->overwrites) > 0)
                r = provider_tree_copy(&tree, tracker->tree);
        if (r >= 0 && tree)
                r = overwrites_yield(&tracker->overwrites, tree, reporter_tree(tracker->reporter),
                                     clock_usec(CLOCK_BOOTTIME));
        tracker->cycle.yields = r > 0;
        if (r >= 0)
                r = reporter_publish(tracker->reporter, tree ? tree : tracker->tree, NULL,
                                     on_published, tracker);
        return r;
}

/* Sets the error of the cycle, if it has none, when it has left values to another writer. */
static void note_yields(Tracker *tracker)
{
        _cleanup_free_ char *text = NULL;

        if (!tracker->cycle.yields || tracker->cycle.error.code)
                return;
        text = overwrites_describe(&tracker->overwrites);
        error_setf(&tracker->cycle.error, EBUSY,
                   "Another writer keeps overwriting these values in Placement: %s",
                   text ? text : "");
}

/* Notes the publication, and logs it if anything was written. An error of the status, for example
 * an unread part of the host, becomes the error of the cycle. */
static int done_publish(Tracker *tracker, Error *reterr)
{
        const ReporterStatistics *statistics = reporter_get_statistics(tracker->reporter);
        uint64_t n_writes = statistics->n_plan_writes - tracker->cycle.writes_before;
        const char *changes = statistics->changes;

        tracker_status_note_synced(&tracker->status);
        tracker->status.cycle_published = !tracker->cycle.yields;
        claim_service_note_published(tracker->maker.claims);
        keep_sync_error(tracker);
        note_yields(tracker);
        if (n_writes > 0)
                log_event(LOG_INFO, MESSAGE_PUBLISHED,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, tracker->maker.root.text),
                          "Published %zu resource provider%s of %s with %" PRIu64 " write%s%s%s.",
                          tracker->tree->n_providers, text_plural(tracker->tree->n_providers),
                          tracker->maker.nodename, n_writes, text_plural(n_writes),
                          changes ? ": " : "", changes ? changes : "");
        return 0;
}

/* Reads the facts that a plan needs besides the tree (reporter_prepare()): whether Placement has
 * the traits and classes, and whether the name of a new root is free. */
static int begin_prepare(Tracker *tracker, Error *reterr)
{
        return reporter_prepare(tracker->reporter, find_wanted(tracker), on_answer, tracker);
}

/* Writes the reserved amounts of whole PCI devices beside nova-compute. Sends nothing if Placement
 * has these amounts already, in a dry run, and if [agent] nova forbids it. */
static int begin_reserve(Tracker *tracker, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        const ProviderTree *remote = reporter_tree(tracker->reporter);
        int r = nova_tree_to_send(remote, tracker->wanted, &tracker->maker.root, &tree);

        if (r >= 0)
                r = overwrites_yield(&tracker->overwrites, tree, remote,
                                     clock_usec(CLOCK_BOOTTIME));
        tracker->cycle.yields = r > 0 && tracker_may(tracker, NOVA_ACTION_RESERVE);
        if (r < 0)
                return r;
        if (tracker->config.dry_run || !tracker_may(tracker, NOVA_ACTION_RESERVE) ||
            provider_tree_equal(tree, remote))
                return PHASE_ENDED;
        return reporter_publish(tracker->reporter, tree, NULL, on_published, tracker);
}

/* Counts the requests that would make the tree of nova-compute equal to the tree of the agent. */
static int done_reserve(Tracker *tracker, Error *reterr)
{
        _cleanup_(plan_freep) Plan *plan = NULL;
        int r = reporter_plan(tracker->reporter, tracker->wanted, NULL, &plan, reterr);

        if (r < 0)
                return r;
        keep_tree(tracker);
        tracker_status_note_left(&tracker->status, plan->n_steps);
        note_yields(tracker);
        return 0;
}

static void on_audited(void *userdata)
{
        tracker_end_phase(userdata, 0, NULL);
}

/* Omits the first audit of a warm start if the saved mirror is correct. If Placement differs from
 * it, a provider changed while the agent was stopped, and the audit stays due. */
static void judge_spared_audit(Tracker *tracker)
{
        if (tracker->spares_audit && reporter_get_statistics(tracker->reporter)->is_restored)
                auditor_spare(tracker->auditor, tracker->warm.audited_usec);
        tracker->spares_audit = false;
}

/* Begins an audit if one is due (auditor_is_due()). If the audit cannot begin, its callers get the
 * reason, and the cycle continues. */
static int begin_audit(Tracker *tracker, Error *reterr)
{
        judge_spared_audit(tracker);
        if (tracker->config.dry_run ||
            (!tracker->cycle.audits && !auditor_is_due(tracker->auditor, find_hindrance(tracker))))
                return PHASE_SKIPPED;
        if (auditor_begin(tracker->auditor, tracker->reporter, find_hindrance(tracker), on_audited,
                          tracker, reterr) >= 0)
                return PHASE_WAITS;
        auditor_give_up(tracker->auditor, reterr);
        return PHASE_SKIPPED;
}

/* Begins CYCLE_END, which ends after the main loop has served the calls that have arrived. With
 * many claims, the phases before it take long. */
static int begin_soon(Tracker *tracker, Error *reterr)
{
        (void)sd_event_source_set_time_relative(tracker->soon, BREATH_USEC);
        (void)sd_event_source_set_enabled(tracker->soon, SD_EVENT_ONESHOT);
        return PHASE_WAITS;
}

/* Reconciles claims and guests without a read of Placement, after calls that have arrived were
 * served. If a check was skipped, differences that need answers are left to the next cycle
 * (was_calm()). This phase follows all that read Placement: claims name providers by uuid, and a
 * read can show other uuids than the host expects. Skipped if nothing is due, and in a dry run. */
static int begin_reconcile(Tracker *tracker, Error *reterr)
{
        ReconcileAccess word = !tracker->config.reporter ? RECONCILE_NO_PLACEMENT
                               : tracker->cycle.facts.scope == CYCLE_UNCHANGED ? RECONCILE_CAN_READ
                                                                               : RECONCILE_NO_READS;
        bool runs = !tracker->config.dry_run &&
                    comparison_run_begin_alone(&tracker->comparison_run, tracker->maker.claims,
                                               tracker->event, word, on_compared, tracker) > 0;

        return runs ? PHASE_WAITS : PHASE_SKIPPED;
}

/* Returns the sum of the generations in Placement's tree. Any write to the tree changes it, but not
 * the removal of an allocation. */
static int64_t sum_tree(const Tracker *tracker)
{
        const ProviderTree *tree = tracker->reporter ? reporter_tree(tracker->reporter) : NULL;
        int64_t sum = 0;

        for (size_t i = 0; tree && i < tree->n_providers; i++)
                sum += 1 + reporter_get_generation(tracker->reporter, &tree->providers[i]->uuid);
        return sum;
}

/* Returns true if the state is synced or left to nova-compute, the last poll succeeded, and this
 * cycle found no change of Placement and no question to it. A cycle that skipped its check and
 * found a question is followed at once by one that asks. */
static bool was_calm(Tracker *tracker)
{
        SyncState state = tracker->status.sync_state;
        int64_t before = tracker->generations;
        bool asks = tracker->maker.claims->comparison.wants_answers;

        if (tracker->cycle.spoke)
                tracker->generations = sum_tree(tracker);
        tracker->again |= asks && tracker->cycle.facts.scope == CYCLE_UNCHANGED;
        return !asks && tracker->generations == before && !tracker->status.hypervisor_error.code &&
               (state == SYNC_SYNCED || state == SYNC_LEFT_TO_NOVA);
}

/* Notes the result of this cycle in the pace. Only an outage of Placement and a conflict count as
 * failures there, not a refusal. Returns the pause before the next cycle, the shortest of the pace,
 * of a wait for devices, and of the end of a device's hold. */
static uint64_t next_pause_usec(Tracker *tracker)
{
        DeviceWatch *watch = tracker->maker.device_watch;
        SyncState state = tracker->status.sync_state;
        uint64_t now = clock_usec(CLOCK_BOOTTIME), pause_usec, due_in_usec;

        if (!was_calm(tracker))
                cycle_pace_note_change(&tracker->pace, clock_usec(CLOCK_BOOTTIME));
        if (tracker->cycle.spoke)
                cycle_pace_note_placement(
                        &tracker->pace, state == SYNC_OFFLINE || state == SYNC_PENDING,
                        tracker->reporter
                                ? reporter_get_statistics(tracker->reporter)->retry_after_usec
                                : 0,
                        now);
        pause_usec =
                cycle_pace_next_usec(&tracker->pace, !tracker->status.hypervisor_error.code, now);
        if (tracker->status.settling.code)
                pause_usec = MIN(pause_usec, SETTLE_POLL_USEC);
        /* Publish the end of a device's hold in time, even if no other event begins a cycle. */
        due_in_usec = watch ? device_watch_due_in_usec(watch) : UINT64_MAX;
        return MIN(pause_usec, due_in_usec);
}

void tracker_call_waiters(Tracker *tracker, const Error *error, bool put_off)
{
        /* A waiter can add or cancel waiters, so restart the iteration after each. */
        for (size_t i = 0; i < tracker->n_waiters;) {
                CycleWaiter waiter = tracker->waiters[i];

                if (waiter.asked >= tracker->n_begun || (put_off && waiter.publication)) {
                        i++;
                        continue;
                }
                array_close(tracker->waiters, sizeof(CycleWaiter), &tracker->n_waiters, i);
                waiter.done(tracker, error, waiter.userdata);
                i = 0;
        }
}

/* Ends the cycle: sets the timer and calls the waiters. The timer is set first, because a waiter
 * can request another cycle. */
static int begin_idle(Tracker *tracker, Error *reterr)
{
        uint64_t pause_usec = next_pause_usec(tracker);

        tracker->status.n_cycles++;
        if (!tracker->cycle.error.code)
                tracker->cycle.error = tracker->status.hypervisor_error;
        tracker_arm_timer(tracker, tracker->again ? 0 : pause_usec);
        tracker->again = false;
        tracker->config.changed(tracker, tracker->config.userdata);
        tracker_call_waiters(tracker, &tracker->cycle.error, tracker->status.settling.code != 0);
        return PHASE_WAITS;
}

/* The functions of each phase. The result of begin() is PHASE_WAITS, PHASE_ENDED, PHASE_SKIPPED or
 * a negative errno. After a success, but not after PHASE_SKIPPED, done() runs and returns 0 or a
 * failure. */
static const struct {
        int (*begin)(Tracker *tracker, Error *reterr);
        int (*done)(Tracker *tracker, Error *reterr); /* handles the answer; NULL: nothing to do */
} phases[_CYCLE_PHASE_MAX] = {
        [CYCLE_IDLE] = { begin_idle, NULL },
        [CYCLE_POLL] = { begin_poll, done_poll },
        [CYCLE_READ] = { begin_read, tracker_tree_after_read },
        [CYCLE_HOLDERS] = { begin_holders, done_holders },
        [CYCLE_OVERWRITES] = { begin_overwrites, NULL },
        [CYCLE_CHECK] = { begin_check, done_check },
        [CYCLE_REMOVE] = { begin_remove, NULL },
        [CYCLE_RESHAPE] = { begin_reshape, NULL },
        [CYCLE_CONSUMERS] = { begin_consumers, NULL },
        [CYCLE_PUBLISH] = { begin_publish, done_publish },
        [CYCLE_PREPARE] = { begin_prepare, NULL },
        [CYCLE_RESERVE] = { begin_reserve, done_reserve },
        [CYCLE_AUDIT] = { begin_audit, NULL },
        [CYCLE_RECONCILE] = { begin_reconcile, NULL },
        [CYCLE_END] = { begin_soon, NULL },
};

/* Notes a failed phase. If the next phase is CYCLE_READ, the cycle is retried, and nothing is
 * logged as a failure. If no audit follows, a requested audit fails with the same reason. */
static void note_failure(Tracker *tracker, CyclePhase next, int result, const Error *error)
{
        if (next == CYCLE_READ) {
                log_debug("Another writer changed the tree in Placement. Reading it again.");
                tracker->cycle.facts.n_retries++;
                tracker->cycle.facts.retries_in_use &= result != REPORT_E_IN_USE;
                return;
        }
        tracker_status_note_failure(&tracker->status, result, error);
        keep_sync_error(tracker);
        if (next != CYCLE_AUDIT)
                auditor_give_up(tracker->auditor, &tracker->status.sync_error);
}

void tracker_end_phase(Tracker *tracker, int result, const Error *error)
{
        Error words = error ? *error : ERROR_NULL;
        int r = PHASE_ENDED;

        while (r != PHASE_WAITS) {
                CyclePhase next;

                if (result == 0 && r == PHASE_ENDED && phases[tracker->phase].done)
                        result = phases[tracker->phase].done(tracker, &words);
                next = cycle_next(tracker->phase, r == PHASE_SKIPPED ? CYCLE_SKIPPED : result,
                                  &tracker->cycle.facts);
                if (result != 0)
                        note_failure(tracker, next, result, &words);
                tracker->phase = next;
                words = ERROR_NULL;
                r = phases[next].begin(tracker, &words);
                result = MIN(r, 0);
        }
}
