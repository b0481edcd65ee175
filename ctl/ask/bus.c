/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls methods of compute-agentd over D-Bus: opens the connection, builds the message, waits for
 * the reply, and turns each failure into words. The standard errors for a missing agent,
 * permission, reply or method get words of their own, with an advice. Any other error keeps its
 * words. If no agent is on the bus, systemd is asked for the state of the agent's unit, and the
 * words explain it. The control group of a guest's unit comes from systemd too.
 *
 * A request of "claim" and "explain" is written into its message here. The order of the containers
 * must match BUS_CLAIM_IN (formats/interface.h). Replies are copied, so that no caller owns a
 * message of sd-bus.
 *
 * While a call without arguments, but with a time limit, waits for its reply, a line on the
 * terminal shows the progress of the agent. On a terminal polkit can ask a user other than root for
 * a password. pkttyagent(1) runs for this purpose as long as the verb does. Limit: one call at a
 * time, and each blocks.
 *
 * Tests: tests/unit/ctl/ask/test-bus.c */

#include "ctl/ask/bus.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "ctl/ask/unit.h"
#include "ctl/print/json.h"
#include "formats/format-names.h"
#include "formats/interface.h"

#define MANAGER_NAME "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"

#define POLKIT_AGENT           "/usr/bin/pkttyagent"
#define POLKIT_TIMEOUT_USEC    (90 * USEC_PER_SEC) /* limit of a call; pkttyagent ends after 60 s */
#define POLKIT_START_WAIT_MSEC 5000

#define BAR_MAX    40 /* width of the bar of the progress, in characters */
#define BAR_MIN    8
#define QUIET_USEC (300 * USEC_PER_MSEC)
#define LINE_SIZE  512

/* Checks whether polkit can ask a person for a password. Root needs none. */
static bool can_ask_for_password(void)
{
        return geteuid() != 0 && isatty(STDIN_FILENO);
}

/* Replaces the child by pkttyagent, or ends it if that fails. Never returns. pkttyagent registers
 * with polkit for its parent process, which is computectl, and ends when computectl ends. It closes
 * the end "ready" of a pipe when it is registered. */
static _Noreturn void run_agent(int ready)
{
        char number[16];

        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)fcntl(ready, F_SETFD, 0);
        snprintf(number, sizeof(number), "%d", ready);
        (void)execl(POLKIT_AGENT, POLKIT_AGENT, "--notify-fd", number, "--fallback", NULL);
        _exit(EXIT_FAILURE);
}

pid_t ctl_authorization_start(void)
{
        struct pollfd end = { .events = POLLHUP };
        int fds[2];
        pid_t pid;

        if (!can_ask_for_password() || access(POLKIT_AGENT, X_OK) < 0 || pipe2(fds, O_CLOEXEC) < 0)
                return 0;
        pid = fork();
        if (pid == 0)
                run_agent(fds[1]);
        close(fds[1]);
        end.fd = fds[0];
        /* pkttyagent closes its end of the pipe when polkit knows it, or when it fails. */
        if (pid > 0)
                (void)poll(&end, 1, POLKIT_START_WAIT_MSEC);
        close(fds[0]);
        return pid > 0 ? pid : 0;
}

