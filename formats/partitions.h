/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The document PARTITIONS_FORMAT: the partitions of [device_shapes NAME] that compute-agent-prepare
 * has activated, has begun to activate, or has found in use. That program writes it, and the agent
 * and computectl read it. A partition without an entry counts as not active. Pure, but for
 * partition_record_read(). */

#include <jansson.h>

#include "base/device-set.h"

#define PARTITION_ERROR_SIZE  256
#define PARTITION_WANTED_SIZE 17   /* bytes of a stamp, with the NUL */
#define PARTITION_RECORD_MAX  4096 /* entries */

typedef enum PartitionState {
        PARTITION_ACTIVATING, /* the unit "activate" runs, was interrupted, or did not end in its
                                 time */
        PARTITION_ACTIVE, /* the unit "activate" succeeded, or a process had the partition open */
        PARTITION_FAILED, /* the unit "activate" failed, or could not be started */
        PARTITION_DEACTIVATING, /* the unit "deactivate" was started or could not be, and has not
                                   succeeded */
        _PARTITION_STATE_MAX,
        _PARTITION_STATE_INVALID = -EINVAL,
} PartitionState;

typedef struct PartitionEntry {
        char set[DEVICE_SET_ID_MAX + 1], partition[DEVICE_SET_ID_MAX + 1];
        char **devices; /* PCI addresses of the partition; NULL-terminated, owned */
        int64_t claim;  /* for which it was activated */
        PartitionState state;
        uint64_t since_usec;                /* CLOCK_REALTIME of the state, or of its last error */
        char error[PARTITION_ERROR_SIZE];   /* error of the last unit; "": none */
        char waiting[PARTITION_ERROR_SIZE]; /* why no unit is started now; "": no reason */
        json_t *lines; /* last lines of the unit that failed; owned; NULL or empty: none */
        char retry[PARTITION_WANTED_SIZE]; /* stamp of prepare-retry when it failed */
} PartitionEntry;

typedef struct PartitionRecord {
        char wanted[PARTITION_WANTED_SIZE]; /* the stamp that the program saw last */
        char error[PARTITION_ERROR_SIZE]; /* why no step was made at the last look; "": no error */
        PartitionEntry *items;
        size_t n_items, n_allocated;
} PartitionRecord;

void partition_record_done(PartitionRecord *record);

const char *partition_state_to_text(PartitionState state);

/* Adds an entry for a partition of a set, with the state PARTITION_ACTIVATING. Returns it, borrowed
 * until the next change of the record, or NULL if memory is short or the record is full. */
PartitionEntry *partition_record_add(PartitionRecord *record, const char *set,
                                     const DevicePartition *partition, int64_t claim);

/* Removes an entry of the record. */
void partition_record_remove(PartitionRecord *record, PartitionEntry *entry);

/* Returns the entry of a partition of a set, borrowed; NULL: it has none, so it counts as not
 * active. */
PartitionEntry *partition_record_find(const PartitionRecord *record, const char *set,
                                      const char *partition);

/* Returns the partition of the set that the entry is about, borrowed; NULL: the set has none with
 * this id and these devices, because the configuration changed. */
const DevicePartition *partition_entry_find(const PartitionEntry *entry, const DeviceSet *set);

/* Makes the document. NULL: memory ran out, or a text is not UTF-8. The caller owns the
 * reference. */
json_t *partition_record_to_json(const PartitionRecord *record);

/* Reads the document of a file. A missing file has no entries. ret must be zeroed. Returns -EBADMSG
 * for another document, -EFBIG for a file above 4 MiB, -ENOMEM, or another error of the read, all
 * with words. Blocks on the disk. */
int partition_record_read(const char *path, PartitionRecord *ret, Error *reterr);
