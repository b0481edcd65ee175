/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Keeps the devices that this host is expected to have, over reboots. A GPU whose driver is not
 * loaded yet is not a removed GPU. The same holds for a card whose virtual functions do not exist
 * yet. Pure: no clock, no file, no log.
 *
 * A device is expected once a provider was reported for it. When the device is missing, its
 * provider stays in the tree with all capacity reserved. The provider stays as long as one of these
 * conditions holds, with the exceptions below. First, a domain has a part of the device, or a
 * consumer in Placement has an allocation from it or might have one. Second, the host was rebooted
 * and the device is not back. Third, the host lists the device, but it offers nothing: its driver
 * was reloaded, its types cannot be read, or its virtual functions are gone. Fourth, the host
 * stopped listing it in this boot (it was unplugged, or is failing), less than DEVICE_GONE_HOLDS
 * times the hold ago.
 *
 * A changed configuration of devices ends the expectation of a device that is not in use. It ends
 * that of a listed device that is in use, too, because the operator removed it from the
 * configuration. It does not end that of a device with another one at its place (see below). A
 * device that reports that it can create no more of its configured type is not missing either. A
 * device whose provider has another name now, or whose uuid another provider has, is not expected.
 * The same holds for a device whose name does not begin with that of the root: the file can be a
 * copy of that of another host.
 *
 * A device is more than its address. If another device is at the address of one that a claim or a
 * domain has, the first device is missing. Its provider stays reserved until the device is back, or
 * until no claim or domain has it. A claim that names the new device accepts it, unless another
 * claim names the former one. Only facts change an identity (base/device-identity.h). A device
 * without claim and domain is simply replaced. The ledger keeps its identity until a tree of
 * Placement has the class of the new one, or lacks the provider.
 *
 * A device that another one blocks (decision devices/parts) is withheld in the same way. The block
 * lasts while a domain has the other device by any of its definitions, and no domain has a part of
 * what the provider counts.
 *
 * A device that is not proved to be clean since its last guest is withheld in the same way, as soon
 * as its claim is written to Placement: a scheduler then cannot take it between the release and the
 * cleaning (decision devices/clean). Placement keeps the allocation that it has.
 *
 * A device that vanished in this boot and is back is offered again after it was present for the
 * hold. Each loss soon after a return doubles the hold, DEVICE_DOUBLINGS_MAX times at most. So a
 * device that comes and goes stays reserved, and Placement does not get every change. */

#include <jansson.h>

#include "agent/tree/retained.h"
#include "base/provider-tree.h"
#include "claims/claim/claim.h"
#include "claims/claim/unclean.h"
#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"
#include "drivers/host/vgpu-sizes.h"

#define DEVICE_LEDGER_FORMAT "compute-agent-devices/1"
#define DEVICE_GONE_HOLDS    10 /* holds after which an unlisted device is not expected any more */
#define DEVICE_DOUBLINGS_MAX 5  /* limit of LedgerDevice.n_soon */
#define DEVICE_SOON_USEC     (3600 * USEC_PER_SEC) /* a loss counts as soon after a return */

/* An expected device. Members are stored in the file unless their comment says otherwise. */
typedef struct LedgerDevice {
        char *name; /* name of the provider */
        Uuid provider;
        Uuid parent; /* parent of the provider; null in ledgers of older versions */
        char *resource_class;
        uint64_t total;    /* capacity when it was present last */
        uint64_t reserved; /* reserved amount of other writers before it was withheld; can be larger
                              than total */
        StringSet traits;
        StringSet members; /* parts of the device: PCI addresses and uuids of mdevs */
        Uuid boot;         /* boot in which it was present last */
        Uuid config;       /* configuration that named it when it was present last */
        char identity[DEVICE_IDENTITY_SIZE]; /* identity when it was present last; "": not known */
        char other[DEVICE_IDENTITY_SIZE];    /* identity of another device at its place; "": none */
        bool missing;
        bool listed;    /* missing, but the host lists it: it offers nothing; not stored */
        bool held;      /* back, but not offered yet */
        bool withheld;  /* Placement can still have reserved = total */
        bool cleanable; /* a section [device_clean NAME] has it, all of it is reserved, and neither
                           a claim nor a domain has it; not stored (device-watch.c) */
        uint64_t since_usec; /* time when it vanished or came back (CLOCK_BOOTTIME), used within the
                                member boot alone; 0: never missing in it */
        uint64_t n_soon;     /* losses in a row, each within DEVICE_SOON_USEC after a return */
        /* PCI address or mdev that blocks the device, after and before the last update; "": none.
         * These are not stored. */
        char blocker[UUID_TEXT_LENGTH + 1];
        char blocker_before[UUID_TEXT_LENGTH + 1];
        /* Words about its cleaning, such as "not clean: …". They are "" for a clean device, and
         * while its guest has it without a reason. They are not stored. */
        char unclean[UNCLEAN_WORDS_SIZE];
} LedgerDevice;

