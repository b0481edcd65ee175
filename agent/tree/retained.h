/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Retains inventories that the host does not have or offer any more, while a consumer in Placement
 * has, or might have, an allocation from them. Placement refuses to remove such an inventory. So
 * the agent publishes it with all capacity reserved, and no scheduler allocates more of it.
 *
 * The evidence comes from Placement alone. While an inventory is lost, the tracker reads the
 * allocations from its provider. Without a present answer the inventory counts as in use.
 * "retained.json" of state_dir keeps the reserved amount from before the retention. Each tree gets
 * this amount back before the driver edits it, so it is published again when the host has the
 * inventory again and the driver keeps it.
 *
 * The device ledger withholds missing devices itself, but uses the answers of this module. The
 * cleaning of devices (agent/cycle/cleaner.h) uses them, too. Main thread; blocks on the disk. */

#include "base/allocation.h"
#include "base/provider-tree.h"
#include "drivers/host/snapshot.h"

#define RETAINED_HOLDERS_MAX 160 /* length of a text about consumers, in bytes */

typedef struct Retained Retained;

typedef enum RetainedUse {
        RETAINED_USE_NONE,    /* the last answer: no (other) consumer has an allocation */
        RETAINED_USE_UNKNOWN, /* no present answer covers the provider */
        RETAINED_USE_HELD,    /* a consumer has an allocation */
} RetainedUse;

/* Loads the file. A damaged file is logged and ignored, and so is a damaged item of it, without the
 * others. read_only: the file is not written (--dry-run), and one that is no list is not set aside.
 * Returns a negative errno with words if the file cannot be read, because a later write would
 * replace it. */
int retained_new(Retained **ret, const char *state_dir, bool read_only, Error *reterr);
Retained *retained_free(Retained *retained);
DEFINE_CLEANUP(Retained *, retained_free);

/* Begins a tree: restores the former reserved amounts of retained inventories, and of those that
 * were retained and are still reserved completely. Empties the list of retained_want(). The caller
 * calls it before the driver and the device ledger edit the tree. */
void retained_clear(Retained *retained, ProviderTree *tree);

/* Reserves all of each retained inventory that tree has. For a tree without retained_apply(), and
 * for an old shape (RetainedTrees.old_shape), before provider.yaml makes inventories again. */
void retained_close(const Retained *retained, ProviderTree *tree);

/* Adds a provider to those whose allocations are read. For use between retained_clear() and
 * retained_apply(). Returns -ENOMEM on failure. */
int retained_want(Retained *retained, const Uuid *provider);

/* Returns the providers whose allocations must be read now: those of the last tree that lack an
 * inventory, and those of retained_want(). Borrowed until the next call of it, or of
 * retained_set_holders(). *ret_is_answered: the last answer covers all of them. Returns -ENOMEM on
 * failure. */
int retained_ask(Retained *retained, const Uuid **ret, size_t *ret_n, bool *ret_is_answered);

/* Replaces the known allocations by holders, Placement's answer about the providers of the last
 * retained_ask(). Takes ownership of holders. */
void retained_set_holders(Retained *retained, Allocations *holders);

/* Forgets the last answer, because allocations can have changed since. */
void retained_forget_answer(Retained *retained);

/* Returns whether a consumer besides this one (NULL: any) has an allocation from the inventory, as
 * of the last answer. RETAINED_USE_UNKNOWN if that answer was forgotten or did not cover the
 * provider. */
RetainedUse retained_use(const Retained *retained, const Uuid *provider, const char *resource_class,
                         const Uuid *besides);

/* The inputs of retained_apply(), all borrowed. */
typedef struct RetainedTrees {
        const ProviderTree *base;   /* Placement's tree, or an earlier one; NULL: none */
        const ProviderTree *before; /* base without reservations of cordons and of retentions */
        const Snapshot *snapshot;   /* for the names of guests */
        const Uuid *root;
        bool known;     /* base was read from Placement; otherwise nothing is stored or logged, but
                           see device_watch_apply() */
        bool old_shape; /* tree waits for a reshape, so it can have inventories that the host lost
                         */
} RetainedTrees;

/* Puts each inventory of before (not NULL) that tree lacks back into tree, with all of it reserved,
 * if it is in use or might be. Only inventories of root and of its descendants count. The provider
 * and its parents come back with the inventory. The inventory is not retained if another provider
 * of tree has the name of one of these, or if its fields are invalid. Providers that lack an
 * inventory are those that retained_ask() returns. In an old shape, a retained inventory of tree
 * stays retained as long as all of it is reserved. The caller calls it after the parts that make
 * inventories. If trees->known, logs the begin and end of retentions, and writes a changed file. A
 * failure is logged, and the next such call tries again. A retention begins when its use is known.
 * Returns -ENOMEM on failure. */
int retained_apply(Retained *retained, const RetainedTrees *trees, ProviderTree *tree,
                   Error *reterr);

/* Writes the consumers to text, as in "3 used by guest g1 (UUID) and 1 more", and returns text. The
 * amount is that of all consumers of the last answer. text is "" if no allocation is known.
 * snapshot can be NULL. */
const char *retained_describe_holders(const Retained *retained, const Snapshot *snapshot,
                                      const Uuid *provider, const char *resource_class,
                                      char text[static RETAINED_HOLDERS_MAX]);

/* Returns the retained inventories, as in "VGPU of host1_pci_0000_41_00_0 (1 used by guest g1
 * (UUID))", joined by commas; "" if there are none. An inventory whose use was never known is not
 * among them. The caller frees it. NULL: memory is short. */
char *retained_describe(const Retained *retained, const Snapshot *snapshot);
