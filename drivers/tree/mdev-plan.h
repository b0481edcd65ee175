/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides how many vGPUs of which type each device offers (facts C4, G2.6). Pure.
 *
 * A parent of mediated devices has at most one type: the first one that lists its address, or else
 * the first one without addresses. If it has that type, it offers the mdevs of that type that
 * exist, used or not, and those that the hardware can still create.
 *
 * A card whose virtual functions become vGPUs (base/vgpu-card.h) has an offer for each configured
 * type that its functions may have, but only one for each class. Its total is that of the empty
 * card, as far as it is known (VgpuCount), and the part that cannot be used now is reserved.
 *
 * The limit max_instances reduces the new vGPUs of a type on the whole host, but never the existing
 * ones. The devices get new ones in the order of their names, parents of mdevs first, and the last
 * one might get only a part. */

#include "drivers/host/vgpu-sizes.h"
#include "drivers/tree/mdev-types.h"

/* Facts about devices beside the poll. */
typedef struct DeviceFacts {
        VgpuSizes sizes;
        StringSet withheld; /* PCI addresses of members of sets (HostShapes) that are not given out,
                               such as cordoned ones */
        StringSet exchanged; /* providers at whose place another device is than when Placement got
                                their class. Their allocations belong to the former device. */
        /* PCI devices that living claims have */
        struct {
                char address[PCI_ADDRESS_SIZE];
                char *type; /* "nvidia-1428" for a vGPU; "" if it is none; owned */
        } * holdings;
        size_t n_holdings, n_allocated;
} DeviceFacts;

void device_facts_done(DeviceFacts *facts);

/* Removes all holdings. */
void device_facts_clear_holdings(DeviceFacts *facts);

/* Adds a device that a claim has. type is "" unless it is a vGPU. -ENOMEM. */
int device_facts_add_holding(DeviceFacts *facts, const char *address, const char *type);

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
        VgpuCard *cards; /* each with a function that can be a vGPU; by name */
        size_t n_cards, n_cards_allocated;
} MdevPlan;

void mdev_plan_done(MdevPlan *plan);

/* Makes the plan, without devices that offer nothing. Borrows from config and snapshot. known can
 * be NULL. -ENOMEM. */
int mdev_plan_make(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                   MdevPlan *ret);

/* Returns the first offer of the device with this name, or NULL. O(log n). */
const MdevOffer *mdev_plan_find(const MdevPlan *plan, const char *device_name);
