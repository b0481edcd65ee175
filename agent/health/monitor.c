/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs the helper, and acts on its messages. health_judge() decides, this file acts.
 *
 * The end of the helper is the end of its pipe, so no SIGCHLD is needed. The environment variable
 * COMPUTE_AGENT_HEALTH names another program, for tests. The buffer has the size of one message: a
 * full buffer without a newline is an error.
 *
 * A finding is stored as a cordon before the position behind its line is stored. So the cordon for
 * a line is not lost in a crash, unless the helper cannot find it again (main.c). A finding that is
 * repeated changes no cordon. If the disk refuses the cordon, the helper is started again at the
 * last position that the monitor received, and finds it again. A finding of a counter in sysfs is
 * lost then. A refused write of the record is tried again after a minute, or when the reports
 * change, and the helper keeps running. The record in memory is in force, and the file has the
 * older position and reports.
 *
 * One timer serves three purposes: the next start of the helper (or the next look whether the host
 * is known), the end of a helper that does not end at once, and the limit of its silence.
 *
 * Tests: tests/unit/agent/health/test-monitor.c tests/integration/agent/test_health.py */

#include "agent/health/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-id128.h>

#include "agent/health/record.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/spawn.h"
#include "base/text.h"

#define PROGRAM        "compute-agent-health"
#define PAUSE_MIN_USEC (1 * USEC_PER_SEC)    /* before a helper that ended is started again */
#define PAUSE_MAX_USEC (60 * USEC_PER_SEC)   /* the longest such pause */
#define STABLE_USEC    (60 * USEC_PER_SEC)   /* a helper that ran this long did not end at once */
#define SILENCE_USEC   (60 * USEC_PER_SEC)   /* a helper without HEALTH_STATE is killed */
#define END_USEC       (100 * USEC_PER_MSEC) /* interval of the checks whether it has ended */
#define SAVE_USEC      (60 * USEC_PER_SEC)   /* interval of the writes of the position */

/* The process and its pipe. No function waits for the process, except child_free() for about 20 ms:
 * a process that waits for a disk that hangs cannot be killed at once. */

typedef struct Child {
        pid_t pid; /* 0: the process was reaped */
        int fd;    /* read end of the pipe */
        int status;
        char bytes[HEALTH_MESSAGE_MAX];
        size_t n_bytes, begin; /* bytes that were read, and where the next line begins */
} Child;

/* Ends the process with SIGKILL. graceful: it has closed its pipe, so it ends without a signal.
 * Returns true if it has ended, with a description such as "exit code 1" or "signal 9" in text,
 * which has size bytes. Otherwise the caller calls again later, not graceful. */
static bool child_end(Child *child, bool graceful, char *text, size_t size)
{
        if (child->pid > 0 && !graceful)
                (void)kill(child->pid, SIGKILL);
        if (child->pid > 0 && waitpid(child->pid, &child->status, WNOHANG) == 0)
                return false;
        child->pid = 0;
        if (WIFSIGNALED(child->status))
                snprintf(text, size, "signal %d", WTERMSIG(child->status));
        else
                snprintf(text, size, "exit code %d", WEXITSTATUS(child->status));
        return true;
}

/* Kills the process, and waits for its end. One that does not end within 20 ms is left behind. */
static Child *child_free(Child *child)
{
        char text[32];

        if (!child)
                return NULL;
        for (int i = 0; i < 20 && !child_end(child, false, text, sizeof(text)); i++)
                usleep(1000);
        closep(&child->fd);
        free(child);
        return NULL;
}
DEFINE_CLEANUP(Child *, child_free);

/* Finds the program: that of the environment, or the one beside this one, or where it was
 * installed. */
static void find_program(char path[static PATH_MAX])
{
        const char *other = getenv("COMPUTE_AGENT_HEALTH");
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
        const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;

        if (other && snprintf(path, PATH_MAX, "%s", other) < PATH_MAX)
                return;
        if (slash &&
            snprintf(path, PATH_MAX, "%.*s/" PROGRAM, (int)(slash - self), self) < PATH_MAX &&
            access(path, X_OK) == 0)
                return;
        snprintf(path, PATH_MAX, "%s/" PROGRAM, PKGLIBEXECDIR);
}

/* Starts the helper. cursor: see HealthMessage, "" for none. Returns a negative errno with words.
 */
