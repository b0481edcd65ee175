/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/operations.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "agent/bus/polkit.h"
#include "agent/formats/interface.h"
#include "base/array.h"
#include "base/log.h"

#define PREFIX         BUS_PATH "/operation"
#define PROGRESS_USEC  (200 * USEC_PER_MSEC)
#define ENDED_KEPT_MAX 16

typedef enum OperationKind {
        OPERATION_SYNC,
        OPERATION_SHOW_RESHAPE,
        OPERATION_RESHAPE,
        OPERATION_UNDO_RESHAPE,
        OPERATION_RELOAD,
        OPERATION_AUDIT,
        OPERATION_HEAL,
        _OPERATION_KIND_MAX,
} OperationKind;

static const char *const kind_names[_OPERATION_KIND_MAX] = {
        [OPERATION_SYNC] = "sync",       [OPERATION_SHOW_RESHAPE] = "show-reshape",
        [OPERATION_RESHAPE] = "reshape", [OPERATION_UNDO_RESHAPE] = "undo-reshape",
        [OPERATION_RELOAD] = "reload",   [OPERATION_AUDIT] = "audit",
        [OPERATION_HEAL] = "heal",
};

typedef struct Operation {
        BusOperations *owner;
        uint64_t id;
        OperationKind kind;
        const char *state; /* OPERATION_STATE_… */
        Progress progress;
        Error error;
        uint64_t started_usec, ended_usec; /* CLOCK_REALTIME */
        char *caller;                      /* unique name on the bus */
        sd_bus_message *call;              /* waits for its answer; NULL: has it */
} Operation;

struct BusOperations {
        const BusConfig *config;
        Polkit *polkit;
        sd_bus *bus;            /* NULL while there is none */
        sd_event_source *timer; /* looks at the progress */
        Operation **items;      /* by id */
        size_t n_items, n_allocated;
        uint64_t last_id;
};

static Operation *operation_free(Operation *operation)
{
        if (!operation)
                return NULL;
        sd_bus_message_unref(operation->call);
        free(operation->caller);
        free(operation);
        return NULL;
}
DEFINE_CLEANUP(Operation *, operation_free);

static bool is_running(const Operation *operation)
{
        return strcmp(operation->state, OPERATION_STATE_RUNNING) == 0;
}

static uint64_t now_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

/* Telling */

static void format_path(const Operation *operation, char path[static 64])
{
        snprintf(path, 64, PREFIX "/%" PRIu64, operation->id);
}

static bool has_listeners(const BusOperations *operations)
{
        return operations->bus && sd_bus_is_ready(operations->bus) > 0;
}

static void tell_added(const Operation *operation)
{
        char path[64];

        format_path(operation, path);
        if (has_listeners(operation->owner))
                (void)sd_bus_emit_interfaces_added(operation->owner->bus, path,
                                                   BUS_INTERFACE_OPERATION, NULL);
}

static void tell_removed(const Operation *operation)
{
        char path[64];

        format_path(operation, path);
        if (has_listeners(operation->owner))
                (void)sd_bus_emit_interfaces_removed(operation->owner->bus, path,
                                                     BUS_INTERFACE_OPERATION, NULL);
}

static void tell_progress(const Operation *operation)
{
        char path[64];

        format_path(operation, path);
        if (has_listeners(operation->owner))
                (void)sd_bus_emit_properties_changed(operation->owner->bus, path,
                                                     BUS_INTERFACE_OPERATION, "Phase", "Done",
                                                     "Total", NULL);
}

static void tell_ended(const Operation *operation)
{
        char path[64];

        format_path(operation, path);
        if (has_listeners(operation->owner))
                (void)sd_bus_emit_properties_changed(operation->owner->bus, path,
                                                     BUS_INTERFACE_OPERATION, "State", "Error",
                                                     "EndedUSec", "Phase", "Done", "Total", NULL);
}

/* The list */

