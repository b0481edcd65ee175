/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs reshapes and keeps their schedule, images and results. A reshape runs in rounds. A round
 * reads the tree. If no allocation has to move, it publishes the new tree alone, without an image.
 * Otherwise, and in an undo, it gathers the consumers and lets the driver move them (pure). It
 * opens the withheld inventories that the changed consumers use (reshape_image_open()), and the
 * cycle closes them again. Then it writes the image and sends one POST /reshaper. Except in an
 * undo, the new providers are created while the consumers are read. They are empty until the
 * request. A provider that the decision does not use is removed again. A reshape that is only shown
 * creates none, and ends after the decision. An undo makes the decision from the image of the last
 * reshape (image.c). An image that cannot be written ends the reshape before the request.
 *
 * If another client changes a consumer during the round, the request fails as a whole (doc/facts.md
 * E6). The next round then reads and decides again. A request that Placement refuses is repeated in
 * the same way, until MAX_REFUSALS of them were refused. The pauses between rounds grow up to
 * PAUSE_MAX_USEC, with jitter. No further round follows one that ends after patience_usec. One
 * request moves all allocations. systemd gets a longer time-out before a further round.
 *
 * The state machine of a round is a chain of callbacks: on_timer(), on_refreshed(), on_gathered(),
 * on_published(). Each of them starts the next step. After an error it calls end_round(), which
 * starts the timer again or ends the reshape with finish(). A cancellation takes effect at the next
 * of these callbacks before the request is sent, or when the round fails. */

#include "agent/reshape/control.h"

#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "agent/reshape/migration-match.h"
#include "agent/state/state-file.h"
#include "base/clock.h"
#include "base/jitter.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"
#include "formats/format-names.h"

/* Default time during which rounds are repeated, and the limits of the pause between two rounds. */
#define PATIENCE_USEC    (5 * 60 * USEC_PER_SEC)
#define PAUSE_FIRST_USEC (100 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC   (10 * USEC_PER_SEC)
#define EXTEND_USEC      (30 * USEC_PER_SEC) /* for systemd's time-out, per further round */
#define MAX_REFUSALS     3                   /* refusals by Placement after which a reshape fails */
#define TIMER_ACCURACY   (10 * USEC_PER_MSEC)

/* Images in state_dir: of the last reshape that was sent, or about to be sent, and is not known to
 * be accepted; and of the last one that Placement has accepted. */
#define PENDING_FILE "reshape-pending.json"
#define DONE_FILE    "reshape.json"

/* The function of the caller of reshape_control_begin(), which receives the result. */
typedef void (*Done)(int result, ProviderTree *tree, const Error *device_error, const Error *error,
                     void *userdata);

/* The data of the running reshape. Exists from reshape_control_begin() to finish(). */
typedef struct Reshaper {
        ReshapeControl *control;
        ReshapeKind kind;
        bool was_asked; /* requested, and not only due at the start */
        EventAuthor by;
        const TreeMaker *maker;
        Reporter *reporter;
        Snapshot *snapshot;
        Done done;
        void *userdata;

        sd_event_source *timer; /* start of the next round */
        ReshapeImage image;     /* last decision, or an earlier one that Placement has; before a
                                   decision, only after.tree can be set */
        DriverReshape verdict;  /* result of the last decision */
        Error device_error;     /* why devices or classes are not as configured; code 0: all are */
        ProviderTree *tree;     /* new tree that Placement has accepted; NULL: none */
        ReshapeImage undo;      /* image of the reshape that an undo reverses */
        ProviderTree *before;   /* tree that this round found, before it sent anything */
        uint64_t began_usec, pause_usec;
        unsigned n_refusals;
        bool sent;        /* the request of the reshape is on its way */
        bool moves;       /* the last request had consumers; false: the tree alone */
        bool is_accepted; /* Placement has the new shape */
        bool cancelled;
} Reshaper;

/* The schedule, files and results of all reshapes. */
struct ReshapeControl {
        sd_event *event;
        char *state_dir;
        uint64_t patience_usec;
        ClaimService *claims;
        ReshapeKind asked_kind;
        EventAuthor asked_by; /* "": not known */
        bool is_made;      /* the last requested reshape has ended, and Placement has its shape */
        bool is_undo_lost; /* the pending image is that of an undo without an answer yet */
        StringSet kept;    /* classes that the last reshape could not move */
        Error blocked;     /* why the classes in kept could not be moved (DriverReshape.blocked) */
        ReshapeState state;
        Reshaper *reshaper; /* NULL: none runs */
};

