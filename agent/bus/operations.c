/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Methods that answer when a cycle has ended. Each waiting call is in the list of BusOperations
 * until it is answered, with a reference to its message. bus_operations_free() drops it without an
 * answer. The tracker identifies a call by its Waiting, which is the userdata of tracker_sync().
 * The table of operations says how each method begins. Cordon(), Uncordon() and UndoRetire() are
 * also here. They answer after their cycle, or at once if they fail or [agent] nova prevents the
 * write. They are not in the list, because they have no progress and cannot be cancelled.
 *
 * Tests: tests/integration/agent/test_bus_documents.py */

#include "agent/bus/operations.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "agent/bus/methods.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "formats/interface.h"

/* Interval of the comparisons of the progress while a call waits. */
#define PROGRESS_USEC (200 * USEC_PER_MSEC)

typedef struct Waiting Waiting;

/* A method. Waiting calls with the same begin() are rivals: begin() of reshapes, retirements and
 * the heal of one consumer rejects a call that a rival prevents. */
typedef struct Operation {
        const char *method;
        int (*begin)(Waiting *waiting, const EventAuthor *by, sd_bus_error *error);
        int kind;            /* distinguishes methods with the same begin() */
        bool is_final;       /* the method cannot be cancelled; reshape_control_cancel() decides
                                about reshapes */
        const char *changes; /* subject of the log message about the caller; NULL: no message */
} Operation;

/* A call that waits for the end of its cycle. */
struct Waiting {
        TAILQ_ENTRY(Waiting) link;
        BusOperations *owner;
        sd_bus_message *call;
        const Operation *operation;
};

struct BusOperations {
        const BusConfig *config;
        void (*changed)(void *userdata);
        void *userdata;
        sd_event_source *timer;                   /* compares the progress */
        TAILQ_HEAD(WaitingList, Waiting) waiting; /* the oldest first */
};

static Tracker *tracker_of(const Waiting *waiting)
{
        return waiting->owner->config->tracker;
}

const char *bus_operations_get(const BusOperations *operations, Progress *ret)
{
        *ret = (Progress){ .phase = "" };
        if (TAILQ_EMPTY(&operations->waiting))
                return "";
        tracker_get_progress(operations->config->tracker, ret);
        return TAILQ_FIRST(&operations->waiting)->operation->method;
}

/* Frees a waiting call without an answer. */
static void drop(Waiting *waiting)
{
        TAILQ_REMOVE(&waiting->owner->waiting, waiting, link);
        sd_bus_message_unref(waiting->call);
        free(waiting);
}

/* Frees a waiting call that was answered, or whose begin() failed, and reports the change. */
static void end(Waiting *waiting)
{
        BusOperations *operations = waiting->owner;

        drop(waiting);
        operations->changed(operations->userdata);
}

/* Adds a call to the list. NULL: out of memory. */
static Waiting *add(BusOperations *operations, sd_bus_message *call, const Operation *operation)
{
        Waiting *waiting = malloc(sizeof(Waiting));

        if (!waiting)
                return NULL;
        *waiting = (Waiting){ .owner = operations,
                              .call = sd_bus_message_ref(call),
                              .operation = operation };
        TAILQ_INSERT_TAIL(&operations->waiting, waiting, link);
        return waiting;
}

/* Returns another waiting call with the same begin(), or NULL. */
static const Waiting *find_rival(const Waiting *waiting)
{
        const Waiting *other;

        TAILQ_FOREACH(other, &waiting->owner->waiting, link)
                if (other != waiting && other->operation->begin == waiting->operation->begin)
                        return other;
        return NULL;
}

