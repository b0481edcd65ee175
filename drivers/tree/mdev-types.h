/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which of the configured types of vGPUs a device can have ([devices] enabled_mdev_types
 * and [mdev_TYPE] device_addresses, facts C4). Pure. */

#include "base/vgpu-card.h"
#include "drivers/host/host-config.h"

/* Returns the configured type of a device, even if the device does not offer it: the first one that
 * lists its address, or else the first one without addresses. For a virtual function that becomes a
 * vGPU, the first of vgpu_types_allowed(). NULL if no type is configured for it. */
const HostMdevType *mdev_type_of_device(const HostConfig *config, const SnapshotDevice *device);

/* Returns the set of indices into config->mdev_types that a virtual function may have. These are
 * the types that list its address, or else those that list its physical function, or else the first
 * one without addresses. Types after the first VGPU_TYPES_MAX are ignored. */
VgpuTypeSet vgpu_types_allowed(const HostConfig *config, const SnapshotDevice *function);
