/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Claims follow a reshape. Which claims have to is told by the database alone, so that a crash
 * between Placement's answer and this leaves nothing behind: the next start does it.
 *
 * A claim that held what its consumer held in Placement gets what the consumer got there; all
 * others are moved by the driver's own rules. */

#include "agent/reshape-image.h"
#include "agent/tree-maker.h"
#include "claims/claims.h"

/* See claim_service_follow(). A ClaimOutcome, or a negative errno. */
int claim_move_follow(Claims *claims, const TreeMaker *maker, const Snapshot *snapshot,
                      const ProviderTree *tree, const ReshapeImage *reshaped, size_t *ret_n_moved,
                      Error *reterr);
