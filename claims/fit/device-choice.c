/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Chooses mediated devices, and finds the devices of a provider by its name. A provider
 * "<node>_<device>" belongs to one parent of mediated devices, or to the vGPU functions of one
 * card. A provider "<node>_<ADDRESS>" belongs to one PCI device, or to the virtual functions of one
 * card. A set of devices has a provider of its own (HostPci.provider). The facts and the taken
 * devices are only read. The caller adds each chosen device to the taken ones before it chooses the
 * next.
 *
 * Tests: tests/unit/claims/fit/test-device-choice.c */

#include "claims/fit/device-choice.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

const HostDevice *device_of_provider(const HostFacts *facts, const char *node,
                                     const char *provider_name, const char *resource_class)
{
        size_t n = strlen(node);
        const HostDevice *device;

        if (strncmp(provider_name, node, n) != 0 || provider_name[n] != '_')
                return NULL;
        device = host_facts_find_device(facts, provider_name + n + 1);
        return device && strcmp(device->resource_class, resource_class) == 0 ? device : NULL;
}

const HostPci *pci_of_provider(const HostFacts *facts, const char *node, const char *provider_name,
                               const char *resource_class, const HostPci *after)
{
        size_t n = strlen(node);

        if (strncmp(provider_name, node, n) != 0 || provider_name[n] != '_')
                return NULL;
        for (size_t i = after ? (size_t)(after - facts->pci) + 1 : 0; i < facts->n_pci; i++)
                if (strcasecmp(facts->pci[i].provider, provider_name + n + 1) == 0 &&
                    strcmp(facts->pci[i].resource_class, resource_class) == 0)
                        return &facts->pci[i];
        return NULL;
}

static bool is_of_device(const HostFacts *facts, const char *node, const char *provider_name,
                         const char *resource_class)
{
        return device_of_provider(facts, node, provider_name, resource_class) ||
               pci_of_provider(facts, node, provider_name, resource_class, NULL);
}

const char *device_class_of(const HostFacts *facts, const ClaimDevice *device)
{
        const HostDevice *parent;

        if (!uuid_empty(&device->mdev)) {
                parent = host_facts_find_device(facts, device->name);
                return parent && strcmp(parent->mdev_type, device->mdev_type) == 0
                               ? parent->resource_class
                               : "";
        }
        for (size_t i = 0; i < facts->n_pci; i++) {
                const HostPci *pci = &facts->pci[i];

                if (strcmp(pci->address, device->address) == 0 &&
                    strcmp(pci->vgpu_type ? pci->vgpu_type : "", device->mdev_type) == 0)
                        return pci->resource_class;
        }
        return "";
}

bool devices_are_asked(const HostFacts *facts, const ResourceRequest *request)
{
        for (size_t i = 0; i < request->n_groups; i++) {
                const Resources *resources = &request->groups[i].resources;

                for (size_t j = 0; j < facts->n_devices; j++)
                        if (resources_get(resources, facts->devices[j].resource_class) > 0)
                                return true;
                for (size_t j = 0; j < facts->n_pci; j++)
                        if (resources_get(resources, facts->pci[j].resource_class) > 0)
                                return true;
        }
        return false;
}

/* Returns the set of the claim's device, NULL if it is in none. */
static const DeviceSet *set_of(const HostFacts *facts, const ClaimDevice *device)
{
        return uuid_empty(&device->mdev) ? host_facts_find_set(facts, device->address) : NULL;
}

uint64_t device_units(const HostFacts *facts, const Claim *claim, size_t device)
{
        const DeviceSet *set = set_of(facts, &claim->devices[device]);
        uint64_t before = 0;

        if (!set)
                return 1;
        for (size_t i = 0; i < device; i++)
                before |= device_set_members_of(set, claim->devices[i].address);
        return device_members_count(device_set_members_of(set, claim->devices[device].address) &
                                    ~before);
}

/* Returns the amount of the claim's devices on the provider; NULL: on all. */
static uint64_t count_on(const HostFacts *facts, const Claim *claim, const Uuid *provider)
{
        uint64_t n = 0;

        for (size_t i = 0; i < claim->n_devices; i++)
                if (!provider || uuid_equal(&claim->devices[i].provider, provider))
                        n += device_units(facts, claim, i);
        return n;
}

