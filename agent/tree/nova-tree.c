/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/nova-tree.h"

#include <string.h>

#include "drivers/host/snapshot.h"

bool nova_keeps_reserved(const ProviderTree *tree, const Uuid *root, const Provider *provider)
{
        const Provider *host = provider_tree_find(tree, root);
        size_t n = host ? strlen(host->name) : 0;
        char address[PCI_ADDRESS_SIZE];

        return host && strncmp(provider->name, host->name, n) == 0 && provider->name[n] == '_' &&
               pci_address_parse(provider->name + n + 1, address) >= 0;
}

/* What both have, with what is reserved of wanted: where it is more, or as it is there. */
static void merge_provider(Provider *provider, const Provider *wanted, bool more)
{
        for (size_t i = 0; i < provider->n_inventories; i++) {
                InventoryRecord *record = &provider->inventories[i];
                const Inventory *other = provider_find_inventory(wanted, record->resource_class);
                uint64_t least = more ? record->inventory.reserved : 0;

                if (other)
                        record->inventory.reserved = MAX(other->reserved, least);
        }
}

int nova_tree_to_claim(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                       ProviderTree **ret)
{
        bool known = provider_tree_find(remote, root);
        int r = provider_tree_copy(ret, known ? remote : wanted);

        for (size_t i = 0; r >= 0 && known && i < (*ret)->n_providers; i++) {
                Provider *provider = (*ret)->providers[i];
                const Provider *other = provider_tree_find(wanted, &provider->uuid);

                if (other)
                        merge_provider(provider, other, true);
        }
        return r;
}

int nova_tree_to_send(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                      ProviderTree **ret)
{
        int r = provider_tree_copy(ret, remote);

        for (size_t i = 0; r >= 0 && i < (*ret)->n_providers; i++) {
                Provider *provider = (*ret)->providers[i];
                const Provider *other = provider_tree_find(wanted, &provider->uuid);

                if (other && nova_keeps_reserved(*ret, root, provider))
                        merge_provider(provider, other, false);
        }
        return r;
}
