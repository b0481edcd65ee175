/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the status of the agent: "computectl status" on a terminal, and one line for "watch".
 *
 * The document is an object (agent/bus/documents.c), and each part of the page has a function.
 * Reasons and pending writes are left out if there are none. The verdict is the first line, and its
 * colour follows the member "state", as the exit code does. */

#include "ctl/print/status.h"

#include "base/text.h"
#include "ctl/print/json.h"
#include "ctl/print/text.h"
#include "formats/format-names.h"
#include "formats/interface.h"

#include <inttypes.h>
#include <string.h>

#define INDENT      2 /* columns before the verdict */
#define LABEL_WIDTH 11

static bool has_text(const json_t *object, const char *key)
{
        return ctl_json_text(object, key)[0] != '\0';
}

/* Returns the number of pending writes of one kind: writes, removals or moves. In the status of an
 * agent of release 0.2, the number has another name. Returns 0 if it is under neither name. */
static uint64_t get_pending(const json_t *status, const char *kind)
{
        char name[32], old_name[32];

        snprintf(name, sizeof(name), "n_pending_%s", kind);
        snprintf(old_name, sizeof(old_name), "n_owed_%s", kind);
        return ctl_json_u64(status, json_object_get(status, name) ? name : old_name);
}

json_t *ctl_status_make_not_running(const char *why)
{
        return json_pack("{ss ss ss}", "format", STATUS_FORMAT, "state", "not-running", "summary",
                         why);
}

int ctl_status_exit(const json_t *status)
{
        const char *state = ctl_json_text(status, "state");

        if (strcmp(state, "not-running") == 0)
                return CTL_STATUS_NOT_RUNNING;
        return strcmp(state, STATE_OK) == 0 ? EXIT_SUCCESS : CTL_STATUS_NOT_WELL;
}

/* Returns the colour of the member "state" of a status or of one of its reasons. */
static CtlColour find_colour(const json_t *object)
{
        const char *state = ctl_json_text(object, "state");

        return strcmp(state, STATE_OK) == 0         ? CTL_GREEN
               : strcmp(state, STATE_DEGRADED) == 0 ? CTL_RED
                                                    : CTL_YELLOW;
}

/* Prints "synced; last equal Mon 2025-01-06 12:00:00 UTC; 3min ago". never: the words for a time
 * of 0. */
static void print_timed_field(CtlPage *page, const char *label, const char *state, const char *verb,
                              const char *never, uint64_t usec)
{
        char time[CTL_TEXT_MAX], relative[CTL_TEXT_MAX];

        if (usec == 0)
                ctl_page_field(page, LABEL_WIDTH, label, CTL_PLAIN, "%s; %s", state, never);
        else
                ctl_page_field(page, LABEL_WIDTH, label, CTL_PLAIN, "%s; %s %s; %s", state, verb,
                               ctl_text_time(time, usec),
                               ctl_text_relative(relative, usec, page->style.now_usec));
}

static void print_reasons(const json_t *status, CtlPage *page)
{
        const json_t *reason;
        size_t i;

        json_array_foreach(json_object_get(status, "reasons"), i, reason)
                ctl_page_field(page, LABEL_WIDTH, i == 0 ? "Reasons" : "", find_colour(reason),
                               "%s. See \"%s\"", ctl_json_text(reason, "text"),
                               ctl_json_text(reason, "command"));
}

/* Prints since when the sync state is the present one. A start of the agent begins a new state. */
static void print_since(const json_t *status, CtlPage *page)
{
        uint64_t usec = ctl_json_u64(status, "sync_since_usec");
        char time[CTL_TEXT_MAX], relative[CTL_TEXT_MAX];

        if (usec > 0)
                ctl_page_field(page, LABEL_WIDTH, "", CTL_PLAIN, "since %s; %s",
                               ctl_text_time(time, usec),
                               ctl_text_relative(relative, usec, page->style.now_usec));
}

/* Prints the node, its root provider and the last poll. The node is unknown before the first
 * poll. */