/* Reports possible progress, and stops when no call waits. */
static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        BusOperations *operations = userdata;

        if (TAILQ_EMPTY(&operations->waiting))
                return 0;
        operations->changed(operations->userdata);
        (void)sd_event_source_set_time_relative(source, PROGRESS_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The methods: begin() requests a cycle or fails, and the callback answers when the cycle has
 * ended. */

/* Answers Sync() and SyncFull() with the error of the cycle, "" after success. Beside nova-compute,
 * an unread part of the host is no error of the cycle, but the caller gets it. A needed reshape is
 * none there: it is Nova's. */
static void on_synced(Tracker *tracker, const Error *error, void *userdata)
{
        const TrackerStatus *status = tracker_view(tracker).status;
        Waiting *waiting = userdata;
        Error why = *error;

        if (!why.code && status->sync_state == SYNC_LEFT_TO_NOVA)
                tracker_status_copy_unread(status, &why);
        (void)sd_bus_reply_method_return(waiting->call, "s", why.text);
        end(waiting);
}

static int begin_sync(Waiting *waiting, const EventAuthor *by, sd_bus_error *error)
{
        return tracker_sync(tracker_of(waiting), (TrackerSync)waiting->operation->kind, on_synced,
                            waiting);
}

static const Error no_error;

/* Answers with the document ("" if there is none), or with the bus error name and the words of why.
 * Frees the call. */
static void answer_text(Waiting *waiting, const char *document, const char *name, const Error *why)
{
        if (why->code)
                (void)sd_bus_reply_method_errorf(waiting->call, name, "%s", why->text);
        else
                (void)sd_bus_reply_method_return(waiting->call, "s", document ? document : "");
        end(waiting);
}

static void answer(Waiting *waiting, const json_t *document, const char *name, const Error *why)
{
        _cleanup_free_ char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
        Error error = *why;

        if (document && !text && !error.code)
                error_oom(&error);
        answer_text(waiting, text, name, &error);
}

/* Returns the reason why the cycle did not make the reshape of this kind; code 0: it did, or
 * nothing had to move. Other parts of the publication can have failed. The error of the cycle
 * counts only if Placement was not reached, if the host is retired, or if the cycle ended before
 * the reshape. It also counts if the first publication is still put off, or if a reload ended the
 * wait. */
static const Error *find_failure(const TrackerView *view, int kind, const Error *error)
{
        static const Error skipped = { EAGAIN, "The cycle ended before the reshape" };
        const ReshapeState *state = reshape_control_get_state(view->reshape);
        const TrackerStatus *status = view->status;
        const Error *why = kind == RESHAPE_FORWARD ? &status->reshape_error : &state->asked_error;

        if (error->code == ECANCELED)
                return error;
        if (why->code)
                return why;
        if (status->sync_state == SYNC_OFFLINE || status->sync_state == SYNC_RETIRED ||
            status->settling.code || state->asked)
                return error->code ? error : &skipped;
        return &no_error;
}

/* Answers with the result of the reshape. */
static void on_reshaped(Tracker *tracker, const Error *error, void *userdata)
{
        const TrackerView view = tracker_view(tracker);
        const Waiting *waiting = userdata;

        answer(userdata, reshape_control_get_state(view.reshape)->document, BUS_ERROR_RESHAPE,
               find_failure(&view, waiting->operation->kind, error));
}

/* Requests a reshape from the next cycle. A rival of another kind is an error, because one cycle
 * makes only one reshape. Calls of the same kind share it. */
static int begin_reshape(Waiting *waiting, const EventAuthor *by, sd_bus_error *error)
{
        Tracker *tracker = tracker_of(waiting);
        const Waiting *rival = find_rival(waiting);
        ReshapeKind kind = (ReshapeKind)waiting->operation->kind;
        const char *why = nova_mode_refuses(tracker_view(tracker).nova, NOVA_ACTION_RESHAPE);

        if (why && kind != RESHAPE_SHOW)
                return sd_bus_error_set(error, BUS_ERROR_REFUSED, why);
        if (cordon_view(waiting->owner->config->cordon).is_retired)
                return sd_bus_error_set(
                        error, BUS_ERROR_REFUSED,
                        "The host is retired. To report it again, run \"computectl retire --undo\"");
        if (rival && rival->operation != waiting->operation)
                return sd_bus_error_set(
                        error, BUS_ERROR_BUSY,
                        "Another operation on the shape of the tree is running. Wait for its end, or cancel it");
        if (tracker_sync(tracker, TRACKER_SYNC, on_reshaped, waiting) < 0)
                return -ENOMEM;
        reshape_control_ask(tracker_view(tracker).reshape, kind, by);
        return 0;
}

/* Answers with the error of the last audit if it failed. Otherwise answers with its document, also
 * if the publication failed. If there is neither, or if a reload ended the wait, answers with the
 * error of the cycle: a document is that of an earlier audit then. */
static void on_audited(Tracker *tracker, const Error *error, void *userdata)
{
        const AuditorState *audit = auditor_get_state(tracker_view(tracker).auditor);

        answer_text(userdata, audit->document, BUS_ERROR_NOT_READY,
                    error->code != ECANCELED && (audit->error.code || audit->document)
                            ? &audit->error
                            : error);
}

static int ask_audit(Waiting *waiting, bool heals, const Uuid *consumer, const EventAuthor *by)
{
        if (tracker_sync(tracker_of(waiting), TRACKER_SYNC, on_audited, waiting) < 0)
                return -ENOMEM;
        auditor_ask(tracker_view(tracker_of(waiting)).auditor, heals, consumer, by);
        return 0;
}

static int begin_audit(Waiting *waiting, const EventAuthor *by, sd_bus_error *error)
{
        return ask_audit(waiting, waiting->operation->kind, NULL, by);
}

/* Requests the healing of one consumer. Only one such call waits at a time, because the auditor
 * keeps one consumer. */
static int begin_heal_consumer(Waiting *waiting, const EventAuthor *by, sd_bus_error *error)
{
        const char *text;
        Uuid consumer;
        int r = sd_bus_message_read(waiting->call, "s", &text);

        if (r < 0)
                return r;
        if (uuid_from_text(text, &consumer) < 0)
                return sd_bus_error_setf(error, BUS_ERROR_INVALID,
                                         "\"%.40s\" is not the uuid of a consumer", text);
        if (find_rival(waiting))
                return sd_bus_error_set(error, BUS_ERROR_BUSY,
                                        "Another consumer is being healed. Try again");
        return ask_audit(waiting, true, &consumer, by);
}

/* Returns why the call of Retire() or GetRetire() is refused, or NULL. Reasons that depend on
 * Placement, such as allocations, are in the document instead. A dry run (GetRetire) does not
 * require a cordon. */
static const char *find_hindrance(const BusConfig *config, bool dry_run)
{
        const char *why =
                nova_mode_refuses(tracker_view(config->tracker).nova, NOVA_ACTION_PUBLISH);

        if (why)
                return why;
        if (tracker_view(config->tracker).status->sync_state == SYNC_STANDALONE)
                return "There is no [placement] section, so nothing of this host is published";
        if (cordon_view(config->cordon).is_retired)
                return "The host is already retired. To report it again, run \"computectl retire --undo\"";
        return dry_run || cordon_view(config->cordon).host
                       ? NULL
                       : "The host is not cordoned. Run \"computectl cordon\" first";
}

/* Answers with the result of the retirement, or with the error that prevented it. */
static void on_retired(Tracker *tracker, const Error *error, void *userdata)
{
        static const Error unknown = { ENODATA, "Cannot compare host and Placement" };
        const Retirement *retirement = tracker_view(tracker).retirement;
        const Error *why = &retirement->error;

        if (error->code == ECANCELED)
                why = error;
        else if (!why->code && !retirement->document)
                why = error->code ? error : &unknown;
        answer(userdata, retirement->document, BUS_ERROR_NOT_READY, why);
}

static int begin_retire(Waiting *waiting, const EventAuthor *by, sd_bus_error *error)
{
        RetireKind kind = (RetireKind)waiting->operation->kind;
        const char *why = find_hindrance(waiting->owner->config, kind == RETIRE_SHOW);

        if (why)
                return sd_bus_error_set(error, BUS_ERROR_REFUSED, why);
        if (find_rival(waiting))
                return sd_bus_error_set(error, BUS_ERROR_BUSY,
                                        "Another caller is retiring this host");
        if (tracker_sync(tracker_of(waiting), TRACKER_SYNC, on_retired, waiting) < 0)
                return -ENOMEM;
        retirement_ask(tracker_view(tracker_of(waiting)).retirement, kind, by);
        return 0;
}

/* Answers without an error: the new settings are in force even if the cycle failed or takes long.
 */
static void on_reloaded(Tracker *tracker, const Error *error, void *userdata)
{
        Waiting *waiting = userdata;

        (void)sd_bus_reply_method_return(waiting->call, NULL);
        end(waiting);
}

/* Reloads the configuration and requests the first cycle of the new settings. */
static int begin_reload(Waiting *waiting, const EventAuthor *by, sd_bus_error *error)
{
        const BusConfig *config = waiting->owner->config;
        Error words = ERROR_NULL;
        int r = config->reload(config->userdata, &words);

        if (r < 0)
                return sd_bus_error_setf(error, r == -EBUSY ? BUS_ERROR_BUSY : BUS_ERROR_INVALID,
                                         "%s", error_text(&words, r));
        return tracker_sync(config->tracker, TRACKER_RELOAD, on_reloaded,
                            waiting); /* the new tracker */
}

/* All operations. The meaning of kind depends on begin(). */
static const Operation known[] = {
        { "Sync", begin_sync, TRACKER_PUBLISH, false, NULL },
        { "SyncFull", begin_sync, TRACKER_PUBLISH_ALL, false, NULL },
        { "GetReshape", begin_reshape, RESHAPE_SHOW, false, NULL },
        { "Reshape", begin_reshape, RESHAPE_FORWARD, false, "Reshape" },
        { "UndoReshape", begin_reshape, RESHAPE_UNDO, false, "Undo of the last reshape" },
        { "Audit", begin_audit, false, false, NULL },
        { "Heal", begin_audit, true, true, "Heal" },
        { "HealConsumer", begin_heal_consumer, 0, true, "Heal of one consumer" },
        { "GetRetire", begin_retire, RETIRE_SHOW, false, NULL },
        { "Retire", begin_retire, RETIRE_DO, true, "Retirement of this host" },
        { "Reload", begin_reload, false, true, NULL },
};

static const Operation *find_operation(const char *method)
{
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strcmp(known[i].method, method) == 0)
                        return &known[i];
        return NULL;
}

