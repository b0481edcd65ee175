/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Creates the parts of the daemon, connects them, and replaces some of them in a reload. An Engine
 * has all parts that depend on the configuration. A reload makes a second engine, and replaces the
 * first one only if every part could be made. The claims, the cordons, the retained inventories,
 * the claim queue, the bus, the monitor of health, the cleaner and the watch of partitions exist as
 * long as the process. The last five are missing with --once and --dry-run. set_up() makes the
 * event loop, locks the state directory and loads the identity before the other parts. A dry run
 * takes no lock. After each cycle, unless Placement is offline, the queue does a round of settling:
 * it sends the pending writes, removals and moves of claims to Placement. After each cycle, and
 * each round that ran a task, this file updates systemd's status line, the bus and the metrics. A
 * reload is refused if state_dir, claim_db, host or the identity would change. It ends with the
 * first cycle of the new engine, after 30 s at the latest. A failure of set_up() ends the program.
 * So does a failed reshape of the start, with on_startup_failure = exit. Other failures of the
 * hypervisor or of Placement do not end the service.
 *
 * Tests: tests/integration/agent/test_reload.py tests/integration/agent/test_agent.py */

#include "agent/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "agent/bus/bus.h"
#include "agent/cycle/cleaner.h"
#include "agent/cycle/metrics.h"
#include "agent/cycle/partitions.h"
#include "agent/cycle/tracker.h"
#include "agent/cycle/verdict.h"
#include "agent/guests/comparison.h"
#include "agent/health/monitor.h"
#include "agent/placing/decide.h"
#include "agent/placing/queue.h"
#include "agent/state/identity.h"
#include "agent/state/last-run.h"
#include "agent/state/state-file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"
#include "config/config-digest.h"
#include "drivers/registry.h"
#include "report/publish/step.h"

/* The parts that depend on the configuration. A reload replaces all of them together. */
typedef struct Engine {
        Config *config;
        Driver *driver;
        DeviceWatch *device_watch;
        ProviderConfig *provider_config;
        Tracker *tracker;
} Engine;

/* The daemon: the current engine, and the parts that exist as long as the process. */
typedef struct Daemon {
        int lock_fd; /* lock of the state directory */
        Engine engine;
        const char *config_file;
        DaemonMode mode;
        Uuid root;
        sd_event *event;
        ClaimService *claims;
        Cordon *cordon;
        Retained *retained;
        HealthMonitor *health; /* NULL in other modes than DAEMON_SERVE */
        HealthView health_view;
        ClaimQueue *queue;
        Cleaner *cleaner;           /* NULL with --once and --dry-run */
        PartitionWatch *partitions; /* the same */
        BusService *bus;
        bool is_reloading;      /* a reload waits for its first cycle */
        bool reload_again;      /* a SIGHUP arrived during a reload */
        uint64_t n_cycles;      /* cycles of the tracker whose end on_changed() has handled */
        bool logged_no_metrics; /* the failure to write the metrics was logged */
        StartReason start_reason;
        char status[VERDICT_LINE_MAX]; /* last text that systemd has received */
        bool is_past_start; /* a reload replaced settings whose [agent] nova forbids reshapes, so a
                               later reshape does not belong to the start of the service */
        int exit_code;
} Daemon;

void daemon_notify_failed(const char *words)
{
        (void)sd_notifyf(false, "STATUS=failed: %s", words);
}

/* Frees an engine. The tracker is first, because it borrows the other parts. */
static void engine_done(Engine *engine)
{
        tracker_free(engine->tracker);
        provider_config_free(engine->provider_config);
        device_watch_free(engine->device_watch);
        driver_free(engine->driver);
        config_free(engine->config);
        *engine = (Engine){ 0 };
}

static void daemon_done(Daemon *daemon)
{
        cleaner_free(daemon->cleaner);
        partition_watch_free(daemon->partitions);
        bus_service_free(daemon->bus);
        claim_queue_free(daemon->queue);
        health_monitor_free(daemon->health);
        engine_done(&daemon->engine);
        claim_service_free(daemon->claims);
        cordon_free(daemon->cordon);
        retained_free(daemon->retained);
        sd_event_unref(daemon->event);
        closep(&daemon->lock_fd);
}

/* Collects the facts about the last cycle and the pending writes of the queue. Makes the verdict
 * from them: the state of this host and its reasons (agent/cycle/verdict.h). Blocks on the disk of
 * the claim database. */
