/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the guests of consumers that have no domain with their uuid. A migration has the
 * allocations of its instance on this host (facts C5.2, G2.14). Pure.
 *
 * Two rules find the domain. First, a living claim of the consumer names an mdev that the domain
 * has. Second, the domain has the same number of CPUs and the same memory, and no consumer has its
 * uuid. The second rule needs a single domain and a single consumer. The first rule comes first. A
 * consumer whose uuid a domain has, and a consumer without a certain match, are left out. */

#include "claims/claim/claim.h"
#include "drivers/driver-reshape.h"
#include "drivers/driver.h"

/* Writes the aliases, sorted by consumer as consumers is, to *ret. The caller frees them, also if
 * *ret_n is 0. Returns -ENOMEM on failure, with both unchanged. */
int migration_match(const Allocations *consumers, const Snapshot *snapshot, const ClaimList *claims,
                    ReshapeAlias **ret, size_t *ret_n);
