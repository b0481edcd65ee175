/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The verbs "audit", "heal" and "consumers". Each asks the agent for an audit and prints parts of
 * its document. "heal" lets the agent apply the remedies of an audit, but not with --dry-run. If a
 * person at the terminal must confirm, "heal" without CONSUMER first makes an audit. If that has
 * remedies, "heal" shows its findings except with --json or --quiet, and asks. The repair is a
 * second audit. "heal CONSUMER" asks without an audit, repairs one consumer and prints only its
 * findings. The exit code of "audit" and "heal" is that of ctl_audit_exit(), except for "heal
 * CONSUMER" without a finding. That returns 0 if the consumer has neither allocations nor a claim
 * here, and fails if a claim or a guest here makes its allocations correct. "consumers" returns 0,
 * also with findings. "audit --all" also prints the table of consumers, except with --json or
 * --quiet.
 *
 * Tests: tests/integration/agent/test_audit.py tests/integration/agent/test_heal_guests.py */

#include "ctl/verbs/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "ctl/ask/bus.h"
#include "ctl/print/audit.h"
#include "ctl/print/json.h"
#include "ctl/print/text.h"
#include "ctl/verbs/common.h"
#include "formats/format-names.h"

/* Longest wait for the answer. An audit of a full host takes about half a minute. */
#define AUDIT_TIMEOUT_USEC (10 * 60 * USEC_PER_SEC)

static int run_audit(Ctl *ctl, const char *method, json_t **ret, Error *reterr)
{
        return ctl_call_document(ctl, method, AUDIT_TIMEOUT_USEC, AUDIT_FORMAT, ret, reterr);
}

/* Prints the document unless --quiet is given, and returns the exit code. JSON is printed also with
 * --quiet. */
static int print_audit(Ctl *ctl, const json_t *document)
{
        if (!ctl->options.json && !ctl->options.quiet)
                ctl_open_pager(ctl);
        if (ctl->options.json || !ctl->options.quiet)
                ctl_print_document(ctl, document, ctl_audit_print);
        return ctl_audit_exit(document);
}

static int verb_audit(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = run_audit(ctl, "Audit", &document, reterr);

        if (r < 0)
                return r;
        r = print_audit(ctl, document);
        if (ctl->options.all && !ctl->options.json && !ctl->options.quiet) {
                fputc('\n', ctl->page.output);
                ctl_consumers_print(document, &ctl->page);
        }
        return r;
}

/* Repairs the allocations of one consumer on this host. *ret is the document of the audit that
 * repaired them. */
static int heal_consumer(Ctl *ctl, const char *consumer, json_t **ret, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = ctl_connect(ctl, reterr);

        if (r < 0)
                return r;
        r = ctl_bus_call(ctl->bus, "HealConsumer", AUDIT_TIMEOUT_USEC, &text, reterr, "s",
                         consumer);
        return r < 0 ? r : ctl_json_read_document(text, AUDIT_FORMAT, ret, reterr);
}

/* Returns the item of a list that belongs to the consumer, or NULL. Uuids match in letters of
 * either case. */
static const json_t *find_item(const json_t *list, const char *consumer)
{
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)list, i, item) {
                if (strcasecmp(ctl_json_text(item, "consumer"), consumer) == 0)
                        return item;
        }
        return NULL;
}

/* Removes the findings of other consumers. */
static void keep_findings(json_t *document, const char *consumer)
{
        json_t *findings = json_object_get(document, "findings");

        for (size_t i = json_array_size(findings); i > 0; i--)
                if (strcasecmp(ctl_json_text(json_array_get(findings, i - 1), "consumer"),
                               consumer) != 0)
                        (void)json_array_remove(findings, i - 1);
}

/* Explains why the audit has no finding about a consumer. Returns 0 if it has neither allocations
 * nor a claim here. Otherwise returns -EBUSY. The words then name the claim or the guest of the
 * consumer, which make its allocations correct. */
static int explain_no_findings(const json_t *document, const char *consumer, Error *reterr)
{
        const json_t *held = find_item(json_object_get(document, "consumers"), consumer);
        uint64_t claim = held ? ctl_json_u64(held, "claim") : 0;

        if (!held)
                return 0;
        if (claim > 0)
                return error_setf(reterr, EBUSY,
                                  "Consumer %s has claim %" PRIu64
                                  ". If its server is deleted, run \"computectl release %" PRIu64
                                  " --allocations\"",
                                  consumer, claim, claim);
        return error_setf(reterr, EBUSY, "Consumer %s has a guest on this host: %.60s", consumer,
                          ctl_json_text(held, "guest"));
}

