/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads which partitions of [device_shapes NAME] are active, for the answers to callers that start
 * a guest and for the tree. A watch follows their record, starts compute-agent-prepare while work
 * is unfinished, and cordons the devices of failed units. compute-agent-prepare writes the record
 * (formats/partitions.h). The agent has no right to start a unit. A set without the option
 * "activate" needs no record. */

#include <systemd/sd-event.h>

#include "agent/cycle/cleaner.h"
#include "agent/guests/database.h"
#include "agent/tree/cordon.h"
#include "formats/partitions.h"

/* Returns 0 if a guest can start with the partitions that its claim has. Returns -EBUSY with words
 * while one is not active yet, or if the record cannot be read. Returns -EIO with words if one is
 * not active, and its unit or that of a partition that shares a device or slot with it failed.
 * Devices of a set that are no partition of it are not checked. Blocks on the disk. */
int partitions_check_claim(const ClaimService *service, const Claim *claim, Error *reterr);

/* Adds the devices that no claim can get: those of each partition in the record that its claim does
 * not have. That is so if the claim is not in the list, or has another partition. It is also so if
 * the set has no units any more, or lacks the partition. If the set has slots and the partition,
 * the devices of partitions that share a slot with it are added too. Pure. -ENOMEM. */
int partition_list_left(const HostConfig *config, const PartitionRecord *record,
                        const ClaimList *claims, StringSet *ret);

/* Reads the record and, if it has entries, the claims. Adds the devices of partition_list_left().
 * If one of the two cannot be read, adds all devices of the sets with units. Without a folder in
 * /run, adds none. Blocks on the disk. -ENOMEM. */
int partitions_list_left(ClaimService *service, const HostConfig *config, StringSet *ret);

/* Adds one sentence, without a full stop, for each partition in the record that is not active,
 * whose unit has failed, or that waits. A record that cannot be read adds none. Blocks on the disk.
 * -ENOMEM. */
int partitions_describe(const ClaimService *service, json_t *array);

/* The watch of the record. A change of the devices that no claim can get begins a cycle, and so
 * does a new cordon. A failed unit cordons the devices of its partition that have no cordon. A
 * person who lifts the cordons of all of them makes the program start the unit again. Main thread;
 * blocks on the disk. */
typedef struct PartitionWatch PartitionWatch;

/* Makes a watch. config is copied, its members are borrowed; "runtime" is not used. Returns
 * -ENOMEM, or another errno of the event loop. */
int partition_watch_new(PartitionWatch **ret, const CleanerConfig *config);
PartitionWatch *partition_watch_free(PartitionWatch *watch);
DEFINE_CLEANUP(PartitionWatch *, partition_watch_free);

/* Reads the record, and acts. Called at the end of each cycle. While a change of a partition is
 * expected, a timer calls it every 100 ms, too. If the record or the claims cannot be read, this is
 * logged once, and the next cycle tries again. Does nothing without a set with units, the claim
 * database, a tree or a folder in /run, and while a comparison can make claims of guests. */
void partition_watch_tend(PartitionWatch *watch);