static Reshaper *reshaper_free(Reshaper *reshaper)
{
        if (!reshaper)
                return NULL;
        sd_event_source_disable_unref(reshaper->timer);
        snapshot_unref(reshaper->snapshot);
        driver_reshape_done(&reshaper->verdict);
        reshape_image_done(&reshaper->image);
        reshape_image_done(&reshaper->undo);
        provider_tree_free(reshaper->before);
        provider_tree_free(reshaper->tree);
        free(reshaper);
        return NULL;
}
DEFINE_CLEANUP(Reshaper *, reshaper_free);

int reshape_control_new(ReshapeControl **ret, sd_event *event, const char *state_dir,
                        uint64_t patience_usec, bool at_start, ClaimService *claims)
{
        _cleanup_(reshape_control_freep) ReshapeControl *control =
                calloc(1, sizeof(ReshapeControl));

        if (!control)
                return -ENOMEM;
        control->event = sd_event_ref(event);
        control->patience_usec = patience_usec > 0 ? patience_usec : PATIENCE_USEC;
        control->state.at_start = at_start;
        control->claims = claims;
        if (state_dir && !(control->state_dir = strdup(state_dir)))
                return -ENOMEM;
        *ret = TAKE_PTR(control);
        return 0;
}

ReshapeControl *reshape_control_free(ReshapeControl *control)
{
        if (!control)
                return NULL;
        reshaper_free(control->reshaper);
        string_set_done(&control->kept);
        json_decref(control->state.document);
        reshape_image_done(&control->state.image);
        sd_event_unref(control->event);
        free(control->state_dir);
        free(control);
        return NULL;
}

void reshape_control_inherit(ReshapeControl *control, ReshapeControl *before)
{
        control->kept = TAKE_STRUCT(before->kept);
        control->blocked = before->blocked;
        control->is_undo_lost = before->is_undo_lost;
        control->state.error = before->state.error;
        control->state.image = TAKE_STRUCT(before->state.image);
}

void reshape_control_ask(ReshapeControl *control, ReshapeKind kind, const EventAuthor *by)
{
        control->state.asked = true;
        control->is_made = false;
        control->asked_kind = kind;
        control->asked_by = by ? *by : (EventAuthor){ 0 };
        if (kind != RESHAPE_FORWARD)
                control->state.asked_error = ERROR_NULL;
}

int reshape_control_cancel(ReshapeControl *control)
{
        Reshaper *reshaper = control->reshaper;

        if (control->is_made)
                return -EBUSY;
        if (reshaper && reshaper->was_asked) {
                if (reshaper->sent)
                        return -EBUSY;
                reshaper->cancelled = true;
        }
        control->state.asked = false;
        return 0;
}

/* End of a reshape */

/* Replaces the document in the state by one of the last decision. The reshape of the start without
 * a decision about consumers leaves the old document. A requested one has dropped it (is_due()). */
static void keep_document(const Reshaper *reshaper)
{
        const ReshapeImage *image = &reshaper->image;
        ReshapeState *state = &reshaper->control->state;

        if (!image->before.tree || !image->after.tree || !image->before.consumers ||
            !image->after.consumers)
                return;
        json_decref(state->document);
        state->document = reshape_image_to_json(image, &reshaper->maker->root,
                                                reshaper->maker->nodename, &reshaper->verdict);
}

static void log_problems(const Reshaper *reshaper)
{
        const DriverReshape *verdict = &reshaper->verdict;

        for (size_t i = 0; i < verdict->n_problems; i++) {
                const ReshapeProblem *problem = &verdict->problems[i];

                log_event(LOG_WARNING, MESSAGE_RESHAPE_BLOCKED,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, reshaper->maker->root.text),
                          "Consumer %s cannot be moved, so %s stays on its provider: %s",
                          problem->consumer.text, problem->resource_class, problem->reason);
        }
}

static void log_done(const Reshaper *reshaper)
{
        const ReshapeImage *image = &reshaper->image;
        size_t n = image->after.consumers ? image->after.consumers->n_consumers : 0;
        const EventAuthor *by = reshaper->by.text[0] ? &reshaper->by : NULL;
        char reason[128];
        const EventNote note = { .kind = EVENT_RESHAPED, .by = by, .reason = reason };

        snprintf(reason, sizeof(reason),
                 "%sthe provider tree, with the allocations of %zu consumer%s",
                 reshaper->kind == RESHAPE_UNDO ? "restored " : "", n, text_plural(n));
        claim_service_record(reshaper->control->claims, &note);
        log_event(LOG_NOTICE, MESSAGE_RESHAPED,
                  LOG_FIELDS(LOG_FIELD_PROVIDER, reshaper->maker->root.text, LOG_FIELD_CALLER,
                             by ? by->text : NULL),
                  "%s the provider tree of %s, with the allocations of %zu consumer%s.",
                  reshaper->kind == RESHAPE_UNDO ? "Restored" : "Reshaped",
                  reshaper->maker->nodename, n, text_plural(n));
}