static void print_hypervisor(const json_t *status, CtlPage *page)
{
        uint64_t polled_usec = ctl_json_u64(status, "last_poll_usec");

        ctl_page_field(page, LABEL_WIDTH, "Node", CTL_PLAIN, "%s",
                       has_text(status, "node") ? ctl_json_text(status, "node")
                                                : "unknown before the first poll");
        ctl_page_field(page, LABEL_WIDTH, "Root", CTL_PLAIN, "%s", ctl_json_text(status, "root"));
        print_timed_field(page, "Driver", ctl_json_text(status, "driver"), "last polled",
                          "not polled yet", polled_usec);
        if (has_text(status, "hypervisor_error") && polled_usec > 0)
                ctl_page_field(page, LABEL_WIDTH, "", CTL_PLAIN,
                               "The data is from the last successful poll");
}

/* Prints the sync state. Adds the differences if nova-compute reports this host. If not, adds a
 * missing right to reshape, and the begin of the state unless it is "standalone" or "synced". */
static void print_sync(const json_t *status, CtlPage *page)
{
        const char *state = ctl_json_text(status, "sync_state");

        if (strcmp(state, SYNC_STATE_STANDALONE) == 0)
                ctl_page_field(page, LABEL_WIDTH, "Sync", CTL_PLAIN, "%s", state);
        else
                print_timed_field(page, "Sync", state, "last equal", "not equal since the start",
                                  ctl_json_u64(status, "last_sync_usec"));
        if (strcmp(state, SYNC_STATE_LEFT_TO_NOVA) == 0) {
                ctl_page_field(
                        page, LABEL_WIDTH, "", CTL_PLAIN,
                        "[agent] nova is %s. %" PRIu64
                        " request%s would make Placement equal to this host. See \"computectl plan\"",
                        ctl_json_text(status, "nova"), ctl_json_u64(status, "n_differences"),
                        text_plural(ctl_json_u64(status, "n_differences")));
                return;
        }
        if (strcmp(state, SYNC_STATE_STANDALONE) != 0 && strcmp(state, SYNC_STATE_SYNCED) != 0)
                print_since(status, page);
        if (strcmp(ctl_json_text(status, "reshape_access"), RESHAPE_ACCESS_REFUSED) == 0)
                ctl_page_field(page, LABEL_WIDTH, "", CTL_YELLOW,
                               "The user lacks the role service, so the agent cannot reshape");
}

/* Prints the decision about the local disk, the numbers of providers, claims, pending writes and
 * requests to Placement, and the version. Omits a decision without a text, pending writes if there
 * are none, and the requests of a standalone host. */
static void print_figures(const json_t *status, CtlPage *page)
{
        uint64_t writes = get_pending(status, "writes"), removals = get_pending(status, "removals"),
                 moves = get_pending(status, "moves");
        uint64_t n_requests = ctl_json_u64(status, "n_requests"),
                 n_writes = ctl_json_u64(status, "n_writes"),
                 n_conflicts = ctl_json_u64(status, "n_conflicts");

        if (has_text(status, "local_disk"))
                ctl_page_field(page, LABEL_WIDTH, "Disk", CTL_PLAIN, "%s",
                               ctl_json_text(status, "local_disk"));
        ctl_page_field(page, LABEL_WIDTH, "Providers", CTL_PLAIN, "%" PRIu64,
                       ctl_json_u64(status, "n_providers"));
        ctl_page_field(page, LABEL_WIDTH, "Claims", CTL_PLAIN, "%" PRIu64,
                       ctl_json_u64(status, "n_claims"));
        if (writes + removals + moves > 0)
                ctl_page_field(page, LABEL_WIDTH, "Pending", CTL_YELLOW,
                               "%" PRIu64 " to write to Placement, %" PRIu64 " to remove, %" PRIu64
                               " to move",
                               writes, removals, moves);
        if (strcmp(ctl_json_text(status, "sync_state"), SYNC_STATE_STANDALONE) != 0)
                ctl_page_field(page, LABEL_WIDTH, "Placement", CTL_PLAIN,
                               "%" PRIu64 " request%s, %" PRIu64 " write%s, %" PRIu64 " conflict%s",
                               n_requests, text_plural(n_requests), n_writes, text_plural(n_writes),
                               n_conflicts, text_plural(n_conflicts));
        ctl_page_field(page, LABEL_WIDTH, "Version", CTL_PLAIN, "%s",
                       ctl_json_text(status, "version"));
}

