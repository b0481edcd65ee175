/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The verbs about claims: lists, one claim, "who", the history, "explain", and "claim", "confirm",
 * "move" and "release". A request is parsed, and its names are resolved with documents of the
 * agent, before the agent is asked to claim. Lists are fetched as whole documents, which have only
 * the newest ended claims and events, and are filtered here.
 *
 * The table ctl_claim_verbs maps each verb to its functions: check_…(), if there is one, examines
 * the command line without the agent, and verb_…() runs the verb. Most of the checks are at the end
 * of the file.
 *
 * Tests: tests/unit/ctl/verbs/test-options.c tests/integration/ctl/test_lists.py
 * tests/integration/claims/test_claims.py */

#include "ctl/verbs/verbs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/ask/bus.h"
#include "ctl/print/audit.h"
#include "ctl/print/claims.h"
#include "ctl/print/filter.h"
#include "ctl/print/json.h"
#include "ctl/print/xml.h"
#include "ctl/verbs/common.h"
#include "drivers/host/snapshot.h"
#include "formats/format-names.h"
#include "formats/interface.h"

#define RELEASE_REASON "released with computectl"

/* Prints the libvirt XML of a claim. If the host cannot be fetched, the pin of a guest's emulator
 * threads is unknown, and they get the host CPUs of its guest CPUs. */
static void print_xml(Ctl *ctl, const json_t *claim)
{
        _cleanup_json_ json_t *host = NULL;

        (void)ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &host, NULL);
        ctl_xml_print(claim, host, &ctl->page);
}

/* Prints a new claim as JSON, libvirt XML, its id alone, or a page. --json and --xml win over
 * --quiet. */
static void print_claim(Ctl *ctl, const json_t *claim)
{
        if (ctl->options.json)
                ctl_json_print(claim, ctl->options.json, &ctl->page);
        else if (ctl->options.xml)
                print_xml(ctl, claim);
        else if (ctl->options.quiet)
                printf("%" PRIu64 "\n", ctl_json_u64(claim, "id"));
        else
                ctl_claim_print(claim, &ctl->page);
}

/* Finds a consumer by its uuid, or by the name of its guest's domain. Only a name needs the
 * agent. */
static int find_consumer(Ctl *ctl, const char *name, Uuid *ret, Error *reterr)
{
        _cleanup_json_ json_t *host = NULL;
        const json_t *domain;
        int r;

        if (uuid_from_text(name, ret) == 0)
                return 0;
        r = ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &host, reterr);
        if (r < 0)
                return r;
        domain = ctl_json_find(json_object_get(host, "domains"), "name", name);
        if (domain && uuid_from_text(ctl_json_text(domain, "uuid"), ret) == 0)
                return 0;
        return error_setf(reterr, ENOENT, "\"%.60s\" is neither a uuid nor a guest of this host",
                          name);
}

/* Resolves the names of --mapping with the agent's tree. Uuids need no tree. */
static int resolve_mappings(Ctl *ctl, Error *reterr)
{
        CtlRequest *request = &ctl->options.request;
        _cleanup_json_ json_t *tree = NULL;
        int r;

        if (request->named.n_items == 0)
                return 0;
        r = ctl_fetch(ctl, BUS_DOCUMENT_TREE, TREE_FORMAT, &tree, reterr);
        return r < 0 ? r : ctl_request_resolve(request, tree, reterr);
}

/* Reads the number of a process, which is the first line of a file. */
static int read_pid_file(const char *path, uint32_t *ret, Error *reterr)
{
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        char text[16] = "";
        size_t n;

        if (!file)
                return error_setf(reterr, errno, "%s: %s", path, strerror(errno));
        (void)fgets(text, sizeof(text), file);
        n = strspn(text, "0123456789");
        if (n > 0 && n < 10 && (text[n] == '\n' || !text[n]))
                *ret = (uint32_t)strtoul(text, NULL, 10);
        return *ret > 0 ? 0 : error_setf(reterr, EINVAL, "%s: contains no process id", path);
}

/* Finds the process (--pid-file) or the control group (--unit) of a guest without a domain. The
 * claim borrows *ret_group, which the caller frees. */
static int find_guest(Ctl *ctl, CtlClaim *claim, char **ret_group, Error *reterr)
{
        const CtlOptions *options = &ctl->options;
        int r = 0;

        if (options->pid_file)
                r = read_pid_file(options->pid_file, &claim->process, reterr);
        if (options->unit)
                r = ctl_bus_control_group(ctl->bus, options->unit, ret_group, reterr);
        claim->control_group = *ret_group;
        return r;
}

