/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Upgrades from every schema that was ever written (shapes.sql), and files of unknown shapes. */

#include <sys/stat.h>

#include "claims/store/schema.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define VM     "11111111-2222-4333-8444-555555555501"
#define OTHER  "11111111-2222-4333-8444-555555555502"
#define FORMER "11111111-2222-4333-8444-555555555503"
/* make_uuid() of "host" and "gpu". */
#define ROOT    "9d7a7b67-f3a8-5b23-ad2f-9843037a405d"
#define GPU     "6125805a-0b91-5842-a0d7-63eab04c848d"
#define MDEV    "11111111-2222-4333-8444-bbbbbbbbbbb1"
#define STANDIN "11111111-2222-4333-8444-ccccccccccc1"

static const char *const shapes[] = {
        "2 cb2b939", "3 ae0b27b", "3 f303d7d", "4 6915a25", "5 7397624",
        "5 18edf21", "6 1b4f837", "7 4a80e93", "8 88a1340", "8 1ff5903",
        "2 6819ac6", "3 5039db0", "3 a70aebe", "2 79ced10", "9 8e2a5d1",
};

/* Rows for the shapes that have this column. Claim 9 left nothing but its id in the counter. */
static const struct {
        const char *table, *column, *sql;
} rows[] = {
        { "claims", "id",
          "UPDATE provider_epoch SET epoch = 7;"
          "INSERT INTO resource_providers (id, uuid, name, generation, can_host, parent, withheld,"
          " position) VALUES (5, '" ROOT "', 'host', 3, 1, NULL, 0, 0),"
          " (4, '" GPU "', 'gpu', 6, 1, 5, 0, 1);"
          "INSERT INTO inventories VALUES (1, 5, 'VCPU', 8, 0, 1, 8, 1, 1.0),"
          " (2, 5, 'MEMORY_MB', 1024, 0, 1, 1024, 1, 1.0), (3, 4, 'VGPU', 4, 0, 1, 4, 1, 1.0);"
          "INSERT INTO provider_traits VALUES (4, 'CUSTOM_FAST');"
          "INSERT INTO provider_aggregates VALUES (5, '" OTHER "');"
          "INSERT INTO claims (id, host, node, instance_uuid, vcpus, memory_mb, disk_gb, pci,"
          " resize_target, created_at, created_usec, state, expires_usec, project_id, user_id,"
          " request, boot_id) VALUES"
          " (3, 'compute1', 'host', '" VM "', 2, 64, 0, '', 0, '2025-01-01T00:00:00Z', 11,"
          "  'confirmed', 0, 'p', 'u', 'resources=MEMORY_MB:64,VCPU:2&resources1=VGPU:1', 'b'),"
          " (7, 'compute1', 'host', '" OTHER "', 1, 0, 0, '', 0, '2025-01-01T00:00:00Z', 12,"
          "  'claimed', 99, '', '', 'resources=VCPU:1', ''),"
          " (9, 'compute1', 'host', '" FORMER "', 0, 0, 0, '', 0, '', 13, 'claimed', 0, '', '',"
          "  'resources=VCPU:1', '');"
          "DELETE FROM claims WHERE id = 9;"
          "INSERT INTO allocations VALUES (1, 5, '" VM "', 'VCPU', 2, 3, ''),"
          " (2, 5, '" VM "', 'MEMORY_MB', 64, 3, ''), (3, 4, '" VM "', 'VGPU', 1, 3, '1'),"
          " (4, 5, '" OTHER "', 'VCPU', 1, 7, '')" },
        { "ended_claims", "allocations",
          "INSERT INTO ended_claims VALUES (6, 2, 'compute1', 'host', '" FORMER
          "', 0, 1, 0, '', '',"
          " 'resources=VCPU:3', '', 20, 'stopped', '', '[[\"" ROOT "\",\"host\",\"VCPU\",3,\"\"]]',"
          " '[[\"" GPU "\",\"1\",\"gpu\",\"\",\"t\",\"" MDEV "\"]]', '[[0,1,64,4,\"0-2\",3]]',"
          " '[[0,0,\"0-7\"]]')" },
        { "ended_allocations", "claim_id",
          "INSERT INTO ended_claims (number, id, host, node, instance_uuid, resize_target,"
          " created_usec, expires_usec, project_id, user_id, request, boot_id, ended_usec,"
          " end_reason) VALUES (6, 2, 'compute1', 'host', '" FORMER "', 0, 1, 0, '', '',"
          " 'resources=VCPU:3', '', 20, 'stopped');"
          "INSERT INTO ended_allocations VALUES (2, '" ROOT "', 'host', 'VCPU', 3, '')" },
        { "ended_devices", "claim_id",
          "INSERT INTO ended_devices VALUES (1, 2, '" GPU "', '1', 'gpu', '', 't', '" MDEV "')" },
        { "ended_cells", "claim_id",
          "INSERT INTO ended_cells VALUES (1, 2, 0, 1, 64, 4, '0-2', 3)" },
        { "ended_cpus", "claim_id", "INSERT INTO ended_cpus VALUES (1, 2, 0, 0, '0-7')" },
        { "claim_devices", "id",
          "INSERT INTO claim_devices (claim_id, provider_uuid, request_group, device, address,"
          " mdev_type, mdev_uuid) VALUES (3, '" GPU "', '1', 'pci_0000_41_00_0', '0000:41:00.0',"
          " 't', '" MDEV "'), (3, '" GPU "', '', 'pci_0000_05_00_1', '0000:05:00.1', '', '')" },
        { "claims", "consumer_type", "UPDATE claims SET consumer_type = 'INSTANCE' WHERE id = 3" },
        { "claim_cells", "id",
          "INSERT INTO claim_cells VALUES (1, 3, 0, 1, 64, 4, '0-1', 1);"
          "INSERT INTO claim_cpus VALUES (1, 3, 0, 1, '4'), (2, 3, 1, 0, '0-7');"
          "INSERT INTO claim_pins VALUES (4, 3)" },
        { "claims", "standing", "UPDATE claims SET standing = 'written' WHERE id = 3" },
        { "claims", "write_state", "UPDATE claims SET write_state = 'written' WHERE id = 3" },
        { "claims", "guest", "UPDATE claims SET guest = '" FORMER "' WHERE id = 3" },
        { "claims", "told_generation",
          "UPDATE claims SET told_generation = 5, told_elsewhere = '" STANDIN "' WHERE id = 3" },
        { "claims", "told_until", "UPDATE claims SET told_until = 8 WHERE id = 3" },
        { "claims", "reported_generation",
          "UPDATE claims SET reported_generation = 5, reported_elsewhere = '" STANDIN "',"
          " reported_until = 8 WHERE id = 3" },
        { "claims", "life", "UPDATE claims SET life = 'pid 7' WHERE id = 3" },
        { "departures", "id",
          "INSERT INTO departures (id, claim_id, consumer) VALUES (4, 1, '" FORMER "')" },
        { "removals", "id",
          "INSERT INTO removals (id, claim_id, consumer) VALUES (4, 1, '" FORMER "')" },
        { "departures", "unsure", "UPDATE departures SET told_generation = 6, unsure = 1" },
        { "removals", "told_generation", "UPDATE removals SET told_generation = 6, unsure = 1" },
        { "removals", "reported_generation",
          "UPDATE removals SET reported_generation = 6, unsure = 1" },
        { "consumer_moves", "id",
          "INSERT INTO consumer_moves VALUES (2, '" OTHER "', '" STANDIN "', 'MIGRATION')" },
        { "moves", "id", "INSERT INTO moves VALUES (2, '" OTHER "', '" STANDIN "', 'MIGRATION')" },
        { "events", "id",
          "INSERT INTO events VALUES (8, 30, 'claimed', 0, 'root', 3, '" VM "', '', '[]', '[]',"
          " 'asked')" },
};

