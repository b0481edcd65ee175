/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads and writes the provider model in SQLite. A HostView is one consistent read of it. A later
 * read of the same epoch reads only generations, usages of providers and cells, and held CPUs
 * again. If no connection wrote since the last read, and this one does not hold the write lock of
 * claims_attempt(), nothing is read again. HostView.limits is not stored: store_load_view()
 * always empties it, and each fit of devices makes it again. Changes of the host are written row by
 * row. The epoch is compared first, and then the generation of each changed or removed provider
 * with the one of the view. A difference returns CLAIM_E_RACE, with which the caller's store_end()
 * undoes the transaction, or its part of a group. A failed read can leave no view at all; the next
 * one reads it completely.
 *
 * Tests: tests/unit/claims/test-claims.c tests/unit/claims/test-claims-race.c
 *   tests/unit/claims/test-claims-scale.c */

#include <string.h>

#include "base/array.h"
#include "claims/store/frame.h"

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

ROW(provider, ProviderRow, "provider", COLUMN("p.id", ProviderRow, provider.id),
    COLUMN("p.generation", ProviderRow, provider.generation),
    COLUMN("p.withheld", ProviderRow, provider.withheld), COLUMN("p.uuid", ProviderRow, uuid),
    COLUMN("p.name", ProviderRow, name),
    COLUMN("above.uuid", ProviderRow, parent, .optional = true));

ROW(generation, HostProvider, "provider", COLUMN("generation", HostProvider, generation));

ROW(inventory, InventoryRow, "an inventory of provider",
    COLUMN("resource_class", InventoryRow, resource_class),
    COLUMN("total", InventoryRow, inventory.total),
    COLUMN("reserved", InventoryRow, inventory.reserved),
    COLUMN("min_unit", InventoryRow, inventory.min_unit),
    COLUMN("max_unit", InventoryRow, inventory.max_unit),
    COLUMN("step_size", InventoryRow, inventory.step_size),
    COLUMN("allocation_ratio", InventoryRow, inventory.allocation_ratio));

ROW(trait, TextRow, "a trait of provider", COLUMN("trait", TextRow, text));

ROW(aggregate, TextRow, "an aggregate of provider", COLUMN("aggregate", TextRow, text));

ROW(usage, UsageRow, "a usage of provider", COLUMN("resource_class", UsageRow, resource_class),
    COLUMN("used", UsageRow, used));

ROW(cell_usage, HostCellUsage, "host cell", COLUMN("host_cell", HostCellUsage, host_cell),
    COLUMN("page_kib", HostCellUsage, page_kib, .max = MEMORY_MAX),
    COLUMN("memory_mb", HostCellUsage, memory_mb), COLUMN("n_shared", HostCellUsage, n_shared));

/* The tree of providers, and the other columns of their rows in the same order. */
typedef struct ProviderRows {
        ProviderTree *tree;
        HostProvider *rows;
        size_t n_rows, n_allocated;
} ProviderRows;

static void provider_rows_done(ProviderRows *rows)
{
        provider_tree_free(rows->tree);
        free(rows->rows);
}

static int add_provider(void *context, int64_t key, void *row)
{
        ProviderRows *rows = context;
        ProviderRow *provider = row;

        if (array_grow(&rows->rows, sizeof(HostProvider), rows->n_rows, &rows->n_allocated) < 0)
                return -ENOMEM;
        rows->rows[rows->n_rows++] = provider->provider;
        return provider_tree_add(rows->tree, &provider->uuid, provider->name, &provider->parent,
                                 NULL, NULL);
}

static int read_providers(Claims *claims, HostView **ret, Error *reterr)
{
        _cleanup_(provider_rows_done) ProviderRows rows = { 0 };
        HostView *view;
        int r;

        if (provider_tree_new(&rows.tree) < 0)
                return error_oom(reterr);
        r = store_each(claims, STATEMENT_READ_PROVIDERS, NO_VALUES, add_provider, &rows, reterr);
        if (r < 0)
                return r;
        if (host_view_new(&view, TAKE_PTR(rows.tree)) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < view->n_providers; i++)
                view->providers[i] = rows.rows[i];
        *ret = view;
        return 0;
}

/* Ids of providers in ascending order, with the index of each in the view. */
typedef struct IdIndex {
        int64_t id;
        size_t index;
} IdIndex;

