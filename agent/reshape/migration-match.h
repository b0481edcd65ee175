/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whose guest a consumer stands for that has none of its own uuid: a migration holds what its
 * instance holds on this host (facts C5.2, G2.14). Pure.
 *
 * By the claims: the consumer's living claim names an mdev that a domain has. By the domain: there
 * is one domain that no consumer of ours has the uuid of, and that has as many CPUs and as much
 * memory as the consumer holds, and no other consumer for it. Whatever is not certain is left out.
 */

#include "claims/claim/claim.h"
#include "drivers/driver-reshape.h"
#include "drivers/driver.h"

/* Sorted by consumer; freed by the caller. -ENOMEM. */
int migration_match(const Allocations *consumers, const Snapshot *snapshot, const ClaimList *claims,
                    ReshapeAlias **ret, size_t *ret_n);