static bool any_runs(const BusOperations *operations)
{
        for (size_t i = 0; i < operations->n_items; i++)
                if (is_running(operations->items[i]))
                        return true;
        return false;
}

static void remove_at(BusOperations *operations, size_t i)
{
        operation_free(operations->items[i]);
        array_close(operations->items, sizeof(Operation *), &operations->n_items, i);
}

/* The oldest of those that ended, when they are too many. */
static void prune(BusOperations *operations)
{
        size_t n_ended = 0;

        for (size_t i = operations->n_items; i > 0; i--) {
                Operation *operation = operations->items[i - 1];

                if (is_running(operation) || ++n_ended <= ENDED_KEPT_MAX)
                        continue;
                tell_removed(operation);
                remove_at(operations, i - 1);
        }
}

static int add_operation(BusOperations *operations, sd_bus_message *call, OperationKind kind,
                         Operation **ret)
{
        _cleanup_(operation_freep) Operation *operation = calloc(1, sizeof(Operation));
        const char *sender = sd_bus_message_get_sender(call);

        if (!operation || array_grow(&operations->items, sizeof(Operation *), operations->n_items,
                                     &operations->n_allocated) < 0)
                return -ENOMEM;
        operation->caller = strdup(sender ? sender : "");
        if (!operation->caller)
                return -ENOMEM;
        operation->owner = operations;
        operation->id = ++operations->last_id;
        operation->kind = kind;
        operation->state = OPERATION_STATE_RUNNING;
        operation->progress.phase = "waiting";
        operation->started_usec = now_usec();
        operation->call = sd_bus_message_ref(call);
        *ret = operation;
        operations->items[operations->n_items++] = TAKE_PTR(operation);
        return 0;
}

/* It was begun: r of the call that did. */
static int begun(Operation *operation, int r)
{
        BusOperations *operations = operation->owner;

        if (r < 0) {
                remove_at(operations, operations->n_items - 1);
                return r;
        }
        tell_added(operation);
        (void)sd_event_source_set_time_relative(operations->timer, PROGRESS_USEC);
        (void)sd_event_source_set_enabled(operations->timer, SD_EVENT_ONESHOT);
        return 1;
}

/* After the caller has its answer. */
static void end_operation(Operation *operation, const char *state, const Error *error)
{
        operation->state = state;
        operation->error = error ? *error : ERROR_NULL;
        operation->ended_usec = now_usec();
        operation->progress = (Progress){ .phase = "" };
        operation->call = sd_bus_message_unref(operation->call);
        tell_ended(operation);
        prune(operation->owner);
}

static void end_with(Operation *operation, const Error *error)
{
        end_operation(operation, error->code ? OPERATION_STATE_FAILED : OPERATION_STATE_DONE,
                      error);
}

