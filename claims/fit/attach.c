/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the devices of a claim with the allocations of its consumer, provider by provider. An
 * allocation of a class on a provider that counts no such device is an error, whatever the claim
 * has. So is one on a withheld provider, unless the claim has enough devices there. A claim is kept
 * if it has as many devices of all the classes together on each provider as Placement allocates
 * there, and the host still has them. The devices of a set count as their members. The class of a
 * device comes from the facts. A device that the host does not offer has no class. It counts if its
 * provider has an amount of one of the classes, in the claim or in Placement. While Placement is
 * away, only devices with a class show which classes are placed (is_placed()).
 *
 * Invariant: ATTACH_KEEP means that the host has each device of the claim that counts. ATTACH_MAKE
 * and ATTACH_REPLACE mean only that each allocated provider counts a device of the host for the
 * class, and not that one is free. Limits: mediated devices are checked by their parent device,
 * because they can be made again. While the functions of the host are unknown, each PCI device
 * counts as present. */

#include "claims/fit/attach.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/device-identity.h"
#include "claims/fit/device-choice.h"

/* Returns the sum of the classes in some resources. resources NULL: 0. */
static uint64_t sum_of(const AttachInput *input, const Resources *resources)
{
        uint64_t sum = 0;

        for (size_t i = 0; resources && i < resources->n_items; i++)
                if (string_set_contains(input->classes, resources->items[i].resource_class))
                        sum += resources->items[i].amount;
        return sum;
}

/* Returns the amounts that the claim has from a provider, NULL if there are none. */
static const Resources *find_claimed(const Claim *claim, const Uuid *provider)
{
        for (size_t i = 0; i < claim->n_allocations; i++)
                if (uuid_equal(&claim->allocations[i].provider, provider))
                        return &claim->allocations[i].resources;
        return NULL;
}

/* Returns true if the device of the claim counts as one of the classes. */
static bool is_asked(const AttachInput *input, const ClaimDevice *device)
{
        const char *resource_class = device_class_of(input->facts, device);

        if (resource_class[0])
                return string_set_contains(input->classes, resource_class);
        return sum_of(input, find_claimed(input->claim, &device->provider)) > 0 ||
               (input->placed &&
                sum_of(input, consumer_find(input->placed, &device->provider)) > 0);
}

/* Returns the amount of the claim's devices of the classes, on one provider or on all (NULL). */
static uint64_t count_devices(const AttachInput *input, const Uuid *provider)
{
        uint64_t n = 0;

        for (size_t i = 0; input->claim && i < input->claim->n_devices; i++) {
                const ClaimDevice *device = &input->claim->devices[i];

                if ((!provider || uuid_equal(&device->provider, provider)) &&
                    is_asked(input, device))
                        n += device_units(input->facts, input->claim, i);
        }
        return n;
}

/* Returns true if the class counts devices of the provider. */
static bool counts_devices(const AttachInput *input, const Provider *provider,
                           const char *resource_class)
{
        return device_of_provider(input->facts, input->node, provider->name, resource_class) ||
               pci_of_provider(input->facts, input->node, provider->name, resource_class, NULL);
}

static bool is_withheld(const HostView *view, size_t index, const char *resource_class)
{
        const Inventory *inventory =
                provider_find_inventory(view->tree->providers[index], resource_class);

        return view->providers[index].withheld || !inventory ||
               inventory->reserved >= inventory->total;
}

/* Checks one allocation of a class on a provider of this host. Returns ATTACH_KEEP or an error. A
 * withheld provider gives no new device, so the claim must have enough of its devices. */
static AttachVerdict check_allocation(const AttachInput *input, size_t index,
                                      const ResourceAmount *item, Error *reterr)
{
        const Provider *provider = input->view->tree->providers[index];
        bool withheld = is_withheld(input->view, index, item->resource_class);

        if (!counts_devices(input, provider, item->resource_class)) {
                error_setf(reterr, ENODEV,
                           withheld ? "%s: the device of %s is missing"
                                    : "%s: %s counts no device of this host",
                           item->resource_class, provider->name);
                return withheld ? ATTACH_E_UNAVAILABLE : ATTACH_E_UNKNOWN_CLASS;
        }
        if (!withheld || count_devices(input, &provider->uuid) >=
                                 sum_of(input, consumer_find(input->placed, &provider->uuid)))
                return ATTACH_KEEP;
        error_setf(reterr, ENODEV, "%s: %s is withheld. See \"computectl tree\"",
                   item->resource_class, provider->name);
        return ATTACH_E_UNAVAILABLE;
}

/* Checks all allocations of the classes on this host. *ret_same: the claim has as many devices on
 * each of their providers, and none elsewhere. */
