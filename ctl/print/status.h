/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl status": from the document of the agent (agent/bus/documents.c) to a page. Pure,
 * except for the time zone.
 *
 * For an agent that does not run the document is {"format": "compute-agent-status/1", "state":
 * "not-running", "summary"}. Times are microseconds of CLOCK_REALTIME; 0: never. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Exit codes; those of "systemctl status" where it has them. */
#define CTL_STATUS_NOT_RUNNING 3
#define CTL_STATUS_NOT_WELL    4 /* pending, warning or degraded */

/* Makes the document for an agent that does not answer. why: the reason in words. The caller owns
 * the reference. NULL: memory ran out. */
json_t *ctl_status_make_not_running(const char *why);

/* Returns the exit code for the member "state": EXIT_SUCCESS if it is "ok". Any unknown state is
 * CTL_STATUS_NOT_WELL. */
int ctl_status_exit(const json_t *status);

void ctl_status_print(const json_t *status, CtlPage *page);

/* Prints a line without its newline and without a time, for an agent that does not run only its
 * summary: "synced: Placement is equal to this host; 3 providers, 1 claim; VCPU 2/16, …". tree: a
 * document of TREE_FORMAT, or NULL. */
void ctl_status_print_line(const json_t *status, const json_t *tree, CtlPage *page);
