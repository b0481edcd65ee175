/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl audit", "heal" and "consumers" on a terminal. Pure: the document of
 * agent/audit/auditor.h in, text out. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Exit codes, those of "nova-manage placement audit". */
#define CTL_AUDIT_FINDINGS 3
#define CTL_AUDIT_REPAIRED 4

/* Each finding with what would put it right, or what became of it. */
void ctl_audit_print(const json_t *document, CtlPage *page);

/* Each consumer that holds something of this host, or has a claim here. */
void ctl_consumers_print(const json_t *document, CtlPage *page);

/* EXIT_SUCCESS when all agree, CTL_AUDIT_REPAIRED when all that was found was put right,
 * CTL_AUDIT_FINDINGS when something is left. */
int ctl_audit_exit(const json_t *document);
