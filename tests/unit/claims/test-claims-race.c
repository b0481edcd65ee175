/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Several writers of one file. */

#include <sys/wait.h>

#include "claims/store/object.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define N_PROCESSES 8
#define CAPACITY    200
#define HOST        "host VCPU=100/0/1/100/1/2 MEMORY_MB=100000; gpu<host VGPU=200"

/* Runs f in n processes at the same time. Returns the sum of their exit codes, each 0 to 250. */
static unsigned run_processes(Fixture *fixture, unsigned n, int (*f)(Fixture *, unsigned))
{
        pid_t pids[N_PROCESSES];
        unsigned sum = 0;
        int gate[2];

        assert_int_equal(pipe(gate), 0);
        for (unsigned i = 0; i < n; i++) {
                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] == 0) {
                        char byte;

                        close(gate[1]);
                        /* All start when the parent closes the pipe. */
                        if (read(gate[0], &byte, 1) < 0)
                                _exit(255);
                        _exit(f(fixture, i));
                }
        }
        close(gate[0]);
        close(gate[1]);
        for (unsigned i = 0; i < n; i++) {
                int status;

                assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                assert_true(WIFEXITED(status));
                if (WEXITSTATUS(status) > 250)
                        fail_msg("process %u failed", i);
                sum += (unsigned)WEXITSTATUS(status);
        }
        return sum;
}

static int failed(const Fixture *fixture, int r)
{
        fprintf(stderr, "%d %s\n", r, fixture->error.text);
        return 255;
}

/* Claims until nothing fits. Returns the number of claims. */
static int claim_all(Fixture *fixture, unsigned process)
{
        int r = fixture_open(fixture), n = 0;

        if (r < 0)
                return failed(fixture, r);
        for (;; n++) {
                char name[32];

                snprintf(name, sizeof(name), "vm-%u-%d", process, n);
                r = fixture_claim(fixture, name, "VCPU=1 _G:VGPU=1", NULL);
                if (r != CLAIM_DONE)
                        break;
        }
        if (r != CLAIM_E_NO_CAPACITY)
                return failed(fixture, r);
        return n;
}

static void test_never_over_commits(void **state)
{
        Fixture *fixture = *state;

        fixture_create(fixture, HOST);
        fixture_close(fixture);
        assert_int_equal(run_processes(fixture, N_PROCESSES, claim_all), CAPACITY);
        assert_sql(fixture->path, "SELECT count(*) FROM claims", "200");
        assert_sql(fixture->path, "SELECT sum(vcpus) FROM claims", "200");
        assert_sql(
                fixture->path,
                "SELECT group_concat(resource_class || used, ' ') FROM usages ORDER BY resource_class",
                "VCPU200 VGPU200");
        assert_store_sane(fixture->path);
}

/* Claims, confirms and releases in turn. Releases the remaining claims at the end. */
static int churn(Fixture *fixture, unsigned process)
{
        int r = fixture_open(fixture);

        for (int i = 0; r >= 0 && i < 40; i++) {
                Claim *claim = NULL;
                char name[32];

                snprintf(name, sizeof(name), "vm-%u-%d", process, i);
                r = fixture_claim(fixture, name, "VCPU=30,MEMORY_MB=10", &claim);
                if (r == CLAIM_E_NO_CAPACITY)
                        continue;
                if (r != CLAIM_DONE)
                        break;
                r = claims_confirm(fixture->claims, claim->id, &fixture->error);
                if (r == 0)
                        r = claims_release(fixture->claims, claim->id, "done", &fixture->error);
                claim_free(claim);
                if (r != 0)
                        return failed(fixture, r);
        }
        return r < 0 ? failed(fixture, r) : 0;
}

static void test_churn(void **state)
{
        Fixture *fixture = *state;

        fixture_create(fixture, HOST);
        fixture_close(fixture);
        run_processes(fixture, N_PROCESSES, churn);
        assert_sql(fixture->path, "SELECT count(*) FROM claims", "0");
        assert_sql(fixture->path, "SELECT count(*) FROM usages", "0");
        assert_store_sane(fixture->path);
}

/* All processes claim for the same consumers: each gets the one claim that the first one made. */
static int claim_same(Fixture *fixture, unsigned process)
{
        int r = fixture_open(fixture);

        for (int i = 0; r >= 0 && i < 20; i++) {
                char name[32];

                snprintf(name, sizeof(name), "vm-%d", i);
                r = fixture_claim(fixture, name, "VCPU=1", NULL);
                if (r != CLAIM_DONE)
                        return failed(fixture, r);
        }
        return r < 0 ? failed(fixture, r) : 0;
}

