/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What became of the objects on the bus since it was told last: one entry for each object that
 * came, went or changed, however often it did. Pure.
 *
 * Providers and devices are compared, before with after, once a cycle. Claims, and what they use,
 * come as single events, which are merged here. */

#include "agent/bus/object-device.h"
#include "base/provider-tree.h"

typedef enum ObjectKind {
        OBJECT_PROVIDER,
        OBJECT_DEVICE,
        OBJECT_CLAIM,
        _OBJECT_KIND_MAX,
} ObjectKind;

/* Bits of ObjectChange.properties; object_property_name() has the names. */
enum {
        PROVIDER_PROPERTY_NAME = 1 << 0,
        PROVIDER_PROPERTY_PARENT = 1 << 1,
        PROVIDER_PROPERTY_INVENTORIES = 1 << 2,
        PROVIDER_PROPERTY_USAGE = 1 << 3,
        PROVIDER_PROPERTY_TRAITS = 1 << 4,
        PROVIDER_PROPERTY_AGGREGATES = 1 << 5,

        DEVICE_PROPERTY_ADDRESS = 1 << 0,
        DEVICE_PROPERTY_RESOURCE_CLASS = 1 << 1,
        DEVICE_PROPERTY_MDEV_TYPE = 1 << 2,
        DEVICE_PROPERTY_DRIVER = 1 << 3,
        DEVICE_PROPERTY_VENDOR = 1 << 4,
        DEVICE_PROPERTY_PRODUCT = 1 << 5,
        DEVICE_PROPERTY_NUMA_NODE = 1 << 6,
        DEVICE_PROPERTY_CLAIMS = 1 << 7,

        OBJECT_PROPERTIES_ALL = (1 << 8) - 1,
};

typedef enum ObjectFate {
        OBJECT_ADDED,
        OBJECT_CHANGED,
        OBJECT_REMOVED,
} ObjectFate;

typedef struct ObjectChange {
        ObjectKind kind;
        ObjectFate fate;
        char *key;           /* uuid of a provider, name of a device, number of a claim */
        unsigned properties; /* of OBJECT_CHANGED */
} ObjectChange;

typedef struct ObjectChanges {
        ObjectChange *items; /* by kind, then by length and text of key */
        size_t n_items, n_allocated;
} ObjectChanges;

void object_changes_done(ObjectChanges *changes);

/* Merges: what came and went was never there, what went and came back has changed. key is copied.
 * -ENOMEM. */
int object_changes_add(ObjectChanges *changes, ObjectKind kind, const char *key, ObjectFate fate,
                       unsigned properties);

/* Adds what differs. before may be NULL: everything came. Usage and claims are not compared.
 * -ENOMEM. */
int object_changes_compare_trees(ObjectChanges *changes, const ProviderTree *before,
                                 const ProviderTree *after);
int object_changes_compare_devices(ObjectChanges *changes, const ObjectDevices *before,
                                   const ObjectDevices *after);

/* The name of the property of bit 1 << index, or NULL when the kind has no more of them. Those that
 * never change have no bit. */
const char *object_property_name(ObjectKind kind, unsigned index);
