/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From what a poll found to what the claims must know of it: the siblings do not know each other.
 * Pure. */

#include "claims/claim/host-facts.h"
#include "drivers/driver.h"

/* guests: whose domains count, the snapshot itself or a newer one. Borrows from both, which must
 * outlive it, and not from the configuration, which a reload replaces. ret must be zeroed.
 * -ENOMEM. */
int claim_facts_make(const HostConfig *config, const Snapshot *snapshot, const Snapshot *guests,
                     HostFacts *ret);
void claim_facts_done(HostFacts *facts);

/* One domain, of no poll: borrows from domain alone. The caller frees ret->layout. -ENOMEM. */
int claim_facts_make_domain(const SnapshotDomain *domain, const HostFacts *facts, HostDomain *ret);
