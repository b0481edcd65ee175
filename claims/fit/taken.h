/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which devices somebody has: one rule for all who fit, choose and adopt. An mdev is known by its
 * uuid and a whole device by its PCI address, whatever device or provider it was under when it was
 * promised. A device with mdevs that are promised is not there as a whole. Pure. */

#include "base/string-set.h"
#include "claims/claim/host-facts.h"

/* An mdev that a claim has. */
typedef struct TakenMdev {
        Uuid uuid;
        char *device; /* libvirt's name of the device that it was promised on */
} TakenMdev;

typedef struct Taken {
        StringSet things; /* uuids of mdevs and PCI addresses */
        TakenMdev *mdevs;
        size_t n_mdevs, n_allocated;
} Taken;

void taken_done(Taken *taken);

/* What a claim has; mdev UUID_NULL: the whole device. All are copied. -ENOMEM. */
int taken_add(Taken *taken, const Uuid *mdev, const char *device, const char *address);

/* What guests have in their XML, also those that do not run. -ENOMEM. */
int taken_add_guests(Taken *taken, const HostFacts *facts);

bool taken_has(const Taken *taken, const char *thing);

/* How many of one class a provider of devices can still give, and where they are. */
typedef struct DeviceRoom {
        const char *key; /* what the provider's name ends with; borrowed, as the class */
        const char *resource_class;
        uint64_t n_free;
        int cell; /* HOST_CELL_NONE when it has none */
} DeviceRoom;

typedef struct DeviceRooms {
        DeviceRoom *items; /* by key, then class */
        size_t n_items;
} DeviceRooms;

void device_rooms_done(DeviceRooms *rooms);

/* Of all devices of the host, by the rules of device_choose(). Borrows from facts. -ENOMEM. */
int device_rooms_make(DeviceRooms *ret, const HostFacts *facts, const Taken *taken);

/* NULL when the class on that provider is no device's. */
const DeviceRoom *device_rooms_find(const DeviceRooms *rooms, const char *node,
                                    const char *provider_name, const char *resource_class);
