/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Converts the result of a poll to the facts that claims need. The drivers and the claims do not
 * include each other's headers. Pure. */

#include "claims/claim/host-facts.h"
#include "drivers/driver.h"
#include "drivers/tree/mdev-plan.h"

/* Makes the facts of the host from snapshot. The domains, the host CPUs that they use or can run
 * on, and the folders of Nova come from guests, which is the snapshot itself or a newer one. The
 * sizes of vGPUs and the withheld members of sets come from known, which has no holdings; NULL:
 * unknown. The time of the facts is the begin of snapshot, also if guests is newer. Borrows from
 * both snapshots, which must outlive ret. Borrows nothing from the configuration, which a reload
 * replaces, or from known. ret must be zeroed, and stays so on failure. Returns -ENOMEM. A
 * configuration that does not fit the host is no error here. The caller frees ret with
 * claim_facts_done(). */
int claim_facts_make(const HostConfig *config, const Snapshot *snapshot, const Snapshot *guests,
                     const DeviceFacts *known, HostFacts *ret);
void claim_facts_done(HostFacts *facts);

/* Makes the facts of one domain, also of one that is not part of a poll. facts has the cells of the
 * host. Borrows only from domain. The caller frees ret->layout. Returns -ENOMEM on failure. */
int claim_facts_make_domain(const SnapshotDomain *domain, const HostFacts *facts, HostDomain *ret);
