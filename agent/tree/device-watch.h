/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The device ledger at work: kept in "devices.json" of state_dir, written before anything is sent,
 * with a journal message when a device goes missing or comes back. Main thread; blocks on the disk.
 */

#include "agent/tree/device-ledger.h"
#include "claims/claims.h"
#include "drivers/driver.h"

typedef struct DeviceWatch DeviceWatch;

/* The configuration is borrowed. hold_usec: as of DeviceMoment. read_only: never write the file
 * (--dry-run). -ENOMEM. */
int device_watch_new(DeviceWatch **ret, const char *state_dir, const HostConfig *config,
                     char *const device_specs[], uint64_t hold_usec, bool read_only);
DeviceWatch *device_watch_free(DeviceWatch *watch);
DEFINE_CLEANUP(DeviceWatch *, device_watch_free);

/* Edits tree, which the driver has just made of trees->snapshot. claims names the devices of
 * claims; NULL: they are not known. retained: who holds what in Placement; NULL: there is none. A
 * tree that was not made from what Placement holds is a first picture, of which nothing is
 * remembered or logged. -ENOMEM, -EINVAL with words. */
int device_watch_apply(DeviceWatch *watch, Claims *claims, const RetainedTrees *trees,
                       const Retained *retained, ProviderTree *tree, Error *reterr);

/* The devices that are expected, as of the last picture. Borrowed. */
const DeviceLedger *device_watch_get_ledger(const DeviceWatch *watch);

/* Returns the number of devices that were missing in the last picture, and the name of the first
 * one,
 * "" for none; borrowed until the next picture. */
size_t device_watch_count_missing(const DeviceWatch *watch, const char **ret_first);

/* How long until a picture of the same host would look otherwise; UINT64_MAX: for ever. What came
 * due since the last picture, or since this was asked last, is said once: 0. */
uint64_t device_watch_due_in_usec(DeviceWatch *watch);
