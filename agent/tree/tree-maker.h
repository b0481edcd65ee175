/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes the tree that a host should have. The tree begins as a copy of Placement's tree or of an
 * earlier one, or is empty. The driver, the local disk, the device watch, cordons, provider.yaml,
 * retained inventories and foreign traits edit the copy, in this order. Main thread; blocks on the
 * disk for the small files of these parts and for the claim database. */

#include "agent/tree/cordon.h"
#include "agent/tree/device-watch.h"
#include "agent/tree/provider-config.h"
#include "agent/tree/retained.h"
#include "base/provider-tree.h"
#include "drivers/driver-reshape.h"
#include "drivers/driver.h"

/* The DISK_GB of the local disk at the root provider ([compute] report_local_disk).
 *
 * Nova's driver always reports local DISK_GB, even if a sharing provider has the disks of the
 * guests (bug 1784020). Placement then counts disk space that the guests do not use. Therefore an
 * agent that writes the tree by default leaves DISK_GB out of the root while a sharing provider has
 * DISK_GB. An inventory with allocations cannot leave Placement. It stays until its last allocation
 * and claim are gone, with all of it reserved, so that Placement allocates no more of it. If
 * Placement's tree was read and the sharing providers were not, DISK_GB is by default offered only
 * if base offers it already. */
#define LOCAL_DISK_TEXT_MAX 512

typedef enum LocalDisk {
        LOCAL_DISK_OFFERED,
        LOCAL_DISK_WITHHELD, /* reserved = total: it has, or might have, an allocation or claim */
        LOCAL_DISK_LEFT_OUT,
        _LOCAL_DISK_MAX,
} LocalDisk;

struct ClaimService;

/* The parts that edit the tree, and their inputs. All are borrowed. */
typedef struct TreeMaker {
        const HostConfig *config;
        DeviceWatch *device_watch; /* NULL: none */
        Retained *retained;        /* NULL: none */
        /* Returns the open claim database, which names the devices of claims, or NULL. */
        Claims *(*get_claims)(struct ClaimService *service);
        /* Adds the devices of sets that no claim can get, because their partition is active for
         * none. Returns -ENOMEM. NULL: there are none. */
        int (*list_left)(struct ClaimService *service, const HostConfig *config, StringSet *ret);
        struct ClaimService *claims;     /* NULL: claimed devices are not known */
        Cordon *cordon;                  /* NULL: none */
        ProviderConfig *provider_config; /* NULL: none */
        char *const *foreign_traits;     /* traits that stay as they are in base, without
                                            CORDON_TRAIT; NULL: none */
        /* The evidence for the decision about the local disk. */
        struct {
                char pool[PROVIDER_NAME_MAX + 1]; /* name of the sharing provider with DISK_GB; "":
                                                     none */
                bool pools_unread; /* Placement's tree was read, but not its sharing providers */
                bool owned; /* the agent writes the tree; false: DISK_GB is LOCAL_DISK_OFFERED */
                bool allocated_known; /* allocated was read from Placement, or the host is
                                         standalone */
                uint64_t allocated;   /* allocated DISK_GB of the root, in Placement */
                uint64_t claimed;     /* DISK_GB of the root in claims of this host */
        } local_disk;
        Uuid root;
        const char *nodename;
} TreeMaker;

/* The result of tree_maker_make(). */
typedef struct MadeTree {
        ProviderTree *tree;                         /* owned */
        bool reshape_needed;                        /* an inventory must move, and was not moved */
        LocalDisk local_disk;                       /* the decision about the DISK_GB of the root */
        bool disk_was_there;                        /* base has DISK_GB at the root */
        char local_disk_words[LOCAL_DISK_TEXT_MAX]; /* reason of the decision; "": offered */
        Error device_error; /* reason why some devices or classes are not as configured; code 0: all
                               are */
} MadeTree;

/* Makes the tree from base, which is copied. base is Placement's tree, an earlier one, or NULL for
 * none. known: base was read from Placement and no later write lacks its answer, or the host is
 * standalone; otherwise the parts store nothing. Only the device watch can (device_watch_apply()).
 * reshape is that of provider_update(); NULL: a necessary reshape is only reported in ret_made. The
 * caller owns ret_made->tree. After an error ret_made is unchanged. Returns -EEXIST if the root has
 * another name, or another provider of base has this host's name, -EINVAL with words (also if the
 * root has a parent), -ENOMEM, or an error of provider_update(). A file that a part cannot write is
 * logged, and is no error. After an error the borrowed members of reshape are undefined. */
int tree_maker_make(const TreeMaker *maker, const Snapshot *snapshot, const ProviderTree *base,
                    bool known, DriverReshape *reshape, MadeTree *ret_made, Error *reterr);

/* Makes the tree like tree_maker_make(), with a reshape in which no consumer has an allocation. */
int tree_maker_make_empty(const TreeMaker *maker, const Snapshot *snapshot,
                          const ProviderTree *base, bool known, MadeTree *ret_made, Error *reterr);

/* Stores the name of the first sharing provider with DISK_GB among pools (NULL: none), or "", in
 * local_disk. A full or reserved one counts, because its guests must not move to the local disk. */
void tree_maker_note_pool(TreeMaker *maker, const ProviderTree *pools);

/* Makes the tree to which claims are fitted where nova-compute owns the tree in Placement ([agent]
 * nova = observe, beside). remote is Placement's tree, wanted is the tree that the agent would
 * publish. Before Placement was read, remote is an earlier tree. The result is remote with the
 * larger reserved amount of both in each inventory that both have. If remote does not have this
 * host, the result is wanted. Sharing providers that are roots without children are left out. The
 * caller owns *ret. Returns -ENOMEM on failure. */
int nova_tree_to_claim(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                       ProviderTree **ret);

/* Makes the tree that the agent can write beside nova-compute: remote, with the reserved amounts of
 * wanted for each provider for which nova_keeps_reserved() is true (agent/tree/cordon.h), in the
 * inventories that both have. The caller owns *ret. Returns -ENOMEM on failure. */
int nova_tree_to_send(const ProviderTree *remote, const ProviderTree *wanted, const Uuid *root,
                      ProviderTree **ret);
