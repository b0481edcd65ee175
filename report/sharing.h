/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sharing providers: providers of other trees with MISC_SHARES_VIA_AGGREGATE in an aggregate of a
 * provider of this tree (facts B3 7, E8). The agent reads and shows them and claims from them. It
 * can write allocations of them, but nothing else.
 *
 * A tree without aggregates has no sharing providers, and no list is read. A list of sharing
 * providers is read with one GET for as many aggregates as fit into a path (facts G4.17), one after
 * the other. The list is read when the aggregates of the tree changed, a caller waits for the
 * attempt, or sharing_forget() was called. It is also read while a sharing provider is known, and
 * when it is SHARING_AGE_USEC old. So the next attempt sees the loss of a sharing provider.
 *
 * The inventories, traits and aggregates of all listed providers are read when the list has other
 * providers than before, or after sharing_forget(). They are also read when a generation differs,
 * and a caller waits or SHARING_AGE_USEC passed since their last read. A generation alone is no
 * reason, because each allocation of a pool changes it.
 *
 * If DISK_GB of the root has to leave Placement (SharingUse), its usage is read too, once per
 * refresh while the root has that inventory.
 *
 * A failure leaves the old sharing providers, unless the tree has no aggregates, and does not count
 * as a read. If no refresh has succeeded before, the sharing providers stay unknown
 * (sharing_is_known()). The usage is unknown from the start of a refresh until its answer. */

#include "base/placement-options.h"
#include "base/provider-tree.h"
#include "report/placement/answer.h"
#include "report/session/session.h"

#define SHARING_AGE_USEC (300 * USEC_PER_SEC)

typedef struct Sharing Sharing;

/* Makes an empty result. The session is borrowed; root is copied. -ENOMEM. */
int sharing_new(Sharing **ret, Session *session, const Uuid *root, SharingUse use);

/* Cancels the requests under way. */
Sharing *sharing_free(Sharing *sharing);
DEFINE_CLEANUP(Sharing *, sharing_free);

/* Starts a refresh, and cancels one under way. Returns 1 if requests were sent; then done is called
 * after the last answer. Returns 0 if nothing is sent; done is not called then. tree is borrowed
 * until done or a cancellation. waited: a caller waits for the attempt. now_usec: CLOCK_MONOTONIC.
 * Returns -EINVAL or -ENOMEM if the list cannot be requested. If the usage cannot be requested, it
 * stays unknown, without an error. The callback done receives the end of a refresh. Called once
 * unless the refresh is cancelled, never from inside sharing_refresh(). */
int sharing_refresh(Sharing *sharing, const ProviderTree *tree, bool waited, uint64_t now_usec,
                    void (*done)(void *userdata), void *userdata);

/* Makes the next refresh of a tree with aggregates read list and parts again, at any age. */
void sharing_forget(Sharing *sharing);

/* Cancels the requests under way; done is not called. NULL is allowed. */
void sharing_cancel(Sharing *sharing);

/* Returns true if the sharing providers were read, or the tree had no aggregates, at least once.
 * Until then, NULL of sharing_get() does not mean that there is none. */
bool sharing_is_known(const Sharing *sharing);

/* Returns the sharing providers, each as a root, in the order of the answers; NULL while none is
 * known. Their names are those of the last read of the parts. Borrowed until a refresh begins or
 * ends. */
const ProviderTree *sharing_get(const Sharing *sharing);

/* Returns the amount of DISK_GB of the root that is allocated in Placement. Returns false if the
 * last refresh did not read it. */
bool sharing_get_disk_use(const Sharing *sharing, uint64_t *ret);
