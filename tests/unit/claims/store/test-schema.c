/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The upgrade from the specification's table. The table is written by hand in SQL, so that no
 * change of the program changes it. */

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "claims/store/schema.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define VM1 "11111111-2222-4333-8444-555555555501"
#define VM2 "11111111-2222-4333-8444-555555555502"

#define VERSION_1                                                                           \
        "CREATE TABLE versions (table_name TEXT, version INTEGER);"                         \
        "INSERT INTO versions VALUES ('claims', 1);"                                        \
        "CREATE TABLE claims (id INTEGER, host TEXT, node TEXT, instance_uuid TEXT, vcpus " \
        "INTEGER,"                                                                          \
        " memory_mb INTEGER, disk_gb INTEGER, pci TEXT, resize_target INTEGER, created_at TEXT);"

#define ROWS_1                                                                                \
        "INSERT INTO claims VALUES"                                                           \
        " (3, 'compute1', 'host', '" VM1 "', 2, 512, 10, '[]', 0, '2014-05-01T10:20:30'),"    \
        " (4, 'compute1', 'host', '" VM1                                                      \
        "', 4, 1024, 10, '[]', 1, '2014-05-01T10:20:31.5+00:00'),"                            \
        " (7, 'compute1', 'host', upper('aaaaaaaa-2222-4333-8444-555555555502'), 1, 256, 0, " \
        "NULL, 0,"                                                                            \
        "  '2015-01-01 00:00:00');"

static void make_version_1(Fixture *fixture, const char *rows)
{
        free(run_sql(fixture->path, VERSION_1));
        free(run_sql(fixture->path, rows));
}

/* Compares the columns of a table with "name TYPE, …". */
static void assert_columns(const char *path, const char *table, const char *expected)
{
        char sql[200];

        snprintf(sql, sizeof(sql),
                 "SELECT group_concat(name || ' ' || type, ', ') FROM pragma_table_info('%s')",
                 table);
        assert_sql(path, sql, expected);
}

/* A new file and an upgraded one have the same tables. */
static void test_upgrade_equals_creation(void **state)
{
        static const char sql[] = "SELECT group_concat(sql, ';') FROM"
                                  " (SELECT sql FROM sqlite_master ORDER BY type, name)";
        Fixture *fixture = *state;
        _cleanup_free_ char *upgraded = NULL;

        make_version_1(fixture, ROWS_1);
        assert_int_equal(fixture_open(fixture), CLAIMS_UPGRADED);
        fixture_close(fixture);
        upgraded = run_sql(fixture->path, sql);
        assert_int_equal(unlink(fixture->path), 0);
        assert_int_equal(fixture_open(fixture), CLAIMS_CREATED);
        assert_sql(fixture->path, sql, upgraded);
        assert_columns(
                fixture->path, "claims",
                "id INTEGER, host TEXT, node TEXT, instance_uuid TEXT, vcpus INTEGER,"
                " memory_mb INTEGER, disk_gb INTEGER, pci TEXT, resize_target INTEGER,"
                " created_at TEXT, created_usec INTEGER, state TEXT, expires_usec INTEGER,"
                " project_id TEXT, user_id TEXT, consumer_type TEXT, request TEXT, boot_id TEXT,"
                " placed INTEGER, write_state TEXT, reported_generation INTEGER,"
                " reported_elsewhere TEXT, reported_until INTEGER, guest TEXT, life TEXT");
}

static void assert_version_1_rows(const char *path)
{
        assert_sql(path, "SELECT version FROM versions", "1");
        assert_sql(path,
                   "SELECT group_concat(id || ' ' || vcpus || ' ' || created_at, ', ') FROM claims",
                   "3 2 2014-05-01T10:20:30, 4 4 2014-05-01T10:20:31.5+00:00,"
                   " 7 1 2015-01-01 00:00:00");
}

