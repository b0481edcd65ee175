/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Moves claims after a reshape. The database alone shows which claims have to move. A crash between
 * Placement's answer and the move therefore needs no repair: the next start moves them by the
 * driver's rules.
 *
 * A claim that equals the old allocations of its consumer gets the consumer's new ones. In a final
 * tree, the driver's rules move the others if they can. */

#include "agent/guests/database.h"
#include "agent/reshape/image.h"
#include "agent/tree/tree-maker.h"

/* Moves living claims from inventories that tree lacks, and stores tree in the same transaction if
 * a claim moves. The argument tree has the shape that Placement has, or the final shape of a
 * standalone host. is_final: it needs no other reshape. Otherwise the driver's rules lead to
 * another tree, so only claims that equal the old allocations move. The caller calls this before
 * claim_service_set_tree(). The argument reshaped has the consumers of the reshape that just ended;
 * it can be empty. If it has a set of consumers, or a claim moves, what the database knows about
 * Placement's allocations is forgotten (claims_forget_reported()). A claim that cannot be moved
 * stays, and the next call tries it again. If the driver's rules have the reason, it is logged at
 * debug level. Errors are logged, no claim is moved then, and the next call tries again. While the
 * database is closed, does nothing and returns false. Returns true after a success, also if no
 * claim moved: reshaped must not be passed again then, because everything would be forgotten
 * again. */
bool claim_move_follow(ClaimService *service, const TreeMaker *maker, const Snapshot *snapshot,
                       const ProviderTree *tree, const ReshapeImage *reshaped, bool is_final);