static bool progress_equal(const Progress *a, const Progress *b)
{
        return strcmp(a->phase, b->phase) == 0 && a->n_done == b->n_done &&
               a->n_total == b->n_total;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        BusOperations *operations = userdata;
        Progress progress;

        if (!any_runs(operations))
                return 0;
        tracker_get_progress(operations->config->tracker, &progress);
        for (size_t i = 0; i < operations->n_items; i++) {
                Operation *operation = operations->items[i];

                if (!is_running(operation) || progress_equal(&operation->progress, &progress))
                        continue;
                operation->progress = progress;
                tell_progress(operation);
        }
        (void)sd_event_source_set_time_relative(source, PROGRESS_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The methods that begin one. Each answers when it ended. */

static void on_synced(Tracker *tracker, const Error *error, void *userdata)
{
        Operation *operation = userdata;

        (void)sd_bus_reply_method_return(operation->call, "s", error->text);
        end_with(operation, error);
}

int bus_operations_sync(sd_bus_message *call, BusOperations *operations, bool full)
{
        Tracker *tracker = operations->config->tracker;
        Operation *operation;
        int r = add_operation(operations, call, OPERATION_SYNC, &operation);

        return r < 0 ? r
                     : begun(operation, full ? tracker_sync_full(tracker, on_synced, operation)
                                             : tracker_sync(tracker, on_synced, operation));
}

static const Error no_error;

static void end_reshape(Operation *operation, Tracker *tracker, const Error *error)
{
        const json_t *document = tracker_get_reshape(tracker);
        _cleanup_free_ char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

        if (error->code)
                (void)sd_bus_reply_method_errorf(operation->call, BUS_ERROR_RESHAPE, "%s",
                                                 error->text);
        else
                (void)sd_bus_reply_method_return(operation->call, "s", text ? text : "");
        end_with(operation, error);
}

/* Placement may be behind in other things: what counts is the reshape. */
static void on_reshaped(Tracker *tracker, const Error *error, void *userdata)
{
        const TrackerStatus *status = tracker_get_status(tracker);
        const Operation *operation = userdata;
        const Error *why = operation->kind == OPERATION_UNDO_RESHAPE
                                   ? tracker_get_undo_error(tracker)
                                   : &status->reshape_error;

        end_reshape(userdata, tracker,
                    why->code                            ? why
                    : status->sync_state == SYNC_OFFLINE ? error
                                                         : &no_error);
}

static void on_reshape_shown(Tracker *tracker, const Error *error, void *userdata)
{
        const TrackerStatus *status = tracker_get_status(tracker);

        end_reshape(userdata, tracker, status->sync_state == SYNC_OFFLINE ? error : &no_error);
}

/* Of several that are asked for before the next cycle only one is done. */
static bool is_other_reshape(const Operation *operation, OperationKind kind)
{
        return is_running(operation) && operation->kind != kind &&
               (operation->kind == OPERATION_RESHAPE || operation->kind == OPERATION_UNDO_RESHAPE ||
                operation->kind == OPERATION_SHOW_RESHAPE);
}

int bus_operations_reshape(sd_bus_message *call, BusOperations *operations, ReshapeKind kind)
{
        static const OperationKind kinds[] = {
                [RESHAPE_FORWARD] = OPERATION_RESHAPE,
                [RESHAPE_UNDO] = OPERATION_UNDO_RESHAPE,
                [RESHAPE_SHOW] = OPERATION_SHOW_RESHAPE,
        };
        const char *why = nova_mode_refuses(tracker_get_nova(operations->config->tracker),
                                            NOVA_ACTION_RESHAPE);
        Operation *operation;
        int r;

        if (why && kind != RESHAPE_SHOW)
                return sd_bus_reply_method_errorf(call, BUS_ERROR_REFUSED, "%s", why);
        for (size_t i = 0; i < operations->n_items; i++)
                if (is_other_reshape(operations->items[i], kinds[kind]))
                        return sd_bus_reply_method_errorf(
                                call, BUS_ERROR_BUSY,
                                "Another operation on the shape of the tree is under way: wait "
                                "for its end, or cancel it");
        r = add_operation(operations, call, kinds[kind], &operation);
        if (r < 0)
                return r;
        r = tracker_reshape(operations->config->tracker, kind,
                            kind == RESHAPE_SHOW ? on_reshape_shown : on_reshaped, operation);
        return begun(operation, r);
}

/* Whether the host could be published besides is not the question. */
static void on_audited(Tracker *tracker, const Error *error, void *userdata)
{
        Operation *operation = userdata;
        const json_t *document = tracker_get_audit(tracker);
        const Error *why = tracker_get_audit_error(tracker);
        _cleanup_free_ char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

        if (!why->code && !text)
                why = error;
        if (why->code)
                (void)sd_bus_reply_method_errorf(operation->call, BUS_ERROR_NOT_READY, "%s",
                                                 why->text);
        else
                (void)sd_bus_reply_method_return(operation->call, "s", text ? text : "");
        end_with(operation, why->code ? why : &no_error);
}

int bus_operations_audit(sd_bus_message *call, BusOperations *operations, bool heal)
{
        Operation *operation;
        int r = add_operation(operations, call, heal ? OPERATION_HEAL : OPERATION_AUDIT,
                              &operation);

        return r < 0 ? r
                     : begun(operation, tracker_audit(operations->config->tracker, heal, on_audited,
                                                      operation));
}

static void on_reloaded(void *userdata)
{
        Operation *operation = userdata;

        (void)sd_bus_reply_method_return(operation->call, NULL);
        end_with(operation, &no_error);
}

int bus_operations_reload(sd_bus_message *call, BusOperations *operations, sd_bus_error *error)
{
        const BusConfig *config = operations->config;
        Error words = ERROR_NULL;
        Operation *operation;
        int r = add_operation(operations, call, OPERATION_RELOAD, &operation);

        if (r < 0)
                return r;
        r = begun(operation, config->reload(config->userdata, on_reloaded, operation, &words));
        return r >= 0 ? r
                      : sd_bus_error_setf(error, r == -EBUSY ? BUS_ERROR_BUSY : BUS_ERROR_INVALID,
                                          "%s", error_text(&words, r));
}

/* The objects */

static Operation *find(const BusOperations *operations, const char *path)
{
        char own[64];

        for (size_t i = 0; i < operations->n_items; i++) {
                format_path(operations->items[i], own);
                if (strcmp(own, path) == 0)
                        return operations->items[i];
        }
        return NULL;
}

/* The getters find it again by the path: it may have ended while polkit was asked. */
static int find_operation(sd_bus *bus, const char *path, const char *interface, void *userdata,
                          void **ret, sd_bus_error *error)
{
        *ret = userdata;
        return find(userdata, path) ? 1 : 0;
}

static int introspect(sd_bus *bus, const char *prefix, void *userdata, char ***ret,
                      sd_bus_error *error)
{
        const BusOperations *operations = userdata;
        char **paths = calloc(operations->n_items + 1, sizeof(char *)), path[64];

        for (size_t i = 0; paths && i < operations->n_items; i++) {
                format_path(operations->items[i], path);
                paths[i] = strdup(path);
                if (paths[i])
                        continue;
                while (i > 0)
                        free(paths[--i]);
                free(paths);
                paths = NULL;
        }
        if (!paths)
                return -ENOMEM;
        *ret = paths;
        return 0;
}

/* They are few: all of them in one lot. */
static int enumerate(void *userdata, int64_t *cursor, char ***ret)
{
        return (*cursor)++ == 0 ? introspect(NULL, NULL, userdata, ret, NULL) : 0;
}

static int get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const Operation *operation = find(userdata, path);
        const char *text = operation->error.text;

        if (strcmp(property, "Kind") == 0)
                text = kind_names[operation->kind];
        else if (strcmp(property, "State") == 0)
                text = operation->state;
        else if (strcmp(property, "Phase") == 0)
                text = operation->progress.phase;
        else if (strcmp(property, "Caller") == 0)
                text = operation->caller;
        return sd_bus_message_append(reply, "s", text);
}

static int get_number(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
        const Operation *operation = find(userdata, path);
        uint64_t number = operation->id;

        if (strcmp(property, "Done") == 0)
                number = operation->progress.n_done;
        else if (strcmp(property, "Total") == 0)
                number = operation->progress.n_total;
        else if (strcmp(property, "StartedUSec") == 0)
                number = operation->started_usec;
        else if (strcmp(property, "EndedUSec") == 0)
                number = operation->ended_usec;
        return sd_bus_message_append(reply, "t", number);
}

/* Cancelling */

static int stop(Operation *operation)
{
        Tracker *tracker = operation->owner->config->tracker;

        switch (operation->kind) {
        case OPERATION_RELOAD:
        case OPERATION_HEAL:
                return -EBUSY;
        case OPERATION_SYNC:
        case OPERATION_AUDIT:
                return 0; /* the cycle harms nobody: only nobody waits for it any more */
        default:
                return tracker_cancel_reshape(tracker);
        }
}

static int do_cancel(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        Operation *operation = find(userdata, sd_bus_message_get_path(call));
        Error words;

        if (!operation || !is_running(operation))
                return sd_bus_error_setf(error, BUS_ERROR_NOT_FOUND, "It has ended");
        if (stop(operation) < 0)
                return sd_bus_error_setf(error, BUS_ERROR_BUSY,
                                         "It cannot be cancelled any more: wait for its end");
        error_setf(&words, ECANCELED, "It was cancelled");
        tracker_sync_cancel(operation->owner->config->tracker, operation);
        (void)sd_bus_reply_method_errorf(operation->call, BUS_ERROR_CANCELLED, "%s", words.text);
        end_operation(operation, OPERATION_STATE_CANCELLED, &words);
        return sd_bus_reply_method_return(call, NULL);
}

static int method_cancel(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        const Operation *operation = find(userdata, sd_bus_message_get_path(call));
        bool reshapes = operation && (operation->kind == OPERATION_RESHAPE ||
                                      operation->kind == OPERATION_UNDO_RESHAPE);

        return polkit_guard(((BusOperations *)userdata)->polkit, call,
                            reshapes ? POLKIT_ACTION_RESHAPE : POLKIT_ACTION_MANAGE, NULL,
                            do_cancel, userdata, error);
}

#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGES  SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("Cancel", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_cancel,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Id", "t", get_number, 0, CONSTANT),
        SD_BUS_PROPERTY("Kind", "s", get_text, 0, CONSTANT),
        SD_BUS_PROPERTY("Caller", "s", get_text, 0, CONSTANT),
        SD_BUS_PROPERTY("StartedUSec", "t", get_number, 0, CONSTANT),
        SD_BUS_PROPERTY("State", "s", get_text, 0, CHANGES),
        SD_BUS_PROPERTY("Phase", "s", get_text, 0, CHANGES),
        SD_BUS_PROPERTY("Done", "t", get_number, 0, CHANGES),
        SD_BUS_PROPERTY("Total", "t", get_number, 0, CHANGES),
        SD_BUS_PROPERTY("Error", "s", get_text, 0, CHANGES),
        SD_BUS_PROPERTY("EndedUSec", "t", get_number, 0, CHANGES),
        SD_BUS_VTABLE_END,
};