void ctl_authorization_stop(pid_t pid)
{
        if (pid == 0)
                return;
        /* The terminal may have stopped it. A stopped process receives SIGTERM only after
         * SIGCONT. */
        (void)kill(pid, SIGTERM);
        (void)kill(pid, SIGCONT);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

/* Opens the system bus of this host. Returns CTL_NOT_RUNNING without a bus. If polkit can ask for a
 * password, the calls permit that question, and their default time limit is POLKIT_TIMEOUT_USEC. */
static int open_local(sd_bus **ret, Error *reterr)
{
        int r = sd_bus_open_system_with_description(ret, "computectl");

        if (r >= 0) {
                if (can_ask_for_password()) {
                        (void)sd_bus_set_allow_interactive_authorization(*ret, true);
                        (void)sd_bus_set_method_call_timeout(*ret, POLKIT_TIMEOUT_USEC);
                }
                return 0;
        }
        if (r == -ENOENT || r == -ECONNREFUSED) {
                error_setf(
                        reterr, r,
                        "No system bus (%s), so computectl cannot call compute-agent. Is dbus running?",
                        strerror(-r));
                return CTL_NOT_RUNNING;
        }
        return error_setf(reterr, r, "Cannot use the system bus: %s", strerror(-r));
}

/* Opens the bus of another host over ssh. Opening succeeds before ssh is connected, so the bus is
 * asked for the name of the connection. A failure of ssh appears in that answer. */
static int open_remote(sd_bus **ret, const char *host, Error *reterr)
{
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
        const char *name;
        int r = sd_bus_open_system_remote(&bus, host);

        if (r == -EINVAL)
                return error_setf(reterr, r, "--host: \"%.60s\" is not [USER@]HOST[:PORT]", host);
        if (r >= 0)
                r = sd_bus_get_unique_name(bus, &name);
        if (r < 0)
                return error_setf(
                        reterr, r,
                        "Cannot reach the bus of the host over ssh (%s). Check that you can log in and that systemd-stdio-bridge is installed there",
                        strerror(-r));
        *ret = TAKE_PTR(bus);
        return 0;
}

int ctl_bus_open(sd_bus **ret, const char *host, Error *reterr)
{
        return host ? open_remote(ret, host, reterr) : open_local(ret, reterr);
}

/* Stores the reason why no agent is on the bus: systemd knows whether its unit failed or is
 * starting. */
static int explain_absence(sd_bus *bus, Error *reterr)
{
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };

        if (ctl_unit_read(bus, &unit) < 0 || !ctl_unit_explain(&unit, reterr))
                error_setf(
                        reterr, ESRCH,
                        "compute-agent is not running. Start it with: systemctl start compute-agent");
        return CTL_NOT_RUNNING;
}

/* Stores the reason why a call failed. Returns a negative errno: CTL_NOT_RUNNING if no agent is on
 * the bus, -E2BIG if the agent could not decide a request. r: the result of sd-bus. An error
 * without a branch of its own here keeps its words. */
static int explain(sd_bus *bus, int r, const sd_bus_error *error, Error *reterr)
{
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_SERVICE_UNKNOWN,
                                   SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                return explain_absence(bus, reterr);
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_ACCESS_DENIED,
                                   SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED))
                return error_setf(reterr, EACCES, "Permission denied. Run the command as root");
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT))
                return error_setf(
                        reterr, ETIMEDOUT,
                        "compute-agent did not answer in time, or stopped during the call. See: journalctl -u compute-agent");
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_UNKNOWN_METHOD,
                                   SD_BUS_ERROR_UNKNOWN_INTERFACE, SD_BUS_ERROR_UNKNOWN_OBJECT))
                return error_setf(
                        reterr, EOPNOTSUPP,
                        "The running compute-agent does not support this request. Do compute-agent and computectl have the same version?");
        if (sd_bus_error_has_name(error, BUS_ERROR_TOO_HARD))
                r = -E2BIG;
        /* An agent that runs can answer with this errno, too. CTL_NOT_RUNNING must not be returned
         * for that. */
        if (r == CTL_NOT_RUNNING)
                r = -EIO;
        if (error->message && error->message[0])
                return error_setf(reterr, r, "%s", error->message);
        return error_setf(reterr, r, "Cannot call compute-agent: %s", strerror(-r));
}

/* Stores that a reply could not be parsed. r: the result of sd-bus. */
static int malformed(int r, Error *reterr)
{
        return r == -ENOMEM
                       ? error_oom(reterr)
                       : error_setf(
                                 reterr, EBADMSG,
                                 "Cannot parse the reply of compute-agent. Do compute-agent and computectl have the same version?");
}

/* Creates a message for a method of the agent. The bus must not start the agent for it. */
static int new_call(sd_bus *bus, const char *method, sd_bus_message **ret, Error *reterr)
{
        int r = sd_bus_message_new_method_call(bus, ret, BUS_NAME, BUS_PATH, BUS_INTERFACE, method);

        if (r < 0)
                return error_setf(reterr, r, "Cannot create a D-Bus message: %s", strerror(-r));
        (void)sd_bus_message_set_auto_start(*ret, false);
        return 0;
}

