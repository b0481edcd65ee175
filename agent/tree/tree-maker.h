/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tree that a host should have: a copy of Placement's tree, edited by the driver, the local
 * disk, the device watch, cordons, provider.yaml and retained inventories, in this order. Main
 * thread; reads and writes their small files. */

#include "agent/tree/cordon.h"
#include "agent/tree/device-watch.h"
#include "agent/tree/local-disk.h"
#include "agent/tree/provider-config.h"
#include "agent/tree/retained.h"
#include "base/provider-tree.h"
#include "drivers/driver-reshape.h"
#include "drivers/driver.h"

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
        ProviderTree *tree;   /* owned */
        bool reshape_needed;  /* inventory that must move was not moved */
        LocalDisk local_disk; /* the decision about the DISK_GB of the root */
        bool disk_was_there;  /* base has it */
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