/* Life */

int bus_operations_attach(BusOperations *operations, BusDispatch *dispatch, sd_bus *bus)
{
        int r = bus_dispatch_add(dispatch, bus,
                                 &(BusPlace){ .path = PREFIX,
                                              .interface = BUS_INTERFACE_OPERATION,
                                              .vtable = vtable,
                                              .find = find_operation,
                                              .enumerate = enumerate,
                                              .introspect = introspect,
                                              .userdata = operations });

        if (r >= 0)
                operations->bus = bus;
        return r;
}

void bus_operations_detach(BusOperations *operations)
{
        operations->bus = NULL;
}

int bus_operations_new(BusOperations **ret, sd_event *event, const BusConfig *config,
                       Polkit *polkit)
{
        _cleanup_(bus_operations_freep) BusOperations *operations =
                calloc(1, sizeof(BusOperations));
        int r;

        if (!operations)
                return -ENOMEM;
        operations->config = config;
        operations->polkit = polkit;
        r = sd_event_add_time_relative(event, &operations->timer, CLOCK_MONOTONIC, PROGRESS_USEC,
                                       PROGRESS_USEC / 4, on_timer, operations);
        if (r < 0)
                return r;
        (void)sd_event_source_set_enabled(operations->timer, SD_EVENT_OFF);
        *ret = TAKE_PTR(operations);
        return 0;
}

BusOperations *bus_operations_free(BusOperations *operations)
{
        if (!operations)
                return NULL;
        for (size_t i = 0; i < operations->n_items; i++) {
                if (operations->config->tracker)
                        tracker_sync_cancel(operations->config->tracker, operations->items[i]);
                operation_free(operations->items[i]);
        }
        free(operations->items);
        sd_event_source_disable_unref(operations->timer);
        free(operations);
        return NULL;
}
