/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Upgrades a file of any older shape in one way. It drops triggers, indexes and views, gives old
 * tables and columns their newest names, and renames each table T to old_T. Then it makes the
 * newest schema beside them, checks that each old column has a place, copies rows by the names of
 * columns, and drops the old tables. A column that the old table lacks gets its default. Version 1,
 * and the parts of ended claims of early versions, are copied by statements of their own. Sums and
 * counts (usages, cell_usages, claim_counts) are not copied, since triggers build them again. The
 * caller has the transaction, and must roll back after a failure.
 *
 * The upgrade fails if an old table or column has no place in the newest schema, or if the newest
 * schema rejects a row. Three kinds of rows are left out silently, and remain in the old file or
 * its copy. These are rows of version 1 without a uuid, or twice for one instance and role, and
 * parts of ended claims that are not in the history. Amounts of version 1 are bounded to 0 …
 * 2147483647. */

#include "claims/store/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Names that changed after a version with them was written. column NULL: the name of the table. */
static const struct {
        const char *table, *column, *name;
} renames[] = {
        { "departures", NULL, "removals" },
        { "consumer_moves", NULL, "moves" },
        { "claims", "standing", "write_state" },
        { "claims", "told_generation", "reported_generation" },
        { "claims", "told_elsewhere", "reported_elsewhere" },
        { "claims", "told_until", "reported_until" },
        { "removals", "told_generation", "reported_generation" },
        { "removals", "told_elsewhere", "reported_elsewhere" },
        { "removals", "told_until", "reported_until" },
};

/* The tables to copy: parents before the tables that refer to them. since: each file from this
 * version on has the table; SCHEMA_NEWEST: an older file can lack it. */
static const struct {
        const char *name;
        int since;
} tables[] = {
        { "claims", 1 },
        { "ended_claims", 2 },
        { "provider_epoch", 2 },
        { "resource_providers", 2 },
        { "inventories", 2 },
        { "provider_traits", 2 },
        { "provider_aggregates", 2 },
        { "allocations", 2 },
        { "claim_devices", SCHEMA_NEWEST },
        { "claim_cells", SCHEMA_NEWEST },
        { "claim_cpus", SCHEMA_NEWEST },
        { "claim_pins", SCHEMA_NEWEST },
        { "removals", SCHEMA_NEWEST },
        { "moves", SCHEMA_NEWEST },
        { "unclean_devices", SCHEMA_NEWEST },
        { "events", SCHEMA_NEWEST },
};

/* Tables of ended claims in the first versions. Each is now a column of ended_claims: a list of
 * lists (statements.h, END_CLAIM). */
static const struct {
        const char *table, *column, *items, *order;
} lists[] = {
        { "old_ended_allocations", "allocations",
          "provider_uuid, provider_name, resource_class, used, request_group", "rowid" },
        { "old_ended_devices", "devices",
          "provider_uuid, request_group, device, address, mdev_type, mdev_uuid", "id" },
        { "old_ended_cells", "cells", "cell, host_cell, memory_mb, page_kib, vcpus, n_shared",
          "cell" },
        { "old_ended_cpus", "cpus", "vcpu, dedicated, cpus", "vcpu" },
};

#define HEX4      "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]"
#define UUID_GLOB "'" HEX4 HEX4 "-" HEX4 "-" HEX4 "-" HEX4 "-" HEX4 HEX4 HEX4 "'"

/* Copies the claims of version 1, which have no provider and no request. They become confirmed,
 * since version 1 has no other state. They are not placed until the host's providers are known. The
 * request is that of an equal claim now. The text of the column pci is copied, and triggers replace
 * it when the claim gets PCI devices. Rows without a uuid cannot be distinguished and are not
 * copied. If two rows have the same instance and role, the one with the higher id is copied. */
static const char version_1_rows[] =
        "INSERT OR IGNORE INTO claims (id, host, node, instance_uuid, vcpus, memory_mb, disk_gb, pci,"
        "  resize_target, created_at, created_usec, state, request, placed)"
        " SELECT id, ifnull(host, ''), ifnull(node, ''), uuid, vcpus, memory_mb, disk_gb,"
        "  ifnull(pci, ''), resize_target, created_at,"
        "  max(ifnull(CAST(strftime('%s', created_at) AS INTEGER), 0), 0) * 1000000, 'confirmed',"
        "  'resources=' || rtrim("
        "   iif(disk_gb > 0, 'DISK_GB:' || disk_gb || ',', '') ||"
        "   iif(memory_mb > 0, 'MEMORY_MB:' || memory_mb || ',', '') ||"
        "   iif(vcpus > 0, 'VCPU:' || vcpus || ',', ''), ','), 0"
        " FROM (SELECT id, host, node, lower(instance_uuid) AS uuid,"
        "  min(max(CAST(ifnull(vcpus, 0) AS INTEGER), 0), 2147483647) AS vcpus,"
        "  min(max(CAST(ifnull(memory_mb, 0) AS INTEGER), 0), 2147483647) AS memory_mb,"
        "  min(max(CAST(ifnull(disk_gb, 0) AS INTEGER), 0), 2147483647) AS disk_gb,"
        "  pci, ifnull(resize_target, 0) <> 0 AS resize_target,"
        "  ifnull(created_at, '') AS created_at FROM old_claims)"
        " WHERE uuid GLOB " UUID_GLOB " ORDER BY id DESC;";

