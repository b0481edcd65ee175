/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The host as one consistent reading of the store shows it: the provider tree, and beside each
 * provider its row, its generation and what is used of it. The fit reads it; the generations go
 * back with what is written ("compare and update", specification 1). Plain data, one thread. */

#include "base/allocation.h"
#include "base/cpu-set.h"
#include "base/provider-tree.h"
#include "base/resources.h"

/* The trait of a provider that other trees use through a common aggregate (facts E8). */
#define TRAIT_SHARES_VIA_AGGREGATE "MISC_SHARES_VIA_AGGREGATE"

typedef struct HostProvider {
        int64_t id;         /* the store's row; 0: not in the store yet */
        int64_t generation; /* of the store, not Placement's */
        bool withheld; /* gone from the host but still claimed, or renamed by somebody: kept, and
                        * nothing new fits there */
        Resources used;
} HostProvider;

/* What claims have of one host cell in pages of one size. */
typedef struct HostCellUsage {
        unsigned host_cell; /* id */
        uint64_t page_kib;  /* 0: small pages */
        uint64_t memory_mb;
        uint64_t n_shared; /* guest CPUs that share the cell's */
} HostCellUsage;

/* A provider gives no more of the class than this, whatever its inventory says: guests have the
 * devices. */
typedef struct HostLimit {
        size_t provider;
        const char *resource_class; /* borrowed from the host's facts */
        uint64_t n_free;
        uint64_t n_blocked;  /* devices that are not taken, and that another device blocks */
        const char *blocker; /* PCI address of that one, borrowed as the class; NULL: none */
        bool in_part;        /* a part of it is taken, not the whole */
} HostLimit;

typedef struct HostView {
        ProviderTree *tree;
        HostProvider *providers; /* same order as tree->providers */
        size_t n_providers;
        size_t *places; /* where each of tree->by_uuid stands in tree->providers */
        HostCellUsage *cell_usages;
        size_t n_cell_usages, n_cell_usages_allocated;
        HostLimit *limits; /* by provider; made for each fit by claims_count_devices() */
        size_t n_limits, n_limits_allocated;
        CpuSet held;              /* host CPUs that a claim has for itself */
        int64_t epoch;            /* changes whenever the tree in the store changes */
        int64_t by_others, by_us; /* of the store: what was written before this was read */
} HostView;

/* Takes the tree, also on failure; it must not change any more. -ENOMEM. */
int host_view_new(HostView **ret, ProviderTree *tree);
HostView *host_view_free(HostView *view);
DEFINE_CLEANUP(HostView *, host_view_free);

/* False when there is no such provider. */
bool host_view_find(const HostView *view, const Uuid *uuid, size_t *ret_index);

/* True for a sharing provider. */
bool host_view_shares(const HostView *view, size_t index);

/* The provider that is the host itself: the root named node, else the first root that is no sharing
 * provider. False when there is none. */
bool host_view_root(const HostView *view, const char *node, size_t *ret_index);

/* The view as it is when no more than room is left of each provider of node's own tree, whoever has
 * the rest; others_full: and nothing of the sharing providers. It borrows all but the usage, and is
 * given back with host_view_unbind(). -ENOMEM. */
int host_view_bound(HostView *ret, const HostView *view, const char *node, const Consumer *room,
                    bool others_full);
void host_view_unbind(HostView *bound);

/* Which providers a claim on node may take from: those below its root, and the sharing providers
 * that have an aggregate in common with one of them. usable[] has n_providers places. */
void host_view_usable(const HostView *view, const char *node, bool usable[]);

/* What the store should hold when the host is tree: tree itself, and those providers of seen that
 * tree lacks while something of them, or of a provider below them, is used. These are withheld and
 * keep their inventory; a name that tree gives to another provider of seen is distinguished by the
 * uuid. A provider whose uuid is new and whose name is not takes the row of that name, with all
 * that is used of it: Placement has it under that uuid. Inventories that are not valid are left
 * out. Rows, generations and usage are those of seen. */
int host_view_merge(HostView **ret, const HostView *seen, const ProviderTree *tree, Error *reterr);

/* Are name, parent, inventories, traits, aggregates and withheld the same? */
bool host_view_provider_equal(const HostView *a, size_t index_a, const HostView *b, size_t index_b);

/* The same for all of them, in whatever order. Generation and usage do not matter. */
bool host_view_same_host(const HostView *a, const HostView *b);