/* Sends a message and waits for its reply. timeout_usec 0: the default of the bus. */
static int call(sd_bus *bus, sd_bus_message *m, uint64_t timeout_usec, sd_bus_message **ret,
                Error *reterr)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = sd_bus_call(bus, m, timeout_usec, &error, ret);

        return r < 0 ? explain(bus, r, &error, reterr) : 0;
}

/* Stores why an argument could not be appended: memory ran out, or the text is not UTF-8. */
static int append_failed(int r, Error *reterr)
{
        return r == -ENOMEM ? error_oom(reterr)
                            : error_setf(reterr, EINVAL, "An argument is not valid UTF-8");
}

/* Copies the text of a reply; the caller frees it. */
static int read_text(sd_bus_message *reply, char **ret, Error *reterr)
{
        const char *text;
        int r = sd_bus_message_read(reply, "s", &text);

        if (r < 0)
                return malformed(r, reterr);
        *ret = strdup(text);
        return *ret ? 0 : error_oom(reterr);
}

/* The progress of a call
 *
 * The agent changes the properties Operation, OperationPhase, OperationDone and OperationTotal for
 * its oldest operation, which can be another caller's, and each signal redraws a line on standard
 * error. The line begins with the method of that operation. Nothing is drawn during the first
 * 300 ms, so a fast operation prints nothing, and the line is erased before the call returns. */

void ctl_bus_format_progress(const char *kind, const Progress *progress, const CtlStyle *style,
                             char *line, size_t size)
{
        size_t width = MIN(style->width > 0 ? style->width : 80, size - 1), room, filled;
        char text[128];

        snprintf(text, sizeof(text), "%.30s: %.60s", kind, progress->phase);
        if (progress->n_total == 0 || progress->n_done > progress->n_total) {
                snprintf(line, width + 1, "%s", text);
                return;
        }
        snprintf(line, width + 1, "%s %" PRIu64 "/%" PRIu64, text, progress->n_done,
                 progress->n_total);
        room = width - strlen(line);
        if (room < BAR_MIN + 3)
                return;
        room = MIN(room - 3, BAR_MAX);
        filled = (size_t)((double)room * (double)progress->n_done / (double)progress->n_total);
        snprintf(line + strlen(line), size - strlen(line), " [%.*s%s%*s]", (int)filled,
                 "========================================", filled < room ? ">" : "",
                 (int)(filled < room ? room - filled - 1 : 0), "");
}

/* The state of one call. The callbacks of sd-bus get it as userdata. */
typedef struct Waiting {
        const CtlStyle *style;
        char method[64]; /* name of the operation that progresses */
        char phase[64];  /* "": unknown */
        Progress progress;
        uint64_t begin_usec;   /* CLOCK_MONOTONIC */
        bool drawn;            /* the terminal shows a line */
        sd_bus_message *reply; /* owned; NULL: not received yet */
} Waiting;

/* Draws the line, unless the phase is unknown or the quiet time lasts. The phase comes from the
 * agent, so control characters are replaced. */
static void draw(Waiting *waiting)
{
        char line[LINE_SIZE];

        if (!waiting->phase[0] || clock_usec(CLOCK_MONOTONIC) - waiting->begin_usec < QUIET_USEC)
                return;
        waiting->progress.phase = waiting->phase;
        ctl_bus_format_progress(waiting->method, &waiting->progress, waiting->style, line,
                                sizeof(line));
        text_sanitize(line, '?');
        fprintf(stderr, "\r\033[K%s", line);
        fflush(stderr);
        waiting->drawn = true;
}

static void erase(Waiting *waiting)
{
        if (waiting->drawn)
                fputs("\r\033[K", stderr);
        fflush(stderr);
}

/* Reads the name and value of one property. Properties other than the four of the progress are
 * skipped. */
static int read_property(sd_bus_message *m, Waiting *waiting)
{
        const char *name, *text;
        bool of_method;
        int r = sd_bus_message_read(m, "s", &name);

        if (r < 0)
                return r;
        if (strcmp(name, "OperationDone") == 0)
                return sd_bus_message_read(m, "v", "t", &waiting->progress.n_done);
        if (strcmp(name, "OperationTotal") == 0)
                return sd_bus_message_read(m, "v", "t", &waiting->progress.n_total);
        of_method = strcmp(name, "Operation") == 0;
        if (!of_method && strcmp(name, "OperationPhase") != 0)
                return sd_bus_message_skip(m, "v");
        r = sd_bus_message_read(m, "v", "s", &text);
        if (r >= 0)
                snprintf(of_method ? waiting->method : waiting->phase, sizeof(waiting->phase), "%s",
                         text);
        return r;
}

