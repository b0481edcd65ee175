/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The table of verbs, and the verbs that concern the agent as a whole. Each file of verbs has its
 * own table, and ctl_verb_tables lists them. A verb of this file that prints a page fetches all its
 * documents first, so an error of the agent never appears in the middle of a page. There are two
 * exceptions: "cat-config" prints one file after another, and "reshape" shows the moves before its
 * question. The file also finds and checks the verb of the command line.
 *
 * Tests: tests/unit/ctl/verbs/test-options.c */

#include "ctl/verbs/verbs.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "ctl/ask/bus.h"
#include "ctl/ask/children.h"
#include "ctl/print/changes.h"
#include "ctl/print/draw.h"
#include "ctl/print/host.h"
#include "ctl/print/status.h"
#include "ctl/print/text.h"
#include "ctl/print/tree.h"
#include "ctl/verbs/common.h"
#include "ctl/verbs/config.h"
#include "formats/format-names.h"

#define SYNC_TIMEOUT_USEC    (5 * 60 * USEC_PER_SEC)
#define SYNC_TIMEOUT_MAX_SEC 86400
#define RESHAPE_TIMEOUT_USEC (10 * 60 * USEC_PER_SEC)
#define JOURNAL_LINES        10
#define JOURNAL_INDENT       16 /* columns of the time */
#define UNIT_MATCH           "_SYSTEMD_UNIT=compute-agent.service"
#define NAMES_MAX            64 /* more than the number of verbs */

static void journal_closep(sd_journal **journal)
{
        sd_journal_close(*journal);
}

/* Seeks the first line to print: n lines before the end of this boot's journal of the service.
 * -ENODATA: there is none. */
static int find_lines(sd_journal *journal, unsigned n)
{
        char boot[sizeof("_BOOT_ID=") + SD_ID128_STRING_MAX] = "_BOOT_ID=";
        sd_id128_t id;
        int r;

        r = sd_id128_get_boot(&id);
        if (r < 0)
                return r;
        sd_id128_to_string(id, boot + strlen(boot));
        r = sd_journal_add_match(journal, UNIT_MATCH, 0);
        if (r < 0)
                return r;
        r = sd_journal_add_match(journal, boot, 0);
        if (r < 0)
                return r;
        r = sd_journal_seek_tail(journal);
        if (r < 0)
                return r;
        r = sd_journal_previous_skip(journal, n);
        return r < 0 ? r : r == 0 ? -ENODATA : 0;
}

/* Prints an entry: local time and message. Messages are wrapped unless "all" is set. */
static void print_entry(sd_journal *journal, CtlPage *page)
{
        const char *text;
        const void *data;
        char when[32];
        uint64_t usec;
        struct tm tm;
        size_t n;

        if (sd_journal_get_realtime_usec(journal, &usec) < 0 ||
            sd_journal_get_data(journal, "MESSAGE", &data, &n) < 0)
                return;
        text = (const char *)data + strlen("MESSAGE=");
        n -= strlen("MESSAGE=");
        localtime_r(&(time_t){ (time_t)(usec / USEC_PER_SEC) }, &tm);
        strftime(when, sizeof(when), "%b %d %H:%M:%S", &tm);
        fprintf(page->output, "%s ", when);
        if (!page->style.all) {
                ctl_page_rest(page, JOURNAL_INDENT, CTL_PLAIN, "%.*s", (int)n, text);
                return;
        }
        ctl_page_write(page, CTL_PLAIN, "%.*s", (int)n, text);
        fputc('\n', page->output);
}

/* Prints the last n entries of the service in the journal of this boot, and those that are written
 * during the call. In contrast to "systemctl status" it leaves out entries of systemd about the
 * unit. Prints nothing if the caller has no right to read them. Blocks on the disk. */
static void print_journal(unsigned n, CtlPage *page)
{
        _cleanup_(journal_closep) sd_journal *journal = NULL;

        if (sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM) < 0 ||
            find_lines(journal, n) < 0)
                return;
        fputc('\n', page->output);
        do
                print_entry(journal, page);
        while (sd_journal_next(journal) > 0);
}

/* Prints the status. The journal follows only for this host and on a page with hints. */
static int verb_status(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *status = NULL;
        int r = ctl_fetch_status(ctl, &status, reterr);

        if (r < 0)
                return r;
        if (!ctl->options.quiet) {
                ctl_open_pager(ctl);
                ctl_print_document(ctl, status, ctl_status_print);
                if (!ctl->options.json && ctl->page.style.legend && !ctl->options.host)
                        print_journal(JOURNAL_LINES, &ctl->page);
        }
        return ctl_status_exit(status);
}

static int verb_cat_config(Ctl *ctl, Error *reterr)
{
        ctl_open_pager(ctl);
        return ctl_config_cat(ctl->options.config, stdout, reterr);
}

