/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every verb fetches first and prints then: an error never stands in the middle of a page. */

#include "agent/ctl-verbs.h"

#include <inttypes.h>
#include <string.h>

#include "agent/bus-interface.h"
#include "agent/ctl-bus.h"
#include "agent/ctl-claims.h"
#include "agent/ctl-config.h"
#include "agent/ctl-devices.h"
#include "agent/ctl-doctor.h"
#include "agent/ctl-findings.h"
#include "agent/ctl-host.h"
#include "agent/ctl-journal.h"
#include "agent/ctl-plan.h"
#include "agent/ctl-poll.h"
#include "agent/ctl-request.h"
#include "agent/ctl-status.h"
#include "agent/ctl-text.h"
#include "agent/ctl-tree.h"
#include "agent/tree-json.h"

#define SYNC_TIMEOUT_USEC (5 * 60 * USEC_PER_SEC)
#define RELEASE_REASON    "released with computectl"
#define HELP_COLUMN       33
#define JOURNAL_LINES     10

/* For a verb that can do nothing without the agent: nobody there is a failure like others. */
static int need_answer(int r)
{
        return r == CTL_BUS_E_NOT_RUNNING ? -ESRCH : r;
}

static int oom_or(int r, Error *reterr)
{
        return r < 0 ? error_oom(reterr) : r;
}

static bool wants_json(const Ctl *ctl)
{
        return ctl->options.json != CTL_JSON_OFF;
}

static int print_json(const Ctl *ctl, const json_t *document, Error *reterr)
{
        if (!document)
                return error_oom(reterr);
        return oom_or(ctl_json_print(document, ctl->options.json, &ctl->style, stdout), reterr);
}

static void page(Ctl *ctl)
{
        if (ctl->style.terminal && !ctl->options.no_pager)
                ctl_pager_open(&ctl->pager);
}

/* Calls a method that answers with a document. CTL_BUS_E_NOT_RUNNING as it came. */
static int fetch(const char *method, bool array, const char *format, json_t **ret, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_free_ char *text = NULL;
        int r = ctl_bus_open(&bus, reterr);

        if (r != CTL_BUS_DONE)
                return r;
        r = ctl_bus_get_text(bus, method, 0, &text, reterr);
        return r != CTL_BUS_DONE ? r : ctl_json_read_document(text, array, format, ret, reterr);
}

/* Makes a status document, also of an agent that does not run. */
static int fetch_status(json_t **ret, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_json_ json_t *members = NULL;
        Error why = ERROR_NULL;
        json_t *status;
        int r = ctl_bus_open(&bus, &why);

        if (r == CTL_BUS_DONE)
                r = ctl_bus_get_status(bus, &members, &why);
        if (r < 0)
                return error_setf(reterr, r, "%s", why.text);
        status = r == CTL_BUS_DONE ? ctl_status_make(members)
                                   : ctl_status_make_not_running(why.text);
        if (!status)
                return error_oom(reterr);
        *ret = status;
        return 0;
}

static int print_status(const Ctl *ctl, const json_t *status, Error *reterr)
{
        int r = ctl_status_print(status, &ctl->style, stdout);

        if (r >= 0 && ctl->style.legend)
                r = ctl_journal_print(JOURNAL_LINES, &ctl->style, stdout);
        return oom_or(r, reterr);
}

static int verb_status(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *status = NULL;
        int r = fetch_status(&status, reterr);

        if (r < 0)
                return r;
        if (!ctl->options.quiet) {
                page(ctl);
                r = wants_json(ctl) ? print_json(ctl, status, reterr)
                                    : print_status(ctl, status, reterr);
        }
        return r < 0 ? r : (int)ctl_status_exit(status);
}

static int verb_cat_config(Ctl *ctl, Error *reterr)
{
        page(ctl);
        return ctl_config_cat(ctl->options.config, stdout, reterr);
}

static int verb_check_config(Ctl *ctl, Error *reterr)
{
        size_t n_files;
        int r = ctl_config_check(ctl->options.config, stderr, &n_files, reterr);

        if (r < 0)
                return r;
        if (wants_json(ctl))
                return print_json(ctl, json_pack("{sb}", "valid", 1), reterr);
        if (!ctl->options.quiet)
                printf("The configuration can be used (%zu file(s)).\n", n_files);
        return 0;
}

