/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/object-changes.h"

#include <string.h>

#include "base/array.h"

void object_changes_done(ObjectChanges *changes)
{
        for (size_t i = 0; i < changes->n_items; i++)
                free(changes->items[i].key);
        free(changes->items);
        *changes = (ObjectChanges){ 0 };
}

/* Numbers come out in their order: a flock of new claims is only ever appended. */
static int compare_keys(const char *a, const char *b)
{
        size_t length_a = strlen(a), length_b = strlen(b);

        return length_a != length_b ? (length_a < length_b ? -1 : 1) : strcmp(a, b);
}

static int order_change(const void *key, const void *item)
{
        const ObjectChange *a = key, *b = item;

        if (a->kind != b->kind)
                return a->kind < b->kind ? -1 : 1;
        return compare_keys(a->key, b->key);
}

/* Where it stands, or would. */
static size_t find_place(const ObjectChanges *changes, ObjectKind kind, const char *key,
                         bool *ret_found)
{
        ObjectChange wanted = { .kind = kind, .key = (char *)key };

        return array_find(changes->items, sizeof(wanted), changes->n_items, &wanted, order_change,
                          ret_found);
}

static void drop(ObjectChanges *changes, size_t place)
{
        free(changes->items[place].key);
        array_close(changes->items, sizeof(ObjectChange), &changes->n_items, place);
}

static void merge(ObjectChanges *changes, size_t place, ObjectFate fate, unsigned properties)
{
        ObjectChange *change = &changes->items[place];

        if (fate == OBJECT_REMOVED && change->fate == OBJECT_ADDED) {
                drop(changes, place);
        } else if (fate == OBJECT_REMOVED) {
                change->fate = OBJECT_REMOVED;
        } else if (fate == OBJECT_ADDED && change->fate == OBJECT_REMOVED) {
                change->fate = OBJECT_CHANGED;
                change->properties = OBJECT_PROPERTIES_ALL;
        } else if (fate == OBJECT_ADDED) {
                change->fate = OBJECT_ADDED; /* what was noted of it came earlier than itself */
        } else if (change->fate == OBJECT_CHANGED) {
                change->properties |= properties;
        }
}

int object_changes_add(ObjectChanges *changes, ObjectKind kind, const char *key, ObjectFate fate,
                       unsigned properties)
{
        bool found;
        size_t place = find_place(changes, kind, key, &found);
        char *copy;

        if (found) {
                merge(changes, place, fate, properties);
                return 0;
        }
        if (array_grow(&changes->items, sizeof(ObjectChange), changes->n_items,
                       &changes->n_allocated) < 0)
                return -ENOMEM;
        copy = strdup(key);
        if (!copy)
                return -ENOMEM;
        array_open(changes->items, sizeof(ObjectChange), &changes->n_items, place);
        changes->items[place] =
                (ObjectChange){ .kind = kind, .fate = fate, .key = copy, .properties = properties };
        return 0;
}

/* Providers */

static unsigned compare_providers(const Provider *before, const Provider *after)
{
        unsigned properties = 0;

        if (strcmp(before->name, after->name) != 0)
                properties |= PROVIDER_PROPERTY_NAME;
        if (!uuid_equal(&before->parent, &after->parent))
                properties |= PROVIDER_PROPERTY_PARENT;
        if (!provider_inventories_equal(before, after))
                properties |= PROVIDER_PROPERTY_INVENTORIES;
        if (!string_set_equal(&before->traits, &after->traits))
                properties |= PROVIDER_PROPERTY_TRAITS;
        if (!string_set_equal(&before->aggregates, &after->aggregates))
                properties |= PROVIDER_PROPERTY_AGGREGATES;
        return properties;
}

/* What is known already as its fate: added, or changed in these properties (0: not at all). */
static int note(ObjectChanges *changes, ObjectKind kind, const char *key, bool is_new,
                unsigned properties)
{
        if (!is_new && properties == 0)
                return 0;
        return object_changes_add(changes, kind, key, is_new ? OBJECT_ADDED : OBJECT_CHANGED,
                                  properties);
}

int object_changes_compare_trees(ObjectChanges *changes, const ProviderTree *before,
                                 const ProviderTree *after)
{
        int r = 0;

        for (size_t i = 0; before && r >= 0 && i < before->n_providers; i++) {
                const Uuid *uuid = &before->providers[i]->uuid;

                if (!provider_tree_find(after, uuid))
                        r = object_changes_add(changes, OBJECT_PROVIDER, uuid->text, OBJECT_REMOVED,
                                               0);
        }
        for (size_t i = 0; r >= 0 && i < after->n_providers; i++) {
                const Provider *provider = after->providers[i];
                const Provider *old = before ? provider_tree_find(before, &provider->uuid) : NULL;

                r = note(changes, OBJECT_PROVIDER, provider->uuid.text, !old,
                         old ? compare_providers(old, provider) : 0);
        }
        return r;
}

/* Devices */

static unsigned compare_devices(const ObjectDevice *before, const ObjectDevice *after)
{
        const struct {
                const char *before, *after;
                unsigned property;
        } texts[] = {
                { before->address, after->address, DEVICE_PROPERTY_ADDRESS },
                { before->resource_class, after->resource_class, DEVICE_PROPERTY_RESOURCE_CLASS },
                { before->mdev_type, after->mdev_type, DEVICE_PROPERTY_MDEV_TYPE },
                { before->driver, after->driver, DEVICE_PROPERTY_DRIVER },
                { before->vendor, after->vendor, DEVICE_PROPERTY_VENDOR },
                { before->product, after->product, DEVICE_PROPERTY_PRODUCT },
        };
        unsigned properties = before->numa_node != after->numa_node ? DEVICE_PROPERTY_NUMA_NODE : 0;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (strcmp(texts[i].before, texts[i].after) != 0)
                        properties |= texts[i].property;
        return properties;
}

int object_changes_compare_devices(ObjectChanges *changes, const ObjectDevices *before,
                                   const ObjectDevices *after)
{
        int r = 0;

        for (size_t i = 0; before && r >= 0 && i < before->n_items; i++)
                if (!object_devices_find(after, before->items[i].name))
                        r = object_changes_add(changes, OBJECT_DEVICE, before->items[i].name,
                                               OBJECT_REMOVED, 0);
        for (size_t i = 0; r >= 0 && i < after->n_items; i++) {
                const ObjectDevice *device = &after->items[i];
                const ObjectDevice *old = before ? object_devices_find(before, device->name) : NULL;

                r = note(changes, OBJECT_DEVICE, device->name, !old,
                         old ? compare_devices(old, device) : 0);
        }
        return r;
}

const char *object_property_name(ObjectKind kind, unsigned index)
{
        static const char *const names[_OBJECT_KIND_MAX][8] = {
                [OBJECT_PROVIDER] = { "Name", "Parent", "Inventories", "Usage", "Traits",
                                      "Aggregates" },
                [OBJECT_DEVICE] = { "Address", "ResourceClass", "MdevType", "Driver", "Vendor",
                                    "Product", "NumaNode", "Claims" },
                [OBJECT_CLAIM] = { "State", "ResizeTarget", "ExpiresUSec", "Allocations", "Devices",
                                   "Cells", "Cpus", "Mappings" },
        };

        return index < ARRAY_SIZE(names[kind]) ? names[kind][index] : NULL;
}
