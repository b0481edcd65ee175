/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The share of this host in a consumer: its allocations from the providers of the host's own tree.
 * Allocations from other hosts and from sharing providers are not changed, except those that the
 * agent wrote for a claim. Pure. */

#include "claims/claim/host-view.h"
#include "claims/claims.h"

/* Returns true if the provider is in the host's own tree. Returns false if the host is not
 * known. */
bool claim_share_is_own(const HostView *view, const char *node, const Uuid *provider);

/* Returns true if the consumer has an allocation from the host's own tree. Also returns true if it
 * has allocations, and all of them are from sharing providers of this host. In the second case it
 * has none from another host. Returns false if the host is not known. */
bool claim_share_has(const HostView *view, const char *node, const Consumer *consumer);

/* Removes the share, and all allocations from the providers of claim (NULL: none), which the agent
 * wrote for the claim. If the host is not known, removes only the allocations from the claim's
 * providers. Returns true if there were any. */
bool claim_share_remove(const HostView *view, const char *node, const Claim *claim,
                        Consumer *consumer);

/* Returns true if the consumer has exactly the claim's amounts on the claim's providers. Other
 * providers are ignored. */
bool claim_share_is(const Claim *claim, const Consumer *consumer);

/* Sets each of project, user and type that the consumer does not have. A project or user that is
 * NULL or "" becomes CONSUMER_UNKNOWN_ID, and such a type becomes "INSTANCE". Returns -ENOMEM on
 * failure. */
int claim_share_name(Consumer *consumer, const char *project, const char *user, const char *type);

/* Longest time until a write that is sent now arrives in Placement. */
#define CLAIM_WRITE_LATE_SEC 120

/* Returns the state of the consumer by which the agent's write is recognised later. written: the
 * agent writes the consumer next; false: the agent only read it. */
ClaimReported claim_share_reported(const HostView *view, const Consumer *consumer, bool written);

/* Returns true if the consumer's share of this host is left over from the agent's write for a claim
 * that ended (NULL: not known any more). Two cases give true. First, no other client wrote the
 * consumer since: its generation is unchanged (with left->unsure it can also be that before the
 * write), and its time or its amounts do not contradict it. Second, a client changed the set of
 * providers of other hosts, and left this host's share unchanged: an evacuation. If the claim is
 * not known, the share counts as unchanged. A write that leaves that set unchanged gives false,
 * because its client places the consumer here. If the state at the agent's write (left->reported)
 * or the host is not known, the result is true.
 *
 * A consumer that was deleted and created again counts its generation from the start. It is
 * recognised by a lower generation, and by the time of its last write. If it existed when the agent
 * read it, any other time means that it is another one. If it was new then, a time after the latest
 * one of the agent's write (CLAIM_WRITE_LATE_SEC) means that.
 *
 * LIMITATIONS: the time of the agent's write is not known if the consumer had other allocations
 * before, or if Placement sends no last-modified. Then a consumer that was created again can look
 * like a leftover. It must have been written as often, and have at least the claim's amounts, if
 * these are known. The same holds for one that was created again within the second of the earlier
 * write. */
bool claim_share_is_ours(const HostView *view, const char *node, const ClaimRemoval *left,
                         const Claim *claim, const Consumer *consumer);

/* Completes a new claim of a guest with Placement's allocations of its consumer.
 *
 * The guest decides its devices and the cells of its CPUs and memory. If Placement has the right
 * amount, it decides the providers of an amount that the guest does not bind. It decides the
 * amounts of classes that no domain shows, if all of such a class is on the root. It also decides
 * the VCPU, PCPU and MEMORY_MB that are larger than the domain's: another writer set them, and the
 * claim has all of them. claims/fit/guest-share.h has the exceptions.
 *
 * claim was made by claims_adopt(), with the amounts of the domain. consumer has all of Placement's
 * allocations. tree is this host's, as the claims have it. is_ours: the agent wrote the allocations
 * for an earlier claim, so a larger amount is not another writer's. ret_share (owned by the caller)
 * gets the allocations that the claim must have. Returns 1 without it if the claim has them
 * already, 0, or -ENOMEM. */
int claim_build_share(const Claim *claim, const Consumer *consumer, const ProviderTree *tree,
                      const Uuid *root, bool is_ours, Consumer **ret_share);