/* Moves of older versions are those of the first claims of their sources. */
static const char claims_of_moves[] =
        "UPDATE moves SET claim_id = ifnull((SELECT id FROM claims"
        "  WHERE instance_uuid = from_consumer AND resize_target = 0), 0) WHERE claim_id = 0";

/* Yields columns of old tables without a place in the newest schema, except for those that are not
 * copied by name. */
#define NO_PLACE                                                                                   \
        "SELECT substr(m.name, 5) || '.' || o.name FROM sqlite_master m,"                          \
        " pragma_table_info(m.name) o WHERE m.type = 'table' AND m.name GLOB 'old_*'"              \
        " AND m.name NOT IN ('old_ended_allocations', 'old_ended_devices', 'old_ended_cells',"     \
        "  'old_ended_cpus') AND NOT EXISTS (SELECT 1 FROM pragma_table_info(substr(m.name, 5)) n" \
        "  WHERE n.name = o.name)"

/* Yields columns of the newest schema that have no default and that an old table lacks. */
#define NO_VALUE                                                                           \
        "SELECT m.name || '.' || n.name FROM sqlite_master m, pragma_table_info(m.name) n" \
        " WHERE EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'old_' || m.name)"        \
        " AND n.\"notnull\" = 1 AND n.dflt_value IS NULL AND NOT EXISTS"                   \
        " (SELECT 1 FROM pragma_table_info('old_' || m.name) o WHERE o.name = n.name)"

/* Yields the first column of the first row, owned by the caller; "" for NULL. *ret is NULL without
 * a row. */
static int query_text(Sqlite *sqlite, const char *sql, char **ret, Error *reterr)
{
        _cleanup_(statement_finalizep) sqlite3_stmt *statement = NULL;
        const char *text;
        int r = sqlite_prepare(sqlite, sql, &statement, reterr);

        if (r == 0)
                r = sqlite_step(sqlite, statement, reterr);
        if (r <= 0) {
                *ret = NULL;
                return r;
        }
        r = sqlite_column(sqlite, statement, 0, &text, reterr);
        if (r < 0)
                return r;
        *ret = strdup(text);
        return *ret ? 0 : error_oom(reterr);
}

/* Runs the statements that a query yields as one text. Runs none if it yields no row or NULL. */
static int run_result(Sqlite *sqlite, const char *query, Error *reterr)
{
        _cleanup_free_ char *sql = NULL;
        int r = query_text(sqlite, query, &sql, reterr);

        return r == 0 && sql ? sqlite_exec(sqlite, sql, reterr) : r;
}

_printf_(3, 4) static int exec_format(Sqlite *sqlite, Error *reterr, const char *format, ...)
{
        _cleanup_free_ char *sql = NULL;
        va_list ap;

        va_start(ap, format);
        sql = text_vformat(format, ap);
        va_end(ap);
        return sql ? sqlite_exec(sqlite, sql, reterr) : error_oom(reterr);
}

/* Yields whether the table has the column. column NULL: whether the table exists. */
static int has_column(Sqlite *sqlite, const char *table, const char *column, bool *ret,
                      Error *reterr)
{
        _cleanup_free_ char *sql = text_format("SELECT count(*) FROM pragma_table_info('%s')%s%s%s",
                                               table, column ? " WHERE name = '" : "",
                                               column ? column : "", column ? "'" : "");
        int64_t n;
        int r = sql ? sqlite_query_integer(sqlite, sql, &n, reterr) : error_oom(reterr);

        if (r == 0)
                *ret = n > 0;
        return r;
}

/* Gives tables and columns their newest names. A name that the file lacks is skipped. */
static int rename_known(Sqlite *sqlite, Error *reterr)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(renames); i++) {
                const char *table = renames[i].table, *column = renames[i].column;
                bool has;

                r = has_column(sqlite, table, column, &has, reterr);
                if (r == 0 && has)
                        r = exec_format(sqlite, reterr, "ALTER TABLE %s RENAME %s%s TO %s", table,
                                        column ? "COLUMN " : "", column ? column : "",
                                        renames[i].name);
        }
        return r;
}

/* Renames all old tables and drops triggers, indexes and views. Names of tables are quoted, since
 * those of a foreign shape can be anything. */
