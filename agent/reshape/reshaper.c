/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/reshape/reshaper.h"

#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "agent/reshape/migration-match.h"
#include "agent/state/state-file.h"
#include "base/clock.h"
#include "base/jitter.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "formats/format-names.h"

#define PAUSE_FIRST_USEC (100 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC   (10 * USEC_PER_SEC)
#define EXTEND_USEC      (30 * USEC_PER_SEC) /* each round asks systemd for so much time */
#define MAX_REFUSALS     3
#define TIMER_ACCURACY   (10 * USEC_PER_MSEC)

/* Beside each other in state_dir: what is about to be sent, and what was done last. */
#define PENDING_FILE "reshape-pending.json"
#define DONE_FILE    "reshape.json"

struct Reshaper {
        ReshaperConfig config;
        sd_event_source *timer; /* when the next round begins */
        ReshapeOutcome outcome;
        ReshapeImage undo;    /* what to go back to */
        ProviderTree *before; /* what this round found, before anything was sent */
        uint64_t began_usec, pause_usec;
        unsigned n_refusals;
        bool sent;  /* the reshape itself is under way */
        bool moves; /* what was sent last moves consumers, or empties what they held */
        bool cancelled;
        ReshaperDone done;
        void *userdata;
};

static void begin_round(Reshaper *reshaper);
static void on_published(Reporter *reporter, int result, const Error *error, void *userdata);

static void finish(Reshaper *reshaper, int result, const Error *error)
{
        /* The reshaper may be gone after this. */
        reshaper->done(&reshaper->outcome, result, error, reshaper->userdata);
}

static void finish_cancelled(Reshaper *reshaper)
{
        Error error;

        error_setf(&error, ECANCELED, "It was cancelled");
        finish(reshaper, -ECANCELED, &error);
}

int reshaper_cancel(Reshaper *reshaper)
{
        if (reshaper->sent)
                return -EBUSY;
        reshaper->cancelled = true;
        return 0;
}

/* The pre-image */

static int save_image(const Reshaper *reshaper, Error *reterr)
{
        _cleanup_free_ char *path = NULL;
        _cleanup_json_ json_t *document = NULL;

        if (!reshaper->config.state_dir)
                return 0;
        path = text_format("%s/" PENDING_FILE, reshaper->config.state_dir);
        document =
                reshape_image_to_json(&reshaper->outcome.image, &reshaper->config.maker->root,
                                      reshaper->config.maker->nodename, &reshaper->outcome.verdict);
        if (!path || !document)
                return error_oom(reterr);
        return state_file_write(path, document, reterr);
}

/* The last reshape is this one from now on. */
static void keep_image(const char *state_dir)
{
        _cleanup_free_ char *pending = text_format("%s/" PENDING_FILE, state_dir);
        _cleanup_free_ char *done = text_format("%s/" DONE_FILE, state_dir);

        if (pending && done && rename(pending, done) < 0 && errno != ENOENT)
                log_warning("The reshape cannot be undone, %s cannot be written: %s; ignoring.",
                            done, strerror(errno));
}

static int load_image(const char *state_dir, const char *name, ReshapeImage *ret, Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/%s", state_dir, name);
        _cleanup_json_ json_t *document = NULL;
        int r;

        if (!path)
                return error_oom(reterr);
        r = state_file_read(path, RESHAPE_FORMAT, &document, reterr);
        return r < 0 ? r : reshape_image_from_json(document, ret, reterr);
}

/* Does tree hold what the reshape was to make of it? */
static bool is_reached(const ReshapeImage *image, const ProviderTree *tree)
{
        for (size_t i = 0; i < image->after.tree->n_providers; i++) {
                const Provider *after = image->after.tree->providers[i];
                const Provider *current = provider_tree_find(tree, &after->uuid);
                const Provider *before = provider_tree_find(image->before.tree, &after->uuid);

                if (before && provider_inventories_equal(before, after))
                        continue;
                if (!current || !provider_inventories_equal(current, after))
                        return false;
        }
        return true;
}

void reshaper_settle(const char *state_dir, const ProviderTree *tree)
{
        _cleanup_(reshape_image_done) ReshapeImage image = { 0 };

        if (load_image(state_dir, PENDING_FILE, &image, NULL) >= 0 && is_reached(&image, tree))
                keep_image(state_dir);
}

/* Rounds */

static uint64_t next_pause_usec(Reshaper *reshaper)
{
        reshaper->pause_usec = jitter_next(reshaper->pause_usec, PAUSE_FIRST_USEC, PAUSE_MAX_USEC,
                                           jitter_random());
        return reshaper->pause_usec;
}

/* Somebody was faster: a refusal is one, too, when what was decided on is not true any more. */
static bool may_try_again(Reshaper *reshaper, int result)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        if (reshaper->config.kind == RESHAPE_SHOW ||
            now - reshaper->began_usec >= reshaper->config.patience_usec)
                return false;
        if (result == REPORT_E_REFUSED || result == REPORT_E_IN_USE)
                return ++reshaper->n_refusals < MAX_REFUSALS;
        return result == REPORT_E_CONFLICT || result == -ENODATA;
}

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
        log_debug("The reshape was overtaken (%s); trying again in %" PRIu64 " ms.", error->text,
                  pause_usec / USEC_PER_MSEC);
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

