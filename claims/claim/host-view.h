/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The host in one consistent read of the store: the provider tree, and beside each provider its
 * row, its generation and its usage. The fit reads it. A write compares the generations with those
 * of the store ("compare and update", specification 1). Plain data, one thread. */

#include "base/allocation.h"
#include "base/cpu-set.h"
#include "base/provider-tree.h"
#include "base/resources.h"

/* Trait of a provider that other trees use through a common aggregate (facts E8). */
#define TRAIT_SHARES_VIA_AGGREGATE "MISC_SHARES_VIA_AGGREGATE"

typedef struct HostProvider {
        int64_t id;         /* row in the store; 0: not stored yet */
        int64_t generation; /* the store's, not Placement's */
        bool withheld; /* no new claim fits there: it is gone from the host, and kept for claims of
                          it or below it, or another writer renamed it */
        Resources used;
} HostProvider;

/* Resources of one host cell that claims use, for one size of pages. */
typedef struct HostCellUsage {
        unsigned host_cell; /* id of the cell */
        uint64_t page_kib;  /* 0: small pages */
        uint64_t memory_mb;
        uint64_t n_shared; /* guest CPUs that share the cell's CPUs */
} HostCellUsage;

/* Upper bound of a class on a provider of devices, whatever its inventory says. Guests and claims
 * have or block the other devices. */
typedef struct HostLimit {
        size_t provider;
        const char *resource_class; /* borrowed from the facts */
        uint64_t n_free;
        uint64_t n_blocked;  /* devices, not in n_free, that another device blocks */
        const char *blocker; /* PCI address of the blocking device, borrowed like the class; NULL:
                                none */
        bool in_part;        /* a part of the blocking device is taken, not the whole */
        bool is_set;         /* the devices are a set, of which only the amounts fit */
        uint64_t amounts;    /* as device_set_amounts() returns them */
} HostLimit;

typedef struct HostView {
        ProviderTree *tree;
        HostProvider *providers; /* same order as tree->providers */
        size_t n_providers;
        size_t *places; /* index in tree->providers of each item of tree->by_uuid */
        HostCellUsage *cell_usages;
        size_t n_cell_usages, n_cell_usages_allocated;
        HostLimit *limits; /* by provider; made for each fit of devices by claims_count_devices() */
        size_t n_limits, n_limits_allocated;
        CpuSet held;              /* host CPUs that one claim has alone */
        int64_t epoch;            /* changes whenever the stored tree changes */
        int64_t by_others, by_us; /* counters of the store's writes at the time of this read: by
                                     other processes, by this one */
} HostView;

/* Makes a view of the tree. Takes the tree, also on failure; the tree must not change any more.
 * Returns -ENOMEM on failure. */
int host_view_new(HostView **ret, ProviderTree *tree);
HostView *host_view_free(HostView *view);
DEFINE_CLEANUP(HostView *, host_view_free);

/* Finds a provider. Returns false if it does not exist. */
bool host_view_find(const HostView *view, const Uuid *uuid, size_t *ret_index);

/* Returns the amount of one class of one provider that living claims use. 0 if view is NULL or does
 * not have the provider. */
uint64_t host_view_usage(const HostView *view, const Uuid *provider, const char *resource_class);

/* Returns true for a sharing provider. */
bool host_view_shares(const HostView *view, size_t index);

/* Finds the provider of the host: the root named node, or else the first root. Skips sharing and
 * withheld providers. Returns false if there is none. */
bool host_view_root(const HostView *view, const char *node, size_t *ret_index);

/* Marks the providers that a claim on node can use: its root, those below it, and the sharing
 * providers that have an aggregate in common with one of them. Only the aggregates of marked
 * providers that do not share count for this. Withheld providers are not marked.
 * usable[] has n_providers items. */
void host_view_usable(const HostView *view, const char *node, bool usable[]);

/* Makes the view that the store must have when the host is tree. It has the providers of tree, and
 * those providers of seen that tree lacks while they, or providers below them, are used. These are
 * withheld and keep their inventory. If tree gives the name of one to another provider of seen, its
 * uuid is appended to the name. A provider of tree with a new uuid and a known name takes over the
 * row and the usage of that name, because Placement has it under the new uuid. Invalid inventories
 * are left out. Rows, generations, usage and the epoch come from seen; other members are empty.
 * Shares tree if it needs no change. Returns a negative errno with words. */
int host_view_merge(HostView **ret, const HostView *seen, const ProviderTree *tree, Error *reterr);

/* Returns true if uuid, name, parent, inventories, traits, aggregates and withheld are equal. */
bool host_view_provider_equal(const HostView *a, size_t index_a, const HostView *b, size_t index_b);

/* Compares all providers in this way, in any order. Rows, generations and usage do not matter. */
bool host_view_same_host(const HostView *a, const HostView *b);
