/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl audit", "heal" and "consumers" on a terminal. Pure: the document of
 * agent/audit/auditor.h goes in, text comes out. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Exit codes of "nova-manage placement audit". */
#define CTL_AUDIT_FINDINGS 3 /* problems remain */
#define CTL_AUDIT_REPAIRED 4 /* all problems were repaired */

/* Prints each finding with its remedy, or with the result of the repair. */
void ctl_audit_print(const json_t *document, CtlPage *page);

/* Prints each consumer of the document: those with allocations on this host, and those with a claim
 * here and allocations elsewhere. */
void ctl_consumers_print(const json_t *document, CtlPage *page);

/* Returns EXIT_SUCCESS without problems, CTL_AUDIT_REPAIRED if all were repaired, else
 * CTL_AUDIT_FINDINGS. */
int ctl_audit_exit(const json_t *document);
