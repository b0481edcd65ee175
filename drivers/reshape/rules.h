/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where what is allocated goes when its inventory leaves a provider (facts C5). Pure.
 *
 *   VCPU, PCPU, MEMORY_MB   between the root and the NUMA cells, and between shared and dedicated
 *                           CPUs: as the guest is pinned; else where it fits best, split if it must
 *   mediated devices        from the root to the devices that the guest's mdevs are on
 *   MEM_ENCRYPTION_CONTEXT  from the root to the provider of SEV
 *   any other               on a device's provider whose class changed: the new class
 *   renamed classes         [agent] renamed_resource_classes: the new name, on the same provider */

#include "drivers/driver-reshape.h"
#include "drivers/tree/child-provider.h"

typedef enum ReshapeRule {
        RESHAPE_RULE_NONE,
        RESHAPE_RULE_RENAME,
        RESHAPE_RULE_CELLS,
        RESHAPE_RULE_MDEVS,
        RESHAPE_RULE_CONTEXT,
        RESHAPE_RULE_REGROUP,
        _RESHAPE_RULE_MAX,
} ReshapeRule;

/* The rule for a class of a provider of before: RESHAPE_RULE_NONE when the class stays, or nobody
 * knows where it would go. */
ReshapeRule reshape_rule_find(const TreeUpdate *update, const Provider *from,
                              const char *resource_class);

/* What there is to move. */
typedef struct ReshapeItem {
        const Consumer *consumer;    /* without it */
        const SnapshotDomain *guest; /* NULL: there is none */
        const Consumer *usage;       /* by provider, of all consumers together, without it */
        const Provider *from;        /* of before */
        const char *resource_class;
        uint64_t amount;
} ReshapeItem;

/* False when the class stays on its provider, and this guest's part with it. */
bool reshape_rule_concerns(const TreeUpdate *update, const ReshapeItem *item);

/* Adds to parts (by provider) where it goes. -EINVAL and -ENOSPC with the reason, -ENOMEM; parts
 * are undefined then. */
int reshape_rule_place(const TreeUpdate *update, ReshapeRule rule, const ReshapeItem *item,
                       Consumer *parts, Error *reterr);

/* The new name of a class, or NULL. */
const char *reshape_new_name(const HostConfig *config, const char *resource_class);

/* True when some provider at or below root has the class. */
bool reshape_tree_has_class(const ProviderTree *tree, const Uuid *root, const char *resource_class);
