/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Repairs differences between claims and guests: claims/reconcile.h decides, this module acts,
 * logs, and lists the problems that stay. Main thread; blocks on the disk. */

#include "agent/guests/database.h"

/* Consumers that must be read from Placement before a comparison can decide, sorted. */
typedef struct ClaimWanted {
        Uuid *uuids;
        size_t n_uuids;
        bool all;    /* also every consumer with an allocation from the host's own tree */
        bool absent; /* Placement does not have the tree of the host, so no consumer was read from
                        its providers */
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

/* One comparison, which can take several turns of the main loop. When the service has closed the
 * file or opened another one, the caller must free it without another turn. */
typedef struct ClaimReconcile ClaimReconcile;

/* Another turn must follow (claim_reconcile()). CLAIM_RECONCILE_MORE: guests can still lack the
 * claims that this comparison makes. CLAIM_RECONCILE_CHECKS: all actions were run. */
#define CLAIM_RECONCILE_MORE   ((int)_CLAIM_OUTCOME_MAX)
#define CLAIM_RECONCILE_CHECKS ((int)_CLAIM_OUTCOME_MAX + 1)

/* Creates a comparison that has not begun. Returns -ENOMEM. */
int claim_reconcile_new(ClaimReconcile **ret);
ClaimReconcile *claim_reconcile_free(ClaimReconcile *run);
DEFINE_CLEANUP(ClaimReconcile *, claim_reconcile_free);

/* Compares and acts for one turn of some 10 to 20 ms, in which each group of actions is one write
 * to the disk. A decision about many claims can take longer. Returns CLAIM_RECONCILE_MORE or
 * CLAIM_RECONCILE_CHECKS until the comparison ends. The caller then calls again from the main loop.
 * order has the facts, without the members that the claims supply. The caller makes order for each
 * call; its answers must stay the same. wanted (NULL, or empty) gets the consumers that must be
 * read first, sorted. Actions that need the answers are left to a second comparison, and so are the
 * problems. Each decision replaces the memory of the service. The end of a comparison that needs no
 * answers replaces its problems. Other results are those of claims/claims.h, and end the
 * comparison. An action that fails lets the others run, unless the database cannot be used or a
 * commit failed. The first such result is returned at the end. */
int claim_reconcile(ClaimReconcile *run, ClaimService *service, const ReconcileInput *order,
                    ClaimWanted *wanted, Error *reterr);

/* Completes a confirmed claim with Placement's allocations of its consumer
 * (agent/guests/claim-share.h), and stores the state that was read. If the consumer has an
 * allocation here, the claim is no pending write any more, unless an earlier claim left a removal
 * that is pending. The state is not stored if the write state stays. Does nothing if the database
 * does not know the host. holding (borrowed) NULL: no allocation. Sets *ret_completed to the
 * consumer if the allocations of the claim changed. Results are those of claims/claims.h;
 * CLAIM_E_NOT_FOUND also for a claim that is not confirmed. */
int claim_complete(Claims *claims, int64_t id, const Consumer *holding, Uuid *ret_completed,
                   Error *reterr);

/* Logs the completion of a claim after its commit. consumer: the result of claim_complete(); empty:
 * does nothing. */
void claim_log_completed(int64_t id, const Uuid *consumer);
