/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl status": from the agent's properties to a verdict, a document and a page. Pure.
 *
 * The document: {"format": "compute-agent-status/1", "state": "ok" | "pending" | "degraded" |
 * "not-running", "summary", "version", "node", "root", "driver", "sync_state", "sync_error",
 * "sync_since_usec", "last_sync_usec", "last_poll_usec", "hypervisor_error", "n_providers",
 * "n_claims", "n_requests", "n_writes", "n_conflicts", "claim_error", "reshape_access",
 * "n_owed_writes", "n_owed_removals", "n_owed_moves", "owed_error", "status"};
 * of "not-running" the first three alone. Times are microseconds of CLOCK_REALTIME, 0: never. */

#include <jansson.h>

#include "agent/ctl/print/style.h"
#include "base/error.h"

#define CTL_STATUS_FORMAT "compute-agent-status/1"

/* One property of the bus interface and the member that it becomes. */
typedef struct CtlStatusProperty {
        const char *property;
        const char *member;
        char type; /* of D-Bus: 's', 'u', 't' */
} CtlStatusProperty;

extern const CtlStatusProperty ctl_status_properties[]; /* ends with a NULL property */

/* Exit codes, those of systemctl status where it has them. */
typedef enum CtlStatusExit {
        CTL_STATUS_OK = 0,
        CTL_STATUS_NOT_RUNNING = 3,
        CTL_STATUS_DEGRADED = 4, /* also while a change is on its way */
} CtlStatusExit;

/* The document from an object of the members above; a missing one becomes "" or 0. NULL when out of
 * memory. */
json_t *ctl_status_make(const json_t *members);

/* The document for an agent that does not answer; why is in words. */
json_t *ctl_status_make_not_running(const char *why);

/* How much Placement is still to be told of claims. */
uint64_t ctl_status_owed(const json_t *status);

CtlStatusExit ctl_status_exit(const json_t *status);

/* Its first line alone. -ENOMEM. */
int ctl_status_print_verdict(const json_t *status, const CtlStyle *style, FILE *output);

/* -ENOMEM. */
int ctl_status_print(const json_t *status, const CtlStyle *style, FILE *output);
