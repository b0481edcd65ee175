/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Invariant: who waits is in the list with a reference to the call, until it is answered. The
 * tracker knows each by its Waiting. */

#include "agent/bus/operations.h"

#include <errno.h>
#include <string.h>

#include "agent/formats/interface.h"
#include "base/array.h"

#define PROGRESS_USEC (200 * USEC_PER_MSEC)

typedef struct Waiting {
        BusOperations *owner;
        sd_bus_message *call;
} Waiting;

struct BusOperations {
        const BusConfig *config;
        Polkit *polkit;
        BusOperationsChanged changed;
        void *userdata;
        sd_event_source *timer; /* looks at the progress */
        Waiting **items;        /* the first one first */
        size_t n_items, n_allocated;
};

static const char *method_of(const Waiting *waiting)
{
        return sd_bus_message_get_member(waiting->call);
}

static bool is_call_of(sd_bus_message *call, const char *method)
{
        return strcmp(sd_bus_message_get_member(call), method) == 0;
}

static bool is_of(const Waiting *waiting, const char *method)
{
        return is_call_of(waiting->call, method);
}

const char *bus_operations_get(const BusOperations *operations, Progress *ret)
{
        *ret = (Progress){ .phase = "" };
        if (operations->n_items == 0)
                return "";
        tracker_get_progress(operations->config->tracker, ret);
        return method_of(operations->items[0]);
}

static void end(Waiting *waiting)
{
        BusOperations *operations = waiting->owner;

        for (size_t i = 0; i < operations->n_items; i++)
                if (operations->items[i] == waiting) {
                        array_close(operations->items, sizeof(Waiting *), &operations->n_items, i);
                        break;
                }
        sd_bus_message_unref(waiting->call);
        free(waiting);
        operations->changed(operations->userdata);
}

static int add(BusOperations *operations, sd_bus_message *call, Waiting **ret)
{
        Waiting *waiting;

        if (array_grow(&operations->items, sizeof(Waiting *), operations->n_items,
                       &operations->n_allocated) < 0)
                return -ENOMEM;
        waiting = malloc(sizeof(Waiting));
        if (!waiting)
                return -ENOMEM;
        *waiting = (Waiting){ operations, sd_bus_message_ref(call) };
        operations->items[operations->n_items++] = waiting;
        *ret = waiting;
        return 0;
}

