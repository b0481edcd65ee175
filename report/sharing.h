/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sharing providers: providers of other trees with MISC_SHARES_VIA_AGGREGATE in an aggregate of one
 * of this tree's providers (facts B3 7, E8). They are read, shown and claimed from. Nothing of them
 * is ever written.
 *
 * A tree without aggregates has none, and nothing is sent. Otherwise the list of sharing providers
 * is read (one GET for as many aggregates as fit into a path, facts G4.17, one after the other):
 * when the aggregates of the tree changed, when a caller waits for the attempt, while a sharing
 * provider is known, and after SHARING_AGE_USEC. So the loss of a sharing provider is seen in the
 * next attempt. Their inventories, traits and aggregates are read when the list has other
 * providers, or other generations and a caller waits or SHARING_AGE_USEC passed. Each allocation of
 * a pool changes its generation, so the generation alone is no reason.
 *
 * Where DISK_GB of the root is to leave Placement, its usage is read as well, once per attempt
 * while the root has that inventory.
 *
 * A failure leaves what was known before. The next attempt reads again. */

#include "base/placement-options.h"
#include "base/provider-tree.h"
#include "report/placement/answer.h"
#include "report/session/session.h"

#define SHARING_AGE_USEC (300 * USEC_PER_SEC)

typedef struct Sharing Sharing;

/* Called once, never from inside sharing_refresh(). */
typedef void (*SharingDone)(void *userdata);

/* The session is borrowed; root is copied. -ENOMEM. */
int sharing_new(Sharing **ret, Session *session, const Uuid *root, SharingUse use);

/* Cancels the requests under way. */
Sharing *sharing_free(Sharing *sharing);
DEFINE_CLEANUP(Sharing *, sharing_free);

/* Returns 1 when requests were sent: done is called after the last answer. Returns 0 when nothing
 * has to be read. tree is borrowed until then. waited: a caller waits for the attempt. now_usec:
 * CLOCK_MONOTONIC. -EINVAL, -ENOMEM. */
int sharing_refresh(Sharing *sharing, const ProviderTree *tree, bool waited, uint64_t now_usec,
                    SharingDone done, void *userdata);

/* Makes the next refresh read everything, whatever its age. */
void sharing_forget(Sharing *sharing);

/* Cancels the requests under way; done is not called. NULL is allowed. */
void sharing_cancel(Sharing *sharing);

/* The sharing providers, each as a root, in the order of the answers. NULL while none is known.
 * Borrowed until the next refresh. */
const ProviderTree *sharing_get(const Sharing *sharing);

/* How much DISK_GB of the root is allocated in Placement. False when the last refresh did not read
 * it. */
bool sharing_get_disk_use(const Sharing *sharing, uint64_t *ret);
