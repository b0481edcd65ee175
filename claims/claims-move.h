/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims that follow a reshape: what they hold moves to other providers and classes, together with
 * the host, in one transaction. Where it goes is decided by others. */

#include "claims/claims.h"

/* Makes tree the host, as claims_set_providers() does, and moves. Moves of claims that ended
 * meanwhile, and what they no longer hold, are passed over. -EBUSY. */
int claims_shift(Claims *claims, const ProviderTree *tree, const StoreShift *shifts,
                 size_t n_shifts, Error *reterr);

/* A living claim holds what share has of this host's providers from now on, in place of what it
 * held; devices and layout stay. What the host does not have is left out. CLAIM_E_NOT_FOUND,
 * -EBUSY. */
int claims_complete(Claims *claims, int64_t id, const Consumer *share, Error *reterr);

/* What leads from before to after, of one claim: first within a class, then from class to class.
 * The array (grown) borrows names from both. -ENOMEM. */
int claims_make_shifts(int64_t claim, const Consumer *before, const Consumer *after,
                       StoreShift **shifts, size_t *n_shifts, size_t *n_allocated);
