/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes the cards of a host whose virtual functions become vGPUs (base/vgpu-card.h), from a poll,
 * the configuration, and what the agent remembers. Pure. */

#include "base/vgpu-card.h"
#include "drivers/host/host-config.h"
#include "drivers/host/vgpu-sizes.h"

/* A PCI device that a living claim has. */
typedef struct DeviceHolding {
        char address[PCI_ADDRESS_SIZE];
        char *type; /* "nvidia-1428" for a vGPU; "" if it is none; owned */
} DeviceHolding;

/* Facts about devices beside the poll. */
typedef struct DeviceFacts {
        VgpuSizes sizes;
        StringSet withheld; /* PCI addresses of members of sets (HostShapes) that are not given out,
                               such as cordoned ones */
        DeviceHolding *holdings;
        size_t n_holdings, n_allocated;
} DeviceFacts;

void device_facts_done(DeviceFacts *facts);

/* Removes all holdings. */
void device_facts_clear_holdings(DeviceFacts *facts);

/* Adds a device that a claim has. type is "" unless it is a vGPU. -ENOMEM. */
int device_facts_add_holding(DeviceFacts *facts, const char *address, const char *type);

typedef struct VgpuCards {
        VgpuCard *items; /* sorted by name */
        size_t n_items, n_allocated;
} VgpuCards;

void vgpu_cards_done(VgpuCards *cards);

/* Makes all cards with a function that the configuration allows to be a vGPU. A function whose card
 * is unknown is left out. known can be NULL. Functions of known->holdings and of domains are taken,
 * in both definitions of a domain. Limits of types are not set. The functions borrow from the
 * snapshot. -ENOMEM. */
int vgpu_cards_make(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                    VgpuCards *ret);
