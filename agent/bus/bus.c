/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/bus.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "agent/bus/ask.h"
#include "agent/bus/claims.h"
#include "agent/bus/cordon.h"
#include "agent/bus/dispatch.h"
#include "agent/bus/documents.h"
#include "agent/bus/log.h"
#include "agent/bus/operations.h"
#include "agent/bus/polkit.h"
#include "agent/bus/properties.h"
#include "agent/formats/interface.h"
#include "base/log.h"
#include "base/message-ids.h"

struct BusService {
        BusFacts facts; /* first: the properties are read from it */
        sd_event *event;
        sd_event_source *retry_timer;
        sd_event_source *look_timer;
        sd_event_source *signal_timer;
        bool is_leaving;    /* the connection before may still have the name */
        bool is_looking;    /* the bus has not answered yet */
        bool is_deaf;       /* and never did */
        uint64_t unread;    /* bytes that were sent and lie with the bus, at the last look */
        sd_bus *bus;        /* NULL while there is none */
        bool logged_no_bus; /* the absence is logged once */
        bool settled;
        BusGate *gate;
        BusDispatch dispatch;
        Polkit *polkit;
        BusDocuments documents;
        BusOperations *operations;
};

/* What changed is signalled a little later, once for all that came together. */
static void signal_soon(BusService *service)
{
        int enabled = SD_EVENT_OFF;

        bus_facts_note(&service->facts);
        bus_documents_look(&service->documents);
        (void)sd_event_source_get_enabled(service->signal_timer, &enabled);
        if (enabled != SD_EVENT_OFF)
                return;
        (void)sd_event_source_set_time_relative(service->signal_timer, BUS_SIGNAL_USEC);
        (void)sd_event_source_set_enabled(service->signal_timer, SD_EVENT_ONESHOT);
}

static int on_signal_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        BusService *service = userdata;

        if (!service->bus || sd_bus_is_ready(service->bus) <= 0)
                return 0;
        if (bus_facts_signal(&service->facts, service->bus) < 0)
                log_warning("Out of memory: a change is not signalled on D-Bus, ignoring.");
        if (!bus_documents_signal(&service->documents, service->bus))
                return 0;
        (void)sd_event_source_set_time_relative(source, 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int method_describe(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        int r = bus_documents_describe(&service->documents, call, error);

        signal_soon(service);
        return r;
}

static bool is_long(sd_bus_message *call)
{
        const char *name;
        bool result = sd_bus_message_is_method_call(call, NULL, "Describe") > 0 &&
                      sd_bus_message_read(call, "s", &name) > 0 && bus_documents_is_long(name);

        (void)sd_bus_message_rewind(call, true);
        return result;
}

/* What it comes to is logged when it ended; this is who wanted what changes something. Others are
 * not logged. */
static EventAuthor note_call(const BusService *service, sd_bus_message *call)
{
        static const struct {
                const char *method, *what;
        } changes[] = {
                { "Reshape", "A reshape" },
                { "UndoReshape", "Undoing the last reshape" },
                { "Retire", "Retiring this host" },
                { "Heal", "Healing" },
        };
        const char *method = sd_bus_message_get_member(call);
        BusCaller caller = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
                if (strcmp(changes[i].method, method) == 0) {
                        bus_caller_find(service->gate, call, &caller);
                        log_event(LOG_INFO, NULL, LOG_FIELDS(LOG_FIELD_CALLER, caller.author.text),
                                  "%s was asked for by %s.", changes[i].what, caller.author.text);
                }
        return caller.author;
}

static int do_sync(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_sync(call, ((BusService *)userdata)->operations);
}

#define NOTED_OPERATION(name)                                                           \
        static int do_##name(sd_bus_message *call, void *userdata, sd_bus_error *error) \
        {                                                                               \
                BusService *service = userdata;                                         \
                EventAuthor by = note_call(service, call);                              \
                                                                                        \
                return bus_operations_##name(call, service->operations, &by);           \
        }

NOTED_OPERATION(reshape)
NOTED_OPERATION(retire)
NOTED_OPERATION(audit)

static int do_reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_reload(call, ((BusService *)userdata)->operations, error);
}