static int compare_ids(const void *a, const void *b)
{
        const IdIndex *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

static int index_ids(const HostView *view, IdIndex **ret)
{
        IdIndex *ids = calloc(view->n_providers + 1, sizeof(IdIndex));

        if (!ids)
                return -ENOMEM;
        for (size_t i = 0; i < view->n_providers; i++)
                ids[i] = (IdIndex){ .id = view->providers[i].id, .index = i };
        qsort(ids, view->n_providers, sizeof(IdIndex), compare_ids);
        *ret = ids;
        return 0;
}

static int add_generation(HostView *view, size_t index, void *row)
{
        view->providers[index].generation = ((HostProvider *)row)->generation;
        return 0;
}

static int add_usage(HostView *view, size_t index, void *row)
{
        const UsageRow *usage = row;

        if (usage->used == 0 || !resource_class_valid(usage->resource_class))
                return -EINVAL;
        return resources_set(&view->providers[index].used, usage->resource_class, usage->used);
}

static int add_inventory(HostView *view, size_t index, void *row)
{
        const InventoryRow *inventory = row;

        return provider_set_inventory(view->tree->providers[index], inventory->resource_class,
                                      &inventory->inventory);
}

static int add_trait(HostView *view, size_t index, void *row)
{
        return string_set_add(&view->tree->providers[index]->traits, ((TextRow *)row)->text);
}

static int add_aggregate(HostView *view, size_t index, void *row)
{
        return string_set_add(&view->tree->providers[index]->aggregates, ((TextRow *)row)->text);
}

static int add_cell_usage(void *context, int64_t key, void *row)
{
        HostView *view = context;

        if (array_grow(&view->cell_usages, sizeof(HostCellUsage), view->n_cell_usages,
                       &view->n_cell_usages_allocated) < 0)
                return -ENOMEM;
        view->cell_usages[view->n_cell_usages++] = *(HostCellUsage *)row;
        return 0;
}

static int add_held(void *context, int64_t key, void *row)
{
        HostView *view = context;

        cpu_set_done(&view->held);
        view->held = ((Layout *)row)->held;
        return 0;
}

/* Adds a row to the provider at index of the view. Returns 0, 1 or a negative errno, as the
 * callback of store_each() does (claims/store/frame.h). */
typedef int (*ProviderAdd)(HostView *view, size_t index, void *row);

/* The parts of providers, whose queries have the id of the provider in the first column. Claims
 * change the first two parts. The query of the providers reads their generations, too. */
static const struct {
        StatementId id;
        ProviderAdd add;
        bool in_new, in_known; /* read for a new view; read again for the same providers */
} parts[] = {
        { STATEMENT_READ_GENERATIONS, add_generation, false, true },
        { STATEMENT_READ_USAGES, add_usage, true, true },
        { STATEMENT_READ_INVENTORIES, add_inventory, true, false },
        { STATEMENT_READ_TRAITS, add_trait, true, false },
        { STATEMENT_READ_AGGREGATES, add_aggregate, true, false },
};

typedef struct Reader {
        ProviderAdd add;
        HostView *view;
        IdIndex *ids;
} Reader;

static int add_to_provider(void *context, int64_t key, void *row)
{
        const Reader *reader = context;
        const IdIndex *found = bsearch(&(IdIndex){ .id = key }, reader->ids,
                                       reader->view->n_providers, sizeof(IdIndex), compare_ids);

        return found ? reader->add(reader->view, found->index, row) : -ENOENT;
}

/* Reads the usages of cells, the held CPUs, and the parts of all providers: for a known view only
 * the parts that claims change. */
static int read_parts(Claims *claims, HostView *view, bool is_new, Error *reterr)
{
        _cleanup_free_ IdIndex *ids = NULL;
        int r;

        if (index_ids(view, &ids) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < view->n_providers; i++)
                resources_done(&view->providers[i].used);
        view->n_cell_usages = 0;
        r = store_each(claims, STATEMENT_READ_CELL_USAGES, NO_VALUES, add_cell_usage, view, reterr);
        if (r == 0)
                r = store_each(claims, STATEMENT_READ_ALL_HELD, NO_VALUES, add_held, view, reterr);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
                if (is_new ? parts[i].in_new : parts[i].in_known)
                        r = store_each(claims, parts[i].id, NO_VALUES, add_to_provider,
                                       &(Reader){ .add = parts[i].add, .view = view, .ids = ids },
                                       reterr);
        return r;
}

/* Yields counters of the writes so far, by other connections and by this one. After a lost race,
 * claims_attempt() holds the write lock for the next attempt. The second counter is then -1, so
 * that load_view() always reads the view. A rollback of a group, or of a part of it, forgets the
 * stamp of the view (frame.c). */
static int read_stamp(Claims *claims, int64_t *ret_others, int64_t *ret_us, Error *reterr)
{
        *ret_us = claims->has_turn ? -1
                                   : (int64_t)(uint32_t)sqlite3_total_changes(claims->sqlite->db);
        return store_get_integer(claims, STATEMENT_READ_VERSION, NO_VALUES, ret_others, reterr);
}

/* Reads a new view if there is none, or if the epoch changed. Otherwise reads only the parts that
 * claims change. */
static int read_changes(Claims *claims, Error *reterr)
{
        _cleanup_(host_view_freep) HostView *view = NULL;
        int64_t epoch = 0;
        int r = store_get_integer(claims, STATEMENT_READ_EPOCH, NO_VALUES, &epoch, reterr);
        bool is_new = !claims->view || claims->view->epoch != epoch;

        if (r == 0 && is_new)
                r = read_providers(claims, &view, reterr);
        if (r < 0)
                return r;
        /* If read_parts() fails, a known view is inconsistent, and is freed. */
        if (!is_new)
                view = TAKE_PTR(claims->view);
        r = read_parts(claims, view, is_new, reterr);
        if (r < 0)
                return r;
        view->epoch = epoch;
        host_view_free(claims->view);
        claims->view = TAKE_PTR(view);
        return 0;
}

/* Reads the view, unless has_turn is false and no connection wrote since the last read. */
static int load_view(Claims *claims, Error *reterr)
{
        const HostView *view = claims->view;
        int64_t by_others, by_us;
        int r = read_stamp(claims, &by_others, &by_us, reterr);

        if (r < 0)
                return r;
        if (view && by_us >= 0 && view->by_others == by_others && view->by_us == by_us)
                return 0;
        r = read_changes(claims, reterr);
        if (r < 0)
                return r;
        claims->view->by_others = by_others;
        claims->view->by_us = by_us;
        return 0;
}

int store_load_view(Claims *claims, Error *reterr)
{
        bool began = false;
        int r = store_begin_read(claims, &began, reterr);

        if (r == 0)
                r = load_view(claims, reterr);
        if (r == 0)
                claims->view->n_limits = 0;
        store_end_read(claims, began);
        return r;
}

static int write_inventories(Claims *claims, int64_t id, const Provider *provider, Error *reterr)
{
        int r = store_run(claims, STATEMENT_DELETE_INVENTORIES, VALUES(id), CLAIM_DONE, reterr);

        for (size_t i = 0; r >= 0 && i < provider->n_inventories; i++) {
                const InventoryRecord *record = &provider->inventories[i];
                const InventoryRow row = { .resource_class = record->resource_class,
                                           .inventory = record->inventory };

                r = store_insert_row(claims, STATEMENT_INSERT_INVENTORY, &row, VALUES(id), reterr);
        }
        return r;
}

static int write_set(Claims *claims, int64_t id, const StringSet *set, StatementId delete,
                     StatementId insert, Error *reterr)
{
        int r = store_run(claims, delete, VALUES(id), CLAIM_DONE, reterr);

        for (size_t i = 0; r >= 0 && i < set->n_items; i++)
                r = store_run(claims, insert, VALUES(id, set->items[i]), CLAIM_DONE, reterr);
        return r;
}

static int write_details(Claims *claims, int64_t id, const Provider *provider, Error *reterr)
{
        int r = write_inventories(claims, id, provider, reterr);

        if (r < 0)
                return r;
        r = write_set(claims, id, &provider->traits, STATEMENT_DELETE_TRAITS,
                      STATEMENT_INSERT_TRAIT, reterr);
        if (r < 0)
                return r;
        return write_set(claims, id, &provider->aggregates, STATEMENT_DELETE_AGGREGATES,
                         STATEMENT_INSERT_AGGREGATE, reterr);
}

/* Inserts a provider without a row (id 0), and updates any other. Returns CLAIM_E_RACE if another
 * writer inserted or changed it first. */
static int write_provider(Claims *claims, const HostView *wanted, size_t index, Error *reterr)
{
        const Provider *provider = wanted->tree->providers[index];
        const HostProvider *row = &wanted->providers[index];
        bool can_host = !string_set_contains(&provider->traits, TRAIT_SHARES_VIA_AGGREGATE);
        int64_t id = row->id;
        int r;

        if (id == 0)
                r = store_run(claims, STATEMENT_INSERT_PROVIDER,
                              VALUES(provider->uuid.text, provider->name, provider->parent.text,
                                     can_host, row->withheld, index),
                              CLAIM_DONE, reterr);
        else
                r = store_run(claims, STATEMENT_UPDATE_PROVIDER,
                              VALUES(id, row->generation, provider->name, provider->parent.text,
                                     can_host, row->withheld, provider->uuid.text),
                              CLAIM_E_RACE, reterr);
        if (r == -EEXIST)
                return CLAIM_E_RACE;
        if (r != 0)
                return r;
        if (id == 0)
                id = sqlite3_last_insert_rowid(claims->sqlite->db);
        return write_details(claims, id, provider, reterr);
}

static int remove_provider(Claims *claims, const HostProvider *row, Error *reterr)
{
        int r = store_run(claims, STATEMENT_DELETE_PROVIDER, VALUES(row->id, row->generation),
                          CLAIM_E_RACE, reterr);

        /* A claim uses it now, or it got a child. */
        return r == -EEXIST ? CLAIM_E_RACE : r;
}

/* Returns true if the provider at index of seen keeps its row, because a provider of wanted has the
 * same id. Most providers keep their uuid, so that is looked up first. */
static bool has_row(const HostView *wanted, const HostView *seen, size_t index)
{
        int64_t id = seen->providers[index].id;
        size_t found;

        if (host_view_find(wanted, &seen->tree->providers[index]->uuid, &found) &&
            wanted->providers[found].id == id)
                return true;
        for (size_t i = 0; i < wanted->n_providers; i++)
                if (wanted->providers[i].id == id)
                        return true;
        return false;
}

/* Returns true if both views have the same providers at the same positions. */
static bool same_order(const HostView *a, const HostView *b)
{
        if (a->n_providers != b->n_providers)
                return false;
        for (size_t i = 0; i < a->n_providers; i++)
                if (!uuid_equal(&a->tree->providers[i]->uuid, &b->tree->providers[i]->uuid))
                        return false;
        return true;
}

/* Writes the differences between the host in the database (seen) and the new one (wanted): changed
 * providers, removed ones, and then the order. If a provider keeps its row under another uuid, the
 * devices of claims follow. */
static int write_changes(Claims *claims, const HostView *seen, const HostView *wanted,
                         Error *reterr)
{
        size_t index;
        int r;

        for (size_t i = 0; i < wanted->n_providers; i++) {
                const Uuid *uuid = &wanted->tree->providers[i]->uuid;
                bool known = host_view_find(seen, uuid, &index);

                if (known && host_view_provider_equal(seen, index, wanted, i))
                        continue;
                r = known ? 0
                          : store_run(claims, STATEMENT_RENAME_OF_DEVICES,
                                      VALUES(wanted->providers[i].id, uuid->text), CLAIM_DONE,
                                      reterr);
                if (r == 0)
                        r = write_provider(claims, wanted, i, reterr);
                if (r != 0)
                        return r;
        }
        /* Children come after their parents, so they are removed first. */
        for (size_t i = seen->n_providers; i > 0; i--) {
                if (has_row(wanted, seen, i - 1))
                        continue;
                r = remove_provider(claims, &seen->providers[i - 1], reterr);
                if (r != 0)
                        return r;
        }
        if (same_order(seen, wanted))
                return 0;
        /* A provider that moved must still be read after its parent. */
        for (size_t i = 0; i < wanted->n_providers; i++) {
                r = store_run(claims, STATEMENT_SET_POSITION,
                              VALUES(i, wanted->tree->providers[i]->uuid.text), CLAIM_DONE, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

int store_write_changes(Claims *claims, const HostView *wanted, Error *reterr)
{
        int r = store_run(claims, STATEMENT_BUMP_EPOCH, VALUES(claims->view->epoch), CLAIM_E_RACE,
                          reterr);

        return r == 0 ? write_changes(claims, claims->view, wanted, reterr) : r;
}
