/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs pieces of work in child processes, several in parallel, and keeps the output of each.
 *
 * "computectl -H host1,host2" is one child for each host, "computectl report" one for each part of
 * the bundle. A child that hangs does not delay the children that run beside it. */

#include <jansson.h>
#include <limits.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct CtlChild {
        void *data; /* argument of the function; borrowed */
        /* Set by the run: */
        char *output, *errors; /* standard output and standard error; owned */
        int code;              /* exit code, or 128 plus the number of the signal that ended it */
        bool timed_out;        /* the child was killed at its time limit */
        /* Used during the run: */
        pid_t pid;
        int fds[3];        /* output, errors, pidfd */
        uint64_t end_usec; /* time limit, CLOCK_MONOTONIC; UINT64_MAX: none */
} CtlChild;

/* Frees the texts of n children. The array belongs to the caller. */
void ctl_children_done(CtlChild *children, size_t n);

/* Runs each child, at most n_at_once in parallel, and waits for all. Standard input of each is
 * /dev/null. timeout_usec is the limit of each; 0: none. Each file that a child writes ends at 64
 * MiB, so more output is cut. Negative errno: a child could not be started or waited for, or memory
 * ran out; those that still ran were killed, and no further one was started. Blocks. The callback
 * run does the work of one child in the forked process, and returns its exit code. */
int ctl_children_run(CtlChild *children, size_t n, int (*run)(void *data), size_t n_at_once,
                     uint64_t timeout_usec, Error *reterr);

/* Finds a program of this project: in the folder of this program (an uninstalled build), else in
 * the given folder. Does not check whether the given folder has the program. */
void ctl_find_program(char path[static PATH_MAX], const char *name, const char *folder);

/* Runs an order of computectl-helper (agent/helper/main.c) and reads its document. The helper polls
 * the hypervisor once, or calls Placement, without the service. It is a separate program, so that
 * computectl does not load libvirt and libcurl.
 *
 *   discover  driver ("": the configured one)                        SNAPSHOT_FORMAT
 *   verify                                                           FINDINGS_FORMAT
 *   connect   cloud of clouds.yaml ("": the section [placement])     CONNECT_FORMAT
 *   identity  order, flags, name of the host ("": unknown), cloud    IDENTITY_FORMAT
 *
 * words: the arguments of the order, at most 4, NULL-terminated; NULL: none. config: a
 * configuration file; NULL: that of the host. Blocks until the program ends, and prints its
 * errors, except that the last line of a failed program ends the words in reterr. Returns 0 or a
 * negative errno with words. */
int ctl_helper_ask(const char *order, const char *const words[], const char *config, json_t **ret,
                   Error *reterr);