/* Logs and stores the result. state.error stays unchanged after a shown or cancelled reshape, after
 * a failed undo, and if Placement did not answer. The result of an undo or of a shown reshape
 * changes asked_error here. */
static void note_end(const Reshaper *reshaper, int result, const Error *error)
{
        ReshapeControl *control = reshaper->control;

        keep_document(reshaper);
        if (reshaper->kind != RESHAPE_FORWARD)
                control->state.asked_error = result == 0 ? ERROR_NULL : *error;
        if (reshaper->kind == RESHAPE_SHOW || report_outcome_is_away(result))
                return;
        if (reshaper->kind == RESHAPE_UNDO && result != 0) {
                log_warning("The last reshape was not undone: %s.", error_text(error, result));
                return;
        }
        if (result == -ECANCELED) {
                log_info("The requested reshape was cancelled.");
                return;
        }
        control->state.error = result == 0 ? ERROR_NULL : *error;
        if (result != 0) {
                log_event(
                        LOG_ERR, MESSAGE_RESHAPE_FAILED,
                        LOG_FIELDS(LOG_FIELD_PROVIDER, reshaper->maker->root.text),
                        "The provider tree keeps its old shape: %s. To retry, run \"computectl reshape\", or restart the agent.",
                        error_text(error, result));
                return;
        }
        if (reshaper->is_accepted)
                log_done(reshaper);
        log_problems(reshaper);
        control->blocked = reshaper->verdict.blocked;
        if (string_set_copy(&control->kept, &reshaper->verdict.kept) < 0)
                log_warning("Out of memory. The list of classes that could not be moved is lost.");
}

/* Returns true if a reshape that ended so was the try of the start: a reshape forward, neither
 * cancelled nor without an answer, or an undo that succeeded. */
static bool is_try_of_start(const Reshaper *reshaper, int result)
{
        return reshaper->kind == RESHAPE_UNDO
                       ? result == 0
                       : reshaper->kind == RESHAPE_FORWARD && result != -ECANCELED &&
                                 !report_outcome_is_away(result);
}

/* Notes whether Placement can have made an undo whose answer is lost. An undo without a decision,
 * and a cancelled one, change nothing: the pending image stays the same. */
static void note_lost_undo(const Reshaper *reshaper, int result)
{
        if (reshaper->kind == RESHAPE_UNDO && reshaper->image.after.tree && result != -ECANCELED)
                reshaper->control->is_undo_lost = report_outcome_is_away(result);
}

/* Ends the reshape and calls the done function of its caller. Frees the reshaper before that call,
 * so that the caller can begin another one. */
static void finish(Reshaper *reshaper, int result, const Error *error)
{
        const Done done = reshaper->done;
        ReshapeControl *control = reshaper->control;
        void *userdata = reshaper->userdata;
        const Error words = error ? *error : ERROR_NULL, device_error = reshaper->device_error;
        ProviderTree *tree = TAKE_PTR(reshaper->tree);

        note_end(reshaper, result, &words);
        /* Without an answer of Placement the reshape remains due, both the one at the start of the
         * agent and a requested one. */
        if (is_try_of_start(reshaper, result)) {
                if (control->state.at_start && result != 0)
                        control->state.start_error = words;
                control->state.at_start = false;
        }
        if (report_outcome_is_away(result) && reshaper->was_asked && !control->state.asked)
                reshape_control_ask(control, reshaper->kind, &reshaper->by);
        control->is_made = reshaper->was_asked && reshaper->is_accepted;
        note_lost_undo(reshaper, result);
        if (tree) {
                reshape_image_done(&control->state.image);
                control->state.image = TAKE_STRUCT(reshaper->image);
        }
        control->reshaper = reshaper_free(reshaper);
        done(result, tree, &device_error, &words, userdata);
}

static void finish_cancelled(Reshaper *reshaper)
{
        Error error;

        error_setf(&error, ECANCELED, "The operation was cancelled");
        finish(reshaper, -ECANCELED, &error);
}