static void look(const Daemon *daemon, CycleFacts *ret, Verdict *ret_verdict)
{
        PendingWrites pending_writes = { 0 };
        const char *trouble =
                daemon->queue ? claim_queue_count_pending_writes(daemon->queue, &pending_writes)
                              : NULL;

        cycle_facts_look(daemon->engine.tracker, &pending_writes, trouble, ret);
        verdict_make(ret, ret_verdict);
}

/* Writes the metrics file of the service, if one is configured. Runs at the end of each cycle, and
 * after a round of settling that ran a task. */
static void save_metrics(Daemon *daemon)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        Claims *claims = daemon->claims->claims;
        const char *path = daemon->engine.config->metrics_file;
        Error error = ERROR_NULL;
        CycleFacts facts;
        Verdict verdict;
        int r;

        if (!path || daemon->mode != DAEMON_SERVE)
                return;
        if (claims && claims_list(claims, CLAIMS_WITH_DEVICES, NULL, &list, NULL) != 0)
                claim_list_done(&list);
        look(daemon, &facts, &verdict);
        r = metrics_save(&facts, &verdict, &list, path, &error);
        if (r < 0 && !daemon->logged_no_metrics)
                log_warning("No metrics: %s. Retrying.", error_text(&error, r));
        daemon->logged_no_metrics = r < 0;
}

/* Ends the service if the reshape of the start failed, and [agent] on_startup_failure is exit. */
static void end_without_shape(Daemon *daemon)
{
        const ReshapeState *reshape =
                reshape_control_get_state(tracker_view(daemon->engine.tracker).reshape);

        if (daemon->mode != DAEMON_SERVE ||
            daemon->engine.config->on_startup_failure != CONFIG_STARTUP_EXIT ||
            daemon->is_past_start || !reshape->start_error.code || daemon->exit_code)
                return;
        log_error("Exiting, because [agent] on_startup_failure is exit.");
        daemon_notify_failed(reshape->start_error.text);
        daemon->exit_code = EXIT_FAILURE;
        (void)sd_event_exit(daemon->event, 0);
}

/* Updates systemd's status line, if it has changed. Notifies the bus, which compares values. */
static void notify(Daemon *daemon)
{
        CycleFacts facts;
        Verdict verdict;

        look(daemon, &facts, &verdict);
        if (strcmp(verdict.line, daemon->status) != 0) {
                strcpy(daemon->status, verdict.line);
                (void)sd_notifyf(false, "STATUS=%s", verdict.line);
        }
        if (daemon->bus)
                bus_service_changed(daemon->bus, false);
}

/* Shows the result of a round of settling in the status line, on the bus and in the metrics. */
static void on_settled(void *userdata)
{
        notify(userdata);
        save_metrics(userdata);
}

/* Handles a change of the tracker's status. Notifies systemd and the bus. After each cycle, also
 * writes the metrics, starts compute-agent-prepare if its work is unfinished, and looks at devices
 * to clean and at partitions. A round of settling follows, unless Placement is known to be
 * offline. */
static void on_changed(Tracker *tracker, void *userdata)
{
        Daemon *daemon = userdata;
        const TrackerStatus *status = tracker_view(tracker).status;
        bool cycle_ended = status->n_cycles != daemon->n_cycles;

        daemon->n_cycles = status->n_cycles;
        notify(daemon);
        if (cycle_ended)
                save_metrics(daemon);
        if (cycle_ended && daemon->mode == DAEMON_SERVE)
                prepare_wanted_tend(&daemon->claims->wanted, &daemon->engine.config->driver.host);
        if (cycle_ended && daemon->cleaner)
                cleaner_tend(daemon->cleaner);
        if (cycle_ended && daemon->partitions)
                partition_watch_tend(daemon->partitions);
        if (daemon->queue)
                claim_queue_tend(daemon->queue, status->sync_state == SYNC_OFFLINE, cycle_ended);
        end_without_shape(daemon);
}

/* Returns -EBADMSG if a guest without a claim could not be read: it might use any device. A guest
 * with a claim has the devices of its claim. */
