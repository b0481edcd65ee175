/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs the device ledger, the list of devices that this host is expected to have. The ledger is
 * stored in "devices.json" of state_dir, and a changed one is written before a request is sent. A
 * journal message reports a device that goes missing, comes back or is exchanged, or that was
 * missing and is not expected any more. The loss of a device that came back and is still held has
 * none. Other messages report a block by another device, and its end if the device is neither
 * missing nor held. After a restart a block is reported again, and an end before the restart is
 * not. Main thread; blocks on the disk. */

#include "agent/tree/cordon.h"
#include "agent/tree/device-ledger.h"
#include "claims/claims.h"
#include "drivers/driver.h"
#include "drivers/tree/mdev-plan.h"

/* The ledger, the inputs of its next update, and the state of its file. */
typedef struct DeviceWatch {
        /* Members that every user can read. */
        DeviceLedger ledger; /* the expected devices as of the last update */
        DeviceFacts facts; /* facts of the last note: a copy of ledger.sizes, the devices of claims,
                              the withheld members of sets, and the exchanged providers */
        bool awaits_end;   /* a device can be cleaned as soon as an allocation of it ends */
        size_t n_missing;  /* devices that were missing after the last update */
        char *missing; /* name of the first missing device, "" without one; NULL: not known yet */

        /* Members for device-watch.c alone. */
        char *state_file;
        bool read_only;
        bool is_begun;           /* an update was for a tree of Placement */
        DeviceUpdateInput input; /* inputs that are equal for all updates; now() adds the time */
        uint64_t looked_usec;    /* CLOCK_BOOTTIME up to which due times were handled */
        bool saved;              /* the file was loaded or written once; ledger.changed: it lacks a
                                    change */
        int write_error;         /* error of the last write, so that its repetition is not logged */
} DeviceWatch;

/* Loads the ledger. A damaged file is logged, and the ledger is then empty. config is borrowed,
 * device_specs only for the call. hold_usec is that of DeviceUpdateInput. read_only: the file is
 * not written (--dry-run), and a damaged one is not set aside. Returns a negative errno with words
 * if the file cannot be read, because a later write would replace it. */
int device_watch_new(DeviceWatch **ret, const char *state_dir, const HostConfig *config,
                     char *const device_specs[], uint64_t hold_usec, bool read_only, Error *reterr);
DeviceWatch *device_watch_free(DeviceWatch *watch);
DEFINE_CLEANUP(DeviceWatch *, device_watch_free);

/* Updates the ledger and edits tree, which the driver has just made of trees->snapshot. claims
 * names the devices of claims; NULL: not known. retained has the inventories in use in Placement;
 * NULL: no Placement. The update is a preview if trees->known is false, and trees->base is NULL or
 * no earlier update was for a known tree. A preview edits tree and sets n_missing and missing, but
 * leaves the ledger unchanged, and logs and stores nothing. After another update a changed file is
 * written. A failure is logged, and the next such update tries again. Returns -ENOMEM, or -EINVAL
 * with words, on failure. */
int device_watch_apply(DeviceWatch *watch, Claims *claims, const RetainedTrees *trees,
                       const Retained *retained, ProviderTree *tree, Error *reterr);

/* Notes the providers at whose place another device is. Notes the vGPU sizes that the snapshot
 * shows, the PCI devices that claims (NULL: not known) have, and the withheld members of sets:
 * cordoned ones (cordon NULL: none) and those of left (NULL: none). On a host with neither vGPU
 * functions nor sets, only the exchanged providers are noted. While the claims cannot be read,
 * their last devices stay. Returns all of this, borrowed until the next call, or NULL if memory is
 * short. */
const DeviceFacts *device_watch_note_facts(DeviceWatch *watch, Claims *claims, const Cordon *cordon,
                                           const StringSet *left, const Snapshot *snapshot);

/* Returns the microseconds until an update of the same host can have another result by the time
 * alone; UINT64_MAX: never. If a time came due since the last update or the last call, it returns 0
 * once. */
uint64_t device_watch_due_in_usec(DeviceWatch *watch);
