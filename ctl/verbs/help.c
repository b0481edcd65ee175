/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the help of computectl or of one verb. Its lines are made from the tables of verbs and
 * options, so a new option needs no change here. A new verb needs its name in groups[], unless it
 * is hidden.
 *
 * Tests: tests/unit/ctl/verbs/test-options.c */

#include "ctl/verbs/help.h"

#include <string.h>

#include "ctl/print/text.h"

#define HELP_COLUMN 33

/* The verbs of the help, by their purpose. */
static const struct {
        const char *title, *verbs[12];
} groups[] = {
        { "Look", { "status", "tree", "watch", "discover", "plan", "history", "help" } },
        { "Check", { "doctor", "audit", "cat-config", "report" } },
        { "Claims", { "claims", "show", "who", "explain", "claim", "confirm", "move", "release" } },
        { "Maintain",
          { "sync", "reload", "heal", "cordon", "uncordon", "drain", "retire", "reshape" } },
        { "Identity", { "identity" } },
};

/* Prints an empty line and the title of a part of the help. */
static void print_title(const char *title, CtlPage *page)
{
        fputc('\n', page->output);
        ctl_page_write(page, CTL_HEADING, "%s:", title);
        fputc('\n', page->output);
}

/* Prints a line of the help. A long left part gets a line of its own. */
static void print_line(const char *left, const char *help, FILE *output)
{
        if (strlen(left) < HELP_COLUMN)
                fprintf(output, "%-*s%s\n", HELP_COLUMN, left, help);
        else
                fprintf(output, "%s\n%*s%s\n", left, HELP_COLUMN, "", help);
}

/* Prints the line of an option, with its letter and value. */
static void print_option(const CtlOption *option, FILE *output)
{
        char left[CTL_TEXT_MAX];

        bool optional = option->kind == OPTION_JSON;

        snprintf(left, sizeof(left), "  %c%c%s--%s%s%s%s%s", option->letter ? '-' : ' ',
                 option->letter ? option->letter : ' ', option->letter ? ", " : "  ", option->name,
                 optional ? "[" : "", option->metavar ? "=" : "",
                 option->metavar ? option->metavar : "", optional ? "]" : "");
        print_line(left, option->help, output);
}

/* Prints below a title the options of a verb, or (NULL) those that every verb has. Without options
 * there is no title. */
static void print_options(const char *title, const char *verb, CtlPage *page)
{
        bool any = false;

        for (const CtlOption *option = ctl_options; option->name; option++) {
                if (verb ? !ctl_option_is_of(option->name, verb) : option->verb != NULL)
                        continue;
                if (!any)
                        print_title(title, page);
                any = true;
                print_option(option, page->output);
        }
}

static void print_verbs(CtlPage *page)
{
        for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
                print_title(groups[i].title, page);
                for (const char *const *name = groups[i].verbs; *name; name++) {
                        const CtlVerb *verb = ctl_verb_named(*name);
                        char left[CTL_TEXT_MAX];

                        snprintf(left, sizeof(left), "  %s %s", verb->name, verb->arguments);
                        print_line(left, verb->help, page->output);
                }
        }
}

static void print_help_of_verb(const CtlVerb *verb, CtlPage *page)
{
        fprintf(page->output, "computectl [OPTIONS…] %s%s%s\n\n%s.\n", verb->name,
                verb->arguments[0] ? " " : "", verb->arguments, verb->help);
        print_options("Options", verb->name, page);
        print_options("Options of every verb", NULL, page);
        fputs("\nSee computectl(1).\n", page->output);
}

void ctl_help_print(const CtlVerb *verb, CtlPage *page)
{
        if (verb) {
                print_help_of_verb(verb, page);
                return;
        }
        fputs("computectl [OPTIONS…] [VERB]\n"
              "\n"
              "Shows the state of compute-agent, which publishes this host to OpenStack\nPlacement, and claims resources of the host.\n",
              page->output);
        print_verbs(page);
        print_options("Options", NULL, page);
        fputs("\nSee \"computectl VERB --help\" for the options of a verb, and computectl(1).\n",
              page->output);
}