/* The image of the old shape */

/* Writes the image before the request is sent. Without a state_dir it does nothing. */
static int save_image(const Reshaper *reshaper, Error *reterr)
{
        _cleanup_free_ char *path = NULL;
        _cleanup_json_ json_t *document = NULL;

        if (!reshaper->control->state_dir)
                return 0;
        path = text_format("%s/" PENDING_FILE, reshaper->control->state_dir);
        document = reshape_image_to_json(&reshaper->image, &reshaper->maker->root,
                                         reshaper->maker->nodename, &reshaper->verdict);
        if (!path || !document)
                return error_oom(reterr);
        return state_file_write(path, document, reterr);
}

/* Makes the pending image the image of the last reshape. The rename is atomic. */
static void keep_image(const char *state_dir)
{
        _cleanup_free_ char *pending = text_format("%s/" PENDING_FILE, state_dir);
        _cleanup_free_ char *done = text_format("%s/" DONE_FILE, state_dir);

        if (pending && done && rename(pending, done) < 0 && errno != ENOENT)
                log_warning("The reshape cannot be undone, because %s is not writable: %s.", done,
                            strerror(errno));
}

static int load_image(const char *state_dir, const char *name, ReshapeImage *ret, Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/%s", state_dir, name);
        _cleanup_json_ json_t *document = NULL;
        int r;

        if (!path)
                return error_oom(reterr);
        r = state_file_read(path, RESHAPE_FORMAT, false, &document, reterr);
        return r < 0 ? r : reshape_image_from_json(document, ret, reterr);
}

/* Settles a reshape that was sent, but whose answer did not arrive. If tree, which Placement has,
 * has the shape of that reshape, the pending image becomes the image of the last reshape. */
static void settle_image(const char *state_dir, const ProviderTree *tree)
{
        _cleanup_(reshape_image_done) ReshapeImage image = { 0 };

        if (load_image(state_dir, PENDING_FILE, &image, NULL) >= 0 &&
            reshape_image_is_reached(&image, tree))
                keep_image(state_dir);
}

/* Rounds */

static void begin_round(Reshaper *reshaper);
static void on_published(Reporter *reporter, int result, const Error *error, void *userdata);

/* Returns the pause before the next round, in microseconds. The pause is random within a range that
 * grows with each call up to PAUSE_MAX_USEC. */
static uint64_t next_pause_usec(Reshaper *reshaper)
{
        reshaper->pause_usec = jitter_next(reshaper->pause_usec, PAUSE_FIRST_USEC, PAUSE_MAX_USEC,
                                           jitter_random());
        return reshaper->pause_usec;
}

/* Returns true if a new round can succeed: after a change by another client, and after a refusal,
 * because the decision can be based on old data. MAX_REFUSALS and patience_usec limit the rounds. A
 * shown reshape has one round. */
static bool may_try_again(Reshaper *reshaper, int result)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        if (reshaper->kind == RESHAPE_SHOW ||
            now - reshaper->began_usec >= reshaper->control->patience_usec)
                return false;
        if (result == REPORT_E_REFUSED || result == REPORT_E_IN_USE)
                return ++reshaper->n_refusals < MAX_REFUSALS;
        return result == REPORT_E_CONFLICT || result == -ENODATA;
}

/* Ends a round without success: starts the timer of the next round, or ends the reshape. */
static void end_round(Reshaper *reshaper, int result, const Error *error)
{
        uint64_t pause_usec;

        if (reshaper->cancelled) {
                finish_cancelled(reshaper);
                return;
        }
        if (!may_try_again(reshaper, result)) {
                finish(reshaper, result, error);
                return;
        }
        pause_usec = next_pause_usec(reshaper);
        log_debug("Another writer was faster than the reshape (%s); next attempt in %" PRIu64
                  " ms.",
                  error->text, pause_usec / USEC_PER_MSEC);
        (void)sd_notifyf(false, "EXTEND_TIMEOUT_USEC=%" PRIu64, (uint64_t)EXTEND_USEC);
        (void)sd_event_source_set_time_relative(reshaper->timer, pause_usec);
        (void)sd_event_source_set_enabled(reshaper->timer, SD_EVENT_ONESHOT);
}

static void end_failed(Reshaper *reshaper, int r, const char *what)
{
        Error error;

        error_setf(&error, r, "%s: %s", what, strerror(r < 0 ? -r : r));
        end_round(reshaper, r, &error);
}