static void test_same_consumers(void **state)
{
        Fixture *fixture = *state;

        fixture_create(fixture, HOST);
        fixture_close(fixture);
        run_processes(fixture, N_PROCESSES, claim_same);
        assert_sql(fixture->path, "SELECT count(*) FROM claims", "20");
        assert_store_sane(fixture->path);
}

/* All processes find no file, or a damaged one, and set the same host. */
static int open_and_tell(Fixture *fixture, unsigned process)
{
        int r = fixture_open(fixture);

        if (r < 0)
                return failed(fixture, r);
        fixture_set_host(fixture, HOST);
        return r == CLAIMS_CREATED || r == CLAIMS_SET_ASIDE ? 1 : 0;
}

/* A process that ends without closing the file leaves its log. */
static void remove_file(Fixture *fixture)
{
        char path[128];

        snprintf(path, sizeof(path), "%s-wal", fixture->path);
        unlink(path);
        snprintf(path, sizeof(path), "%s-shm", fixture->path);
        unlink(path);
        assert_int_equal(unlink(fixture->path), 0);
}

static void test_opened_at_once(void **state)
{
        Fixture *fixture = *state;
        FILE *file;

        for (int i = 0; i < 10; i++) {
                assert_int_equal(run_processes(fixture, N_PROCESSES, open_and_tell), 1);
                assert_sql(fixture->path, "SELECT count(*) FROM resource_providers", "2");
                assert_store_sane(fixture->path);
                file = fopen(fixture->path, "w");
                assert_non_null(file);
                for (int j = 0; j < 1000; j++)
                        fputs("nonsense", file);
                fclose(file);
                assert_int_equal(run_processes(fixture, N_PROCESSES, open_and_tell), 1);
                remove_file(fixture);
        }
}

/* Hosts that change while other processes claim. */
static int tell_or_claim(Fixture *fixture, unsigned process)
{
        static const char *const hosts[] = { HOST, "host VCPU=100/0/1/100/1/2; gpu2<host VGPU=5" };
        int r = fixture_open(fixture);

        for (int i = 0; r >= 0 && i < 30; i++) {
                char name[32];

                snprintf(name, sizeof(name), "vm-%u-%d", process, i);
                if (process < 2)
                        fixture_set_host(fixture, hosts[i % 2]);
                else
                        r = fixture_claim(fixture, name, "VGPU=1", NULL);
        }
        return r < 0 ? failed(fixture, r) : 0;
}

static void test_host_changes(void **state)
{
        Fixture *fixture = *state;

        fixture_create(fixture, HOST);
        fixture_close(fixture);
        run_processes(fixture, N_PROCESSES, tell_or_claim);
        assert_sql(
                fixture->path,
                "SELECT count(*) FROM usages u LEFT JOIN inventories i"
                " USING (resource_provider_id, resource_class) WHERE i.total IS NULL OR u.used > i.total",
                "0");
        assert_store_sane(fixture->path);
}

/* Wraps the store as claims.c calls it (--wrap). Before each write of a host, and each insert that
 * is not its own, the rival acts. */
static struct {
        Fixture *rival; /* claims on the same file */
        const char *rival_request;
        int n_rival_claims;     /* number of claims that the rival makes, one before each write */
        const char *rival_host; /* host that the rival sets before the next host is written */
        bool always_lose;
        bool rival_acts;
        int n_writes, n_turns;
} race;

static void claim_first(void)
{
        char name[32];

        race.n_writes++;
        if (race.n_rival_claims == 0)
                return;
        snprintf(name, sizeof(name), "rival-%d", --race.n_rival_claims);
        race.rival_acts = true;
        assert_int_equal(fixture_claim(race.rival, name, race.rival_request, NULL), CLAIM_DONE);
        race.rival_acts = false;
}

bool __real_claims_attempt(ClaimAttempts *attempts, Error *reterr);
bool __wrap_claims_attempt(ClaimAttempts *attempts, Error *reterr);
int __real_store_write_host(Claims *claims, const HostView *wanted, const StoreShift *shifts,
                            size_t n_shifts, Error *reterr);
int __wrap_store_write_host(Claims *claims, const HostView *wanted, const StoreShift *shifts,
                            size_t n_shifts, Error *reterr);
