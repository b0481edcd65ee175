/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether this host can be taken out of Placement for good, and what that would remove: nobody
 * holds anything of it, and every provider below its root is one that this agent makes. Pure.
 *
 * The host is cordoned first, so that nothing new comes while it is looked at; whoever comes all
 * the same makes Placement refuse (facts E3). It stays retired by a mark on that cordon
 * (agent/tree/cordon.h): nothing is published until that is taken back. */

#include <jansson.h>

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "claims/claim/claim.h"
#include "drivers/host/snapshot.h"

/* Everything is borrowed. */
typedef struct RetireFacts {
        const ProviderTree *remote; /* as it was just read */
        const ProviderTree *own;    /* what the host would have if Placement had nothing */
        const Uuid *root;
        const ClaimList *claims;      /* those that live */
        const Snapshot *snapshot;     /* the guests */
        const Allocations *consumers; /* who holds something of remote */
} RetireFacts;

typedef struct Retirement {
        json_t *holders;   /* [{"consumer", "guest": name or "", "claim": 0 for none, "placed": has
                              allocations in Placement}] */
        json_t *foreign;   /* names of providers that others made */
        json_t *providers; /* names of what is removed, children first */
} Retirement;

void retirement_done(Retirement *retirement);

/* ret is owned by the caller, whatever comes back. -ENOMEM. */
int retire_judge(const RetireFacts *facts, Retirement *ret);

/* Is anything or anybody in the way? */
bool retirement_is_refused(const Retirement *retirement);

/* In the form of RETIRE_FORMAT (agent/formats/format-names.h). A new reference; NULL when out of
 * memory. */
json_t *retirement_to_json(const Retirement *retirement, bool done);
