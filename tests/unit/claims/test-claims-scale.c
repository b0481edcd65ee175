/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The cost of a claim does not grow with the number of claims. */

#include <inttypes.h>
#include <sqlite3.h>

#include "base/clock.h"
#include "base/text.h"
#include "claims/claims.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define N_MANY   10000
#define N_TIMED  50
#define N_PASSES 5
#define HOST     "host VCPU=2000000 MEMORY_MB=2000000; gpu<host VGPU=2000000"

/* Makes many living claims of three allocations each. */
static void fill(Fixture *fixture, const char *claims)
{
        _cleanup_free_ char *sql = text_format(
                "BEGIN;"
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                " WHERE i < %s)"
                "INSERT INTO claims (host, node, instance_uuid, vcpus, memory_mb,"
                " disk_gb, pci, resize_target, created_at, created_usec, state,"
                " request) SELECT 'c', 'host',"
                " printf('%%08x-0000-4000-8000-%%012x', i, i), 1, 1, 0, '', 0, '', 0,"
                " 'confirmed', 'resources=MEMORY_MB:1,VCPU:1&resources_G=VGPU:1'"
                " FROM n;"
                "INSERT INTO allocations (resource_provider_id, consumer_id,"
                " resource_class, used, claim_id) SELECT i.resource_provider_id,"
                " c.instance_uuid, i.resource_class, 1, c.id FROM claims c, inventories i;"
                "COMMIT",
                claims);

        free(run_sql(fixture->path, sql));
        assert_store_sane(fixture->path);
}

/* Returns the CPU time of claim, confirm, expire and release; the best of some passes. */
static uint64_t measure(Fixture *fixture)
{
        uint64_t best = UINT64_MAX;

        for (int pass = 0; pass < N_PASSES; pass++) {
                uint64_t start = clock_usec(CLOCK_PROCESS_CPUTIME_ID), n;

                for (int i = 0; i < N_TIMED; i++) {
                        _cleanup_(claim_freep) Claim *claim = NULL;

                        assert_int_equal(fixture_claim(fixture, "vm",
                                                       "VCPU=1,MEMORY_MB=1 _G:VGPU=1", &claim),
                                         CLAIM_DONE);
                        assert_int_equal(claims_confirm(fixture->claims, claim->id, NULL), 0);
                        assert_int_equal(claims_expire(fixture->claims, UINT64_MAX, &n, NULL), 0);
                        assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
                }
                best = MIN(best, clock_usec(CLOCK_PROCESS_CPUTIME_ID) - start);
        }
        return best;
}

static void test_cost_does_not_grow(void **state)
{
        Fixture *fixture = *state;
        ClaimList list = { 0 };
        uint64_t few, many;

        fixture_create(fixture, HOST);
        few = measure(fixture);
        fixture_close(fixture);
        fill(fixture, "10000");
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        many = measure(fixture);
        /* Adding up 30,000 allocations, or a scan of 10,000 claims, would take more than ten times
         * as long. The depth of the indexes costs some tens of per cent. */
        if (many > few * 4)
                fail_msg("%" PRIu64 " usec with few claims, %" PRIu64 " usec with %d", few, many,
                         N_MANY);
        assert_int_equal(claims_list(fixture->claims, CLAIMS_LIVING, NULL, &list, NULL), 0);
        assert_int_equal(list.n_claims, N_MANY);
        claim_list_done(&list);
        assert_int_equal(fixture_used(fixture, "gpu", "VGPU"), N_MANY);
}

/* Returns the query plan in one line. The caller frees it. */
static char *explain(const char *path, const char *query)
{
        sqlite3_stmt *statement;
        char *text = NULL, sql[400];
        size_t size;
        FILE *file = open_memstream(&text, &size);
        sqlite3 *db;

        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", query);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        while (sqlite3_step(statement) == SQLITE_ROW)
                fprintf(file, "%s; ", sqlite3_column_text(statement, 3));
        sqlite3_finalize(statement);
        sqlite3_close(db);
        fclose(file);
        return text;
}