static int method_cancel(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_cancel(call, ((BusService *)userdata)->operations, error);
}

/* Who is out of use stands in the tree, and in what happened. */
static int change_cordon(BusService *service, sd_bus_message *call, bool lift, sd_bus_error *error)
{
        const BusConfig *config = &service->facts.config;
        int r = (lift ? bus_uncordon : bus_cordon)(call, service->gate, config->cordon,
                                                   config->tracker, config->claims, &config->root,
                                                   error);

        bus_documents_note(&service->documents, BUS_TREE);
        bus_documents_note(&service->documents, BUS_EVENTS);
        signal_soon(service);
        return r;
}

static int do_cordon(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return change_cordon(userdata, call, false, error);
}

static int do_uncordon(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return change_cordon(userdata, call, true, error);
}

static int do_undo_retire(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        const BusConfig *config = &service->facts.config;
        int r = bus_undo_retire(call, service->gate, config->cordon, config->tracker,
                                config->claims, error);

        bus_documents_note(&service->documents, BUS_EVENTS);
        signal_soon(service);
        return r;
}

/* Methods that change claims are signalled to those who watch the properties. */
#define CHANGING_METHOD(name)                                                           \
        static int do_##name(sd_bus_message *call, void *userdata, sd_bus_error *error) \
        {                                                                               \
                BusService *service = userdata;                                         \
                BusCaller caller;                                                       \
                int r;                                                                  \
                                                                                        \
                bus_caller_find(service->gate, call, &caller);                          \
                r = bus_##name(call, &caller, service->facts.config.claims, error);     \
                                                                                        \
                signal_soon(service);                                                   \
                return r;                                                               \
        }

CHANGING_METHOD(confirm)
CHANGING_METHOD(extend)
CHANGING_METHOD(abort)
CHANGING_METHOD(guest_started)

/* Methods that are answered later. */
#define QUEUED_METHOD(name)                                                             \
        static int do_##name(sd_bus_message *call, void *userdata, sd_bus_error *error) \
        {                                                                               \
                BusService *service = userdata;                                         \
                BusCaller caller;                                                       \
                                                                                        \
                bus_caller_find(service->gate, call, &caller);                          \
                return bus_##name(call, &caller, service->facts.config.claims,          \
                                  service->facts.config.queue, error);                  \
        }

QUEUED_METHOD(claim)
QUEUED_METHOD(move_claim)
QUEUED_METHOD(release)
QUEUED_METHOD(prepare_guest)
QUEUED_METHOD(guest_released)

static void on_claim(ClaimEvent event, const Claim *claim, void *userdata)
{
        BusService *service = userdata;

        bus_documents_note(&service->documents, BUS_CLAIMS);
        bus_documents_note(&service->documents, BUS_EVENTS);
        bus_documents_note(&service->documents, BUS_TREE);
        if (event == CLAIM_EVENT_REMOVED)
                bus_documents_note(&service->documents, BUS_HISTORY);
        signal_soon(service);
}

static int method_explain(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        bool privileged;
        uid_t uid;

        if (!bus_gate_get_user(service->gate, call, &uid, &privileged))
                privileged = false;
        return bus_explain(call, service->facts.config.claims,
                           privileged ? service->facts.config.queue : NULL, error);
}

/* Methods that not everybody may call. */

#define GUARDED_IF(name, action, check, run)                                                    \
        static int method_##name(sd_bus_message *call, void *userdata, sd_bus_error *error)     \
        {                                                                                       \
                return polkit_guard(((BusService *)userdata)->polkit, call, action, check, run, \
                                    userdata, error);                                           \
        }
