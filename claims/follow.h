/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims that follow the allocations of another writer. A claim that the agent made of a guest,
 * without writing it to Placement, holds the larger amounts that Placement has for the guest. Nova
 * can change these amounts at any time, so the comparison is repeated. Pure. */

#include "claims/claim/claim.h"
#include "claims/claim/host-facts.h"
#include "claims/claim/host-view.h"

/* Returns true if the agent does not write the allocations of the claim's consumer, and they were
 * read for the claim, even if there were none. Then the claim can hold more than its domain
 * shows. */
bool claim_is_placed(const Claim *claim);

/* Returns true for an unconfirmed claim of CLAIM_TYPE_GUEST that is placed, such as that of a
 * server that starts. Its request can lack the amounts of the domain. So it is confirmed with
 * claims_confirm_guest() when a poll shows that the domain runs. */
bool claim_waits_for_domain(const Claim *claim);

/* Returns true for a confirmed claim of CLAIM_TYPE_GUEST that is placed, and that no migration took
 * over. It is made again if claim_must_follow(). */
bool claim_follows(const Claim *claim);

/* Returns true if the domain has other CPUs or memory than the claim's request, or than its
 * allocations if the request names none. An amount that the claim does not have is not compared. */
bool claim_was_resized(const Claim *claim, const HostDomain *domain);

/* Returns true if Placement has another amount of a class that counts no devices than the claim,
 * and a new claim of the domain would differ, too. False while a resize is under way: the domain
 * has more CPUs or memory than both. False for a class that this host cannot hold where Placement
 * has it. A class that no domain shows counts only if the claim has none of it outside the root.
 * placed: allocations of the consumer; view: the host with the inventories. Without a view (NULL)
 * or a root it returns false. */
bool claim_must_follow(const Claim *claim, const HostDomain *domain, const HostFacts *facts,
                       const HostView *view, const char *node, const Consumer *placed);

/* Returns the amount of VCPU, PCPU or MEMORY_MB that the claim holds beyond its domain, as that was
 * when the claim was made. For VCPU and PCPU it is at most the excess of their sum. 0 for other
 * classes, and for claims that were not made of a guest, that the agent writes, or whose
 * allocations were not read. */
uint64_t claim_beyond_domain(const Claim *claim, const char *resource_class);
