/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl status": from the agent's document (agent/bus/status.h) to a page. Pure.
 *
 * Of an agent that does not run the document is {"format": "compute-agent-status/1", "state":
 * "not-running", "summary"}. Times are microseconds of CLOCK_REALTIME, 0: never. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Exit codes, those of systemctl status where it has them. */
typedef enum CtlStatusExit {
        CTL_STATUS_OK = 0,
        CTL_STATUS_NOT_RUNNING = 3,
        CTL_STATUS_NOT_WELL = 4, /* pending, warning or degraded */
} CtlStatusExit;

/* The document for an agent that does not answer; why is in words. */
json_t *ctl_status_make_not_running(const char *why);

/* How much of claims is still to be reported to Placement. */
uint64_t ctl_status_owed(const json_t *status);

CtlStatusExit ctl_status_exit(const json_t *status);

/* Its first line alone. */
void ctl_status_print_verdict(const json_t *status, CtlPage *page);

/* Of the member "state" of a status, or of one of its reasons. */
CtlColour ctl_status_colour(const json_t *object);

/* */
void ctl_status_print(const json_t *status, CtlPage *page);
