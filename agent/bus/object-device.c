/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/object-device.h"

#include <string.h>

void object_devices_done(ObjectDevices *devices)
{
        for (size_t i = 0; i < devices->n_items; i++) {
                ObjectDevice *device = &devices->items[i];

                free(device->name);
                free(device->address);
                free(device->resource_class);
                free(device->mdev_type);
                free(device->driver);
                free(device->vendor);
                free(device->product);
        }
        free(devices->items);
        *devices = (ObjectDevices){ 0 };
}

static int compare_devices(const void *a, const void *b)
{
        return strcmp(((const ObjectDevice *)a)->name, ((const ObjectDevice *)b)->name);
}

static int add_device(ObjectDevices *devices, const Snapshot *snapshot, const char *name,
                      const char *address, const char *resource_class, const char *mdev_type)
{
        const SnapshotDevice *seen = snapshot_find_device(snapshot, name);
        ObjectDevice *device = &devices->items[devices->n_items++];

        *device = (ObjectDevice){
                .name = strdup(name),
                .address = strdup(address),
                .resource_class = strdup(resource_class),
                .mdev_type = strdup(mdev_type),
                .driver = strdup(seen ? seen->driver : ""),
                .vendor = strdup(seen ? seen->vendor : ""),
                .product = strdup(seen ? seen->product : ""),
                .numa_node = seen ? seen->numa_node : NUMA_NODE_NONE,
        };
        return device->name && device->address && device->resource_class && device->mdev_type &&
                               device->driver && device->vendor && device->product
                       ? 0
                       : -ENOMEM;
}

int object_devices_make(const HostFacts *facts, const Snapshot *snapshot, ObjectDevices *ret)
{
        _cleanup_(object_devices_done) ObjectDevices devices = { 0 };
        int r = 0;

        devices.items = calloc(facts->n_devices + facts->n_pci + 1, sizeof(ObjectDevice));
        if (!devices.items)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < facts->n_devices; i++)
                r = add_device(&devices, snapshot, facts->devices[i].name,
                               facts->devices[i].address, facts->devices[i].resource_class,
                               facts->devices[i].mdev_type);
        for (size_t i = 0; r >= 0 && i < facts->n_pci; i++)
                r = add_device(&devices, snapshot, facts->pci[i].name, facts->pci[i].address,
                               facts->pci[i].resource_class, "");
        if (r < 0)
                return r;
        qsort(devices.items, devices.n_items, sizeof(ObjectDevice), compare_devices);
        *ret = devices;
        devices = (ObjectDevices){ 0 };
        return 0;
}

static int compare_name(const void *name, const void *device)
{
        return strcmp(name, ((const ObjectDevice *)device)->name);
}

const ObjectDevice *object_devices_find(const ObjectDevices *devices, const char *name)
{
        return devices->n_items == 0 ? NULL
                                     : bsearch(name, devices->items, devices->n_items,
                                               sizeof(ObjectDevice), compare_name);
}
