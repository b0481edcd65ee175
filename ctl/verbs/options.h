/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The options of computectl: one table, from which parsing, the check that an option belongs to the
 * verb, and the help are made. */

#include "ctl/print/filter.h"
#include "ctl/print/json.h"
#include "ctl/print/page.h"
#include "ctl/verbs/request.h"

/* The hosts of the command line, each once, in the order in which they were named. */
typedef struct CtlHosts {
        char **names; /* "user@host"; owned */
        size_t n;
        size_t n_allocated;
} CtlHosts;

typedef struct CtlOptions {
        /* of every verb */
        CtlJson json;
        bool no_pager, no_legend, quiet, all;
        CtlHosts hosts;   /* the hosts of --host and --hosts-file */
        const char *host; /* the first of them, "user@host"; NULL: this one */
        const char *hosts_file;
        bool help, version;
        /* of some; texts are borrowed from argv */
        const char *config;
        const char *driver; /* of discover */
        const char *os_cloud;
        const char *reason;
        const char *consumer, *project, *user, *consumer_type;
        const char *pid_file, *unit; /* of claim */
        bool history, problems;
        CtlFilter filter;                /* the filters of claims and history */
        const char *since;               /* the text of filter.since_usec */
        const char *columns;             /* the columns of a table, in their order */
        bool config_only, hardware_only; /* the parts of doctor */
        bool allocations;                /* release also what others wrote to Placement */
        bool full;                       /* sync: read everything again */
        const char *timeout;             /* the time limit of sync, in seconds */
        bool undo;                       /* reshape and retire put back what the last one did */
        const char *direct;              /* of migrate-inventory */
        bool dry_run, force;             /* of identity; dry_run also of heal, reshape and retire */
        bool yes;                        /* heal, reshape and retire ask nothing */
        bool plan;                       /* the old spelling of --dry-run of reshape */
        bool xml;
        bool svg;
        bool resize_target;
        CtlRequest request; /* of claim and explain */

        const char *const *arguments; /* verb first; borrowed, NULL-terminated */
} CtlOptions;

/* The place that the value of an option goes to. */
typedef enum CtlOptionKind {
        OPTION_FLAG,    /* a bool */
        OPTION_TEXT,    /* a const char * */
        OPTION_JSON,    /* the value can be left out */
        OPTION_HOST,    /* added to the hosts */
        OPTION_REQUEST, /* added to the request */
} CtlOptionKind;

typedef struct CtlOption {
        const char *name;
        char letter;         /* or 0 */
        const char *metavar; /* NULL: takes no value */
        const char *verb;    /* "claim, explain"; NULL: of every verb */
        const char *help;
        CtlOptionKind kind;
        size_t offset; /* in CtlOptions */
} CtlOption;

extern const CtlOption ctl_options[]; /* ends with a NULL name */

/* Checks whether the option of that name is one of the verb's own. */
bool ctl_option_is_of(const char *name, const char *verb);

void ctl_options_done(CtlOptions *options);

/* Reads the command line (argv is put in order, as getopt_long(3) does). -EINVAL with words for
 * wrong usage, -ENOMEM. ret must be zeroed; ctl_options_done() whatever comes back. */
int ctl_options_parse(int argc, char *argv[], CtlOptions *ret, Error *reterr);

/* A line of the help; what is long on the left has a line of its own. */
void ctl_help_line(const char *left, const char *help, FILE *output);

/* An empty line, and the title of a part of the help. */
void ctl_options_print_title(const char *title, CtlPage *page);

/* The options of a verb, then those of every verb; NULL: these alone. */
void ctl_options_print_help(const char *verb, CtlPage *page);