int bus_operations_begin(BusOperations *operations, sd_bus_message *call, const EventAuthor *by,
                         sd_bus_error *error)
{
        const Operation *operation = find_operation(sd_bus_message_get_member(call));
        Waiting *waiting;
        int r;

        assert(operation); /* each method that bus.c passes has a row */
        /* Log the caller now. The result is logged at its end. */
        if (operation->changes)
                log_event(LOG_INFO, NULL, LOG_FIELDS(LOG_FIELD_CALLER, by->text),
                          "%s requested by %s.", operation->changes, by->text);
        waiting = add(operations, call, operation);
        if (!waiting)
                return -ENOMEM;
        r = operation->begin(waiting, by, error);
        if (r < 0) {
                end(waiting);
                return r;
        }
        (void)sd_event_source_set_time_relative(operations->timer, PROGRESS_USEC);
        (void)sd_event_source_set_enabled(operations->timer, SD_EVENT_ONESHOT);
        operations->changed(operations->userdata);
        return 1;
}

/* Cancelling */

/* Cancels one waiting call, and with it a requested reshape. Returns -EBUSY if it is too late, or
 * if the method cannot be cancelled. */
static int cancel(Waiting *waiting)
{
        const Operation *operation = waiting->operation;
        int r = operation->is_final ? -EBUSY : 0;

        if (operation->begin == begin_reshape)
                r = reshape_control_cancel(tracker_view(tracker_of(waiting)).reshape);
        if (r < 0)
                return r;
        /* The requested cycle still runs, without a cancelled reshape. The call stops waiting. */
        tracker_sync_cancel(tracker_of(waiting), waiting);
        (void)sd_bus_reply_method_errorf(waiting->call, BUS_ERROR_CANCELLED,
                                         "The operation was cancelled");
        end(waiting);
        return 0;
}