static void test_upgrade(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *copy = NULL;
        struct stat st;

        make_version_1(fixture, ROWS_1);
        assert_int_equal(fixture_open(fixture), CLAIMS_UPGRADED);
        assert_int_equal(fixture_count_files(fixture, "claim.sqlite.v1-", &copy), 1);
        assert_text(fixture->error.text, copy);
        assert_text(fixture->error.text, "version 1 to 10 with 3 of 3 claims");
        assert_version_1_rows(copy);
        assert_int_equal(stat(copy, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_sql(fixture->path, "SELECT version FROM versions", "10");
        assert_sql(fixture->path,
                   "SELECT group_concat(id || ' ' || instance_uuid || ' ' || vcpus || ' ' ||"
                   " memory_mb || ' ' || disk_gb || ' ' || resize_target || ' ' ||"
                   " created_usec || ' ' || state || ' ' || request || ' ' || placed, char(10))"
                   " FROM claims",
                   "3 " VM1 " 2 512 10 0 1398939630000000 confirmed"
                   " resources=DISK_GB:10,MEMORY_MB:512,VCPU:2 0\n"
                   "4 " VM1 " 4 1024 10 1 1398939631000000 confirmed"
                   " resources=DISK_GB:10,MEMORY_MB:1024,VCPU:4 0\n"
                   "7 aaaaaaaa-2222-4333-8444-555555555502 1 256 0 0 1420070400000000 confirmed"
                   " resources=MEMORY_MB:256,VCPU:1 0");
        /* the upgrade happens once only */
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        fixture_close(fixture);
        assert_int_equal(fixture_count_files(fixture, "claim", NULL), 2);
}

/* Claims of version 1 stay, even if they exceed the capacity. */
static void test_upgraded_claims_count(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *same = NULL;
        ClaimRequest request = { 0 };

        make_version_1(fixture, ROWS_1);
        assert_int_equal(fixture_open(fixture), CLAIMS_UPGRADED);
        fixture_set_host(fixture, "host DISK_GB=100; n0<host VCPU=2 MEMORY_MB=4096;"
                                  "n1<host VCPU=2 MEMORY_MB=4096");
        assert_int_equal(claims_get(fixture->claims, 3, &claim, NULL), 0);
        assert_int_equal(claim_sum(claim, "VCPU"), 2);
        assert_int_equal(claim_sum(claim, "MEMORY_MB"), 512);
        assert_int_equal(claim_sum(claim, "DISK_GB"), 10);
        assert_int_equal(fixture_used(fixture, "host", "DISK_GB"), 20);
        assert_int_equal(fixture_used(fixture, "n0", "VCPU") + fixture_used(fixture, "n1", "VCPU"),
                         7);
        assert_int_equal(fixture_claim(fixture, "new", "VCPU=1", NULL), CLAIM_E_NO_CAPACITY);
        assert_sql(fixture->path, "SELECT count(*) FROM claims WHERE placed = 0", "0");
        assert_store_sane(fixture->path);

        /* An equal request yields that claim, and an id is not used again. */
        assert_int_equal(uuid_from_text(VM1, &request.consumer), 0);
        make_request(&request.resources, "VCPU=2,MEMORY_MB=512,DISK_GB=10");
        assert_int_equal(claims_claim(fixture->claims, &request, NULL, &same, NULL, NULL),
                         CLAIM_DONE);
        assert_int_equal(same->id, 3);
        resource_request_done(&request.resources);
        assert_int_equal(claims_release(fixture->claims, 7, "", NULL), 0);
        same = claim_free(same);
        assert_int_equal(fixture_claim(fixture, "new", "DISK_GB=1", &same), CLAIM_DONE);
        assert_int_equal(same->id, 8);
        assert_store_sane(fixture->path);
}

/* Without a root the claims cannot be counted, and wait. */
static void test_upgraded_claims_wait_for_the_host(void **state)
{
        Fixture *fixture = *state;
        ClaimList list = { 0 };

        make_version_1(fixture, ROWS_1);
        assert_int_equal(fixture_open(fixture), CLAIMS_UPGRADED);
        fixture_set_host(fixture, "");
        assert_sql(fixture->path, "SELECT count(*) FROM claims WHERE placed = 0", "3");
        assert_int_equal(claims_list(fixture->claims, CLAIMS_LIVING, NULL, &list, NULL), 0);
        assert_int_equal(list.n_claims, 3);
        assert_int_equal(list.claims[0]->n_allocations, 0);
        claim_list_done(&list);
        assert_int_equal(claims_release(fixture->claims, 4, "gone", NULL), 0);
        fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=4096");
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 3);
        /* the host has no disk */
        assert_sql(fixture->path, "SELECT disk_gb FROM claims WHERE id = 3", "10");
        assert_store_sane(fixture->path);
}

/* Makes two VFs of one card. */
static void make_vfs(HostPci pci[static 2], HostFacts *ret)
{
        pci[0] = (HostPci){ .name = "pci_0000_05_00_1",
                            .address = "0000:05:00.1",
                            .provider = "0000:05:00.0",
                            .resource_class = "CUSTOM_VF",
                            .cell = -1,
                            .managed = true };
        pci[1] = (HostPci){ .name = "pci_0000_05_00_2",
                            .address = "0000:05:00.2",
                            .provider = "0000:05:00.0",
                            .resource_class = "CUSTOM_VF",
                            .cell = -1,
                            .managed = true };
        *ret = (HostFacts){ .pci = pci, .n_pci = 2 };
}

#define VF_HOST "host VCPU=8 MEMORY_MB=4096; host_0000:05:00.0<host CUSTOM_VF=2"

/* Claims hold the devices that the text names, in any form. */
static void test_upgrade_holds_devices(void **state)
{
        static const struct {
                const char *text, *held;
                uint64_t n_left;
        } cases[] = {
                { "[]", "[]", 2 },
                { "[\"0000:05:00.1\", \"0000:05:00.2\"]", "0000:05:00.1, 0000:05:00.2", 0 },
                { "{\"devices\": [{\"address\": \"0000:05:00.2\", \"vendor_id\": \"8086\"}]}",
                  "0000:05:00.2", 1 },
                { "10000:05:00.1", "10000:05:00.1", 2 },
                { "0000:06:00.1", "0000:06:00.1", 2 },
        };
        static const char *const names[] = { "a", "b", "c" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Fixture *fixture = *state;
                HostPci pci[2];
                HostFacts facts;
                char rows[300];
                uint64_t n = 0;

                snprintf(rows, sizeof(rows),
                         "INSERT INTO claims VALUES (1, 'h', 'host', '" VM1
                         "', 1, 64, 0, '%s', 0, '2014-05-01T10:20:30')",
                         cases[i].text);
                make_version_1(fixture, rows);
                assert_int_equal(fixture_open(fixture), CLAIMS_UPGRADED);
                make_vfs(pci, &facts);
                claims_set_facts(fixture->claims, &facts);
                fixture_set_host(fixture, VF_HOST);
                assert_sql(fixture->path, "SELECT pci FROM claims", cases[i].held);
                assert_int_equal(fixture_used(fixture, "host_0000:05:00.0", "CUSTOM_VF"),
                                 2 - cases[i].n_left);
                assert_store_sane(fixture->path);
                /* The next claims get the remaining devices, and no others. */
                while (n < 3 && fixture_claim(fixture, names[n], "_A:CUSTOM_VF=1", NULL) == 0)
                        n++;
                assert_int_equal(n, cases[i].n_left);
                fixture_close(fixture);
                assert_int_equal(unlink(fixture->path), 0);
        }
        fixture_open(*state);
}

/* The column of the specification has the current devices of a claim. */
static void test_pci_column(void **state)
{
        Fixture *fixture = *state;
        Claim *claim = NULL;
        HostPci pci[2];
        HostFacts facts;

        assert_int_equal(fixture_open(fixture), CLAIMS_CREATED);
        make_vfs(pci, &facts);
        claims_set_facts(fixture->claims, &facts);
        fixture_set_host(fixture, VF_HOST);
        assert_int_equal(fixture_claim(fixture, "a", "VCPU=1", NULL), 0);
        assert_int_equal(fixture_claim(fixture, "b", "_A:CUSTOM_VF=1 _B:CUSTOM_VF=1", &claim), 0);
        assert_sql(fixture->path,
                   "SELECT group_concat(pci, ';') FROM (SELECT pci FROM claims ORDER BY id)",
                   ";0000:05:00.1, 0000:05:00.2");
        assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
        claim_free(claim);
        assert_store_sane(fixture->path);
}

static void test_strange_rows(void **state)
{
        Fixture *fixture = *state;

        make_version_1(
                fixture,
                "INSERT INTO claims VALUES"
                /* the later of two rows */
                " (1, 'h', 'n', '" VM1 "', 1, 1, 1, '', 0, ''),"
                " (2, 'h', 'n', '" VM1 "', 2, 2, 2, '', NULL, NULL),"
                /* no uuid */
                " (5, 'h', 'n', NULL, 1, 1, 1, '', 0, ''), (6, 'h', 'n', 'vm', 1, 1, 1, '', 0, ''),"
                /* absurd amounts, no texts, no id */
                " (NULL, NULL, NULL, '" VM2 "', -5, 99999999999999, 'x', NULL, 9, 'yesterday')");
        assert_int_equal(fixture_open(fixture), CLAIMS_UPGRADED);
        assert_text(fixture->error.text, "with 2 of 5 claims");
        assert_sql(fixture->path,
                   "SELECT group_concat(instance_uuid || ' ' || vcpus || ' ' || memory_mb || ' ' ||"
                   " disk_gb || ' ' || resize_target || ' ' || request, char(10)) FROM claims",
                   VM1 " 2 2 2 0 resources=DISK_GB:2,MEMORY_MB:2,VCPU:2\n" VM2
                       " 0 2147483647 0 1 resources=MEMORY_MB:2147483647");
        fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=4096");
        assert_int_equal(fixture_claim(fixture, "new", "MEMORY_MB=1", NULL), CLAIM_E_NO_CAPACITY);
        assert_store_sane(fixture->path);
}

/* A negative time would make the upgraded file a damaged one, so it becomes 0. */
static void test_time_before_1970_becomes_0(void **state)
{
        Fixture *fixture = *state;

        make_version_1(fixture, "INSERT INTO claims VALUES (1, 'h', 'n', '" VM1
                                "', 1, 1, 1, '', 0, '1960-01-01 00:00:00')");
        assert_int_equal(fixture_open(fixture), CLAIMS_UPGRADED);
        assert_sql(fixture->path, "SELECT created_usec FROM claims", "0");
}

/* A file of version 1 without its table has an unknown shape. */
static void test_version_1_without_table(void **state)
{
        Fixture *fixture = *state;

        free(run_sql(fixture->path, "CREATE TABLE versions (table_name TEXT, version INTEGER);"
                                    "INSERT INTO versions VALUES ('claims', 1);"));
        assert_int_equal(fixture_open(fixture), -EPROTONOSUPPORT);
}

static void sleep_usec(uint64_t usec)
{
        struct timespec time = { .tv_sec = 0, .tv_nsec = (long)(usec * NSEC_PER_USEC) };

        nanosleep(&time, NULL);
}

/* The process is killed at many moments of the upgrade. The next start finds one of the two
 * versions, complete, and continues. */
static void test_upgrade_interrupted(void **state)
{
        Fixture *fixture = *state;

        for (uint64_t i = 0; i < 60; i++) {
                _cleanup_free_ char *version = NULL;
                pid_t pid;
                int r, status;

                make_version_1(fixture, ROWS_1);
                pid = fork();
                if (pid == 0) {
                        fixture_open(fixture);
                        pause();
                        _exit(0);
                }
                sleep_usec(i * 250);
                kill(pid, SIGKILL);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                r = fixture_open(fixture);
                if (r != CLAIMS_UPGRADED && r != CLAIMS_OPENED)
                        fail_msg("%d %s", r, fixture->error.text);
                fixture_close(fixture);
                version = run_sql(fixture->path, "SELECT version FROM versions");
                assert_string_equal(version, "10");
                assert_sql(fixture->path, "SELECT sum(vcpus) FROM claims", "7");
                assert_store_sane(fixture->path);
                /* every copy with its final name is complete */
                for (char *copy = NULL; fixture_count_files(fixture, "claim.sqlite.v1-", &copy) > 0;
                     copy = NULL) {
                        assert_version_1_rows(copy);
                        assert_int_equal(unlink(copy), 0);
                        free(copy);
                }
                assert_int_equal(unlink(fixture->path), 0);
        }
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown,
                test_upgrade_equals_creation, test_upgrade, test_upgraded_claims_count,
                test_upgraded_claims_wait_for_the_host, test_strange_rows,
                test_time_before_1970_becomes_0, test_version_1_without_table,
                test_upgrade_holds_devices, test_pci_column, test_upgrade_interrupted)