/* What is sent are the consumers that change. */
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

/* Who stands for which guest. NULL: nobody, as far as is known. */
static ReshapeAlias *find_aliases(const ReshaperConfig *config, const Allocations *consumers,
                                  size_t *ret_n)
{
        Claims *claims = config->claims->claims;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        ReshapeAlias *aliases = NULL;

        if (claims && claims_list(claims, CLAIMS_LIVING, NULL, &list, NULL) != 0)
                log_debug(
                        "Claims could not be read; migrations are recognised by their size alone.");
        if (migration_match(consumers, config->snapshot, &list, &aliases, ret_n) < 0)
                *ret_n = 0;
        return aliases;
}

static int decide_forward(Reshaper *reshaper, Allocations *moved, const Allocations *others,
                          Error *reterr)
{
        const ReshaperConfig *config = &reshaper->config;
        DriverReshape *verdict = &reshaper->outcome.verdict;
        _cleanup_free_ ReshapeAlias *aliases = find_aliases(config, moved, &verdict->n_aliases);
        MadeTree made = { 0 };
        int r;

        verdict->consumers = moved;
        verdict->others = others;
        verdict->aliases = aliases;
        r = tree_maker_make(config->maker, config->snapshot, reshaper->outcome.image.before.tree,
                            true, verdict, &made, reterr);
        verdict->aliases = NULL;
        verdict->n_aliases = 0;
        verdict->consumers = NULL;
        verdict->others = NULL;
        if (r < 0)
                return r;
        reshaper->outcome.image.after.tree = made.tree;
        reshaper->outcome.device_error = made.device_error;
        return 0;
}

/* Fills the image. before (taken) are the consumers as they are. */
static int decide(Reshaper *reshaper, Allocations *before, const Allocations *others, Error *reterr)
{
        ReshapeImage *image = &reshaper->outcome.image;

        reshape_image_done(image);
        image->taken_usec = clock_usec(CLOCK_REALTIME);
        image->before.consumers = before;
        image->before.tree = TAKE_PTR(reshaper->before);
        if (reshaper->config.kind == RESHAPE_UNDO)
                return reshape_image_undo(&reshaper->undo, image->before.tree, before,
                                          &image->after, reterr);
        if (allocations_copy(&image->after.consumers, before) < 0)
                return error_oom(reterr);
        return decide_forward(reshaper, image->after.consumers, others, reterr);
}

static int publish(Reshaper *reshaper, const Allocations *consumers, Error *reterr)
{
        int r;

        if (reshaper->config.kind == RESHAPE_SHOW) {
                finish(reshaper, 0, NULL);
                return 0;
        }
        if (consumers && (r = save_image(reshaper, reterr)) < 0)
                return r;
        reshaper->moves = consumers;
        r = reporter_publish(reshaper->config.reporter, reshaper->outcome.image.after.tree,
                             consumers, on_published, reshaper);
        reshaper->sent = r >= 0;
        return r < 0 ? error_setf(reterr, r, "The reshape cannot be sent: %s", strerror(-r)) : 0;
}

static void on_gathered(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Reshaper *reshaper = userdata;
        _cleanup_(allocations_freep) Allocations *others = NULL;
        Allocations *consumers = NULL;
        Error words = *error;

        if (reshaper->cancelled) {
                finish_cancelled(reshaper);
                return;
        }
        if (result == REPORT_DONE) {
                reporter_take_gathered(reporter, &consumers, &others);
                result = decide(reshaper, consumers, others, &words);
        }
        if (result == REPORT_DONE) {
                drop_unchanged(&reshaper->outcome.image);
                result = publish(reshaper, reshaper->outcome.image.after.consumers, &words);
                if (result == 0)
                        return;
        }
        end_round(reshaper, result, &words);
}

/* Nothing has to move (any more): what Placement refuses of the rest is reported by the cycle. */
static bool is_over(const Reshaper *reshaper, int result)
{
        return result == REPORT_DONE ||
               (!reshaper->moves && (result == REPORT_E_REFUSED || result == REPORT_E_IN_USE));
}

static void on_published(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Reshaper *reshaper = userdata;

        reshaper->sent = false;
        if (!is_over(reshaper, result)) {
                end_round(reshaper, result, error);
                return;
        }
        /* The pre-image of an attempt that was refused long ago may lie there, too. */
        if (reshaper->config.state_dir && reshaper->moves)
                keep_image(reshaper->config.state_dir);
        else if (reshaper->config.state_dir)
                reshaper_settle(reshaper->config.state_dir, reshaper->outcome.image.after.tree);
        provider_tree_free(reshaper->outcome.tree);
        reshaper->outcome.tree = NULL;
        if (provider_tree_copy(&reshaper->outcome.tree, reshaper->outcome.image.after.tree) < 0)
                end_failed(reshaper, -ENOMEM, "The reshape was done");
        else
                finish(reshaper, REPORT_DONE, error);
}

