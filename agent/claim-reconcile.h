/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Does what claims/reconcile.h decided, and journals it. Main thread; blocks on the disk. */

#include "agent/claim-service.h"
#include "claims/reconcile.h"

/* Makes claims and guests the same where that is safe; what is not is in problems, which is
 * replaced. A problem is journalled when it was not there the last time. Yields the result of the
 * last call of claims.h that failed, with words, or 0. */
int claim_reconcile(ClaimService *service, Claims *claims, const HostFacts *facts,
                    uint64_t expiry_usec, ReconcileMemory *memory, ReconcileProblems *problems,
                    Error *reterr);
