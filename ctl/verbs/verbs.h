/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verbs of computectl, in tables. The dispatch, the help and the completion are made from them,
 * and tests/lint/manuals.py compares them with the manual page. */

#include <limits.h>

#include "ctl/ask/bus.h"
#include "ctl/print/page.h"
#include "ctl/verbs/options.h"

/* The command line, the output and the connection of a run. */
typedef struct Ctl {
        CtlOptions options;
        CtlPage page; /* page of standard output; its failures decide about the exit code at the end
                       */
        pid_t pager;  /* 0: does not run */
        sd_bus *bus;  /* NULL: not open */
} Ctl;

#define CTL_ANY_ARGUMENTS UINT_MAX

#define CTL_VERB_REMOTE  1u /* asks the agent, so --host is possible */
#define CTL_VERB_CHANGES 2u /* changes a state */
#define CTL_VERB_RIGHTS  4u /* calls methods that need rights */
#define CTL_VERB_HIDDEN  8u /* left out of the help: an old spelling, or not for people */

/* The flags of most verbs. */
#define CTL_LOCAL  0u
#define CTL_REMOTE CTL_VERB_REMOTE
#define CTL_RIGHTS (CTL_VERB_REMOTE | CTL_VERB_RIGHTS)
#define CTL_CHANGE (CTL_RIGHTS | CTL_VERB_CHANGES)

typedef struct CtlVerb {
        const char *name;
        const char *arguments; /* for the help; "": none; "[…]" is optional */
        const char *help;
        unsigned n_arguments; /* without the verb; or CTL_ANY_ARGUMENTS */
        unsigned flags;

        /* Checks the usage before the agent is asked; -EINVAL with words. NULL: no check. */
        int (*check)(const CtlOptions *options, Error *reterr);

        /* Returns the exit code, or a negative errno with words. NULL for "help", which
         * computectl.c prints. */
        int (*run)(Ctl *ctl, Error *reterr);

        /* Completion of its arguments: "claims", "history" (also ended claims), "devices", or the
         * words themselves. NULL: none. */
        const char *completed;
} CtlVerb;

/* Runs a verb for each host of the options, in child processes that call run, and prints their
 * outputs. Returns the worst exit code, or a negative errno with words and without outputs. Blocks.
 * The callback run runs a verb, ends its output, and returns its exit code. */
int ctl_hosts_run(Ctl *ctl, const CtlVerb *verb, int (*run)(const CtlVerb *verb, Ctl *ctl),
                  Error *reterr);

/* The verbs of each file; a table ends with a NULL name. ctl_verb_tables has all of them and ends
 * with NULL. */
extern const CtlVerb ctl_audit_verbs[], ctl_claim_verbs[], ctl_cordon_verbs[], ctl_doctor_verbs[],
        ctl_hook_verbs[], ctl_migrate_verbs[], ctl_report_verbs[], ctl_watch_verbs[];
extern const CtlVerb *const ctl_verb_tables[];

#define CTL_VERBS_FOREACH(verb)                                                 \
        for (const CtlVerb *const *table_ = ctl_verb_tables; *table_; table_++) \
                for (const CtlVerb *verb = *table_; verb->name; verb++)

/* Finds the verb of the command line and checks its usage. -EINVAL with words: the number of
 * arguments, --host, the words of check(), or a similar verb. The result is static. */
int ctl_verb_find(const CtlOptions *options, const CtlVerb **ret, Error *reterr);

/* Finds a verb by its name. NULL: there is none. */
const CtlVerb *ctl_verb_named(const char *name);
