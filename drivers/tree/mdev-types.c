/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds the configured types of a device by its address. A device that no type lists gets the first
 * type without addresses. A device that is no PCI function has a path below /sys/devices/virtual as
 * its address, whose last two parts are compared with libvirt's name. A virtual function that
 * becomes a vGPU can have several types. If no type lists it, it gets those of its physical
 * function, or else the first type without addresses. Every other device has one type or none.
 *
 * Tests: tests/unit/drivers/tree/test-mdev-plan.c tests/unit/drivers/tree/test-vgpu-cards.c */

#include "drivers/tree/mdev-types.h"

#include <ctype.h>
#include <string.h>

/* Compares a path with libvirt's name of a device that is not a PCI function. The name is
 * SUBSYSTEM_NAME, the last two parts of the path below /sys/devices/virtual. Each character that
 * is not a letter or digit is '_' in it. */
static bool path_is_device(const char *path, const char *device_name)
{
        const char *tail = path + strlen(path);
        unsigned n_parts = 0;

        while (tail > path && n_parts < 2) {
                tail--;
                if (*tail == '/')
                        n_parts++;
        }
        if (n_parts < 2)
                return false;
        for (tail++; *tail && *device_name; tail++, device_name++)
                if (*device_name != (isalnum((unsigned char)*tail) ? *tail : '_'))
                        return false;
        return *tail == '\0' && *device_name == '\0';
}

/* Returns whether the entry of device_addresses is this device. */
static bool address_is_device(const char *address, const SnapshotDevice *device)
{
        char parsed[PCI_ADDRESS_SIZE];

        if (device->is_pci && pci_address_parse(address, parsed) == 0)
                return strcmp(parsed, device->address) == 0;
        return address[0] == '/' && !device->is_pci && path_is_device(address, device->name);
}

/* Returns whether the type lists the address of the device in device_addresses. */
static bool lists_device(const HostMdevType *type, const SnapshotDevice *device)
{
        for (char **address = type->device_addresses; address && *address; address++)
                if (address_is_device(*address, device))
                        return true;
        return false;
}

static bool has_addresses(const HostMdevType *type)
{
        return type->device_addresses && type->device_addresses[0];
}

/* Returns the set of types that list the device. */
static VgpuTypeSet find_listed(const HostConfig *config, const SnapshotDevice *device)
{
        VgpuTypeSet set = 0;

        for (size_t i = 0; i < MIN(config->n_mdev_types, (size_t)VGPU_TYPES_MAX); i++)
                if (lists_device(&config->mdev_types[i], device))
                        set |= UINT64_C(1) << i;
        return set;
}

VgpuTypeSet vgpu_types_allowed(const HostConfig *config, const SnapshotDevice *function)
{
        SnapshotDevice card = { .name = (char *)"", .is_pci = true };
        VgpuTypeSet set = find_listed(config, function);

        if (!set && function->physical_function[0]) {
                strcpy(card.address, function->physical_function);
                set = find_listed(config, &card);
        }
        for (size_t i = 0; !set && i < MIN(config->n_mdev_types, (size_t)VGPU_TYPES_MAX); i++)
                if (!has_addresses(&config->mdev_types[i]))
                        set = UINT64_C(1) << i;
        return set;
}

/* Returns the first type of the set, or NULL. */
static const HostMdevType *find_first(const HostConfig *config, VgpuTypeSet set)
{
        for (size_t i = 0; i < config->n_mdev_types && i < VGPU_TYPES_MAX; i++)
                if (set & UINT64_C(1) << i)
                        return &config->mdev_types[i];
        return NULL;
}

const HostMdevType *mdev_type_of_device(const HostConfig *config, const SnapshotDevice *device)
{
        const HostMdevType *rest = NULL;

        if (device->is_vgpu_function)
                return find_first(config, vgpu_types_allowed(config, device));
        for (size_t i = 0; i < config->n_mdev_types; i++) {
                const HostMdevType *type = &config->mdev_types[i];

                if (lists_device(type, device))
                        return type;
                if (!rest && (!type->device_addresses || !type->device_addresses[0]))
                        rest = type;
        }
        return rest;
}