/* The host as the service sees it, or as a poll does when it does not run. */
static void fetch_snapshot(const Ctl *ctl, Snapshot **ret, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = fetch("Discover", false, SNAPSHOT_FORMAT, &document, reterr);

        if (r == CTL_BUS_E_NOT_RUNNING)
                r = ctl_poll(ctl->options.config, &document, reterr);
        if (r == 0)
                (void)snapshot_from_json(document, ret, reterr);
}

static void count_warning(const char *text, void *userdata)
{
        ++*(size_t *)userdata;
}

static int verb_doctor(Ctl *ctl, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *status = NULL, *document = NULL;
        _cleanup_(config_freep) Config *config = NULL;
        CtlFacts facts = { 0 };
        int r;

        (void)config_load(&config, ctl->options.config, count_warning, &facts.n_config_warnings,
                          &facts.config_error);
        r = fetch_status(&status, reterr);
        if (r < 0)
                return r;
        fetch_snapshot(ctl, &snapshot, &facts.snapshot_error);
        facts.config = config;
        facts.status = status;
        facts.snapshot = snapshot;
        ctl_facts_measure(&facts);
        document = ctl_doctor_judge(&facts);
        if (!document)
                return error_oom(reterr);
        r = wants_json(ctl) ? print_json(ctl, document, reterr)
                            : oom_or(ctl_doctor_print(document, &ctl->style, stdout), reterr);
        return r < 0 ? r : ctl_doctor_is_well(document) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int verb_tree(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *tree = NULL;
        int r = need_answer(fetch("GetTree", false, TREE_FORMAT, &tree, reterr));

        if (r < 0)
                return r;
        page(ctl);
        return wants_json(ctl) ? print_json(ctl, tree, reterr)
                               : ctl_tree_print(tree, &ctl->style, stdout, reterr);
}

static int verb_plan(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *plan = NULL;
        int r = need_answer(fetch("GetPlan", true, NULL, &plan, reterr));

        if (r < 0)
                return r;
        page(ctl);
        return wants_json(ctl) ? print_json(ctl, plan, reterr)
                               : ctl_plan_print(plan, &ctl->style, stdout, reterr);
}

static int verb_discover(Ctl *ctl, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *document = NULL;
        int r = CTL_BUS_E_NOT_RUNNING;

        if (!ctl->options.config)
                r = fetch("Discover", false, SNAPSHOT_FORMAT, &document, reterr);
        if (r == CTL_BUS_E_NOT_RUNNING)
                r = ctl_poll(ctl->options.config, &document, reterr);
        if (r < 0)
                return r;
        if (wants_json(ctl)) {
                page(ctl);
                return print_json(ctl, document, reterr);
        }
        r = snapshot_from_json(document, &snapshot, reterr);
        if (r < 0)
                return r;
        page(ctl);
        return oom_or(ctl_host_print(snapshot, &ctl->style, stdout), reterr);
}

static int verb_verify(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = ctl_poll_verify(ctl->options.config, &document, reterr);

        if (r < 0)
                return r;
        if (!ctl->options.quiet) {
                page(ctl);
                r = wants_json(ctl)
                            ? print_json(ctl, document, reterr)
                            : oom_or(ctl_findings_print(document, &ctl->style, stdout), reterr);
        }
        return r < 0 ? r : ctl_findings_have_errors(document) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* What a sync came to; the state is asked for after it. */
static int print_synced(const Ctl *ctl, const char *why, Error *reterr)
{
        _cleanup_json_ json_t *status = NULL, *document = NULL;
        int r;

        if (wants_json(ctl)) {
                document = json_pack("{sb ss}", "published", why[0] == '\0', "error", why);
                return print_json(ctl, document, reterr);
        }
        if (why[0])
                return error_setf(reterr, EIO, "Sync failed: %s", why);
        if (ctl->options.quiet)
                return 0;
        r = fetch_status(&status, reterr);
        if (r < 0)
                return r;
        printf("Done: %s.\n", ctl_json_text(status, "summary"));
        return 0;
}

static int verb_sync(Ctl *ctl, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_free_ char *why = NULL;
        int r = need_answer(ctl_bus_open(&bus, reterr));

        if (r < 0)
                return r;
        r = need_answer(ctl_bus_get_text(bus, "Sync", SYNC_TIMEOUT_USEC, &why, reterr));
        if (r < 0)
                return r;
        r = print_synced(ctl, why, reterr);
        return r < 0 ? r : why[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int verb_reload(Ctl *ctl, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = need_answer(ctl_bus_open(&bus, reterr));

        if (r < 0)
                return r;
        r = need_answer(ctl_bus_reload(bus, SYNC_TIMEOUT_USEC, reterr));
        if (r < 0)
                return r;
        if (wants_json(ctl))
                return print_json(ctl, json_pack("{sb}", "reloaded", 1), reterr);
        if (!ctl->options.quiet)
                puts("The new settings are in force.");
        return 0;
}

static int print_claim(const Ctl *ctl, const json_t *claim, Error *reterr)
{
        if (wants_json(ctl))
                return print_json(ctl, claim, reterr);
        if (ctl->options.xml) {
                ctl_xml_print(claim, stdout);
                return 0;
        }
        if (ctl->options.quiet) {
                printf("%" PRIu64 "\n", ctl_json_u64(claim, "id"));
                return 0;
        }
        return oom_or(ctl_claim_print(claim, &ctl->style, stdout), reterr);
}

static int check_resources(const CtlOptions *options, Error *reterr)
{
        if (options->request_error.code)
                return error_setf(reterr, EINVAL, "%s", options->request_error.text);
        return ctl_request_check(&options->request, reterr);
}

static int check_request(const CtlOptions *options, Error *reterr)
{
        Uuid uuid;

        if (options->request_error.code)
                return error_setf(reterr, EINVAL, "%s", options->request_error.text);
        if (uuid_from_text(options->consumer, &uuid) < 0)
                return error_setf(reterr, EINVAL, "--consumer: \"%.60s\" is not a uuid",
                                  options->consumer);
        return check_resources(options, reterr);
}

static int verb_claim(Ctl *ctl, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_json_ json_t *document = NULL;
        CtlClaim claim = {
                .consumer = ctl->options.consumer,
                .project = ctl->options.project,
                .user = ctl->options.user,
                .resize_target = ctl->options.resize_target,
                .request = &ctl->options.request,
        };
        int r = check_request(&ctl->options, reterr);

        if (r < 0)
                return r;
        r = need_answer(ctl_bus_open(&bus, reterr));
        if (r < 0)
                return r;
        r = need_answer(ctl_bus_claim(bus, &claim, &document, reterr));
        return r < 0 ? r : print_claim(ctl, document, reterr);
}

static int list_problems(Ctl *ctl, sd_bus *bus, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = need_answer(ctl_bus_list_problems(bus, &document, reterr));

        if (r < 0)
                return r;
        page(ctl);
        return wants_json(ctl) ? print_json(ctl, document, reterr)
                               : oom_or(ctl_problems_print(document, &ctl->style, stdout), reterr);
}

static int verb_claims(Ctl *ctl, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_json_ json_t *document = NULL;
        bool history = ctl->options.history;
        int r = need_answer(ctl_bus_open(&bus, reterr));

        if (r < 0)
                return r;
        if (ctl->options.problems)
                return list_problems(ctl, bus, reterr);
        r = need_answer(ctl_bus_list_claims(bus, history, &document, reterr));
        if (r < 0)
                return r;
        page(ctl);
        return wants_json(ctl)
                       ? print_json(ctl, document, reterr)
                       : oom_or(ctl_claims_print(document, history, &ctl->style, stdout), reterr);
}

/* Of the command line; checked before. */
static int64_t claim_id(const Ctl *ctl)
{
        return strtoll(ctl->options.arguments[1], NULL, 10);
}

static int verb_show(Ctl *ctl, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_json_ json_t *claim = NULL;
        int r = need_answer(ctl_bus_open(&bus, reterr));

        if (r < 0)
                return r;
        r = need_answer(ctl_bus_get_claim(bus, claim_id(ctl), &claim, reterr));
        if (r < 0)
                return r;
        if (ctl->options.xml) {
                ctl_xml_print(claim, stdout);
                return 0;
        }
        page(ctl);
        return wants_json(ctl) ? print_json(ctl, claim, reterr)
                               : oom_or(ctl_show_print(claim, &ctl->style, stdout), reterr);
}

/* Exit code 1 when nobody has it, so that scripts need not read. */
static int verb_who(Ctl *ctl, Error *reterr)
{
        const char *what = ctl->options.arguments[1];
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_json_ json_t *document = NULL;
        int r = need_answer(ctl_bus_open(&bus, reterr));

        if (r < 0)
                return r;
        r = need_answer(ctl_bus_find_claims(bus, what, &document, reterr));
        if (r < 0)
                return r;
        page(ctl);
        r = wants_json(ctl)
                    ? print_json(ctl, document, reterr)
                    : oom_or(ctl_claims_print(document, false, &ctl->style, stdout), reterr);
        if (r < 0)
                return r;
        return json_array_size(json_object_get(document, "claims")) > 0 ? EXIT_SUCCESS
                                                                        : EXIT_FAILURE;
}

static int verb_explain(Ctl *ctl, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *text = NULL;
        int r = check_resources(&ctl->options, reterr);

        if (r < 0)
                return r;
        r = need_answer(ctl_bus_open(&bus, reterr));
        if (r >= 0)
                r = need_answer(ctl_bus_explain(bus, &ctl->options.request, &text, reterr));
        if (r >= 0)
                r = ctl_json_read_document(text, false, EXPLAIN_FORMAT, &document, reterr);
        if (r < 0)
                return r;
        page(ctl);
        r = wants_json(ctl) ? print_json(ctl, document, reterr)
                            : oom_or(ctl_explain_print(document, &ctl->style, stdout), reterr);
        if (r < 0)
                return r;
        return json_is_true(json_object_get(document, "fits")) ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Says that the claim is now in a state. */
static int print_state(const Ctl *ctl, const char *state, Error *reterr)
{
        if (wants_json(ctl)) {
                _cleanup_json_ json_t *document =
                        json_pack("{sI ss}", "id", (json_int_t)claim_id(ctl), "state", state);

                return print_json(ctl, document, reterr);
        }
        if (!ctl->options.quiet)
                printf("Claim %" PRId64 " is %s.\n", claim_id(ctl), state);
        return 0;
}

static int verb_confirm(Ctl *ctl, Error *reterr)
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = need_answer(ctl_bus_open(&bus, reterr));

        if (r < 0)
                return r;
        r = need_answer(ctl_bus_confirm(bus, claim_id(ctl), reterr));
        return r < 0 ? r : print_state(ctl, "confirmed", reterr);
}

static int verb_release(Ctl *ctl, Error *reterr)
{
        const char *reason = ctl->options.reason ? ctl->options.reason : RELEASE_REASON;
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r = need_answer(ctl_bus_open(&bus, reterr));

        if (r < 0)
                return r;
        r = need_answer(ctl_bus_release(bus, claim_id(ctl), reason, reterr));
        return r < 0 ? r : print_state(ctl, "released", reterr);
}

/* What is wrong with the command line before anything is asked. */

static int check_claim(const CtlOptions *options, Error *reterr)
{
        if (!options->consumer)
                return error_setf(reterr, EINVAL,
                                  "claim: --consumer UUID is missing (the guest that it is for)");
        if (options->request.n_groups == 0 && !options->request_error.code)
                return error_setf(reterr, EINVAL, "claim: give --resources or --group");
        return 0;
}

static int check_explain(const CtlOptions *options, Error *reterr)
{
        if (options->request.n_groups == 0 && !options->request_error.code)
                return error_setf(reterr, EINVAL, "explain: give --resources or --group");
        return 0;
}

static int check_id(const CtlOptions *options, Error *reterr)
{
        const char *text = options->arguments[1];
        size_t n = strlen(text);

        if (n == 0 || n > 18 || strspn(text, "0123456789") != n)
                return error_setf(reterr, EINVAL,
                                  "\"%.60s\" is not the number of a claim; \"computectl claims\" "
                                  "shows them",
                                  text);
        return 0;
}

const CtlVerb ctl_verbs[] = {
        { "status", "", "Tell whether all is well (exit code 0, 3 or 4)", 0, NULL, verb_status },
        { "tree", "", "Show the resource providers and their usage", 0, NULL, verb_tree },
        { "plan", "", "Show what the next sync would send", 0, NULL, verb_plan },
        { "discover", "", "Show what the hypervisor has", 0, NULL, verb_discover },
        { "verify", "", "Compare the configuration with the hardware", 0, NULL, verb_verify },
        { "sync", "", "Poll and publish now", 0, NULL, verb_sync },
        { "reload", "", "Read the configuration again", 0, NULL, verb_reload },
        { "doctor", "", "Look for what is wrong, and tell what to do", 0, NULL, verb_doctor },
        { "cat-config", "", "Show the configuration files", 0, NULL, verb_cat_config },
        { "check-config", "", "Check the configuration files", 0, NULL, verb_check_config },
        { "claims", "", "List what is promised to guests", 0, NULL, verb_claims },
        { "show", "ID", "Show one claim with its devices", 1, check_id, verb_show },
        { "who", "DEVICE|GUEST", "Tell who has a device, or what a guest has", 1, NULL, verb_who },
        { "explain", "", "Tell why a request fits, or does not", 0, check_explain, verb_explain },
        { "claim", "", "Promise resources to a guest", 0, check_claim, verb_claim },
        { "confirm", "ID", "Keep a claim: the guest runs", 1, check_id, verb_confirm },
        { "release", "ID", "Give a claim back", 1, check_id, verb_release },
        { NULL, NULL, NULL, 0, NULL, NULL },
};

static int refuse_verb(const char *word, Error *reterr)
{
        const char *names[ARRAY_SIZE(ctl_verbs)] = { NULL }, *nearest;

        for (size_t i = 0; i < ARRAY_SIZE(ctl_verbs); i++)
                names[i] = ctl_verbs[i].name;
        nearest = ctl_text_nearest(word, names);
        if (nearest)
                return error_setf(reterr, EINVAL, "Unknown verb \"%.60s\"; did you mean \"%s\"?",
                                  word, nearest);
        return error_setf(reterr, EINVAL, "Unknown verb \"%.60s\"", word);
}

static int check_count(const CtlVerb *verb, const char *const *arguments, Error *reterr)
{
        unsigned n = 0;

        while (arguments[n])
                n++;
        if (n < verb->n_arguments)
                return error_setf(reterr, EINVAL, "%s: %s is missing", verb->name, verb->arguments);
        if (n > verb->n_arguments)
                return error_setf(reterr, EINVAL, "%s: unexpected argument \"%.60s\"", verb->name,
                                  arguments[verb->n_arguments]);
        return 0;
}

int ctl_verb_find(const CtlOptions *options, const CtlVerb **ret, Error *reterr)
{
        const char *word = options->arguments[0];
        const CtlVerb *verb = ctl_verbs;
        int r;

        if (!word)
                return error_setf(reterr, EINVAL, "What is to be done? Give a verb");
        while (verb->name && strcmp(verb->name, word) != 0)
                verb++;
        if (!verb->name)
                return refuse_verb(word, reterr);
        r = check_count(verb, options->arguments + 1, reterr);
        if (r >= 0 && verb->check)
                r = verb->check(options, reterr);
        if (r < 0)
                return r;
        *ret = verb;
        return 0;
}

void ctl_verbs_print_help(const CtlStyle *style, FILE *output)
{
        fprintf(output, "\n%sVerbs:%s\n", ctl_colour(style, CTL_HEADING), ctl_colour_end(style));
        for (const CtlVerb *verb = ctl_verbs; verb->name; verb++)
                fprintf(output, "  %s %-*s%s\n", verb->name,
                        HELP_COLUMN - 3 - (int)strlen(verb->name), verb->arguments, verb->help);
}
