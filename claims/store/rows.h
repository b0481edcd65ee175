/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The types of rows that the store reads and writes: one table of columns each (rows.c). A column
 * that is not in its table is written by a trigger or by name in statements.h. */

#include "claims/claim/claim.h"
#include "claims/claim/host-view.h"
#include "claims/store/columns.h"

/* The conditions of the indexes claims_unheld and claims_write_state, word for word: an index
 * serves a query only so. The first: the consumer was read, and it had no allocation. */
#define IS_UNHELD    "write_state = '' AND reported_generation < 0"
#define IS_UNDER_WAY "write_state IN ('pending', 'owed', 'sent')"

/* Rows without a struct elsewhere. Their texts are borrowed. */
typedef struct AllocationRow {
        Uuid provider;
        const char *provider_name, *resource_class, *group;
        uint64_t used;
} AllocationRow;

typedef struct ProviderRow {
        HostProvider provider;
        Uuid uuid, parent;
        const char *name;
} ProviderRow;

typedef struct InventoryRow {
        const char *resource_class;
        Inventory inventory;
} InventoryRow;

typedef struct UsageRow {
        const char *resource_class;
        uint64_t used;
} UsageRow;

typedef struct TextRow {
        const char *text;
} TextRow;

typedef struct IntegerRow {
        int64_t value;
} IntegerRow;

typedef struct HeldRow {
        CpuSet cpus; /* owned */
} HeldRow;

typedef struct TakenRow {
        Uuid mdev;
        const char *device, *address;
} TakenRow;

/* What a claim has of a class for one request group. The text is owned. */
typedef struct ShareRow {
        char *group;
        uint64_t used;
} ShareRow;

static inline void share_row_done(ShareRow *share)
{
        free(share->group);
}

/* Of a Claim: every claim has owner and claim; a living one living and reported, which is read
 * only; an ended one ended. */
extern const Row owner_row, claim_row, living_row, reported_row, ended_row;

/* Of a claim. An ended claim has them as JSON lists, so that a column can be added at the end of a
 * table only, and it must be optional. */
extern const Row allocation_row, device_row, cell_row, cpu_row;
extern const Row held_row, share_row, taken_row, identity_row, unplaced_row;

/* Of the host. */
extern const Row provider_row, generation_row, inventory_row, trait_row, aggregate_row, usage_row;
extern const Row cell_usage_row;

extern const Row integer_row, event_row, removal_row, move_row, owed_row;
