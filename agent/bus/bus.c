/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The service on the system bus: the tables of its methods and properties, its two objects (the
 * agent and LogControl1), and the connection. A row of "methods" has the action of polkit that a
 * method needs and the function that runs it. One timer delays the signals of changes. The
 * connection is replaced when the bus does not answer, or when too many bytes that the agent sent
 * are unread there: a look timer checks both every BUS_LOOK_USEC. If the connection breaks, cannot
 * be opened, or does not get the name, a retry timer opens a new one every BUS_RETRY_USEC. A
 * replacement drops the calls that were not served yet, that wait for polkit, or whose answer is
 * made in steps. The work of the others still ends, but their answers are lost.
 *
 * Tests: tests/integration/agent/test_bus_documents.py tests/integration/agent/test_bus_files.py
 * tests/integration/agent/test_bus_limits.py */

#include "agent/bus/bus.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#include "agent/bus/ask.h"
#include "agent/bus/caller.h"
#include "agent/bus/dispatch.h"
#include "agent/bus/documents.h"
#include "agent/bus/methods.h"
#include "agent/bus/operations.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "formats/interface.h"

/* Answers of the bus to RequestName(). */
#define NAME_IN_QUEUE 2
#define NAME_EXISTS   3

#define LOG_PATH      "/org/freedesktop/LogControl1"
#define LOG_INTERFACE "org.freedesktop.LogControl1"

/* The properties, the values that a client can follow without reading a document: P(D-Bus type,
 * name, flags) */
#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGES  SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
#define PROPERTIES(P)                    \
        P(u, InterfaceVersion, CONSTANT) \
        P(s, Version, CONSTANT)          \
        P(s, Nova, CHANGES)              \
        P(b, TreePublished, CHANGES)     \
        P(s, Operation, CHANGES)         \
        P(s, OperationPhase, CHANGES)    \
        P(t, OperationDone, CHANGES)     \
        P(t, OperationTotal, CHANGES)

enum {
#define P(type, property, flags) PROPERTY_##property,
        PROPERTIES(P)
#undef P
                _PROPERTY_MAX,
};

struct BusService {
        BusConfig config;
        BusOperations *operations;
        struct {
                const char *text; /* a static string; NULL: the value is number */
                uint64_t number;
                bool changed; /* changed since the last signal */
        } values[_PROPERTY_MAX];
        sd_event *event;
        sd_event_source *retry_timer;
        sd_event_source *look_timer;
        sd_event_source *signal_timer;
        bool is_leaving;      /* the previous connection might still own the name */
        bool is_looking;      /* a question to the bus is unanswered */
        bool is_unresponsive; /* the last question got no answer in time */
        uint64_t unread;      /* bytes sent that were unread at the last check */
        sd_bus *bus;          /* NULL while there is none */
        bool logged_no_bus;   /* the absence is logged once */
        bool settled;         /* systemd knows that the start is complete */
        BusGate *gate;
        BusDispatch dispatch;
        Polkit polkit;
        BusDocuments documents;
};

/* Starts the signal timer unless it already runs, so that changes within BUS_SIGNAL_USEC share a
 * signal. */
void bus_service_changed(BusService *service, bool cordons)
{
        int enabled = SD_EVENT_OFF;

        if (cordons) {
                bus_documents_note(&service->documents, BUS_TREE);
                bus_documents_note(&service->documents, BUS_EVENTS);
        }
        bus_documents_look(&service->documents);
        (void)sd_event_source_get_enabled(service->signal_timer, &enabled);
        if (enabled != SD_EVENT_OFF)
                return;
        (void)sd_event_source_set_time_relative(service->signal_timer, BUS_SIGNAL_USEC);
        (void)sd_event_source_set_enabled(service->signal_timer, SD_EVENT_ONESHOT);
}

/* Name, first letter of the type, and flags of each property, in the order of the enum. */
static const struct {
        const char *name;
        char type;
        uint64_t flags;
} properties[] = {
#define P(type, property, flags) { #property, #type[0], flags },
        PROPERTIES(P)
#undef P
};

/* Sets a property to a static string. */
static void set_text(BusService *service, size_t property, const char *text)
{
        const char *before = service->values[property].text;

        service->values[property].changed |= !before || strcmp(before, text) != 0;
        service->values[property].text = text;
}

