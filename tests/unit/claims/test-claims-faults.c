/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A disk that fails, and a process that dies, at every call that writes to or reads a file, during
 * every kind of operation. The operation either was done, in every table, or it was not. It can be
 * repeated. A failing disk never counts as a damaged file. */

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/text.h"
#include "claims/claims.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"
#include "tests/fixtures/numa.h"
#include "tests/shims/fault-vfs.h"
#include "tests/unit/test.h"

#define HOST  "host VCPU=8 MEMORY_MB=1024; host_a<host VGPU=4; host_b<host VGPU=4"
#define HOST2 "host VCPU=9 MEMORY_MB=1024 +NEW; host_b<host VGPU=4; host_c<host VGPU=4"

#define CELLS_HOST "host VCPU=4 PCPU=8 MEMORY_MB=8192; host_0000:05:00.0<host CUSTOM_NIC=1"

#define VERSION_1                                                                               \
        "CREATE TABLE versions (table_name TEXT, version INTEGER);"                             \
        "INSERT INTO versions VALUES ('claims', 1);"                                            \
        "CREATE TABLE claims (id INTEGER, host TEXT, node TEXT, instance_uuid TEXT,"            \
        " vcpus INTEGER, memory_mb INTEGER, disk_gb INTEGER, pci TEXT, resize_target INTEGER,"  \
        " created_at TEXT);"                                                                    \
        "INSERT INTO claims VALUES (3, 'c', 'host', '11111111-2222-4333-8444-555555555501', 2," \
        " 512, 10, '[]', 0, '2014-05-01T10:20:30');"

/* One operation: its preparation, and the call that is tested. */
typedef struct Operation {
        const char *name;
        void (*prepare)(Fixture *fixture); /* leaves the database closed */
        bool opens;                        /* opening is part of the tested call */
        int (*run)(Fixture *fixture);      /* on the open database; 0 or negative */
} Operation;

static void prepare_nothing(Fixture *fixture)
{
}

static void prepare_version_1(Fixture *fixture)
{
        free(run_sql(fixture->path, VERSION_1));
}

/* Claims 1 (confirmed), 2 (claimed, of two groups) and 3 (ended). */
static void prepare_claims(Fixture *fixture)
{
        fixture_create(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "one", "VCPU=1", NULL), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "two", "VCPU=2 _G:VGPU=1", NULL), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "three", "VCPU=3", NULL), CLAIM_DONE);
        assert_int_equal(claims_confirm(fixture->claims, 1, NULL), 0);
        assert_int_equal(claims_release(fixture->claims, 3, "", NULL), 0);
        fixture_close(fixture);
}