/* Creates a claim. check_claim() has checked the request. Names of the guest and of providers, and
 * the guest's process or unit, are resolved before the claim. */
static int verb_claim(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *group = NULL;
        Uuid consumer;
        CtlClaim claim = {
                .consumer = consumer.text,
                .project = ctl->options.project,
                .user = ctl->options.user,
                .resize_target = ctl->options.resize_target,
                .consumer_type = ctl->options.consumer_type,
                .request = &ctl->options.request.resources,
                .numa = &ctl->options.request.numa,
                .mappings = &ctl->options.request.mappings,
        };
        int r = find_consumer(ctl, ctl->options.consumer, &consumer, reterr);

        if (r >= 0)
                r = resolve_mappings(ctl, reterr);
        if (r >= 0)
                r = ctl_connect(ctl, reterr);
        if (r >= 0)
                r = find_guest(ctl, &claim, &group, reterr);
        if (r < 0)
                return r;
        r = ctl_bus_request(ctl->bus, &claim, &document, reterr);
        if (r >= 0)
                print_claim(ctl, document);
        return r;
}

/* Fetches the living claims. With history, the ended claims follow them. */
static int list_claims(Ctl *ctl, bool history, json_t **ret, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL, *ended = NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_CLAIMS, CLAIMS_FORMAT, &document, reterr);

        if (r >= 0 && history)
                r = ctl_fetch(ctl, BUS_DOCUMENT_HISTORY, CLAIMS_FORMAT, &ended, reterr);
        if (r < 0)
                return r;
        if (history && json_array_extend(json_object_get(document, "claims"),
                                         json_object_get(ended, "claims")) < 0)
                return error_oom(reterr);
        *ret = TAKE_PTR(document);
        return 0;
}

/* Prints the problems. Returns CTL_AUDIT_FINDINGS if there are any, else EXIT_SUCCESS. */
static int list_problems(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_PROBLEMS, PROBLEMS_FORMAT, &document, reterr);

        if (r < 0)
                return r;
        ctl_open_pager(ctl);
        ctl_print_document(ctl, document, ctl_problems_print);
        return json_array_size(json_object_get(document, "problems")) > 0 ? CTL_AUDIT_FINDINGS
                                                                          : EXIT_SUCCESS;
}

static void print_claims(Ctl *ctl, const json_t *document, bool history)
{
        ctl_open_pager(ctl);
        if (ctl->options.json)
                ctl_json_print(document, ctl->options.json, &ctl->page);
        else
                ctl_claims_print(document, history, &ctl->page);
}

/* Reads the filters of the command line, and checks the state or kind. A relative time is counted
 * from now. */
static int read_filter(const CtlOptions *options, bool events, CtlFilter *ret, Error *reterr)
{
        *ret = options->filter;
        return ctl_filter_complete(ret, options->since, events, clock_usec(CLOCK_REALTIME), reterr);
}

static int check_claims(const CtlOptions *options, Error *reterr)
{
        CtlFilter filter;
        int r = read_filter(options, false, &filter, reterr);

        if (r >= 0 && options->problems && (options->history || ctl_filter_selects(&filter)))
                return error_setf(
                        reterr, EINVAL,
                        "claims: --problems excludes --history, --guest, --device, --state and --since");
        return r;
}

/* Lists claims. The state "released" implies --history, because only ended claims have it. With
 * --problems, the problems are listed instead. */
static int verb_claims(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        bool history = ctl->options.history;
        CtlFilter filter;
        int r;

        if (ctl->options.problems)
                return list_problems(ctl, reterr);
        r = read_filter(&ctl->options, false, &filter, reterr);
        if (r >= 0 && filter.state && strcmp(filter.state, "released") == 0)
                history = true;
        if (r >= 0)
                r = list_claims(ctl, history, &document, reterr);
        if (r < 0)
                return r;
        ctl_filter_apply(&filter, document);
        print_claims(ctl, document, history);
        return 0;
}

/* Returns an id of the command line, which check_id() has checked. */
static int64_t id_of(const char *argument)
{
        return strtoll(argument, NULL, 10);
}

static int64_t claim_id(Ctl *ctl)
{
        return id_of(ctl->options.arguments[1]);
}

static const json_t *find_claim(const json_t *document, uint64_t id)
{
        const json_t *claim;
        size_t i;

        json_array_foreach(json_object_get(document, "claims"), i, claim)
                if (ctl_json_u64(claim, "id") == id)
                        return claim;
        return NULL;
}

/* Prints the claim with the given number, which can have ended. Returns -ENOENT with words if there
 * is none, also for an ended claim that the agent does not keep any more. With --xml it must not
 * have ended, because other guests can have its devices. */
