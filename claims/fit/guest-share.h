/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Computes the amount of a resource class in a claim that is made of a guest's domain. Pure.
 *
 * The domain of a guest shows its VCPU, PCPU and MEMORY_MB, but Nova can allocate more: one PCPU
 * for hw:emulator_threads_policy=isolate, or the amounts of a flavor with resources:VCPU. So the
 * claim holds the larger of the two amounts. It holds that of the domain if the agent wrote the
 * allocations (is_ours), or if a part of them cannot be held here. Placement alone has the amounts
 * of classes that no domain shows, such as DISK_GB and custom classes of the root.
 *
 * LIMITATIONS: if Placement has less VCPU or less PCPU than the domain shows, the two count the
 * CPUs in different ways, for example before a reshape. Then the claim holds VCPU and PCPU of the
 * domain. */

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "claims/claim/host-facts.h"

typedef struct GuestShare {
        const ProviderTree *tree; /* tree of this host, as the claims have it */
        const Uuid *root;
        const Consumer *consumer; /* all of its allocations */
        uint64_t vcpu, pcpu;      /* CPUs that the domain shows */
        bool is_ours; /* written by the agent for an ended claim: a larger amount has no meaning */
} GuestShare;

/* Returns the amount of VCPU, PCPU or MEMORY_MB that a domain shows, at most INVENTORY_MAX_AMOUNT.
 * 0 for other classes. */
uint64_t guest_amount_of(const HostDomain *domain, const char *resource_class);

/* Returns true for VCPU, PCPU and MEMORY_MB. */
bool guest_share_is_shown(const char *resource_class);

/* Returns the provider, or NULL for an unknown or a sharing one: an allocation of a sharing
 * provider is no part of a guest's claim. */
const Provider *guest_share_find(const ProviderTree *tree, const Uuid *uuid);

/* Yields the consumer's amount of the class in this tree, without sharing providers. Returns false
 * if a provider of the tree with a part of it is neither the root nor below it, or has no
 * inventory of the class. No claim can hold such a part. *ret is unchanged then. Returns true with
 * 0 if there is no amount. */
bool guest_share_placed(const GuestShare *share, const char *resource_class, uint64_t *ret);

/* Returns the amount of the class that the claim gets. from_guest: the amount of the guest. */
uint64_t guest_share_amount(const GuestShare *share, const char *resource_class,
                            uint64_t from_guest);