/* Values in the upgraded file, also for shapes that have neither column. */
static const struct {
        const char *table, *column, *other_table, *other_column, *sql, *yields, *otherwise;
} facts[] = {
        { "claims", "id", "", "",
          "SELECT group_concat(id || instance_uuid || vcpus || state || expires_usec || request ||"
          " boot_id || created_usec || placed) FROM claims",
          "3" VM "2confirmed0resources=MEMORY_MB:64,VCPU:2&resources1=VGPU:1b111,"
          "7" OTHER "1claimed99resources=VCPU:1121",
          "" },
        { "claims", "id", "", "", "SELECT epoch FROM provider_epoch", "7", "" },
        { "claims", "id", "", "",
          "SELECT group_concat(uuid || name || generation || ifnull(parent, '')) FROM"
          " (SELECT * FROM resource_providers ORDER BY position)",
          ROOT "host3," GPU "gpu65", "" },
        { "claims", "id", "", "", "SELECT sum(total) FROM inventories", "1036", "" },
        { "claims", "id", "", "", "SELECT trait FROM provider_traits", "CUSTOM_FAST", "" },
        { "claims", "id", "", "", "SELECT aggregate FROM provider_aggregates", OTHER, "" },
        { "claims", "id", "", "", "SELECT group_concat(used || request_group) FROM allocations",
          "2,64,11,1", "" },
        { "claims", "id", "", "", "SELECT claims FROM claim_counts", "2", "" },
        { "claims", "id", "", "", "SELECT allocations FROM ended_claims",
          "[[\"" ROOT "\",\"host\",\"VCPU\",3,\"\"]]", "" },
        { "ended_devices", "id", "ended_claims", "devices", "SELECT devices FROM ended_claims",
          "[[\"" GPU "\",\"1\",\"gpu\",\"\",\"t\",\"" MDEV "\"]]", "[]" },
        { "ended_cells", "id", "ended_claims", "cells", "SELECT cells || cpus FROM ended_claims",
          "[[0,1,64,4,\"0-2\",3]][[0,0,\"0-7\"]]", "[][]" },
        { "claim_devices", "id", "", "",
          "SELECT group_concat(claim_id || device || address || mdev_type || mdev_uuid || identity)"
          " FROM claim_devices",
          "3pci_0000_41_00_00000:41:00.0t" MDEV ",3pci_0000_05_00_10000:05:00.1", "NULL" },
        { "claim_devices", "id", "", "", "SELECT pci FROM claims WHERE id = 3", "0000:05:00.1",
          "" },
        { "claims", "consumer_type", "", "", "SELECT consumer_type FROM claims WHERE id = 3",
          "INSTANCE", "" },
        { "claim_cells", "id", "", "",
          "SELECT group_concat(c.vcpus || u.memory_mb || p.cpu) FROM claim_cells c,"
          " cell_usages u, claim_pins p",
          "0-1644", "NULL" },
        { "claim_cpus", "id", "", "", "SELECT group_concat(vcpu || cpus) FROM claim_cpus",
          "04,10-7", "NULL" },
        { "claims", "standing", "claims", "write_state",
          "SELECT write_state FROM claims WHERE id = 3", "written", "" },
        { "claims", "guest", "", "", "SELECT guest FROM claims WHERE id = 3", FORMER, "" },
        { "claims", "told_elsewhere", "claims", "reported_elsewhere",
          "SELECT reported_generation || reported_elsewhere FROM claims WHERE id = 3", "5" STANDIN,
          "0" },
        { "claims", "told_until", "claims", "reported_until",
          "SELECT reported_until FROM claims WHERE id = 3", "8", "0" },
        { "claims", "life", "", "", "SELECT life FROM claims WHERE id = 3", "pid 7", "" },
        { "departures", "id", "removals", "id", "SELECT id || claim_id || consumer FROM removals",
          "41" FORMER, "" },
        { "departures", "unsure", "removals", "unsure",
          "SELECT ifnull(max(reported_generation || unsure), '00') FROM removals", "61", "00" },
        { "consumer_moves", "id", "moves", "id",
          "SELECT id || claim_id || from_consumer || to_type FROM moves", "27" OTHER "MIGRATION",
          "" },
        { "events", "id", "", "", "SELECT id || kind || author || reason FROM events",
          "8claimedrootasked", "" },
};