int bus_operations_cancel(BusOperations *operations, sd_bus_message *call, sd_bus_error *error)
{
        Waiting *waiting = TAILQ_LAST(&operations->waiting, WaitingList), *before;
        const char *method;
        bool found = false;
        int r = sd_bus_message_read(call, "s", &method);

        for (; r >= 0 && waiting; waiting = before) {
                before = TAILQ_PREV(waiting, WaitingList, link);
                if (strcmp(waiting->operation->method, method) != 0)
                        continue;
                found = true;
                r = cancel(waiting);
        }
        if (r == -EBUSY)
                return sd_bus_error_setf(
                        error, BUS_ERROR_BUSY,
                        "The operation can no longer be cancelled. Wait for its end");
        if (r < 0)
                return r;
        return found ? sd_bus_reply_method_return(call, NULL)
                     : sd_bus_error_setf(error, BUS_ERROR_NOT_FOUND, "No caller waits for %.40s()",
                                         method);
}

/* Cordons: taking the host or a device out of use, and back. The names of a device are compared in
 * a tree, so a call for a device fails while no tree of this host is known (find_tree()). */

/* Sets the bus error for a result of cordon.h. */
static int refuse_cordon(sd_bus_error *error, int r, const Error *words)
{
        const char *name = r == -ENOENT                   ? BUS_ERROR_NOT_FOUND
                           : r == -ENODEV || r == -EINVAL ? BUS_ERROR_INVALID
                                                          : BUS_ERROR_STORE;

        return sd_bus_error_setf(error, name, "%s", error_text(words, r));
}

