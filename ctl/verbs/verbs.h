/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verbs of computectl, in tables from which the dispatch, the help and the completion are made,
 * and which tests/lint/manuals.py compares with the manual page. */

#include <limits.h>

#include "ctl/ask/bus.h"
#include "ctl/print/page.h"
#include "ctl/verbs/options.h"

/* The command line, the output and the connection of a verb. */
typedef struct Ctl {
        CtlOptions options;
        CtlPage page; /* of standard output; what it keeps becomes the exit code at the end */
        pid_t pager;  /* 0: none runs */
        sd_bus *bus;  /* NULL: not opened yet */
} Ctl;

#define CTL_ANY_ARGUMENTS UINT_MAX

#define CTL_VERB_REMOTE  1u /* asks the agent, so that it can ask that of --host */
#define CTL_VERB_CHANGES 2u /* is not only a look */
#define CTL_VERB_RIGHTS  4u /* asks the agent what not everybody may */
#define CTL_VERB_HIDDEN  8u /* is not in the help: an old spelling, or not for people */

/* The flags of most verbs. */
#define CTL_LOCAL  0u
#define CTL_REMOTE CTL_VERB_REMOTE
#define CTL_RIGHTS (CTL_VERB_REMOTE | CTL_VERB_RIGHTS)
#define CTL_CHANGE (CTL_RIGHTS | CTL_VERB_CHANGES)

typedef struct CtlVerb {
        const char *name;
        const char *arguments; /* for the help, "" for none; "[…]" may be left out */
        const char *help;
        unsigned n_arguments; /* or CTL_ANY_ARGUMENTS; beside the verb's own name */
        unsigned flags;

        /* NULL, or looks for wrong usage before anything is asked: -EINVAL with words. */
        int (*check)(const CtlOptions *options, Error *reterr);

        /* Returns the exit code, or a negative errno with words. NULL for "help", which
         * computectl.c prints. */
        int (*run)(Ctl *ctl, Error *reterr);

        /* What shells offer for its arguments: "claims", "history" (claims that ended, too),
         * "devices", or the words themselves; NULL: nothing. */
        const char *completed;
} CtlVerb;

/* Runs a verb and ends its output; returns the exit code. */
typedef int (*CtlRunVerb)(const CtlVerb *verb, Ctl *ctl);

/* Runs a verb for each host of the options, in child processes that call run, and prints what they
 * printed. Returns the worst exit code, or a negative errno with words. Blocks. */
int ctl_hosts_run(Ctl *ctl, const CtlVerb *verb, CtlRunVerb run, Error *reterr);

/* Each file has a table of its verbs, which ends with a NULL name; all of them are in
 * ctl_verb_tables, which ends with NULL. */
extern const CtlVerb ctl_audit_verbs[], ctl_claim_verbs[], ctl_cordon_verbs[], ctl_doctor_verbs[],
        ctl_hook_verbs[], ctl_migrate_verbs[], ctl_report_verbs[], ctl_watch_verbs[];
extern const CtlVerb *const ctl_verb_tables[];

#define CTL_VERBS_FOREACH(verb)                                                 \
        for (const CtlVerb *const *table_ = ctl_verb_tables; *table_; table_++) \
                for (const CtlVerb *verb = *table_; verb->name; verb++)

/* The verb of the command line, with everything checked that can be before it runs. -EINVAL with
 * words: the number of arguments, what check() says, or the verb that may have been meant. */
int ctl_verb_find(const CtlOptions *options, const CtlVerb **ret, Error *reterr);

/* NULL: there is none. */
const CtlVerb *ctl_verb_named(const char *name);

void ctl_verbs_print_help(CtlPage *page);