/* Claim 4 is pending: its caller has no answer yet. */
static void prepare_pending(Fixture *fixture)
{
        static const ClaimPlacing pending = { .write_state = CLAIM_WRITE_UNANSWERED };

        prepare_claims(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(fixture_claim_placed(fixture, "four", "VCPU=1", &pending, NULL),
                         CLAIM_DONE);
        fixture_close(fixture);
}

/* The GPUs of the host, and one guest. */
static void use_facts(Fixture *fixture)
{
        static FactsFixture facts;

        make_facts(&facts);
        facts_guest(&facts, 'g', "4");
        facts.devices[0].available = facts.devices[1].available = 4;
        claims_set_facts(fixture->claims, &facts.facts);
}

/* Claim 2 names its device, in addition. */
static void prepare_devices(Fixture *fixture)
{
        prepare_claims(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        use_facts(fixture);
        assert_int_equal(claims_check_again(fixture->claims, 2, NULL, &(bool){ 0 }, NULL), 0);
        fixture_close(fixture);
}

/* A host of two cells with dedicated CPUs, large pages, and a device near the second cell. */
static void use_cells(Fixture *fixture)
{
        static const NumaCellSpec cells[] = { { 2, 4, 2, 4096, 64, 0, 0 },
                                              { 2, 4, 2, 4096, 64, 0, 1 } };
        static NumaFixture facts;

        numa_fixture_make(&facts, cells, 2);
        numa_fixture_nic(&facts, "pci_0000_05_00_1", "0000:05:00.1", 1);
        claims_set_facts(fixture->claims, &facts.facts);
}

/* Cells, dedicated CPUs, large pages and a PCI device, all in one claim. */
static int run_claim_laid_out(Fixture *fixture)
{
        use_cells(fixture);
        return fixture_claim(fixture, "laid out",
                             "PCPU=2,MEMORY_MB=128 _N:CUSTOM_NIC=1 & nodes=2 page_size=2M", NULL);
}

/* Claim 1 has a layout and a device. */
static void prepare_laid_out(Fixture *fixture)
{
        fixture_create(fixture, CELLS_HOST);
        fixture_close(fixture);
}

static void prepare_held(Fixture *fixture)
{
        prepare_laid_out(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(run_claim_laid_out(fixture), CLAIM_DONE);
        fixture_close(fixture);
}

static int release(Fixture *fixture, int64_t id)
{
        int r = claims_release(fixture->claims, id, "done", &fixture->error);

        return r == CLAIM_E_NOT_FOUND ? 0 : r; /* it was done already */
}

static int run_release_laid_out(Fixture *fixture)
{
        return release(fixture, 1);
}

static int run_nothing(Fixture *fixture)
{
        return 0;
}

static int run_claim(Fixture *fixture)
{
        return fixture_claim(fixture, "four", "VCPU=1,MEMORY_MB=5 _A:VGPU=1 _B:VGPU=2", NULL);
}

static int run_claim_devices(Fixture *fixture)
{
        use_facts(fixture);
        return run_claim(fixture);
}

/* The agent does not adopt a guest that has a claim, so this does not either. */
static int run_adopt(Fixture *fixture)
{
        _cleanup_(claim_freep) Claim *held = NULL, *claim = NULL;
        const Uuid guest = make_guest('g');
        const HostDomain domain = { .uuid = guest,
                                    .name = "g",
                                    .vcpus = 2,
                                    .memory_mb = 512,
                                    .mdevs = (const Uuid[]){ make_mdev('4') },
                                    .n_mdevs = 1 };
        int r;

        use_facts(fixture);
        r = claims_find(fixture->claims, &guest, false, &held, &fixture->error);
        return r == CLAIM_E_NOT_FOUND
                       ? claims_adopt(fixture->claims, &domain, &claim, &fixture->error)
                       : r;
}

/* Three changes in one transaction: all of them are stored, or none. */
static int run_group(Fixture *fixture)
{
        int r = claims_begin_group(fixture->claims, &fixture->error);

        if (r != 0)
                return r;
        r = release(fixture, 2);
        if (r == 0)
                r = run_adopt(fixture);
        if (r == 0)
                r = release(fixture, 1);
        return claims_end_group(fixture->claims, r, &fixture->error);
}

static int run_check_again(Fixture *fixture)
{
        use_facts(fixture);
        return claims_check_again(fixture->claims, 2, NULL, &(bool){ 0 }, &fixture->error);
}

static int run_confirm(Fixture *fixture)
{
        return claims_confirm(fixture->claims, 2, &fixture->error);
}

static int run_release(Fixture *fixture)
{
        return release(fixture, 2);
}

/* 14.7: at no point does the claim look like one that its caller got. */
static int run_withdraw(Fixture *fixture)
{
        int r = claims_withdraw(fixture->claims, 4, "refused", &fixture->error);

        return r == CLAIM_E_NOT_FOUND ? 0 : r; /* it was done already */
}

static int run_expire(Fixture *fixture)
{
        uint64_t n;

        return claims_expire(fixture->claims, UINT64_MAX, &n, &fixture->error);
}

/* Claim 1 gets other allocations than before. */
static int run_complete(Fixture *fixture)
{
        _cleanup_(consumer_freep) Consumer *share = make_holding("one", "host VCPU=1,MEMORY_MB=5");

        return claims_complete(fixture->claims, 1, share, &fixture->error);
}

static int run_set_host(Fixture *fixture)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(HOST2);

        return claims_set_providers(fixture->claims, tree, &fixture->error);
}

static const Operation operations[] = {
        { "create", prepare_nothing, true, run_nothing },
        { "upgrade", prepare_version_1, true, run_nothing },
        { "open", prepare_claims, true, run_nothing },
        { "claim", prepare_claims, false, run_claim },
        { "confirm", prepare_claims, false, run_confirm },
        { "release", prepare_claims, false, run_release },
        { "expire", prepare_claims, false, run_expire },
        { "set host", prepare_claims, false, run_set_host },
        { "claim devices", prepare_devices, false, run_claim_devices },
        { "release devices", prepare_devices, false, run_release },
        { "adopt", prepare_claims, false, run_adopt },
        { "group", prepare_claims, false, run_group },
        { "check again", prepare_claims, false, run_check_again },
        { "complete", prepare_claims, false, run_complete },
        { "claim with a layout", prepare_laid_out, false, run_claim_laid_out },
        { "withdraw", prepare_pending, false, run_withdraw },
        { "release with a layout", prepare_held, false, run_release_laid_out },
};

/* Returns the contents of all tables, without times and generations. */
static char *dump(const char *path)
{
        return run_sql(
                path,
                "SELECT group_concat(t, char(10)) FROM ("
                "SELECT 'claim ' || id || state || write_state || instance_uuid || vcpus || request "
                "|| placed AS t"
                " FROM claims UNION ALL "
                "SELECT 'ended ' || id || end_reason || allocations || devices || cells || cpus"
                " FROM ended_claims UNION ALL "
                "SELECT 'allocation ' || claim_id || p.name || resource_class || used"
                " || request_group FROM allocations JOIN resource_providers p"
                " ON p.id = resource_provider_id UNION ALL "
                "SELECT 'usage ' || p.name || resource_class || used FROM usages"
                " JOIN resource_providers p ON p.id = resource_provider_id UNION ALL "
                "SELECT 'provider ' || name || withheld || can_host || ifnull(parent, '')"
                " FROM resource_providers UNION ALL "
                "SELECT 'inventory ' || p.name || resource_class || total FROM inventories"
                " JOIN resource_providers p ON p.id = resource_provider_id UNION ALL "
                "SELECT 'device ' || claim_id || request_group || device || mdev_type"
                " FROM claim_devices UNION ALL "
                "SELECT 'cell ' || claim_id || ':' || cell || ':' || host_cell || ':' || memory_mb"
                " || ':' || page_kib || ':' || vcpus FROM claim_cells UNION ALL "
                "SELECT 'cpu ' || claim_id || ':' || vcpu || ':' || dedicated || ':' || cpus"
                " FROM claim_cpus UNION ALL "
                "SELECT 'pin ' || claim_id || ':' || cpu FROM claim_pins UNION ALL "
                "SELECT 'cell usage ' || host_cell || ':' || page_kib || ':' || memory_mb || ':'"
                " || n_shared FROM cell_usages UNION ALL "
                "SELECT 'removal ' || claim_id FROM removals UNION ALL "
                "SELECT 'count ' || claims FROM claim_counts UNION ALL SELECT 'trait ' || trait FROM provider_traits ORDER BY 1)");
}

static void remove_files(Fixture *fixture)
{
        char *path = NULL;

        fixture_close(fixture);
        while (fixture_count_files(fixture, "claim", &path) > 0) {
                assert_int_equal(unlink(path), 0);
                free(path);
                path = NULL;
        }
        free(path);
}

static char saved[1024 * 1024];
static size_t n_saved;

/* Keeps the prepared file, for restore(). */
static void save(Fixture *fixture)
{
        FILE *file = fopen(fixture->path, "r");

        n_saved = file ? fread(saved, 1, sizeof(saved), file) : 0;
        assert_true(n_saved < sizeof(saved));
        if (file)
                fclose(file);
}

static void restore(Fixture *fixture)
{
        FILE *file = fopen(fixture->path, "w");

        assert_non_null(file);
        assert_int_equal(fwrite(saved, 1, n_saved, file), n_saved);
        fclose(file);
}

/* Returns the contents of the tables after the operation on a sound disk. */
static char *dump_after(Fixture *fixture, const Operation *operation)
{
        char *text;

        operation->prepare(fixture);
        save(fixture);
        assert_true(fixture_open(fixture) >= 0);
        assert_int_equal(operation->run(fixture), 0);
        text = dump(fixture->path);
        remove_files(fixture);
        return text;
}

static void assert_state(Fixture *fixture, const Operation *operation, unsigned n, const char *a,
                         const char *b)
{
        _cleanup_free_ char *state = dump(fixture->path);

        if (strcmp(state, a) != 0 && (!b || strcmp(state, b) != 0))
                fail_msg("%s, call %u:\n%s\n--- expected\n%s\n--- or\n%s", operation->name, n,
                         state, a, b ? b : a);
}

/* The disk works again: the operation can be repeated, and no file was set aside. */
static void assert_repeatable(Fixture *fixture, const Operation *operation, unsigned n,
                              const char *after)
{
        int r = 0;

        if (operation->opens || !fixture->claims) {
                r = fixture_open(fixture);
                if (r < 0)
                        fail_msg("%s, call %u, opened again: %d %s", operation->name, n, r,
                                 fixture->error.text);
        }
        r = operation->run(fixture);
        if (r != 0)
                fail_msg("%s, call %u, done again: %d %s", operation->name, n, r,
                         fixture->error.text);
        assert_state(fixture, operation, n, after, NULL);
        assert_store_sane(fixture->path);
        assert_int_equal(fixture_count_files(fixture, "claim.sqlite.corrupt", NULL), 0);
}

/* Lets the n-th call fail. Returns false if there was no n-th call. */
static bool fail_once(Fixture *fixture, const Operation *operation, Fault fault, bool sticky,
                      bool reads, unsigned n, const char *after)
{
        _cleanup_free_ char *before = NULL;
        bool delivered;
        int r = 0;

        restore(fixture);
        if (!operation->opens)
                assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        if (!operation->opens)
                before = dump(fixture->path);
        fault_vfs_arm(fault, n, sticky, reads);
        if (operation->opens)
                r = fixture_open(fixture);
        if (r == CLAIMS_SET_ASIDE)
                fail_msg("%s, call %u: %s", operation->name, n, fixture->error.text);
        if (r >= 0)
                r = operation->run(fixture);
        delivered = fault_vfs_disarm();
        if (r > 0)
                fail_msg("%s, call %u: %d %s", operation->name, n, r, fixture->error.text);
        if (r < 0) {
                if (!delivered || (r != -EIO && r != -ENOSPC) || !fixture->error.text[0])
                        fail_msg("%s, call %u: %d %s", operation->name, n, r, fixture->error.text);
                /* Before an operation that opens the file, dump() cannot read it: it has other
                 * tables, or does not exist. */
                if (!operation->opens)
                        assert_state(fixture, operation, n, before, NULL);
        }
        assert_repeatable(fixture, operation, n, after);
        remove_files(fixture);
        return delivered;
}

/* A walk with AddressSanitizer takes ten times as long, and looks for other mistakes than those of
 * a single point. Every seventh point is enough there. */
#ifdef __SANITIZE_ADDRESS__
#define STRIDE_UNIT 7
#else
#define STRIDE_UNIT 1
#endif

/* I/O errors in writes are tried at all points. Kills are tried at all points of the short
 * operations, and at every third of the long ones (opening, some 70 points). The other faults take
 * the same exits: every second and fourth point. */
static unsigned stride(const Operation *operation, Fault fault, bool reads)
{
        if (fault == FAULT_EIO && !reads)
                return STRIDE_UNIT;
        if (fault == FAULT_KILL)
                return (operation->opens ? 3 : 1) * STRIDE_UNIT;
        return (operation->opens ? 4 : 2) * STRIDE_UNIT;
}

/* Returns the number of pages in the log. Each page has a header, and so has the log. */
static uint64_t count_log_pages(const Fixture *fixture)
{
        _cleanup_free_ char *path = text_format("%s-wal", fixture->path);
        struct stat status;

        return stat(path, &status) == 0 ? (uint64_t)status.st_size / (4096 + 24) : 0;
}

/* With 1000 pages SQLite moves its log into the file, in the call that commits. Fills the log so
 * that the next claim is that call. */
static void fill_log(Fixture *fixture)
{
        while (count_log_pages(fixture) < 995)
                assert_int_equal(claims_probe(fixture->claims, NULL), 0);
}

/* Returns the result of a claim whose n-th call fails, and all later ones. */
static int claim_on_full_disk(Fixture *fixture, unsigned n, bool *ret_delivered)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        const Uuid consumer = make_uuid("full");
        int r;

        fault_vfs_arm(FAULT_FULL, n, true, false);
        r = fixture_claim(fixture, "full", "VCPU=1", NULL);
        *ret_delivered = fault_vfs_disarm();
        if (r != 0 && r != -ENOSPC && r != -EIO)
                fail_msg("call %u: %d %s", n, r, fixture->error.text);
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(claims_find(fixture->claims, &consumer, false, &claim, NULL),
                         r == 0 ? 0 : CLAIM_E_NOT_FOUND);
        if (claim)
                assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
        return r;
}

/* If that move fails, the commit has happened: a rejected claim does not exist, and an existing
 * claim was yielded. */
static void test_full_disk_behind_the_commit(void **state)
{
        Fixture *fixture = *state;
        unsigned n_promised = 0, n_refused = 0;
        bool delivered = true;

        fixture_create(fixture, "host VCPU=100000");
        for (unsigned n = 0; delivered; n++) {
                fill_log(fixture);
                if (claim_on_full_disk(fixture, n, &delivered) != 0)
                        n_refused++;
                else if (delivered)
                        n_promised++;
        }
        /* both sides of the commit were hit */
        assert_true(n_promised > 0 && n_refused > 0);
        assert_store_sane(fixture->path);
}

/* Kills the process at the n-th call. Returns false if it ended before. */
static bool kill_once(Fixture *fixture, const Operation *operation, Fault fault, unsigned n,
                      const char *after)
{
        _cleanup_free_ char *before = NULL;
        int status;
        pid_t pid;

        restore(fixture);
        if (!operation->opens)
                before = dump(fixture->path);
        pid = fork();
        if (pid == 0) {
                int r = 0;

                if (!operation->opens && fixture_open(fixture) < 0)
                        _exit(2);
                fault_vfs_arm(fault, n, false, false);
                if (operation->opens)
                        r = fixture_open(fixture);
                if (r >= 0)
                        r = operation->run(fixture);
                _exit(r == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
                fail_msg("%s, call %u: exit %d", operation->name, n, WEXITSTATUS(status));
        if (!operation->opens)
                assert_state(fixture, operation, n, after, WIFEXITED(status) ? NULL : before);
        assert_repeatable(fixture, operation, n, after);
        remove_files(fixture);
        return WIFSIGNALED(status);
}

static void walk(Fixture *fixture, Fault fault, bool sticky, bool reads)
{
        bool kills = fault == FAULT_KILL || fault == FAULT_KILL_HALF;

        for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
                _cleanup_free_ char *after = dump_after(fixture, &operations[i]);
                unsigned n = 0;

                while (kills ? kill_once(fixture, &operations[i], fault, n, after)
                             : fail_once(fixture, &operations[i], fault, sticky, reads, n, after))
                        n += stride(&operations[i], fault, reads);
                /* A walk without any point tests nothing. */
                assert_true(n >= 1 || strcmp(operations[i].name, "open") == 0);
        }
}

static void test_io_errors(void **state)
{
        walk(*state, FAULT_EIO, false, false);
}

static void test_full_disk(void **state)
{
        walk(*state, FAULT_FULL, true, false);
}

static void test_short_writes(void **state)
{
        walk(*state, FAULT_SHORT, false, false);
}

static void test_read_errors(void **state)
{
        walk(*state, FAULT_EIO, false, true);
}

static void test_killed(void **state)
{
        walk(*state, FAULT_KILL, false, false);
        walk(*state, FAULT_KILL_HALF, false, false);
}

/* Every acknowledged change is on the disk. */
static void test_synced(void **state)
{
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
                const Operation *operation = &operations[i];
                SyncCount count;

                operation->prepare(fixture);
                if (!operation->opens)
                        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
                fault_vfs_take_syncs();
                if (operation->opens)
                        assert_true(fixture_open(fixture) >= 0);
                assert_int_equal(operation->run(fixture), 0);
                count = fault_vfs_take_syncs();
                /* Opening alone writes only the shared index. */
                if (strcmp(operation->name, "open") != 0 && (count.n_syncs == 0 || count.unsynced))
                        fail_msg("%s: %u syncs, %s", operation->name, count.n_syncs,
                                 count.unsynced ? "and a write behind them" : "");
                /* syncs of the folder, and of the copy */
                if (strcmp(operation->name, "create") == 0)
                        assert_true(count.n_fsyncs >= 1);
                if (strcmp(operation->name, "upgrade") == 0)
                        assert_true(count.n_fsyncs >= 3);
                remove_files(fixture);
        }
}

TEST_MAIN_AFTER(fault_vfs_install(), fixture_setup, fixture_teardown, test_io_errors,
                test_full_disk, test_short_writes, test_read_errors, test_killed, test_synced,
                test_full_disk_behind_the_commit)