#define GUARDED(name, action) GUARDED_IF(name, action, NULL, do_##name)

static int check_claim(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_check_claim(call, ((BusService *)userdata)->facts.config.claims, error);
}

GUARDED_IF(claim, POLKIT_ACTION_CLAIM, check_claim, do_claim)
GUARDED(confirm, POLKIT_ACTION_CLAIM)
GUARDED(extend, POLKIT_ACTION_CLAIM)
GUARDED(release, POLKIT_ACTION_CLAIM)
GUARDED(move_claim, POLKIT_ACTION_CLAIM)
GUARDED(abort, POLKIT_ACTION_CLAIM)
GUARDED(prepare_guest, POLKIT_ACTION_CLAIM)
GUARDED(guest_started, POLKIT_ACTION_CLAIM)
GUARDED(guest_released, POLKIT_ACTION_CLAIM)
GUARDED(sync, POLKIT_ACTION_MANAGE)
GUARDED(reload, POLKIT_ACTION_MANAGE)
GUARDED(reshape, POLKIT_ACTION_RESHAPE)
GUARDED_IF(get_reshape, POLKIT_ACTION_MANAGE, NULL, do_reshape)
GUARDED(audit, POLKIT_ACTION_MANAGE)
GUARDED(cordon, POLKIT_ACTION_MANAGE)
GUARDED_IF(get_retire, POLKIT_ACTION_MANAGE, NULL, do_retire)
GUARDED(retire, POLKIT_ACTION_RETIRE)
GUARDED(undo_retire, POLKIT_ACTION_RETIRE)
GUARDED(uncordon, POLKIT_ACTION_MANAGE)