static int verb_show(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        const json_t *claim;
        int r = list_claims(ctl, true, &document, reterr);

        if (r < 0)
                return r;
        claim = find_claim(document, (uint64_t)claim_id(ctl));
        if (!claim)
                return error_setf(reterr, ENOENT, "There is no claim with the number %" PRId64,
                                  claim_id(ctl));
        if (ctl->options.xml && strcmp(ctl_json_text(claim, "state"), "released") == 0)
                return error_setf(
                        reterr, ENOENT,
                        "Claim %" PRId64
                        " has ended. Other guests can have its devices, so there is no XML of it",
                        claim_id(ctl));
        if (!ctl->options.xml)
                ctl_open_pager(ctl);
        if (ctl->options.xml)
                print_xml(ctl, claim);
        else
                ctl_print_document(ctl, claim, ctl_show_print);
        return 0;
}

/* Rejects a word that the host does not know, because a typing error would look like a free device.
 * Any uuid passes, because ended guests are not in the host's document. If the host or the tree
 * cannot be fetched, for example before the first poll, every word passes. verb_who() does not call
 * it with --json. */
static int check_name(Ctl *ctl, const char *name, Error *reterr)
{
        _cleanup_json_ json_t *host = NULL, *tree = NULL;

        if (ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &host, NULL) != 0 ||
            ctl_fetch(ctl, BUS_DOCUMENT_TREE, TREE_FORMAT, &tree, NULL) != 0 ||
            ctl_host_has(host, name) ||
            ctl_json_find(json_object_get(tree, "providers"), "name", name))
                return 0;
        return error_setf(
                reterr, ENODEV,
                "\"%.60s\" is not a device, provider, CPU, cell or guest of this host. See \"computectl discover\", \"computectl tree\" and \"computectl claims\"",
                name);
}

/* Keeps the claims of the word, and adds the guests that have it without a claim. Before the first
 * poll, the guests, the functions of cards and the devices of sets are unknown. */
static int find_owners(Ctl *ctl, const char *what, json_t *document, Error *reterr)
{
        _cleanup_json_ json_t *host = NULL, *tree = NULL;

        (void)ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &host, NULL);
        (void)ctl_fetch(ctl, BUS_DOCUMENT_TREE, TREE_FORMAT, &tree, NULL);
        return ctl_claims_find(document, host, tree, what) < 0 ? error_oom(reterr) : 0;
}

/* Prints the sentences about devices that no claim gets, if they contain the word in letters of
 * either case. status NULL: nothing is printed. */
static void print_unclean(Ctl *ctl, const json_t *status, const char *what)
{
        const json_t *item;
        size_t i;

        json_array_foreach(json_object_get(status, "devices_unclean"), i, item) {
                const char *text = json_string_value(item);

                if (!text || !strcasestr(text, what))
                        continue;
                ctl_page_write(&ctl->page, CTL_PLAIN, "%s.", text);
                fputc('\n', ctl->page.output);
        }
}

/* Prints the claims and guests of a word. For scripts, the exit code is 1 if neither a claim nor a
 * guest has it. A word that check_name() rejects is an error, but with --json it gives an empty
 * list and the exit code 1. */
static int verb_who(Ctl *ctl, Error *reterr)
{
        const char *what = ctl->options.arguments[1];
        _cleanup_json_ json_t *document = NULL, *status = NULL;
        int r = list_claims(ctl, false, &document, reterr);
        bool anybody;

        if (r < 0)
                return r;
        r = find_owners(ctl, what, document, reterr);
        if (r < 0)
                return r;
        anybody = json_array_size(json_object_get(document, "claims")) > 0 ||
                  json_array_size(json_object_get(document, "guests")) > 0;
        if (!ctl->options.json && !anybody && (r = check_name(ctl, what, reterr)) < 0)
                return r;
        if (!ctl->options.json)
                (void)ctl_fetch(ctl, BUS_DOCUMENT_STATUS, STATUS_FORMAT, &status, NULL);
        print_claims(ctl, document, false);
        print_unclean(ctl, status, what);
        return anybody ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int check_history(const CtlOptions *options, Error *reterr)
{
        CtlFilter filter;

        return read_filter(options, true, &filter, reterr);
}

/* Prints the events that match the filters and the word. The exit code is 1 if one of them was
 * given and no event matches. */
static int verb_history(Ctl *ctl, Error *reterr)
{
        const char *what = ctl->options.arguments[1];
        _cleanup_json_ json_t *document = NULL, *host = NULL;
        CtlFilter filter;
        int r = read_filter(&ctl->options, true, &filter, reterr);

        if (r >= 0)
                r = ctl_fetch(ctl, BUS_DOCUMENT_EVENTS, EVENTS_FORMAT, &document, reterr);
        if (r < 0)
                return r;
        ctl_filter_apply(&filter, document);
        if (what)
                (void)ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &host, NULL);
        if (what && ctl_events_find(document, host, what) < 0)
                return error_oom(reterr);
        ctl_open_pager(ctl);
        ctl_print_document(ctl, document, ctl_events_print);
        return (what || ctl_filter_selects(&filter)) &&
                               json_array_size(json_object_get(document, "events")) == 0
                       ? EXIT_FAILURE
                       : EXIT_SUCCESS;
}

