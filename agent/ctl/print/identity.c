/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/identity.h"

#include <inttypes.h>
#include <string.h>

#include "agent/ctl/print/field.h"
#include "agent/ctl/print/json.h"
#include "agent/ctl/print/text.h"
#include "base/text.h"

#define LABEL_WIDTH 12

static bool is_state(const json_t *document, const char *state)
{
        return strcmp(ctl_json_text(document, "state"), state) == 0;
}

static int print_line(const char *label, const char *text, const CtlStyle *style, FILE *output)
{
        return ctl_field_print(style, LABEL_WIDTH, label, CTL_PLAIN, text, output);
}

/* "named host1, root, generation 4, 2 consumers, changed 3min ago" */
static int print_provider(const char *label, const json_t *provider, const CtlStyle *style,
                          FILE *output)
{
        json_int_t consumers = json_integer_value(json_object_get(provider, "consumers"));
        uint64_t modified_usec = ctl_json_u64(provider, "modified_usec");
        char text[512], age[CTL_TEXT_MAX] = "", held[64] = "";

        if (consumers >= 0)
                snprintf(held, sizeof(held), ", held by %" JSON_INTEGER_FORMAT " consumer%s",
                         consumers, consumers == 1 ? "" : "s");
        if (modified_usec > 0)
                (void)ctl_text_relative(age, modified_usec, style->now_usec);
        snprintf(text, sizeof(text), "%s, named %.200s%s, generation %" PRIu64 "%s%s%s",
                 ctl_json_text(provider, "uuid"), ctl_json_text(provider, "name"),
                 json_is_true(json_object_get(provider, "root")) ? "" : ", below another one",
                 ctl_json_u64(provider, "generation"), held, age[0] ? ", changed " : "", age);
        return print_line(label, text, style, output);
}

static int print_own(const json_t *document, const CtlStyle *style, FILE *output)
{
        const json_t *own = json_object_get(document, "own");
        const char *why = ctl_json_text(document, "placement_error");
        char below[80];
        int r;

        if (why[0])
                return print_line("Placement", why, style, output);
        if (!json_is_object(own))
                return print_line("Placement", "no provider with this uuid", style, output);
        r = print_provider("Placement", own, style, output);
        if (r < 0)
                return r;
        snprintf(below, sizeof(below), "%" PRIu64 " provider(s)", ctl_json_u64(document, "below"));
        return print_line("Below it", below, style, output);
}

static int print_facts(const json_t *document, const CtlStyle *style, FILE *output)
{
        const json_t *holder = json_object_get(document, "holder");
        const char *file = ctl_json_text(document, "file"), *name = ctl_json_text(document, "name");
        const char *uuid = ctl_json_text(document, "uuid");
        int r = print_line("Host", name[0] ? name : "not known: the hypervisor does not answer",
                           style, output);

        if (r == 0)
                r = print_line("Uuid", uuid[0] ? uuid : "none yet", style, output);
        if (r == 0 && file[0])
                r = print_line("Read from", file, style, output);
        if (r == 0)
                r = print_own(document, style, output);
        if (r == 0 && json_is_object(holder) && strcmp(ctl_json_text(holder, "uuid"), uuid) != 0)
                r = print_provider("Its name has", holder, style, output);
        return r;
}

static int print_changes(const json_t *document, const CtlStyle *style, FILE *output)
{
        const json_t *change;
        size_t i;

        json_array_foreach(json_object_get(document, "changes"), i, change) {
                _cleanup_free_ char *from =
                        ctl_text_escape(ctl_json_text(change, "from"), style->utf8);
                _cleanup_free_ char *to = ctl_text_escape(ctl_json_text(change, "to"), style->utf8);

                if (!from || !to)
                        return -ENOMEM;
                fprintf(output, "%s  %s %s %s\n", ctl_json_text(change, "uuid"), from,
                        style->utf8 ? "→" : "->", to);
        }
        return 0;
}

static int print_sentence(const char *text, const CtlStyle *style, CtlColour colour, FILE *output)
{
        _cleanup_free_ char *sentence = text_format("%s.", text), *clean = NULL;

        if (!sentence)
                return -ENOMEM;
        clean = ctl_text_escape(sentence, style->utf8);
        if (!clean)
                return -ENOMEM;
        if (style->width > 0)
                ctl_text_wrap(clean, style->width);
        ctl_style_write(style, colour, clean, 0, output);
        return 0;
}

int ctl_identity_print_check(const json_t *document, const CtlStyle *style, FILE *output)
{
        const char *why = ctl_json_text(document, "placement_error");
        const char *advice = ctl_json_text(document, "advice");
        bool good = is_state(document, "good");
        int r = print_sentence(ctl_json_text(document, "text"), style,
                               good ? CTL_GREEN : CTL_YELLOW, output);

        if (r == 0 && why[0])
                r = print_sentence(why, style, CTL_PLAIN, output);
        if (r == 0 && advice[0])
                r = print_sentence(advice, style, CTL_PLAIN, output);
        return r;
}

int ctl_identity_print(const json_t *document, const char *word, const CtlStyle *style,
                       FILE *output)
{
        const char *refused = ctl_json_text(document, "refused");
        bool shows = strcmp(word, "show") == 0;
        int r = shows ? print_facts(document, style, output)
                      : print_changes(document, style, output);

        if (r < 0)
                return r;
        if (refused[0])
                return print_sentence(refused, style, CTL_RED, output);
        if (json_is_true(json_object_get(document, "done")) ||
            (shows && !is_state(document, "good") && style->legend))
                return ctl_identity_print_check(document, style, output);
        if (strcmp(word, "adopt") == 0)
                return print_provider("Would adopt", json_object_get(document, "holder"), style,
                                      output);
        return 0;
}

int ctl_identity_exit(const json_t *document, const char *word)
{
        bool well = strcmp(word, "check") == 0 ? is_state(document, "good")
                                               : !ctl_json_text(document, "refused")[0];

        return well ? EXIT_SUCCESS : EXIT_FAILURE;
}
