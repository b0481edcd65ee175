/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads which partitions of [device_shapes NAME] are active, for the answers to those who start a
 * guest and for the tree. compute-agent-prepare writes the record (formats/partitions.h). The
 * agent has no right to start a unit. A set without the option "activate" needs no record. */

#include "agent/guests/database.h"
#include "agent/tree/cordon.h"
#include "formats/partitions.h"

/* Reads the record of this boot. ret must be zeroed. Returns -ENOENT without a folder in /run, the
 * errors of partition_record_read(), or -ENOMEM. Blocks on the disk. */
int partitions_read(const ClaimService *service, PartitionRecord *ret, Error *reterr);

/* Returns whether a guest can start with the partition of the set that a claim has: 0, -EBUSY with
 * words while it is not active yet, or -EIO with words if the unit of this partition, or of one
 * that shares a device or slot, failed. Pure. */
int partition_check(const DeviceSet *set, const PartitionRecord *record,
                    const DevicePartition *partition, int64_t claim, Error *reterr);

/* Checks all partitions of a claim likewise. Returns the errors of partition_check(). A record that
 * cannot be read is -EBUSY. Devices of a set that are no partition of it are not checked. Blocks on
 * the disk. */
int partitions_check_claim(const ClaimService *service, const Claim *claim, Error *reterr);

/* Returns the partition of a set that the claim has, borrowed from the set; NULL: none. Pure. */
const DevicePartition *partition_of_claim(const DeviceSet *set, const Claim *claim);

/* Adds the devices that no claim can get: those of each partition in the record that its claim does
 * not have. That is so if the claim is not in the list, or has another partition. It is also so if
 * the set has no units any more, or lacks the partition. If the set has slots and the partition,
 * the devices of partitions that share a slot with it are added too. Pure. -ENOMEM. */
int partition_list_left(const HostConfig *config, const PartitionRecord *record,
                        const ClaimList *claims, StringSet *ret);

/* Returns the set of this name, if it has units that activate its partitions; NULL: there is none.
 * Pure. */
const HostShapes *partition_find_shapes(const HostConfig *config, const char *name);

/* Reads the record and the claims, and adds the devices of partition_list_left(). If they cannot be
 * read, adds all devices of the sets with units. Without a folder in /run, adds none. Blocks on the
 * disk. -ENOMEM. */
int partitions_list_left(ClaimService *service, const HostConfig *config, StringSet *ret);

/* Adds one sentence, without a full stop, for each partition in the record that no guest can use
 * now: its unit runs or has failed, or it waits for one. A record that cannot be read adds none.
 * Blocks on the disk. -ENOMEM. */
int partitions_describe(const ClaimService *service, json_t *array);