/* Removes from both shapes the consumers that do not change, because the request must contain only
 * the others. */
static void drop_unchanged(ReshapeImage *image)
{
        for (size_t i = image->after.consumers->n_consumers; i > 0; i--) {
                Uuid uuid = image->after.consumers->consumers[i - 1]->uuid;
                const Consumer *before = allocations_find(image->before.consumers, &uuid);

                if (!before ||
                    !consumer_holds_equal(before, image->after.consumers->consumers[i - 1]))
                        continue;
                allocations_remove(image->before.consumers, &uuid);
                allocations_remove(image->after.consumers, &uuid);
        }
}

/* Finds the migrations among the consumers: an alias relates the consumer of a migration to its
 * guest (migration-match.h). The caller owns the result. Sets *ret_n to 0 and returns NULL if
 * memory is short. */
static ReshapeAlias *find_aliases(const Reshaper *reshaper, const Allocations *consumers,
                                  size_t *ret_n)
{
        Claims *claims = reshaper->control->claims->claims;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        ReshapeAlias *aliases = NULL;

        if (claims && claims_list(claims, CLAIMS_LIVING, NULL, &list, NULL) != 0)
                log_debug("Cannot read claims. Migrations are recognised by their size alone.");
        if (migration_match(consumers, reshaper->snapshot, &list, &aliases, ret_n) < 0)
                *ret_n = 0;
        return aliases;
}

/* Lets the driver make the new shape. The verdict passes moved, others and aliases to the tree
 * maker, which edits moved. The verdict borrows them only during the call, so its members are reset
 * afterwards. */
static int decide_forward(Reshaper *reshaper, Allocations *moved, const Allocations *others,
                          Error *reterr)
{
        DriverReshape *verdict = &reshaper->verdict;
        _cleanup_free_ ReshapeAlias *aliases = find_aliases(reshaper, moved, &verdict->n_aliases);
        MadeTree made = { 0 };
        int r;

        verdict->consumers = moved;
        verdict->others = others;
        verdict->aliases = aliases;
        r = tree_maker_make(reshaper->maker, reshaper->snapshot, reshaper->image.before.tree, true,
                            verdict, &made, reterr);
        verdict->aliases = NULL;
        verdict->n_aliases = 0;
        verdict->consumers = NULL;
        verdict->others = NULL;
        if (r < 0)
                return r;
        reshaper->image.after.tree = made.tree;
        reshaper->device_error = made.device_error;
        return 0;
}

/* Makes the decision of this round, from the undo image or by the driver, and fills the zeroed
 * image. Takes ownership of before, the consumers that were read. A tree that will be sent is open
 * for the consumers that change. */
static int decide(Reshaper *reshaper, Allocations *before, const Allocations *others, Error *reterr)
{
        ReshapeImage *image = &reshaper->image;
        int r;

        image->taken_usec = clock_usec(CLOCK_REALTIME);
        image->before.consumers = before;
        image->before.tree = TAKE_PTR(reshaper->before);
        if (reshaper->kind == RESHAPE_UNDO)
                r = reshape_image_undo(&reshaper->undo, image->before.tree, before, &image->after,
                                       reterr);
        else if (allocations_copy(&image->after.consumers, before) < 0)
                return error_oom(reterr);
        else
                r = decide_forward(reshaper, image->after.consumers, others, reterr);
        if (r < 0 || reshaper->kind == RESHAPE_SHOW)
                return r;
        r = reshape_image_open(image, others, reshaper->maker->cordon, &reshaper->maker->root);
        return r < 0 ? error_setf(reterr, r, "Cannot make the request: %s", strerror(-r)) : 0;
}

/* Sends the new shape, or ends the reshape if it is only shown. consumers NULL: the tree alone is
 * sent, so there is no image to write. */
static int publish(Reshaper *reshaper, const Allocations *consumers, Error *reterr)
{
        int r;

        if (reshaper->kind == RESHAPE_SHOW) {
                finish(reshaper, 0, NULL);
                return 0;
        }
        if (consumers && (r = save_image(reshaper, reterr)) < 0)
                return r;
        if (consumers)
                reshaper->control->is_undo_lost = reshaper->kind == RESHAPE_UNDO;
        reshaper->moves = consumers;
        r = reporter_publish(reshaper->reporter, reshaper->image.after.tree, consumers,
                             on_published, reshaper);
        reshaper->sent = r >= 0;
        return r < 0 ? error_setf(reterr, r, "Cannot send the reshape: %s", strerror(-r)) : 0;
}