/* Every statement that a claim runs finds its rows by an index. */
static void test_plans_use_indexes(void **state)
{
        static const char *const queries[] = {
                "SELECT * FROM claims WHERE instance_uuid = ?1 AND resize_target = ?2",
                "SELECT id FROM claims WHERE state = 'claimed' AND expires_usec > 0"
                " AND expires_usec <= ?1 ORDER BY expires_usec, id LIMIT 1",
                "SELECT id FROM claims WHERE placed = 0 AND id > ?1 ORDER BY id LIMIT 1",
                "DELETE FROM allocations WHERE claim_id = ?1",
                "DELETE FROM claims WHERE id = ?1",
                "UPDATE usages SET used = used - 1 WHERE resource_provider_id = 1"
                " AND resource_class = 'VCPU'",
                "DELETE FROM ended_claims WHERE number <= (SELECT max(number) FROM ended_claims) - "
                "9",
                "DELETE FROM resource_providers WHERE id = ?1 AND generation = ?2",
                "SELECT * FROM claims WHERE write_state = 'pending'"
                " AND write_state IN ('pending', 'owed', 'sent') ORDER BY id",
                "SELECT used FROM allocations WHERE claim_id BETWEEN ?1 AND ?2 ORDER BY claim_id",
                "SELECT device FROM claim_devices WHERE claim_id BETWEEN ?1 AND ?2"
                " ORDER BY claim_id, id",
                "SELECT vcpus FROM claim_cells WHERE claim_id BETWEEN ?1 AND ?2"
                " ORDER BY claim_id, cell",
                "SELECT cpus FROM claim_cpus WHERE claim_id BETWEEN ?1 AND ?2"
                " ORDER BY claim_id, vcpu",
                "SELECT cpu FROM claim_pins WHERE claim_id BETWEEN ?1 AND ?2 GROUP BY claim_id",
        };
        Fixture *fixture = *state;

        assert_int_equal(fixture_open(fixture), CLAIMS_CREATED);
        for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
                _cleanup_free_ char *plan = explain(fixture->path, queries[i]);

                if (!strstr(plan, "SEARCH") || strstr(plan, "SCAN") || strstr(plan, "TEMP"))
                        fail_msg("%s: %s", queries[i], plan);
        }
}

/* Returns the CPU time of reading one ended claim; the best of some passes. */
static uint64_t measure_ended(Fixture *fixture, int64_t id)
{
        uint64_t best = UINT64_MAX;

        for (int pass = 0; pass < N_PASSES; pass++) {
                uint64_t start = clock_usec(CLOCK_PROCESS_CPUTIME_ID);

                for (int i = 0; i < N_TIMED; i++) {
                        _cleanup_(claim_freep) Claim *claim = NULL;

                        assert_int_equal(claims_get(fixture->claims, id, &claim, NULL), 0);
                        assert_int_equal(claim->state, CLAIM_STATE_RELEASED);
                }
                best = MIN(best, clock_usec(CLOCK_PROCESS_CPUTIME_ID) - start);
        }
        return best;
}

static void test_cost_of_an_ended_claim_does_not_grow(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL;
        uint64_t few, many;

        fixture_create(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", &claim), CLAIM_DONE);
        assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
        few = measure_ended(fixture, claim->id);
        free(run_sql(fixture->path,
                     "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 999)"
                     " INSERT INTO ended_claims SELECT NULL, 1000 + i, host, node, instance_uuid,"
                     " resize_target, created_usec, expires_usec, project_id, user_id, request,"
                     " boot_id, ended_usec, end_reason, consumer_type, allocations, devices, cells,"
                     " cpus FROM ended_claims, n"));
        many = measure_ended(fixture, claim->id);
        if (many > few * 3)
                fail_msg("%" PRIu64 " usec with one, %" PRIu64 " usec with 1000", few, many);
}

/* Returns the CPU time of a pass over all pending writes, as settling does it. */
static uint64_t measure_pending_writes(Fixture *fixture, size_t n)
{
        uint64_t start = clock_usec(CLOCK_PROCESS_CPUTIME_ID);
        int64_t after = 0;
        size_t found = 0;

        for (;;) {
                _cleanup_(claim_list_done) ClaimList pending = { 0 };
                _cleanup_(claim_freep) Claim *claim = NULL;

                assert_int_equal(claims_list(fixture->claims, CLAIMS_PENDING, NULL, &pending, NULL),
                                 0);
                if (claims_next_write(fixture->claims, after, &claim, NULL) != 0)
                        break;
                assert_true(claim->id > after);
                after = claim->id;
                found++;
        }
        assert_int_equal(found, n);
        return clock_usec(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* Ten times as many pending writes cost ten times as much, not a hundred times. */
static void test_cost_of_pending_writes_is_linear(void **state)
{
        Fixture *fixture = *state;
        uint64_t few = UINT64_MAX, many = UINT64_MAX;

        fixture_create(fixture, HOST);
        fill(fixture, "10000");
        free(run_sql(fixture->path, "UPDATE claims SET write_state = iif(id % 2, 'owed', 'sent')"
                                    " WHERE id % 20 = 1 OR id % 20 = 2"));
        for (int pass = 0; pass < N_PASSES; pass++)
                few = MIN(few, measure_pending_writes(fixture, N_MANY / 10));
        free(run_sql(fixture->path, "UPDATE claims SET write_state = iif(id % 2, 'owed', 'sent')"));
        many = MIN(many, measure_pending_writes(fixture, N_MANY));
        if (many > few * 30)
                fail_msg("%" PRIu64 " usec for %d owed, %" PRIu64 " usec for %d", few, N_MANY / 10,
                         many, N_MANY);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_cost_does_not_grow,
                test_plans_use_indexes, test_cost_of_pending_writes_is_linear,
                test_cost_of_an_ended_claim_does_not_grow)