uint64_t device_count_named(const HostFacts *facts, const Claim *claim,
                            const Allocation *allocation, const char *resource_class)
{
        uint64_t n = 0;

        for (size_t i = 0; i < claim->n_devices; i++) {
                const char *its_class;

                if (!uuid_equal(&claim->devices[i].provider, &allocation->provider))
                        continue;
                its_class = device_class_of(facts, &claim->devices[i]);
                if (strcmp(its_class, resource_class) == 0 ||
                    resources_get(&allocation->resources, its_class) == 0)
                        n += device_units(facts, claim, i);
        }
        return n;
}

/* Returns the sum of all amounts of the claim that are not on the root: an upper bound for the
 * devices that the claim must have. */
static uint64_t sum_below(const char *node, const Claim *claim)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < claim->n_allocations; i++)
                for (size_t j = 0; strcmp(claim->provider_names[i], node) != 0 &&
                                   j < claim->allocations[i].resources.n_items;
                     j++)
                        sum += claim->allocations[i].resources.items[j].amount;
        return sum;
}

uint64_t device_count_missing(const HostFacts *facts, const char *node, const Claim *claim)
{
        uint64_t missing = 0;

        /* Most claims have enough devices in all, so their providers are not compared. Limit: more
         * devices than amounts on one provider can hide a lack on another one. */
        if (sum_below(node, claim) <= count_on(facts, claim, NULL))
                return 0;
        for (size_t i = 0; i < claim->n_allocations; i++) {
                const Resources *resources = &claim->allocations[i].resources;
                uint64_t wanted = 0, named;

                for (size_t j = 0; j < resources->n_items; j++)
                        if (is_of_device(facts, node, claim->provider_names[i],
                                         resources->items[j].resource_class))
                                wanted += resources->items[j].amount;
                named = count_on(facts, claim, &claim->allocations[i].provider);
                missing += wanted > named ? wanted - named : 0;
        }
        return missing;
}

/* Returns true if this host offers the device at the address, whole or in mediated devices. */
static bool offers(const HostFacts *facts, const char *address)
{
        for (size_t i = 0; i < facts->n_devices; i++)
                if (strcmp(facts->devices[i].address, address) == 0)
                        return true;
        return host_facts_find_pci(facts, address);
}

bool device_lacks_identity(const HostFacts *facts, const ClaimDevice *device)
{
        return device->address[0] &&
               device_identity_completes(device->identity,
                                         host_facts_identity(facts, device->address)) &&
               offers(facts, device->address);
}

/* Returns an existing mdev on the device that has the device's type and is not taken: the one with
 * the lowest uuid. NULL if there is none. */
static const HostMdev *find_free(const HostFacts *facts, const HostDevice *device,
                                 const Taken *taken)
{
        const HostMdev *found = NULL;

        for (size_t i = 0; i < facts->n_mdevs; i++) {
                const HostMdev *mdev = &facts->mdevs[i];

                if (strcmp(mdev->device, device->name) != 0 ||
                    strcmp(mdev->type, device->mdev_type) != 0 || taken_has(taken, mdev->uuid.text))
                        continue;
                if (!found || uuid_order(&mdev->uuid, &found->uuid) < 0)
                        found = mdev;
        }
        return found;
}

/* Returns the number of claimed mdevs on the device that did not exist at the poll. */
static uint64_t count_unmade(const HostFacts *facts, const HostDevice *device, const Taken *taken)
{
        uint64_t n = 0;

        for (size_t i = 0; i < taken->n_mdevs; i++)
                n += strcmp(taken->mdevs[i].device, device->name) == 0 &&
                     !host_facts_find_mdev(facts, &taken->mdevs[i].uuid);
        return n;
}

int device_choose(const HostFacts *facts, const HostDevice *device, const Taken *taken, Uuid *ret,
                  Error *reterr)
{
        const HostMdev *mdev = find_free(facts, device, taken);
        const char *blocker;
        uint64_t unmade;

        if (taken_blocks_mdevs(taken, device->address, &blocker) != TAKEN_BLOCK_NONE) {
                error_setf(reterr, ENOSPC, "%s: %s is not free, because a guest or claim has %s",
                           device->resource_class, device->name, blocker);
                return CLAIM_E_NO_CAPACITY;
        }
        if (mdev) {
                *ret = mdev->uuid;
                return CLAIM_DONE;
        }
        unmade = count_unmade(facts, device, taken);
        if (unmade < device->available) {
                *ret = uuid_make_random();
                return CLAIM_DONE;
        }
        error_setf(reterr, ENOSPC,
                   "%s: no %s on %s is free; %" PRIu64
                   " more can be created, and claims have %" PRIu64 " of them",
                   device->resource_class, device->mdev_type, device->name, device->available,
                   MIN(unmade, device->available));
        return CLAIM_E_NO_CAPACITY;
}
