/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which of two claims of one consumer is over. Pure.
 *
 * A guest that is resized on its own host has two claims: the first one, and the resize target.
 * After the resize was confirmed or reverted, one of them holds resources for no guest. A claim is
 * over only if three kinds of evidence agree:
 *
 *   The domain has the resources of the other claim, and not those of this claim.
 *   Placement allocates to the consumer the amounts of the other claim, and not of this one.
 *   Migrations: no consumer of the same project that can be a migration, and has no requested
 *   claim, has on a provider of this claim the claim's amount of a class.
 *
 * If the domain agrees with neither claim, its amounts and numbers of devices are compared instead.
 * If the domain agrees with both claims, Placement and the migrations decide. The domain does so if
 * the claims differ only in classes that no domain shows (DISK_GB), or in amounts that a flavor
 * allocates beyond the domain.
 *
 * Nova moves the old allocations to a migration, and deletes them when the resize is confirmed.
 *
 * LIMITATIONS: claims that hold the same amounts cannot be distinguished. A server of the same
 * project that is being built with an equal amount counts as the migration, until its guest
 * exists. */

#include "claims/claim/host-view.h"
#include "claims/guest-index.h"

/* The result, borrowed from the index. If over and migration are NULL, the pair is open: the
 * evidence does not contradict one and the same claim. */
typedef struct ResizePair {
        const Claim *over;         /* NULL: none is over */
        const Claim *kept;         /* the other one of the two, with over; else NULL */
        bool has_other_devices;    /* with over: kept and the domain differ in devices */
        const Consumer *migration; /* a consumer that can be the migration that holds one of the
                                      two; NULL: none, or a claim is over */
} ResizePair;

/* Compares the two claims of a resize. index has all consumers of the host; view: the host. The
 * pair is open if view is NULL (unknown), or if the consumer was not read or has no allocation
 * here. ret must be zeroed. Returns -ENOMEM on failure. */
int resize_pair_judge(const GuestIndex *index, const HostView *view, const Claim *first,
                      const Claim *target, const HostDomain *domain, ResizePair *ret);