static int child_start(Child **ret, const char *cursor, Error *reterr)
{
        _cleanup_(child_freep) Child *child = calloc(1, sizeof(Child));
        _cleanup_free_ char *option = text_format("--cursor=%s", cursor);
        char path[PATH_MAX];
        char *const argv[] = { (char *)(uintptr_t)PROGRAM, cursor[0] ? option : NULL, NULL };
        int pipes[2], r;
        pid_t pid = 0;

        if (!child)
                return error_oom(reterr);
        child->fd = -EBADF;
        if (!option)
                return error_oom(reterr);
        if (pipe2(pipes, O_CLOEXEC) < 0)
                return error_setf(reterr, errno, "pipe: %s", strerror(errno));
        child->fd = pipes[0];
        find_program(path);
        r = fcntl(child->fd, F_SETFL, O_NONBLOCK) < 0
                    ? -errno
                    : spawn(path, argv, pipes[1], -1, false, &pid);
        close(pipes[1]);
        if (r < 0)
                return error_setf(reterr, r, "%s: %s", path, strerror(-r));
        child->pid = pid;
        *ret = TAKE_PTR(child);
        return 0;
}

/* Reads available bytes, at most as many as one message can have. Moves the bytes that were not
 * taken to the start of the buffer first, which invalidates the last line. Returns 1 if there are
 * bytes, which can lack a complete line, 0 if none came, or -EPIPE at the end of the helper.
 * Returns -EBADMSG for a line that is too long, or another negative errno of the read. */
static int child_read(Child *child)
{
        ssize_t n;

        memmove(child->bytes, child->bytes + child->begin, child->n_bytes - child->begin);
        child->n_bytes -= child->begin;
        child->begin = 0;
        if (child->n_bytes == sizeof(child->bytes))
                return memchr(child->bytes, '\n', child->n_bytes) ? 1 : -EBADMSG;
        n = read(child->fd, child->bytes + child->n_bytes, sizeof(child->bytes) - child->n_bytes);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0)
                return -EPIPE;
        child->n_bytes += (size_t)n;
        return 1;
}

/* Takes the next complete line, without its newline. It is borrowed until the next read. Returns
 * NULL if there is none. */
static const char *child_take(Child *child, size_t *ret_n)
{
        const char *begin = child->bytes + child->begin;
        const char *end = memchr(begin, '\n', child->n_bytes - child->begin);

        if (!end)
                return NULL;
        *ret_n = (size_t)(end - begin);
        child->begin += *ret_n + 1;
        return begin;
}

/* The monitor */

typedef enum MonitorState {
        MONITOR_IDLE,    /* the host has no rules */
        MONITOR_RUNNING, /* the helper runs */
        MONITOR_ENDING,  /* the helper was killed, or has closed its pipe */
        MONITOR_PAUSING, /* the helper will be started */
} MonitorState;

struct HealthMonitor {
        HealthMonitorConfig config;
        HealthRecord record;
        char boot_id[HEALTH_BOOT_SIZE];
        MonitorState state;
        bool has_rules, ended_boot;
        bool restarts_at_once; /* a reload was requested: the next start has no pause */
        bool was_killed;       /* the monitor ends the helper, and has set the reason as error */
        Child *child;
        sd_event_source *pipe, *more, *timer;
        uint64_t started_usec, pause_usec; /* CLOCK_MONOTONIC; the last pause */
        uint64_t saved_usec;               /* CLOCK_MONOTONIC of the last write of the record */
        bool is_changed;                   /* the record must be written */
        char error[ERROR_TEXT_MAX];        /* error of the helper or of a cordon; "": none */
        char save_error[ERROR_TEXT_MAX];   /* error of the last write of the record; "": none */
};

HealthMonitor *health_monitor_free(HealthMonitor *monitor)
{
        if (!monitor)
                return NULL;
        sd_event_source_disable_unref(monitor->pipe);
        sd_event_source_disable_unref(monitor->more);
        sd_event_source_disable_unref(monitor->timer);
        child_free(monitor->child);
        if (monitor->is_changed)
                (void)health_record_save(&monitor->record, NULL);
        health_record_done(&monitor->record);
        free(monitor);
        return NULL;
}

