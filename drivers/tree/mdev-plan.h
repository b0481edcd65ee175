/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How many mediated devices (vGPUs) of which type each parent device offers (facts C4, G2.6). Pure.
 *
 * Each device has one type: the one that lists its address, else the first type that lists none. It
 * offers the mdevs of that type that exist, given to a guest or not, and those that the hardware
 * still has room for. max_instances of a type bounds the second, over the whole host, device by
 * device in the snapshot's order, and in part where need be; never the first. */

#include "drivers/host/host-config.h"

/* A function that becomes a vGPU without an mdev (drivers/host/vgpu-types.h) is a device as any
 * other, of which one can be made. */
typedef struct MdevOffer {
        const SnapshotDevice *device; /* of the snapshot */
        const HostMdevType *type;     /* of the configuration */
        uint64_t existing;
        uint64_t total; /* existing included, never 0 */
} MdevOffer;

typedef struct MdevPlan {
        MdevOffer *offers; /* in the snapshot's order, by the device's name */
        size_t n_offers;
} MdevPlan;

void mdev_plan_done(MdevPlan *plan);

/* Devices that offer nothing are not in it. Borrows from both; -ENOMEM. */
int mdev_plan_make(const HostConfig *config, const Snapshot *snapshot, MdevPlan *ret);

/* The offer of the device of that name, or NULL. */
const MdevOffer *mdev_plan_find(const MdevPlan *plan, const char *device_name);

/* The configured type of a device, whether the device knows it or not; NULL when none is. */
const HostMdevType *mdev_type_of_device(const HostConfig *config, const SnapshotDevice *device);