static int check_read(Daemon *daemon, const Snapshot *snapshot, Error *reterr)
{
        Claims *claims = daemon->claims->claims;

        for (size_t i = 0; claims && i < snapshot->n_domains; i++) {
                _cleanup_(claim_list_done) ClaimList list = { 0 };
                const SnapshotDomain *domain = &snapshot->domains[i];

                if (domain->unread &&
                    (claims_list(claims, CLAIMS_OF_GUEST, domain->uuid.text, &list, NULL) != 0 ||
                     list.n_claims == 0))
                        return error_setf(
                                reterr, EBADMSG,
                                "cannot read guest %.60s (\"computectl status\" shows the reason)",
                                domain->name);
        }
        return 0;
}

/* Handles the end of a poll: the tasks of the queue that wait for the guests continue or fail.
 * Ignores a tracker that is being replaced. */
static void on_looked(Tracker *tracker, uint64_t began_usec, const Error *error, void *userdata)
{
        Daemon *daemon = userdata;
        Error unread = *error;

        if (!daemon->queue || tracker != daemon->engine.tracker)
                return;
        if (!unread.code)
                (void)check_read(daemon, tracker_view(tracker).snapshot, &unread);
        claim_queue_refreshed(daemon->queue, CLAIM_REFRESH_GUESTS, began_usec, &unread);
}

/* Prints the requests of the next publication, and what they leave different. */
static void print_plan(Tracker *tracker, Error *reterr)
{
        _cleanup_(plan_freep) Plan *plan = NULL;
        const Error why = tracker_status_why_unequal(tracker_view(tracker).status, false);
        int r = tracker_plan(tracker, &plan, reterr);

        if (r < 0) {
                error_setf(reterr, r, "%s", error_text(reterr, r));
                return;
        }
        if (why.code)
                printf("Placement stays different from this host: %s.\n", why.text);
        else if (plan->n_steps == 0)
                puts("Nothing to do: Placement is equal to this host.");
        for (size_t i = 0; i < plan->n_steps; i++) {
                _cleanup_(placement_request_done) PlacementRequest request =
                        plan_step_request(&plan->steps[i]);

                printf("%s %s", request.method, request.path ? request.path : "?");
                printf("%s%s\n", plan->steps[i].summary[0] ? "  # " : "", plan->steps[i].summary);
        }
}

/* Ends the program after its only cycle. */
static void on_only_cycle_ended(Tracker *tracker, const Error *error, void *userdata)
{
        Daemon *daemon = userdata;
        const TrackerStatus *status = tracker_view(tracker).status;
        Error words = *error;

        if (!words.code && daemon->mode == DAEMON_DRY_RUN)
                print_plan(tracker, &words);
        else if (!words.code && !status->cycle_published)
                error_setf(&words, ENODATA, "Nothing was published, because %s",
                           tracker_status_why_apart(status));
        if (words.code)
                log_error("The cycle was not completed: %s", words.text);
        daemon->exit_code = words.code ? EXIT_FAILURE : EXIT_SUCCESS;
        (void)sd_event_exit(daemon->event, 0);
}

/* Returns the current snapshot if the new settings use the same hypervisor, else NULL. With it, the
 * new tracker knows the host even if the hypervisor does not answer. */
static const Snapshot *get_known_host(const Daemon *daemon, const Config *new)
{
        const Config *old = daemon->engine.config;
        bool same;

        if (!daemon->engine.tracker)
                return NULL;
        same = strcmp(old->compute_driver, new->compute_driver) == 0 &&
               strcmp(old->driver.libvirt.connection_uri, new->driver.libvirt.connection_uri) ==
                       0 &&
               strcmp(old->driver.static_path ? old->driver.static_path : "",
                      new->driver.static_path ? new->driver.static_path : "") == 0;
        return same ? tracker_view(daemon->engine.tracker).snapshot : NULL;
}

static Claims *get_claims(ClaimService *service)
{
        return service->claims;
}

/* Makes the tracker of an engine. The warm start and the delays of a start apply only to the first
 * tracker in the mode DAEMON_SERVE. */
