/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The devices that this host is expected to have, over reboots: a GPU whose driver is not up yet,
 * or a card whose virtual functions were not made again, must not look like one that was taken out.
 * Pure: no clock, no file, no log.
 *
 * A device is expected once a provider was reported for it. When it is missing, its provider stays
 * where it was, with all of its capacity reserved:
 *
 *   - as long as a domain has a part of it or a consumer in Placement holds some of it;
 *   - after a reboot until it is back;
 *   - while the host lists it, but it does not offer anything: its driver was reloaded, its types
 *     cannot be read, its virtual functions are gone;
 *   - in the same boot, when the host does not list it (it was unplugged, or is failing), for
 *     DEVICE_GONE_HOLDS times the hold.
 *
 * A changed configuration of devices ends the expectation of a device that is not in use. It ends
 * that of a listed device in any case: the operator took it out of the configuration. A device that
 * says that it can make nothing more of its configured type is not missing either.
 *
 * A device is more than its address. If another device is at the address of one that a claim or a
 * domain has, the first device is missing: its provider stays all reserved until it is back, or
 * until no claim or domain has it. A claim that names the new device accepts it. An identity counts
 * as changed by facts alone (base/device-identity.h). A device that nobody has is simply replaced.
 *
 * A device that another one blocks (decision devices/parts) is withheld in the same way, as long as
 * a domain has the other one by one of its definitions and none has a part of what the provider
 * counts.
 *
 * What vanished in this boot and is back is offered again only after it was there for the hold,
 * which doubles, DEVICE_DOUBLINGS_MAX times at most, with each loss soon after a return: a device
 * that comes and goes stays reserved, and not every turn is reported to Placement. */

#include <jansson.h>

#include "agent/tree/retained.h"
#include "base/provider-tree.h"
#include "claims/claim/claim.h"
#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"

#define DEVICE_LEDGER_FORMAT "compute-agent-devices/1"
#define DEVICE_GONE_HOLDS    10
#define DEVICE_DOUBLINGS_MAX 5
#define DEVICE_SOON_USEC     (3600 * USEC_PER_SEC) /* a loss within this after a return */

typedef struct LedgerDevice {
        char *name; /* of the provider */
        Uuid provider;
        Uuid parent; /* of the provider; null in a list of before there was this */
        char *resource_class;
        uint64_t total;
        uint64_t reserved; /* what somebody else had reserved when it was there */
        StringSet traits;
        StringSet members; /* PCI addresses and uuids of mediated devices that are parts of it */
        Uuid boot;         /* in which it was seen last */
        Uuid config;       /* with which it was */
        char identity[DEVICE_IDENTITY_SIZE]; /* when it was offered last; "": not known */
        char other[DEVICE_IDENTITY_SIZE]; /* of the device that is at its place instead; "": none */
        bool missing;
        bool listed;   /* missing, but the host lists it: it does not offer anything. Not stored. */
        bool held;     /* it is back, and not offered yet */
        bool withheld; /* reserved = total may still stand in Placement */
        uint64_t since_usec; /* missing, or back, since then (CLOCK_BOOTTIME of that boot); 0: never
                                missing in it */
        uint64_t n_soon;     /* losses in a row that came soon after a return */
        /* PCI address or mdev that blocks it, now and before the last update; "": none. Not stored
         */
        char blocker[UUID_TEXT_LENGTH + 1];
        char blocker_before[UUID_TEXT_LENGTH + 1];
} LedgerDevice;

typedef struct DeviceLedger {
        LedgerDevice *devices;
        size_t n_devices;
        size_t n_allocated;
        bool changed; /* by an update, since somebody cleared this */
} DeviceLedger;

#define DEVICE_LEDGER_INIT ((DeviceLedger){ 0 })

void device_ledger_done(DeviceLedger *ledger);

json_t *device_ledger_to_json(const DeviceLedger *ledger);
/* -EBADMSG with words, -ENOMEM. */
int device_ledger_from_json(const json_t *json, DeviceLedger *ret, Error *reterr);

/* The moment of an update. */
typedef struct DeviceMoment {
        Uuid boot;                    /* the kernel's boot id */
        Uuid config;                  /* stands for the configuration of devices */
        uint64_t now_usec;            /* CLOCK_BOOTTIME */
        uint64_t hold_usec;           /* 0: what is gone is gone, what is back is offered */
        const ClaimedDevice *claimed; /* by address: devices that claims name; borrowed */
        size_t n_claimed;
        bool claims_unknown;      /* claimed is not complete: what was exchanged before stays so */
        const HostConfig *host;   /* tells the type of a device, and whether a provider counts a
                                   card or its functions; NULL: neither matters */
        const Retained *retained; /* inventories in use in Placement; NULL: no Placement */
        const ProviderTree
                *before; /* Placement's tree: its records keep their ratio; NULL: unknown */
} DeviceMoment;

typedef enum DeviceNews {
        DEVICE_NEWS_MISSING,
        DEVICE_NEWS_BACK,      /* it can be used again */
        DEVICE_NEWS_FORGOTTEN, /* it was missing, and is not expected any more */
} DeviceNews;

typedef void (*DeviceLedgerNews)(const LedgerDevice *device, DeviceNews news, void *userdata);

/* Edits ledger and tree, which the driver has just made of snapshot. -ENOMEM, with both undefined;
 * -EINVAL with words when a provider cannot be put back. */
int device_ledger_update(DeviceLedger *ledger, const Snapshot *snapshot, ProviderTree *tree,
                         const Uuid *root, const DeviceMoment *moment, DeviceLedgerNews news,
                         void *userdata, Error *reterr);

/* The next time after this moment when an update does something though nothing came or went;
 * UINT64_MAX: never. */
uint64_t device_ledger_due_usec(const DeviceLedger *ledger, const DeviceMoment *moment);

/* "host1_pci_0000_41_00_0 (missing)", one after the other: what is not offered now; "" when all is.
 * The caller frees; NULL when out of memory. */
char *device_ledger_describe_withheld(const DeviceLedger *ledger);