/* Updates the view, and reports a change. cordons: see HealthMonitorConfig. */
static void show(HealthMonitor *monitor, bool cordons)
{
        *monitor->config.view = (HealthView){
                .reported = monitor->record.n_reports > 0 ? monitor->record.words : NULL,
                .n_reported = monitor->record.n_reports,
                .error = monitor->error[0]        ? monitor->error
                         : monitor->save_error[0] ? monitor->save_error
                                                  : NULL,
        };
        monitor->config.changed(cordons, monitor->config.userdata);
}

/* Sets why the rules are not applied; "": they are. Logs a change between both, but not each
 * retry. */
static void set_error(HealthMonitor *monitor, const char *error)
{
        bool was = monitor->error[0] != '\0';

        if (strcmp(monitor->error, error) == 0)
                return;
        snprintf(monitor->error, sizeof(monitor->error), "%s", error);
        text_trim_cut(monitor->error);
        if (error[0] && !was)
                log_event(LOG_WARNING, MESSAGE_HEALTH_FAILED, NULL,
                          "Health rules are not applied completely: %s. Retrying.", error);
        else if (!error[0])
                log_event(LOG_INFO, NULL, NULL, "Health rules are applied again.");
        show(monitor, false);
}

/* Writes the record. After a failure, which is logged once, the next write has the change. */
static void save(HealthMonitor *monitor)
{
        Error error = ERROR_NULL;
        int r = health_record_save(&monitor->record, &error);
        bool was = monitor->save_error[0] != '\0';

        monitor->saved_usec = clock_usec(CLOCK_MONOTONIC);
        monitor->is_changed = r < 0;
        snprintf(monitor->save_error, sizeof(monitor->save_error), "%s",
                 r < 0 ? error_text(&error, r) : "");
        if (r < 0 && !was)
                log_event(LOG_WARNING, MESSAGE_HEALTH_FAILED, NULL,
                          "Findings of health rules cannot be stored: %s. Retrying.",
                          monitor->save_error);
        else if (r >= 0 && was)
                log_event(LOG_INFO, NULL, NULL, "Findings of health rules are stored again.");
        if (was != (r < 0))
                show(monitor, false);
}

/* The helper */

static void set_timer(HealthMonitor *monitor, uint64_t usec)
{
        (void)sd_event_source_set_time_relative(monitor->timer, usec);
        (void)sd_event_source_set_enabled(monitor->timer, SD_EVENT_ONESHOT);
}

/* Waits before the next start. The pause doubles up to PAUSE_MAX_USEC, unless the helper ran for
 * long. After a reload there is no pause. */
static void pause_start(HealthMonitor *monitor)
{
        uint64_t ran_usec = clock_usec(CLOCK_MONOTONIC) - monitor->started_usec;

        monitor->pause_usec = ran_usec >= STABLE_USEC || monitor->pause_usec == 0
                                      ? PAUSE_MIN_USEC
                                      : MIN(2 * monitor->pause_usec, PAUSE_MAX_USEC);
        monitor->state = MONITOR_PAUSING;
        set_timer(monitor, monitor->restarts_at_once ? 0 : monitor->pause_usec);
        monitor->restarts_at_once = false;
}

/* Continues when the helper has ended. A helper that ended well because it has no rules is not
 * started again, unless a reload was requested. */
static void finish_child(HealthMonitor *monitor, bool graceful)
{
        char end[32], words[100];

        if (!child_end(monitor->child, graceful, end, sizeof(end))) {
                set_timer(monitor, END_USEC);
                return;
        }
        monitor->child = child_free(monitor->child);
        if (!monitor->has_rules && strcmp(end, "exit code 0") == 0 && !monitor->restarts_at_once) {
                monitor->state = MONITOR_IDLE;
                (void)sd_event_source_set_enabled(monitor->timer, SD_EVENT_OFF);
                set_error(monitor, "");
                return;
        }
        snprintf(words, sizeof(words), "compute-agent-health ended with %s", end);
        if (!monitor->restarts_at_once && !monitor->was_killed)
                set_error(monitor, words);
        pause_start(monitor);
}

/* Ends the helper, and starts it again. graceful: it has closed its pipe, and its exit code becomes
 * the error. Otherwise the caller has set the error, unless a reload is the reason. */
static void end_child(HealthMonitor *monitor, bool graceful)
{
        monitor->was_killed = !graceful;
        monitor->pipe = sd_event_source_disable_unref(monitor->pipe);
        (void)sd_event_source_set_enabled(monitor->more, SD_EVENT_OFF);
        monitor->state = MONITOR_ENDING;
        finish_child(monitor, graceful);
}

/* Devices */