static int make_tracker(Daemon *daemon, Engine *engine, Error *reterr)
{
        int r;
        const TrackerStatus *before =
                daemon->engine.tracker ? tracker_view(daemon->engine.tracker).status : NULL;
        bool starts = !before && daemon->mode == DAEMON_SERVE;
        TrackerConfig tracker_config = {
                .driver = engine->driver,
                .maker = { .config = &engine->config->driver.host,
                           .device_watch = engine->device_watch,
                           .claims = daemon->claims,
                           .get_claims = get_claims,
                           .list_left = partitions_list_left,
                           .cordon = daemon->cordon,
                           .retained = engine->config->has_placement ? daemon->retained : NULL,
                           .provider_config = engine->provider_config,
                           .foreign_traits = engine->config->foreign_traits,
                           .root = daemon->root },
                .reporter = engine->config->has_placement ? &engine->config->reporter : NULL,
                .known = get_known_host(daemon, engine->config),
                .interval_usec = engine->config->update_interval_usec,
                .quiet_max_usec = engine->config->quiet_max_usec,
                .dry_run = daemon->mode == DAEMON_DRY_RUN,
                .starts = !before ||
                          reshape_control_get_state(tracker_view(daemon->engine.tracker).reshape)
                                  ->at_start,
                .warm = starts,
                .last_sync_usec = before ? before->last_sync_usec : 0,
                .warnings = &engine->config->warnings,
                .start_reason = daemon->start_reason,
                .health = &daemon->health_view,
                .state_dir = engine->config->state_dir,
                .reshape_patience_usec = engine->config->reshape_patience_usec,
                .device_settle_usec = starts ? engine->config->device_settle_usec : 0,
                .start_jitter_usec = starts ? engine->config->start_jitter_usec : 0,
                .audit_grace_usec = engine->config->claim_expiry_usec,
                .heal_cycles = engine->config->heal_cycles,
                .changed = on_changed,
                .looked = on_looked,
                .userdata = daemon,
        };

        r = config_make_digest(engine->config, &tracker_config.digest);
        if (r < 0)
                return error_oom(reterr);
        return tracker_new(&engine->tracker, daemon->event, &tracker_config, reterr);
}

/* Makes an engine from config. Takes ownership of config, also after an error. No step after the
 * tracker can fail, because a new tracker replaces the old one as the watcher of the claims. */
static int make_engine(Daemon *daemon, Config *config, Engine *ret, Error *reterr)
{
        _cleanup_(engine_done) Engine engine = { .config = config };
        bool read_only = daemon->mode == DAEMON_DRY_RUN;
        int r = driver_new(&engine.driver, config->compute_driver, &config->driver,
                           daemon->engine.driver, reterr);

        if (r < 0)
                return r;
        r = provider_config_new(&engine.provider_config, config->provider_config_location,
                                config->state_dir, config->driver.host.owner_trait, read_only,
                                reterr);
        if (r >= 0)
                r = device_watch_new(&engine.device_watch, config->state_dir, &config->driver.host,
                                     config->device_specs, config->device_hold_usec, read_only,
                                     reterr);
        if (r >= 0)
                r = make_tracker(daemon, &engine, reterr);
        if (r < 0)
                return r;
        cordon_set_host(daemon->cordon, &config->driver.host);
        *ret = TAKE_STRUCT(engine);
        return 0;
}

static void on_config_warning(const char *text, void *userdata)
{
        log_warning("%s", text);
}

/* Announces the start of a reload to systemd. READY=1 announces its end, in end_reload() or after a
 * rejected configuration. */
static void notify_reload(void)
{
        (void)sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                         clock_usec(CLOCK_MONOTONIC));
}

/* Rejects a change of the options that need a restart, because the lock, the claim database or the
 * name of the host depend on them. */
static int check_lasting(const Daemon *daemon, const Config *new, Error *reterr)
{
        const Config *old = daemon->engine.config;
        const struct {
                const char *name, *before, *after;
        } lasting[] = {
                { "[agent] state_dir", old->state_dir, new->state_dir },
                { "[DEFAULT] claim_db", old->claim_db, new->claim_db },
                { "[DEFAULT] host", old->host, new->host },
        };

        for (size_t i = 0; i < ARRAY_SIZE(lasting); i++)
                if (strcmp(lasting[i].before, lasting[i].after) != 0)
                        return error_setf(
                                reterr, EBUSY,
                                "%s cannot change while the agent runs. Restart it (systemctl restart compute-agent)",
                                lasting[i].name);
        return 0;
}

/* Rejects a change of the host's identity (compute_id). If the file is gone, writes it again with
 * the identity of this process. */