/* Reads an "a{sv}" and redraws the line. Reading ends at the first property that cannot be parsed:
 * it must not disturb the call. */
static void read_properties(sd_bus_message *m, Waiting *waiting)
{
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_property(m, waiting);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        draw(waiting);
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        const char *interface;

        if (sd_bus_message_read(m, "s", &interface) >= 0)
                read_properties(m, userdata);
        return 0;
}

/* Receives the reply to GetAll, the present progress. An operation that ran before has signalled
 * its phase before this process listened. */
static int on_properties(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        if (!sd_bus_message_is_method_error(m, NULL))
                read_properties(m, userdata);
        return 0;
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        ((Waiting *)userdata)->reply = sd_bus_message_ref(m);
        return 0;
}

/* Processes the bus until the reply arrives. When the quiet time ends, the last signal is drawn
 * without waiting for the next one, which can take long. */
static int wait_for_reply(sd_bus *bus, Waiting *waiting)
{
        while (!waiting->reply) {
                uint64_t spent_usec = clock_usec(CLOCK_MONOTONIC) - waiting->begin_usec;
                int r = sd_bus_process(bus, NULL);

                if (r == 0) {
                        r = sd_bus_wait(bus, spent_usec < QUIET_USEC ? QUIET_USEC - spent_usec
                                                                     : UINT64_MAX);
                        if (r == 0)
                                draw(waiting);
                }
                if (r < 0 && r != -EINTR)
                        return r;
        }
        return 0;
}

/* Returns the reply to the caller, or its error as sd_bus_call() does. Releases the reply on an
 * error. */
static int finish_wait(Waiting *waiting, sd_bus_error *error, sd_bus_message **ret_reply)
{
        const sd_bus_error *refusal = sd_bus_message_get_error(waiting->reply);
        int r;

        if (!refusal) {
                *ret_reply = waiting->reply;
                return 1;
        }
        /* The result is the negative errno that belongs to the name of the error. */
        r = sd_bus_error_copy(error, refusal);
        sd_bus_message_unref(waiting->reply);
        return r < 0 ? r : -EIO;
}

/* Sends a call and waits for its reply, with that line on standard error if it is a terminal. The
 * caller owns the reply. Returns the results of sd_bus_call(); a failure in this process can leave
 * error unset. timeout_usec 0: the default of the bus, without a line. */
static int call_with_progress(sd_bus *bus, sd_bus_message *m, uint64_t timeout_usec,
                              sd_bus_error *error, sd_bus_message **ret_reply)
{
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *match = NULL, *slot = NULL, *properties = NULL;
        const CtlStyle style = ctl_style_detect(stderr);
        Waiting waiting = { .style = &style, .begin_usec = clock_usec(CLOCK_MONOTONIC) };
        int r;

        if (!style.terminal || timeout_usec == 0)
                return sd_bus_call(bus, m, timeout_usec, error, ret_reply);
        r = sd_bus_match_signal(bus, &match, BUS_NAME, BUS_PATH, "org.freedesktop.DBus.Properties",
                                "PropertiesChanged", on_changed, &waiting);
        if (r >= 0)
                r = sd_bus_call_async(bus, &slot, m, on_reply, &waiting, timeout_usec);
        if (r >= 0)
                r = sd_bus_call_method_async(bus, &properties, BUS_NAME, BUS_PATH,
                                             "org.freedesktop.DBus.Properties", "GetAll",
                                             on_properties, &waiting, "s", BUS_INTERFACE);
        if (r >= 0)
                r = wait_for_reply(bus, &waiting);
        erase(&waiting);
        return r < 0 ? r : finish_wait(&waiting, error, ret_reply);
}

/* Calls */

