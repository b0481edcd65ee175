/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Providers of other trees that share with this one: those with MISC_SHARES_VIA_AGGREGATE in an
 * aggregate of one of its providers (facts B3 7, E8). They are known, shown, and never written to.
 *
 * A tree without aggregates has none, and nothing is asked. Else they are asked for when the
 * aggregates of the tree are not those of the last time, and again after SHARING_AGE_USEC, because
 * nothing in the tree shows that a provider came to share: one GET for as many aggregates as fit
 * into a path (facts G4.17), one after the other. A failure leaves what was known, and they are
 * asked for with the next refresh. */

#include "base/provider-tree.h"
#include "report/placement/answer.h"
#include "report/session/session.h"

#define SHARING_AGE_USEC (300 * USEC_PER_SEC)

typedef struct Sharing Sharing;

/* Called once, never from inside sharing_refresh(). */
typedef void (*SharingDone)(void *userdata);

/* The session is borrowed. -ENOMEM. */
int sharing_new(Sharing **ret, Session *session);

/* Cancels what is under way. */
Sharing *sharing_free(Sharing *sharing);
DEFINE_CLEANUP(Sharing *, sharing_free);

/* 1: it asks, and done will be called; 0: nothing has to be asked. tree is borrowed until then.
 * now_usec: CLOCK_MONOTONIC. -EINVAL, -ENOMEM. */
int sharing_refresh(Sharing *sharing, const ProviderTree *tree, uint64_t now_usec, SharingDone done,
                    void *userdata);

/* The next refresh asks, however young what is known is. */
void sharing_forget(Sharing *sharing);

/* NULL is allowed: done is not called any more. */
void sharing_cancel(Sharing *sharing);

/* In the order of the answers; borrowed until the next refresh. */
const PlacementProviders *sharing_get(const Sharing *sharing);
