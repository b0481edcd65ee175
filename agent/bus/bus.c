/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/bus.h"

#include <errno.h>
#include <systemd/sd-bus.h>

#include "agent/bus/ask.h"
#include "agent/bus/claims.h"
#include "agent/bus/cordon.h"
#include "agent/bus/dispatch.h"
#include "agent/bus/documents.h"
#include "agent/bus/log.h"
#include "agent/bus/objects.h"
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
        bool is_leaving;  /* the connection before may still have the name */
        bool is_looking;  /* the bus has not answered yet */
        bool is_deaf;     /* and never did */
        uint64_t unread;  /* bytes that were sent and lie with the bus, at the last look */
        sd_bus *bus;      /* NULL while there is none */
        bool told_no_bus; /* the absence is logged once */
        bool settled;
        BusGate *gate;
        BusDispatch dispatch;
        Polkit *polkit;
        BusDocuments documents;
        BusObjects *objects;
        BusOperations *operations;
        uint64_t n_cycles_told; /* of the tracker */
};

#define DOCUMENT_METHOD(name, document)                                                          \
        static int method_##name(sd_bus_message *call, void *userdata, sd_bus_error *error)      \
        {                                                                                        \
                return bus_documents_reply(&((BusService *)userdata)->documents, document, call, \
                                           error);                                               \
        }

DOCUMENT_METHOD(get_tree, BUS_DOCUMENT_TREE)
DOCUMENT_METHOD(get_plan, BUS_DOCUMENT_PLAN)
DOCUMENT_METHOD(discover, BUS_DOCUMENT_HOST)

static int do_sync(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_sync(call, ((BusService *)userdata)->operations, false);
}

static int do_sync_full(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_sync(call, ((BusService *)userdata)->operations, true);
}

static int do_reshape(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_reshape(call, ((BusService *)userdata)->operations, RESHAPE_FORWARD);
}

static int do_undo_reshape(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_reshape(call, ((BusService *)userdata)->operations, RESHAPE_UNDO);
}

static int do_get_reshape(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_reshape(call, ((BusService *)userdata)->operations, RESHAPE_SHOW);
}

static int do_reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_reload(call, ((BusService *)userdata)->operations, error);
}

static int do_audit(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_audit(call, ((BusService *)userdata)->operations, false);
}

static int do_cordon(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        const BusConfig *config = &service->facts.config;

        bus_documents_forget(&service->documents);
        return bus_cordon(call, service->gate, config->cordon, config->tracker, config->claims,
                          &config->root, error);
}

static int do_uncordon(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        const BusConfig *config = &service->facts.config;

        bus_documents_forget(&service->documents);
        return bus_uncordon(call, service->gate, config->cordon, config->tracker, config->claims,
                            &config->root, error);
}

static int do_heal(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_operations_audit(call, ((BusService *)userdata)->operations, true);
}

/* Methods that change claims tell those who watch the properties. */
#define CHANGING_METHOD(name)                                                           \
        static int do_##name(sd_bus_message *call, void *userdata, sd_bus_error *error) \
        {                                                                               \
                BusService *service = userdata;                                         \
                int r = bus_##name(call, service->facts.config.claims, error);          \
                                                                                        \
                bus_service_changed(service);                                           \
                return r;                                                               \
        }
#define READING_METHOD(name)                                                                \
        static int method_##name(sd_bus_message *call, void *userdata, sd_bus_error *error) \
        {                                                                                   \
                BusService *service = userdata;                                             \
                                                                                            \
                return bus_##name(call, service->facts.config.claims, error);               \
        }

CHANGING_METHOD(confirm)
CHANGING_METHOD(extend)
CHANGING_METHOD(abort)
CHANGING_METHOD(guest_started)
READING_METHOD(get_claim)
READING_METHOD(list_problems)

/* Those whose answer may be long. */
#define LISTING_METHOD(name)                                                                 \
        static int method_##name(sd_bus_message *call, void *userdata, sd_bus_error *error)  \
        {                                                                                    \
                BusService *service = userdata;                                              \
                                                                                             \
                return bus_##name(call, service->gate, service->facts.config.claims, error); \
        }

LISTING_METHOD(list_claims)
LISTING_METHOD(find_claims)

/* Methods that take their course. */
#define DESK_METHOD(name)                                                                         \
        static int do_##name(sd_bus_message *call, void *userdata, sd_bus_error *error)           \
        {                                                                                         \
                BusService *service = userdata;                                                   \
                                                                                                  \
                return bus_##name(call, service->facts.config.claims, service->facts.config.desk, \
                                  error);                                                         \
        }

DESK_METHOD(claim)
DESK_METHOD(move_claim)
DESK_METHOD(release)
DESK_METHOD(release_allocations)
DESK_METHOD(prepare_guest)
DESK_METHOD(guest_released)

