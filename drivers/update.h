/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is to be reported of a host, whatever driver found it: Nova's update_provider_tree().
 * Each kind of provider has a file of its own; this one says in which order they come. Pure. */

#include "base/provider-tree.h"
#include "drivers/driver-reshape.h"
#include "drivers/driver.h"

/* Edits tree, which holds what Placement holds, into what the host should have (specification 4,
 * "update_provider_tree").
 *
 * Pure; may be called as often as needed. nodename is the name of the root provider, which must be
 * in the tree. Only what the host owns is changed: foreign providers, traits and aggregates stay
 * (facts C10). Without reshape->consumers (reshape may be NULL) nothing that is allocated may move;
 * where it must, DRIVER_RESHAPE_NEEDED is returned and the tree is as it was (pointers into it are
 * void). Else: consumers whole, as GET /allocations lists them; moved in place, those on this
 * host's providers alone. A configuration of some devices that cannot be obeyed costs those devices
 * and not the tree, and a consumer that cannot be placed its class: DRIVER_UPDATED_IN_PART. -ENOENT
 * when nodename is not in the tree, -EINVAL with words for a host and configuration that do not
 * fit, -ENOMEM; tree and consumers are then undefined. */
int provider_update(const HostConfig *config, const Snapshot *snapshot, ProviderTree *tree,
                    const char *nodename, DriverReshape *reshape, Error *reterr);