static void set_number(BusService *service, size_t property, uint64_t number)
{
        service->values[property].changed |= service->values[property].number != number;
        service->values[property].number = number;
}

/* Updates all properties from their sources, and marks those that differ as changed. It runs at
 * each read of one of them, and before each signal. So a client that has read a changed value gets
 * a signal, also if the value changes back. */
static void update_properties(BusService *service)
{
        const TrackerView view = tracker_view(service->config.tracker);
        Progress progress;

        set_number(service, PROPERTY_InterfaceVersion, BUS_INTERFACE_VERSION);
        set_text(service, PROPERTY_Version, PACKAGE_VERSION);
        set_text(service, PROPERTY_Nova, nova_mode_to_text(view.nova));
        set_number(service, PROPERTY_TreePublished, view.status->tree_published);
        set_text(service, PROPERTY_Operation, bus_operations_get(service->operations, &progress));
        set_text(service, PROPERTY_OperationPhase, progress.phase);
        set_number(service, PROPERTY_OperationDone, progress.n_done);
        set_number(service, PROPERTY_OperationTotal, progress.n_total);
}

/* Gets a property, as an sd-bus getter. */
static int get_property(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        size_t i = 0;
        int value;

        update_properties(service);
        while (i < ARRAY_SIZE(properties) && strcmp(properties[i].name, property) != 0)
                i++;
        if (i == ARRAY_SIZE(properties))
                return -ENOENT;
        if (properties[i].type == 's')
                return sd_bus_message_append(reply, "s", service->values[i].text);
        if (properties[i].type == 't')
                return sd_bus_message_append(reply, "t", service->values[i].number);
        value = (int)service->values[i].number; /* "b" and "u" also have the size of an int */
        return sd_bus_message_append_basic(reply, properties[i].type, &value);
}

/* Sends PropertiesChanged with each property that is not constant and differs from its value at the
 * last signal, or differed from it at a read since. Returns -ENOMEM or an error of sd-bus. */
static int signal_properties(BusService *service)
{
        char *names[ARRAY_SIZE(properties) + 1];
        size_t n = 0;
        int r = 0;

        update_properties(service);
        for (size_t i = 0; i < ARRAY_SIZE(properties); i++)
                if (service->values[i].changed && properties[i].flags == CHANGES)
                        names[n++] = (char *)properties[i].name;
        names[n] = NULL;
        if (n > 0)
                r = sd_bus_emit_properties_changed_strv(service->bus, BUS_PATH, BUS_INTERFACE,
                                                        names);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(properties); i++)
                service->values[i].changed = false;
        return r;
}

/* Sends all due signals. Without a connection they stay due. bus_documents_signal() makes at most
 * one document for each call, so the timer runs again at once while more are due. */
