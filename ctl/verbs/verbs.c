/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every verb fetches first and prints then: an error never stands in the middle of a page. */

#include "ctl/verbs/verbs.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctl/ask/bus.h"
#include "ctl/ask/helper.h"
#include "ctl/print/draw.h"
#include "ctl/print/host.h"
#include "ctl/print/journal.h"
#include "ctl/print/plan.h"
#include "ctl/print/reshape.h"
#include "ctl/print/status.h"
#include "ctl/print/text.h"
#include "ctl/print/tree.h"
#include "ctl/verbs/common.h"
#include "ctl/verbs/config.h"
#include "ctl/verbs/hook.h"
#include "ctl/verbs/migrate.h"
#include "formats/format-names.h"

#define SYNC_TIMEOUT_USEC    (5 * 60 * USEC_PER_SEC)
#define SYNC_TIMEOUT_MAX_SEC 86400
#define RESHAPE_TIMEOUT_USEC (10 * 60 * USEC_PER_SEC)
#define JOURNAL_LINES        10

static int verb_status(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *status = NULL;
        int r = ctl_fetch_status(ctl, &status, reterr);

        if (r < 0)
                return r;
        if (!ctl->options.quiet) {
                ctl_open_pager(ctl);
                ctl_print_document(ctl, status, ctl_status_print);
                if (!ctl_wants_json(ctl) && ctl->page.style.legend && !ctl->options.host)
                        ctl_journal_print(JOURNAL_LINES, &ctl->page);
        }
        return (int)ctl_status_exit(status);
}

static int verb_cat_config(Ctl *ctl, Error *reterr)
{
        ctl_open_pager(ctl);
        return ctl_config_cat(ctl->options.config, stdout, reterr);
}

/* Claims are in the picture when they can be had: a full disk hides no host. */
static int draw_host(Ctl *ctl, const json_t *tree, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *host = NULL, *claims = NULL;
        int r = ctl_need(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &host, reterr);

        if (r >= 0)
                r = snapshot_from_json(host, &snapshot, reterr);
        if (r < 0)
                return r;
        (void)ctl_fetch(ctl, BUS_DOCUMENT_CLAIMS, CLAIMS_FORMAT, &claims, NULL);
        ctl_draw(snapshot, tree, claims, &ctl->page);
        return 0;
}

static int verb_tree(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *tree = NULL;
        int r = ctl_need(ctl, BUS_DOCUMENT_TREE, TREE_FORMAT, &tree, reterr);

        if (r < 0)
                return r;
        if (ctl->options.svg && !ctl_wants_json(ctl))
                return draw_host(ctl, tree, reterr);
        ctl_open_pager(ctl);
        if (!ctl_wants_json(ctl))
                return ctl_tree_print(tree, &ctl->page, reterr);
        ctl_print_json(ctl, tree);
        return 0;
}

static int verb_plan(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *plan = NULL, *status = NULL;
        int r = ctl_need(ctl, BUS_DOCUMENT_PLAN, NULL, &plan, reterr);

        if (r >= 0 && json_array_size(plan) == 0 && !ctl_wants_json(ctl))
                r = ctl_fetch_status(ctl, &status, reterr);
        if (r < 0)
                return r;
        ctl_open_pager(ctl);
        if (ctl_wants_json(ctl))
                ctl_print_json(ctl, plan);
        else
                ctl_plan_print(plan, status, &ctl->page);
        return 0;
}

static int verb_discover(Ctl *ctl, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *document = NULL;
        int r = CTL_BUS_E_NOT_RUNNING;

        if (!ctl->options.config && !ctl->options.driver)
                r = ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &document, reterr);
        if (r == CTL_BUS_E_NOT_RUNNING && ctl->options.host)
                return ctl_need_answer(r);
        if (r == CTL_BUS_E_NOT_RUNNING)
                r = ctl_poll(ctl->options.config, ctl->options.driver, &document, reterr);
        if (r < 0)
                return r;
        if (!ctl_wants_json(ctl) && (r = snapshot_from_json(document, &snapshot, reterr)) < 0)
                return r;
        ctl_open_pager(ctl);
        if (snapshot)
                ctl_host_print(snapshot, &ctl->page);
        else
                ctl_print_json(ctl, document);
        return 0;
}

/* Prints the result of a sync and returns the exit code. why: "" after a publication, else why
 * there was none. A host that reports nothing to Placement by its configuration is not published,
 * and that is no failure. */