int __real_store_insert(Claims *claims, const StoreClaim *claim, const Fit *fit, Claim **ret,
                        Error *reterr);
int __wrap_store_insert(Claims *claims, const StoreClaim *claim, const Fit *fit, Claim **ret,
                        Error *reterr);

bool __wrap_claims_attempt(ClaimAttempts *attempts, Error *reterr)
{
        bool goes_on = __real_claims_attempt(attempts, reterr);

        race.n_turns += attempts->claims->has_turn;
        return goes_on;
}

int __wrap_store_write_host(Claims *claims, const HostView *wanted, const StoreShift *shifts,
                            size_t n_shifts, Error *reterr)
{
        const char *host = race.rival_host;

        if (!race.rival_acts)
                claim_first();
        race.rival_host = NULL;
        if (host) {
                race.rival_acts = true;
                fixture_set_host(race.rival, host);
                race.rival_acts = false;
        }
        return __real_store_write_host(claims, wanted, shifts, n_shifts, reterr);
}

int __wrap_store_insert(Claims *claims, const StoreClaim *claim, const Fit *fit, Claim **ret,
                        Error *reterr)
{
        if (race.rival_acts)
                return __real_store_insert(claims, claim, fit, ret, reterr);
        claim_first();
        return race.always_lose ? CLAIM_E_RACE
                                : __real_store_insert(claims, claim, fit, ret, reterr);
}

static void open_racing(Fixture *rival, Claims **ret)
{
        ClaimsConfig config = { .host = "compute1", .node = "host", .busy_usec = USEC_PER_SEC };

        memset(&race, 0, sizeof(race));
        fixture_create(rival, "host VCPU=4; gpu<host VGPU=1");
        config.path = rival->path;
        assert_int_equal(claims_open(ret, &config, NULL), CLAIMS_OPENED);
        race = (typeof(race)){ .rival = rival };
}

static int claim_with(Claims *claims, const char *consumer, const char *text, Error *error)
{
        Fixture fixture = { .claims = claims };
        int r = fixture_claim(&fixture, consumer, text, NULL);

        *error = fixture.error;
        return r;
}

/* Between the fit and the write another process claims on the same provider. */
static void test_lost_race_is_fitted_again(void **state)
{
        Fixture *rival = *state;
        _cleanup_(claims_freep) Claims *claims = NULL;
        Error error = ERROR_NULL;

        open_racing(rival, &claims);
        race.rival_request = "VCPU=1";
        race.n_rival_claims = 1;
        assert_int_equal(claim_with(claims, "vm", "VCPU=1", &error), CLAIM_DONE);
        assert_int_equal(race.n_writes, 2);
        assert_int_equal(race.n_turns, 1);
        assert_int_equal(fixture_used(rival, "host", "VCPU"), 2);

        /* the rival takes the free capacity: nothing is over-committed, and the error text has the
         * current amounts */
        race.rival_request = "VCPU=2";
        race.n_rival_claims = 1;
        race.n_writes = 0;
        claims_release(rival->claims, 1, "", NULL);
        assert_int_equal(claim_with(claims, "vm2", "VCPU=2", &error), CLAIM_E_NO_CAPACITY);
        assert_int_equal(race.n_writes, 1);
        assert_string_equal(error.text, "VCPU: 2 requested, but 1 of 4 are free on host");

        /* a claim on another provider is no race */
        race.rival_request = "VGPU=1";
        race.n_rival_claims = 1;
        race.n_writes = 0;
        claims_release(rival->claims, 3, "", NULL);
        assert_int_equal(claim_with(claims, "vm2", "VCPU=1", &error), CLAIM_DONE);
        assert_int_equal(race.n_writes, 1);
        assert_store_sane(rival->path);
}

static void test_race_lost_too_often(void **state)
{
        Fixture *rival = *state;
        _cleanup_(claims_freep) Claims *claims = NULL;
        Error error = ERROR_NULL;

        open_racing(rival, &claims);
        race.always_lose = true;
        assert_int_equal(claim_with(claims, "vm", "VCPU=1", &error), -EBUSY);
        assert_int_equal(race.n_writes, 16);
        assert_string_equal(error.text,
                            "Other writers changed the claim database during each of 16 attempts");
        /* the write lock is released */
        race.always_lose = false;
        assert_int_equal(fixture_claim(rival, "other", "VCPU=1", NULL), CLAIM_DONE);
        assert_int_equal(claim_with(claims, "vm", "VCPU=1", &error), CLAIM_DONE);
}

