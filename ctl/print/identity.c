/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the identity of this host in Placement for "computectl identity" (document:
 * IDENTITY_FORMAT), and derives the exit code. It is 1 if a change was rejected, and for "check" if
 * the identity is not good. Pure, except that it writes to the page's output.
 *
 * "show" prints the known facts, and with a legend the verdict of an identity that is not good.
 * "adopt" and "rename" print the changes, and the verdict when they are done. "check" prints only
 * the verdict, why Placement could not be read, and the advice. Invariant: if "adopt" or "rename"
 * was rejected, the reason is printed in place of the verdict. If a rename failed, the printed
 * changes are those of the plan, and Placement can have some of them. An unknown name or uuid of
 * this host, or an unknown provider, is printed in words. Other unknown facts are left out. With
 * --dry-run, "adopt" prints the provider that it would adopt. */

#include "ctl/print/identity.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "ctl/print/json.h"
#include "ctl/print/text.h"

#define LABEL_WIDTH 12

static bool is_state(const json_t *document, const char *state)
{
        return strcmp(ctl_json_text(document, "state"), state) == 0;
}

static void print_line(const char *label, const char *text, CtlPage *page)
{
        ctl_page_field(page, LABEL_WIDTH, label, CTL_PLAIN, "%s", text);
}

/* Prints "UUID, named host1, generation 4, used by 2 consumers, changed 3min ago". An unknown
 * number of consumers, or time of the change, is left out. */
static void print_provider(const char *label, const json_t *provider, CtlPage *page)
{
        json_int_t consumers = json_integer_value(json_object_get(provider, "consumers"));
        uint64_t modified_usec = ctl_json_u64(provider, "modified_usec");
        char age[CTL_TEXT_MAX] = "", held[64] = "";

        if (consumers >= 0)
                snprintf(held, sizeof(held), ", used by %" JSON_INTEGER_FORMAT " consumer%s",
                         consumers, text_plural(consumers));
        if (modified_usec > 0)
                (void)ctl_text_relative(age, modified_usec, page->style.now_usec);
        ctl_page_field(page, LABEL_WIDTH, label, CTL_PLAIN,
                       "%s, named %.200s%s, generation %" PRIu64 "%s%s%s",
                       ctl_json_text(provider, "uuid"), ctl_json_text(provider, "name"),
                       json_is_true(json_object_get(provider, "root")) ? ""
                                                                       : ", below another provider",
                       ctl_json_u64(provider, "generation"), held, age[0] ? ", changed " : "", age);
}

/* Prints the provider with the uuid of this host, or why it is unknown. */
static void print_own(const json_t *document, CtlPage *page)
{
        const json_t *own = json_object_get(document, "own");
        const char *why = ctl_json_text(document, "placement_error");

        if (why[0] || !json_is_object(own)) {
                print_line("Placement", why[0] ? why : "no provider with this uuid", page);
                return;
        }
        print_provider("Placement", own, page);
        ctl_page_field(page, LABEL_WIDTH, "Children", CTL_PLAIN, "%" PRIu64 " provider%s",
                       ctl_json_u64(document, "below"),
                       text_plural(ctl_json_u64(document, "below")));
}

/* Prints the facts of "show". The provider in Placement that has the name of this host but another
 * uuid is printed last. */
static void print_facts(const json_t *document, CtlPage *page)
{
        const json_t *holder = json_object_get(document, "holder");
        const char *file = ctl_json_text(document, "file"), *name = ctl_json_text(document, "name");
        const char *uuid = ctl_json_text(document, "uuid");

        print_line("Host", name[0] ? name : "unknown: the hypervisor does not answer", page);
        print_line("Uuid", uuid[0] ? uuid : "none yet", page);
        if (file[0])
                print_line("Read from", file, page);
        print_own(document, page);
        if (json_is_object(holder) && strcmp(ctl_json_text(holder, "uuid"), uuid) != 0)
                print_provider("Same name", holder, page);
}

static void print_changes(const json_t *document, CtlPage *page)
{
        const json_t *change;
        size_t i;

        json_array_foreach(json_object_get(document, "changes"), i, change) {
                ctl_page_write(page, CTL_PLAIN, "%s  %s %s %s", ctl_json_text(change, "uuid"),
                               ctl_json_text(change, "from"), page->style.utf8 ? "→" : "->",
                               ctl_json_text(change, "to"));
                fputc('\n', page->output);
        }
}

static void print_sentence(const char *text, CtlColour colour, CtlPage *page)
{
        ctl_page_rest(page, 0, colour, "%s.", text);
}

/* Prints the verdict, why Placement could not be read, and the advice. */
static void print_check(const json_t *document, CtlPage *page)
{
        const char *why = ctl_json_text(document, "placement_error");
        const char *advice = ctl_json_text(document, "advice");

        print_sentence(ctl_json_text(document, "text"),
                       is_state(document, "good") ? CTL_GREEN : CTL_YELLOW, page);
        if (why[0])
                print_sentence(why, CTL_PLAIN, page);
        if (advice[0])
                print_sentence(advice, CTL_PLAIN, page);
}

void ctl_identity_print(const json_t *document, const char *word, CtlPage *page)
{
        const char *refused = ctl_json_text(document, "refused");
        bool shows = strcmp(word, "show") == 0;

        if (strcmp(word, "check") == 0) {
                print_check(document, page);
                return;
        }
        if (shows)
                print_facts(document, page);
        else
                print_changes(document, page);
        if (refused[0])
                print_sentence(refused, CTL_RED, page);
        else if (json_is_true(json_object_get(document, "done")) ||
                 (shows && !is_state(document, "good") && page->style.legend))
                print_check(document, page);
        else if (strcmp(word, "adopt") == 0)
                print_provider("Would adopt", json_object_get(document, "holder"), page);
}

int ctl_identity_exit(const json_t *document, const char *word)
{
        bool well = strcmp(word, "check") == 0 ? is_state(document, "good")
                                               : !ctl_json_text(document, "refused")[0];

        return well ? EXIT_SUCCESS : EXIT_FAILURE;
}
