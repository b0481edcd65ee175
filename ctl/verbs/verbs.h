/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What computectl can do: one table, from which the dispatch, the help and the completion are made,
 * and which tests/lint/manuals.py holds the manual page against. */

#include <limits.h>

#include "ctl/ask/bus.h"
#include "ctl/print/page.h"
#include "ctl/verbs/options.h"

/* What a verb has to work with. */
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

/* hosts.c: runs a verb for each host of the options, in child processes that call run, and prints
 * what they printed. Returns the worst exit code, or a negative errno with words. Blocks. */
int ctl_hosts_run(Ctl *ctl, const CtlVerb *verb, CtlRunVerb run, Error *reterr);

extern const CtlVerb ctl_verbs[]; /* ends with a NULL name */

/* The verb of the command line, with everything checked that can be before it runs. -EINVAL with
 * words: the number of arguments, what check() says, or the verb that may have been meant. */
int ctl_verb_find(const CtlOptions *options, const CtlVerb **ret, Error *reterr);

/* NULL: there is none. */
const CtlVerb *ctl_verb_named(const char *name);

void ctl_verbs_print_help(CtlPage *page);

/* Verbs of the table and checks of their usage, by their files. audit.c: */
int ctl_verb_audit(Ctl *ctl, Error *reterr);
int ctl_check_heal(const CtlOptions *options, Error *reterr);
int ctl_verb_heal(Ctl *ctl, Error *reterr);
int ctl_verb_consumers(Ctl *ctl, Error *reterr);

/* claims.c: */
int ctl_verb_claim(Ctl *ctl, Error *reterr);
int ctl_verb_claims(Ctl *ctl, Error *reterr);
int ctl_verb_confirm(Ctl *ctl, Error *reterr);
int ctl_verb_explain(Ctl *ctl, Error *reterr);
int ctl_verb_history(Ctl *ctl, Error *reterr);
int ctl_verb_move(Ctl *ctl, Error *reterr);
int ctl_verb_release(Ctl *ctl, Error *reterr);
int ctl_verb_show(Ctl *ctl, Error *reterr);
int ctl_verb_who(Ctl *ctl, Error *reterr);
int ctl_check_claim(const CtlOptions *options, Error *reterr);
int ctl_check_claims(const CtlOptions *options, Error *reterr);
int ctl_check_history(const CtlOptions *options, Error *reterr);
int ctl_check_explain(const CtlOptions *options, Error *reterr);
int ctl_check_id(const CtlOptions *options, Error *reterr);
int ctl_check_ids(const CtlOptions *options, Error *reterr);

/* cordon.c: */
int ctl_check_cordon(const CtlOptions *options, Error *reterr);
int ctl_verb_cordon(Ctl *ctl, Error *reterr);
int ctl_verb_uncordon(Ctl *ctl, Error *reterr);
int ctl_verb_drain(Ctl *ctl, Error *reterr);
int ctl_verb_retire(Ctl *ctl, Error *reterr);
int ctl_check_retire(const CtlOptions *options, Error *reterr);

/* doctor.c: */
int ctl_check_doctor(const CtlOptions *options, Error *reterr);
int ctl_verb_doctor(Ctl *ctl, Error *reterr);
int ctl_verb_check_config(Ctl *ctl, Error *reterr);
int ctl_verb_verify(Ctl *ctl, Error *reterr);

/* identity.c: */
int ctl_check_identity(const CtlOptions *options, Error *reterr);
int ctl_verb_identity(Ctl *ctl, Error *reterr);

/* report.c: */
int ctl_verb_report(Ctl *ctl, Error *reterr);

/* watch.c: */
int ctl_verb_watch(Ctl *ctl, Error *reterr);
