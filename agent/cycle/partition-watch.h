/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Follows the record of compute-agent-prepare while partitions are activated and deactivated. A
 * change of the devices that no claim can get begins a cycle, and so does a new cordon. A failed
 * unit cordons the devices of its partition, and a person who lifts the cordons of all of them
 * makes the program start the unit again. Main thread; blocks on the disk. */

#include <systemd/sd-event.h>

#include "agent/cycle/cleaner.h"
#include "agent/cycle/partitions.h"

typedef struct PartitionWatch PartitionWatch;

/* Makes a watch. config is copied, its members are borrowed; "runtime" is not used. Returns
 * -ENOMEM, or another errno of the event loop. */
int partition_watch_new(PartitionWatch **ret, const CleanerConfig *config);
PartitionWatch *partition_watch_free(PartitionWatch *watch);
DEFINE_CLEANUP(PartitionWatch *, partition_watch_free);

/* Reads the record, and acts. Called at the end of each cycle. While a change of a partition is
 * expected, a timer calls it every 100 ms, too. After a record or claims that cannot be read, the
 * next cycle tries again. Does nothing without a set with units, the claim database, a tree or a
 * folder in /run, and while a comparison can make claims of guests. */
void partition_watch_tend(PartitionWatch *watch);
