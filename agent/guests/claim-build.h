/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Completes a new claim of a guest with what Placement has of its consumer. Pure.
 *
 * The guest decides its devices and the cells of its CPUs and memory. Placement decides which
 * provider has an amount that the guest does not bind, and the amounts of classes that no domain
 * shows. Placement also decides every amount that is larger than the domain's: another writer set
 * it, and the claim holds all of it (claims/fit/guest-share.h). */

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "claims/claim/claim.h"

/* claim: as claims_adopt() makes it, with the amounts of the domain; consumer: what Placement has,
 * whole; tree: this host's, as the claims have it; is_ours: the agent wrote it for an earlier
 * claim, so that a larger amount is not another writer's. ret_share (owned by the caller) is what
 * the claim must hold. Returns 1 if it holds that already, -ENOMEM. */
int claim_build_share(const Claim *claim, const Consumer *consumer, const ProviderTree *tree,
                      const Uuid *root, bool is_ours, Consumer **ret_share);
