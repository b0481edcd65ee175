/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Chooses devices for a claim on the providers that its request was fitted to. Before the fit,
 * claims_count_devices() limits each provider to its free devices, if facts are known and the
 * request asks for devices. After the fit, claims_choose_devices() names one device for each unit
 * of a device class, except of a set. Both use the same list of taken devices (claims/fit/taken.h),
 * so that the fit and the choice agree. A set of devices gives one partition for all of a claim's
 * amount. Another provider stands for one mediated device type of a device, one PCI device, the
 * virtual functions of a card, or the functions of a card that become vGPUs. Before the
 * first poll the devices are unknown. If the caller polls (has_devices), a piece on a provider that
 * can be a device's is then rejected (CLAIM_E_NO_CAPACITY). If it never polls, claims get no
 * devices here. A choice that fails leaves the devices that it chose before in the list; the caller
 * decides whether they are used. Nothing is written here.
 *
 * Tests: tests/unit/claims/test-claims-guests.c */

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "claims/claims-internal.h"
#include "claims/fit/device-choice.h"

int claims_add_device(DeviceList *list, const Provider *provider, const char *suffix,
                      const HostDevice *device, const Uuid *mdev)
{
        if (array_grow(&list->devices, sizeof(ClaimDevice), list->n_devices, &list->n_allocated) <
            0)
                return -ENOMEM;
        list->devices[list->n_devices++] = (ClaimDevice){
                .provider = provider->uuid,
                .suffix = suffix,
                .name = device->name,
                .address = device->address,
                .mdev_type = device->mdev_type,
                .mdev = *mdev,
                .identity = device->identity,
        };
        return 0;
}

int claims_taken(Claims *claims, Taken *ret, Error *reterr)
{
        int r = store_taken(claims, true, ret, reterr);

        if (r < 0)
                return r;
        return claims->facts && taken_add_guests(ret, claims->facts) < 0 ? error_oom(reterr) : 0;
}

int claims_is_pci_claimed(Claims *claims, const char *address, Error *reterr)
{
        static const char *const words[] = {
                [TAKEN_BLOCK_SELF] = "PCI device",
                [TAKEN_BLOCK_CARD] = "The card",
                [TAKEN_BLOCK_PART] = "A part of PCI device",
        };
        _cleanup_(taken_done) Taken taken = { 0 };
        const char *blocker;
        TakenBlock block;
        int r = store_taken(claims, false, &taken, reterr);

        if (r < 0)
                return r;
        block = taken_blocks_pci(&taken, address, &blocker);
        if (block == TAKEN_BLOCK_NONE)
                return 0;
        error_setf(reterr, EEXIST, "%s %s belongs to another claim", words[block], blocker);
        return 1;
}

/* Adds the limits of one provider to the view, one for each of its classes that counts devices. */
static int limit_capacities(HostView *view, size_t index, const char *node,
                            const DeviceCapacity *capacities, size_t n_capacities)
{
        const Provider *provider = view->tree->providers[index];

        for (size_t i = 0; i < provider->n_inventories; i++) {
                const char *resource_class = provider->inventories[i].resource_class;
                const DeviceCapacity *capacity = device_capacities_find(
                        capacities, n_capacities, node, provider->name, resource_class);

                if (!capacity)
                        continue;
                if (array_grow(&view->limits, sizeof(HostLimit), view->n_limits,
                               &view->n_limits_allocated) < 0)
                        return -ENOMEM;
                view->limits[view->n_limits++] =
                        (HostLimit){ .provider = index,
                                     .resource_class = capacity->resource_class,
                                     .n_free = capacity->n_free,
                                     .n_blocked = capacity->n_blocked,
                                     .blocker = capacity->blocker,
                                     .in_part = capacity->in_part,
                                     .is_set = capacity->set,
                                     .amounts = capacity->amounts };
        }
        return 0;
}

int claims_count_devices(Claims *claims, const ResourceRequest *request, Taken *ret, Error *reterr)
{
        _cleanup_free_ DeviceCapacity *capacities = NULL;
        size_t n_capacities;
        HostView *view = claims->view;
        int r;

        if (!claims->facts || !devices_are_asked(claims->facts, request))
                return 0;
        r = claims_taken(claims, ret, reterr);
        if (r < 0)
                return r;
        if (device_capacities_make(&capacities, &n_capacities, claims->facts, ret) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < view->n_providers; i++)
                if (limit_capacities(view, i, claims->node, capacities, n_capacities) < 0)
                        return error_oom(reterr);
        return 0;
}

