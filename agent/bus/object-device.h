/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The devices of this host that guests may have by its configuration, as the bus shows them.
 * Plain data that owns its texts: it outlives the poll that it was made of. */

#include "claims/claim/host-facts.h"
#include "drivers/host/snapshot.h"

typedef struct ObjectDevice {
        char *name;           /* libvirt's: "pci_0000_41_00_0" */
        char *address;        /* PCI address, "" when it has none */
        char *resource_class; /* what it, or one mdev of it, counts as */
        char *mdev_type;      /* that is made on it, "" when it is given whole */
        char *driver;         /* "" when none is bound, or it is not known */
        char *vendor, *product;
        int numa_node; /* NUMA_NODE_NONE when it has none */
} ObjectDevice;

typedef struct ObjectDevices {
        ObjectDevice *items; /* by name */
        size_t n_items;
} ObjectDevices;

/* Of one poll; ret is to be freed with object_devices_done(). -ENOMEM. */
int object_devices_make(const HostFacts *facts, const Snapshot *snapshot, ObjectDevices *ret);
void object_devices_done(ObjectDevices *devices);

/* Borrowed, or NULL. */
const ObjectDevice *object_devices_find(const ObjectDevices *devices, const char *name);