static bool has_column(const char *path, const char *table, const char *column)
{
        _cleanup_free_ char *n = NULL;
        char sql[200];

        snprintf(sql, sizeof(sql), "SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'",
                 table, column);
        n = run_sql(path, sql);
        return strcmp(n, "0") != 0;
}

static char *read_shapes(void)
{
        _cleanup_fclose_ FILE *file = fopen(SHAPES_FILE, "r");
        struct stat st;
        char *text;

        assert_non_null(file);
        assert_int_equal(fstat(fileno(file), &st), 0);
        text = calloc(1, (size_t)st.st_size + 1);
        assert_non_null(text);
        assert_int_equal(fread(text, 1, (size_t)st.st_size, file), st.st_size);
        return text;
}

/* Runs the sections from the last one that begins with an empty file to that of the shape. */
static void make_shape(const char *path, const char *shape)
{
        _cleanup_free_ char *text = read_shapes();
        char *section = strstr(text, "\n-- 2 ");

        while (section) {
                char *sql = strchr(section + 1, '\n'), *next = strstr(sql, "\n-- ");
                bool last = strncmp(section + 4, shape, strlen(shape)) == 0;

                *sql++ = '\0';
                if (next)
                        *next = '\0';
                if (strstr(section, "empty file"))
                        unlink(path);
                free(run_sql(path, sql));
                if (last)
                        return;
                if (next)
                        *next = '\n';
                section = next;
        }
        fail_msg("There is no shape %s", shape);
}