static int check_identity(const Daemon *daemon, const Config *new, Error *reterr)
{
        _cleanup_free_ char *path = NULL;
        Uuid root;
        int r = identity_find(new, &root, &path, reterr);

        if (r == 0) {
                log_warning("The identity of this host (compute_id) was missing. Writing %s again.",
                            daemon->root.text);
                return identity_replace(new, &daemon->root, false, reterr);
        }
        if (r < 0)
                return r;
        if (strcmp(root.text, daemon->root.text) != 0)
                return error_setf(
                        reterr, EBUSY,
                        "The identity of this host (compute_id) changed from %s to %s. Restart the agent to use it",
                        daemon->root.text, root.text);
        return 0;
}

/* Derives the settings of the claims from the configuration. */
static ClaimSettings claim_settings(const Config *config)
{
        return (ClaimSettings){
                .driver = &config->driver.host,
                .expiry_usec = config->claim_expiry_usec,
                .with_placement = config->has_placement,
                .started_only = config->hook_enabled,
                .writes_guests = config->hook_enabled && config->has_placement &&
                                 !claim_decide_refuses(config->claim_mode, config->reporter.nova),
                .gives_unclean = config_leaves_unclean(config),
        };
}

/* Replaces the engine and takes ownership of the new one. Cannot fail. Calls that wait for the old
 * tracker and tasks of the queue get an error, because they use the old engine. */
static void put_in_force(Daemon *daemon, Engine *engine)
{
        const Config *config = engine->config;
        const ClaimSettings settings = claim_settings(config);

        reshape_control_inherit(tracker_view(engine->tracker).reshape,
                                tracker_view(daemon->engine.tracker).reshape);
        if (config->has_placement)
                auditor_inherit(tracker_view(engine->tracker).auditor,
                                tracker_view(daemon->engine.tracker).auditor);
        bus_service_set_tracker(daemon->bus, engine->tracker, config->hook);
        tracker_dismiss(daemon->engine.tracker, "The agent was reloaded during this operation");
        claim_queue_dismiss(daemon->queue, "The agent was reloaded during this claim. Try again");
        claim_queue_set_mode(daemon->queue, config->claim_mode, config->reporter.nova,
                             config->has_placement);
        claim_service_set(daemon->claims, &settings);
        daemon->engine.driver->replaced = true;
        engine_done(&daemon->engine);
        daemon->engine = *engine;
        daemon->n_cycles = 0;
        health_monitor_reload(daemon->health);
        log_set_level(config->log_level);
        on_changed(daemon->engine.tracker, daemon);
}

/* Reads the configuration and replaces the engine. After an error, the old engine stays in use. */
static int replace(Daemon *daemon, Error *reterr)
{
        _cleanup_(config_freep) Config *config = NULL;
        Engine engine;
        int r = config_load(&config, daemon->config_file, on_config_warning, NULL, reterr);

        if (r < 0)
                return r;
        r = check_lasting(daemon, config, reterr);
        if (r < 0)
                return r;
        r = check_identity(daemon, config, reterr);
        if (r < 0)
                return r;
        r = make_engine(daemon, TAKE_PTR(config), &engine, reterr);
        if (r < 0)
                return r;
        if (nova_mode_refuses(daemon->engine.config->reporter.nova, NOVA_ACTION_RESHAPE))
                daemon->is_past_start = true;
        put_in_force(daemon, &engine);
        return 0;
}

/* Ends the reload. If a SIGHUP arrived during it, begins another reload. */
static void end_reload(Daemon *daemon)
{
        daemon->is_reloading = false;
        log_event(LOG_INFO, MESSAGE_RELOADED, NULL, "The configuration was reloaded.");
        (void)sd_notify(false, "READY=1");
        /* Send a signal, because the tracker that called this function must return first. */
        if (daemon->reload_again)
                (void)kill(getpid(), SIGHUP);
        daemon->reload_again = false;
}

/* Ends the reload, also if the cycle has failed or takes long: the settings are in force. */
static void on_first_cycle(Tracker *tracker, const Error *error, void *userdata)
{
        end_reload(userdata);
}

/* Reloads the configuration (BusConfig.reload, SIGHUP). Returns 0 if the new settings are in force,
 * before their first cycle. Returns -EBUSY during another reload, or if it needs a restart. */
