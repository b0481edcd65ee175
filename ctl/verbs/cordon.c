/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The verbs that take the host or a device out of use: "cordon", "uncordon", "drain" and "retire".
 * A cordon is a state of the agent that lasts until "uncordon". A drain only lists the claims that
 * must move, and the guests that use the host or device without a claim of it. A retirement removes
 * the host from Placement, and "retire --undo" publishes it again, still cordoned. "retire" without
 * --undo fails if the host is retired already, or is not cordoned; --dry-run needs no cordon. A
 * retirement is refused while the host has claims, guests that are not shut off, or consumers in
 * Placement. It is also refused while the host has providers that another service created. If
 * nothing prevents it, "retire" asks a person at the terminal first, unless --undo, --yes or
 * --dry-run is given.
 *
 * "cordon", "uncordon" and "retire --undo" return 1 if Placement does not have the change yet.
 * "drain" returns 3 while there are claims or guests to list. "retire" returns 3 if claims, guests,
 * consumers or providers prevent it, also with --dry-run.
 *
 * Tests: tests/integration/agent/test_cordon.py tests/integration/agent/test_retire.py */

#include "ctl/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/ask/bus.h"
#include "ctl/print/changes.h"
#include "ctl/print/claims.h"
#include "ctl/print/filter.h"
#include "ctl/print/json.h"
#include "ctl/verbs/common.h"
#include "drivers/host/snapshot.h"
#include "formats/format-names.h"

#define CORDON_TIMEOUT_USEC (5 * 60 * USEC_PER_SEC)
#define EXIT_OCCUPIED       3 /* claims, guests, consumers or providers are left */

/* Returns the device of the command line; "": the host. */
static const char *device_of(Ctl *ctl)
{
        return ctl->options.arguments[1] ? ctl->options.arguments[1] : "";
}

/* Returns a sentence with the limits of a cordon of the host, which stops schedulers and claims,
 * but no guest. Returns "" for a device, for uncordon and with --no-legend. */
static const char *limits_of(Ctl *ctl, const char *device, const char *reason)
{
        if (!reason || device[0] || ctl->options.no_legend)
                return "";
        return "The cordon does not stop running guests, or guests that virsh or libvirt's hook starts.\n";
}

/* Changes a cordon and prints the result. reason NULL: removes it. The exit code is EXIT_FAILURE if
 * Placement does not have the change yet. */
static int change(Ctl *ctl, const char *method, const char *reason, Error *reterr)
{
        _cleanup_free_ char *why = NULL;
        const char *device = device_of(ctl);
        int r = ctl_connect(ctl, reterr);

        if (r < 0)
                return r;
        r = ctl_bus_call(ctl->bus, method, CORDON_TIMEOUT_USEC, &why, reterr, reason ? "ss" : "s",
                         device, reason);
        if (r < 0)
                return r;
        ctl_print_done(ctl,
                       json_pack("{ss sb sb ss}", "device", device, "cordoned", reason != NULL,
                                 "published", why[0] == '\0', "error", why),
                       "%s%s is %s%s%s.\n%s", device[0] ? "" : "The host", device,
                       reason ? "cordoned" : "uncordoned", why[0] ? ". Not published yet: " : "",
                       why, limits_of(ctl, device, reason));
        return why[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int verb_cordon(Ctl *ctl, Error *reterr)
{
        return change(ctl, "Cordon", ctl->options.reason ? ctl->options.reason : "", reterr);
}

static int verb_uncordon(Ctl *ctl, Error *reterr)
{
        return change(ctl, "Uncordon", NULL, reterr);
}

/* Keeps only the claims of a device or provider. Adds the guests that have it, now or at their next
 * start, or might have it, without such a claim (ctl_claims_keep()). */
static int keep_device(Ctl *ctl, const char *name, const json_t *host, json_t *claims,
                       Error *reterr)
{
        _cleanup_json_ json_t *tree = NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_TREE, TREE_FORMAT, &tree, reterr);

        return r < 0 ? r : ctl_claims_keep(claims, host, tree, name, reterr);
}

/* Prints that nothing is left. A driver other than libvirt knows only guests with a claim. With
 * such a driver the text mentions only claims, and says that other guests are unknown. */
static void print_drained(Ctl *ctl, const json_t *host)
{
        const char *driver = ctl_json_text(host, "driver");
        const char *what = device_of(ctl)[0] ? device_of(ctl) : "this host";

        if (strcmp(driver, "libvirt") == 0)
                printf("Neither claims nor guests use %s.\n", what);
        else
                printf("No claims use %s. The driver %s does not know guests without a claim.\n",
                       what, driver);
}

/* Lists the claims that must move, and the guests that use the host or device without a claim of
 * it. Fails before the first poll, which reads the guests. The exit code is 0 without either, else
 * EXIT_OCCUPIED, so that scripts can wait for the last one. */
static int verb_drain(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL, *host = NULL;
        const char *device = device_of(ctl);
        bool empty;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_CLAIMS, CLAIMS_FORMAT, &document, reterr);

        if (r >= 0)
                r = ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &host, reterr);
        if (r >= 0 && device[0])
                r = keep_device(ctl, device, host, document, reterr);
        else if (r >= 0 && ctl_claims_add_guests(document, host) < 0)
                r = error_oom(reterr);
        if (r < 0)
                return r;
        empty = json_array_size(json_object_get(document, "claims")) == 0 &&
                json_array_size(json_object_get(document, "guests")) == 0;
        ctl_open_pager(ctl);
        if (ctl->options.json)
                ctl_json_print(document, ctl->options.json, &ctl->page);
        else if (empty && !ctl->options.quiet)
                print_drained(ctl, host);
        else if (!ctl->options.quiet)
                ctl_claims_print(document, false, &ctl->page);
        return empty ? EXIT_SUCCESS : EXIT_OCCUPIED;
}