static int on_signal_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        BusService *service = userdata;

        if (!service->bus || sd_bus_is_ready(service->bus) <= 0)
                return 0;
        if (signal_properties(service) < 0)
                log_warning("Out of memory. A change is not signalled on D-Bus.");
        if (!bus_documents_signal(&service->documents, service->bus))
                return 0;
        (void)sd_event_source_set_time_relative(source, 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int method_describe(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        int r = bus_documents_describe(&service->documents, call, error);

        bus_service_changed(service, false);
        return r;
}

/* Marks the documents that a change of a claim affects. */
static void on_claim(ClaimEvent event, const Claim *claim, void *userdata)
{
        BusService *service = userdata;

        bus_documents_note(&service->documents, BUS_CLAIMS);
        bus_documents_note(&service->documents, BUS_EVENTS);
        bus_documents_note(&service->documents, BUS_TREE);
        if (event == CLAIM_EVENT_REMOVED)
                bus_documents_note(&service->documents, BUS_HISTORY);
        bus_service_changed(service, false);
}

/* Only the calls of root and of the agent's own user can wait. Those of others use the known state,
 * and never make the agent ask libvirt. */
static int method_explain(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        const BusSender *sender = bus_gate_get_sender(service->gate, call);

        return bus_explain(call, &service->config, sender && sender->is_privileged, error);
}

static int check_claim(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_check_claim(call, ((BusService *)userdata)->config.claims, false, error);
}

static int check_claim_placed(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_check_claim(call, ((BusService *)userdata)->config.claims, true, error);
}

/* The methods that need rights, except Cancel(): the polkit action of each, and the function that
 * runs it. */
static const struct {
        const char *name, *action;
        BusMethod *run; /* NULL: bus_operations_begin() runs it */
        sd_bus_message_handler_t
                check; /* checks the arguments before polkit is asked; NULL: none */
        bool cordons;  /* changes cordons, which the documents "tree" and "events" contain */
} methods[] = {
        { "Claim", POLKIT_ACTION_CLAIM, bus_claim, check_claim, false },
        { "ClaimPlaced", POLKIT_ACTION_ATTACH, bus_claim_placed, check_claim_placed, false },
        { "Confirm", POLKIT_ACTION_CLAIM, bus_change_claim, NULL, false },
        { "Extend", POLKIT_ACTION_CLAIM, bus_change_claim, NULL, false },
        { "Release", POLKIT_ACTION_CLAIM, bus_change_claim, NULL, false },
        { "ReleaseAllocations", POLKIT_ACTION_CLAIM, bus_change_claim, NULL, false },
        { "MoveClaim", POLKIT_ACTION_CLAIM, bus_move_claim, NULL, false },
        { "Abort", POLKIT_ACTION_CLAIM, bus_change_claim, NULL, false },
        { "PrepareGuest", POLKIT_ACTION_CLAIM, bus_prepare_guest, NULL, false },
        { "CheckGuest", POLKIT_ACTION_CLAIM, bus_check_guest, NULL, false },
        { "GuestStarted", POLKIT_ACTION_CLAIM, bus_guest_started, NULL, false },
        { "GuestReleased", POLKIT_ACTION_CLAIM, bus_guest_released, NULL, false },
        { "Cordon", POLKIT_ACTION_MANAGE, bus_cordon, NULL, true },
        { "Uncordon", POLKIT_ACTION_MANAGE, bus_uncordon, NULL, true },
        { "UndoRetire", POLKIT_ACTION_RETIRE, bus_undo_retire, NULL, true },
        { "Sync", POLKIT_ACTION_MANAGE, NULL, NULL, false },
        { "SyncFull", POLKIT_ACTION_MANAGE, NULL, NULL, false },
        { "GetReshape", POLKIT_ACTION_MANAGE, NULL, NULL, false },
        { "Reshape", POLKIT_ACTION_RESHAPE, NULL, NULL, false },
        { "UndoReshape", POLKIT_ACTION_RESHAPE, NULL, NULL, false },
        { "Audit", POLKIT_ACTION_MANAGE, NULL, NULL, false },
        { "Heal", POLKIT_ACTION_MANAGE, NULL, NULL, false },
        { "HealConsumer", POLKIT_ACTION_MANAGE, NULL, NULL, false },
        { "GetRetire", POLKIT_ACTION_MANAGE, NULL, NULL, false },
        { "Retire", POLKIT_ACTION_RETIRE, NULL, NULL, false },
        { "Reload", POLKIT_ACTION_MANAGE, NULL, NULL, false },
};

/* Returns the index of the method's row, or ARRAY_SIZE(methods) if there is no such method. */
static size_t find_method(const char *name)
{
        size_t i = 0;

        while (i < ARRAY_SIZE(methods) && strcmp(methods[i].name, name) != 0)
                i++;
        return i;
}

/* Runs a method whose caller has the rights. Called at once or after the answer of polkit. */
static int run_method(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        size_t i = find_method(sd_bus_message_get_member(call));
        BusCaller caller;
        int r;

        bus_caller_find(service->gate, call, &caller);
        if (methods[i].run)
                r = methods[i].run(call, &caller, &service->config, error);
        else
                r = bus_operations_begin(service->operations, call, &caller.author, error);
        bus_service_changed(service, methods[i].cordons);
        return r;
}

static int on_method(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        size_t i = find_method(sd_bus_message_get_member(call));

        assert(i < ARRAY_SIZE(methods)); /* each on_method row is in the table */
        return bus_caller_guard(&service->polkit, call, methods[i].action, methods[i].check,
                                run_method, service, error);
}

static int run_cancel(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_cancel(((BusService *)userdata)->operations, call, error);
}

/* Handles Cancel(), which requires the same rights as the operation that it cancels. For any other
 * name it requires POLKIT_ACTION_MANAGE. */
static int on_cancel(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        const char *name;
        int r = sd_bus_message_read(call, "s", &name);
        bool is_operation;
        size_t i;

        if (r < 0)
                return r;
        i = find_method(name);
        is_operation = i < ARRAY_SIZE(methods) && !methods[i].run;
        (void)sd_bus_message_rewind(call, true);
        return bus_caller_guard(&service->polkit, call,
                                is_operation ? methods[i].action : POLKIT_ACTION_MANAGE, NULL,
                                run_cancel, service, error);
}

/* Lets every user call the method: a method that needs rights checks them itself. */
#define FREE   SD_BUS_VTABLE_UNPRIVILEGED
#define METHOD SD_BUS_METHOD_WITH_ARGS

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        METHOD("Claim", SD_BUS_ARGS("s", consumer, "a(sa{st}asas)", groups, "a{sv}", options),
               SD_BUS_RESULT("x", id, "s", json), on_method, FREE),
        METHOD("ClaimPlaced", SD_BUS_ARGS("s", consumer, "as", classes), SD_BUS_RESULT("s", json),
               on_method, FREE),
        METHOD("Confirm", SD_BUS_ARGS("x", id), SD_BUS_NO_RESULT, on_method, FREE),
        METHOD("Release", SD_BUS_ARGS("x", id, "s", reason), SD_BUS_NO_RESULT, on_method, FREE),
        METHOD("ReleaseAllocations", SD_BUS_ARGS("x", id, "s", reason), SD_BUS_NO_RESULT, on_method,
               FREE),
        METHOD("MoveClaim", SD_BUS_ARGS("s", from, "s", to, "s", consumer_type),
               SD_BUS_RESULT("x", id), on_method, FREE),
        METHOD("Abort", SD_BUS_ARGS("x", id, "s", reason), SD_BUS_NO_RESULT, on_method, FREE),
        METHOD("Extend", SD_BUS_ARGS("x", id, "t", expires_usec), SD_BUS_NO_RESULT, on_method,
               FREE),
        METHOD("PrepareGuest", SD_BUS_ARGS("s", xml), SD_BUS_RESULT("x", id, "b", ready), on_method,
               FREE),
        METHOD("CheckGuest", SD_BUS_ARGS("s", consumer), SD_BUS_NO_RESULT, on_method, FREE),
        METHOD("GuestStarted", SD_BUS_ARGS("s", consumer), SD_BUS_NO_RESULT, on_method, FREE),
        METHOD("GuestReleased", SD_BUS_ARGS("s", consumer, "s", reason), SD_BUS_NO_RESULT,
               on_method, FREE),
        METHOD("Describe", SD_BUS_ARGS("s", document), SD_BUS_RESULT("s", json), method_describe,
               FREE),
        METHOD("Explain", SD_BUS_ARGS("a(sa{st}asas)", groups, "a{sv}", options),
               SD_BUS_RESULT("s", json), method_explain, FREE),
        SD_BUS_SIGNAL_WITH_ARGS("DocumentChanged", SD_BUS_ARGS("s", document), 0),
        METHOD("Sync", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", error), on_method, FREE),
        METHOD("SyncFull", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", error), on_method, FREE),
        METHOD("GetReshape", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), on_method, FREE),
        METHOD("Reshape", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), on_method, FREE),
        METHOD("UndoReshape", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), on_method, FREE),
        METHOD("Audit", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), on_method, FREE),
        METHOD("Heal", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), on_method, FREE),
        METHOD("HealConsumer", SD_BUS_ARGS("s", consumer), SD_BUS_RESULT("s", json), on_method,
               FREE),
        METHOD("Cordon", SD_BUS_ARGS("s", device, "s", reason), SD_BUS_RESULT("s", error),
               on_method, FREE),
        METHOD("Uncordon", SD_BUS_ARGS("s", device), SD_BUS_RESULT("s", error), on_method, FREE),
        METHOD("GetRetire", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), on_method, FREE),
        METHOD("Retire", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), on_method, FREE),
        METHOD("UndoRetire", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", error), on_method, FREE),
        METHOD("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_method, FREE),
        METHOD("Cancel", SD_BUS_ARGS("s", operation), SD_BUS_NO_RESULT, on_cancel, FREE),
#define P(type, property, flags) SD_BUS_PROPERTY(#property, #type, get_property, 0, flags),
        PROPERTIES(P)
#undef P
                SD_BUS_VTABLE_END,
};

/* The interface org.freedesktop.LogControl1, which "systemctl service-log-level compute-agent
 * debug" uses. A level that is set here is valid until the next reload of the configuration. */

/* Returns the target that base/log.h has chosen. It cannot be changed. */
static const char *log_target(void)
{
        return log_is_to_journal() ? "journal" : "console";
}

static int get_log_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const char *text = "compute-agentd";

        if (strcmp(property, "LogLevel") == 0)
                text = log_level_to_text(log_get_level());
        else if (strcmp(property, "LogTarget") == 0)
                text = log_target();
        return sd_bus_message_append(reply, "s", text);
}