/* sd-bus lets everybody call: where not everybody may, the method asks. */
#define FREE   SD_BUS_VTABLE_UNPRIVILEGED
#define METHOD SD_BUS_METHOD_WITH_ARGS

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        METHOD("Claim", SD_BUS_ARGS("s", consumer, "a(sa{st}asas)", groups, "a{sv}", options),
               SD_BUS_RESULT("x", id, "s", json), method_claim, FREE),
        METHOD("Confirm", SD_BUS_ARGS("x", id), SD_BUS_NO_RESULT, method_confirm, FREE),
        METHOD("Release", SD_BUS_ARGS("x", id, "s", reason), SD_BUS_NO_RESULT, method_release,
               FREE),
        METHOD("ReleaseAllocations", SD_BUS_ARGS("x", id, "s", reason), SD_BUS_NO_RESULT,
               method_release, FREE),
        METHOD("MoveClaim", SD_BUS_ARGS("s", from, "s", to, "s", consumer_type),
               SD_BUS_RESULT("x", id), method_move_claim, FREE),
        METHOD("Abort", SD_BUS_ARGS("x", id, "s", reason), SD_BUS_NO_RESULT, method_abort, FREE),
        METHOD("Extend", SD_BUS_ARGS("x", id, "t", expires_usec), SD_BUS_NO_RESULT, method_extend,
               FREE),
        METHOD("PrepareGuest", SD_BUS_ARGS("s", xml), SD_BUS_RESULT("x", id), method_prepare_guest,
               FREE),
        METHOD("GuestStarted", SD_BUS_ARGS("s", consumer), SD_BUS_NO_RESULT, method_guest_started,
               FREE),
        METHOD("GuestReleased", SD_BUS_ARGS("s", consumer, "s", reason), SD_BUS_NO_RESULT,
               method_guest_released, FREE),
        METHOD("Describe", SD_BUS_ARGS("s", document), SD_BUS_RESULT("s", json), method_describe,
               FREE),
        METHOD("Explain", SD_BUS_ARGS("a(sa{st}asas)", groups, "a{sv}", options),
               SD_BUS_RESULT("s", json), method_explain, FREE),
        SD_BUS_SIGNAL_WITH_ARGS("DocumentChanged", SD_BUS_ARGS("s", document), 0),
        METHOD("Sync", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", error), method_sync, FREE),
        METHOD("SyncFull", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", error), method_sync, FREE),
        METHOD("GetReshape", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_get_reshape, FREE),
        METHOD("Reshape", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_reshape, FREE),
        METHOD("UndoReshape", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_reshape, FREE),
        METHOD("Audit", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_audit, FREE),
        METHOD("Heal", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_audit, FREE),
        METHOD("Cordon", SD_BUS_ARGS("s", device, "s", reason), SD_BUS_RESULT("s", error),
               method_cordon, FREE),
        METHOD("Uncordon", SD_BUS_ARGS("s", device), SD_BUS_RESULT("s", error), method_uncordon,
               FREE),
        METHOD("GetRetire", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_get_retire, FREE),
        METHOD("Retire", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_retire, FREE),
        METHOD("UndoRetire", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", error), method_undo_retire, FREE),
        METHOD("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_reload, FREE),
        METHOD("Cancel", SD_BUS_ARGS("s", operation), SD_BUS_NO_RESULT, method_cancel, FREE),
#define P(type, property, member, flags, value) \
        SD_BUS_PROPERTY(property, #type, bus_get_property, 0, flags),
        BUS_PROPERTIES(P)
#undef P
                SD_BUS_VTABLE_END,
};

/* The connection. */

static void close_bus(BusService *service)
{
        if (!service->bus)
                return;
        bus_gate_detach(service->gate);
        polkit_forget(service->polkit);
        service->dispatch.n_places = 0;
        service->is_looking = false;
        service->is_deaf = false;
        service->unread = 0;
        sd_bus_detach_event(service->bus);
        service->bus = sd_bus_close_unref(service->bus);
}

static void settle(BusService *service)
{
        if (!service->settled)
                service->facts.config.settled(service->facts.config.userdata);
        service->settled = true;
}

static void log_no_bus(BusService *service, const char *why)
{
        settle(service);
        if (!service->logged_no_bus)
                log_event(
                        LOG_WARNING, MESSAGE_NO_BUS, NULL,
                        "No D-Bus service: %s. The host is reported all the same, but computectl cannot reach this agent; retrying every %d s.",
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

        /* Not from inside the bus's own handler: the retry timer closes and opens. */
        log_no_bus(service, "the system bus closed the connection");
        arm_retry(service);
        return 0;
}

static int on_name_requested(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        const sd_bus_error *refusal = sd_bus_message_get_error(message);

        if (refusal) {
                log_no_bus(service, refusal->message ? refusal->message : refusal->name);
                arm_retry(service);
                return 0;
        }
        if (service->logged_no_bus)
                log_notice("D-Bus is served again.");
        service->logged_no_bus = false;
        settle(service);
        return 0;
}

static int add_objects(BusService *service)
{
        BusDispatch *dispatch = &service->dispatch;
        int r = bus_dispatch_add(dispatch, service->bus,
                                 &(BusPlace){ .path = BUS_PATH,
                                              .interface = BUS_INTERFACE,
                                              .vtable = vtable,
                                              .userdata = service });

        if (r >= 0)
                r = bus_log_add(dispatch, service->bus);
        return r < 0 ? r : bus_gate_attach(service->gate, service->bus, BUS_PATH, BUS_LOG_PATH);
}

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

static void on_looked(const char *name, int result, uint64_t bytes, void *userdata)
{
        BusService *service = userdata;

        service->is_looking = false;
        service->is_deaf = result == -ETIMEDOUT;
        service->unread = bytes;
        if (bytes > BUS_UNREAD_LAST || service->is_deaf)
                (void)sd_event_source_set_time(service->look_timer, 0);
}

/* dbus-daemon does not look at a connection of which it reads nothing more, and finds out that it
 * was closed, and that the name is free, when it has something to send there. */
static void leave_bus(BusService *service, const char *own)
{
        _cleanup_free_ char *left = strdup(own);

        log_warning(
                "%s: connecting to it anew, so that others are answered.",
                service->is_deaf
                        ? "The bus does not answer"
                        : "What callers and subscribers have not read of what the agent sent fills the bus");
        service->is_leaving = true;
        (void)on_retry(NULL, 0, service);
        service->is_leaving = false;
        if (service->bus && left)
                (void)sd_bus_call_method_async(service->bus, NULL, left, "/",
                                               "org.freedesktop.DBus.Peer", "Ping", NULL, NULL, "");
}

static void look(BusService *service)
{
        const char *own;

        if (!service->bus || sd_bus_is_ready(service->bus) <= 0 ||
            sd_bus_get_unique_name(service->bus, &own) < 0)
                return;
        if (service->unread > BUS_UNREAD_LAST || service->is_deaf)
                leave_bus(service, own);
        else if (!service->is_looking)
                service->is_looking = bus_ask_sent(service->bus, own, on_looked, service) >= 0;
}

/* Whoever subscribes to signals and reads none fills the bus, too, be it in months. */
static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
        look(userdata);
        (void)sd_event_source_set_time_relative(source, BUS_LOOK_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void on_operations(void *userdata)
{
        signal_soon(userdata);
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
        /* An answer that came is read first. */
        return r < 0 ? r
                     : sd_event_source_set_priority(service->look_timer, SD_EVENT_PRIORITY_IDLE);
}

int bus_service_new(BusService **ret, sd_event *event, const BusConfig *config)
{
        _cleanup_(bus_service_freep) BusService *service = calloc(1, sizeof(BusService));
        int r;

        if (!service)
                return -ENOMEM;
        service->facts.config = *config;
        service->event = sd_event_ref(event);
        r = add_timers(service);
        if (r < 0)
                return r;
        service->facts.event = service->event;
        r = bus_gate_new(&service->gate, event, bus_dispatch_serve, is_long, &service->dispatch);
        service->dispatch = (BusDispatch){ .gate = service->gate };
        service->documents = (BusDocuments){ .facts = &service->facts, .gate = service->gate };
        if (r >= 0)
                r = polkit_new(&service->polkit, service->gate);
        if (r >= 0)
                r = bus_operations_new(&service->operations, event, &service->facts.config,
                                       service->polkit, on_operations, service);
        if (r < 0)
                return r;
        service->facts.operations = service->operations;
        bus_facts_note(&service->facts);
        (void)on_retry(service->retry_timer, 0, service);
        claim_service_watch(config->claims, on_claim, service);
        *ret = TAKE_PTR(service);
        return 0;
}

BusService *bus_service_free(BusService *service)
{
        if (!service)
                return NULL;
        claim_service_watch(service->facts.config.claims, NULL, NULL);
        if (service->bus)
                (void)sd_bus_flush(service->bus);
        close_bus(service);
        bus_operations_free(service->operations);
        polkit_free(service->polkit);
        bus_gate_free(service->gate);
        bus_documents_done(&service->documents);
        bus_facts_done(&service->facts);
        sd_event_source_disable_unref(service->signal_timer);
        sd_event_source_disable_unref(service->look_timer);
        sd_event_source_disable_unref(service->retry_timer);
        sd_event_unref(service->event);
        free(service);
        return NULL;
}

void bus_service_set_tracker(BusService *service, Tracker *tracker, const char *driver)
{
        if (!service)
                return;
        service->facts.config.tracker = tracker;
        service->facts.config.driver = driver;
        for (BusDocument i = 0; i < _BUS_DOCUMENT_MAX; i++)
                bus_documents_note(&service->documents, i);
}

void bus_service_set_hook(BusService *service, const char *hook)
{
        if (service)
                service->facts.config.hook = hook;
}

void bus_service_changed(BusService *service)
{
        signal_soon(service);
}