/* Returns the consumers of the request, or NULL to send the tree alone, without a new image. That
 * is so if a reshape forward moves no consumer, and either changes no inventory or repeats an
 * earlier round that Placement has. The image of such a round stays. */
static const Allocations *choose_moves(Reshaper *reshaper, ReshapeImage *earlier)
{
        ReshapeImage *image = &reshaper->image;

        drop_unchanged(image);
        if (reshaper->kind == RESHAPE_UNDO || image->after.consumers->n_consumers > 0 ||
            (!earlier->after.tree && reshape_image_is_reached(image, image->after.tree)))
                return image->after.consumers;
        if (earlier->after.tree) {
                provider_tree_free(earlier->after.tree);
                earlier->after.tree = TAKE_PTR(image->after.tree);
                reshape_image_done(image);
                *image = TAKE_STRUCT(*earlier);
        }
        return NULL;
}

/* Continues the round with the consumers that were read, which it takes over from the reporter. */
static void on_gathered(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Reshaper *reshaper = userdata;
        _cleanup_(reshape_image_done) ReshapeImage earlier = { 0 };
        _cleanup_(allocations_freep) Allocations *others = NULL;
        Allocations *consumers = NULL;
        Error words = *error;

        if (reshaper->cancelled) {
                finish_cancelled(reshaper);
                return;
        }
        if (result == REPORT_DONE) {
                reporter_take_gathered(reporter, &consumers, &others);
                earlier = TAKE_STRUCT(reshaper->image);
                result = decide(reshaper, consumers, others, &words);
        }
        if (result == REPORT_DONE) {
                result = publish(reshaper, choose_moves(reshaper, &earlier), &words);
                if (result == 0)
                        return;
        }
        end_round(reshaper, result, &words);
}

/* Returns true if the reshape is done, although Placement can have refused a part of the tree:
 * Placement accepted the reshape, or no allocation had to move. The cycle publishes the tree again
 * and reports the error. */
static bool is_over(const Reshaper *reshaper, int result)
{
        return result == REPORT_DONE || ((!reshaper->moves || reshaper->is_accepted) &&
                                         (result == REPORT_E_REFUSED || result == REPORT_E_IN_USE));
}

static void on_published(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Reshaper *reshaper = userdata;

        reshaper->sent = false;
        reshaper->is_accepted =
                result == REPORT_DONE ||
                (reshaper->moves &&
                 reshape_image_is_reached(&reshaper->image, reporter_tree(reporter)));
        if (!is_over(reshaper, result)) {
                end_round(reshaper, result, error);
                return;
        }
        if (reshaper->control->state_dir && reshaper->moves)
                keep_image(reshaper->control->state_dir);
        provider_tree_free(reshaper->tree);
        reshaper->tree = provider_tree_ref(reshaper->image.after.tree);
        finish(reshaper, REPORT_DONE, error);
}

/* Ends an undo that Placement made in an earlier request, whose answer did not arrive. */
static void finish_lost_undo(Reshaper *reshaper)
{
        reshaper->is_accepted = true;
        keep_image(reshaper->control->state_dir);
        reshaper->tree = provider_tree_ref(reporter_tree(reshaper->reporter));
        finish(reshaper, REPORT_DONE, NULL);
}

/* Settles the pending file, except that of a lost undo, which load_undo() needs. Keeps the image of
 * an earlier round only if Placement has its shape. This round can withhold inventories that the
 * request had open, and the tree then has another shape, so the file is settled before that. The
 * image of a round without a decision has only a tree, and is dropped. */
static void settle_round(Reshaper *reshaper)
{
        const ProviderTree *tree = reporter_tree(reshaper->reporter);
        const ReshapeImage *image = &reshaper->image;

        if (reshaper->control->state_dir && !reshaper->control->is_undo_lost)
                settle_image(reshaper->control->state_dir, tree);
        if (!image->before.tree || !image->after.tree || !reshape_image_is_reached(image, tree))
                reshape_image_done(&reshaper->image);
}

/* Makes the tree without consumers, to check whether an allocation has to move. Returns 1 with the
 * tree in the image if none has to move, else 0. Returns a negative errno on failure. */
