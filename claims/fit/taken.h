/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The devices that claims and guests have: one rule for the fit, the choice and the adoption. An
 * mdev is identified by its uuid, a whole device by its PCI address, whatever its name or provider
 * was when it was claimed. Pure.
 *
 * A device is in parts: a card has virtual functions, and a card or a function has mdevs.
 *
 *      card 0000:05:00.0 ── function 0000:05:02.0 ── mdev
 *                       └── mdev
 *
 * A device that is taken whole blocks its parts, and a part that is taken blocks the devices that
 * it is a part of. Parts do not block each other. */

#include "base/string-set.h"
#include "claims/claim/host-facts.h"

/* An mdev that a claim has. */
typedef struct TakenMdev {
        Uuid uuid;
        char *device; /* libvirt's name of the device that it was promised on */
} TakenMdev;

typedef struct Taken {
        const HostFacts *facts; /* which functions a card has; NULL: unknown. Borrowed */
        StringSet things;       /* uuids of mdevs and PCI addresses */
        StringSet divided;      /* PCI addresses of devices that have a taken part */
        TakenMdev *mdevs;
        size_t n_mdevs, n_allocated;
} Taken;

void taken_done(Taken *taken);

/* Adds a device of a claim: an mdev and the name and PCI address of the device that it is on (""
 * when it has none), or with UUID_NULL a whole device. Copies all of them. -ENOMEM. */
int taken_add(Taken *taken, const Uuid *mdev, const char *device, const char *address);

/* Adds the devices of all guests of facts, also of those that do not run, and for a running guest
 * those of its live and of its persistent definition. -ENOMEM. */
int taken_add_guests(Taken *taken, const HostFacts *facts);

/* Is it taken itself? */
bool taken_has(const Taken *taken, const char *thing);

typedef enum TakenBlock {
        TAKEN_BLOCK_NONE,
        TAKEN_BLOCK_SELF, /* it is taken itself */
        TAKEN_BLOCK_CARD, /* its card, or the device of its mdevs, is taken whole */
        TAKEN_BLOCK_PART, /* a part of it is taken */
} TakenBlock;

/* Says why a PCI device cannot be given whole. *ret_blocker is the address of the device that is
 * taken whole or in part, borrowed from facts or address; it can be NULL. */
TakenBlock taken_blocks_pci(const Taken *taken, const char *address, const char **ret_blocker);

/* The same for mdevs of the device: parts of it that are taken do not block others. address is ""
 * for a device that is not on PCI. */
TakenBlock taken_blocks_mdevs(const Taken *taken, const char *address, const char **ret_blocker);

/* How many of one class a provider of devices can still give, and where they are. */
typedef struct DeviceRoom {
        const char *key; /* what the provider's name ends with; borrowed, as the class */
        const char *resource_class;
        uint64_t n_free;
        uint64_t n_blocked;  /* not taken, and not free: by a card that is taken, or by a part */
        const char *blocker; /* PCI address of the device that is taken; NULL: none is blocked */
        bool in_part;        /* a part of the blocker is taken, not the whole */
        int cell;            /* HOST_CELL_NONE when it has none */
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
