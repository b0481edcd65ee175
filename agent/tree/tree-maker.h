/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tree that a host should have: a copy of Placement's tree, edited by the driver, the local
 * disk, the device watch, cordons, provider.yaml and retained inventories, in this order. Main
 * thread; reads and writes their small files. */

#include "agent/tree/cordon.h"
#include "agent/tree/device-watch.h"
#include "agent/tree/provider-config.h"
#include "agent/tree/retained.h"
#include "base/provider-tree.h"
#include "drivers/driver-reshape.h"
#include "drivers/driver.h"

/* The DISK_GB of the local disk at the root provider ([compute] report_local_disk).
 *
 * Nova's driver reports local DISK_GB always, also when a sharing provider has the disks of the
 * guests (bug 1784020). Then Placement places guests on disk space that they do not use. So the
 * agent leaves DISK_GB out of the root while a sharing provider has DISK_GB. An inventory that is
 * allocated cannot leave Placement. It stays until its last allocation is gone, with all of it
 * reserved, so that Placement allocates no more of it. */
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

struct ClaimService;

/* Everything is borrowed. */
typedef struct TreeMaker {
        const HostConfig *config;
        DeviceWatch *device_watch; /* NULL: none */
        Retained *retained;        /* NULL: none */
        /* Returns the open claim database, or NULL; says which devices are claimed. */
        Claims *(*get_claims)(struct ClaimService *service);
        struct ClaimService *claims;     /* NULL: claimed devices are not known */
        Cordon *cordon;                  /* NULL: none */
        ProviderConfig *provider_config; /* NULL: none */
        char *const *foreign_traits;     /* stay as they are in base; NULL: none */
        LocalDiskFacts local_disk;
        Uuid root;
        const char *nodename;
} TreeMaker;

typedef struct MadeTree {
        ProviderTree *tree;                         /* owned */
        bool reshape_needed;                        /* inventory that must move was not moved */
        LocalDisk local_disk;                       /* the decision about the DISK_GB of the root */
        bool disk_was_there;                        /* base has it */
        char local_disk_words[LOCAL_DISK_TEXT_MAX]; /* why it is withheld or left out; or "" */
        Error device_error; /* why some devices or classes are not as configured; code 0: all are */
} MadeTree;

/* base (what Placement holds, or NULL: nothing) is copied. known: it was read from Placement.
 * reshape as for provider_update(). ret_made is owned by the caller. -EEXIST for a root
 * of another name, -EINVAL with words (for one that is no root, too), -ENOMEM; what reshape lends
 * is undefined then. */
int tree_maker_make(const TreeMaker *maker, const Snapshot *snapshot, const ProviderTree *base,
                    bool known, DriverReshape *reshape, MadeTree *ret_made, Error *reterr);

/* The same with a reshape in which nobody holds anything. */
int tree_maker_make_empty(const TreeMaker *maker, const Snapshot *snapshot,
                          const ProviderTree *base, bool known, MadeTree *ret_made, Error *reterr);

/* Looks for the first sharing provider with DISK_GB among the providers of pools (NULL: none), and
 * notes its name. One that is full or reserved counts: its guests must not move to the local disk.
 */
void tree_maker_note_pool(LocalDiskFacts *facts, const ProviderTree *pools);

/* Copies the sharing providers to tree, as roots. One that tree has already, by uuid or name, is
 * left out. -ENOMEM. */
int tree_maker_add_pools(const ProviderTree *pools, ProviderTree *tree);

/* Makes the host that claims are fitted to where nova-compute owns the tree ([agent] nova =
 * observe, beside): remote, which Placement holds, with the larger reserved amount of remote and
 * wanted. wanted is the tree that the agent would make; it is copied if Placement does not know
 * this host yet. -ENOMEM. */
int nova_tree_to_claim(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                       ProviderTree **ret);

/* Makes the tree that may be written beside nova-compute: remote, with the reserved amounts of
 * wanted where nova_keeps_reserved() (agent/tree/cordon.h). -ENOMEM. */
int nova_tree_to_send(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                      ProviderTree **ret);
