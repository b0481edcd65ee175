/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides the new places of allocations whose inventory leaves a provider (facts C5). Pure.
 *
 * VCPU, PCPU and MEMORY_MB move between the root and the NUMA cells, and between shared and
 * dedicated CPUs. The pins of the guest decide, as far as there is capacity. The rest goes where it
 * fits best, and is split if necessary. CPUs that become dedicated on their own provider must fit
 * there.
 *
 * Mediated devices move from the root to the devices that have the guest's mdevs. A vGPU of a
 * virtual function with a provider of its own, as older versions made them, moves to the provider
 * of its card. MEM_ENCRYPTION_CONTEXT moves from the root to the provider of SEV. If the only class
 * of a device's provider changed, the allocations of that provider get the new class. If [agent]
 * renamed_resource_classes has a new name for a class, allocations of the class get that name on
 * the same provider. The allocations of a provider stay if another device is at its place
 * (DeviceFacts.exchanged). */

#include "drivers/driver-reshape.h"
#include "drivers/tree/child-provider.h"

typedef enum ReshapeRule {
        RESHAPE_RULE_NONE,
        RESHAPE_RULE_RENAME,
        RESHAPE_RULE_CELLS,
        RESHAPE_RULE_MDEVS,
        RESHAPE_RULE_CARD,
        RESHAPE_RULE_CONTEXT,
        RESHAPE_RULE_REGROUP,
        _RESHAPE_RULE_MAX,
} ReshapeRule;

/* Returns the rule for a class of a provider in the old tree. RESHAPE_RULE_NONE: the class stays,
 * no rule knows its new place, or another device is at the provider's place. */
ReshapeRule reshape_rule_find(const TreeUpdate *update, const Provider *from,
                              const char *resource_class);

/* Adds the classes into which the rule of the class would turn it on this provider. -ENOMEM. */
int reshape_rule_list_classes(const TreeUpdate *update, const Provider *from,
                              const char *resource_class, StringSet *ret);

/* An amount that must move. */
typedef struct ReshapeItem {
        const Consumer *consumer;    /* its allocations, without the amount that moves */
        const SnapshotDomain *guest; /* NULL: none */
        const Consumer *usage;       /* sums of all consumers by provider, without the amount */
        const Provider *from;        /* in the old tree */
        const char *resource_class;
        uint64_t amount;
} ReshapeItem;

/* Returns false if the class stays on its provider and the amount of this guest stays with it. */
bool reshape_rule_concerns(const TreeUpdate *update, const ReshapeItem *item);

/* Adds the new places of the amount to parts. rule: that of reshape_rule_find(), not
 * RESHAPE_RULE_NONE. -EINVAL and -ENOSPC with the reason, -ENOMEM; parts is then undefined. */
int reshape_rule_place(const TreeUpdate *update, ReshapeRule rule, const ReshapeItem *item,
                       Consumer *parts, Error *reterr);

/* Returns the configured new name of a class, borrowed, or NULL. */
const char *reshape_new_name(const HostConfig *config, const char *resource_class);