static void on_claim(ClaimEvent event, const Claim *claim, void *userdata)
{
        static const char *const names[] = {
                [CLAIM_EVENT_ADDED] = "ClaimAdded",
                [CLAIM_EVENT_CHANGED] = "ClaimChanged",
                [CLAIM_EVENT_REMOVED] = "ClaimRemoved",
        };
        BusService *service = userdata;

        bus_objects_note_claim(service->objects, event, claim);
        if (!service->bus || sd_bus_is_ready(service->bus) <= 0)
                return;
        (void)sd_bus_emit_signal(service->bus, BUS_PATH, BUS_INTERFACE, names[event], "xss",
                                 claim->id, claim->consumer.text,
                                 event == CLAIM_EVENT_REMOVED ? claim->end_reason
                                                              : claim_state_to_text(claim->state));
        bus_service_changed(service);
}

static int method_explain(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        bool privileged;
        uid_t uid;

        if (!bus_gate_get_user(service->gate, call, &uid, &privileged))
                privileged = false;
        return bus_explain(call, service->facts.config.claims,
                           privileged ? service->facts.config.desk : NULL, error);
}

/* Methods that not everybody may call. */

#define GUARDED_IF(name, action, check)                                                     \
        static int method_##name(sd_bus_message *call, void *userdata, sd_bus_error *error) \
        {                                                                                   \
                return polkit_guard(((BusService *)userdata)->polkit, call, action, check,  \
                                    do_##name, userdata, error);                            \
        }
#define GUARDED(name, action) GUARDED_IF(name, action, NULL)

static int check_claim(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_check_claim(call, ((BusService *)userdata)->facts.config.claims, error);
}

GUARDED_IF(claim, POLKIT_ACTION_CLAIM, check_claim)
GUARDED(confirm, POLKIT_ACTION_CLAIM)
GUARDED(extend, POLKIT_ACTION_CLAIM)
GUARDED(release, POLKIT_ACTION_CLAIM)
GUARDED(release_allocations, POLKIT_ACTION_CLAIM)
GUARDED(move_claim, POLKIT_ACTION_CLAIM)
GUARDED(abort, POLKIT_ACTION_CLAIM)
GUARDED(prepare_guest, POLKIT_ACTION_CLAIM)
GUARDED(guest_started, POLKIT_ACTION_CLAIM)
GUARDED(guest_released, POLKIT_ACTION_CLAIM)
GUARDED(sync, POLKIT_ACTION_MANAGE)
GUARDED(sync_full, POLKIT_ACTION_MANAGE)
GUARDED(reload, POLKIT_ACTION_MANAGE)
GUARDED(reshape, POLKIT_ACTION_RESHAPE)
GUARDED(undo_reshape, POLKIT_ACTION_RESHAPE)
GUARDED(get_reshape, POLKIT_ACTION_MANAGE)
GUARDED(audit, POLKIT_ACTION_MANAGE)
GUARDED(heal, POLKIT_ACTION_MANAGE)
GUARDED(cordon, POLKIT_ACTION_MANAGE)
GUARDED(uncordon, POLKIT_ACTION_MANAGE)

/* Properties: one getter each for texts, times and counts, told apart by name. */

/* sd-bus lets everybody call: where not everybody may, the method asks. */
#define FREE SD_BUS_VTABLE_UNPRIVILEGED

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS(
                "Claim", SD_BUS_ARGS("s", consumer, "a(sa{st}asas)", groups, "a{sv}", options),
                SD_BUS_RESULT("x", id, "a(ssa{st})", allocations, "a(ssssssbb)", devices,
                              "a(uutts)", cells, "a(ubs)", cpus, BUS_MAPPINGS, mappings),
                method_claim, FREE),
        SD_BUS_METHOD_WITH_ARGS("Confirm", SD_BUS_ARGS("x", id), SD_BUS_NO_RESULT, method_confirm,
                                FREE),
        SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("x", id, "s", reason), SD_BUS_NO_RESULT,
                                method_release, FREE),
        SD_BUS_METHOD_WITH_ARGS("ReleaseAllocations", SD_BUS_ARGS("x", id, "s", reason),
                                SD_BUS_NO_RESULT, method_release_allocations, FREE),
        SD_BUS_METHOD_WITH_ARGS("MoveClaim", SD_BUS_ARGS("s", from, "s", to, "s", consumer_type),
                                SD_BUS_RESULT("x", id), method_move_claim, FREE),
        SD_BUS_METHOD_WITH_ARGS("Abort", SD_BUS_ARGS("x", id, "s", reason), SD_BUS_NO_RESULT,
                                method_abort, FREE),
        SD_BUS_METHOD_WITH_ARGS("Extend", SD_BUS_ARGS("x", id, "t", expires_usec), SD_BUS_NO_RESULT,
                                method_extend, FREE),
        SD_BUS_METHOD_WITH_ARGS("PrepareGuest", SD_BUS_ARGS("s", xml), SD_BUS_RESULT("x", id),
                                method_prepare_guest, FREE),
        SD_BUS_METHOD_WITH_ARGS("GuestStarted", SD_BUS_ARGS("s", consumer), SD_BUS_NO_RESULT,
                                method_guest_started, FREE),
        SD_BUS_METHOD_WITH_ARGS("GuestReleased", SD_BUS_ARGS("s", consumer, "s", reason),
                                SD_BUS_NO_RESULT, method_guest_released, FREE),
        SD_BUS_METHOD_WITH_ARGS("ListClaims", SD_BUS_ARGS("b", history),
                                SD_BUS_RESULT("a" BUS_CLAIM, claims), method_list_claims, FREE),
        SD_BUS_METHOD_WITH_ARGS("GetClaim", SD_BUS_ARGS("x", id), SD_BUS_RESULT(BUS_CLAIM, claim),
                                method_get_claim, FREE),
        SD_BUS_METHOD_WITH_ARGS("FindClaims", SD_BUS_ARGS("s", what),
                                SD_BUS_RESULT("a" BUS_CLAIM, claims), method_find_claims, FREE),
        SD_BUS_METHOD_WITH_ARGS("ListProblems", SD_BUS_NO_ARGS,
                                SD_BUS_RESULT("a" BUS_PROBLEM, problems), method_list_problems,
                                FREE),
        SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("a(sa{st}asas)", groups, "a{sv}", options),
                                SD_BUS_RESULT("s", json), method_explain, FREE),
        SD_BUS_SIGNAL_WITH_ARGS("ClaimAdded", SD_BUS_ARGS("x", id, "s", consumer, "s", state), 0),
        SD_BUS_SIGNAL_WITH_ARGS("ClaimChanged", SD_BUS_ARGS("x", id, "s", consumer, "s", state), 0),
        SD_BUS_SIGNAL_WITH_ARGS("ClaimRemoved", SD_BUS_ARGS("x", id, "s", consumer, "s", reason),
                                0),
        SD_BUS_METHOD_WITH_ARGS("GetTree", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json),
                                method_get_tree, FREE),
        SD_BUS_METHOD_WITH_ARGS("GetPlan", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json),
                                method_get_plan, FREE),
        SD_BUS_METHOD_WITH_ARGS("Discover", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json),
                                method_discover, FREE),
        SD_BUS_METHOD_WITH_ARGS("Sync", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", error), method_sync,
                                FREE),
        SD_BUS_METHOD_WITH_ARGS("SyncFull", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", error),
                                method_sync_full, FREE),
        SD_BUS_METHOD_WITH_ARGS("GetReshape", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json),
                                method_get_reshape, FREE),
        SD_BUS_METHOD_WITH_ARGS("Reshape", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_reshape,
                                FREE),
        SD_BUS_METHOD_WITH_ARGS("UndoReshape", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json),
                                method_undo_reshape, FREE),
        SD_BUS_METHOD_WITH_ARGS("Audit", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_audit,
                                FREE),
        SD_BUS_METHOD_WITH_ARGS("Heal", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), method_heal,
                                FREE),
        SD_BUS_METHOD_WITH_ARGS("Cordon", SD_BUS_ARGS("s", device, "s", reason),
                                SD_BUS_RESULT("s", error), method_cordon, FREE),
        SD_BUS_METHOD_WITH_ARGS("Uncordon", SD_BUS_ARGS("s", device), SD_BUS_RESULT("s", error),
                                method_uncordon, FREE),
        SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_reload, FREE),
        SD_BUS_PROPERTY("Version", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("RootProvider", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Driver", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NodeName", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Hook", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Nova", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("TreePublished", "b", bus_get_published, 0,
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("SecondReporter", "s", bus_get_contest, 0,
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NDifferences", "u", bus_get_count, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("SyncState", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("SyncError", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("HypervisorError", "s", bus_get_text, 0,
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ClaimError", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ReshapeAccess", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("OwedError", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("HostCordoned", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("DevicesCordoned", "s", bus_get_text, 0,
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("DevicesWithheld", "s", bus_get_withheld, 0,
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("HostUnread", "s", bus_get_unread, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("StatusText", "s", bus_get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("SyncStateSinceUSec", "t", bus_get_number, 0,
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("LastSyncUSec", "t", bus_get_number, 0,
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("LastPollUSec", "t", bus_get_number, 0,
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NRequests", "t", bus_get_number, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NWrites", "t", bus_get_number, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NConflicts", "t", bus_get_number, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NProviders", "u", bus_get_count, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NClaims", "u", bus_get_count, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NOwedWrites", "u", bus_get_count, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NOwedRemovals", "u", bus_get_count, 0,
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("NOwedMoves", "u", bus_get_count, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_VTABLE_END,
};

/* The connection. */

static void close_bus(BusService *service)
{
        if (!service->bus)
                return;
        bus_gate_detach(service->gate);
        polkit_forget(service->polkit);
        bus_objects_detach(service->objects);
        bus_operations_detach(service->operations);
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

static void tell_no_bus(BusService *service, const char *why)
{
        settle(service);
        if (!service->told_no_bus)
                log_event(LOG_WARNING, MESSAGE_NO_BUS, NULL,
                          "No D-Bus service: %s. The host is reported all the same, but computectl "
                          "cannot "
                          "reach this agent; retrying every %d s.",
                          why, (int)(BUS_RETRY_USEC / USEC_PER_SEC));
        service->told_no_bus = true;
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
        tell_no_bus(service, "the system bus closed the connection");
        arm_retry(service);
        return 0;
}

static int on_name_requested(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
        BusService *service = userdata;
        const sd_bus_error *refusal = sd_bus_message_get_error(message);

        if (refusal) {
                tell_no_bus(service, refusal->message ? refusal->message : refusal->name);
                arm_retry(service);
                return 0;
        }
        if (service->told_no_bus)
                log_notice("D-Bus is served again.");
        service->told_no_bus = false;
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
                r = bus_objects_attach(service->objects, dispatch, service->bus);
        if (r >= 0)
                r = bus_operations_attach(service->operations, dispatch, service->bus);
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
                tell_no_bus(service, strerror(-r));
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

        log_warning("What callers and subscribers have not read of what the agent sent fills the "
                    "bus: connecting to it anew, so that others are answered.");
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

static int add_timers(BusService *service)
{
        int r = sd_event_add_time_relative(service->event, &service->retry_timer, CLOCK_MONOTONIC,
                                           BUS_RETRY_USEC, USEC_PER_SEC, on_retry, service);

        if (r < 0)
                return r;
        (void)sd_event_source_set_enabled(service->retry_timer, SD_EVENT_OFF);
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
        service->documents.config = &service->facts.config;
        r = bus_gate_new(&service->gate, event, bus_dispatch_serve, &service->dispatch);
        service->dispatch = (BusDispatch){ .gate = service->gate, .manager = BUS_PATH };
        if (r >= 0)
                r = polkit_new(&service->polkit, service->gate);
        if (r >= 0)
                r = bus_objects_new(&service->objects, event, config->claims);
        if (r >= 0)
                r = bus_operations_new(&service->operations, event, &service->facts.config,
                                       service->polkit);
        if (r < 0)
                return r;
        service->facts.debts = claim_desk_count_debts(config->desk);
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
        bus_objects_free(service->objects);
        polkit_free(service->polkit);
        bus_gate_free(service->gate);
        bus_documents_done(&service->documents);
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
        bus_documents_forget(&service->documents);
        service->n_cycles_told = 0;
}

void bus_service_set_hook(BusService *service, const char *hook)
{
        if (service)
                service->facts.config.hook = hook;
}

/* Once a cycle. */
static void update_objects(BusService *service)
{
        uint64_t n_cycles = tracker_get_status(service->facts.config.tracker)->n_cycles;

        if (n_cycles == service->n_cycles_told)
                return;
        service->n_cycles_told = n_cycles;
        bus_objects_update(service->objects, tracker_get_tree(service->facts.config.tracker),
                           tracker_get_snapshot(service->facts.config.tracker));
}

void bus_service_changed(BusService *service)
{
        bus_documents_forget(&service->documents);
        update_objects(service);
        service->facts.debts = claim_desk_count_debts(service->facts.config.desk);
        if (!service->bus || sd_bus_is_ready(service->bus) <= 0)
                return;
        (void)sd_bus_emit_properties_changed(
                service->bus, BUS_PATH, BUS_INTERFACE, "Driver", "NodeName", "Hook", "Nova",
                "TreePublished", "SecondReporter", "NDifferences", "SyncState",
                "SyncStateSinceUSec", "SyncError", "HypervisorError", "ClaimError", "ReshapeAccess",
                "HostCordoned", "DevicesCordoned", "DevicesWithheld", "HostUnread", "StatusText",
                "LastSyncUSec", "LastPollUSec", "NRequests", "NWrites", "NConflicts", "NProviders",
                "NClaims", "NOwedWrites", "NOwedRemovals", "NOwedMoves", "OwedError", NULL);
}