static int set_log_level(sd_bus *bus, const char *path, const char *interface, const char *property,
                         sd_bus_message *value, void *userdata, sd_bus_error *error)
{
        const char *text;
        int level, r = sd_bus_message_read(value, "s", &text);

        if (r < 0)
                return r;
        level = log_level_from_text(text);
        if (level < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "\"%.40s\" is not a log level", text);
        log_set_level(level);
        log_info("The log level is now %s.", log_level_to_text(level));
        return 0;
}

/* Accepts only the current target and "auto". */
static int set_log_target(sd_bus *bus, const char *path, const char *interface,
                          const char *property, sd_bus_message *value, void *userdata,
                          sd_bus_error *error)
{
        const char *text;
        int r = sd_bus_message_read(value, "s", &text);

        if (r < 0)
                return r;
        if (strcmp(text, log_target()) == 0 || strcmp(text, "auto") == 0)
                return 0;
        return sd_bus_error_setf(error, SD_BUS_ERROR_NOT_SUPPORTED,
                                 "compute-agentd writes to the %s only", log_target());
}

static const sd_bus_vtable log_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_log_text, set_log_level, 0, 0),
        SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", get_log_text, set_log_target, 0, 0),
        SD_BUS_PROPERTY("SyslogIdentifier", "s", get_log_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};