static AttachVerdict check_allocations(const AttachInput *input, bool *ret_same, Error *reterr)
{
        uint64_t n_placed = 0;

        *ret_same = true;
        for (size_t i = 0; i < input->placed->n_allocations; i++) {
                const Allocation *held = &input->placed->allocations[i];
                uint64_t wanted = sum_of(input, &held->resources);
                size_t index;

                if (wanted == 0 || !host_view_find(input->view, &held->provider, &index))
                        continue;
                for (size_t j = 0; j < held->resources.n_items; j++) {
                        const ResourceAmount *item = &held->resources.items[j];
                        AttachVerdict verdict = ATTACH_KEEP;

                        if (string_set_contains(input->classes, item->resource_class))
                                verdict = check_allocation(input, index, item, reterr);
                        if (verdict != ATTACH_KEEP)
                                return verdict;
                }
                *ret_same = *ret_same && count_devices(input, &held->provider) == wanted;
                n_placed += wanted;
        }
        *ret_same = *ret_same && count_devices(input, NULL) == n_placed;
        return ATTACH_KEEP;
}

/* Returns true if the consumer has an amount of the class on this host. Without allocations of the
 * consumer, the claim must have a device of the class. */
static bool is_placed(const AttachInput *input, const char *resource_class)
{
        size_t index;

        for (size_t i = 0; input->placed && i < input->placed->n_allocations; i++) {
                const Allocation *held = &input->placed->allocations[i];

                if (host_view_find(input->view, &held->provider, &index) &&
                    resources_get(&held->resources, resource_class) > 0)
                        return true;
        }
        for (size_t i = 0; !input->placed && input->claim && i < input->claim->n_devices; i++)
                if (strcmp(device_class_of(input->facts, &input->claim->devices[i]),
                           resource_class) == 0)
                        return true;
        return false;
}

/* Returns ATTACH_KEEP if the host has the device of the claim, and it is not known to be another
 * one; else ATTACH_E_UNAVAILABLE. */
static AttachVerdict check_device(const AttachInput *input, const ClaimDevice *device,
                                  Error *reterr)
{
        const char *name = device->address[0] ? device->address : device->name;
        const char *now = host_facts_identity(input->facts, device->address);

        if (uuid_empty(&device->mdev) ? !host_facts_lists_function(input->facts, device->address)
                                      : !host_facts_find_device(input->facts, device->name))
                error_setf(reterr, ENODEV, "Device %s of claim %" PRId64 " is missing", name,
                           input->claim->id);
        else if (device_identity_differs(device->identity, now))
                error_setf(reterr, ENODEV,
                           "Device %s of claim %" PRId64 " was replaced: it is %s, and was %s",
                           name, input->claim->id, now, device->identity);
        else
                return ATTACH_KEEP;
        return ATTACH_E_UNAVAILABLE;
}

static AttachVerdict check_devices(const AttachInput *input, Error *reterr)
{
        AttachVerdict verdict = ATTACH_KEEP;

        for (size_t i = 0; verdict == ATTACH_KEEP && i < input->claim->n_devices; i++)
                if (is_asked(input, &input->claim->devices[i]))
                        verdict = check_device(input, &input->claim->devices[i], reterr);
        return verdict;
}

/* Returns true if the agent made the claim from a guest or from allocations, and does not write its
 * allocations. A claim with a request belongs to the program that sent it, unless it has
 * CLAIM_TYPE_GUEST. A claim that a migration took over is not replaceable. */
static bool is_replaceable(const Claim *claim)
{
        return claim->write_state == CLAIM_WRITE_NONE && uuid_empty(&claim->guest) &&
               (!claim->request[0] || strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0);
}

AttachVerdict attach_decide(const AttachInput *input, Error *reterr)
{
        AttachVerdict verdict = ATTACH_KEEP;
        bool same = true;

        for (size_t i = 0; i < input->classes->n_items; i++) {
                if (is_placed(input, input->classes->items[i]))
                        continue;
                error_setf(reterr, ENOENT,
                           input->placed ? "The server has no allocation of %s on this host"
                                         : "The server has no claim with a device of %s",
                           input->classes->items[i]);
                return ATTACH_E_NOT_PLACED;
        }
        if (input->placed)
                verdict = check_allocations(input, &same, reterr);
        if (verdict != ATTACH_KEEP)
                return verdict;
        if (!input->claim)
                return ATTACH_MAKE;
        if (same)
                return check_devices(input, reterr);
        if (is_replaceable(input->claim))
                return ATTACH_REPLACE;
        error_setf(reterr, EEXIST,
                   "Claim %" PRId64 " of another program has other devices than the allocations",
                   input->claim->id);
        return ATTACH_E_CONFLICT;
}
