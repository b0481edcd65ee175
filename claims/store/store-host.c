/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The provider model in SQLite: reading it as a HostView, and writing the host's changes. */

#include <string.h>

#include "base/array.h"

#include "claims/store/store-internal.h"

/* The providers, and what their rows say beside. */
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

static int add_provider(Claims *claims, sqlite3_stmt *statement, void *context, Error *reterr)
{
        ProviderRows *rows = context;
        HostProvider row = { 0 };
        const char *name;
        Uuid uuid, parent;
        int r = store_read(claims, statement, 0, "a provider's uuid", reterr, "iibusU", &row.id,
                           &row.generation, &row.withheld, &uuid, &name, &parent);

        if (r < 0)
                return r;
        if (array_grow(&rows->rows, sizeof(HostProvider), rows->n_rows, &rows->n_allocated) < 0)
                return error_oom(reterr);
        r = provider_tree_add(rows->tree, &uuid, name, &parent, NULL, reterr);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return sqlite_damaged(claims->sqlite, "the tree of providers", reterr);
        rows->rows[rows->n_rows++] = row;
        return 0;
}

static int read_providers(Claims *claims, HostView **ret, Error *reterr)
{
        _cleanup_(provider_rows_done) ProviderRows rows = { 0 };
        HostView *view;
        int r;

        if (provider_tree_new(&rows.tree) < 0)
                return error_oom(reterr);
        r = store_each(claims, STATEMENT_READ_PROVIDERS, add_provider, &rows, reterr, "");
        if (r < 0)
                return r;
        if (host_view_new(&view, TAKE_PTR(rows.tree)) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < view->n_providers; i++)
                view->providers[i] = rows.rows[i];
        *ret = view;
        return 0;
}

/* Rows in the order of providers' ids, and where each of these stands in the view. */
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

typedef int (*ReadRow)(Claims *claims, HostView *view, size_t index, sqlite3_stmt *statement,
                       Error *reterr);

/* Hands each row of a query to read_row, with the provider whose id is its first column. */
static int read_rows(Claims *claims, HostView *view, const IdIndex *ids, StatementId id,
                     ReadRow read_row, Error *reterr)
{
        _cleanup_(statement_resetp) sqlite3_stmt *statement = NULL;
        int r = store_query(claims, id, &statement, reterr, "");

        if (r < 0)
                return r;
        while ((r = sqlite_step(claims->sqlite, statement, reterr)) == SQLITE_STEP_ROW) {
                IdIndex key = { .id = sqlite3_column_int64(statement, 0) };
                const IdIndex *found =
                        bsearch(&key, ids, view->n_providers, sizeof(IdIndex), compare_ids);

                if (!found)
                        return sqlite_damaged(claims->sqlite, "a row of no provider", reterr);
                r = read_row(claims, view, found->index, statement, reterr);
                if (r < 0)
                        return r;
        }
        return r;
}

static int read_inventory(Claims *claims, HostView *view, size_t index, sqlite3_stmt *statement,
                          Error *reterr)
{
        /* A negative number becomes a huge one, which no record may have. */
        Inventory inventory = {
                .total = (uint64_t)sqlite3_column_int64(statement, 2),
                .reserved = (uint64_t)sqlite3_column_int64(statement, 3),
                .min_unit = (uint64_t)sqlite3_column_int64(statement, 4),
                .max_unit = (uint64_t)sqlite3_column_int64(statement, 5),
                .step_size = (uint64_t)sqlite3_column_int64(statement, 6),
                .allocation_ratio = sqlite3_column_double(statement, 7),
        };
        const char *resource_class;
        int r = sqlite_column(claims->sqlite, statement, 1, &resource_class, reterr);

        if (r < 0)
                return r;
        r = provider_set_inventory(view->tree->providers[index], resource_class, &inventory);
        if (r == -ENOMEM)
                return error_oom(reterr);
        return r < 0 ? sqlite_damaged(claims->sqlite, "an inventory", reterr) : 0;
}

static int read_item(Claims *claims, StringSet *set, sqlite3_stmt *statement, Error *reterr)
{
        const char *text;
        int r = sqlite_column(claims->sqlite, statement, 1, &text, reterr);

        if (r < 0)
                return r;
        return string_set_add(set, text) < 0 ? error_oom(reterr) : 0;
}

