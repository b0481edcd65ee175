/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/reshape/control.h"

#include <string.h>

#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"

struct ReshapeControl {
        sd_event *event;
        char *state_dir;
        uint64_t patience_usec;
        ClaimService *claims;
        bool at_start; /* the first one is still to come */
        bool asked;
        ReshapeKind asked_kind;
        EventAuthor asked_by; /* "": nobody */
        StringSet kept;
        Error blocked; /* of kept */
        ReshapeState state;

        Reshaper *reshaper; /* NULL: none runs */
        ReshapeKind kind;   /* of that one: another may be asked for meanwhile */
        bool was_asked;
        EventAuthor by; /* the same of that one */
        const TreeMaker *maker;
        ReshapeControlDone done;
        void *userdata;
};

int reshape_control_new(ReshapeControl **ret, sd_event *event, const char *state_dir,
                        uint64_t patience_usec, bool at_start, ClaimService *claims)
{
        _cleanup_(reshape_control_freep) ReshapeControl *control =
                calloc(1, sizeof(ReshapeControl));

        if (!control)
                return -ENOMEM;
        control->event = sd_event_ref(event);
        control->patience_usec = patience_usec;
        control->at_start = at_start;
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

void reshape_control_ask(ReshapeControl *control, ReshapeKind kind, const EventAuthor *by)
{
        control->asked = true;
        control->asked_kind = kind;
        control->asked_by = by ? *by : (EventAuthor){ 0 };
        if (kind == RESHAPE_UNDO)
                control->state.undo_error = ERROR_NULL;
}

int reshape_control_cancel(ReshapeControl *control)
{
        bool runs = control->reshaper && control->was_asked;
        int r = runs ? reshaper_cancel(control->reshaper) : 0;

        if (r >= 0)
                control->asked = false;
        return r;
}

bool reshape_control_is_starting(const ReshapeControl *control)
{
        return control->at_start;
}

static void drop_document(ReshapeControl *control)
{
        json_decref(control->state.document);
        control->state.document = NULL;
}

bool reshape_control_is_due(ReshapeControl *control, bool needed, bool may,
                            const ProviderTree *remote)
{
        bool stays = control->kept.n_items > 0;

        if (control->asked && !may && control->asked_kind != RESHAPE_SHOW)
                control->asked = false;
        if (control->asked && (needed || stays || control->asked_kind == RESHAPE_UNDO))
                return true;
        if (control->asked)
                drop_document(control);
        control->asked = false;
        if (!may)
                return false;
        if (control->at_start && !needed) {
                control->at_start = false;
                if (control->state_dir)
                        reshaper_settle(control->state_dir, remote);
        }
        return needed && control->at_start;
}

/* What came of it */

static void keep_document(ReshapeControl *control, const ReshapeImage *image,
                          const DriverReshape *verdict)
{
        if (!image->before.tree || !image->after.tree || !image->before.consumers ||
            !image->after.consumers)
                return;
        drop_document(control);
        control->state.document = reshape_image_to_json(image, &control->maker->root,
                                                        control->maker->nodename, verdict);
}

static void log_problems(const ReshapeControl *control, const DriverReshape *verdict)
{
        for (size_t i = 0; i < verdict->n_problems; i++) {
                const ReshapeProblem *problem = &verdict->problems[i];

                log_event(LOG_WARNING, MESSAGE_RESHAPE_BLOCKED,
                          LOG_FIELDS(LOG_FIELD_PROVIDER, control->maker->root.text),
                          "Consumer %s cannot be moved, so %s stays where it is: %s",
                          problem->consumer.text, problem->resource_class, problem->reason);
        }
}

static void log_done(const ReshapeControl *control, const ReshapeImage *image)
{
        size_t n = image->after.consumers ? image->after.consumers->n_consumers : 0;
        const EventAuthor *by = control->by.text[0] ? &control->by : NULL;
        char reason[128];
        const EventNote note = { .kind = EVENT_RESHAPED, .by = by, .reason = reason };

        snprintf(reason, sizeof(reason),
                 "%sthe provider tree, with the allocations of %zu consumer%s",
                 control->kind == RESHAPE_UNDO ? "put back " : "", n, text_plural(n));
        claim_service_record(control->claims, &note);
        log_event(LOG_NOTICE, MESSAGE_RESHAPED,
                  LOG_FIELDS(LOG_FIELD_PROVIDER, control->maker->root.text, LOG_FIELD_CALLER,
                             by ? by->text : NULL),
                  "%s the provider tree of %s, with the allocations of %zu consumer%s.",
                  control->kind == RESHAPE_UNDO ? "Put back" : "Reshaped", control->maker->nodename,
                  n, text_plural(n));
}

static void note_end(ReshapeControl *control, const ReshapeOutcome *outcome, int result,
                     const Error *error)
{
        keep_document(control, &outcome->image, &outcome->verdict);
        if (control->kind == RESHAPE_UNDO)
                control->state.undo_error = result == 0 ? ERROR_NULL : *error;
        if (control->kind == RESHAPE_SHOW || report_outcome_is_away(result))
                return;
        if (control->kind == RESHAPE_UNDO && result != 0) {
                log_warning("The last reshape was not undone: %s.", error_text(error, result));
                return;
        }
        control->state.error = result == 0 ? ERROR_NULL : *error;
        if (result != 0) {
                log_event(
                        LOG_ERR, MESSAGE_RESHAPE_FAILED,
                        LOG_FIELDS(LOG_FIELD_PROVIDER, control->maker->root.text),
                        "The provider tree keeps its old shape: %s. It is tried again at the next start, or with \"computectl reshape\".",
                        error_text(error, result));
                return;
        }
        log_done(control, &outcome->image);
        log_problems(control, &outcome->verdict);
        if (string_set_copy(&control->kept, &outcome->verdict.kept) < 0)
                log_warning(
                        "Out of memory: which classes could not be moved is forgotten, ignoring.");
}

static void on_ended(ReshapeOutcome *outcome, int result, const Error *error, void *userdata)
{
        ReshapeControl *control = userdata;
        Error words = error ? *error : ERROR_NULL;
        Error device_error = outcome->device_error;
        ProviderTree *tree = TAKE_PTR(outcome->tree);

        note_end(control, outcome, result, &words);
        /* Without an answer of Placement the start is not over. */
        if (!report_outcome_is_away(result))
                control->at_start &= control->kind == RESHAPE_SHOW;
        else if (control->was_asked && !control->asked)
                reshape_control_ask(control, control->kind, &control->by);
        reshape_image_done(&control->state.image);
        if (tree) {
                control->blocked = device_error;
                control->state.image = outcome->image;
                outcome->image = (ReshapeImage){ 0 };
        }
        control->reshaper = reshaper_free(control->reshaper);
        control->done(result, tree, &device_error, &words, control->userdata);
}

int reshape_control_begin(ReshapeControl *control, const TreeMaker *maker, Reporter *reporter,
                          const Snapshot *snapshot, ReshapeControlDone done, void *userdata,
                          Error *reterr)
{
        const ReshaperConfig config = {
                .kind = control->asked ? control->asked_kind : RESHAPE_FORWARD,
                .maker = maker,
                .reporter = reporter,
                .snapshot = snapshot,
                .claims = control->claims,
                .state_dir = control->state_dir,
                .patience_usec = control->patience_usec,
        };
        Error error = ERROR_NULL;
        int r;

        control->kind = config.kind;
        control->was_asked = control->asked;
        control->by = control->asked ? control->asked_by : (EventAuthor){ 0 };
        control->asked = false;
        control->maker = maker;
        control->done = done;
        control->userdata = userdata;
        r = reshaper_new(&control->reshaper, control->event, &config, on_ended, control, &error);
        if (r >= 0)
                return 0;
        if (config.kind != RESHAPE_UNDO)
                return error_setf(reterr, r, "%s", error.text);
        control->state.undo_error = error;
        return RESHAPE_CONTROL_E_NO_UNDO;
}

int reshape_control_make_tree(ReshapeControl *control, const TreeMaker *maker,
                              const Snapshot *snapshot, const ProviderTree *base, bool known,
                              MadeTree *ret_made, Error *reterr)
{
        DriverReshape reshape = { .kept = control->kept };
        int r = tree_maker_make(maker, snapshot, base, known, &reshape, ret_made, reterr);

        driver_reshape_clear(&reshape);
        control->kept = reshape.kept;
        /* the driver only knows that the class stays, not whose fault it is */
        if (r >= 0 && control->kept.n_items > 0 && ret_made->device_error.code)
                ret_made->device_error = control->blocked;
        return r;
}

int reshape_control_alone(ReshapeControl *control, bool needed, const TreeMaker *maker,
                          const ProviderTree *base, const Snapshot *snapshot,
                          ProviderTree **ret_tree, Error *reterr)
{
        MadeTree made = { 0 };
        int r;

        if (!reshape_control_is_due(control, needed, true, base))
                return 0;
        if (control->asked && control->asked_kind == RESHAPE_UNDO)
                error_setf(&control->state.undo_error, ENOENT, "There is no reshape to undo");
        r = tree_maker_make_empty(maker, snapshot, base, true, &made, reterr);
        if (r < 0)
                return r;
        control->at_start = control->asked = false;
        *ret_tree = made.tree;
        return 0;
}

const ReshapeState *reshape_control_get_state(const ReshapeControl *control)
{
        return &control->state;
}