/* Is there anything to move (any more)? A positive number when there is not, with the tree. */
static int probe(Reshaper *reshaper, Error *reterr)
{
        const ReshaperConfig *config = &reshaper->config;
        MadeTree made = { 0 };
        int r;

        if (config->kind == RESHAPE_UNDO)
                return 0;
        r = tree_maker_make(config->maker, reshaper->config.snapshot,
                            reporter_tree(config->reporter), true, &reshaper->outcome.verdict,
                            &made, reterr);
        if (r < 0)
                return r;
        if (made.reshape_needed) {
                provider_tree_free(made.tree);
                return 0;
        }
        provider_tree_free(reshaper->outcome.image.after.tree);
        reshaper->outcome.image.after.tree = made.tree;
        reshaper->outcome.device_error = made.device_error;
        return 1;
}

/* The tree as it will be if nothing is in the way, so that what it needs can be done while the
 * consumers are read. NULL when it is not known; why, the decision will say. */
static ProviderTree *guess_tree(Reshaper *reshaper)
{
        const ReshaperConfig *config = &reshaper->config;
        MadeTree made = { 0 };

        if (config->kind == RESHAPE_FORWARD)
                (void)tree_maker_make_empty(config->maker, reshaper->config.snapshot,
                                            reshaper->before, true, &made, NULL);
        return made.tree;
}

static int gather(Reshaper *reshaper, Error *reterr)
{
        bool undoes = reshaper->config.kind == RESHAPE_UNDO;
        _cleanup_(provider_tree_freep) ProviderTree *ahead = NULL;
        int r;

        provider_tree_free(reshaper->before);
        reshaper->before = NULL;
        if (provider_tree_copy(&reshaper->before, reporter_tree(reshaper->config.reporter)) < 0)
                return error_oom(reterr);
        ahead = guess_tree(reshaper);
        r = reporter_gather(reshaper->config.reporter,
                            undoes ? NULL : &reshaper->outcome.verdict.classes, ahead, on_gathered,
                            reshaper);
        return r < 0 ? error_setf(reterr, r, "Allocations cannot be read: %s", strerror(-r)) : 0;
}

static int start(Reshaper *reshaper, Error *reterr)
{
        bool undoes = reshaper->config.kind == RESHAPE_UNDO;
        int r;

        if (undoes && !provider_tree_find(reporter_tree(reshaper->config.reporter),
                                          &reshaper->config.maker->root))
                return error_setf(reterr, ENOENT, "Placement does not know this host");
        /* what stayed in an earlier round need not stay now */
        string_set_done(&reshaper->outcome.verdict.kept);
        r = probe(reshaper, reterr);
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
        int r = reporter_refresh(reshaper->config.reporter, on_refreshed, reshaper);

        if (r < 0)
                end_failed(reshaper, r, "Placement cannot be read");
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        Reshaper *reshaper = userdata;

        if (reshaper->cancelled)
                finish_cancelled(reshaper);
        else
                begin_round(reshaper);
        return 0;
}

/* Life */

static int load_undo(Reshaper *reshaper, Error *reterr)
{
        int r;

        if (reshaper->config.kind != RESHAPE_UNDO)
                return 0;
        if (!reshaper->config.state_dir)
                return error_setf(reterr, ENOENT, "There is no reshape to undo");
        r = load_image(reshaper->config.state_dir, DONE_FILE, &reshaper->undo, reterr);
        return r == -ENOENT ? error_setf(reterr, ENOENT, "There is no reshape to undo") : r;
}

int reshaper_new(Reshaper **ret, sd_event *event, const ReshaperConfig *config, ReshaperDone done,
                 void *userdata, Error *reterr)
{
        _cleanup_(reshaper_freep) Reshaper *reshaper = calloc(1, sizeof(Reshaper));
        int r;

        if (!reshaper)
                return error_oom(reterr);
        reshaper->config = *config;
        if (config->patience_usec == 0)
                reshaper->config.patience_usec = RESHAPER_PATIENCE_USEC;
        reshaper->config.snapshot = snapshot_ref(config->snapshot);
        reshaper->began_usec = clock_usec(CLOCK_MONOTONIC);
        reshaper->done = done;
        reshaper->userdata = userdata;
        r = load_undo(reshaper, reterr);
        if (r < 0)
                return r;
        /* the first round begins there, too: no callback from inside this call */
        r = sd_event_add_time_relative(event, &reshaper->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY,
                                       on_timer, reshaper);
        if (r < 0)
                return error_setf(reterr, r, "Cannot set up a timer: %s", strerror(-r));
        *ret = TAKE_PTR(reshaper);
        return 0;
}

Reshaper *reshaper_free(Reshaper *reshaper)
{
        if (!reshaper)
                return NULL;
        sd_event_source_disable_unref(reshaper->timer);
        snapshot_unref(reshaper->config.snapshot);
        driver_reshape_done(&reshaper->outcome.verdict);
        reshape_image_done(&reshaper->outcome.image);
        reshape_image_done(&reshaper->undo);
        provider_tree_free(reshaper->before);
        provider_tree_free(reshaper->outcome.tree);
        free(reshaper);
        return NULL;
}