/* Draws the host. Claims are left out if they cannot be fetched, because a full disk must not
 * prevent the picture. */
static int draw_host(Ctl *ctl, const json_t *tree, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *host = NULL, *claims = NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &host, reterr);

        if (r >= 0)
                r = snapshot_from_json(host, &snapshot, reterr);
        if (r < 0)
                return r;
        (void)ctl_fetch(ctl, BUS_DOCUMENT_CLAIMS, CLAIMS_FORMAT, &claims, NULL);
        ctl_draw(snapshot, tree, claims, &ctl->page);
        return 0;
}

/* Prints the tree as a page, a picture or JSON. --json wins over --svg. */
static int verb_tree(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *tree = NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_TREE, TREE_FORMAT, &tree, reterr);

        if (r < 0)
                return r;
        if (ctl->options.svg && !ctl->options.json)
                return draw_host(ctl, tree, reterr);
        ctl_open_pager(ctl);
        if (!ctl->options.json)
                return ctl_tree_print(tree, &ctl->page, reterr);
        ctl_json_print(tree, ctl->options.json, &ctl->page);
        return 0;
}

/* Prints the plan. The status says what its requests leave different. */
static int verb_plan(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *plan = NULL, *status = NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_PLAN, NULL, &plan, reterr);

        if (r >= 0 && !ctl->options.json)
                r = ctl_fetch_status(ctl, &status, reterr);
        if (r < 0)
                return r;
        ctl_open_pager(ctl);
        if (ctl->options.json)
                ctl_json_print(plan, ctl->options.json, &ctl->page);
        else
                ctl_plan_print(plan, status, &ctl->page);
        return 0;
}

/* Prints the host: as the running agent knows it, or polled by the helper if no agent runs on this
 * host. With --config or --driver the helper polls also while an agent runs. */
static int verb_discover(Ctl *ctl, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *document = NULL;
        const char *const words[] = { ctl->options.driver ? ctl->options.driver : "", NULL };
        int r = CTL_NOT_RUNNING;

        if (!ctl->options.config && !ctl->options.driver)
                r = ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &document, reterr);
        if (r == CTL_NOT_RUNNING && !ctl->options.host)
                r = ctl_helper_ask("discover", words, ctl->options.config, &document, reterr);
        if (r < 0)
                return r;
        if (!ctl->options.json && (r = snapshot_from_json(document, &snapshot, reterr)) < 0)
                return r;
        ctl_open_pager(ctl);
        if (snapshot)
                ctl_host_print(snapshot, &ctl->page);
        else
                ctl_json_print(document, ctl->options.json, &ctl->page);
        return 0;
}

/* Checks whether the configuration or a retirement keeps the host out of Placement. The status is
 * read after the sync, so any other sync_state can be newer than the sync and says nothing about
 * it. */
static bool is_apart(const json_t *status)
{
        const char *state = ctl_json_text(status, "sync_state");

        return strcmp(state, SYNC_STATE_STANDALONE) == 0 ||
               strcmp(state, SYNC_STATE_LEFT_TO_NOVA) == 0 ||
               strcmp(state, SYNC_STATE_RETIRED) == 0;
}

/* Prints the result of a sync and returns the exit code. A failure without --json is -EIO with
 * words instead. why: "" after a success, else the reason of the failure. A host that must report
 * nothing (is_apart()) is not published, and that is no failure. */
