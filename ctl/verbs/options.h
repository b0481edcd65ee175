/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The options of computectl: one table, from which the parsing, the check that an option belongs to
 * the verb, and the help are made. */

#include <jansson.h>

#include "base/resource-request.h"
#include "ctl/print/filter.h"
#include "ctl/print/json.h"

/* The request of "claim" and "explain": resources, layout, and the provider of each group. The
 * texts of the layout are borrowed. The member numa points to other members, so the struct must not
 * move. */
typedef struct CtlRequest {
        ResourceRequest resources;
        NumaOptions numa;
        const char *cpus[NUMA_REQUEST_CELLS_MAX + 1]; /* by cell; the rest is NULL */
        uint64_t memory_mb[NUMA_REQUEST_CELLS_MAX];
        RequestMappings mappings; /* providers that are given by their uuid */
        StringSet named;          /* "SUFFIX=NAME": the other providers */
        Error error; /* error of the first option that cannot be parsed; code 0: none */
} CtlRequest;

typedef struct CtlOptions {
        /* Options of all verbs. */
        CtlJson json;
        bool no_pager, no_legend, quiet, all;
        struct {
                char **names; /* "user@host"; owned */
                size_t n;
                size_t n_allocated;
        } hosts;          /* each host once: those of --host in their order, then those of the last
                             --hosts-file */
        const char *host; /* the first host, "user@host"; NULL: this one */
        const char *hosts_file;
        bool help, version;
        /* Options of some verbs; texts are borrowed from argv. */
        const char *config;
        const char *driver; /* option of discover */
        const char *os_cloud;
        const char *reason;
        const char *consumer, *project, *user, *consumer_type;
        const char *pid_file, *unit; /* options of claim */
        bool history, problems;
        CtlFilter filter;                /* the filters of claims and history */
        const char *since;               /* the text of filter.since_usec */
        const char *columns;             /* the columns of a table, in their order */
        bool config_only, hardware_only; /* the parts of doctor */
        bool allocations;                /* release also removes allocations of other writers */
        bool full;                       /* sync: read everything again */
        const char *timeout;             /* the time limit of sync, in seconds */
        bool undo;                       /* reshape and retire undo the last change */
        const char *direct;              /* option of migrate-inventory */
        bool dry_run, force; /* options of identity; dry_run: also heal, reshape and retire */
        bool yes;            /* heal, reshape and retire do not ask */
        bool plan;           /* the old spelling of --dry-run of reshape */
        bool xml;
        bool svg;
        bool resize_target;
        CtlRequest request; /* request of claim and explain */

        /* Begins with the verb; with --help or --version, or after an error, it can be empty.
         * Borrowed, NULL-terminated. */
        const char *const *arguments;
} CtlOptions;

typedef struct CtlOption {
        const char *name;
        char letter;         /* 0: none */
        const char *metavar; /* NULL: the option has no value */
        const char *verb;    /* "claim, explain"; NULL: all verbs */
        const char *help;
        enum {
                OPTION_FLAG,    /* a bool */
                OPTION_TEXT,    /* a const char * */
                OPTION_JSON,    /* the value can be left out */
                OPTION_HOST,    /* added to the hosts */
                OPTION_REQUEST, /* added to the request */
        } kind;                 /* destination of the value */
        size_t offset;          /* in CtlOptions */
} CtlOption;

extern const CtlOption ctl_options[]; /* ends with a NULL name */

/* Checks whether the option belongs to the verb, and not to all verbs. */
bool ctl_option_is_of(const char *name, const char *verb);

/* Frees the hosts and the request. */
void ctl_options_done(CtlOptions *options);

/* Parses the command line. argv is reordered, as getopt_long(3) does. Returns -EINVAL with words
 * for wrong usage, the error of opening the hosts file, -EIO for reading it, or -ENOMEM. ret must
 * be zeroed. After an error of an option, the arguments are set, but no further options. The caller
 * calls ctl_options_done() also after an error. */
int ctl_options_parse(int argc, char *argv[], CtlOptions *ret, Error *reterr);

/* Returns -EINVAL with words if an option could not be parsed, also if memory ran out for it. Other
 * errors are a group that has no resources and is in no list of --same-subtree, and a mapping of a
 * group that is not requested. */
int ctl_request_check(const CtlRequest *request, Error *reterr);

/* Finds the providers of mappings by name, in a document of TREE_FORMAT. Returns -EINVAL with words
 * if it has no such provider, -EINVAL without words if the provider has no valid uuid, or -ENOMEM.
 * Names before the failure stay resolved. */
int ctl_request_resolve(CtlRequest *request, const json_t *tree, Error *reterr);