int ctl_bus_call(sd_bus *bus, const char *method, uint64_t timeout_usec, char **ret, Error *reterr,
                 const char *types, ...)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        va_list ap;
        int r = new_call(bus, method, &m, reterr);

        if (r < 0)
                return r;
        va_start(ap, types);
        r = sd_bus_message_appendv(m, types, ap);
        va_end(ap);
        if (r < 0)
                return append_failed(r, reterr);
        /* Operations have no arguments, except HealConsumer, whose progress is not shown. */
        r = types[0] ? sd_bus_call(bus, m, timeout_usec, &error, &reply)
                     : call_with_progress(bus, m, timeout_usec, &error, &reply);
        if (r < 0)
                return explain(bus, r, &error, reterr);
        return ret ? read_text(reply, ret, reterr) : 0;
}

int ctl_bus_describe(sd_bus *bus, const char *document, const char *format, json_t **ret,
                     Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = ctl_bus_call(bus, "Describe", 0, &text, reterr, "s", document);

        return r < 0 ? r : ctl_json_read_document(text, format, ret, reterr);
}

/* Reads the control group of a unit at that object path. Each type of unit has its own interface:
 * "a.scope" has "org.freedesktop.systemd1.Scope". */
static int read_group(sd_bus *bus, const char *unit, const char *path, char **ret,
                      sd_bus_error *error)
{
        const char *type = strrchr(unit, '.') + 1;
        _cleanup_free_ char *interface =
                text_format(MANAGER_NAME ".%c%s", toupper((unsigned char)type[0]), type + 1);

        if (!interface)
                return -ENOMEM;
        return sd_bus_get_property_string(bus, MANAGER_NAME, path, interface, "ControlGroup", error,
                                          ret);
}

int ctl_bus_control_group(sd_bus *bus, const char *unit, char **ret, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *name = text_format("%s%s", unit, strchr(unit, '.') ? "" : ".service");
        _cleanup_free_ char *group = NULL;
        const char *path;
        int r;

        if (!name)
                return error_oom(reterr);
        r = sd_bus_call_method(bus, MANAGER_NAME, MANAGER_PATH, MANAGER_NAME ".Manager", "GetUnit",
                               &error, &reply, "s", name);
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &path);
        if (r >= 0)
                r = read_group(bus, name, path, &group, &error);
        if (r < 0)
                return error_setf(reterr, r, "Cannot ask systemd about %.200s: %s", name,
                                  error.message ? error.message : strerror(-r));
        if (!group[0])
                return error_setf(reterr, ESRCH, "Unit %.200s is not running", name);
        *ret = TAKE_PTR(group);
        return 0;
}

/* Requests of claims. The functions below append the parts of a message and return a negative errno
 * of sd-bus. */