static int probe(Reshaper *reshaper, Error *reterr)
{
        MadeTree made = { 0 };
        int r = tree_maker_make(reshaper->maker, reshaper->snapshot,
                                reporter_tree(reshaper->reporter), true, &reshaper->verdict, &made,
                                reterr);

        if (r < 0)
                return r;
        if (made.reshape_needed) {
                provider_tree_free(made.tree);
                return 0;
        }
        provider_tree_free(reshaper->image.after.tree);
        reshaper->image.after.tree = made.tree;
        reshaper->device_error = made.device_error;
        return 1;
}

/* Returns the likely tree of a reshape forward (owned by the caller), so that its new providers can
 * be created while the consumers are read. Returns NULL for an undo, for a shown reshape and on
 * failure; the decision then reports the error. */
static ProviderTree *guess_tree(Reshaper *reshaper)
{
        MadeTree made = { 0 };

        if (reshaper->kind == RESHAPE_FORWARD)
                (void)tree_maker_make_empty(reshaper->maker, reshaper->snapshot, reshaper->before,
                                            true, &made, NULL);
        return made.tree;
}

/* Starts to read the consumers. A reshape forward reads only those with the classes that have to
 * move. An undo reads all. */
static int gather(Reshaper *reshaper, Error *reterr)
{
        bool undoes = reshaper->kind == RESHAPE_UNDO;
        _cleanup_(provider_tree_freep) ProviderTree *ahead = NULL;
        int r;

        provider_tree_free(reshaper->before);
        reshaper->before = provider_tree_ref(reporter_tree(reshaper->reporter));
        ahead = guess_tree(reshaper);
        r = reporter_gather(reshaper->reporter, undoes ? NULL : &reshaper->verdict.classes, ahead,
                            on_gathered, reshaper);
        return r < 0 ? error_setf(reterr, r, "Cannot read allocations: %s", strerror(-r)) : 0;
}

/* Continues the round after the tree was read: publishes the tree, or reads the consumers. An undo
 * always reads them, but ends here if the tree has its shape already. */
static int start(Reshaper *reshaper, Error *reterr)
{
        bool undoes = reshaper->kind == RESHAPE_UNDO;
        int r = 0;

        if (undoes &&
            !provider_tree_find(reporter_tree(reshaper->reporter), &reshaper->maker->root))
                return error_setf(reterr, ENOENT, "Placement has no provider of this host");
        if (undoes && reshaper->image.after.tree &&
            reshape_image_is_reached(&reshaper->image, reporter_tree(reshaper->reporter))) {
                finish_lost_undo(reshaper);
                return 0;
        }
        /* A class that could not be moved in an earlier round can be moved now. */
        string_set_done(&reshaper->verdict.kept);
        if (!undoes) {
                settle_round(reshaper);
                r = probe(reshaper, reterr);
        }
        if (r != 0)
                return r < 0 ? r : publish(reshaper, NULL, reterr);
        return gather(reshaper, reterr);
}

static void on_refreshed(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Reshaper *reshaper = userdata;
        Error words = *error;

        if (reshaper->cancelled) {
                finish_cancelled(reshaper);
                return;
        }
        if (result == REPORT_DONE)
                result = start(reshaper, &words);
        if (result != 0)
                end_round(reshaper, result, &words);
}

static void begin_round(Reshaper *reshaper)
{
        int r = reporter_refresh(reshaper->reporter, on_refreshed, reshaper);

        if (r < 0)
                end_failed(reshaper, r, "Cannot read Placement");
}

/* Begins a round when its pause is over. */
static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        Reshaper *reshaper = userdata;

        if (reshaper->cancelled)
                finish_cancelled(reshaper);
        else
                begin_round(reshaper);
        return 0;
}

/* Loads the image of the last reshape if this is an undo. That reshape can be one without an
 * answer. If it was an undo itself, this undo repeats it, and loads its image, too. Returns -ENOENT
 * with words if there is nothing to undo. */
static int load_undo(Reshaper *reshaper, Error *reterr)
{
        const char *state_dir = reshaper->control->state_dir;
        int r;

        if (reshaper->kind != RESHAPE_UNDO)
                return 0;
        if (!state_dir)
                return error_setf(reterr, ENOENT, "There is no reshape to undo");
        if (reshaper->control->is_undo_lost)
                (void)load_image(state_dir, PENDING_FILE, &reshaper->image, NULL);
        else
                settle_image(state_dir, reporter_tree(reshaper->reporter));
        r = load_image(state_dir, DONE_FILE, &reshaper->undo, reterr);
        return r == -ENOENT ? error_setf(reterr, ENOENT, "There is no reshape to undo") : r;
}

/* Schedule */

static void drop_document(ReshapeControl *control)
{
        json_decref(control->state.document);
        control->state.document = NULL;
}