/* The connection */

/* Closes the connection and drops queued calls, jobs, questions to polkit, and registered objects.
 * Calls that wait for a cycle or for the claim queue are kept, but their answers are lost. */
static void close_bus(BusService *service)
{
        if (!service->bus)
                return;
        bus_gate_detach(service->gate);
        bus_caller_forget(&service->polkit);
        service->is_looking = false;
        service->is_unresponsive = false;
        service->unread = 0;
        sd_bus_detach_event(service->bus);
        service->bus = sd_bus_close_unref(service->bus);
}

/* Notifies systemd once that the start is complete: either computectl can reach the service, or an
 * attempt to connect or to get the name has failed. */
static void settle(BusService *service)
{
        if (!service->settled)
                (void)sd_notify(false, "READY=1");
        service->settled = true;
}

/* Logs that the bus is absent, once until it is reachable again. */
static void log_no_bus(BusService *service, const char *why)
{
        settle(service);
        if (!service->logged_no_bus)
                log_event(
                        LOG_WARNING, MESSAGE_NO_BUS, NULL,
                        "No D-Bus service: %s. The host is still reported, but computectl cannot reach this agent. Retrying every %d s.",
                        why, (int)(BUS_RETRY_USEC / USEC_PER_SEC));
        service->logged_no_bus = true;
}

static void arm_retry(BusService *service)
{
        (void)sd_event_source_set_time_relative(service->retry_timer, BUS_RETRY_USEC);
        (void)sd_event_source_set_enabled(service->retry_timer, SD_EVENT_ONESHOT);
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;

        /* The retry timer reconnects, because this handler runs inside the connection that must be
         * closed. */
        log_no_bus(service, "the system bus closed the connection");
        arm_retry(service);
        return 0;
}

/* Handles the answer to the request for the bus name. A refusal is retried like a lost connection,
 * and so is a name that belongs to another connection. After leave_bus() the old connection can
 * still own the name, and the request waits in the queue of the bus. The name usually follows at
 * once then, and on_name_acquired() ends the retry. */