static void fill_shape(const char *path)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (has_column(path, rows[i].table, rows[i].column))
                        free(run_sql(path, rows[i].sql));
}

static char *describe_schema(const char *path)
{
        return run_sql(path, "SELECT group_concat(sql, ';') FROM"
                             " (SELECT sql FROM sqlite_master ORDER BY type, name)");
}

static void note_columns(const char *path, bool has[static ARRAY_SIZE(facts)])
{
        for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
                has[i] = has_column(path, facts[i].table, facts[i].column) ||
                         has_column(path, facts[i].other_table, facts[i].other_column);
}

static void assert_facts(const char *path, const bool has[static ARRAY_SIZE(facts)])
{
        for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
                assert_sql(path, facts[i].sql, has[i] ? facts[i].yields : facts[i].otherwise);
}

static void assert_words(const Fixture *fixture, const char *shape)
{
        char words[80];

        snprintf(words, sizeof(words), "version %c to %d with 2 of 2 claims", shape[0],
                 SCHEMA_NEWEST);
        assert_text(fixture->error.text, words);
}

/* The store reads the upgraded file, and continues its counters. */
static void assert_usable(Fixture *fixture)
{
        _cleanup_(claim_freep) Claim *claim = NULL, *ended = NULL, *next = NULL;

        assert_int_equal(claims_get(fixture->claims, 3, &claim, NULL), 0);
        assert_int_equal(claim_sum(claim, "VCPU"), 2);
        assert_int_equal(claims_get(fixture->claims, 2, &ended, NULL), 0);
        assert_int_equal(claim_sum(ended, "VCPU"), 3);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 3);
        fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=1024; gpu<host VGPU=4");
        assert_int_equal(fixture_claim(fixture, "new", "VCPU=1", &next), CLAIM_DONE);
        assert_int_equal(next->id, 10);
        assert_store_sane(fixture->path);
}

/* A copy in memory is upgraded, and the file is not. */
static void assert_copy_is_upgraded(Fixture *fixture, const char *shape)
{
        _cleanup_free_ char *before = describe_schema(fixture->path), *after = NULL;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        _cleanup_(claims_freep) Claims *copy = NULL;
        Error error = ERROR_NULL;

        if (claims_open_copy(&copy, fixture->path, 0, &error) < 0)
                fail_msg("%s: %s", shape, error.text);
        assert_int_equal(claims_list(copy, CLAIMS_LIVING, NULL, &list, NULL), 0);
        assert_int_equal(list.n_claims, 2);
        after = describe_schema(fixture->path);
        assert_string_equal(before, after);
        assert_int_equal(fixture_count_files(fixture, "claim", NULL), 1);
}

static void test_every_shape(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *newest = NULL;

        assert_int_equal(fixture_open(fixture), CLAIMS_CREATED);
        fixture_close(fixture);
        newest = describe_schema(fixture->path);
        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
                _cleanup_free_ char *copy = NULL, *schema = NULL, *old = NULL, *kept = NULL;
                bool has[ARRAY_SIZE(facts)];
                int r;

                make_shape(fixture->path, shapes[i]);
                fill_shape(fixture->path);
                note_columns(fixture->path, has);
                old = describe_schema(fixture->path);
                assert_copy_is_upgraded(fixture, shapes[i]);
                r = fixture_open(fixture);
                if (r != CLAIMS_UPGRADED)
                        fail_msg("%s: %d %s", shapes[i], r, fixture->error.text);
                assert_words(fixture, shapes[i]);
                assert_int_equal(fixture_count_files(fixture, "claim.sqlite.v", &copy), 1);
                assert_text(fixture->error.text, copy);
                schema = describe_schema(fixture->path);
                assert_string_equal(schema, newest);
                kept = describe_schema(copy);
                assert_string_equal(kept, old);
                assert_facts(fixture->path, has);
                assert_usable(fixture);
                assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
                fixture_close(fixture);
                unlink(copy);
                unlink(fixture->path);
        }
}