/* Returns true if a reshape must begin in this cycle, and drops a request that has no effect or is
 * forbidden. A request that is not forbidden replaces the document of an earlier reshape. remote:
 * the tree of Placement, just read. See reshape_control_begin(). */
static bool is_due(ReshapeControl *control, bool needed, bool may, const ProviderTree *remote)
{
        bool stays = control->kept.n_items > 0, drops;

        if (!may)
                control->state.error = ERROR_NULL;
        if (control->state.asked && !may && control->asked_kind != RESHAPE_SHOW)
                control->state.asked = false;
        if (control->state.asked)
                drop_document(control);
        if (control->state.asked && (needed || stays || control->asked_kind == RESHAPE_UNDO))
                return true;
        drops = control->state.asked;
        control->state.asked = false;
        if (!may || needed)
                return may && control->state.at_start;
        if ((drops || control->state.at_start) && control->state_dir)
                settle_image(control->state_dir, remote);
        control->state.at_start = false;
        if (!stays)
                control->state.error = ERROR_NULL;
        return false;
}

int reshape_control_begin(ReshapeControl *control, bool needed, bool may, const TreeMaker *maker,
                          Reporter *reporter, const Snapshot *snapshot, Done done, void *userdata,
                          Error *reterr)
{
        _cleanup_(reshaper_freep) Reshaper *reshaper = NULL;
        Error error = ERROR_NULL;
        int r;

        if (!is_due(control, needed, may, reporter_tree(reporter)))
                return 0;
        reshaper = calloc(1, sizeof(Reshaper));
        if (!reshaper)
                return error_oom(reterr);
        *reshaper = (Reshaper){
                .control = control,
                .kind = control->state.asked ? control->asked_kind : RESHAPE_FORWARD,
                .was_asked = control->state.asked,
                .by = control->state.asked ? control->asked_by : (EventAuthor){ 0 },
                .maker = maker,
                .reporter = reporter,
                .snapshot = snapshot_ref(snapshot),
                .done = done,
                .userdata = userdata,
                .began_usec = clock_usec(CLOCK_MONOTONIC),
        };
        r = load_undo(reshaper, &error);
        /* The timer also begins the first round, so that done is never called from inside this
         * call. */
        if (r >= 0 &&
            (r = sd_event_add_time_relative(control->event, &reshaper->timer, CLOCK_MONOTONIC, 0,
                                            TIMER_ACCURACY, on_timer, reshaper)) < 0)
                error_setf(&error, r, "Cannot set up a timer: %s", strerror(-r));
        if (r < 0 && reshaper->kind != RESHAPE_UNDO)
                return error_setf(reterr, r, "%s", error.text);
        control->state.asked = false;
        if (r >= 0) {
                control->reshaper = TAKE_PTR(reshaper);
                return 1;
        }
        control->state.asked_error = error;
        return 0;
}

int reshape_control_make_tree(ReshapeControl *control, const TreeMaker *maker,
                              const Snapshot *snapshot, const ProviderTree *base, bool known,
                              MadeTree *ret_made, Error *reterr)
{
        DriverReshape reshape = { .kept = control->kept, .blocked = control->blocked };
        int r = tree_maker_make(maker, snapshot, base, known, &reshape, ret_made, reterr);

        driver_reshape_clear(&reshape);
        control->kept = reshape.kept;
        return r;
}

int reshape_control_alone(ReshapeControl *control, bool needed, const TreeMaker *maker,
                          const ProviderTree *base, const Snapshot *snapshot,
                          ProviderTree **ret_tree, Error *reterr)
{
        MadeTree made = { 0 };
        int r;

        if (control->state.asked && control->asked_kind == RESHAPE_UNDO) {
                control->state.asked = false;
                error_setf(&control->state.asked_error, ENOENT, "There is no reshape to undo");
        }
        if (control->state.asked && control->asked_kind == RESHAPE_SHOW) {
                control->state.asked = false;
                drop_document(control);
        }
        if (!is_due(control, needed, true, base))
                return 0;
        r = tree_maker_make_empty(maker, snapshot, base, true, &made, reterr);
        if (r < 0)
                return r;
        control->state.at_start = control->state.asked = false;
        *ret_tree = made.tree;
        return 0;
}

const ReshapeState *reshape_control_get_state(const ReshapeControl *control)
{
        return &control->state;
}

void reshape_control_drop_image(ReshapeControl *control)
{
        reshape_image_done(&control->state.image);
}
