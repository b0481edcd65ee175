/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides how many mdevs each device offers. Each device with mdev types gets one offer, of its
 * configured type. Existing mdevs always count. max_instances of a type limits the sum of
 * existing and new mdevs on the host. The rest after all existing ones goes to the devices of
 * the type in their order. Offers of 0 are removed at the end, because Placement has no
 * inventories of 0.
 *
 * Tests: tests/unit/drivers/tree/test-mdev-plan.c */

#include "drivers/tree/mdev-plan.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"

void mdev_plan_done(MdevPlan *plan)
{
        free(plan->offers);
        *plan = (MdevPlan){ 0 };
}

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

const HostMdevType *mdev_type_of_device(const HostConfig *config, const SnapshotDevice *device)
{
        const HostMdevType *rest = NULL;

        for (size_t i = 0; i < config->n_mdev_types; i++) {
                const HostMdevType *type = &config->mdev_types[i];

                if (!type->device_addresses || !type->device_addresses[0]) {
                        if (!rest)
                                rest = type;
                        continue;
                }
                for (char **address = type->device_addresses; *address; address++)
                        if (address_is_device(*address, device))
                                return type;
        }
        return rest;
}

/* Returns the device's record of its configured type, or NULL if it does not offer that type. */
static const MdevType *find_mdev_type(const SnapshotDevice *device, const HostMdevType *type)
{
        return type ? snapshot_find_mdev_type(device, type->type) : NULL;
}

/* Counts the mdevs of the offer's type, and vGPUs without an mdev. */
static uint64_t count_existing(const Snapshot *snapshot, const MdevOffer *offer)
{
        uint64_t n = find_mdev_type(offer->device, offer->type)->created_instances;
        size_t n_mdevs;
        const SnapshotMdev *mdevs = snapshot_mdevs_of(snapshot, offer->device->name, &n_mdevs);

        for (size_t i = 0; i < n_mdevs; i++)
                n += strcmp(mdevs[i].type, offer->type->type) == 0;
        return n;
}

/* Returns the number of new mdevs that max_instances allows; UINT64_MAX without a limit. */
static uint64_t room_left(const MdevPlan *plan, const HostMdevType *type)
{
        uint64_t existing = 0;

        if (type->max_instances == 0)
                return UINT64_MAX;
        for (size_t i = 0; i < plan->n_offers; i++)
                if (plan->offers[i].type == type)
                        existing += plan->offers[i].existing;
        return type->max_instances > existing ? type->max_instances - existing : 0;
}

/* Gives each offer of the type its total. */
static void share_out(MdevPlan *plan, const HostMdevType *type)
{
        uint64_t room = room_left(plan, type);

        for (size_t i = 0; i < plan->n_offers; i++) {
                MdevOffer *offer = &plan->offers[i];
                uint64_t available;

                if (offer->type != type)
                        continue;
                available = MIN(find_mdev_type(offer->device, type)->available_instances, room);
                available = MIN(available, INVENTORY_MAX_AMOUNT);
                if (room != UINT64_MAX)
                        room -= available;
                offer->total = MIN(offer->existing + available, INVENTORY_MAX_AMOUNT);
        }
}

static void drop_empty(MdevPlan *plan)
{
        size_t n = 0;

        for (size_t i = 0; i < plan->n_offers; i++)
                if (plan->offers[i].total > 0)
                        plan->offers[n++] = plan->offers[i];
        plan->n_offers = n;
}

int mdev_plan_make(const HostConfig *config, const Snapshot *snapshot, MdevPlan *ret)
{
        _cleanup_(mdev_plan_done) MdevPlan plan = { 0 };
        size_t n_allocated = 0;

        for (size_t i = 0; i < snapshot->n_devices; i++) {
                MdevOffer offer = { .device = &snapshot->devices[i] };

                if (offer.device->n_mdev_types == 0)
                        continue;
                offer.type = mdev_type_of_device(config, offer.device);
                if (!find_mdev_type(offer.device, offer.type))
                        continue;
                offer.existing = count_existing(snapshot, &offer);
                if (array_grow(&plan.offers, sizeof(MdevOffer), plan.n_offers, &n_allocated) < 0)
                        return -ENOMEM;
                plan.offers[plan.n_offers++] = offer;
        }
        for (size_t i = 0; i < config->n_mdev_types; i++)
                share_out(&plan, &config->mdev_types[i]);
        drop_empty(&plan);
        *ret = TAKE_STRUCT(plan);
        return 0;
}

static int order_device(const void *key, const void *item)
{
        return strcmp(key, ((const MdevOffer *)item)->device->name);
}

const MdevOffer *mdev_plan_find(const MdevPlan *plan, const char *device_name)
{
        bool found;
        size_t place = array_find(plan->offers, sizeof(MdevOffer), plan->n_offers, device_name,
                                  order_device, &found);

        return found ? &plan->offers[place] : NULL;
}