static int check_retire(const CtlOptions *options, Error *reterr)
{
        return options->dry_run && options->undo
                       ? error_setf(reterr, EINVAL, "retire: --dry-run or --undo, not both")
                       : 0;
}

/* Takes a host back into Placement. The cordon of the retirement remains. */
static int undo_retire(Ctl *ctl, Error *reterr)
{
        _cleanup_free_ char *why = NULL;
        int r = ctl_call(ctl, "UndoRetire", CORDON_TIMEOUT_USEC, &why, reterr);

        if (r < 0)
                return r;
        ctl_print_done(
                ctl,
                json_pack("{sb sb ss}", "retired", 0, "published", why[0] == '\0', "error", why),
                "The host is no longer retired%s%s.\nIt stays cordoned. To accept claims again, run \"computectl uncordon\".\n",
                why[0] ? ". Not published yet: " : "", why);
        return why[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int call_retire(Ctl *ctl, const char *method, json_t **ret, Error *reterr)
{
        return ctl_call_document(ctl, method, CORDON_TIMEOUT_USEC, RETIRE_FORMAT, ret, reterr);
}

/* Prints the providers that would be removed. Leaves out the legend, which tells the operator to
 * run "computectl retire": this command already runs, and asks next. */
static void print_removals(const json_t *document, CtlPage *page)
{
        bool legend = page->style.legend;

        page->style.legend = false;
        ctl_retire_print(document, page);
        page->style.legend = legend;
}

/* Asks the person, and retires the host. If the document has a reason against it, does neither.
 * Replaces the document by that of the retirement. */
static int ask_and_retire(Ctl *ctl, json_t **document, Error *reterr)
{
        _cleanup_json_ json_t *removals = TAKE_PTR(*document);
        int r;

        if (ctl_retire_is_refused(removals)) {
                *document = TAKE_PTR(removals);
                return 0;
        }
        r = ctl_ask(ctl, removals, print_removals, "Retire this host?", reterr);
        return r < 0 ? r : call_retire(ctl, "Retire", document, reterr);
}

/* Retires the host, or shows with --dry-run what a retirement would remove. The exit code is
 * EXIT_OCCUPIED if claims, guests, consumers or providers prevent it. */
static int verb_retire(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        bool asks = ctl_must_ask(ctl);
        int r;

        if (ctl->options.undo)
                return undo_retire(ctl, reterr);
        r = call_retire(ctl, asks || ctl->options.dry_run ? "GetRetire" : "Retire", &document,
                        reterr);
        if (r >= 0 && asks)
                r = ask_and_retire(ctl, &document, reterr);
        if (r < 0)
                return r;
        if (ctl->options.json || !ctl->options.quiet)
                ctl_print_document(ctl, document, ctl_retire_print);
        return ctl_retire_is_refused(document) ? EXIT_OCCUPIED : EXIT_SUCCESS;
}

const CtlVerb ctl_cordon_verbs[] = {
        { "cordon", "[DEVICE]", "Reject new claims on the host or a device", 1, CTL_CHANGE, NULL,
          verb_cordon, "devices" },
        { "uncordon", "[DEVICE]", "Accept claims on the host or a device again", 1, CTL_CHANGE,
          NULL, verb_uncordon, "devices" },
        { "drain", "[DEVICE]", "List what must move (exit code 0 or 3)", 1, CTL_REMOTE, NULL,
          verb_drain, "devices" },
        { "retire", "", "Remove a host without guests from Placement", 0, CTL_CHANGE, check_retire,
          verb_retire, NULL },
        { NULL, NULL, NULL, 0, CTL_LOCAL, NULL, NULL, NULL },
};
