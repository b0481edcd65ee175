/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Applies the remedies of an audit's findings, one after the other. It ends claims in the database,
 * asks the claim service to adopt guests, and writes consumers to Placement. Right before each
 * write it reads the claim again, because a claim can be made or end during the requests. It writes
 * with the consumer's generation, and reads the consumer again after a conflict, except after that
 * of the last attempt. A consumer that another client wrote since the audit is left unchanged, and
 * its finding fails unless the difference is gone. A failure belongs to its finding, except one
 * that all writes would meet. A finding keeps AUDIT_FOUND if no remedy applies, if nothing has to
 * be written any more, or if its claim ended or was made since the audit. The claim of an
 * AUDIT_MISSING finding is stored as a pending write before its allocations are sent. If that write
 * fails, agent/placing/settle.c sends it later. An adoption counts as healed when it was requested.
 * Main thread; blocks on the disk of the claim database. */

#include "agent/audit/audit.h"
#include "agent/guests/comparison.h"
#include "report/reporter.h"

/* The inputs of a healer, borrowed until done is called. */
typedef struct HealerOrder {
        ClaimService *claims;
        Reporter *reporter;
        const AuditInput *input;
        Audit *audit;           /* the healer sets n_done, and the outcome of each finding */
        Allocations *consumers; /* the consumers that the audit read; the healer replaces those that
                                   it reads again */
        bool everything;        /* false: only claims of evacuated guests end; nothing is written to
                                   Placement or adopted */
        const Uuid *only;       /* only findings of this consumer count; NULL: all do */
        const EventAuthor *by;  /* the caller; NULL: this program */
        const char *refused;    /* reason why nothing can be written to Placement, with which each
                                   write fails; NULL: it can */
} HealerOrder;

typedef struct Healer Healer;

/* Begins to heal. Calls done once after the last finding, possibly before healer_begin() returns.
 * *ret is set before that call, and done can free the healer. After healer_free(), done is not
 * called. Returns -ENOMEM on failure. */
int healer_begin(Healer **ret, const HealerOrder *order, void (*done)(void *userdata),
                 void *userdata);

/* Cancels the request on its way, which can still arrive in Placement, and releases the reserved
 * consumer. healer can be NULL. Returns NULL. */
Healer *healer_free(Healer *healer);
