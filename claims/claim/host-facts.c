/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds devices, sets of devices, mdevs, guests, cells, PCI functions and folders of Nova (one for
 * each server) in the facts of a poll. Pointers in results are borrowed from the facts. Folders and
 * functions are sorted, and searched with a binary search. The other lists are searched from the
 * start, and the first match is the result. In the list of PCI functions that guests can get
 * (HostFacts.pci), a vGPU function has an entry for each type that it can have. If the host's
 * functions are unknown, each address counts as listed, and has neither an identity nor a physical
 * function. If the folders are unknown, no server has one. A search without a match yields NULL, ""
 * or false. No function fails or changes the facts.
 *
 * Tests: tests/unit/claims/fit/test-device-choice.c tests/unit/agent/guests/test-facts.c */

#include "claims/claim/host-facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

const HostDevice *host_facts_find_device(const HostFacts *facts, const char *name)
{
        for (size_t i = 0; i < facts->n_devices; i++)
                if (strcmp(facts->devices[i].name, name) == 0)
                        return &facts->devices[i];
        return NULL;
}

const HostMdev *host_facts_find_mdev(const HostFacts *facts, const Uuid *uuid)
{
        for (size_t i = 0; i < facts->n_mdevs; i++)
                if (uuid_equal(&facts->mdevs[i].uuid, uuid))
                        return &facts->mdevs[i];
        return NULL;
}

const HostDomain *host_facts_find_domain(const HostFacts *facts, const Uuid *uuid)
{
        for (size_t i = 0; i < facts->n_domains; i++)
                if (uuid_equal(&facts->domains[i].uuid, uuid))
                        return &facts->domains[i];
        return NULL;
}

static int order_uuids(const void *a, const void *b)
{
        return uuid_order(a, b);
}

bool host_facts_has_folder(const HostFacts *facts, const Uuid *server)
{
        return facts->n_folders > 0 &&
               bsearch(server, facts->folders, facts->n_folders, sizeof(Uuid), order_uuids);
}

const HostCell *host_facts_find_cell(const HostFacts *facts, unsigned id)
{
        for (size_t i = 0; i < facts->n_cells; i++)
                if (facts->cells[i].id == id)
                        return &facts->cells[i];
        return NULL;
}

const DeviceSet *host_facts_find_set(const HostFacts *facts, const char *address)
{
        for (size_t i = 0; i < facts->n_sets; i++)
                if (device_set_members_of(&facts->sets[i], address))
                        return &facts->sets[i];
        return NULL;
}

const HostPci *host_facts_find_pci(const HostFacts *facts, const char *address)
{
        for (size_t i = 0; i < facts->n_pci; i++)
                if (strcmp(facts->pci[i].address, address) == 0)
                        return &facts->pci[i];
        return NULL;
}

static int order_functions(const void *key, const void *item)
{
        return strcmp(key, ((const HostFunction *)item)->address);
}

/* Returns the function with this address. NULL if it is not listed, or if the functions are
 * unknown. */
static const HostFunction *find_function(const HostFacts *facts, const char *address)
{
        bool found;
        size_t i = array_find(facts->functions, sizeof(HostFunction), facts->n_functions, address,
                              order_functions, &found);

        return found ? &facts->functions[i] : NULL;
}

const char *host_facts_physical_function(const HostFacts *facts, const char *address)
{
        const HostFunction *function = find_function(facts, address);

        return function ? function->physical_function : "";
}

size_t host_domain_list_members(const HostDomain *domain, const DeviceSet *set,
                                const char *ret[static DEVICE_SET_PARTITIONS_MAX])
{
        size_t n = 0;

        for (size_t i = 0; i < domain->n_pci + domain->n_config_pci; i++) {
                const char *address =
                        i < domain->n_pci ? domain->pci[i] : domain->config_pci[i - domain->n_pci];
                bool listed = false;

                for (size_t j = 0; j < n && !listed; j++)
                        listed = strcmp(ret[j], address) == 0;
                if (!listed && n < DEVICE_SET_PARTITIONS_MAX && device_set_members_of(set, address))
                        ret[n++] = address;
        }
        return n;
}

bool host_facts_lists_function(const HostFacts *facts, const char *address)
{
        return !facts->functions || find_function(facts, address);
}

const char *host_facts_identity(const HostFacts *facts, const char *address)
{
        const HostFunction *function = find_function(facts, address);

        return function ? function->identity : "";
}

bool host_facts_has_class(const HostFacts *facts, const char *resource_class)
{
        for (size_t i = 0; i < facts->n_devices; i++)
                if (strcmp(facts->devices[i].resource_class, resource_class) == 0)
                        return true;
        for (size_t i = 0; i < facts->n_pci; i++)
                if (strcmp(facts->pci[i].resource_class, resource_class) == 0)
                        return true;
        return false;
}