/* Prints a mark and "compute-agent on HOST: SUMMARY" behind it, wrapped at the terminal's width.
 * The mark and the summary have the colour, but not the text between them. So the place where the
 * summary begins is found after wrapping. */
static void print_running(const char *node, const char *summary, CtlColour colour, CtlPage *page)
{
        _cleanup_free_ char *text =
                text_format("compute-agent%s%s: %s", node[0] ? " on " : "", node, summary);
        char *rest;

        if (!text) {
                page->failed = true;
                return;
        }
        if (page->style.width > 2 * INDENT)
                ctl_text_wrap(text, page->style.width - INDENT);
        rest = text + strlen(text) - strlen(summary);
        ctl_page_write(page, colour, "%s", page->style.utf8 ? "●" : "*");
        fprintf(page->output, " %.*s%*s", (int)(rest - text), text, rest[-1] == '\n' ? INDENT : 0,
                "");
        ctl_page_lines(page, INDENT, colour, rest);
}

/* Prints the first line. An agent that does not run has a hollow mark, in ASCII "*", and no colour.
 */
static void print_verdict(const json_t *status, CtlPage *page)
{
        bool utf8 = page->style.utf8;
        _cleanup_free_ char *node = ctl_text_escape(ctl_json_text(status, "node"), utf8),
                            *summary = ctl_text_escape(ctl_json_text(status, "summary"), utf8);

        if (!node || !summary) {
                page->failed = true;
        } else if (ctl_status_exit(status) != CTL_STATUS_NOT_RUNNING) {
                print_running(node, summary, find_colour(status), page);
        } else {
                fputs(utf8 ? "○ " : "* ", page->output);
                ctl_page_rest(page, INDENT, CTL_PLAIN, "%s", ctl_json_text(status, "summary"));
        }
}

void ctl_status_print(const json_t *status, CtlPage *page)
{
        print_verdict(status, page);
        if (ctl_status_exit(status) == CTL_STATUS_NOT_RUNNING)
                return;
        print_reasons(status, page);
        print_hypervisor(status, page);
        print_sync(status, page);
        print_figures(status, page);
}

/* Sums the inventories of all providers by class: {"VCPU": {"used", "capacity"}}. */
static int sum_usage(const json_t *tree, json_t *sums)
{
        const json_t *provider;
        size_t i;

        json_array_foreach(json_object_get(tree, "providers"), i, provider) {
                const char *resource_class;
                json_t *inventory;

                json_object_foreach(json_object_get(provider, "inventories"), resource_class,
                                    inventory) {
                        json_t *sum = json_object_get(sums, resource_class);
                        _cleanup_json_ json_t *amounts =
                                json_pack("{sO? sO?}", "used", json_object_get(inventory, "used"),
                                          "capacity", json_object_get(inventory, "capacity"));

                        if (!sum &&
                            json_object_set_new(sums, resource_class, sum = json_object()) < 0)
                                return -ENOMEM;
                        if (!amounts || ctl_json_add_amounts(sum, amounts) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

void ctl_status_print_line(const json_t *status, const json_t *tree, CtlPage *page)
{
        _cleanup_json_ json_t *sums = json_object();
        const char *resource_class, *separator = "; ";
        json_t *sum;
        uint64_t n_providers = ctl_json_u64(status, "n_providers"),
                 n_claims = ctl_json_u64(status, "n_claims");

        if (ctl_status_exit(status) == CTL_STATUS_NOT_RUNNING) {
                ctl_page_write(page, CTL_PLAIN, "%s", ctl_json_text(status, "summary"));
                return;
        }
        page->failed |= !sums || (tree && sum_usage(tree, sums) < 0);
        ctl_page_write(page, CTL_PLAIN, "%s: %s; %" PRIu64 " provider%s, %" PRIu64 " claim%s",
                       ctl_json_text(status, "sync_state"), ctl_json_text(status, "summary"),
                       n_providers, text_plural(n_providers), n_claims, text_plural(n_claims));
        json_object_foreach(sums, resource_class, sum) {
                ctl_page_write(page, CTL_PLAIN, "%s%s %" PRIu64 "/%" PRIu64, separator,
                               resource_class, ctl_json_u64(sum, "used"),
                               ctl_json_u64(sum, "capacity"));
                separator = ", ";
        }
}