/* Returns the snapshot's device at the address, or NULL. */
static const SnapshotDevice *find_device(const Snapshot *snapshot, const char *address)
{
        for (size_t i = 0; snapshot && i < snapshot->n_devices; i++)
                if (strcmp(snapshot->devices[i].address, address) == 0)
                        return &snapshot->devices[i];
        return NULL;
}

/* Returns the name under which the device can be cordoned, borrowed. NULL: the host does not offer
 * the device. */
static const char *find_offered(const HealthMonitor *monitor, const HealthHost *host,
                                const char *address)
{
        const SnapshotDevice *device = find_device(host->snapshot, address);

        return host->tree
                       ? cordon_find_name(monitor->config.cordon, host->tree, &monitor->config.root,
                                          address, device ? device->physical_function : "")
                       : NULL;
}

/* Notes the guests whose living claims have had the device since before the last case. None if the
 * claims cannot be read. A claim that ended is no evidence, because it is unknown whether it had
 * the device at that time. */
static void note_guests(HealthMonitor *monitor, const HealthMessage *finding)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        Claims *claims = monitor->config.claims->claims;

        if (!claims || claims_list(claims, CLAIMS_OF_DEVICE, finding->address, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++) {
                const Claim *claim = list.claims[i];

                if (claim->created_usec > finding->last_usec)
                        continue;
                health_sightings_note(&monitor->record.sightings, finding,
                                      uuid_empty(&claim->guest) ? &claim->consumer : &claim->guest);
                monitor->is_changed = true;
        }
}

/* Actions */

/* Publishes a change of a cordon, and records it as an event. */
static void announce(HealthMonitor *monitor, const char *kind, const char *device,
                     const char *reason)
{
        const CordonView view = cordon_view(monitor->config.cordon);

        claim_service_record(monitor->config.claims,
                             &(EventNote){ kind, NULL, 0, NULL, device, reason });
        claim_service_set_closed(monitor->config.claims, view.host, view.devices);
        show(monitor, true);
}

/* Cordons the device. The reason is the line, and names the function if its card is withheld. */
static int withhold(HealthMonitor *monitor, const HealthHost *host, const char *device,
                    const HealthMessage *finding)
{
        const CordonRule rule = { finding->rule, health_lift_to_text(finding->lift),
                                  finding->boot_id };
        bool is_part = strcmp(device, finding->address) != 0;
        _cleanup_free_ char *who = text_format("rule %s", finding->rule);
        char reason[CORDON_TEXT_MAX + 1];
        Error error = ERROR_NULL;
        int r;

        snprintf(reason, sizeof(reason), "%s%s%s", is_part ? "its function " : "",
                 is_part ? finding->address : "", is_part ? ": " : "");
        snprintf(reason + strlen(reason), sizeof(reason) - strlen(reason), "%s", finding->line);
        text_trim_cut(reason);
        r = who ? cordon_set(monitor->config.cordon, host->tree, &monitor->config.root, device,
                             reason, who, &rule, clock_usec(CLOCK_REALTIME), &error)
                : error_oom(&error);
        if (r < 0) {
                set_error(monitor, error_text(&error, r));
                return r;
        }
        log_event(LOG_WARNING, MESSAGE_DEVICE_UNHEALTHY, LOG_FIELDS(LOG_FIELD_DEVICE, device),
                  "Device %s was cordoned by health rule %s: %s", device, finding->rule, reason);
        announce(monitor, EVENT_CORDONED, device, reason);
        return 0;
}

/* Reports the device, and changes no cordon. why: the reason why [agent] nova does not permit one,
 * or NULL. */
static int report(HealthMonitor *monitor, const char *device, const HealthMessage *finding,
                  const char *why, bool is_cordoned)
{
        if (health_record_add(&monitor->record, device, finding) < 0) {
                set_error(monitor, strerror(ENOMEM));
                return -ENOMEM;
        }
        log_event(LOG_WARNING, MESSAGE_DEVICE_REPORTED, LOG_FIELDS(LOG_FIELD_DEVICE, device),
                  "Health rule %s reports device %s: %s%s%s%s", finding->rule, device,
                  finding->line, why ? ". Not withheld: " : "", why ? why : "",
                  is_cordoned ? ". It is cordoned already. Check it before \"computectl uncordon\""
                              : "");
        show(monitor, false);
        save(monitor);
        return 0;
}