static int on_name_requested(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        const sd_bus_error *refusal = sd_bus_message_get_error(message);
        uint32_t result = 0;

        if (refusal)
                log_no_bus(service, refusal->message ? refusal->message : refusal->name);
        else if (sd_bus_message_read(message, "u", &result) < 0 || result == NAME_EXISTS)
                log_no_bus(service, "another program has the name " BUS_NAME);
        else if (result != NAME_IN_QUEUE)
                return 0;
        arm_retry(service);
        return 0;
}

/* Handles the signal that this connection has a name: BUS_NAME, or first its unique name. */
static int on_name_acquired(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        const char *name;

        if (sd_bus_message_read(message, "s", &name) < 0 || strcmp(name, BUS_NAME) != 0)
                return 0;
        (void)sd_event_source_set_enabled(service->retry_timer, SD_EVENT_OFF);
        if (service->logged_no_bus)
                log_notice("The agent serves D-Bus again.");
        service->logged_no_bus = false;
        settle(service);
        return 0;
}

/* Adds the interfaces to the bus, and lets the gate receive their calls. */
static int add_objects(BusService *service)
{
        const BusDispatch *dispatch = &service->dispatch;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < dispatch->n_places; i++)
                r = sd_bus_add_object_vtable(
                        service->bus, NULL, dispatch->places[i].path, dispatch->places[i].interface,
                        dispatch->places[i].vtable, dispatch->places[i].userdata);
        return r < 0 ? r : bus_gate_attach(service->gate, service->bus);
}

/* Closes the old connection, opens a new one, adds the objects and requests the name. Does not wait
 * for the answer about the name. The caller closes the new connection after an error. */