/* The file stays unchanged, under its name, and the error text says what to do. */
static void assert_refused(Fixture *fixture, const char *why, const char *word)
{
        _cleanup_free_ char *before = describe_schema(fixture->path), *after = NULL;
        int r = fixture_open(fixture);

        if (r != -EPROTONOSUPPORT)
                fail_msg("%s: %d %s", why, r, fixture->error.text);
        assert_text(fixture->error.text, word);
        assert_text(fixture->error.text, "Install the version that wrote it");
        after = describe_schema(fixture->path);
        assert_string_equal(before, after);
        assert_int_equal(fixture_count_files(fixture, "claim", NULL), 1);
        unlink(fixture->path);
}

/* Files of older versions with an unknown table or column are rejected, so that no data are
 * dropped. */
static void test_unknown_older_shapes(void **state)
{
        Fixture *fixture = *state;
        static const struct {
                const char *shape, *change, *word;
        } cases[] = {
                { "8 1ff5903", "CREATE TABLE hologram (x)", "hologram.x" },
                { "2 6819ac6", "ALTER TABLE claims ADD COLUMN hue TEXT", "claims.hue" },
                { "5 18edf21", "DROP TABLE allocations", "allocations" },
                { "3 a70aebe", "DROP TABLE claims", "claims" },
                { "2 79ced10", "ALTER TABLE claims DROP COLUMN created_usec", "created_usec" },
                { "3 f303d7d",
                  "DROP INDEX claim_devices_whole; INSERT INTO claim_devices SELECT 9, 7,"
                  " provider_uuid, request_group, device, address, mdev_type, mdev_uuid FROM"
                  " claim_devices WHERE mdev_uuid = ''",
                  "UNIQUE constraint failed" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                make_shape(fixture->path, cases[i].shape);
                fill_shape(fixture->path);
                free(run_sql(fixture->path, cases[i].change));
                assert_refused(fixture, cases[i].change, cases[i].word);
        }
}

static void test_unknown_newest_shape(void **state)
{
        Fixture *fixture = *state;
        static const struct {
                const char *change, *word;
        } cases[] = {
                { "DROP TABLE allocations", "allocations" },
                { "ALTER TABLE claims DROP COLUMN user_id", "claims" },
                { "ALTER TABLE claims ADD COLUMN hue TEXT", "claims" },
                { "DROP TRIGGER allocations_delete", "allocations_delete" },
                { "CREATE TRIGGER mine AFTER INSERT ON claims BEGIN DELETE FROM allocations; END",
                  "mine" },
                { "DROP TABLE versions", "versions" },
                { "ALTER TABLE versions RENAME COLUMN version TO number", "versions" },
                { "DELETE FROM versions", "version" },
                { "INSERT INTO versions VALUES ('claims', 9)", "version" },
                { "UPDATE versions SET version = 'two'", "version" },
                { "UPDATE versions SET version = -1", "version" },
                { "UPDATE versions SET version = NULL", "version" },
                { "UPDATE versions SET table_name = 'x'", "version" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(fixture_open(fixture), CLAIMS_CREATED);
                fixture_close(fixture);
                free(run_sql(fixture->path, cases[i].change));
                assert_refused(fixture, cases[i].change, cases[i].word);
        }
}

/* An index that an operator added, and the tables of ANALYZE, do no harm. */
static void test_added_index(void **state)
{
        Fixture *fixture = *state;

        assert_int_equal(fixture_open(fixture), CLAIMS_CREATED);
        fixture_close(fixture);
        free(run_sql(fixture->path, "CREATE INDEX mine ON claims (host); ANALYZE"));
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_every_shape,
                test_unknown_older_shapes, test_unknown_newest_shape, test_added_index)
