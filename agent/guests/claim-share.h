/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The share of this host in a consumer: its allocations on the providers of the host's own tree.
 * Allocations on other hosts and on sharing providers are not changed, except those that the agent
 * wrote for a claim. Pure. */

#include "claims/claim/host-view.h"
#include "claims/claims.h"

/* Is it one of the host's own tree? */
bool claim_share_is_own(const HostView *view, const char *node, const Uuid *provider);

/* Returns true when the consumer has an allocation on the host's own tree, or when all of its
 * allocations are on sharing providers of this host. The latter names no other host. */
bool claim_share_has(const HostView *view, const char *node, const Consumer *consumer);

/* Takes it away, and what claim (NULL: nothing) held elsewhere, which the agent wrote for it. True
 * when there was something. */
bool claim_share_remove(const HostView *view, const char *node, const Claim *claim,
                        Consumer *consumer);

/* Has it of the claim's providers exactly what the claim has? */
bool claim_share_is(const Claim *claim, const Consumer *consumer);

/* Says who holds it, where nobody has yet: these, and what is NULL or "" is unknown, or an
 * instance. -ENOMEM. */
int claim_share_name(Consumer *consumer, const char *project, const char *user, const char *type);

/* How long what is written now may take to arrive. */
#define CLAIM_WRITE_LATE_SEC 120

/* How Placement has the consumer; written: when what is to be written now has been. */
ClaimReported claim_share_reported(const HostView *view, const Consumer *consumer, bool written);

/* Is what the consumer holds of this host what the agent left there, of a claim that ended (NULL:
 * not known any more)? It is when nobody wrote the consumer since: its generation is what it was.
 * It is, too, when somebody wrote what it holds elsewhere, and left this host's share as it was: an
 * evacuation. It is not when somebody wrote it, and changed nothing elsewhere: who writes a
 * consumer like that places it here. What is not known (reported) is taken for ours.
 *
 * A consumer that was deleted and made anew counts its generation from the start. It is known by a
 * generation that is lower, and by when it was written: one that was read, at any other time than
 * it was then, whatever it holds; one that was new when ours was written, after ours can have been.
 *
 * LIMITATIONS: where it is not known when ours was written (the consumer held something elsewhere
 * before, or Placement sends no last-modified), one that was made anew, was written as often as
 * ours, and holds no less than the claim did is taken for ours. So is one that was made anew in the
 * very second in which it had been written before it was read. */
bool claim_share_is_ours(const HostView *view, const char *node, const ClaimRemoval *left,
                         const Claim *claim, const Consumer *consumer);

/* Completes a new claim of a guest with what Placement has of its consumer.
 *
 * The guest decides its devices and the cells of its CPUs and memory. Placement decides which
 * provider has an amount that the guest does not bind, and the amounts of classes that no domain
 * shows. Placement also decides every amount that is larger than the domain's: another writer set
 * it, and the claim holds all of it (claims/fit/guest-share.h).
 *
claim: as claims_adopt() makes it, with the amounts of the domain; consumer: what Placement has,
 * whole; tree: this host's, as the claims have it; is_ours: the agent wrote it for an earlier
 * claim, so that a larger amount is not another writer's. ret_share (owned by the caller) is what
 * the claim must hold. Returns 1 if it holds that already, -ENOMEM. */
int claim_build_share(const Claim *claim, const Consumer *consumer, const ProviderTree *tree,
                      const Uuid *root, bool is_ours, Consumer **ret_share);
