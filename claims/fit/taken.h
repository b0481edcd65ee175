/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The devices that claims and guests have: one rule for the fit, the choice and the adoption. An
 * mdev is identified by its uuid, a PCI device by its address, even if it had another name or
 * provider when it was claimed. Pure.
 *
 * A device can have parts. A card has virtual functions, and a card or a function has mdevs.
 *
 *       card 0000:05:00.0 ── function 0000:05:02.0 ── mdev
 *                        └── mdev
 *
 * A device that is taken whole blocks its parts, and a part that is taken blocks the devices that
 * it is a part of. Parts do not block each other. While the functions of the host are unknown, a
 * card and its functions do not block each other. */

#include "base/string-set.h"
#include "claims/claim/host-facts.h"

typedef struct Taken {
        const HostFacts *facts; /* virtual functions of each card; NULL: unknown. Borrowed; set
                                 * before anything is added, because parts are found by it. */
        StringSet things;       /* uuids of mdevs and PCI addresses */
        StringSet divided;      /* PCI addresses of devices that have a taken part */
        struct {
                Uuid uuid;
                char *device; /* libvirt's name of its parent device */
        } * mdevs;            /* mdevs of claims */
        size_t n_mdevs, n_allocated;
        struct TakenFunction *functions; /* vGPU functions of claims */
        size_t n_functions, n_functions_allocated;
} Taken;

void taken_done(Taken *taken);

/* Adds a device of a claim. An mdev has the name and the PCI address of its parent device ("" if it
 * has none). With UUID_NULL it is a whole device, or a function that is a vGPU of this type. type
 * is "" for devices without one. Copies all arguments. Returns -ENOMEM on failure. */
int taken_add(Taken *taken, const Uuid *mdev, const char *device, const char *address,
              const char *type);

/* Makes a copy of a card of the facts in which the taken functions are marked. Functions of claims
 * that ended after the poll (former_type) count as taken. The caller frees the copy with
 * vgpu_card_done(). Returns -ENOMEM on failure. */
int taken_mark_card(const Taken *taken, const VgpuCard *card, VgpuCard *ret);

/* Adds the devices of all guests of facts, also of those that are off. For a running guest, adds
 * those of its live and of its persistent definition. The devices of an unread guest are unknown.
 * An mdev that does not exist blocks no device, because its device is unknown. Returns -ENOMEM on
 * failure. */
int taken_add_guests(Taken *taken, const HostFacts *facts);

/* Returns true if this mdev or PCI address itself is taken. */
bool taken_has(const Taken *taken, const char *thing);

typedef enum TakenBlock {
        TAKEN_BLOCK_NONE,
        TAKEN_BLOCK_SELF, /* it is taken itself */
        TAKEN_BLOCK_CARD, /* its card, or the device of its mdevs, is taken whole */
        TAKEN_BLOCK_PART, /* a part of it is taken */
} TakenBlock;

/* Returns the reason why a PCI device cannot be given whole. If ret_blocker is not NULL, it gets
 * the address of the device that is taken whole or in part, and address itself without a reason. It
 * is borrowed from facts or address. */
TakenBlock taken_blocks_pci(const Taken *taken, const char *address, const char **ret_blocker);

/* Returns the reason why mdevs of the device cannot be given: TAKEN_BLOCK_CARD or none. Other
 * taken parts of the device do not matter. ret_blocker (can be NULL) gets the address of the
 * device that is taken whole. Without a reason it has no meaning. address is "" for a device that
 * is not on PCI. */
TakenBlock taken_blocks_mdevs(const Taken *taken, const char *address, const char **ret_blocker);

/* Finds the devices of a set that are taken, or that cannot be given out: they are withheld, the
 * host does not offer them, or another device blocks them. ret must be zeroed. */
void taken_mark_set(const Taken *taken, const HostFacts *facts, const DeviceSet *set,
                    DeviceSetUse *ret);

/* Free devices of one class on one provider, and their host cell. */
typedef struct DeviceCapacity {
        const char *key; /* end of the provider's name; borrowed, like the class */
        const char *resource_class;
        uint64_t n_free;
        uint64_t n_blocked;   /* devices that are neither taken nor free: their card or a part of
                               * them is taken, or vGPUs of other types use the card */
        const char *blocker;  /* PCI address of the taken device; NULL: none is blocked */
        bool in_part;         /* a part of the blocker is taken, not the whole */
        int cell;             /* HOST_CELL_NONE if it has none, or its set several */
        const DeviceSet *set; /* set of which n_free members are not taken; NULL: none */
        uint64_t amounts;     /* amounts of partitions of the set that fit (device_set_amounts()) */
} DeviceCapacity;

/* Counts all devices of the host. The rules are those of the choices: device_choose() for mdevs,
 * taken_blocks_pci() for PCI devices, vgpu_card_count() for vGPU types, taken_mark_set() for sets.
 * Yields an array by key and class, which the caller frees, and which borrows from facts. Returns
 * -ENOMEM on failure; ret is unchanged then. */
int device_capacities_make(DeviceCapacity **ret, size_t *ret_n, const HostFacts *facts,
                           const Taken *taken);

/* Returns NULL if the class on that provider counts no devices. */
const DeviceCapacity *device_capacities_find(const DeviceCapacity *capacities, size_t n,
                                             const char *node, const char *provider_name,
                                             const char *resource_class);