/* Chooses amount mdevs of one device. Each is added to the taken ones, so that the next one
 * differs. */
static int choose_some(Claims *claims, const Provider *provider, const char *suffix,
                       const HostDevice *device, uint64_t amount, Taken *taken, DeviceList *ret,
                       Error *reterr)
{
        for (uint64_t i = 0; i < amount; i++) {
                Uuid mdev;

                if (device_choose(claims->facts, device, taken, &mdev, reterr) > 0)
                        return CLAIM_E_NO_CAPACITY;
                if (claims_add_device(ret, provider, suffix, device, &mdev) < 0 ||
                    taken_add(taken, &mdev, device->name, device->address, "") < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* Adds a PCI function, without an mdev. The entry has an mdev type if the function is or becomes a
 * vGPU. */
int claims_add_pci(DeviceList *list, const Provider *provider, const char *suffix,
                   const HostPci *pci)
{
        const HostDevice device = { .name = pci->name,
                                    .address = pci->address,
                                    .identity = pci->identity,
                                    .mdev_type = pci->vgpu_type ? pci->vgpu_type : "" };

        if (claims_add_device(list, provider, suffix, &device, &UUID_NULL) < 0)
                return -ENOMEM;
        list->devices[list->n_devices - 1].must_be_cleaned = pci->must_be_cleaned;
        return 0;
}

/* Returns the entry of the function at the address that has the card and the vGPU type of "like".
 * NULL if there is none. */
static const HostPci *find_entry(const HostFacts *facts, const HostPci *like, const char *address)
{
        for (size_t i = 0; i < facts->n_pci; i++)
                if (facts->pci[i].vgpu_type && facts->pci[i].card == like->card &&
                    strcmp(facts->pci[i].vgpu_type, like->vgpu_type) == 0 &&
                    strcmp(facts->pci[i].address, address) == 0)
                        return &facts->pci[i];
        return NULL;
}

/* Chooses amount functions of a card that are or become vGPUs of one type. first: an entry of the
 * card and the type. */
static int choose_functions(Claims *claims, const Provider *provider, const HostPci *first,
                            const char *suffix, uint64_t amount, Taken *taken, DeviceList *ret,
                            Error *reterr)
{
        const VgpuCard *card = &claims->facts->cards[first->card];
        int type = vgpu_card_find_type(card, first->vgpu_type);
        VgpuCard marked;
        int r = 0;

        if (taken_mark_card(taken, card, &marked) < 0)
                return error_oom(reterr);
        for (; r == 0 && amount > 0; amount--) {
                VgpuFunction *function =
                        taken_has(taken, card->address) ? NULL : vgpu_card_choose(&marked, type);
                const HostPci *pci =
                        function ? find_entry(claims->facts, first, function->address) : NULL;

                if (!pci) {
                        error_setf(reterr, ENOSPC,
                                   "%s: no further function of card %s can be a vGPU of type %s",
                                   first->resource_class, card->address, first->vgpu_type);
                        r = CLAIM_E_NO_CAPACITY;
                } else if (claims_add_pci(ret, provider, suffix, pci) < 0 ||
                           taken_add(taken, &UUID_NULL, pci->name, pci->address, pci->vgpu_type) <
                                   0)
                        r = error_oom(reterr);
                else
                        vgpu_card_take(&marked, pci->address, pci->vgpu_type);
        }
        vgpu_card_done(&marked);
        return r;
}

/* Chooses a partition of the amount, and adds all of its devices. Returns CLAIM_E_NO_CAPACITY with
 * words, and adds none, if no partition is free. */
static int choose_partition(Claims *claims, const Provider *provider, const DeviceSet *set,
                            const char *suffix, uint64_t amount, Taken *taken, DeviceList *ret,
                            Error *reterr)
{
        DeviceSetUse use = { 0 };
        const DevicePartition *partition;

        taken_mark_set(taken, claims->facts, set, &use);
        partition = device_set_choose(set, &use, amount);
        if (!partition) {
                error_setf(reterr, ENOSPC, "%s: %u free on %s, but no partition of %" PRIu64,
                           set->resource_class,
                           (unsigned)set->n_members - device_members_count(use.taken),
                           provider->name, amount);
                return CLAIM_E_NO_CAPACITY;
        }
        for (char **address = partition->devices; *address; address++) {
                const HostPci *pci = host_facts_find_pci(claims->facts, *address);

                if (claims_add_pci(ret, provider, suffix, pci) < 0 ||
                    taken_add(taken, &UUID_NULL, pci->name, pci->address, "") < 0)
                        return error_oom(reterr);
        }
        return 0;
}

int claims_choose_pci(Claims *claims, const Provider *provider, const char *resource_class,
                      const char *suffix, uint64_t amount, Taken *taken, DeviceList *ret,
                      Error *reterr)
{
        const HostPci *pci =
                pci_of_provider(claims->facts, claims->node, provider->name, resource_class, NULL);

        if (pci && pci->vgpu_type)
                return choose_functions(claims, provider, pci, suffix, amount, taken, ret, reterr);
        if (pci && pci->set)
                return choose_partition(claims, provider, pci->set, suffix, amount, taken, ret,
                                        reterr);
        pci = NULL;
        while (amount > 0 && (pci = pci_of_provider(claims->facts, claims->node, provider->name,
                                                    resource_class, pci))) {
                if (taken_blocks_pci(taken, pci->address, NULL) != TAKEN_BLOCK_NONE)
                        continue;
                if (claims_add_pci(ret, provider, suffix, pci) < 0 ||
                    taken_add(taken, &UUID_NULL, pci->name, pci->address, "") < 0)
                        return error_oom(reterr);
                amount--;
        }
        if (amount == 0)
                return 0;
        error_setf(
                reterr, ENOSPC,
                "%s: guests or claims have the devices of %s that are counted as free, or they are not clean",
                resource_class, provider->name);
        return CLAIM_E_NO_CAPACITY;
}

/* Returns true for a provider that has a parent and neither CPUs, memory nor disk. Before the first
 * poll, such a provider can be a device's. */
static bool may_be_device(const Provider *provider)
{
        return !uuid_empty(&provider->parent) && !provider_find_inventory(provider, "VCPU") &&
               !provider_find_inventory(provider, "PCPU") &&
               !provider_find_inventory(provider, "MEMORY_MB") &&
               !provider_find_inventory(provider, "DISK_GB");
}

/* Returns the amount for which devices are chosen at this piece. pci: a function of the piece's
 * provider. If it is not of a set of devices, returns the amount of the piece. All pieces of a set
 * are one partition, so returns their sum at the first of them, and 0 at the others. */
static uint64_t amount_to_choose(const Fit *fit, size_t piece, const HostPci *pci)
{
        const FitPiece *this = &fit->pieces[piece];
        uint64_t sum = 0;

        for (size_t i = 0; pci->set && i < fit->n_pieces; i++) {
                const FitPiece *other = &fit->pieces[i];

                if (other->provider != this->provider ||
                    strcmp(other->resource_class, this->resource_class) != 0)
                        continue;
                if (i < piece)
                        return 0;
                sum += other->amount;
        }
        return pci->set ? sum : this->amount;
}

int claims_choose_devices(Claims *claims, const ResourceRequest *request, const Fit *fit,
                          Taken *taken, DeviceList *ret, Error *reterr)
{
        if (!claims->facts && !claims->has_devices)
                return 0;
        for (size_t i = 0; i < fit->n_pieces; i++) {
                const FitPiece *piece = &fit->pieces[i];
                const Provider *provider = claims->view->tree->providers[piece->provider];
                const HostDevice *device;
                const HostPci *pci;
                uint64_t amount;
                int r;

                if (!claims->facts && may_be_device(provider)) {
                        error_setf(reterr, EAGAIN,
                                   "%s: no device of %s can be chosen before the first poll",
                                   piece->resource_class, provider->name);
                        return CLAIM_E_NO_CAPACITY;
                }
                device = claims->facts ? device_of_provider(claims->facts, claims->node,
                                                            provider->name, piece->resource_class)
                                       : NULL;
                if (device)
                        r = choose_some(claims, provider, request->groups[piece->group].suffix,
                                        device, piece->amount, taken, ret, reterr);
                else if (claims->facts &&
                         (pci = pci_of_provider(claims->facts, claims->node, provider->name,
                                                piece->resource_class, NULL))) {
                        amount = amount_to_choose(fit, i, pci);
                        r = amount > 0 ? claims_choose_pci(claims, provider, piece->resource_class,
                                                           request->groups[piece->group].suffix,
                                                           amount, taken, ret, reterr)
                                       : 0;
                } else
                        continue;
                if (r != 0)
                        return r;
        }
        return 0;
}
