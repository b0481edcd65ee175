/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which of two claims of one consumer is over. Pure.
 *
 * A guest that is resized on its own host has two claims: the first one, and the resize target.
 * After the resize was confirmed or reverted, one of them holds devices for no guest. A claim is
 * over only if three witnesses agree:
 *
 *   The domain has the resources of the other claim, and not those of this claim.
 *   Placement allocates to the consumer the amounts of the other claim, and not of this one.
 *   Migrations: no consumer of the same project can hold the amounts of this claim.
 *
 * If the domain agrees with both claims, Placement and the migrations decide. That is so if the
 * claims differ only in classes that no domain shows (DISK_GB), or in amounts that a flavor
 * allocates beyond the domain.
 *
 * Nova moves the old allocation to a migration, and deletes that when the resize is confirmed.
 *
 * LIMITATIONS: claims that hold the same amounts cannot be distinguished. A server of the same
 * project that is being built with an equal amount counts as the migration, until its guest
 * exists. */

#include "claims/claim/host-view.h"
#include "claims/guest-index.h"

typedef enum ResizePairVerdict {
        RESIZE_PAIR_OPEN,     /* the witnesses do not contradict one and the same claim */
        RESIZE_PAIR_MIGRATES, /* a consumer can be the migration that holds one of the two */
        RESIZE_PAIR_OVER,     /* one of the two is over */
} ResizePairVerdict;

/* Everything is borrowed from the picture. */
typedef struct ResizePair {
        const Claim *over, *kept;  /* of RESIZE_PAIR_OVER */
        bool has_other_devices;    /* the same: kept and the domain differ in devices */
        const Consumer *migration; /* of RESIZE_PAIR_MIGRATES */
} ResizePair;

/* Returns true if these are the two claims of a resize, and neither has a pending write. */
bool resize_pair_is(const Claim *first, const Claim *target);

/* Compares the two claims of a resize. picture: with all consumers of the host; view: NULL if it is
 * unknown. Returns a verdict, or -ENOMEM. */
int resize_pair_judge(const GuestIndex *index, const HostView *view, const Claim *first,
                      const Claim *target, const HostDomain *domain, ResizePair *ret);
