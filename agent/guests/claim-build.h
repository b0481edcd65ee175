/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a claim that was made of a guest should hold, seen what Placement has of it. Pure.
 *
 * The guest rules what it shows: the devices that it has, the cells that its CPUs and memory are
 * in, and every amount. Placement rules the rest: on which provider an amount is that the guest
 * does not bind, and classes that no guest shows (DISK_GB, an operator's own). */

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "claims/claim/claim.h"

/* consumer: what Placement has, whole; tree: this host's, as the claims have it. ret_share (owned
 * by the caller) is what the claim is to hold. 1 when it holds that already, -ENOMEM. */
int claim_build_share(const Claim *claim, const Consumer *consumer, const ProviderTree *tree,
                      const Uuid *root, Consumer **ret_share);
