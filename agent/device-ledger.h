/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The devices that this host is expected to have, over reboots: a GPU whose driver is not up yet,
 * or a card whose virtual functions were not made again, must not look like one that was taken out.
 * Pure: no clock, no file, no log.
 *
 * A device is expected once a provider was told for it. When it is missing, its provider stays
 * where it was, with all of its capacity reserved: after a reboot until it is back; in the same
 * boot (it was unplugged) only as long as a domain has a part of it. A configuration of devices
 * that changed ends the expectation of what is missing and in nobody's use. */

#include <jansson.h>

#include "base/provider-tree.h"
#include "drivers/snapshot.h"

#define DEVICE_LEDGER_FORMAT "compute-agent-devices/1"

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
        bool missing;
        bool withheld; /* reserved = total may still stand in Placement */
} LedgerDevice;

typedef struct DeviceLedger {
        LedgerDevice *devices;
        size_t n_devices;
        size_t n_allocated;
} DeviceLedger;

#define DEVICE_LEDGER_INIT ((DeviceLedger){ 0 })

void device_ledger_done(DeviceLedger *ledger);

json_t *device_ledger_to_json(const DeviceLedger *ledger);
/* -EBADMSG with words, -ENOMEM. */
int device_ledger_from_json(const json_t *json, DeviceLedger *ret, Error *reterr);

/* A device went missing (back false) or is there again. */
typedef void (*DeviceLedgerNews)(const LedgerDevice *device, bool back, void *userdata);

/* Edits ledger and tree, which the driver has just made of snapshot. boot is the kernel's boot id,
 * config stands for the configuration of devices. -ENOMEM, with both undefined; -EINVAL with words
 * when a provider cannot be put back. */
int device_ledger_update(DeviceLedger *ledger, const Snapshot *snapshot, ProviderTree *tree,
                         const Uuid *root, const Uuid *boot, const Uuid *config,
                         DeviceLedgerNews news, void *userdata, Error *reterr);

size_t device_ledger_count_missing(const DeviceLedger *ledger);
