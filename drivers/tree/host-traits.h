/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The traits of the root provider that say what guests may have here (facts C8): of the CPU, of
 * the emulators, and of the driver itself. Pure.
 *
 * Each trait of these lists is forced, on or off; every other trait of the root is somebody else's
 * and stays (facts C10). What a snapshot does not have (CPU features, emulators) leaves the traits
 * that follow from it as they are. Names that a Placement does not know are the reporter's concern.
 */

#include "base/provider-tree.h"
#include "drivers/host/host-config.h"

/* -ENOMEM. */
int host_traits_update(const HostConfig *config, const Snapshot *snapshot, Provider *root);

/* Calls visit for each trait of the lists, with its state on that host: 1 on, 0 off, -1 left alone.
 * Stops at the first result that is not 0, and returns it. */
int host_traits_visit(const HostConfig *config, const Snapshot *snapshot,
                      int (*visit)(const char *trait, int state, void *userdata), void *userdata);