typedef struct DeviceLedger {
        LedgerDevice *devices;
        size_t n_devices;
        size_t n_allocated;
        VgpuSizes sizes; /* framebuffers of cards and vGPU types that polls have shown */
        bool changed;    /* the ledger has changed since the owner cleared this flag */
} DeviceLedger;

#define DEVICE_LEDGER_INIT ((DeviceLedger){ 0 })

void device_ledger_done(DeviceLedger *ledger);

json_t *device_ledger_to_json(const DeviceLedger *ledger);
/* Reads a ledger. Members that older versions did not store can be absent. Returns -EBADMSG with
 * words or -ENOMEM on failure, with ret unchanged. */
int device_ledger_from_json(const json_t *json, DeviceLedger *ret, Error *reterr);

/* The moment of an update, and its inputs beside snapshot and tree. */
typedef struct DeviceUpdateInput {
        Uuid boot;          /* the kernel's boot id */
        Uuid config;        /* fingerprint of the configuration of devices */
        uint64_t now_usec;  /* CLOCK_BOOTTIME */
        uint64_t hold_usec; /* 0: a device that the host stopped listing in this boot is expected
                               only while it is in use, and one that is back is not held */
        const ClaimedDevice *claimed; /* devices that claims name, sorted by address; borrowed */
        size_t n_claimed;
        const UncleanDevices *unclean; /* devices that are not proved to be clean; NULL: none */
        bool claims_unknown;    /* claimed is incomplete: an earlier finding of another device stays
                                   while that device is there, and withheld devices that must be
                                   cleaned stay withheld */
        bool placement_unknown; /* base is not Placement's present tree: Placement can have other
                                   classes, and reserve what base does not */
        const HostConfig *host; /* the types of devices, and whether a provider counts a card or its
                                   functions; NULL: neither matters */
        const Retained *retained;   /* inventories in use in Placement; NULL: no Placement, or a
                                       preview */
        const ProviderTree *before; /* base without the reservations of cordons and retentions; its
                                       ratios, traits and aggregates are kept; NULL: not known */
        const ProviderTree *base;   /* Placement's tree, or an earlier one; NULL: none */
} DeviceUpdateInput;

typedef enum DeviceChange {
        DEVICE_CHANGE_MISSING,
        DEVICE_CHANGE_BACK,      /* it can be blocked or not clean now */
        DEVICE_CHANGE_FORGOTTEN, /* it was missing, and is not expected any more */
} DeviceChange;

/* Edits ledger and tree. The driver has just made tree from snapshot. change is called for each
 * change of a device during the update; the device is borrowed. The loss of a held device, and the
 * end of one that was not missing, are no changes. Sets ledger->changed if the file must be
 * written. Returns -ENOMEM, which leaves both undefined, or -EINVAL with words if tree has no root
 * or a provider cannot be restored; then tree is incomplete. */
int device_ledger_update(DeviceLedger *ledger, const Snapshot *snapshot, ProviderTree *tree,
                         const Uuid *root, const DeviceUpdateInput *input,
                         void (*change)(const LedgerDevice *device, DeviceChange change,
                                        void *userdata),
                         void *userdata, Error *reterr);

/* Returns the device of a provider that the driver made: "<root>_<device>" or "<root>_<ADDRESS>".
 * Returns NULL for another name, such as that of the root, and if the snapshot lacks the device. */
const SnapshotDevice *device_ledger_find(const Snapshot *snapshot, const char *root,
                                         const char *name);

/* Returns the next time after this moment when an update can have an effect without a change of the
 * host, by CLOCK_BOOTTIME. UINT64_MAX: never. */
uint64_t device_ledger_due_usec(const DeviceLedger *ledger, const DeviceUpdateInput *input);

/* Returns the devices that are missing, held or blocked, as in "host1_pci_0000_41_00_0 (missing)",
 * joined by commas; "" if there are none. Devices that are only not clean are not among them. The
 * caller frees it. NULL: memory is short. */
char *device_ledger_describe_withheld(const DeviceLedger *ledger);

/* Returns the devices that are being cleaned or wait for that, or whose cleaning failed, in words
 * joined by commas; "" if there are none. The caller frees it. NULL: memory is short. */
char *device_ledger_describe_unclean(const DeviceLedger *ledger);
