/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts other programs. Does not block, and does not wait for their end. Any thread can call. */

#include <stdbool.h>
#include <sys/types.h>

/* Starts a program as a child process, which the caller reaps. A program without a slash is
 * searched in PATH. No signal is blocked in the child, although threads of the caller can block all
 * of them. Its standard input is /dev/null. Its standard output is output, and its standard error
 * is errors; -1: that of the caller. leads_group: the child leads a process group of its own, so
 * that a kill of the group also ends the children of the child. Returns -ENOENT if there is no such
 * program, or another negative errno. */
int spawn(const char *program, char *const argv[], int output, int errors, bool leads_group,
          pid_t *ret);