/* Asks a person before the allocations of a consumer are removed. Asks nothing and returns 0 if
 * ctl_must_ask() is false; otherwise returns as ctl_ask(). */
static int ask_for_consumer(Ctl *ctl, const char *consumer, Error *reterr)
{
        char question[CTL_TEXT_MAX];

        if (!ctl_must_ask(ctl))
                return 0;
        snprintf(question, sizeof(question),
                 "Remove the allocations of consumer %s on this host from Placement?", consumer);
        return ctl_ask(ctl, NULL, NULL, question, reterr);
}

/* Repairs one consumer and prints its findings. Without a finding, a consumer with a claim or a
 * guest here is an error, because its allocations are correct. */
static int heal_one(Ctl *ctl, const char *consumer, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = ask_for_consumer(ctl, consumer, reterr);

        if (r >= 0)
                r = heal_consumer(ctl, consumer, &document, reterr);
        if (r < 0)
                return r;
        if (!find_item(json_object_get(document, "findings"), consumer)) {
                r = explain_no_findings(document, consumer, reterr);
                if (r < 0)
                        return r;
                if (!ctl->options.json && !ctl->options.quiet) {
                        printf("Consumer %s has no allocations on this host in Placement.\n",
                               consumer);
                        return EXIT_SUCCESS;
                }
        }
        keep_findings(document, consumer);
        return print_audit(ctl, document);
}

static int check_heal(const CtlOptions *options, Error *reterr)
{
        const char *consumer = options->arguments[1];
        Uuid uuid;

        if (!consumer)
                return 0;
        if (uuid_from_text(consumer, &uuid) < 0)
                return error_setf(reterr, EINVAL, "\"%.60s\" is not the uuid of a consumer",
                                  consumer);
        return options->dry_run
                       ? error_setf(reterr, EINVAL, "heal: --dry-run or CONSUMER, not both")
                       : 0;
}

static bool has_remedies(const json_t *document)
{
        const json_t *finding;
        size_t i;

        json_array_foreach(json_object_get(document, "findings"), i, finding)
                if (strcmp(ctl_json_text(finding, "remedy"), "none") != 0)
                        return true;
        return false;
}

/* Asks before the remedies of an audit are applied, and replaces the document by that of the
 * repair. Without remedies nothing is asked and the document stays. */
static int ask_and_heal(Ctl *ctl, json_t **document, Error *reterr)
{
        _cleanup_json_ json_t *audit = TAKE_PTR(*document);
        int r;

        if (!has_remedies(audit)) {
                *document = TAKE_PTR(audit);
                return 0;
        }
        r = ctl_ask(ctl, audit, ctl_audit_print, "Apply these remedies?", reterr);
        return r < 0 ? r : run_audit(ctl, "Heal", document, reterr);
}

static int verb_heal(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        bool asks = ctl_must_ask(ctl);
        int r;

        if (ctl->options.arguments[1])
                return heal_one(ctl, ctl->options.arguments[1], reterr);
        r = run_audit(ctl, asks || ctl->options.dry_run ? "Audit" : "Heal", &document, reterr);
        if (r >= 0 && asks)
                r = ask_and_heal(ctl, &document, reterr);
        return r < 0 ? r : print_audit(ctl, document);
}

static int verb_consumers(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r;

        ctl_note_old_spelling(ctl, "consumers", "audit --all");
        r = run_audit(ctl, "Audit", &document, reterr);
        if (r < 0)
                return r;
        ctl_open_pager(ctl);
        ctl_print_document(ctl, document, ctl_consumers_print);
        return 0;
}

const CtlVerb ctl_audit_verbs[] = {
        { "audit", "", "Compare Placement, claims and guests (0, 3, 4)", 0, CTL_RIGHTS, NULL,
          verb_audit, NULL },
        { "heal", "[CONSUMER]", "Repair the findings of audit, or one consumer", 1, CTL_CHANGE,
          check_heal, verb_heal, NULL },
        { "consumers", "", "Deprecated: use audit --all", 0, CTL_RIGHTS | CTL_VERB_HIDDEN, NULL,
          verb_consumers, NULL },
        { NULL, NULL, NULL, 0, CTL_LOCAL, NULL, NULL, NULL },
};