static int try_open(BusService *service)
{
        int r;

        close_bus(service);
        r = sd_bus_open_system_with_description(&service->bus, "compute-agentd");
        if (r < 0)
                return r;
        (void)sd_bus_set_exit_on_disconnect(service->bus, false);
        r = add_objects(service);
        if (r < 0)
                return r;
        r = sd_bus_match_signal_async(service->bus, NULL, "org.freedesktop.DBus.Local", NULL,
                                      "org.freedesktop.DBus.Local", "Disconnected", on_disconnected,
                                      NULL, service);
        if (r < 0)
                return r;
        r = sd_bus_match_signal_async(service->bus, NULL, "org.freedesktop.DBus",
                                      "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                      "NameAcquired", on_name_acquired, NULL, service);
        if (r < 0)
                return r;
        r = sd_bus_request_name_async(service->bus, NULL, BUS_NAME,
                                      service->is_leaving ? SD_BUS_NAME_QUEUE : 0,
                                      on_name_requested, service);
        if (r < 0)
                return r;
        return sd_bus_attach_event(service->bus, service->event, SD_EVENT_PRIORITY_NORMAL);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
        BusService *service = userdata;
        int r = try_open(service);

        if (r < 0) {
                close_bus(service);
                log_no_bus(service, strerror(-r));
                arm_retry(service);
        }
        return 0;
}

/* Stores the answer about unread bytes. If the connection must be replaced, the look timer does
 * it. */
static void on_looked(const char *name, int result, uint64_t bytes, void *userdata)
{
        BusService *service = userdata;

        service->is_looking = false;
        service->is_unresponsive = result == -ETIMEDOUT;
        service->unread = bytes;
        if (bytes > BUS_UNREAD_LAST || service->is_unresponsive)
                (void)sd_event_source_set_time(service->look_timer, 0);
}

/* Replaces the connection; if that fails, the retry timer tries again. dbus-daemon no longer reads
 * from the old connection, so it detects the close only when it writes there. A ping to the old
 * connection makes dbus-daemon write, which frees the bus name. own is the unique name of the old
 * connection. */
static void leave_bus(BusService *service, const char *own)
{
        _cleanup_free_ char *left = strdup(own);

        log_warning("%s. Reconnecting to it.",
                    service->is_unresponsive ? "The bus does not answer"
                                             : "Unread replies and signals are filling the bus");
        service->is_leaving = true;
        (void)on_retry(NULL, 0, service);
        service->is_leaving = false;
        if (service->bus && left)
                (void)sd_bus_call_method_async(service->bus, NULL, left, "/",
                                               "org.freedesktop.DBus.Peer", "Ping", NULL, NULL, "");
}

/* Asks every BUS_LOOK_USEC how many bytes are unread at the bus, unless a question is open.
 * Replaces the connection instead if the last answer or its absence requires it. A subscriber that
 * never reads its signals fills the bus slowly. */
static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
        BusService *service = userdata;
        const char *own;
        bool is_open = service->bus && sd_bus_is_ready(service->bus) > 0 &&
                       sd_bus_get_unique_name(service->bus, &own) >= 0;

        if (is_open && (service->unread > BUS_UNREAD_LAST || service->is_unresponsive))
                leave_bus(service, own);
        else if (is_open && !service->is_looking)
                service->is_looking =
                        bus_ask(service->bus, BUS_ASK_SENT, own, on_looked, service) >= 0;
        (void)sd_event_source_set_time_relative(source, BUS_LOOK_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void on_operations(void *userdata)
{
        bus_service_changed(userdata, false);
}

static int add_timers(BusService *service)
{
        int r = sd_event_add_time_relative(service->event, &service->retry_timer, CLOCK_MONOTONIC,
                                           BUS_RETRY_USEC, USEC_PER_SEC, on_retry, service);

        if (r < 0)
                return r;
        (void)sd_event_source_set_enabled(service->retry_timer, SD_EVENT_OFF);
        r = sd_event_add_time_relative(service->event, &service->signal_timer, CLOCK_MONOTONIC,
                                       BUS_SIGNAL_USEC, USEC_PER_MSEC, on_signal_timer, service);
        if (r < 0)
                return r;
        (void)sd_event_source_set_enabled(service->signal_timer, SD_EVENT_OFF);
        r = sd_event_add_time_relative(service->event, &service->look_timer, CLOCK_MONOTONIC,
                                       BUS_LOOK_USEC, USEC_PER_SEC, on_look, service);
        /* The lowest priority: an answer that has arrived must be read before the check. */
        return r < 0 ? r
                     : sd_event_source_set_priority(service->look_timer, SD_EVENT_PRIORITY_IDLE);
}

int bus_service_new(BusService **ret, sd_event *event, const BusConfig *config)
{
        _cleanup_(bus_service_freep) BusService *service = calloc(1, sizeof(BusService));
        int r;

        if (!service)
                return -ENOMEM;
        service->config = *config;
        service->event = sd_event_ref(event);
        r = add_timers(service);
        if (r < 0)
                return r;
        r = bus_gate_new(&service->gate, event, bus_dispatch_serve, bus_documents_is_long,
                         &service->dispatch);
        service->dispatch = (BusDispatch){
                .gate = service->gate,
                .places = { { BUS_PATH, BUS_INTERFACE, vtable, service },
                            { LOG_PATH, LOG_INTERFACE, log_vtable, NULL } },
                .n_places = 2,
        };
        service->polkit = (Polkit){ .gate = service->gate };
        service->documents = (BusDocuments){ .config = &service->config, .gate = service->gate };
        if (r >= 0)
                r = bus_operations_new(&service->operations, event, &service->config, on_operations,
                                       service);
        if (r < 0)
                return r;
        (void)on_retry(service->retry_timer, 0, service);
        claim_service_watch(config->claims, on_claim, service);
        *ret = TAKE_PTR(service);
        return 0;
}

BusService *bus_service_free(BusService *service)
{
        if (!service)
                return NULL;
        claim_service_watch(service->config.claims, NULL, NULL);
        if (service->bus)
                (void)sd_bus_flush(service->bus);
        close_bus(service);
        bus_operations_free(service->operations);
        bus_gate_free(service->gate);
        bus_documents_done(&service->documents);
        sd_event_source_disable_unref(service->signal_timer);
        sd_event_source_disable_unref(service->look_timer);
        sd_event_source_disable_unref(service->retry_timer);
        sd_event_unref(service->event);
        free(service);
        return NULL;
}

void bus_service_set_tracker(BusService *service, Tracker *tracker, const char *hook)
{
        service->config.tracker = tracker;
        service->config.hook = hook;
        for (BusDocument i = 0; i < _BUS_DOCUMENT_MAX; i++)
                bus_documents_note(&service->documents, i);
}
