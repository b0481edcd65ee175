/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides how many mediated devices (vGPUs) of which type each parent device offers (facts C4,
 * G2.6). Pure.
 *
 * Each device has one type: the one that lists its address, or else the first type without
 * addresses. The device offers the mdevs of that type that exist, used or not, and those that the
 * hardware can still create. The limit max_instances reduces the new ones of a type on the whole
 * host, but never the existing ones. The devices get new ones in the snapshot's order, and the last
 * one might get only a part. */

#include "drivers/host/host-config.h"

/* The mdevs of one device. A function that becomes a vGPU without an mdev
 * (drivers/host/vgpu-types.h) is a device with one mdev. */
typedef struct MdevOffer {
        const SnapshotDevice *device; /* borrowed from the snapshot */
        const HostMdevType *type;     /* borrowed from the configuration */
        /* existing mdevs */
        uint64_t existing;
        uint64_t total; /* with the existing ones; never 0 */
} MdevOffer;

typedef struct MdevPlan {
        MdevOffer *offers; /* in the snapshot's order: by the device's name */
        size_t n_offers;
} MdevPlan;

void mdev_plan_done(MdevPlan *plan);

/* Makes the plan, without devices that offer nothing. Borrows from both arguments. -ENOMEM. */
int mdev_plan_make(const HostConfig *config, const Snapshot *snapshot, MdevPlan *ret);

/* Returns the offer of the device with this name, or NULL. O(log n). */
const MdevOffer *mdev_plan_find(const MdevPlan *plan, const char *device_name);

/* Returns the configured type of a device, even if the device does not offer it. NULL if none is
 * configured. */
const HostMdevType *mdev_type_of_device(const HostConfig *config, const SnapshotDevice *device);
