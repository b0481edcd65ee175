/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Retained inventories: the host does not have or offer them any more, and a consumer in Placement
 * still holds a part of them. Placement refuses to remove such an inventory, so it stays, with all
 * of it reserved: no scheduler allocates more of it.
 *
 * Evidence comes from Placement alone: the tracker reads who holds something of each provider that
 * loses an inventory, in each cycle in which there is one. Before that answer an inventory counts
 * as held. The amount that was reserved before is kept in "retained.json" of state_dir, and is
 * published again when the host has the inventory again.
 *
 * Devices that are missing are withheld by the device ledger, which asks here who holds them.
 * Main thread; blocks on the disk. */

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "drivers/host/snapshot.h"

#define RETAINED_HOLDERS_MAX 160 /* bytes of words about holders */

typedef struct Retained Retained;

typedef enum RetainedUse {
        RETAINED_USE_NONE,    /* Placement was read: no consumer holds any of it */
        RETAINED_USE_UNKNOWN, /* Placement was not asked */
        RETAINED_USE_HELD,
} RetainedUse;

/* Loads the file. read_only: never write it (--dry-run). -ENOMEM. */
int retained_new(Retained **ret, const char *state_dir, bool read_only);
Retained *retained_free(Retained *retained);
DEFINE_CLEANUP(Retained *, retained_free);

/* Begins a tree: gives the inventories that were retained the reserved amount of before, so that
 * the driver and the device ledger see that one. Call it before they edit the tree. */
void retained_clear(Retained *retained, ProviderTree *tree);

/* Adds a provider to those whose holders are read. For use between retained_clear() and
 * retained_apply(). -ENOMEM. */
int retained_want(Retained *retained, const Uuid *provider);

/* The providers whose holders are to be read now: those of the last tree that lack an inventory,
 * and those of retained_want(). Borrowed until the next call. -ENOMEM. */
int retained_ask(Retained *retained, const Uuid **ret, size_t *ret_n);

/* Replaces what is known of holders by what Placement answered about the providers of the last
 * retained_ask(). holders is taken. */
void retained_set_holders(Retained *retained, Allocations *holders);

RetainedUse retained_use(const Retained *retained, const Uuid *provider,
                         const char *resource_class);

/* The moment of retained_apply(); all borrowed. */
typedef struct RetainedTrees {
        const ProviderTree *base;   /* as Placement holds it; NULL: nothing */
        const ProviderTree *before; /* the same after retained_clear() */
        const Snapshot *snapshot;   /* names the guests */
        const Uuid *root;
        bool known; /* base was read from Placement; else nothing is remembered or logged */
} RetainedTrees;

/* Puts back into tree, with all of it reserved, each inventory of before that it lacks and that is
 * held, or might be. Call it when every other part of the tree is made. Logs what begins and what
 * ends. -ENOMEM. */
int retained_apply(Retained *retained, const RetainedTrees *trees, ProviderTree *tree,
                   Error *reterr);

/* "3 held by guest g1 (UUID) and 1 more"; "" when nothing is known to be held. snapshot may be
 * NULL. Returns text. */
const char *retained_describe_holders(const Retained *retained, const Snapshot *snapshot,
                                      const Uuid *provider, const char *resource_class,
                                      char text[static RETAINED_HOLDERS_MAX]);

/* "VGPU of host1_pci_0000_41_00_0 (1 held by guest g1 (UUID))", one after the other: all that is
 * retained; "" when nothing is. The caller frees; NULL when out of memory. */
char *retained_describe(const Retained *retained, const Snapshot *snapshot);