/* Answers "" if the cycle was published, else the error of the cycle, which is "" if this host must
 * publish nothing. An unread part of the host or a pending reshape does not prevent the publication
 * of a cordon, so their errors are ignored. */
static void on_cordon_reported(Tracker *tracker, const Error *error, void *userdata)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = userdata;

        bool published = error->code != ECANCELED && tracker_view(tracker).status->cycle_published;

        (void)sd_bus_reply_method_return(call, "s", published ? "" : error->text);
}

/* Applies the cordons to new claims at once, and answers after the cycle that reports them to
 * Placement. Records note as an event. left: why Placement does not get the change; the answer is
 * at once then. NULL: it does. Returns a negative errno if the answer cannot be sent or awaited;
 * the cordons hold then, too. */
static int report_cordon(sd_bus_message *call, const BusConfig *config, const EventNote *note,
                         const char *left)
{
        const Cordon *cordon = config->cordon;
        int r;

        claim_service_record(config->claims, note);
        claim_service_set_closed(config->claims, cordon_view(cordon).host,
                                 cordon_view(cordon).devices);
        if (left) {
                (void)tracker_sync(config->tracker, TRACKER_PUBLISH_CORDON, NULL, NULL);
                return sd_bus_reply_method_return(call, "s", left);
        }
        r = tracker_sync(config->tracker, TRACKER_PUBLISH_CORDON, on_cordon_reported,
                         sd_bus_message_ref(call));
        if (r >= 0)
                return 1;
        sd_bus_message_unref(call);
        return r;
}

/* Returns the tree that has the names of devices: that of the tracker, and before its first poll
 * the last one of the claims, also of an earlier run. NULL: none of this host. */
static const ProviderTree *find_tree(const BusConfig *config)
{
        const ProviderTree *trees[] = { tracker_view(config->tracker).tree, config->claims->tree,
                                        config->claims->remembered };

        for (size_t i = 0; i < ARRAY_SIZE(trees); i++)
                if (trees[i] && provider_tree_find(trees[i], &config->root))
                        return trees[i];
        return NULL;
}