static int reload(void *userdata, Error *reterr)
{
        Daemon *daemon = userdata;
        Error error = ERROR_NULL;
        int r;

        if (daemon->is_reloading)
                return error_setf(reterr, EBUSY, "The configuration is already being reloaded");
        notify_reload();
        r = replace(daemon, &error);
        if (r < 0) {
                log_event(LOG_ERR, MESSAGE_RELOAD_REFUSED, NULL,
                          "The configuration was not reloaded, and the old one stays active: %s",
                          error_text(&error, r));
                (void)sd_notify(false, "READY=1");
                return error_setf(reterr, r, "%s", error_text(&error, r));
        }
        daemon->is_reloading = true;
        if (tracker_sync(daemon->engine.tracker, TRACKER_RELOAD, on_first_cycle, daemon) < 0)
                end_reload(daemon);
        return 0;
}

/* Signals: TERM and INT end the loop (sd-event's own handler), HUP reloads */

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Daemon *daemon = userdata;

        if (daemon->is_reloading)
                daemon->reload_again = true;
        else if (daemon->mode == DAEMON_SERVE)
                (void)reload(daemon, NULL);
        return 0;
}

/* Creates the loop with its signals and the watchdog. */
static int set_up_event(Daemon *daemon)
{
        int r;

        /* A write that meets a file size limit must fail, and not end the daemon. */
        if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
                return -errno;
        r = sd_event_new(&daemon->event);
        /* Block the signals before any thread exists, so that all threads inherit the mask. */
        if (r >= 0)
                r = sd_event_set_signal_exit(daemon->event, true);
        if (r >= 0)
                r = sd_event_add_signal(daemon->event, NULL, SIGHUP | SD_EVENT_SIGNAL_PROCMASK,
                                        on_hangup, daemon);
        if (r >= 0)
                r = sd_event_set_watchdog(daemon->event, true);
        return MIN(r, 0);
}

/* Creates the claims, the cordons and the retained inventories, and closes the claims by the
 * cordons. A dry run opens no database. */
static int set_up_claims(Daemon *daemon, Error *reterr)
{
        const Config *config = daemon->engine.config;
        _cleanup_free_ char *path = text_format("%s/%s", config->state_dir, config->claim_db);
        char host[HOST_NAME_MAX + 1] = "";
        const ClaimSettings settings = claim_settings(config);
        bool read_only = daemon->mode == DAEMON_DRY_RUN;
        int r;

        if (!path)
                return error_oom(reterr);
        if (config->host[0] == '\0' && gethostname(host, sizeof(host) - 1) < 0)
                return error_setf(reterr, errno, "Cannot read the host's name: %s",
                                  strerror(errno));
        if (claim_service_new(&daemon->claims, read_only ? NULL : path,
                              config->host[0] ? config->host : host, &settings) < 0)
                return error_oom(reterr);
        r = cordon_new(&daemon->cordon, config->state_dir, read_only, reterr);
        if (r >= 0)
                r = retained_new(&daemon->retained, config->state_dir, read_only, reterr);
        if (r < 0)
                return r;
        claim_service_set_closed(daemon->claims, cordon_view(daemon->cordon).host,
                                 cordon_view(daemon->cordon).devices);
        return 0;
}

/* Returns the host for the health rules. */
static HealthHost get_health_host(void *userdata)
{
        Daemon *daemon = userdata;
        TrackerView view = { 0 };

        if (daemon->engine.tracker)
                view = tracker_view(daemon->engine.tracker);
        return (HealthHost){ .tree = view.tree, .snapshot = view.snapshot, .nova = view.nova };
}

/* Requests a cycle that publishes the cordons of health rules, and shows the state of the rules. */
static void on_health_changed(bool cordons, void *userdata)
{
        Daemon *daemon = userdata;

        if (!daemon->engine.tracker || !daemon->bus)
                return;
        if (cordons) {
                bus_service_changed(daemon->bus, true);
                if (tracker_sync(daemon->engine.tracker, TRACKER_PUBLISH_CORDON, NULL, NULL) < 0)
                        log_warning("Out of memory. The next cycle publishes the cordon.");
        }
        notify(daemon);
}

/* Creates the monitor of health. It begins in the main loop, when tree and snapshot are known. */
static int set_up_health(Daemon *daemon, Error *reterr)
{
        const HealthMonitorConfig health_config = {
                .event = daemon->event,
                .state_dir = daemon->engine.config->state_dir,
                .root = daemon->root,
                .cordon = daemon->cordon,
                .claims = daemon->claims,
                .get_host = get_health_host,
                .view = &daemon->health_view,
                .changed = on_health_changed,
                .userdata = daemon,
        };
        int r = daemon->mode == DAEMON_SERVE ? health_monitor_new(&daemon->health, &health_config)
                                             : 0;

        return r < 0 ? error_setf(reterr, r, "Cannot set up the health rules: %s", strerror(-r))
                     : 0;
}

