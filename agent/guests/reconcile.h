/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes claims and guests the same: claims/reconcile.h decides it, this module does and journals
 * it. Main thread; blocks on the disk. */

#include "agent/guests/database.h"

/* Consumers of which Placement must be read; sorted. */
typedef struct ClaimWanted {
        Uuid *uuids;
        size_t n_uuids;
        bool all;    /* and every consumer that holds something of the host's own tree */
        bool absent; /* Placement does not have the tree, so that nothing was read of it */
} ClaimWanted;

static inline bool claim_wanted_is_empty(const ClaimWanted *wanted)
{
        return wanted->n_uuids == 0 && !wanted->all;
}

static inline void claim_wanted_done(ClaimWanted *wanted)
{
        free(wanted->uuids);
        *wanted = (ClaimWanted){ 0 };
}

/* order: the facts, without those that the claims know themselves. wanted (NULL, or empty):
 * consumers to ask about first, sorted; actions that need the answers are left to a second call,
 * and so are the problems. The memory and the problems of the service are replaced. Results as in
 * claims/claims.h. */
int claim_reconcile(ClaimService *service, const ReconcileInput *order, ClaimWanted *wanted,
                    Error *reterr);

/* A claim that was made of a guest follows what Placement has of its consumer
 * (agent/guests/claim-share.h), and is no owed write any more where that has something here.
 * holding NULL: nothing. Results as in claims/claims.h. */
int claim_complete(Claims *claims, int64_t id, const Consumer *holding, Error *reterr);