/* Returns the time at which a person lifted the cordon last; 0: not known. After the clock was set
 * back, a time in the future says nothing about the cases that follow. */
static uint64_t get_lifted(const CordonState *cordon)
{
        return cordon->lifted_usec > clock_usec(CLOCK_REALTIME) ? 0 : cordon->lifted_usec;
}

/* Returns the address of the device, or of one of its functions, that the rule found broken and
 * that has not recovered since. NULL: there is none. */
static const char *find_broken(const HealthMonitor *monitor, const HealthHost *host,
                               const char *device, const char *rule)
{
        const HealthSightings *sightings = &monitor->record.sightings;
        const CordonState cordon =
                cordon_get_state(monitor->config.cordon, host->tree, &monitor->config.root, device);

        for (size_t i = 0; i < sightings->n_items; i++) {
                const struct HealthSighting *item = &sightings->items[i];
                const char *other;

                if (!uuid_empty(&item->consumer) || strcmp(item->rule, rule) != 0 ||
                    item->usec <= get_lifted(&cordon))
                        continue;
                other = find_offered(monitor, host, item->address);
                if (other && strcmp(other, device) == 0)
                        return item->address;
        }
        return NULL;
}

static int handle_finding(HealthMonitor *monitor, const HealthMessage *finding)
{
        const HealthHost host = monitor->config.get_host(monitor->config.userdata);
        const char *device = find_offered(monitor, &host, finding->address);
        HealthFacts facts = { .finding = finding,
                              .boot_id = monitor->boot_id,
                              .sightings = &monitor->record.sightings };
        const char *why = NULL;
        HealthDecision decision;

        if (device) {
                facts.is_offered = true;
                facts.cordon = cordon_get_state(monitor->config.cordon, host.tree,
                                                &monitor->config.root, device);
                facts.cordon.lifted_usec = get_lifted(&facts.cordon);
                facts.is_reported = health_record_has(&monitor->record, device, finding->rule,
                                                      facts.cordon.lifted_usec);
                why = nova_mode_refuses(host.nova,
                                        cordon_action(host.tree, &monitor->config.root, device));
                facts.is_permitted = !why;
        }
        if (device && finding->guests > 0)
                note_guests(monitor, finding);
        decision = health_judge(&facts);
        if (finding->lift == HEALTH_LIFT_RECOVERY &&
            (decision == HEALTH_KNOWN || decision == HEALTH_REPORT ||
             decision == HEALTH_WITHHOLD)) {
                health_sightings_note(&monitor->record.sightings, finding, &UUID_NULL);
                monitor->is_changed = true;
        }
        switch (decision) {
        case HEALTH_WITHHOLD:
                return withhold(monitor, &host, device, finding);
        case HEALTH_REPORT:
                return report(monitor, device, finding, finding->reports ? NULL : why,
                              facts.cordon.cordoned);
        default:
                log_debug("Ignoring a finding of health rule %s about %s: %s", finding->rule,
                          finding->address, finding->line);
                return 0;
        }
}

/* Removes the note about the function. A recovery of the device itself is one of all its
 * functions. Returns true if there was a note. */
static bool forget_broken(HealthMonitor *monitor, const HealthHost *host, const char *device,
                          const HealthMessage *recovery)
{
        HealthSightings *sightings = &monitor->record.sightings;
        bool removed = health_sightings_recover(sightings, recovery->rule, recovery->address);
        const char *other;

        while (device && strcmp(device, recovery->address) == 0 &&
               (other = find_broken(monitor, host, device, recovery->rule)))
                removed = health_sightings_recover(sightings, recovery->rule, other);
        return removed;
}

