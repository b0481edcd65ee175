/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether this host can be taken out of Placement for good, and what that would remove: nobody
 * holds anything of it, and every provider below its root is one that this agent makes. Pure, but
 * for retire_look().
 *
 * The host is cordoned first, so that nothing new comes while it is looked at; whoever comes all
 * the same makes Placement refuse (facts E3). It stays retired by a mark on that cordon
 * (agent/tree/cordon.h): nothing is published until that is taken back. */

#include <jansson.h>

#include "agent/tree/tree-maker.h"
#include "claims/claims.h"
#include "report/reporter.h"

/* Everything is borrowed. */
typedef struct RetireFacts {
        const ProviderTree *remote; /* as it was just read */
        const ProviderTree *own;    /* what the host would have if Placement had nothing */
        const Uuid *root;
        const ClaimList *claims;      /* those that live */
        const Snapshot *snapshot;     /* the guests */
        const Allocations *consumers; /* who holds something of remote */
} RetireFacts;

/* ret: a document of RETIRE_FORMAT (agent/formats/format-names.h), with "done": false. -ENOMEM. */
int retire_judge(const RetireFacts *facts, json_t **ret);

/* Is anything or anybody in the way? */
bool retire_is_refused(const json_t *document);

/* Judges of what these know, where reporter_gather() has ended. claims NULL: they cannot be read.
 * Negative errno with words. */
int retire_look(const TreeMaker *maker, Claims *claims, Reporter *reporter,
                const Snapshot *snapshot, json_t **ret, Error *reterr);