/* Between the fit and the write another process makes the claim: it is an existing one. */
static void test_existing_claim_of_a_lost_race(void **state)
{
        Fixture *rival = *state;
        _cleanup_(claims_freep) Claims *claims = NULL;
        _cleanup_(claim_freep) Claim *claim = NULL;
        _cleanup_(consumer_freep) Consumer *holding =
                make_holding("rival-0", "gpu_a VGPU=1; gpu_b VGPU=1");
        const ClaimPlacing placing = { .holding = holding };
        ClaimRequest request = { .consumer = holding->uuid };
        bool ambiguous = true;

        open_racing(rival, &claims);
        fixture_set_host(rival, "host VCPU=4; gpu_a<host VGPU=2; gpu_b<host VGPU=2");
        race.rival_request = "_1:VGPU=1 _2:VGPU=1 isolate";
        race.n_rival_claims = 1;
        make_request(&request.resources, race.rival_request);
        assert_int_equal(claims_claim(claims, &request, &placing, &claim, &ambiguous, NULL),
                         CLAIM_DONE);
        assert_int_equal(race.n_rival_claims, 0);
        assert_false(ambiguous);
        resource_request_done(&request.resources);
}

static void set_host(Claims *claims, const char *text)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(text);

        assert_int_equal(claims_set_providers(claims, tree, NULL), 0);
}

/* Between the read of the host and its write, another process claims the provider that is
 * removed. */
static void test_claimed_while_it_vanishes(void **state)
{
        Fixture *rival = *state;
        _cleanup_(claims_freep) Claims *claims = NULL;

        open_racing(rival, &claims);
        race.rival_request = "VGPU=1";
        race.n_rival_claims = 1;
        set_host(claims, "host VCPU=4");
        assert_int_equal(race.n_writes, 2);
        assert_int_equal(fixture_used(rival, "gpu", "VGPU"), 1);
        assert_sql(rival->path,
                   "SELECT group_concat(name || withheld, ' ') FROM resource_providers",
                   "host0 gpu1");
        assert_store_sane(rival->path);
}

/* Two processes set different hosts at the same time: one of them wins, and there is no mixture. */
static void test_two_hosts_at_once(void **state)
{
        Fixture *rival = *state;
        _cleanup_(claims_freep) Claims *claims = NULL;

        open_racing(rival, &claims);
        race.rival_host = "host VCPU=4; gpu<host VGPU=1; extra<host VGPU=9";
        set_host(claims, "host VCPU=5; gpu<host VGPU=1");
        assert_int_equal(race.n_writes, 2);
        assert_sql(rival->path, "SELECT group_concat(name, ' ') FROM resource_providers",
                   "host gpu");
        race.rival_host = "host VCPU=7; gpu<host VGPU=1; extra<host VGPU=9";
        set_host(claims, "host VCPU=6; extra<host VGPU=8");
        assert_sql(rival->path,
                   "SELECT group_concat(name || total, ' ') FROM resource_providers p"
                   " JOIN inventories i ON i.resource_provider_id = p.id",
                   "host6 extra8");
        assert_store_sane(rival->path);
}

/* Two processes can read an unplaced claim. The second one finds it placed, and skips it. */
static void test_a_claim_is_placed_once(void **state)
{
        Fixture *fixture = *state;
        StoreUnplaced claim;
        Fit fit = FIT_NULL;

        fixture_create(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "a", "VCPU=1", NULL), CLAIM_DONE);
        free(run_sql(fixture->path, "DELETE FROM allocations; UPDATE claims SET placed = 0"));
        assert_int_equal(store_next_unplaced(fixture->claims, 0, &claim, NULL), 0);
        assert_int_equal(fit_add(&fit, 0, "VCPU", claim.vcpus), 0);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(store_load_view(fixture->claims, NULL), 0);
                assert_int_equal(store_place(fixture->claims, &claim, &fit, &fixture->error),
                                 i == 0 ? 0 : CLAIM_E_NOT_FOUND);
        }
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 1);
        assert_store_sane(fixture->path);
        fit_done(&fit);
        store_unplaced_done(&claim);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_never_over_commits,
                test_churn, test_same_consumers, test_opened_at_once, test_host_changes,
                test_lost_race_is_fitted_again, test_race_lost_too_often,
                test_existing_claim_of_a_lost_race, test_claimed_while_it_vanishes,
                test_two_hosts_at_once, test_a_claim_is_placed_once)