static int handle_recovery(HealthMonitor *monitor, const HealthMessage *message)
{
        const HealthHost host = monitor->config.get_host(monitor->config.userdata);
        const char *device = find_offered(monitor, &host, message->address), *other;
        Error error = ERROR_NULL;
        bool was_broken, was_reported;
        int r;

        was_broken = forget_broken(monitor, &host, device, message);
        monitor->is_changed = monitor->is_changed || was_broken;
        if (!device)
                return 0;
        other = find_broken(monitor, &host, device, message->rule);
        if (other) {
                if (was_broken)
                        log_event(LOG_NOTICE, NULL, LOG_FIELDS(LOG_FIELD_DEVICE, device),
                                  "Function %s of device %s works again by health rule %s, but %s "
                                  "does not: %s",
                                  message->address, device, message->rule, other, message->line);
                else
                        log_debug("Ignoring a recovery of health rule %s for %s, because %s is "
                                  "broken: %s",
                                  message->rule, message->address, other, message->line);
                return 0;
        }
        was_reported = health_record_remove(&monitor->record, device, message->rule);
        monitor->is_changed = monitor->is_changed || was_reported; /* also if the lift fails */
        r = cordon_lift(monitor->config.cordon, host.tree, &monitor->config.root, device,
                        message->rule, 0, &error);
        if (r < 0)
                set_error(monitor, error_text(&error, r));
        if (r > 0 || was_reported)
                log_event(LOG_NOTICE, MESSAGE_DEVICE_RECOVERED,
                          LOG_FIELDS(LOG_FIELD_DEVICE, device),
                          "Device %s works again by health rule %s%s: %s", device, message->rule,
                          r > 0 ? ", and was uncordoned" : "", message->line);
        if (r > 0)
                announce(monitor, EVENT_UNCORDONED, device, message->line);
        else if (was_reported)
                show(monitor, false);
        if (r >= 0 && was_reported)
                save(monitor);
        return MIN(r, 0);
}

/* Notes that the helper works. Stores its position only if the last write of the record is a minute
 * old, because a finding that is repeated after a crash changes no cordon. */
static void handle_state(HealthMonitor *monitor, const HealthMessage *message)
{
        monitor->has_rules = message->n_rules > 0;
        set_timer(monitor, SILENCE_USEC);
        if (strcmp(monitor->error, message->text) != 0)
                set_error(monitor, message->text);
        if (message->cursor[0] && strcmp(message->cursor, monitor->record.cursor) != 0) {
                strcpy(monitor->record.cursor, message->cursor);
                monitor->is_changed = true;
        }
        if (monitor->is_changed && clock_usec(CLOCK_MONOTONIC) - monitor->saved_usec >= SAVE_USEC)
                save(monitor);
}

static int handle(HealthMonitor *monitor, const HealthMessage *message)
{
        switch (message->kind) {
        case HEALTH_FINDING:
                return handle_finding(monitor, message);
        case HEALTH_RECOVERED:
                return handle_recovery(monitor, message);
        case HEALTH_PROBLEM:
                log_event(LOG_WARNING, MESSAGE_HEALTH_RULES, NULL, "%s, ignoring", message->text);
                return 0;
        default:
                handle_state(monitor, message);
                return 0;
        }
}

/* Events */

/* Sets the error of a message that cannot be read. */
static void set_message_error(HealthMonitor *monitor, Error *error, int r)
{
        (void)error_prefixf(error, r, "A message of compute-agent-health");
        set_error(monitor, error->text);
}

/* Handles at most one message, so that many findings at once do not stop the loop. Returns 1, 0 if
 * no message is complete, or a negative errno. */
static int handle_next(HealthMonitor *monitor)
{
        HealthMessage message;
        const char *line;
        Error error = ERROR_NULL;
        size_t n;
        int r;

        line = child_take(monitor->child, &n);
        if (!line)
                return 0;
        r = health_message_from_text(line, n, &message, &error);
        if (r == 0)
                r = handle(monitor, &message);
        else
                set_message_error(monitor, &error, r);
        if (r < 0)
                return r;
        (void)sd_event_source_set_enabled(monitor->more, SD_EVENT_ONESHOT);
        return 1;
}

/* Reads the pipe. Its end counts only when each message before it was handled. */
static int on_pipe(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        HealthMonitor *monitor = userdata;
        Error error = ERROR_NULL;
        int r = child_read(monitor->child);
        bool ended = r == -EPIPE;

        if (r > 0 || ended)
                r = handle_next(monitor);
        else if (r < 0)
                set_message_error(monitor, &error, r);
        if (r < 0 || (ended && r == 0))
                end_child(monitor, ended && r == 0);
        return 0;
}

static int on_more(sd_event_source *source, void *userdata)
{
        HealthMonitor *monitor = userdata;

        if (monitor->state == MONITOR_RUNNING && handle_next(monitor) < 0)
                end_child(monitor, false);
        return 0;
}

/* Lifts the cordons and ends the reports of another boot that end with it. Returns a negative errno
 * if a cordon cannot be lifted; the rest then waits for the next start. */
