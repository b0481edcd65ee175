/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds the providers of devices that are blocked. A card that a domain has as a whole blocks the
 * providers of its virtual functions and mdevs. Each of these parts blocks the provider of the
 * whole card. A virtual function also blocks the provider of its own mdevs. Other parts do not
 * block each other (decision devices/parts). A provider is not blocked while a domain has a thing
 * that it counts.
 *
 * The main data are the set of all addresses and mdevs that domains have by any definition, and an
 * array of virtual functions. The array is sorted by card, so that the functions of a card are one
 * range. The device ledger calls device_blocks_find() for each present device that has not another
 * one at its place. Pure; the only error is -ENOMEM of device_blocks_make(). */

#include "agent/tree/device-blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "drivers/host/pci-spec.h"

static int add_pci(StringSet *taken, char (*addresses)[PCI_ADDRESS_SIZE], size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (string_set_add(taken, addresses[i]) < 0)
                        return -ENOMEM;
        return 0;
}

static int add_mdevs(StringSet *taken, const Uuid *mdevs, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (string_set_add(taken, mdevs[i].text) < 0)
                        return -ENOMEM;
        return 0;
}

/* Lists the devices of all domains, by the running and the persistent definition of each. */
static int list_taken(const Snapshot *snapshot, StringSet *taken)
{
        for (size_t i = 0; i < snapshot->n_domains; i++) {
                const SnapshotDomain *domain = &snapshot->domains[i];

                if (add_pci(taken, domain->pci_addresses, domain->n_pci_addresses) < 0 ||
                    add_pci(taken, domain->config_pci_addresses, domain->n_config_pci_addresses) <
                            0 ||
                    add_mdevs(taken, domain->mdevs, domain->n_mdevs) < 0 ||
                    add_mdevs(taken, domain->config_mdevs, domain->n_config_mdevs) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int order_functions(const void *a, const void *b)
{
        const SnapshotDevice *const *x = a, *const *y = b;

        return strcmp((*x)->physical_function, (*y)->physical_function);
}

/* Compares the address of a card with the card of a function, for array_find(). Never returns 0, so
 * a search ends at the first function of the card, or at the place where it would be. */
static int order_address(const void *key, const void *item)
{
        return strcmp(key, (*(const SnapshotDevice *const *)item)->physical_function) > 0 ? 1 : -1;
}

int device_blocks_make(DeviceBlocks *ret, const HostConfig *host, const Snapshot *snapshot)
{
        *ret = (DeviceBlocks){ .host = host, .snapshot = snapshot };
        ret->functions = calloc(snapshot->n_devices + 1, sizeof(SnapshotDevice *));
        if (!ret->functions || list_taken(snapshot, &ret->taken) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (snapshot->devices[i].physical_function[0])
                        ret->functions[ret->n_functions++] = &snapshot->devices[i];
        qsort(ret->functions, ret->n_functions, sizeof(SnapshotDevice *), order_functions);
        return 0;
}

void device_blocks_done(DeviceBlocks *blocks)
{
        string_set_done(&blocks->taken);
        free(blocks->functions);
        *blocks = (DeviceBlocks){ 0 };
}

const SnapshotDevice *const *device_blocks_functions(const DeviceBlocks *blocks, const char *card,
                                                     size_t *ret_n)
{
        bool found;
        size_t first = array_find(blocks->functions, sizeof(SnapshotDevice *), blocks->n_functions,
                                  card, order_address, &found),
               end = first;

        while (end < blocks->n_functions &&
               strcmp(blocks->functions[end]->physical_function, card) == 0)
                end++;
        *ret_n = end - first;
        return blocks->functions + first;
}

static const char *find_taken_mdev(const DeviceBlocks *blocks, const char *device)
{
        size_t n;
        const SnapshotMdev *mdevs = snapshot_mdevs_of(blocks->snapshot, device, &n);

        for (size_t i = 0; i < n; i++)
                if (string_set_contains(&blocks->taken, mdevs[i].uuid.text))
                        return mdevs[i].uuid.text;
        return NULL;
}

static const char *find_taken_address(const DeviceBlocks *blocks, const char *address)
{
        return address[0] && string_set_contains(&blocks->taken, address) ? address : NULL;
}

/* Returns a domain's part of the card: a virtual function, or an mdev on one. NULL: there is
 * none. */
static const char *find_taken_function(const DeviceBlocks *blocks, const char *card)
{
        size_t n;
        const SnapshotDevice *const *functions = device_blocks_functions(blocks, card, &n);

        for (size_t i = 0; i < n; i++) {
                const char *taken = find_taken_address(blocks, functions[i]->address);

                if (!taken)
                        taken = find_taken_mdev(blocks, functions[i]->name);
                if (taken)
                        return taken;
        }
        return NULL;
}

/* Returns the blocker of a provider of mdevs: the device itself or its card, if a domain has it as
 * a whole. An mdev of this device that is in use prevents the block. */
static const char *find_blocker_of_mdevs(const DeviceBlocks *blocks, const SnapshotDevice *there)
{
        const char *whole = find_taken_address(blocks, there->address);

        if (find_taken_mdev(blocks, there->name))
                return NULL;
        return whole ? whole : find_taken_address(blocks, there->physical_function);
}

/* Returns the blocker of a provider that is named by an address. A provider with a spec for the
 * card counts the card as a whole; then mdevs and functions block it. Otherwise it counts the
 * virtual functions, and the whole card blocks them. A use of the counted thing itself prevents the
 * block. An mdev on a virtual function counts as a use of this function. */
static const char *find_blocker_of_pci(const DeviceBlocks *blocks, const SnapshotDevice *there)
{
        const char *whole = find_taken_address(blocks, there->address),
                   *function = find_taken_function(blocks, there->address), *mdev;

        if (!pci_specs_find(&blocks->host->pci_specs, there))
                return function ? NULL : whole;
        if (whole)
                return NULL;
        mdev = find_taken_mdev(blocks, there->name);
        return mdev ? mdev : function;
}

const char *device_blocks_find(const DeviceBlocks *blocks, const char *key,
                               const SnapshotDevice *there)
{
        if (!blocks->host)
                return NULL;
        return strcmp(key, there->name) == 0 ? find_blocker_of_mdevs(blocks, there)
                                             : find_blocker_of_pci(blocks, there);
}
