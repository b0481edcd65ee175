/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/retire.h"

#include <inttypes.h>

#include "ctl/print/json.h"

static size_t count(const json_t *document, const char *key)
{
        return json_array_size(json_object_get(document, key));
}

bool ctl_retire_is_refused(const json_t *document)
{
        return count(document, "holders") > 0 || count(document, "foreign") > 0;
}

static void print_names(const json_t *document, const char *key, CtlPage *page)
{
        const json_t *name;
        size_t i;

        json_array_foreach(json_object_get(document, key), i, name) {
                ctl_page_write(page, CTL_PLAIN, "  %s",
                               json_is_string(name) ? json_string_value(name) : "?");
                fputc('\n', page->output);
        }
}

static void print_holder(const json_t *holder, CtlPage *page)
{
        const char *guest = ctl_json_text(holder, "guest");
        bool placed = json_is_true(json_object_get(holder, "placed"));
        uint64_t claim = ctl_json_u64(holder, "claim");

        ctl_page_write(page, CTL_PLAIN, "  %s%s%s", guest, guest[0] ? "  " : "",
                       ctl_json_text(holder, "consumer"));
        if (claim > 0)
                fprintf(page->output, ", claim %" PRIu64, claim);
        if (placed)
                fputs(", has allocations in Placement", page->output);
        if (claim == 0 && !placed)
                fputs(", runs here", page->output);
        fputc('\n', page->output);
}

static void print_refusal(const json_t *document, CtlPage *page)
{
        const json_t *holder;
        size_t i;

        if (count(document, "holders") > 0)
                fputs("Still on this host:\n", page->output);
        json_array_foreach(json_object_get(document, "holders"), i, holder)
                print_holder(holder, page);
        if (count(document, "foreign") > 0)
                fputs("Below this host's provider, and not made by this agent:\n", page->output);
        print_names(document, "foreign", page);
        if (!page->style.legend)
                return;
        fputs("\nNothing was changed.", page->output);
        if (count(document, "holders") > 0)
                fputs(" Move the guests away. If a server is deleted, \"computectl heal CONSUMER\" removes its allocations.",
                      page->output);
        if (count(document, "foreign") > 0)
                fputs(" Whoever made these providers (Neutron, Cyborg) has to remove them.",
                      page->output);
        fputc('\n', page->output);
}

void ctl_retire_print(const json_t *document, CtlPage *page)
{
        bool done = json_is_true(json_object_get(document, "done"));

        if (ctl_retire_is_refused(document)) {
                print_refusal(document, page);
                return;
        }
        fputs(done ? "Removed from Placement:\n" : "To be removed from Placement:\n", page->output);
        print_names(document, "providers", page);
        if (page->style.legend)
                fputs(done ? "\nThe host is retired: \"computectl retire --undo\" takes it back.\n"
                           : "\nNothing was changed: \"computectl retire\" does it.\n",
                      page->output);
}
