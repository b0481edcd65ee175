/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Moves allocations together with their inventories, from the tree in Placement to the tree that
 * the host should have. Pure, except for a debug message for each class.
 *
 * A class moves for all its consumers or for none. If one consumer cannot be placed, the class
 * keeps its old inventories, and so do the classes into which it would have turned. The other
 * classes move if they can. */

#include "base/provider-tree.h"
#include "drivers/driver-reshape.h"
#include "drivers/reshape/rules.h"

/* Compares update->before with update->tree, and moves the allocations of reshape->consumers. Edits
 * update->tree where a class stays or is renamed. The limits of inventories do not change, so they
 * can be below the amount of a consumer. reshape can be NULL: nothing can move. Returns
 * DRIVER_UPDATED, or DRIVER_UPDATED_IN_PART with an error text if a class stays that should move,
 * which is then in reshape->kept. Returns DRIVER_RESHAPE_NEEDED without consumers if a class would
 * move, used or not, that is not in reshape->kept; the tree is then undefined, and
 * provider_update() restores it. Returns -ENOMEM or another error of provider_tree_add(); the tree
 * and the allocations are then undefined. */
int reshape_moves_make(const TreeUpdate *update, DriverReshape *reshape, Error *reterr);