static int read_trait(Claims *claims, HostView *view, size_t index, sqlite3_stmt *statement,
                      Error *reterr)
{
        return read_item(claims, &view->tree->providers[index]->traits, statement, reterr);
}

static int read_aggregate(Claims *claims, HostView *view, size_t index, sqlite3_stmt *statement,
                          Error *reterr)
{
        return read_item(claims, &view->tree->providers[index]->aggregates, statement, reterr);
}

static int read_generation(Claims *claims, HostView *view, size_t index, sqlite3_stmt *statement,
                           Error *reterr)
{
        view->providers[index].generation = sqlite3_column_int64(statement, 1);
        return 0;
}

static int read_usage(Claims *claims, HostView *view, size_t index, sqlite3_stmt *statement,
                      Error *reterr)
{
        int64_t used = sqlite3_column_int64(statement, 2);
        const char *resource_class;
        int r = sqlite_column(claims->sqlite, statement, 1, &resource_class, reterr);

        if (r < 0)
                return r;
        if (used <= 0 || !resource_class_valid(resource_class))
                return sqlite_damaged(claims->sqlite, "a usage", reterr);
        r = resources_set(&view->providers[index].used, resource_class, (uint64_t)used);
        return r < 0 ? error_oom(reterr) : 0;
}

static int read_view(Claims *claims, HostView **ret, Error *reterr)
{
        _cleanup_(host_view_freep) HostView *view = NULL;
        _cleanup_free_ IdIndex *ids = NULL;
        static const struct {
                StatementId id;
                ReadRow read_row;
        } parts[] = {
                { STATEMENT_READ_INVENTORIES, read_inventory },
                { STATEMENT_READ_TRAITS, read_trait },
                { STATEMENT_READ_AGGREGATES, read_aggregate },
                { STATEMENT_READ_USAGES, read_usage },
        };
        int r = read_providers(claims, &view, reterr);

        if (r < 0)
                return r;
        if (index_ids(view, &ids) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                r = read_rows(claims, view, ids, parts[i].id, parts[i].read_row, reterr);
                if (r < 0)
                        return r;
        }
        r = store_read_cell_usages(claims, view, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(view);
        return 0;
}

/* The tree is the same as before: only what claims change is read. */
static int refresh_view(Claims *claims, HostView *view, Error *reterr)
{
        _cleanup_free_ IdIndex *ids = NULL;
        int r;

        if (index_ids(view, &ids) < 0)
                return error_oom(reterr);
        r = read_rows(claims, view, ids, STATEMENT_READ_GENERATIONS, read_generation, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < view->n_providers; i++)
                resources_done(&view->providers[i].used);
        r = read_rows(claims, view, ids, STATEMENT_READ_USAGES, read_usage, reterr);
        return r < 0 ? r : store_read_cell_usages(claims, view, reterr);
}

/* What was written so far, by others and by this connection. What is not committed yet counts as
 * nothing that stays. */
static int read_stamp(Claims *claims, int64_t *ret_others, int64_t *ret_us, Error *reterr)
{
        *ret_us = claims->has_turn ? -1
                                   : (int64_t)(uint32_t)sqlite3_total_changes(claims->sqlite->db);
        return store_get_integer(claims, STATEMENT_READ_VERSION, ret_others, reterr);
}

static int read_changes(Claims *claims, Error *reterr)
{
        HostView *fresh;
        int64_t epoch;
        int r = store_get_integer(claims, STATEMENT_READ_EPOCH, &epoch, reterr);

        if (r < 0)
                return r;
        if (claims->view && claims->view->epoch == epoch) {
                r = refresh_view(claims, claims->view, reterr);
                /* Half read: not to be taken for a state of the store. */
                if (r < 0)
                        claims->view = host_view_free(claims->view);
                return r;
        }
        r = read_view(claims, &fresh, reterr);
        if (r < 0)
                return r;
        fresh->epoch = epoch;
        host_view_free(claims->view);
        claims->view = fresh;
        return 0;
}

/* Nothing is read where nothing was written since. */
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
        int r;

        if (claims->has_turn)
                return load_view(claims, reterr);
        r = sqlite_begin_read(claims->sqlite, reterr);
        if (r < 0)
                return r;
        r = load_view(claims, reterr);
        sqlite_rollback(claims->sqlite);
        return r;
}

