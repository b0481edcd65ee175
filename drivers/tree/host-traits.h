/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Traits of the root provider (facts C8): of the CPU, of the emulators, and of the driver. Pure.
 *
 * Each trait of these lists is set or removed; every other trait of the root belongs to another
 * writer and stays (facts C10). If the snapshot has no CPU features, the traits of features stay
 * unchanged; without cells, HW_CPU_HYPERTHREADING does. If it has no emulators, all other traits
 * stay unchanged, even those that follow from the configuration. While the features are incomplete,
 * their traits are set but not removed. While the emulators are, the same is true for all other
 * traits except HW_CPU_HYPERTHREADING. The reporter handles traits that Placement does not know. */

#include "base/provider-tree.h"
#include "drivers/host/host-config.h"

/* Edits the traits of the root. -ENOMEM. */
int host_traits_update(const HostConfig *config, const Snapshot *snapshot, Provider *root);

/* Calls visit for each trait of the lists with its state on the host: 1 on, 0 off, -1 unknown. The
 * text of the trait is valid during the call only. Stops at the first result that is not 0 and
 * returns it, or returns 0. */
int host_traits_visit(const HostConfig *config, const Snapshot *snapshot,
                      int (*visit)(const char *trait, int state, void *userdata), void *userdata);