static int print_synced(Ctl *ctl, const char *why, Error *reterr)
{
        _cleanup_json_ json_t *status = NULL, *document = NULL;
        int r = ctl_fetch_status(ctl, &status, reterr);

        if (r < 0)
                return r;
        if (ctl_wants_json(ctl)) {
                document = json_pack("{sb ss}", "published",
                                     !why[0] && strcmp(ctl_json_text(status, "sync_state"),
                                                       SYNC_STATE_SYNCED) == 0,
                                     "error", why);
                ctl_print_json(ctl, document);
        } else if (why[0]) {
                return error_setf(reterr, EIO, "Sync failed: %s", why);
        } else if (!ctl->options.quiet) {
                printf("Done: %s.\n", ctl_json_text(status, "summary"));
        }
        return why[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Returns why the agent did not publish within the time limit; the caller frees. NULL: no memory.
 */
static char *explain_timeout(Ctl *ctl, uint64_t limit_usec)
{
        _cleanup_json_ json_t *status = NULL;
        Error error = ERROR_NULL;
        const char *reason = error.text;

        if (ctl_fetch_status(ctl, &status, &error) == 0)
                reason = ctl_json_text(json_array_get(json_object_get(status, "reasons"), 0),
                                       "text");
        return text_format("Not published within %" PRIu64 " s%s%s", limit_usec / USEC_PER_SEC,
                           reason[0] ? ". " : "", reason);
}

/* Reads --timeout. Leaves the default if the option is not there. */
static int read_time_limit(const char *text, uint64_t *ret_usec, Error *reterr)
{
        unsigned long seconds;
        char *end = NULL;

        if (!text)
                return 0;
        errno = 0;
        seconds = strtoul(text, &end, 10);
        if (errno != 0 || *end || !isdigit((unsigned char)text[0]) || seconds == 0 ||
            seconds > SYNC_TIMEOUT_MAX_SEC)
                return error_setf(reterr, EINVAL, "--timeout is 1 to %d seconds, not \"%.40s\"",
                                  SYNC_TIMEOUT_MAX_SEC, text);
        *ret_usec = seconds * USEC_PER_SEC;
        return 0;
}

static int verb_sync(Ctl *ctl, Error *reterr)
{
        _cleanup_free_ char *why = NULL;
        uint64_t limit_usec = SYNC_TIMEOUT_USEC;
        int r = read_time_limit(ctl->options.timeout, &limit_usec, reterr);

        if (r < 0)
                return r;
        r = ctl_need_text(ctl, ctl->options.full ? "SyncFull" : "Sync", limit_usec, &why, reterr);
        if (r == -ETIMEDOUT)
                why = explain_timeout(ctl, limit_usec);
        else if (r < 0)
                return r;
        return why ? print_synced(ctl, why, reterr) : error_oom(reterr);
}

static const char *reshape_hint(const CtlOptions *options)
{
        return options->dry_run ? "Nothing was changed: \"computectl reshape\" does it."
               : options->undo
                       ? "Done. Set the option back before the next start, or that will reshape again."
                       : "Done. \"computectl reshape --undo\" puts it back.";
}

/* Calls a method that returns a reshape. *ret stays NULL if nothing moves. */
static int call_reshape(Ctl *ctl, const char *method, json_t **ret, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = ctl_need_text(ctl, method, RESHAPE_TIMEOUT_USEC, &text, reterr);

        return r < 0 || !text[0] ? r
                                 : ctl_json_read_document(text, false, RESHAPE_FORMAT, ret, reterr);
}

static void print_moves(const json_t *document, CtlPage *page)
{
        ctl_reshape_print(document, NULL, page);
}

/* Asks before a reshape, and does it. *ret stays NULL if nothing moves; then nothing is asked. */
static int ask_and_reshape(Ctl *ctl, json_t **ret, Error *reterr)
{
        _cleanup_json_ json_t *moves = NULL;
        int r = call_reshape(ctl, "GetReshape", &moves, reterr);

        if (r < 0 || !moves)
                return r;
        r = ctl_ask(ctl, moves, print_moves, "Move these inventories and allocations?", reterr);
        return r < 0 ? r : call_reshape(ctl, "Reshape", ret, reterr);
}

/* Asks before the last reshape is undone; its moves are known only after that. */
static int ask_and_undo(Ctl *ctl, json_t **ret, Error *reterr)
{
        int r = ctl_ask(ctl, NULL, NULL, "Move back everything that the last reshape moved?",
                        reterr);

        return r < 0 ? r : call_reshape(ctl, "UndoReshape", ret, reterr);
}

static int do_reshape(Ctl *ctl, json_t **ret, Error *reterr)
{
        bool undo = ctl->options.undo;

        if (ctl->options.dry_run)
                return call_reshape(ctl, "GetReshape", ret, reterr);
        if (ctl_must_ask(ctl))
                return undo ? ask_and_undo(ctl, ret, reterr) : ask_and_reshape(ctl, ret, reterr);
        return call_reshape(ctl, undo ? "UndoReshape" : "Reshape", ret, reterr);
}

static int verb_reshape(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r;

        if (ctl->options.plan)
                ctl_note_old_spelling(ctl, "--plan", "--dry-run");
        r = do_reshape(ctl, &document, reterr);
        if (r < 0)
                return r;
        if (ctl->options.quiet)
                return 0;
        ctl_open_pager(ctl);
        if (ctl_wants_json(ctl) && !document)
                document = json_object();
        if (ctl_wants_json(ctl))
                ctl_print_json(ctl, document);
        else
                ctl_reshape_print(document, reshape_hint(&ctl->options), &ctl->page);
        return 0;
}

/* While the agent does not run: two would not see each other's claims of this host. */
static int verb_migrate(Ctl *ctl, Error *reterr)
{
        const char *const one[] = { ctl->options.config, NULL };
        const char *const *files = ctl->options.arguments + 1;
        _cleanup_json_ json_t *status = NULL;
        int r = ctl_fetch_status(ctl, &status, reterr);

        if (r < 0)
                return r;
        if (ctl_status_exit(status) != CTL_STATUS_NOT_RUNNING) {
                fputs("The agent of this host runs, and does this itself: stop it first, or use \"computectl reshape\".\n",
                      stderr);
                return CTL_MIGRATE_RUNNING;
        }
        r = ctl_migrate(files[0] ? files : one, ctl->options.direct, reterr);
        if (r > 0)
                fprintf(stderr, "%s.\n", reterr->text);
        if (r == 0 && !ctl->options.quiet)
                puts(files[0] && files[1] ? "Placement has the inventory of these nodes."
                                          : "Placement has the inventory of this host.");
        return r;
}

static int check_migrate(const CtlOptions *options, Error *reterr)
{
        if (options->config && options->arguments[1])
                return error_setf(reterr, EINVAL,
                                  "migrate-inventory: --config, or the files of several nodes");
        return 0;
}

static int check_reshape(const CtlOptions *options, Error *reterr)
{
        if (options->dry_run && options->undo)
                return error_setf(reterr, EINVAL, "reshape: --dry-run or --undo, not both");
        return 0;
}

/* Prints the warnings of the configuration in force, and the credentials that only a restart
 * changes. The reload is done: a failure here only leaves out the lines. */
static void print_reload_warnings(Ctl *ctl)
{
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };
        _cleanup_(string_set_done) StringSet credentials = { 0 };
        _cleanup_json_ json_t *status = NULL;
        const json_t *reason;
        size_t i;

        if (ctl_fetch_status(ctl, &status, NULL) < 0)
                return;
        json_array_foreach(json_object_get(status, "reasons"), i, reason)
                if (strcmp(ctl_json_text(reason, "check"), "configuration") == 0)
                        fprintf(stderr, "Warning: %s; see \"%s\"\n", ctl_json_text(reason, "text"),
                                ctl_json_text(reason, "command"));
        if (ctl_read_unit(ctl, &unit) < 0)
                return;
        (void)ctl_config_compare_credentials(&unit, &credentials);
        for (i = 0; i < credentials.n_items; i++)
                fprintf(stderr,
                        "Warning: %s; the reload did not load it: run \"systemctl restart compute-agent\"\n",
                        credentials.items[i]);
}

static int verb_reload(Ctl *ctl, Error *reterr)
{
        int r = ctl_connect(ctl, reterr);

        if (r < 0)
                return r;
        r = ctl_need_answer(ctl_bus_reload(ctl->bus, SYNC_TIMEOUT_USEC, reterr));
        if (r < 0)
                return r;
        ctl_print_done(ctl, json_pack("{sb}", "reloaded", 1), "The new settings are in force.\n");
        print_reload_warnings(ctl);
        return 0;
}

static int check_help(const CtlOptions *options, Error *reterr)
{
        const char *name = options->arguments[1];

        return !name || ctl_verb_named(name)
                       ? 0
                       : error_setf(reterr, EINVAL, "Unknown verb \"%.60s\"", name);
}

#define LOCAL  0
#define REMOTE CTL_VERB_REMOTE
#define RIGHTS (CTL_VERB_REMOTE | CTL_VERB_RIGHTS)
#define CHANGE (RIGHTS | CTL_VERB_CHANGES)
#define HIDDEN CTL_VERB_HIDDEN

const CtlVerb ctl_verbs[] = {
        { "status", "", "Show whether all is well (exit code 0, 3 or 4)", 0, REMOTE, NULL,
          verb_status, NULL },
        { "tree", "", "Show the resource providers and their usage", 0, REMOTE, NULL, verb_tree,
          NULL },
        { "watch", "", "Show status, usage and claims all the time", 0, REMOTE, NULL,
          ctl_verb_watch, NULL },
        { "plan", "", "Show what the next sync would send", 0, REMOTE, NULL, verb_plan, NULL },
        { "discover", "", "Show what the hypervisor has", 0, REMOTE, NULL, verb_discover, NULL },
        { "verify", "", "The old spelling of doctor --hardware-only", 0, HIDDEN, NULL,
          ctl_verb_verify, NULL },
        { "sync", "", "Poll and publish now", 0, CHANGE, NULL, verb_sync, NULL },
        { "reshape", "", "Move allocations to their new providers", 0, CHANGE, check_reshape,
          verb_reshape, NULL },
        { "migrate-inventory", "[FILE...]", "Do what a start does, without a start",
          CTL_ANY_ARGUMENTS, CTL_VERB_CHANGES | HIDDEN, check_migrate, verb_migrate, NULL },
        { "identity", "ACTION", "After a rename: show, check, adopt, rename", 1, CTL_VERB_CHANGES,
          ctl_check_identity, ctl_verb_identity, "show check adopt rename" },
        { "reload", "", "Read the configuration again", 0, CHANGE, NULL, verb_reload, NULL },
        { "doctor", "", "Run all checks, and say what to do (0, 3, 4)", 0, LOCAL, ctl_check_doctor,
          ctl_verb_doctor, NULL },
        { "cat-config", "", "Show the configuration files", 0, LOCAL, NULL, verb_cat_config, NULL },
        { "check-config", "", "The old spelling of doctor --config-only", 0, HIDDEN, NULL,
          ctl_verb_check_config, NULL },
        { "audit", "", "Compare Placement, claims and guests (0, 3, 4)", 0, RIGHTS, NULL,
          ctl_verb_audit, NULL },
        { "heal", "[CONSUMER]", "Repair what audit finds, or one consumer", 1, CHANGE,
          ctl_check_heal, ctl_verb_heal, NULL },
        { "consumers", "", "The old spelling of audit --all", 0, RIGHTS | HIDDEN, NULL,
          ctl_verb_consumers, NULL },
        { "cordon", "[DEVICE]", "Accept no new claims of the host or a device", 1, CHANGE,
          ctl_check_cordon, ctl_verb_cordon, "devices" },
        { "uncordon", "[DEVICE]", "Accept claims of it again", 1, CHANGE, ctl_check_cordon,
          ctl_verb_uncordon, "devices" },
        { "drain", "[DEVICE]", "List the claims that must move (0 or 3)", 1, REMOTE,
          ctl_check_cordon, ctl_verb_drain, "devices" },
        { "retire", "", "Take a host without guests out of Placement", 0, CHANGE, ctl_check_retire,
          ctl_verb_retire, NULL },
        { "claims", "", "List the claims of this host", 0, REMOTE, ctl_check_claims,
          ctl_verb_claims, NULL },
        { "show", "ID", "Show one claim with its devices", 1, REMOTE, ctl_check_id, ctl_verb_show,
          "history" },
        { "who", "DEVICE|cpu:N|cell:N|GUEST", "Show its guest, or what a guest has", 1, REMOTE,
          NULL, ctl_verb_who, "devices" },
        { "history", "[ID|GUEST|DEVICE]", "Show what happened, and who caused it", 1, REMOTE,
          ctl_check_history, ctl_verb_history, "history" },
        { "explain", "", "Explain why a request fits, or does not", CTL_ANY_ARGUMENTS, REMOTE,
          ctl_check_explain, ctl_verb_explain, NULL },
        { "claim", "", "Claim resources for a guest", CTL_ANY_ARGUMENTS, CHANGE, ctl_check_claim,
          ctl_verb_claim, NULL },
        { "confirm", "ID", "Keep a claim: the guest runs", 1, CHANGE, ctl_check_id,
          ctl_verb_confirm, "claims" },
        { "move", "FROM TO", "Hand a claim over to another consumer", 2, CHANGE, NULL,
          ctl_verb_move, NULL },
        { "release", "ID...", "Release claims", CTL_ANY_ARGUMENTS, CHANGE, ctl_check_ids,
          ctl_verb_release, "claims" },
        { "report", "[FILE]", "Write an archive for a bug report", 1, LOCAL, NULL, ctl_verb_report,
          NULL },
        { "help", "[VERB]", "Show this help, or that of a verb", 1, LOCAL, check_help, NULL, NULL },
        { "hook", "GUEST OPERATION SUB-OPERATION EXTRA", "Run by libvirt as its hook", 4,
          CTL_VERB_CHANGES | HIDDEN, NULL, ctl_verb_hook, NULL },
        { NULL, NULL, NULL, 0, LOCAL, NULL, NULL, NULL },
};

/* Only verbs that look: a typing error must not end in a command that changes something, as soon as
 * it is pasted. */
static int refuse_verb(const char *word, Error *reterr)
{
        const char *names[ARRAY_SIZE(ctl_verbs)] = { NULL }, *nearest;
        size_t n = 0;

        for (const CtlVerb *verb = ctl_verbs; verb->name; verb++)
                if (!(verb->flags & CTL_VERB_CHANGES))
                        names[n++] = verb->name;
        nearest = ctl_text_nearest(word, names);
        if (nearest)
                return error_setf(reterr, EINVAL, "Unknown verb \"%.60s\"; did you mean \"%s\"?",
                                  word, nearest);
        return error_setf(reterr, EINVAL, "Unknown verb \"%.60s\"", word);
}

static int check_count(const CtlVerb *verb, const char *const *arguments, Error *reterr)
{
        unsigned n = 0;

        if (verb->n_arguments == CTL_ANY_ARGUMENTS)
                return 0;
        while (arguments[n])
                n++;
        if (n < verb->n_arguments && verb->arguments[0] != '[')
                return error_setf(reterr, EINVAL, "%s: %s is missing", verb->name, verb->arguments);
        if (n > verb->n_arguments)
                return error_setf(reterr, EINVAL, "%s: unexpected argument \"%.60s\"", verb->name,
                                  arguments[verb->n_arguments]);
        return 0;
}

static int check_host(const CtlVerb *verb, const CtlOptions *options, Error *reterr)
{
        if (options->hosts.n > 1 && strcmp(verb->name, "watch") == 0)
                return error_setf(reterr, EINVAL, "watch shows one host");
        if (!options->host || ((verb->flags & CTL_VERB_REMOTE) && !options->config))
                return 0;
        if (verb->flags & CTL_VERB_REMOTE)
                return error_setf(reterr, EINVAL,
                                  "--config is a file of this host, and --host another one");
        return error_setf(
                reterr, EINVAL,
                "%s looks at files and devices of the host that it runs on; run it there: ssh %.60s computectl %s",
                verb->name, options->host, verb->name);
}

const CtlVerb *ctl_verb_named(const char *name)
{
        for (const CtlVerb *verb = ctl_verbs; verb->name; verb++)
                if (strcmp(verb->name, name) == 0)
                        return verb;
        return NULL;
}

int ctl_verb_find(const CtlOptions *options, const CtlVerb **ret, Error *reterr)
{
        const char *word = options->arguments[0];
        const CtlVerb *verb;
        int r;

        verb = ctl_verb_named(word);
        if (!verb)
                return refuse_verb(word, reterr);
        r = check_count(verb, options->arguments + 1, reterr);
        if (r >= 0)
                r = check_host(verb, options, reterr);
        if (r >= 0 && verb->check)
                r = verb->check(options, reterr);
        if (r < 0)
                return r;
        *ret = verb;
        return 0;
}

/* The verbs of the help, by their purpose. */
static const struct {
        const char *title, *verbs[12];
} groups[] = {
        { "Look", { "status", "tree", "watch", "discover", "plan", "history", "help" } },
        { "Check", { "doctor", "audit", "cat-config", "report" } },
        { "Claims", { "claims", "show", "who", "explain", "claim", "confirm", "move", "release" } },
        { "Maintain",
          { "sync", "reload", "heal", "cordon", "uncordon", "drain", "retire", "reshape" } },
        { "Identity", { "identity" } },
};

void ctl_verbs_print_help(CtlPage *page)
{
        for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
                ctl_options_print_title(groups[i].title, page);
                for (const char *const *name = groups[i].verbs; *name; name++) {
                        const CtlVerb *verb = ctl_verb_named(*name);
                        char left[CTL_TEXT_MAX];

                        snprintf(left, sizeof(left), "  %s %s", verb->name, verb->arguments);
                        ctl_help_line(left, verb->help, page->output);
                }
        }
}
