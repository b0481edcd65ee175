/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Moving vGPUs that were allocated on the root provider to the providers of the GPUs that they are
 * on (facts C5.1). Pure. */

#include "base/allocation.h"
#include "drivers/mdev-plan.h"

/* True when the root still has the inventory that GPUs' providers will have. */
bool mdev_reshape_needed(const MdevPlan *plan, const Provider *root);

/* Moves what each consumer holds of VGPU on the root to where the mdevs of its domain really are;
 * where the two amounts differ, the mdevs count. Allocations on every other provider stay. The
 * GPUs' providers must be in the tree. -EINVAL with words for a consumer that cannot be placed,
 * -ENOMEM. */
int mdev_reshape(const Snapshot *snapshot, const MdevPlan *plan, const ProviderTree *tree,
                 const Provider *root, Allocations *allocations, Error *reterr);