static int print_synced(Ctl *ctl, const char *why, Error *reterr)
{
        _cleanup_json_ json_t *status = NULL, *document = NULL;
        int r = ctl_fetch_status(ctl, &status, reterr);
        bool published;

        if (r < 0)
                return r;
        published = !why[0] && !is_apart(status);
        if (ctl->options.json) {
                document = json_pack("{sb ss}", "published", (int)published, "error", why);
                ctl_json_print(document, ctl->options.json, &ctl->page);
        } else if (why[0]) {
                return error_setf(reterr, EIO, "Sync failed: %s", why);
        } else if (!ctl->options.quiet) {
                ctl_page_write(&ctl->page, CTL_PLAIN, "%s: %s.",
                               published ? "Published" : "Not published",
                               ctl_json_text(status, "summary"));
                fputc('\n', ctl->page.output);
        }
        return why[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Returns why the agent gave no answer within the time limit. The caller frees. NULL: memory ran
 * out. */
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

/* Reads --timeout. Leaves the default unchanged if the option is not given. */
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
                return error_setf(reterr, EINVAL,
                                  "--timeout must be 1 to %d seconds, not \"%.40s\"",
                                  SYNC_TIMEOUT_MAX_SEC, text);
        *ret_usec = seconds * USEC_PER_SEC;
        return 0;
}

static int check_sync(const CtlOptions *options, Error *reterr)
{
        uint64_t limit_usec;

        return read_time_limit(options->timeout, &limit_usec, reterr);
}

/* Runs a cycle and waits for its end. A time limit that is reached is a failure with the first
 * reason of the status, or with the error of reading the status. */
static int verb_sync(Ctl *ctl, Error *reterr)
{
        _cleanup_free_ char *why = NULL;
        uint64_t limit_usec = SYNC_TIMEOUT_USEC, began_usec = clock_usec(CLOCK_MONOTONIC);
        int r = read_time_limit(ctl->options.timeout, &limit_usec, reterr);

        if (r < 0)
                return r;
        r = ctl_call(ctl, ctl->options.full ? "SyncFull" : "Sync", limit_usec, &why, reterr);
        /* an agent that stops during the call gives this error earlier */
        if (r == -ETIMEDOUT && clock_usec(CLOCK_MONOTONIC) - began_usec >= limit_usec)
                why = explain_timeout(ctl, limit_usec);
        else if (r < 0)
                return r;
        return why ? print_synced(ctl, why, reterr) : error_oom(reterr);
}

static const char *reshape_hint(const CtlOptions *options)
{
        return options->dry_run ? "Nothing was changed. To reshape, run \"computectl reshape\"."
               : options->undo
                       ? "Done. Set the option back before the next start, or the agent reshapes again."
                       : "Done. To undo this, run \"computectl reshape --undo\".";
}

/* Calls a method that returns a reshape. *ret stays NULL if nothing moves. */
static int call_reshape(Ctl *ctl, const char *method, json_t **ret, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = ctl_call(ctl, method, RESHAPE_TIMEOUT_USEC, &text, reterr);

        return r < 0 || !text[0] ? r : ctl_json_read_document(text, RESHAPE_FORMAT, ret, reterr);
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

/* Asks before the last reshape is undone. Its moves are known only afterwards, so they cannot be
 * shown. */
static int ask_and_undo(Ctl *ctl, json_t **ret, Error *reterr)
{
        int r = ctl_ask(ctl, NULL, NULL, "Undo the last reshape?", reterr);

        return r < 0 ? r : call_reshape(ctl, "UndoReshape", ret, reterr);
}

/* Calls the method that the options mean. Asks first only if ctl_must_ask(): at a terminal, and
 * without --yes and --dry-run. */
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
        if (ctl->options.json && !document)
                document = json_object();
        if (ctl->options.json)
                ctl_json_print(document, ctl->options.json, &ctl->page);
        else
                ctl_reshape_print(document, reshape_hint(&ctl->options), &ctl->page);
        return 0;
}

static int check_reshape(const CtlOptions *options, Error *reterr)
{
        if (options->dry_run && options->undo)
                return error_setf(reterr, EINVAL, "reshape: --dry-run or --undo, not both");
        return 0;
}

/* Prints the warnings of the configuration in force, and the credentials that only a restart loads.
 * With --host the credentials are files of another host, which cannot be compared here. The reload
 * has succeeded, so a failure here only leaves out lines. */
static void print_reload_warnings(Ctl *ctl)
{
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };
        _cleanup_(string_set_done) StringSet credentials = { 0 };
        _cleanup_json_ json_t *status = NULL;
        CtlPage errors = { .style = ctl_style_detect(stderr), .output = stderr };
        const json_t *reason;
        size_t i;

        if (ctl_fetch_status(ctl, &status, NULL) < 0)
                return;
        json_array_foreach(json_object_get(status, "reasons"), i, reason) {
                if (strcmp(ctl_json_text(reason, "check"), "configuration") != 0)
                        continue;
                ctl_page_write(&errors, CTL_PLAIN, "Warning: %s. See \"%s\"",
                               ctl_json_text(reason, "text"), ctl_json_text(reason, "command"));
                fputc('\n', stderr);
        }
        if (ctl->options.host || ctl_read_unit(ctl, &unit) < 0)
                return;
        (void)ctl_config_compare_credentials(&unit, &credentials);
        for (i = 0; i < credentials.n_items; i++)
                fprintf(stderr,
                        "Warning: %s. The reload did not load it. Run \"systemctl restart compute-agent\"\n",
                        credentials.items[i]);
}

