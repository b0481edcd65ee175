/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Computes the amount of a class in a claim that is made of a guest, from the domain and from the
 * consumer's allocations of this tree, without sharing providers. The larger amount counts for
 * VCPU, PCPU and MEMORY_MB, unless the agent wrote the allocations: then the domain's counts. For
 * another class the allocations count, if all of them are on the root and the guest shows none of
 * it; else the guest's amount. A claim cannot hold an allocation if its provider is neither the
 * root nor below it, or has no inventory of the class. With such an allocation of the class, the
 * guest's amount counts. VCPU and PCPU both get the guest's amounts with such an allocation of
 * either, or if the allocations of either are less than the domain shows.
 *
 * Tests: tests/unit/agent/guests/test-claim-share.c */

#include "claims/fit/guest-share.h"

#include <string.h>

#include "claims/claim/host-view.h"

static const char vcpu[] = "VCPU";
static const char pcpu[] = "PCPU";
static const char memory[] = "MEMORY_MB";

uint64_t guest_amount_of(const HostDomain *domain, const char *resource_class)
{
        uint64_t n_dedicated = 0, amount = 0;

        for (size_t i = 0; i < domain->layout.n_cpus; i++)
                n_dedicated += domain->layout.cpus[i].dedicated;
        n_dedicated = MIN(n_dedicated, domain->vcpus);
        if (strcmp(resource_class, vcpu) == 0)
                amount = domain->vcpus - n_dedicated;
        else if (strcmp(resource_class, pcpu) == 0)
                amount = n_dedicated;
        else if (strcmp(resource_class, memory) == 0)
                amount = domain->memory_mb;
        return MIN(amount, INVENTORY_MAX_AMOUNT);
}

static bool is_cpu(const char *resource_class)
{
        return strcmp(resource_class, vcpu) == 0 || strcmp(resource_class, pcpu) == 0;
}

bool guest_share_is_shown(const char *resource_class)
{
        return is_cpu(resource_class) || strcmp(resource_class, memory) == 0;
}

const Provider *guest_share_find(const ProviderTree *tree, const Uuid *uuid)
{
        const Provider *provider = provider_tree_find(tree, uuid);

        return provider && string_set_contains(&provider->traits, TRAIT_SHARES_VIA_AGGREGATE)
                       ? NULL
                       : provider;
}

bool guest_share_placed(const GuestShare *share, const char *resource_class, uint64_t *ret)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < share->consumer->n_allocations; i++) {
                const Allocation *held = &share->consumer->allocations[i];
                const Provider *provider = guest_share_find(share->tree, &held->provider);
                uint64_t amount = resources_get(&held->resources, resource_class);

                if (amount == 0 || !provider)
                        continue;
                if (!provider_tree_in_subtree(share->tree, provider, share->root) ||
                    !provider_find_inventory(provider, resource_class))
                        return false;
                sum += amount;
        }
        *ret = sum;
        return true;
}

/* Returns true if Placement has at least the CPUs of the domain, in each of the two classes. */
static bool has_all_cpus(const GuestShare *share)
{
        uint64_t placed_vcpu, placed_pcpu;

        return guest_share_placed(share, vcpu, &placed_vcpu) && placed_vcpu >= share->vcpu &&
               guest_share_placed(share, pcpu, &placed_pcpu) && placed_pcpu >= share->pcpu;
}

uint64_t guest_share_amount(const GuestShare *share, const char *resource_class,
                            uint64_t from_guest)
{
        const Resources *on_root = consumer_find(share->consumer, share->root);
        uint64_t placed;

        if (!guest_share_placed(share, resource_class, &placed))
                return from_guest;
        if (guest_share_is_shown(resource_class) && share->is_ours)
                return from_guest;
        if (is_cpu(resource_class) && !has_all_cpus(share))
                return from_guest;
        if (guest_share_is_shown(resource_class))
                return MAX(placed, from_guest);
        /* Devices and hugepages are on providers of their own, and the guest shows them. */
        if (from_guest > 0 || !on_root || resources_get(on_root, resource_class) != placed)
                return from_guest;
        return placed;
}
