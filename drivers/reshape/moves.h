/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Moving what is allocated along with its inventory: from the tree as Placement has it to the tree
 * as the host is. Pure.
 *
 * A class moves for all its consumers or for none: where one cannot be placed, the class keeps the
 * inventories that it had, and everything else goes on. */

#include "base/provider-tree.h"
#include "drivers/driver-reshape.h"
#include "drivers/reshape/rules.h"

/* Compares update->before with update->tree, which is edited where a class stays. reshape may be
 * NULL: nothing may move. DRIVER_UPDATED; DRIVER_UPDATED_IN_PART with words when a class stays that
 * should not; DRIVER_RESHAPE_NEEDED (tree is undefined then); -ENOMEM, -EINVAL. */
int reshape_moves_make(const TreeUpdate *update, DriverReshape *reshape, Error *reterr);
