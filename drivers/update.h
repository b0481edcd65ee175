/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Turns a snapshot of a host, from any driver, into providers: Nova's update_provider_tree().
 * Each kind of provider has a file below drivers/tree; this one calls them in order. Pure. */

#include "base/provider-tree.h"
#include "drivers/driver-reshape.h"
#include "drivers/driver.h"
#include "drivers/tree/mdev-plan.h"

/* Edits tree, which equals Placement's, into the tree that the host should have. The name of its
 * root provider is nodename (specification 4, "update_provider_tree"). known has facts about
 * devices that the snapshot lacks, and can be NULL. Only parts that the host owns change. Foreign
 * providers and aggregates stay, and foreign traits except those on providers of PCI devices (facts
 * C10). The function can be called as often as needed.
 *
 * reshape can be NULL. Without reshape->consumers no allocation can move. If a class would have to
 * move, used or not, and is not in reshape->kept, the function returns DRIVER_RESHAPE_NEEDED. It
 * then restores the tree, and pointers into it are invalid. With consumers, which must be complete
 * as GET /allocations lists them, it moves their allocations in place, and only those on providers
 * of this host. Dedicated CPUs on which guests without pins can run are reserved only without
 * consumers.
 *
 * DRIVER_UPDATED_IN_PART, with an error text: a part of the host is left out or limited. Examples
 * are devices whose configuration cannot be obeyed, an unknown size of the disk, and a reserved
 * amount above the total. Also if a consumer cannot be moved; its class then stays where it is, and
 * the text names the first such consumer. Also if a class of reshape->kept stays, with the text of
 * reshape->blocked. The tree is then valid and complete except for these parts.
 *
 * Errors: -ENOENT if no root of the tree has the name nodename, -EINVAL with an error text if host
 * and configuration do not fit, -ENOMEM, or another error of provider_tree_add(). Tree and
 * consumers are then undefined. */
int provider_update(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                    ProviderTree *tree, const char *nodename, DriverReshape *reshape,
                    Error *reterr);
