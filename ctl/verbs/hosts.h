/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A verb for several hosts: "computectl -H host1,host2" and "--hosts-file". Each host is a child
 * process; all are printed in the order of the command line. */

#include "base/error.h"

/* The hosts of the command line, each once, in the order in which they were named. */
typedef struct CtlHosts {
        char **names; /* "user@host"; owned */
        size_t n;
        size_t n_allocated;
} CtlHosts;

void ctl_hosts_done(CtlHosts *hosts);

/* Adds the names of a list that commas separate. -EINVAL with words for an empty name or one that
 * begins with "-", -ENOMEM. */
int ctl_hosts_add(CtlHosts *hosts, const char *list, Error *reterr);

/* Adds the names of a file, one on each line; "-" is standard input. "#" begins a comment. Negative
 * errno with words, also if the file names no host. */
int ctl_hosts_read(CtlHosts *hosts, const char *path, Error *reterr);

/* Returns the worse of two exit codes of computectl: what could not be done (1) before what is down
 * or in the way (3), before the rest, before 0. */
int ctl_hosts_worse(int a, int b);
