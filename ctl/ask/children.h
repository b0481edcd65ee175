/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs pieces of work in child processes, several at a time, and keeps what each printed.
 *
 * "computectl -H host1,host2" is one child for each host, "computectl report" one for each part of
 * the bundle. A child that hangs keeps no other from its turn. */

#include <jansson.h>
#include <limits.h>
#include <sys/types.h>

#include "base/error.h"

/* Does the work of one child, which has forked; returns its exit code. */
typedef int (*CtlChildRun)(void *data);

typedef struct CtlChild {
        void *data; /* borrowed; for the function */
        /* After the run: */
        char *output, *errors; /* the texts of standard output and standard error; owned */
        int code;              /* exit code; 128 and the number of the signal that ended it */
        bool timed_out;        /* it was killed at its time limit */
        /* While it runs: */
        pid_t pid;
        int fds[3]; /* its output, its errors, its pidfd */
        uint64_t end_usec;
} CtlChild;

void ctl_children_done(CtlChild *children, size_t n);

/* Runs every child, at most n_at_once at a time, and waits for all. Standard input of each is
 * /dev/null. timeout_usec is the limit of each; 0: none. What is longer than 64 MiB is cut.
 * Negative errno: one could not be started or waited for; those that ran were killed. Blocks. */
int ctl_children_run(CtlChild *children, size_t n, CtlChildRun run, size_t n_at_once,
                     uint64_t timeout_usec, Error *reterr);

/* Finds a program of this project: beside this one (an uninstalled build), else where it is
 * installed. */
void ctl_find_program(char path[static PATH_MAX], const char *name, const char *folder);

/* Runs an order of computectl-helper (agent/helper/main.c) and reads its document. The helper polls
 * the hypervisor once or talks with Placement while the service does not run. It is a program of
 * its own, so that computectl does not load libvirt and libcurl.
 *
 *   discover  driver ("": the configured one)                        SNAPSHOT_FORMAT
 *   verify                                                           FINDINGS_FORMAT
 *   connect   cloud of clouds.yaml ("": the section [placement])     CONNECT_FORMAT
 *   identity  order, flags, name of the host ("": unknown), cloud    IDENTITY_FORMAT
 *
 * words: the arguments of the order, NULL-terminated; NULL: none. config: a configuration file;
 * NULL: the host's own. Blocks until the program ends, and prints its errors. Negative errno with
 * words. */
int ctl_helper_ask(const char *order, const char *const words[], const char *config, json_t **ret,
                   Error *reterr);
