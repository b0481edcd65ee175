/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims follow a reshape. Which claims have to is known from the database alone, so that a crash
 * between Placement's answer and this leaves nothing behind: the next start does it.
 *
 * A claim that held what its consumer held in Placement gets what the consumer got there; all
 * others are moved by the driver's own rules. */

#include "agent/guests/database.h"
#include "agent/reshape/image.h"
#include "agent/tree/tree-maker.h"

/* Where living claims hold what tree has no more, that moves by the driver's rules, together with
 * the tree, in one transaction. To be called with the shape that Placement has, before
 * claim_service_set_tree(). reshaped is what the reshape that just ended did with the consumers; it
 * may be empty. What cannot be moved stays, is logged, and is tried again with the next call. */
void claim_move_follow(ClaimService *service, const TreeMaker *maker, const Snapshot *snapshot,
                       const ProviderTree *tree, const ReshapeImage *reshaped);
