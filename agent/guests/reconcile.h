/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims and guests made the same: decided in claims/reconcile.h, done and journalled here. Called
 * by the claim service, main thread; blocks on the disk. */

#include "agent/guests/comparison.h"
#include "claims/claims.h"

typedef enum ClaimEvent {
        CLAIM_EVENT_ADDED,
        CLAIM_EVENT_CHANGED,
        CLAIM_EVENT_REMOVED,
} ClaimEvent;

/* Something became of a claim, which is as it is now. */
typedef void (*ClaimWatch)(ClaimEvent event, const Claim *claim, void *userdata);

typedef struct ClaimReconciling {
        Claims *claims;
        const ReconcileInput *order; /* how it is, but for what the claims know themselves */
        ReconcileMemory *memory;     /* from one call to the next, as problems */
        ReconcileProblems *problems;
        ClaimWatch notify;
        void *userdata;
} ClaimReconciling;

/* wanted (may be NULL, else empty): whom to ask about first, sorted; what hangs on that is left to
 * a second call, and so are the problems. Results as in claims/claims.h. */
int claim_reconcile(const ClaimReconciling *reconciling, ClaimWanted *wanted, Error *reterr);

/* A claim that was made of a guest follows what Placement has of its consumer
 * (agent/guests/claim-share.h), and is no owed write any more where that has something here.
 * holding NULL: nothing. Results as in claims/claims.h. */
int claim_complete(Claims *claims, int64_t id, const Consumer *holding, Error *reterr);
