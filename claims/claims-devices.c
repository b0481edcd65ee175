/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which devices a claim gets of the providers that its request was fitted to. */

#include <string.h>

#include "base/array.h"
#include "claims/claims-internal.h"
#include "claims/device-choice.h"

int claims_add_device(DeviceList *list, const Provider *provider, const char *suffix,
                      const HostDevice *device, const Uuid *mdev)
{
        if (array_grow(&list->devices, sizeof(ClaimDevice), list->n_devices, &list->n_allocated) <
            0)
                return -ENOMEM;
        list->devices[list->n_devices++] = (ClaimDevice){
                .provider = provider->uuid,
                .suffix = (char *)suffix,
                .name = (char *)device->name,
                .address = (char *)device->address,
                .mdev_type = (char *)device->mdev_type,
                .mdev = *mdev,
        };
        return 0;
}

static int choose_some(Claims *claims, const Provider *provider, const char *suffix,
                       const HostDevice *device, uint64_t amount, DeviceList *ret, Error *reterr)
{
        _cleanup_(string_set_done) StringSet taken = STRING_SET_INIT;
        int r;

        r = claims->store->engine->taken(claims->store, device->name, &taken, reterr);
        if (r < 0)
                return r;
        /* Of groups of this very claim, too. */
        for (size_t i = 0; i < ret->n_devices; i++)
                if (string_set_add(&taken, ret->devices[i].mdev.text) < 0)
                        return error_oom(reterr);
        for (uint64_t i = 0; i < amount; i++) {
                Uuid mdev;

                r = device_choose(claims->facts, device, &taken, &mdev, reterr);
                if (r > 0)
                        return CLAIM_E_NO_CAPACITY;
                if (claims_add_device(ret, provider, suffix, device, &mdev) < 0 ||
                    string_set_add(&taken, mdev.text) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* 1 when the device is free. */
static int is_pci_free(Claims *claims, const HostPci *pci, const DeviceList *chosen, Error *reterr)
{
        _cleanup_(string_set_done) StringSet taken = STRING_SET_INIT;
        int r;

        if (host_facts_pci_holder(claims->facts, pci->address))
                return 0;
        for (size_t i = 0; i < chosen->n_devices; i++)
                if (strcmp(chosen->devices[i].name, pci->name) == 0)
                        return 0;
        r = claims->store->engine->taken(claims->store, pci->name, &taken, reterr);
        return r < 0 ? r : taken.n_items == 0;
}

/* A HostPci and a HostDevice are named the same way; the whole device has no type. */
int claims_add_pci(DeviceList *list, const Provider *provider, const char *suffix,
                   const HostPci *pci)
{
        const HostDevice device = { .name = pci->name, .address = pci->address, .mdev_type = "" };

        return claims_add_device(list, provider, suffix, &device, &UUID_NULL);
}

int claims_choose_pci(Claims *claims, const Provider *provider, const char *resource_class,
                      const char *suffix, uint64_t amount, DeviceList *ret, Error *reterr)
{
        const HostPci *pci = NULL;

        while (amount > 0 && (pci = pci_of_provider(claims->facts, claims->node, provider->name,
                                                    resource_class, pci))) {
                int r = is_pci_free(claims, pci, ret, reterr);

                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                if (claims_add_pci(ret, provider, suffix, pci) < 0)
                        return error_oom(reterr);
                amount--;
        }
        if (amount == 0)
                return 0;
        error_setf(reterr, ENOSPC,
                   "%s: guests or claims have the devices of %s, which are counted as free",
                   resource_class, provider->name);
        return CLAIM_E_NO_CAPACITY;
}

/* Only a device's provider stands below another one and has neither CPUs nor memory. */
static bool may_be_device(const Provider *provider)
{
        return !uuid_empty(&provider->parent) && !provider_find_inventory(provider, "VCPU") &&
               !provider_find_inventory(provider, "PCPU") &&
               !provider_find_inventory(provider, "MEMORY_MB") &&
               !provider_find_inventory(provider, "DISK_GB");
}

int claims_choose_devices(Claims *claims, const ResourceRequest *request, const Fit *fit,
                          DeviceList *ret, Error *reterr)
{
        if (!claims->facts && !claims->has_devices)
                return 0;
        for (size_t i = 0; i < fit->n_pieces; i++) {
                const FitPiece *piece = &fit->pieces[i];
                const Provider *provider = claims->view->tree->providers[piece->provider];
                const HostDevice *device;
                int r;

                if (!claims->facts && may_be_device(provider)) {
                        error_setf(reterr, EAGAIN,
                                   "%s: no device of %s can be named before the host was polled",
                                   piece->resource_class, provider->name);
                        return CLAIM_E_NO_CAPACITY;
                }
                device = claims->facts ? device_of_provider(claims->facts, claims->node,
                                                            provider->name, piece->resource_class)
                                       : NULL;
                if (device)
                        r = choose_some(claims, provider, request->groups[piece->group].suffix,
                                        device, piece->amount, ret, reterr);
                else if (claims->facts &&
                         pci_of_provider(claims->facts, claims->node, provider->name,
                                         piece->resource_class, NULL))
                        r = claims_choose_pci(claims, provider, piece->resource_class,
                                              request->groups[piece->group].suffix, piece->amount,
                                              ret, reterr);
                else
                        continue;
                if (r != 0)
                        return r;
        }
        return 0;
}