static int move_away(Sqlite *sqlite, Error *reterr)
{
        int r = run_result(sqlite,
                           "SELECT group_concat('DROP ' || type || ' \"' ||"
                           " replace(name, '\"', '\"\"') || '\"', ';') FROM sqlite_master"
                           " WHERE type IN ('trigger', 'index', 'view') AND sql IS NOT NULL",
                           reterr);

        if (r == 0)
                r = rename_known(sqlite, reterr);
        return r < 0 ? r
                     : run_result(
                               sqlite,
                               "SELECT group_concat('ALTER TABLE \"' ||"
                               " replace(name, '\"', '\"\"') || '\" RENAME TO \"old_' ||"
                               " replace(name, '\"', '\"\"') || '\"', ';') FROM sqlite_master"
                               " WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
                               reterr);
}

/* Checks that each old column has a place, and that no required table or column is missing. Returns
 * -EPROTONOSUPPORT with words if not. */
static int check_places(Sqlite *sqlite, int64_t version, Error *reterr)
{
        _cleanup_free_ char *column = NULL;
        int r = query_text(sqlite, version == 1 ? NO_PLACE : NO_PLACE " UNION ALL " NO_VALUE,
                           &column, reterr);

        if (r < 0 || column)
                return r < 0 ? r : schema_unknown(sqlite, column, reterr);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tables); i++) {
                char name[32];
                bool has;

                snprintf(name, sizeof(name), "old_%s", tables[i].name);
                r = has_column(sqlite, name, NULL, &has, reterr);
                if (r == 0 && !has && tables[i].since <= version)
                        return schema_unknown(sqlite, tables[i].name, reterr);
        }
        return r;
}

/* Copies the columns that the two tables of this name have in common. Deletes the row that
 * provider_epoch begins with. */
static int copy_table(Sqlite *sqlite, const char *name, Error *reterr)
{
        _cleanup_free_ char *query =
                text_format("SELECT 'DELETE FROM %s; INSERT INTO %s (' || group_concat(n.name) ||"
                            " ') SELECT ' || group_concat(o.name) || ' FROM old_%s ORDER BY rowid'"
                            " FROM pragma_table_info('%s') n JOIN pragma_table_info('old_%s') o"
                            " ON o.name = n.name",
                            name, name, name, name, name);

        return query ? run_result(sqlite, query, reterr) : error_oom(reterr);
}

/* Copies one table of ended claims into its column of JSON lists. */
static int copy_list(Sqlite *sqlite, size_t i, Error *reterr)
{
        bool has;
        int r = has_column(sqlite, lists[i].table, NULL, &has, reterr);

        if (r < 0 || !has)
                return r;
        return exec_format(sqlite, reterr,
                           "UPDATE ended_claims SET %s = (SELECT json_group_array(json_array(%s))"
                           " FROM (SELECT * FROM %s WHERE claim_id = ended_claims.id ORDER BY %s))",
                           lists[i].column, lists[i].items, lists[i].table, lists[i].order);
}

static int copy_all(Sqlite *sqlite, int64_t version, Error *reterr)
{
        int r = 0;

        if (version == 1)
                return sqlite_exec(sqlite, version_1_rows, reterr);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tables); i++)
                r = copy_table(sqlite, tables[i].name, reterr);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(lists); i++)
                r = copy_list(sqlite, i, reterr);
        return r < 0 ? r : sqlite_exec(sqlite, claims_of_moves, reterr);
}

/* Drops the old tables. An id is never used again, so the new tables continue the counters of the
 * old ones. */
static int drop_old(Sqlite *sqlite, Error *reterr)
{
        int r = sqlite_exec(sqlite,
                            "DELETE FROM sqlite_sequence WHERE 'old_' || name IN"
                            " (SELECT name FROM sqlite_sequence);"
                            "UPDATE sqlite_sequence SET name = substr(name, 5)"
                            " WHERE name GLOB 'old_*'",
                            reterr);

        return r < 0 ? r
                     : run_result(sqlite,
                                  "SELECT group_concat('DROP TABLE ' || name, ';')"
                                  " FROM sqlite_master WHERE type = 'table' AND name GLOB 'old_*'",
                                  reterr);
}

int schema_upgrade(Sqlite *sqlite, int64_t version, Error *reterr)
{
        Error error = ERROR_NULL;
        int r = move_away(sqlite, &error);

        if (r == 0)
                r = schema_create(sqlite, &error);
        if (r == 0)
                r = check_places(sqlite, version, &error);
        if (r == 0)
                r = copy_all(sqlite, version, &error);
        if (r == 0)
                r = drop_old(sqlite, &error);
        /* The caller has checked the pages, so a failure of SQL shows an unknown shape and not
         * damage. */
        if (r == -EUCLEAN || r == -EEXIST)
                return schema_unknown(sqlite, sqlite3_errmsg(sqlite->db), reterr);
        if (r < 0 && reterr)
                *reterr = error;
        return r;
}
