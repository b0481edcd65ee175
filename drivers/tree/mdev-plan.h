/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides how many vGPUs of which type each device offers (facts C4, G2.6). Pure.
 *
 * A parent of mediated devices has at most one type: the first one that lists its address, or else
 * the first one without addresses. If it has that type, it offers the mdevs of that type that
 * exist, used or not, and those that the hardware can still create.
 *
 * A card whose virtual functions become vGPUs (drivers/tree/vgpu-cards.h) has an offer for each
 * configured type that its functions may have, but only one for each class. Its total is that of
 * the empty card, as far as it is known (VgpuCount), and the part that cannot be used now is
 * reserved.
 *
 * The limit max_instances reduces the new vGPUs of a type on the whole host, but never the existing
 * ones. The devices get new ones in the order of their names, parents of mdevs first, and the last
 * one might get only a part. */

#include "drivers/tree/mdev-types.h"
#include "drivers/tree/vgpu-cards.h"

/* The vGPUs of one type that one device offers. */
typedef struct MdevOffer {
        const char *name;             /* libvirt's name of the device; borrowed */
        int numa_node;                /* NUMA_NODE_NONE if it has none */
        const SnapshotDevice *device; /* parent of mdevs; NULL for a card; borrowed */
        VgpuCard *card;               /* card of the plan; NULL for a parent of mdevs */
        const HostMdevType *type;     /* borrowed from the configuration */
        uint64_t existing;            /* existing mdevs, or vGPUs that are used or can be given */
        uint64_t total;               /* with the existing ones; never 0 */
        uint64_t reserved;            /* cannot be used now; always 0 for mdevs */
} MdevOffer;

typedef struct MdevPlan {
        MdevOffer
                *offers; /* by name; those of one card are adjacent, in the order of their types */
        size_t n_offers;
        VgpuCards cards;
} MdevPlan;

void mdev_plan_done(MdevPlan *plan);

/* Makes the plan, without devices that offer nothing. Borrows from config and snapshot. known can
 * be NULL. -ENOMEM. */
int mdev_plan_make(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                   MdevPlan *ret);

/* Returns the first offer of the device with this name, or NULL. O(log n). */
const MdevOffer *mdev_plan_find(const MdevPlan *plan, const char *device_name);
