/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl watch": what is shown, out of the documents that other verbs print. Pure. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Borrowed; each may be NULL when it is not there. */
typedef struct CtlWatchFacts {
        const json_t *status; /* ctl/print/status.h */
        const json_t *tree;   /* formats/tree-json.h */
        const json_t *claims; /* ctl/print/claims.h */
} CtlWatchFacts;

/* The whole page: verdict, usage of each inventory, claims with the names of their guests. */
void ctl_watch_print(const CtlWatchFacts *facts, CtlPage *page);

/* The same in one line that is not ended, without a time: "synced: Placement is equal to this host;
 * 3 providers, 1 claim; VCPU 2/16, …". */
void ctl_watch_print_line(const CtlWatchFacts *facts, CtlPage *page);
