/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which of two claims of one consumer is over. Pure.
 *
 * A guest that is resized on its own host has two claims: the first one, and the resize target.
 * After the resize was confirmed or reverted, one of them holds devices for no guest. A claim is
 * over only if three witnesses agree:
 *
 *   domain       has what the other claim holds, and not what this claim holds
 *   Placement    allocates to the consumer what the other claim holds, and not this claim
 *   migrations   no consumer of the same project can hold what this claim holds
 *
 * If the domain agrees with both claims, Placement and the migrations decide. The domain agrees
 * with both if they differ only in classes that no domain shows (DISK_GB), or in amounts that a
 * flavor allocates beyond the domain.
 *
 * Nova moves the old allocation to a migration, and deletes that when the resize is confirmed.
 *
 * LIMITATIONS: claims that hold the same amounts cannot be told apart. A server of the same project
 * that is being built with an equal amount is taken for the migration, until its guest exists. */

#include "claims/claim/host-view.h"
#include "claims/picture.h"

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

/* Are these the two claims of a resize, with nothing of them on its way to Placement? */
bool resize_pair_is(const Claim *first, const Claim *target);

/* picture: with all consumers of the host; view: NULL if it is unknown. Returns a verdict, or
 * -ENOMEM. */
int resize_pair_judge(const Picture *picture, const HostView *view, const Claim *first,
                      const Claim *target, const HostDomain *domain, ResizePair *ret);