/* Returns the session of the current tracker with Placement; with writes, the one to write
 * allocations (TrackerView.writer). NULL: there is no tracker, or it has no such session. */
static Session *get_session(bool writes, void *userdata)
{
        const Tracker *tracker = ((const Daemon *)userdata)->engine.tracker;

        return !tracker ? NULL
               : writes ? tracker_view(tracker).writer
                        : tracker_view(tracker).session;
}

/* Reports to the queue that a cycle, which might have failed, has ended. Passes the time at which
 * the cycle began, because the data can lack later changes. */
static void on_refreshed(Tracker *tracker, const Error *error, void *userdata)
{
        Daemon *daemon = userdata;

        claim_queue_refreshed(daemon->queue, CLAIM_REFRESH_HOST,
                              tracker_view(tracker).status->cycle_began_usec, &ERROR_NULL);
}

/* Refreshes data for the queue (ClaimQueueConfig.refresh). The guests need only a poll. The host
 * needs a cycle, which also asks Placement about each claim without a guest. No cycle is requested
 * while the hypervisor or Placement does not answer. */
static int refresh(ClaimRefresh what, void *userdata, Error *reterr)
{
        Daemon *daemon = userdata;
        Tracker *tracker = daemon->engine.tracker;
        const TrackerStatus *status = tracker_view(tracker).status;

        if (what == CLAIM_REFRESH_GUESTS)
                return tracker_look(tracker, reterr);
        if (status->hypervisor_error.code || status->sync_state == SYNC_OFFLINE)
                return error_setf(reterr, EAGAIN, "The hypervisor or Placement does not answer");
        claim_service_ask_all(daemon->claims);
        return tracker_sync(tracker, TRACKER_SYNC, on_refreshed, daemon);
}

static int set_up_queue(Daemon *daemon, Error *reterr)
{
        const Config *config = daemon->engine.config;
        const ClaimQueueConfig queue_config = {
                .event = daemon->event,
                .service = daemon->claims,
                .root = daemon->root,
                .session = get_session,
                .settled = on_settled,
                .refresh = refresh,
                .userdata = daemon,
        };

        if (claim_queue_new(&daemon->queue, &queue_config) < 0)
                return error_oom(reterr);
        claim_queue_set_mode(daemon->queue, config->claim_mode, config->reporter.nova,
                             config->has_placement);
        return 0;
}

/* Returns the host for the cleaner, as of the last cycle. */
static TrackerView look_at_host(void *userdata)
{
        Daemon *daemon = userdata;

        return tracker_view(daemon->engine.tracker);
}

static int set_up_cleaner(Daemon *daemon, Error *reterr)
{
        const CleanerConfig config = { .event = daemon->event,
                                       .service = daemon->claims,
                                       .cordon = daemon->cordon,
                                       .root = daemon->root,
                                       .look = look_at_host,
                                       .userdata = daemon,
                                       .runtime = getenv("RUNTIME_DIRECTORY") };
        int r = cleaner_new(&daemon->cleaner, &config);

        if (r >= 0)
                r = partition_watch_new(&daemon->partitions, &config);
        return r < 0 ? error_setf(reterr, r, "Cannot set up the work on free devices: %s",
                                  strerror(-r))
                     : 0;
}

static int set_up_bus(Daemon *daemon, Error *reterr)
{
        const BusConfig bus_config = {
                .tracker = daemon->engine.tracker,
                .claims = daemon->claims,
                .cordon = daemon->cordon,
                .queue = daemon->queue,
                .root = daemon->root,
                .hook = daemon->engine.config->hook,
                .reload = reload,
                .userdata = daemon,
        };
        int r = bus_service_new(&daemon->bus, daemon->event, &bus_config);

        return r < 0 ? error_setf(reterr, r, "Cannot set up D-Bus: %s", strerror(-r)) : 0;
}

/* Finds the identity for a dry run, which writes nothing. A host without an identity gets a random
 * one for this run. */
