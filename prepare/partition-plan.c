/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides about the entries of the record first, then about claims without an entry. Each call
 * returns one step. An entry gets the step that it needs if it is known that the partition is not
 * in use, and its unit has not failed since the last stamp of prepare-retry. The deactivation after
 * a failed activation does not wait for a stamp. Only an adoption is for a partition in use: a
 * process has one of its devices open. A claim owns a partition if its devices in the set are
 * exactly those of the partition. A pending claim keeps an active partition, and activates none,
 * because Placement can still reject it.
 *
 * Tests: tests/unit/prepare/test-partition-plan.c */

#include "prepare/partition-plan.h"

#include <string.h>

/* Claims and handles */

/* Returns the partition that a claim owns, or NULL. */
static const DevicePartition *find_owned(const DeviceSet *set, const PrepareClaims *claims,
                                         int64_t claim)
{
        const char *devices[DEVICE_SET_MEMBERS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < claims->n_items; i++) {
                const PrepareClaim *item = &claims->items[i];

                if (item->id != claim || !device_set_members_of(set, item->address))
                        continue;
                if (n == DEVICE_SET_MEMBERS_MAX)
                        return NULL;
                devices[n++] = item->address;
        }
        return n > 0 ? device_set_find(set, devices, n) : NULL;
}

/* Returns the first claim that owns the partition and is not pending, 0: none. */
static int64_t find_owner(const DeviceSet *set, const PrepareClaims *claims,
                          const DevicePartition *partition)
{
        for (size_t i = 0; i < claims->n_items; i++) {
                const PrepareClaim *item = &claims->items[i];

                if (!item->is_pending && device_set_members_of(set, item->address) &&
                    find_owned(set, claims, item->id) == partition)
                        return item->id;
        }
        return 0;
}

/* Returns whether a device of the partition is in use. A device that a process has open comes
 * first. One that was not read counts as unknown. */
static PrepareOpen find_open(const PartitionFacts *facts, const DevicePartition *partition)
{
        PrepareOpen open = PREPARE_OPEN_NO;

        for (char **device = partition->devices; *device; device++) {
                PrepareOpen found = PREPARE_OPEN_UNKNOWN;

                for (size_t i = 0; i < facts->n_functions; i++)
                        if (strcmp(facts->functions[i].address, *device) == 0)
                                found = facts->functions[i].open;
                if (found == PREPARE_OPEN_YES)
                        return found;
                if (found != PREPARE_OPEN_NO)
                        open = found;
        }
        return open;
}

/* Entries */

/* Returns the step that an entry needs, whether a process has it open or not. */
static PartitionStep find_need(const DeviceSet *set, const PartitionFacts *facts,
                               const PartitionEntry *entry, const DevicePartition *partition)
{
        const PrepareClaims *claims = facts->claims;
        PartitionStep step = { .partition = partition, .claim = entry->claim };
        bool is_claimed = find_owned(set, claims, entry->claim) == partition;

        switch (entry->state) {
        case PARTITION_ACTIVATING:
                step.kind = PARTITION_STEP_ACTIVATE;
                break;
        case PARTITION_DEACTIVATING:
                step.kind = PARTITION_STEP_DEACTIVATE;
                break;
        case PARTITION_FAILED:
                step.kind = is_claimed         ? PARTITION_STEP_ACTIVATE
                            : claims->complete ? PARTITION_STEP_DEACTIVATE
                                               : PARTITION_STEP_NONE;
                break;
        default:
                step.kind = is_claimed || !claims->complete ? PARTITION_STEP_NONE
                                                            : PARTITION_STEP_DEACTIVATE;
        }
        return step;
}

/* Returns true if the last unit has failed, and must not be started again now. A missing stamp is
 * not new: the file is gone after each stop of the agent. */
static bool has_failed(const PartitionFacts *facts, const PartitionEntry *entry)
{
        return entry->error[0] && (!facts->retry[0] || strcmp(entry->retry, facts->retry) == 0);
}

