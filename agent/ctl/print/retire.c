/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/retire.h"

#include <inttypes.h>

#include "agent/ctl/print/json.h"
#include "agent/ctl/print/text.h"

static size_t count(const json_t *document, const char *key)
{
        return json_array_size(json_object_get(document, key));
}

bool ctl_retire_is_refused(const json_t *document)
{
        return count(document, "holders") > 0 || count(document, "foreign") > 0;
}

static void print_names(const json_t *document, const char *key, const CtlStyle *style,
                        FILE *output)
{
        const json_t *name;
        size_t i;

        json_array_foreach(json_object_get(document, key), i, name) {
                _cleanup_free_ char *text = ctl_text_escape(
                        json_is_string(name) ? json_string_value(name) : "?", style->utf8);

                fprintf(output, "  %s\n", text ? text : "?");
        }
}

static void print_holder(const json_t *holder, const CtlStyle *style, FILE *output)
{
        _cleanup_free_ char *guest = ctl_text_escape(ctl_json_text(holder, "guest"), style->utf8),
                            *consumer =
                                    ctl_text_escape(ctl_json_text(holder, "consumer"), style->utf8);
        bool placed = json_is_true(json_object_get(holder, "placed"));
        uint64_t claim = ctl_json_u64(holder, "claim");

        fprintf(output, "  %s%s%s", guest ? guest : "", guest && guest[0] ? "  " : "",
                consumer ? consumer : "?");
        if (claim > 0)
                fprintf(output, ", claim %" PRIu64, claim);
        if (placed)
                fputs(", has allocations in Placement", output);
        if (claim == 0 && !placed)
                fputs(", runs here", output);
        fputc('\n', output);
}

static void print_refusal(const json_t *document, const CtlStyle *style, FILE *output)
{
        const json_t *holder;
        size_t i;

        if (count(document, "holders") > 0)
                fputs("Still on this host:\n", output);
        json_array_foreach(json_object_get(document, "holders"), i, holder)
                print_holder(holder, style, output);
        if (count(document, "foreign") > 0)
                fputs("Below this host's provider, and not made by this agent:\n", output);
        print_names(document, "foreign", style, output);
        if (!style->legend)
                return;
        fputs("\nNothing was changed.", output);
        if (count(document, "holders") > 0)
                fputs(" Move the guests away; what is left of those that are gone, \"computectl heal\" removes.",
                      output);
        if (count(document, "foreign") > 0)
                fputs(" Whoever made these providers (Neutron, Cyborg) has to remove them.",
                      output);
        fputc('\n', output);
}

void ctl_retire_print(const json_t *document, const CtlStyle *style, FILE *output)
{
        bool done = json_is_true(json_object_get(document, "done"));

        if (ctl_retire_is_refused(document)) {
                print_refusal(document, style, output);
                return;
        }
        fputs(done ? "Removed from Placement:\n" : "To be removed from Placement:\n", output);
        print_names(document, "providers", style, output);
        if (style->legend)
                fputs(done ? "\nThe host is retired: \"computectl retire --undo\" takes it back.\n"
                           : "\nNothing was changed: \"computectl retire\" does it.\n",
                      output);
}
