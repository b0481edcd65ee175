/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether the root provider offers the DISK_GB of its local disk ([compute] report_local_disk).
 *
 * Nova's driver reports local DISK_GB always, also when a sharing provider has the disks of the
 * guests (bug 1784020). Then Placement places guests on disk space that they do not use. So the
 * agent leaves DISK_GB out of the root while a sharing provider has DISK_GB. An inventory that is
 * allocated cannot leave Placement. It stays until its last allocation is gone, with all of it
 * reserved, so that Placement allocates no more of it. Pure. */

#include "base/provider-tree.h"
#include "drivers/host/host-config.h"

#define LOCAL_DISK_TEXT_MAX 512

typedef enum LocalDisk {
        LOCAL_DISK_OFFERED,
        LOCAL_DISK_WITHHELD, /* reserved = total, until the last allocation is gone */
        LOCAL_DISK_LEFT_OUT,
        _LOCAL_DISK_MAX,
} LocalDisk;

/* The evidence. */
typedef struct LocalDiskFacts {
        char pool[PROVIDER_NAME_MAX + 1]; /* the sharing provider with DISK_GB; "" for none */
        bool owned; /* the agent writes the tree; false leaves DISK_GB as nova-compute has it */
        bool allocated_known; /* allocated was read from Placement, or there is none */
        uint64_t allocated;   /* DISK_GB of the root, in Placement */
        uint64_t claimed;     /* the same, by claims of this host */
} LocalDiskFacts;

/* Looks for the first sharing provider with DISK_GB among the providers of pools (NULL: none), and
 * notes its name. One that is full or reserved counts: its guests must not move to the local disk.
 */
void local_disk_note_pool(LocalDiskFacts *facts, const ProviderTree *pools);

/* option: HostLocalDisk. present: Placement has DISK_GB at the root. Unknown usage of an inventory
 * that is present counts as usage. */
LocalDisk local_disk_decide(int option, bool present, const LocalDiskFacts *facts);

/* Applies the decision to the root, which has the DISK_GB of the local disk or none. */
void local_disk_apply(LocalDisk decision, Provider *root);

/* Copies the sharing providers to tree, as roots. One that tree has already, by uuid or name, is
 * left out. -ENOMEM. */
int local_disk_add_pools(const ProviderTree *pools, ProviderTree *tree);

/* Removes sharing providers that are roots beside the host's own. The tree that claims had before
 * the start has them; Placement's tree of a host has none. */
void local_disk_drop_pools(ProviderTree *tree, const Uuid *root);

/* Describes a decision that withholds or leaves out in one sentence without full stop: which
 * provider has DISK_GB, and what is still allocated. "" for LOCAL_DISK_OFFERED. Returns text. */
const char *local_disk_describe(LocalDisk decision, const LocalDiskFacts *facts, char *text,
                                size_t size);