/* It was begun: r of the call that did. */
static int begun(Waiting *waiting, int r)
{
        BusOperations *operations = waiting->owner;

        if (r < 0) {
                end(waiting);
                return r;
        }
        (void)sd_event_source_set_time_relative(operations->timer, PROGRESS_USEC);
        (void)sd_event_source_set_enabled(operations->timer, SD_EVENT_ONESHOT);
        operations->changed(operations->userdata);
        return 1;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        BusOperations *operations = userdata;

        if (operations->n_items == 0)
                return 0;
        operations->changed(operations->userdata);
        (void)sd_event_source_set_time_relative(source, PROGRESS_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The methods that begin one. Each answers when it ended. */

static void on_synced(Tracker *tracker, const Error *error, void *userdata)
{
        Waiting *waiting = userdata;

        (void)sd_bus_reply_method_return(waiting->call, "s", error->text);
        end(waiting);
}

int bus_operations_sync(sd_bus_message *call, BusOperations *operations)
{
        Tracker *tracker = operations->config->tracker;
        Waiting *waiting;
        int r = add(operations, call, &waiting);

        return r < 0 ? r
                     : begun(waiting, is_of(waiting, "SyncFull")
                                              ? tracker_sync_full(tracker, on_synced, waiting)
                                              : tracker_sync(tracker, on_synced, waiting));
}

static const Error no_error;

/* With the document ("" for none), or with why it failed. */
static void answer(Waiting *waiting, const json_t *document, const char *name, const Error *why)
{
        _cleanup_free_ char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

        if (why->code)
                (void)sd_bus_reply_method_errorf(waiting->call, name, "%s", why->text);
        else if (document && !text)
                (void)sd_bus_reply_method_errno(waiting->call, -ENOMEM, NULL);
        else
                (void)sd_bus_reply_method_return(waiting->call, "s", text ? text : "");
        end(waiting);
}

/* Placement may be behind in other things: what counts is the reshape. */
static void on_reshaped(Tracker *tracker, const Error *error, void *userdata)
{
        const TrackerStatus *status = tracker_get_status(tracker);
        const Waiting *waiting = userdata;
        const Error *why = is_of(waiting, "UndoReshape") ? &tracker_get_reshape(tracker)->undo_error
                                                         : &status->reshape_error;

        answer(userdata, tracker_get_reshape(tracker)->document, BUS_ERROR_RESHAPE,
               why->code                            ? why
               : status->sync_state == SYNC_OFFLINE ? error
                                                    : &no_error);
}

static void on_reshape_shown(Tracker *tracker, const Error *error, void *userdata)
{
        const TrackerStatus *status = tracker_get_status(tracker);

        answer(userdata, tracker_get_reshape(tracker)->document, BUS_ERROR_RESHAPE,
               status->sync_state == SYNC_OFFLINE ? error : &no_error);
}

static bool is_reshape(const char *method)
{
        return strcmp(method, "Reshape") == 0 || strcmp(method, "UndoReshape") == 0 ||
               strcmp(method, "GetReshape") == 0;
}

int bus_operations_reshape(sd_bus_message *call, BusOperations *operations, const EventAuthor *by)
{
        ReshapeKind kind = is_call_of(call, "GetReshape")    ? RESHAPE_SHOW
                           : is_call_of(call, "UndoReshape") ? RESHAPE_UNDO
                                                             : RESHAPE_FORWARD;
        const char *why = nova_mode_refuses(tracker_get_nova(operations->config->tracker),
                                            NOVA_ACTION_RESHAPE);
        Waiting *waiting;
        int r;

        if (why && kind != RESHAPE_SHOW)
                return sd_bus_reply_method_errorf(call, BUS_ERROR_REFUSED, "%s", why);
        /* Of several that are asked for before the next cycle only one is done. */
        for (size_t i = 0; i < operations->n_items; i++)
                if (is_reshape(method_of(operations->items[i])) &&
                    !is_of(operations->items[i], sd_bus_message_get_member(call)))
                        return sd_bus_reply_method_errorf(
                                call, BUS_ERROR_BUSY,
                                "Another operation on the shape of the tree is under way: wait for its end, or cancel it");
        r = add(operations, call, &waiting);
        if (r < 0)
                return r;
        return begun(waiting, tracker_reshape(operations->config->tracker, kind, by,
                                              kind == RESHAPE_SHOW ? on_reshape_shown : on_reshaped,
                                              waiting));
}

/* Whether the host could be published besides is not the question. */
static void on_audited(Tracker *tracker, const Error *error, void *userdata)
{
        const AuditorState *audit = tracker_get_audit(tracker);

        answer(userdata, audit->document, BUS_ERROR_NOT_READY,
               audit->error.code || audit->document ? &audit->error : error);
}

int bus_operations_audit(sd_bus_message *call, BusOperations *operations, const EventAuthor *by)
{
        Waiting *waiting;
        int r = add(operations, call, &waiting);

        return r < 0 ? r
                     : begun(waiting,
                             tracker_audit(operations->config->tracker, is_of(waiting, "Heal"), by,
                                           on_audited, waiting));
}

/* What is in the way of the question; what is in the way of the host stands in the answer. */
static const char *find_hindrance(const BusConfig *config, bool dry_run)
{
        const char *why = nova_mode_refuses(tracker_get_nova(config->tracker), NOVA_ACTION_PUBLISH);

        if (why)
                return why;
        if (tracker_get_status(config->tracker)->sync_state == SYNC_STANDALONE)
                return "There is no [placement] section: nothing was published of this host";
        if (cordon_is_retired(config->cordon))
                return "The host is retired already; \"computectl retire --undo\" takes it back";
        return dry_run || cordon_host_words(config->cordon)
                       ? NULL
                       : "The host is in use: \"computectl cordon\" first, so that nothing new comes";
}

static void on_retired(Tracker *tracker, const Error *error, void *userdata)
{
        static const Error unknown = { ENODATA, "Host and Placement could not be compared" };
        const json_t *document = tracker_get_retirement(tracker);
        const Error *why = tracker_get_retire_error(tracker);

        if (!why->code && !document)
                why = error->code ? error : &unknown;
        answer(userdata, document, BUS_ERROR_NOT_READY, why);
}

int bus_operations_retire(sd_bus_message *call, BusOperations *operations, const EventAuthor *by)
{
        bool dry_run = is_call_of(call, "GetRetire");
        const char *why = find_hindrance(operations->config, dry_run);
        Waiting *waiting;
        int r;

        if (why)
                return sd_bus_reply_method_errorf(call, BUS_ERROR_REFUSED, "%s", why);
        for (size_t i = 0; i < operations->n_items; i++)
                if (is_of(operations->items[i], "Retire") ||
                    is_of(operations->items[i], "GetRetire"))
                        return sd_bus_reply_method_errorf(
                                call, BUS_ERROR_BUSY, "Somebody else retires this host just now");
        r = add(operations, call, &waiting);
        return r < 0 ? r
                     : begun(waiting,
                             tracker_retire(operations->config->tracker,
                                            dry_run ? TRACKER_RETIRE_SHOW : TRACKER_RETIRE_DO, by,
                                            on_retired, waiting));
}

static void on_reloaded(void *userdata)
{
        Waiting *waiting = userdata;

        (void)sd_bus_reply_method_return(waiting->call, NULL);
        end(waiting);
}

int bus_operations_reload(sd_bus_message *call, BusOperations *operations, sd_bus_error *error)
{
        const BusConfig *config = operations->config;
        Error words = ERROR_NULL;
        Waiting *waiting;
        int r = add(operations, call, &waiting);

        if (r < 0)
                return r;
        r = begun(waiting, config->reload(config->userdata, on_reloaded, waiting, &words));
        return r >= 0 ? r
                      : sd_bus_error_setf(error, r == -EBUSY ? BUS_ERROR_BUSY : BUS_ERROR_INVALID,
                                          "%s", error_text(&words, r));
}

/* Cancelling */

/* -EBUSY: it cannot be any more. */
static int stop(const Waiting *waiting)
{
        const char *method = method_of(waiting);

        if (strcmp(method, "Reload") == 0 || strcmp(method, "Heal") == 0 ||
            strcmp(method, "Retire") == 0)
                return -EBUSY;
        /* Another cycle harms nobody: only nobody waits for it any more. */
        return is_reshape(method) ? tracker_cancel_reshape(waiting->owner->config->tracker) : 0;
}

static int cancel(Waiting *waiting)
{
        int r = stop(waiting);

        if (r < 0)
                return r;
        tracker_sync_cancel(waiting->owner->config->tracker, waiting);
        (void)sd_bus_reply_method_errorf(waiting->call, BUS_ERROR_CANCELLED, "It was cancelled");
        end(waiting);
        return 0;
}

static int do_cancel(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        BusOperations *operations = userdata;
        const char *method;
        bool found = false;
        int r = sd_bus_message_read(call, "s", &method);

        for (size_t i = operations->n_items; r >= 0 && i > 0; i--)
                if (is_of(operations->items[i - 1], method)) {
                        found = true;
                        r = cancel(operations->items[i - 1]);
                }
        if (r == -EBUSY)
                return sd_bus_error_setf(error, BUS_ERROR_BUSY,
                                         "It cannot be cancelled any more: wait for its end");
        if (r < 0)
                return r;
        return found ? sd_bus_reply_method_return(call, NULL)
                     : sd_bus_error_setf(error, BUS_ERROR_NOT_FOUND, "Nobody waits for %.40s()",
                                         method);
}

int bus_operations_cancel(sd_bus_message *call, BusOperations *operations, sd_bus_error *error)
{
        const char *method;
        int r = sd_bus_message_read(call, "s", &method);

        if (r < 0)
                return r;
        (void)sd_bus_message_rewind(call, true);
        return polkit_guard(operations->polkit, call,
                            is_reshape(method) && strcmp(method, "GetReshape") != 0
                                    ? POLKIT_ACTION_RESHAPE
                                    : POLKIT_ACTION_MANAGE,
                            NULL, do_cancel, operations, error);
}

/* Life */

int bus_operations_new(BusOperations **ret, sd_event *event, const BusConfig *config,
                       Polkit *polkit, BusOperationsChanged changed, void *userdata)
{
        _cleanup_(bus_operations_freep) BusOperations *operations =
                calloc(1, sizeof(BusOperations));
        int r;

        if (!operations)
                return -ENOMEM;
        operations->config = config;
        operations->polkit = polkit;
        operations->changed = changed;
        operations->userdata = userdata;
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
                sd_bus_message_unref(operations->items[i]->call);
                free(operations->items[i]);
        }
        free(operations->items);
        sd_event_source_disable_unref(operations->timer);
        free(operations);
        return NULL;
}