/* Explains whether a request, which check_explain() has checked, fits now. The exit code is 0 only
 * if it fits. */
static int verb_explain(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        const CtlClaim claim = { .request = &ctl->options.request.resources,
                                 .numa = &ctl->options.request.numa };
        int r = ctl_connect(ctl, reterr);

        if (r >= 0)
                r = ctl_bus_request(ctl->bus, &claim, &document, reterr);
        if (r < 0)
                return r;
        ctl_open_pager(ctl);
        ctl_print_document(ctl, document, ctl_explain_print);
        return json_is_true(json_object_get(document, "fits")) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void print_state(Ctl *ctl, int64_t id, const char *state)
{
        ctl_print_done(ctl, json_pack("{sI ss}", "id", (json_int_t)id, "state", state),
                       "Claim %" PRId64 " is %s.\n", id, state);
}

static int verb_confirm(Ctl *ctl, Error *reterr)
{
        int r = ctl_connect(ctl, reterr);

        if (r < 0)
                return r;
        r = ctl_bus_call(ctl->bus, "Confirm", 0, NULL, reterr, "x", claim_id(ctl));
        if (r >= 0)
                print_state(ctl, claim_id(ctl), "confirmed");
        return r;
}

/* Releases a claim. With --allocations the allocations of its consumer are removed even if another
 * writer made them. */
static int release_one(Ctl *ctl, int64_t id, Error *reterr)
{
        const char *reason = ctl->options.reason ? ctl->options.reason : RELEASE_REASON;
        int r = ctl_bus_call(ctl->bus, ctl->options.allocations ? "ReleaseAllocations" : "Release",
                             0, NULL, reterr, "xs", id, reason);

        if (r >= 0)
                print_state(ctl, id, "released");
        return r;
}

/* Releases each claim, also after one that could not be released. Prints all failures but the last
 * one, which the caller prints. Returns the last failure, or 0. */
static int verb_release(Ctl *ctl, Error *reterr)
{
        int failed = 0, r = ctl_connect(ctl, reterr);

        if (r < 0)
                return r;
        for (const char *const *id = ctl->options.arguments + 1; *id; id++) {
                Error error = ERROR_NULL;

                r = release_one(ctl, id_of(*id), &error);
                if (r >= 0)
                        continue;
                if (failed < 0)
                        ctl_print_error(ctl, reterr, failed);
                *reterr = error;
                failed = r;
        }
        return failed;
}

/* Hands a claim over to another consumer, for example from a migration to its server. */
static int verb_move(Ctl *ctl, Error *reterr)
{
        Uuid from, to;
        int64_t id;
        int r = find_consumer(ctl, ctl->options.arguments[1], &from, reterr);

        if (r >= 0)
                r = find_consumer(ctl, ctl->options.arguments[2], &to, reterr);
        if (r >= 0)
                r = ctl_connect(ctl, reterr);
        if (r < 0)
                return r;
        r = ctl_bus_move_claim(ctl->bus, from.text, to.text, ctl->options.consumer_type, &id,
                               reterr);
        if (r < 0)
                return r;
        ctl_print_done(ctl, json_pack("{sI ss}", "id", (json_int_t)id, "consumer", to.text),
                       "Claim %" PRId64 " now belongs to consumer %s.\n", id, to.text);
        return 0;
}

/* Checks of the command line, before the agent is asked. */

/* Checks whether the options name no group of the request, not even one with traits alone. An
 * option that could not be parsed counts as a group. */
static bool asks_for_nothing(const CtlOptions *options)
{
        return options->request.resources.n_groups == 0 && !options->request.error.code;
}

/* Rejects a request without an option, such as "claim VCPU=2", and suggests the option. */
static int refuse_bare_request(const CtlOptions *options, Error *reterr)
{
        const char *verb = options->arguments[0], *word = options->arguments[1];
        bool for_nobody = strcmp(verb, "claim") == 0 && !options->consumer;

        if (!strchr(word, '='))
                return error_setf(reterr, EINVAL, "%s: unexpected argument \"%.60s\"", verb, word);
        return error_setf(reterr, EINVAL, "%s: write the resources as an option: --%s=%.60s%s",
                          verb, strchr(word, ':') ? "group" : "resources", word,
                          for_nobody ? ". Also add --consumer=GUEST" : "");
}

/* Rejects --json together with --xml. */
static int check_format(const CtlOptions *options, Error *reterr)
{
        return options->json && options->xml
                       ? error_setf(reterr, EINVAL, "%s: --json or --xml, not both",
                                    options->arguments[0])
                       : 0;
}

/* Rejects --pid-file together with --unit, which names another guest, and with --host, because a
 * pid is valid only on its own host. */
static int check_pid_file(const CtlOptions *options, Error *reterr)
{
        if (options->pid_file && options->unit)
                return error_setf(reterr, EINVAL, "--pid-file and --unit exclude each other");
        if (options->pid_file && options->host)
                return error_setf(
                        reterr, EINVAL,
                        "--pid-file needs a file of this host. Do not use it with --host");
        return 0;
}

/* Checks that the request has a consumer and a group, and the values of its options. The agent
 * checks those of the layout that are texts, and names of this host. */
static int check_claim(const CtlOptions *options, Error *reterr)
{
        int r;

        if (options->arguments[1])
                return refuse_bare_request(options, reterr);
        if (!options->consumer)
                return error_setf(reterr, EINVAL, "claim: --consumer=GUEST is missing%s",
                                  asks_for_nothing(options) ? ", and --resources or --group" : "");
        if (asks_for_nothing(options))
                return error_setf(reterr, EINVAL, "claim: --resources or --group is missing");
        r = check_format(options, reterr);
        if (r >= 0)
                r = check_pid_file(options, reterr);
        return r < 0 ? r : ctl_request_check(&options->request, reterr);
}

static int check_explain(const CtlOptions *options, Error *reterr)
{
        if (options->arguments[1])
                return refuse_bare_request(options, reterr);
        if (asks_for_nothing(options))
                return error_setf(reterr, EINVAL, "explain: --resources or --group is missing");
        return ctl_request_check(&options->request, reterr);
}

/* Checks that each argument is the number of a claim. 18 digits fit int64_t. */
static int check_id(const CtlOptions *options, Error *reterr)
{
        for (const char *const *text = options->arguments + 1; *text; text++) {
                size_t n = strlen(*text);

                if (n == 0 || n > 18 || strspn(*text, "0123456789") != n)
                        return error_setf(
                                reterr, EINVAL,
                                "\"%.60s\" is not the number of a claim. See \"computectl claims\"",
                                *text);
        }
        return 0;
}

static int check_show(const CtlOptions *options, Error *reterr)
{
        int r = check_id(options, reterr);

        return r < 0 ? r : check_format(options, reterr);
}

static int check_ids(const CtlOptions *options, Error *reterr)
{
        if (!options->arguments[1])
                return error_setf(reterr, EINVAL, "%s: ID is missing", options->arguments[0]);
        return check_id(options, reterr);
}

const CtlVerb ctl_claim_verbs[] = {
        { "claims", "", "List the claims of this host", 0, CTL_REMOTE, check_claims, verb_claims,
          NULL },
        { "show", "ID", "Show one claim with its devices", 1, CTL_REMOTE, check_show, verb_show,
          "history" },
        { "who", "DEVICE|cpu:N|cell:N|GUEST", "Show the claims of a device, CPU, cell or guest", 1,
          CTL_REMOTE, NULL, verb_who, "devices" },
        { "history", "[ID|GUEST|DEVICE]", "Show events with their authors", 1, CTL_REMOTE,
          check_history, verb_history, "history" },
        { "explain", "", "Explain why a request fits or does not fit", CTL_ANY_ARGUMENTS,
          CTL_REMOTE, check_explain, verb_explain, NULL },
        { "claim", "", "Claim resources for a guest", CTL_ANY_ARGUMENTS, CTL_CHANGE, check_claim,
          verb_claim, NULL },
        { "confirm", "ID", "Confirm a claim whose guest runs", 1, CTL_CHANGE, check_id,
          verb_confirm, "claims" },
        { "move", "FROM TO", "Move a claim to another consumer", 2, CTL_CHANGE, NULL, verb_move,
          NULL },
        { "release", "ID...", "Release claims", CTL_ANY_ARGUMENTS, CTL_CHANGE, check_ids,
          verb_release, "claims" },
        { NULL, NULL, NULL, 0, CTL_LOCAL, NULL, NULL, NULL },
};