int bus_cordon(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
               sd_bus_error *error)
{
        const ProviderTree *tree = find_tree(config);
        const char *device, *reason, *why;
        Error words = ERROR_NULL;
        int r = sd_bus_message_read(call, "ss", &device, &reason);

        if (r < 0)
                return r;
        if (device[0] && !tree)
                return bus_not_ready(config, error);
        why = nova_mode_refuses(tracker_view(config->tracker).nova,
                                cordon_action(tree, &config->root, device));
        if (why)
                return sd_bus_error_setf(error, BUS_ERROR_REFUSED, "%s", why);
        r = cordon_set(config->cordon, tree, &config->root, device, reason, caller->name, NULL,
                       clock_usec(CLOCK_REALTIME), &words);
        if (r < 0)
                return refuse_cordon(error, r, &words);
        log_event(LOG_NOTICE, MESSAGE_CORDONED,
                  LOG_FIELDS(LOG_FIELD_DEVICE, device, LOG_FIELD_CALLER, caller->author.text),
                  "%s%s was cordoned by %s%s%s.", device[0] ? "Device " : "The host", device,
                  caller->name, reason[0] ? ": " : "", reason);
        return report_cordon(
                call, config,
                &(EventNote){ EVENT_CORDONED, &caller->author, 0, NULL, device, reason }, NULL);
}

/* Returns why [agent] nova leaves the end of a cordon or retirement to nova-compute in Placement,
 * although it ends for claims. NULL: the agent writes it, because the mode permits action, the
 * beginning of the same cordon or retirement. */
static const char *find_left(const BusConfig *config, NovaAction action)
{
        NovaMode nova = tracker_view(config->tracker).nova;

        return nova_mode_refuses(nova, action) ? nova_mode_refuses(nova, NOVA_ACTION_PUBLISH)
                                               : NULL;
}

int bus_uncordon(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                 sd_bus_error *error)
{
        const ProviderTree *tree = find_tree(config);
        Error words = ERROR_NULL;
        const char *device, *left;
        int r = sd_bus_message_read(call, "s", &device);

        if (r < 0)
                return r;
        if (device[0] && !tree)
                return bus_not_ready(config, error);
        left = find_left(config, cordon_action(tree, &config->root, device));
        r = cordon_lift(config->cordon, tree, &config->root, device, NULL,
                        clock_usec(CLOCK_REALTIME), &words);
        if (r < 0)
                return refuse_cordon(error, r, &words);
        log_event(LOG_NOTICE, MESSAGE_UNCORDONED,
                  LOG_FIELDS(LOG_FIELD_DEVICE, device, LOG_FIELD_CALLER, caller->author.text),
                  "%s%s was uncordoned by %s.", device[0] ? "Device " : "The host", device,
                  caller->name);
        return report_cordon(
                call, config,
                &(EventNote){ EVENT_UNCORDONED, &caller->author, 0, NULL, device, NULL }, left);
}

/* Lets the host report to Placement again. The cordon stays until Uncordon(). */
int bus_undo_retire(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                    sd_bus_error *error)
{
        Error words = ERROR_NULL;
        int r;

        if (!cordon_view(config->cordon).is_retired)
                return sd_bus_error_set(error, BUS_ERROR_NOT_FOUND, "The host is not retired");
        r = cordon_set_retired(config->cordon, false, &words);
        if (r < 0)
                return refuse_cordon(error, r, &words);
        log_event(LOG_NOTICE, NULL, LOG_FIELDS(LOG_FIELD_CALLER, caller->author.text),
                  "The retirement of the host was undone by %s. The host stays cordoned.",
                  caller->name);
        return report_cordon(call, config,
                             &(EventNote){ EVENT_UNRETIRED, &caller->author, 0, NULL, NULL, NULL },
                             find_left(config, NOVA_ACTION_PUBLISH));
}

/* Creation and destruction */

int bus_operations_new(BusOperations **ret, sd_event *event, const BusConfig *config,
                       void (*changed)(void *userdata), void *userdata)
{
        _cleanup_(bus_operations_freep) BusOperations *operations =
                calloc(1, sizeof(BusOperations));
        int r;

        if (!operations)
                return -ENOMEM;
        TAILQ_INIT(&operations->waiting);
        operations->config = config;
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
        Waiting *waiting;

        if (!operations)
                return NULL;
        while ((waiting = TAILQ_FIRST(&operations->waiting))) {
                if (operations->config->tracker)
                        tracker_sync_cancel(operations->config->tracker, waiting);
                drop(waiting);
        }
        sd_event_source_disable_unref(operations->timer);
        free(operations);
        return NULL;
}