/* Reloads the configuration, and prints the warnings that follow from it. */
static int verb_reload(Ctl *ctl, Error *reterr)
{
        int r = ctl_connect(ctl, reterr);

        if (r < 0)
                return r;
        r = ctl_bus_call(ctl->bus, "Reload", SYNC_TIMEOUT_USEC, NULL, reterr, "");
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

static const CtlVerb agent_verbs[] = {
        { "status", "", "Show the agent's state (exit code 0, 3 or 4)", 0, CTL_REMOTE, NULL,
          verb_status, NULL },
        { "tree", "", "Show the resource providers and their usage", 0, CTL_REMOTE, NULL, verb_tree,
          NULL },
        { "plan", "", "Show the requests of the next sync", 0, CTL_REMOTE, NULL, verb_plan, NULL },
        { "discover", "", "Show CPUs, memory, devices and guests", 0, CTL_REMOTE, NULL,
          verb_discover, NULL },
        { "sync", "", "Poll and publish now", 0, CTL_CHANGE, check_sync, verb_sync, NULL },
        { "reshape", "", "Move allocations to a new shape of the tree", 0, CTL_CHANGE,
          check_reshape, verb_reshape, NULL },
        { "reload", "", "Read the configuration again", 0, CTL_CHANGE, NULL, verb_reload, NULL },
        { "cat-config", "", "Show the configuration files", 0, CTL_LOCAL, NULL, verb_cat_config,
          NULL },
        { "help", "[VERB]", "Show this help, or the help of a verb", 1, CTL_LOCAL, check_help, NULL,
          NULL },
        { NULL, NULL, NULL, 0, CTL_LOCAL, NULL, NULL, NULL },
};

const CtlVerb *const ctl_verb_tables[] = {
        agent_verbs,     ctl_watch_verbs,  ctl_doctor_verbs,  ctl_audit_verbs, ctl_cordon_verbs,
        ctl_claim_verbs, ctl_report_verbs, ctl_migrate_verbs, ctl_hook_verbs,  NULL,
};

/* Rejects an unknown verb and suggests a similar one. Suggests only verbs that change nothing,
 * because a person might paste the suggestion. */
static int refuse_verb(const char *word, Error *reterr)
{
        const char *names[NAMES_MAX] = { NULL }, *nearest;
        size_t n = 0;

        CTL_VERBS_FOREACH(verb)
        if (!(verb->flags & CTL_VERB_CHANGES) && n + 1 < ARRAY_SIZE(names))
                names[n++] = verb->name;
        nearest = ctl_text_nearest(word, names);
        if (nearest)
                return error_setf(reterr, EINVAL, "Unknown verb \"%.60s\". Did you mean \"%s\"?",
                                  word, nearest);
        return error_setf(reterr, EINVAL, "Unknown verb \"%.60s\"", word);
}

/* Checks the number of arguments against the table, and that none is empty: a script with an unset
 * variable must not select all. A verb whose arguments begin with "[" needs none. */
static int check_arguments(const CtlVerb *verb, const char *const *arguments, Error *reterr)
{
        unsigned n = 0;

        for (; arguments[n]; n++)
                if (arguments[n][0] == '\0')
                        return error_setf(reterr, EINVAL, "%s: an argument is empty, expected %s",
                                          verb->name, verb->arguments);
        if (verb->n_arguments == CTL_ANY_ARGUMENTS)
                return 0;
        if (n < verb->n_arguments && verb->arguments[0] != '[')
                return error_setf(reterr, EINVAL, "%s: %s is missing", verb->name, verb->arguments);
        if (n > verb->n_arguments)
                return error_setf(reterr, EINVAL, "%s: unexpected argument \"%.60s\"", verb->name,
                                  arguments[verb->n_arguments]);
        return 0;
}

/* Checks --host: the verb must ask the agent, and neither --config nor --driver can be given,
 * because both mean this host. "watch" supports only one host, and not --hosts-file. */
static int check_host(const CtlVerb *verb, const CtlOptions *options, Error *reterr)
{
        if ((options->hosts.n > 1 || options->hosts_file) && strcmp(verb->name, "watch") == 0)
                return error_setf(reterr, EINVAL, "watch supports only one host, given by --host");
        if (!options->host ||
            ((verb->flags & CTL_VERB_REMOTE) && !options->config && !options->driver))
                return 0;
        if ((verb->flags & CTL_VERB_REMOTE) && options->config)
                return error_setf(reterr, EINVAL,
                                  "--config is a file of this host. Do not use it with --host");
        if (verb->flags & CTL_VERB_REMOTE)
                return error_setf(reterr, EINVAL,
                                  "--driver polls this host. Do not use it with --host");
        return error_setf(
                reterr, EINVAL,
                "%s reads files and devices of its own host. Run it there: ssh %.60s computectl %s",
                verb->name, options->host, verb->name);
}

const CtlVerb *ctl_verb_named(const char *name)
{
        CTL_VERBS_FOREACH(verb)
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
        r = check_arguments(verb, options->arguments + 1, reterr);
        if (r >= 0)
                r = check_host(verb, options, reterr);
        if (r >= 0 && verb->check)
                r = verb->check(options, reterr);
        if (r < 0)
                return r;
        *ret = verb;
        return 0;
}