/* Appends amounts as "a{st}". */
static int append_resources(sd_bus_message *m, const Resources *resources)
{
        int r = sd_bus_message_open_container(m, 'a', "{st}");

        for (size_t i = 0; r >= 0 && i < resources->n_items; i++)
                r = sd_bus_message_append(m, "{st}", resources->items[i].resource_class,
                                          resources->items[i].amount);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Appends texts as "as". */
static int append_set(sd_bus_message *m, const StringSet *set)
{
        int r = sd_bus_message_open_container(m, 'a', "s");

        for (size_t i = 0; r >= 0 && i < set->n_items; i++)
                r = sd_bus_message_append(m, "s", set->items[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Appends the groups of a request: suffix, amounts, required and forbidden traits of each. */
static int append_groups(sd_bus_message *m, const ResourceRequest *request)
{
        int r = sd_bus_message_open_container(m, 'a', "(sa{st}asas)");

        for (size_t i = 0; r >= 0 && i < request->n_groups; i++) {
                const RequestGroup *group = &request->groups[i];

                if ((r = sd_bus_message_open_container(m, 'r', "sa{st}asas")) < 0 ||
                    (r = sd_bus_message_append(m, "s", group->suffix)) < 0 ||
                    (r = append_resources(m, &group->resources)) < 0 ||
                    (r = append_set(m, &group->required)) < 0 ||
                    (r = append_set(m, &group->forbidden)) < 0)
                        return r;
                r = sd_bus_message_close_container(m);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Appends "same-subtree": the groups of one list must be placed in one subtree. */
static int append_subtrees(sd_bus_message *m, const CtlClaim *claim)
{
        const ResourceRequest *request = claim->request;
        int r = sd_bus_message_open_container(m, 'a', "as");

        for (size_t i = 0; r >= 0 && i < request->n_subtrees; i++)
                r = append_set(m, &request->subtrees[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Appends "in-tree": the provider in whose tree a group must be placed. Groups without one are
 * skipped. */
static int append_trees(sd_bus_message *m, const CtlClaim *claim)
{
        const ResourceRequest *request = claim->request;
        int r = sd_bus_message_open_container(m, 'a', "{ss}");

        for (size_t i = 0; r >= 0 && i < request->n_groups; i++)
                if (!uuid_empty(&request->groups[i].in_tree))
                        r = sd_bus_message_append(m, "{ss}", request->groups[i].suffix,
                                                  request->groups[i].in_tree.text);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_cpus(sd_bus_message *m, const CtlClaim *claim)
{
        return sd_bus_message_append_strv(m, (char **)claim->numa->cpus);
}

/* Appends "numa-mem": the memory of each cell in MiB. */
static int append_memory(sd_bus_message *m, const CtlClaim *claim)
{
        return sd_bus_message_append_array(m, 't', claim->numa->memory_mb,
                                           claim->numa->n_memory * sizeof(uint64_t));
}

/* Appends "mappings" as "a{sas}": the providers of each group. Items with equal suffixes must be
 * adjacent, because each suffix becomes one entry. */
static int append_mappings(sd_bus_message *m, const CtlClaim *claim)
{
        const RequestMappings *mappings = claim->mappings;
        int r = sd_bus_message_open_container(m, 'a', "{sas}");

        for (size_t i = 0, next; r >= 0 && i < mappings->n_items; i = next) {
                const char *suffix = mappings->items[i].suffix;

                if ((r = sd_bus_message_open_container(m, 'e', "sas")) < 0 ||
                    (r = sd_bus_message_append(m, "s", suffix)) < 0 ||
                    (r = sd_bus_message_open_container(m, 'a', "s")) < 0)
                        return r;
                for (next = i;
                     next < mappings->n_items && strcmp(mappings->items[next].suffix, suffix) == 0;
                     next++)
                        if ((r = sd_bus_message_append(m, "s",
                                                       mappings->items[next].provider.text)) < 0)
                                return r;
                if ((r = sd_bus_message_close_container(m)) < 0)
                        return r;
                r = sd_bus_message_close_container(m);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static bool names_trees(const ResourceRequest *request)
{
        for (size_t i = 0; i < request->n_groups; i++)
                if (!uuid_empty(&request->groups[i].in_tree))
                        return true;
        return false;
}

/* Appends the options whose value is one text. Options that are not set are skipped. */
static int append_texts(sd_bus_message *m, const CtlClaim *claim)
{
        const NumaOptions *numa = claim->numa;
        const struct {
                const char *name, *text;
        } texts[] = { { "consumer-type", claim->consumer_type },
                      { "project", claim->project },
                      { "user", claim->user },
                      { "control-group", claim->control_group },
                      { "cpu-policy", numa->cpu_policy },
                      { "cpu-dedicated-mask", numa->dedicated_mask },
                      { "cpu-thread-policy", numa->thread_policy },
                      { "mem-page-size", numa->page_size },
                      { "pci-numa-affinity-policy", numa->affinity },
                      { "numa-strategy", numa->strategy } };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(texts); i++)
                if (texts[i].text)
                        r = sd_bus_message_append(m, "{sv}", texts[i].name, "s", texts[i].text);
        return r;
}

/* Appends the options whose value is a list, and that are given. For each the table has a function
 * that writes the value inside its variant. */
static int append_lists(sd_bus_message *m, const CtlClaim *claim)
{
        const struct {
                bool given;
                const char *name, *type;
                int (*append)(sd_bus_message *m, const CtlClaim *claim);
        } lists[] = { { claim->numa->n_cpus > 0, "numa-cpus", "as", append_cpus },
                      { claim->numa->n_memory > 0, "numa-mem", "at", append_memory },
                      { claim->request->n_subtrees > 0, "same-subtree", "aas", append_subtrees },
                      { names_trees(claim->request), "in-tree", "a{ss}", append_trees },
                      { claim->mappings && claim->mappings->n_items > 0, "mappings", "a{sas}",
                        append_mappings } };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(lists); i++)
                if (lists[i].given &&
                    ((r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
                     (r = sd_bus_message_append(m, "s", lists[i].name)) < 0 ||
                     (r = sd_bus_message_open_container(m, 'v', lists[i].type)) < 0 ||
                     (r = lists[i].append(m, claim)) < 0 ||
                     (r = sd_bus_message_close_container(m)) < 0 ||
                     (r = sd_bus_message_close_container(m)) < 0))
                        return r;
        return r;
}

static int append_options(sd_bus_message *m, const CtlClaim *claim)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = append_texts(m, claim);
        if (r >= 0)
                r = append_lists(m, claim);
        if (r >= 0 && claim->numa->nodes > 0)
                r = sd_bus_message_append(m, "{sv}", "numa-nodes", "t", claim->numa->nodes);
        if (r >= 0 && claim->process > 0)
                r = sd_bus_message_append(m, "{sv}", "process", "u", claim->process);
        if (r >= 0 && claim->resize_target)
                r = sd_bus_message_append(m, "{sv}", "resize-target", "b", 1);
        if (r >= 0 && claim->request->isolate)
                r = sd_bus_message_append(m, "{sv}", "isolate", "b", 1);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int ctl_bus_request(sd_bus *bus, const CtlClaim *claim, json_t **ret, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        const char *text;
        int64_t id;
        int r = new_call(bus, claim->consumer ? "Claim" : "Explain", &m, reterr);

        if (r < 0)
                return r;
        r = claim->consumer ? sd_bus_message_append(m, "s", claim->consumer) : 0;
        if (r >= 0)
                r = append_groups(m, claim->request);
        if (r >= 0)
                r = append_options(m, claim);
        if (r < 0)
                return append_failed(r, reterr);
        r = call(bus, m, 0, &reply, reterr);
        if (r < 0)
                return r;
        r = claim->consumer ? sd_bus_message_read(reply, BUS_CLAIM_OUT, &id, &text)
                            : sd_bus_message_read(reply, "s", &text);
        return r < 0 ? malformed(r, reterr)
                     : ctl_json_read_document(text, claim->consumer ? CLAIM_FORMAT : EXPLAIN_FORMAT,
                                              ret, reterr);
}

int ctl_bus_move_claim(sd_bus *bus, const char *from, const char *to, const char *consumer_type,
                       int64_t *ret_id, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        int r = new_call(bus, "MoveClaim", &m, reterr);

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "sss", from, to, consumer_type ? consumer_type : "");
        if (r < 0)
                return append_failed(r, reterr);
        r = call(bus, m, 0, &reply, reterr);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "x", ret_id);
        return r < 0 ? malformed(r, reterr) : 0;
}

int ctl_bus_guest(sd_bus *bus, const char *method, const char *argument, const char *argument2,
                  uint64_t timeout_usec, const char **ret_refused, Error *reterr)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int ready = true, r = new_call(bus, method, &m, reterr);
        int64_t id;

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, argument2 ? "ss" : "s", argument, argument2);
        if (r < 0)
                return append_failed(r, reterr);
        r = sd_bus_call(bus, m, timeout_usec, &error, &reply);
        if (r >= 0) {
                /* Only PrepareGuest has values, and an agent of 0.2 sends the id alone. */
                (void)sd_bus_message_read(reply, "xb", &id, &ready);
                return !ready;
        }
        if (sd_bus_error_has_name(&error, BUS_ERROR_INVALID))
                *ret_refused = "cannot read the domain of guest";
        else if (sd_bus_error_has_names(&error, BUS_ERROR_NO_CAPACITY, BUS_ERROR_UNKNOWN_CLASS,
                                        BUS_ERROR_CONFLICT))
                *ret_refused = "no capacity on this host for guest";
        else if (sd_bus_error_has_name(&error, BUS_ERROR_UNAVAILABLE))
                *ret_refused = "a device is not ready for guest";
        else if (sd_bus_error_has_name(&error, BUS_ERROR_NOT_FOUND))
                *ret_refused = "no claim for guest";
        return explain(bus, r, &error, reterr);
}
