/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* "computectl audit", "heal" and "consumers". Each asks the agent for one audit and prints parts of
 * its document. "heal CONSUMER" prints what was found of that consumer alone. */

#include "agent/ctl/verbs/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <strings.h>

#include "agent/ctl/ask/bus.h"
#include "agent/ctl/print/audit.h"
#include "agent/ctl/print/json.h"
#include "agent/ctl/verbs/common.h"
#include "agent/formats/format-names.h"

#define AUDIT_TIMEOUT_USEC (10 * 60 * USEC_PER_SEC)

static int run_audit(Ctl *ctl, const char *method, json_t **ret, Error *reterr)
{
        return ctl_need_result(ctl, method, AUDIT_TIMEOUT_USEC, AUDIT_FORMAT, ret, reterr);
}

static int print_audit(Ctl *ctl, const json_t *document)
{
        if (!ctl_wants_json(ctl) && !ctl->options.quiet)
                ctl_open_pager(ctl);
        if (ctl_wants_json(ctl) || !ctl->options.quiet)
                ctl_print_document(ctl, document, ctl_audit_print);
        return ctl_audit_exit(document);
}

int ctl_verb_audit(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = run_audit(ctl, "Audit", &document, reterr);

        return r < 0 ? r : print_audit(ctl, document);
}

static int heal_consumer(Ctl *ctl, const char *consumer, json_t **ret, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = ctl_connect(ctl, reterr);

        if (r < 0)
                return r;
        r = ctl_need_answer(
                ctl_bus_heal_consumer(ctl->bus, consumer, AUDIT_TIMEOUT_USEC, &text, reterr));
        return r < 0 ? r : ctl_json_read_document(text, false, AUDIT_FORMAT, ret, reterr);
}

/* Returns the item of a list that is of the consumer, or NULL. */
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

static void keep_findings(json_t *document, const char *consumer)
{
        json_t *findings = json_object_get(document, "findings");

        for (size_t i = json_array_size(findings); i > 0; i--)
                if (strcasecmp(ctl_json_text(json_array_get(findings, i - 1), "consumer"),
                               consumer) != 0)
                        (void)json_array_remove(findings, i - 1);
}

/* Explains why nothing was found of a consumer. 0: it holds nothing here. */
static int explain_nothing(const json_t *document, const char *consumer, Error *reterr)
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

static int heal_one(Ctl *ctl, const char *consumer, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = heal_consumer(ctl, consumer, &document, reterr);

        if (r < 0)
                return r;
        if (!find_item(json_object_get(document, "findings"), consumer)) {
                r = explain_nothing(document, consumer, reterr);
                if (r < 0)
                        return r;
                if (!ctl_wants_json(ctl) && !ctl->options.quiet) {
                        printf("Consumer %s holds nothing of this host in Placement.\n", consumer);
                        return EXIT_SUCCESS;
                }
        }
        keep_findings(document, consumer);
        return print_audit(ctl, document);
}

int ctl_check_heal(const CtlOptions *options, Error *reterr)
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

int ctl_verb_heal(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r;

        if (ctl->options.arguments[1])
                return heal_one(ctl, ctl->options.arguments[1], reterr);
        r = run_audit(ctl, ctl->options.dry_run ? "Audit" : "Heal", &document, reterr);
        return r < 0 ? r : print_audit(ctl, document);
}

int ctl_verb_consumers(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = run_audit(ctl, "Audit", &document, reterr);

        if (r < 0)
                return r;
        ctl_open_pager(ctl);
        ctl_print_document(ctl, document, ctl_consumers_print);
        return 0;
}