/* Returns the step of an entry: of the kind PARTITION_STEP_NONE if it needs none, or must wait. */
static PartitionStep plan_entry(const DeviceSet *set, const PartitionFacts *facts,
                                const PartitionEntry *entry)
{
        const DevicePartition *partition = partition_entry_find(entry, set);
        PartitionStep step = { .kind = PARTITION_STEP_NONE };
        PrepareOpen open;
        int64_t owner;

        if (!partition)
                return step;
        step = find_need(set, facts, entry, partition);
        if (has_failed(facts, entry) &&
            !(entry->state == PARTITION_FAILED && step.kind == PARTITION_STEP_DEACTIVATE))
                return (PartitionStep){ .kind = PARTITION_STEP_NONE };
        open = find_open(facts, partition);
        if (open == PREPARE_OPEN_NO)
                return step;
        owner = find_owner(set, facts->claims, partition);
        if (entry->state == PARTITION_ACTIVE && step.kind == PARTITION_STEP_DEACTIVATE &&
            open == PREPARE_OPEN_YES && owner)
                return (PartitionStep){ .kind = PARTITION_STEP_ADOPT,
                                        .partition = partition,
                                        .claim = owner };
        return (PartitionStep){ .kind = PARTITION_STEP_NONE };
}

const char *partition_plan_waits(const HostShapes *shapes, const PartitionFacts *facts,
                                 const PartitionEntry *entry)
{
        const DevicePartition *partition = partition_entry_find(entry, &shapes->set);

        if (!partition)
                return strcmp(entry->set, shapes->set.name) == 0
                               ? "the configuration has no such partition"
                               : "";
        if (find_need(&shapes->set, facts, entry, partition).kind == PARTITION_STEP_NONE)
                return "";
        switch (find_open(facts, partition)) {
        case PREPARE_OPEN_YES:
                return "a process has one of its devices open";
        case PREPARE_OPEN_PARENT:
                return "one of its devices has mediated, vDPA or network devices";
        case PREPARE_OPEN_UNKNOWN:
                return "it is not known whether a process has one of its devices open";
        default:
                return "";
        }
}

/* Claims without an entry */

static bool shares_device(const PartitionEntry *entry, const DevicePartition *partition)
{
        for (char **a = entry->devices; *a; a++)
                for (char **b = partition->devices; *b; b++)
                        if (strcmp(*a, *b) == 0)
                                return true;
        return false;
}

/* Returns true if an entry prevents a step for this partition of a claim: the entry's partition
 * shares a member with it, which is a device or a slot of the set, or the entry names one of its
 * devices. Of an entry whose partition the configuration lacks, only the devices are known. */
static bool is_blocked(const DeviceSet *set, const PartitionRecord *record,
                       const DevicePartition *partition)
{
        for (size_t i = 0; i < record->n_items; i++) {
                const PartitionEntry *entry = &record->items[i];
                const DevicePartition *other = partition_entry_find(entry, set);

                if ((other && other->members & partition->members) ||
                    shares_device(entry, partition))
                        return true;
        }
        return false;
}

static PartitionStep plan_claims(const DeviceSet *set, const PartitionFacts *facts)
{
        const PrepareClaims *claims = facts->claims;

        for (size_t i = 0; i < claims->n_items; i++) {
                const PrepareClaim *claim = &claims->items[i];
                const DevicePartition *partition;
                PrepareOpen open;

                if (claim->is_pending || !device_set_members_of(set, claim->address))
                        continue;
                partition = find_owned(set, claims, claim->id);
                if (!partition || is_blocked(set, facts->record, partition))
                        continue;
                open = find_open(facts, partition);
                if (open != PREPARE_OPEN_NO && open != PREPARE_OPEN_YES)
                        continue;
                return (PartitionStep){ .kind = open == PREPARE_OPEN_YES ? PARTITION_STEP_ADOPT
                                                                         : PARTITION_STEP_ACTIVATE,
                                        .partition = partition,
                                        .claim = claim->id };
        }
        return (PartitionStep){ .kind = PARTITION_STEP_NONE };
}

PartitionStep partition_plan_next(const HostShapes *shapes, const PartitionFacts *facts)
{
        for (int kind = PARTITION_STEP_ADOPT; kind <= PARTITION_STEP_ACTIVATE; kind++)
                for (size_t i = 0; i < facts->record->n_items; i++) {
                        PartitionStep step =
                                plan_entry(&shapes->set, facts, &facts->record->items[i]);

                        if ((int)step.kind == kind)
                                return step;
                }
        return plan_claims(&shapes->set, facts);
}