int store_bump(Claims *claims, const HostProvider *provider, Error *reterr)
{
        return store_change(claims, STATEMENT_BUMP_PROVIDER, CLAIM_E_RACE, reterr, "ii",
                            provider->id, provider->generation);
}

static int write_inventories(Claims *claims, int64_t id, const Provider *provider, Error *reterr)
{
        int r = store_run(claims, STATEMENT_DELETE_INVENTORIES, reterr, "i", id);

        for (size_t i = 0; r >= 0 && i < provider->n_inventories; i++) {
                const InventoryRecord *record = &provider->inventories[i];
                const Inventory *inventory = &record->inventory;

                r = store_run(claims, STATEMENT_INSERT_INVENTORY, reterr, "isiiiiid", id,
                              record->resource_class, (int64_t)inventory->total,
                              (int64_t)inventory->reserved, (int64_t)inventory->min_unit,
                              (int64_t)inventory->max_unit, (int64_t)inventory->step_size,
                              inventory->allocation_ratio);
        }
        return r;
}

static int write_set(Claims *claims, int64_t id, const StringSet *set, StatementId delete,
                     StatementId insert, Error *reterr)
{
        int r = store_run(claims, delete, reterr, "i", id);

        for (size_t i = 0; r >= 0 && i < set->n_items; i++)
                r = store_run(claims, insert, reterr, "is", id, set->items[i]);
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

/* Inserts or updates one provider. CLAIM_E_RACE. */
static int write_provider(Claims *claims, const HostView *wanted, size_t index, Error *reterr)
{
        const Provider *provider = wanted->tree->providers[index];
        const HostProvider *row = &wanted->providers[index];
        int64_t can_host = !string_set_contains(&provider->traits, TRAIT_SHARES_VIA_AGGREGATE);
        int64_t id = row->id;
        int r;

        if (id == 0)
                r = store_run(claims, STATEMENT_INSERT_PROVIDER, reterr, "sssiii",
                              provider->uuid.text, provider->name, provider->parent.text, can_host,
                              (int64_t)row->withheld, (int64_t)index);
        else
                r = store_change(claims, STATEMENT_UPDATE_PROVIDER, CLAIM_E_RACE, reterr, "iissiis",
                                 id, row->generation, provider->name, provider->parent.text,
                                 can_host, (int64_t)row->withheld, provider->uuid.text);
        /* Another writer inserted it first. */
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
        int r = store_change(claims, STATEMENT_DELETE_PROVIDER, CLAIM_E_RACE, reterr, "ii", row->id,
                             row->generation);

        /* A claim got something of it, or a child appeared. */
        return r == -EEXIST ? CLAIM_E_RACE : r;
}

/* Has wanted a provider in the row of one of seen? Most have their uuid still. */
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

static bool same_order(const HostView *a, const HostView *b)
{
        if (a->n_providers != b->n_providers)
                return false;
        for (size_t i = 0; i < a->n_providers; i++)
                if (!uuid_equal(&a->tree->providers[i]->uuid, &b->tree->providers[i]->uuid))
                        return false;
        return true;
}

static int write_changes(Claims *claims, const HostView *seen, const HostView *wanted,
                         Error *reterr)
{
        size_t index;
        int r;

        for (size_t i = 0; i < wanted->n_providers; i++) {
                if (host_view_find(seen, &wanted->tree->providers[i]->uuid, &index) &&
                    host_view_provider_equal(seen, index, wanted, i))
                        continue;
                r = write_provider(claims, wanted, i, reterr);
                if (r != 0)
                        return r;
        }
        /* Children stand behind their parents. */
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
                r = store_run(claims, STATEMENT_SET_POSITION, reterr, "is", (int64_t)i,
                              wanted->tree->providers[i]->uuid.text);
                if (r < 0)
                        return r;
        }
        return 0;
}

int store_write_changes(Claims *claims, const HostView *wanted, Error *reterr)
{
        int r = store_change(claims, STATEMENT_BUMP_EPOCH, CLAIM_E_RACE, reterr, "i",
                             claims->view->epoch);

        return r == 0 ? write_changes(claims, claims->view, wanted, reterr) : r;
}

int store_write_host(Claims *claims, const HostView *wanted, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_write_changes(claims, wanted, reterr);
        return store_end(claims, r, reterr);
}