static int end_boot(HealthMonitor *monitor, const ProviderTree *tree)
{
        CordonRule rule;
        Error error = ERROR_NULL;
        const char *found;

        while ((found = cordon_find_of_other_boot(monitor->config.cordon, monitor->boot_id,
                                                  &rule))) {
                _cleanup_free_ char *device = strdup(found), *name = strdup(rule.name);
                int r = device && name ? cordon_lift(monitor->config.cordon, tree,
                                                     &monitor->config.root, device, name, 0, &error)
                                       : -ENOMEM;

                if (r <= 0) {
                        set_error(monitor, error_text(&error, r));
                        return r < 0 ? r : -EIO;
                }
                log_event(LOG_NOTICE, MESSAGE_DEVICE_RECOVERED,
                          LOG_FIELDS(LOG_FIELD_DEVICE, device),
                          "Device %s was uncordoned, because health rule %s ends with the boot.",
                          device, name);
                announce(monitor, EVENT_UNCORDONED, device, "the host was booted");
        }
        if (health_record_end_boot(&monitor->record, monitor->boot_id)) {
                show(monitor, false);
                save(monitor);
        }
        return 0;
}

/* Starts the helper. Findings need the tree and the devices, so it waits for these. */
static void start(HealthMonitor *monitor)
{
        const HealthHost host = monitor->config.get_host(monitor->config.userdata);
        Error error = ERROR_NULL;
        int r;

        if (!host.tree || !host.snapshot) {
                set_timer(monitor, PAUSE_MIN_USEC);
                return;
        }
        monitor->started_usec = clock_usec(CLOCK_MONOTONIC);
        if (!monitor->ended_boot && end_boot(monitor, host.tree) < 0) {
                pause_start(monitor);
                return;
        }
        monitor->ended_boot = true;
        r = child_start(&monitor->child, monitor->record.cursor, &error);
        if (r >= 0) {
                r = sd_event_add_io(monitor->config.event, &monitor->pipe, monitor->child->fd,
                                    EPOLLIN, on_pipe, monitor);
                /* The result of a poll comes first. Calls are served in turn with the pipe. */
                if (r >= 0)
                        (void)sd_event_source_set_priority(monitor->pipe,
                                                           SD_EVENT_PRIORITY_NORMAL + 10);
        }
        if (r < 0) {
                monitor->child = child_free(monitor->child);
                set_error(monitor, error_text(&error, r));
                pause_start(monitor);
                return;
        }
        monitor->state = MONITOR_RUNNING;
        set_timer(monitor, SILENCE_USEC);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        HealthMonitor *monitor = userdata;

        if (monitor->state == MONITOR_PAUSING) {
                start(monitor);
        } else if (monitor->state == MONITOR_ENDING) {
                finish_child(monitor, false);
        } else if (monitor->state == MONITOR_RUNNING) {
                set_error(monitor, "compute-agent-health does not answer");
                end_child(monitor, false);
        }
        return 0;
}

void health_monitor_reload(HealthMonitor *monitor)
{
        monitor->pause_usec = 0;
        monitor->restarts_at_once = true;
        if (monitor->state == MONITOR_RUNNING)
                end_child(monitor, false);
        else if (monitor->state != MONITOR_ENDING)
                pause_start(monitor);
}

int health_monitor_new(HealthMonitor **ret, const HealthMonitorConfig *config)
{
        _cleanup_(health_monitor_freep) HealthMonitor *monitor = calloc(1, sizeof(HealthMonitor));
        Error error = ERROR_NULL;
        sd_id128_t boot;
        int r;

        if (!monitor)
                return -ENOMEM;
        monitor->config = *config;
        if (sd_id128_get_boot(&boot) >= 0)
                (void)sd_id128_to_string(boot, monitor->boot_id);
        r = health_record_load(&monitor->record, config->state_dir, &error);
        if (r < 0)
                return r;
        if (r > 0)
                log_warning("The state of the health rules is lost: %s", error.text);
        if (monitor->record.n_reports > 0)
                show(monitor, false);
        r = sd_event_add_defer(config->event, &monitor->more, on_more, monitor);
        if (r >= 0)
                r = sd_event_source_set_enabled(monitor->more, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time_relative(config->event, &monitor->timer, CLOCK_MONOTONIC, 0,
                                               END_USEC, on_timer, monitor);
        if (r < 0)
                return r;
        monitor->state = MONITOR_PAUSING;
        *ret = TAKE_PTR(monitor);
        return 0;
}