static int look_for_identity(Daemon *daemon, Error *reterr)
{
        _cleanup_free_ char *path = NULL;
        int r = identity_find(daemon->engine.config, &daemon->root, &path, reterr);

        if (r != 0)
                return r;
        daemon->root = uuid_make_random();
        log_info(
                "This host is new. The service will create a uuid for its root provider; %s is a placeholder.",
                daemon->root.text);
        return 0;
}

/* Finds the reason of this start, for the metrics. A failure is no reason not to start. */
static void begin_run(Daemon *daemon, bool created)
{
        Error error = ERROR_NULL;
        int r = 0;

        if (daemon->mode == DAEMON_SERVE)
                r = last_run_begin(daemon->engine.config->state_dir, created, &daemon->start_reason,
                                   &error);
        if (r < 0)
                log_warning("The reason of this start is unknown: %s.", error_text(&error, r));
}

/* Notes the clean end, and saves the state for the next start. */
static void end_run(Daemon *daemon)
{
        Error error = ERROR_NULL;
        int r = last_run_end(daemon->engine.config->state_dir, &error);

        if (r < 0)
                log_warning("The next start will count as one after a crash: %s.",
                            error_text(&error, r));
        tracker_save(daemon->engine.tracker);
}

/* Loads the identity of the host, and creates it at the first start. */
static int load_identity(Daemon *daemon, Error *reterr)
{
        bool created;
        int r;

        if (daemon->mode == DAEMON_DRY_RUN)
                return look_for_identity(daemon, reterr);
        r = identity_load(daemon->engine.config, &daemon->root, &created, reterr);
        if (r >= 0 && created)
                log_info("This host is new. The uuid of its root provider is %s.",
                         daemon->root.text);
        if (r >= 0)
                begin_run(daemon, created);
        return r;
}

/* Locks the state directory before anything in it is read. A dry run writes nothing, so it takes no
 * lock and can run beside the service. */
static int lock_state(Daemon *daemon, Error *reterr)
{
        int r;

        if (daemon->mode == DAEMON_DRY_RUN)
                return 0;
        r = state_lock_take(daemon->engine.config->state_dir, &daemon->lock_fd, reterr);
        if (r == -EBUSY)
                daemon->exit_code = DAEMON_EXIT_BUSY;
        return r;
}

/* Creates the parts in the order of their dependencies. Only the service gets all of them. */
static int set_up(Daemon *daemon, Error *reterr)
{
        int r = set_up_event(daemon);

        if (r < 0)
                return error_setf(reterr, r, "Cannot set up the event loop: %s", strerror(-r));
        r = lock_state(daemon, reterr);
        if (r < 0)
                return r;
        r = load_identity(daemon, reterr);
        if (r < 0)
                return r;
        r = set_up_claims(daemon, reterr);
        if (r >= 0)
                r = set_up_health(daemon, reterr);
        if (r < 0)
                return r;
        r = make_engine(daemon, TAKE_PTR(daemon->engine.config), &daemon->engine, reterr);
        if (r < 0)
                return r;
        if (daemon->mode != DAEMON_SERVE)
                return tracker_sync(daemon->engine.tracker, TRACKER_SYNC, on_only_cycle_ended,
                                    daemon);
        r = set_up_queue(daemon, reterr);
        if (r >= 0)
                r = set_up_cleaner(daemon, reterr);
        if (r >= 0)
                r = set_up_bus(daemon, reterr);
        return r;
}

int daemon_run(Config *config, const char *config_file, DaemonMode mode)
{
        _cleanup_(daemon_done) Daemon daemon = {
                .engine.config = config,
                .config_file = config_file,
                .mode = mode,
                .lock_fd = -EBADF,
        };
        Error error = ERROR_NULL;
        int r = set_up(&daemon, &error);

        if (r < 0) {
                log_error("%s", error_text(&error, r));
                daemon_notify_failed(error_text(&error, r));
                return daemon.exit_code ? daemon.exit_code : EXIT_FAILURE;
        }
        r = sd_event_loop(daemon.event);
        if (r < 0) {
                log_error("The event loop failed: %s", strerror(-r));
                daemon_notify_failed("The event loop failed");
                return EXIT_FAILURE;
        }
        (void)sd_notify(false, "STOPPING=1");
        if (mode == DAEMON_SERVE && daemon.exit_code == EXIT_SUCCESS)
                end_run(&daemon);
        return daemon.exit_code;
}
