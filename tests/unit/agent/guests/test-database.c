/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/database.h"

#include "agent/guests/reconcile.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

typedef struct Watcher {
        const Fixture *fixture;
        ClaimService *service;
        size_t n_told;
} Watcher;

static size_t count_set_aside(const Fixture *fixture)
{
        const char *name = strrchr(fixture->path, '/') + 1;
        char prefix[64];

        snprintf(prefix, sizeof(prefix), "%s.corrupt-", name);
        return fixture_count_files(fixture, prefix, NULL);
}

/* As the bus does, which tells the number of claims with each change. */
static void on_claim(ClaimEvent event, const Claim *claim, void *userdata)
{
        Watcher *watcher = userdata;

        watcher->n_told++;
        assert_int_equal(claim_service_count(watcher->service), 0);
        /* whoever told goes on with what it has */
        assert_int_equal(count_set_aside(watcher->fixture), 0);
        assert_non_null(claim_service_get(watcher->service));
}

static void test_telling_closes_nothing(void **state)
{
        Fixture *fixture = *state;
        const ClaimsConfig config = {
                .path = fixture->path, .host = "host", .node = "host", .has_devices = true
        };
        const HostConfig driver = { 0 };
        _cleanup_(claim_freep) Claim *claim = NULL;
        Watcher watcher = { .fixture = fixture };

        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, "host VCPU=8");
        assert_int_equal(fixture_claim(fixture, "guest", "VCPU=1", &claim), 0);
        fixture_close(fixture);
        assert_int_equal(claim_service_new(&watcher.service, &config, &driver), 0);
        assert_int_equal(claim_service_count(watcher.service), 1);

        claim_service_watch(watcher.service, on_claim, &watcher);
        free(run_sql(fixture->path, "ALTER TABLE claim_counts RENAME TO gone"));
        claim_service_notify(watcher.service, CLAIM_EVENT_CHANGED, claim);
        assert_int_equal(watcher.n_told, 1);
        /* the next cycle mends it */
        claim_service_tend(watcher.service);
        assert_int_equal(count_set_aside(fixture), 1);
        assert_non_null(claim_service_get(watcher.service));
        claim_service_free(watcher.service);
}

static uint64_t compare(ClaimService *service, const HostFacts *facts)
{
        Claims *claims = claim_service_get(service);
        const ReconcileInput order = { .facts = facts, .word = RECONCILE_ALONE };
        ReconcileMemory memory = { 0 };
        ReconcileProblems problems = { 0 };
        uint64_t n = 0;

        assert_int_equal(claim_reconcile(service, claims, &order, &memory, &problems, NULL, NULL),
                         0);
        assert_int_equal(claims_count(claims, &n, NULL), 0);
        reconcile_memory_done(&memory);
        reconcile_problems_done(&problems);
        return n;
}

/* Its domain may have gone with the claim: a poll that began before tells of neither. */
static void test_a_poll_is_older_than_the_end_of_a_claim(void **state)
{
        Fixture *fixture = *state;
        const ClaimsConfig config = {
                .path = fixture->path, .host = "host", .node = "host", .has_devices = true
        };
        const HostConfig driver = { 0 };
        ClaimService *service;
        FactsFixture facts;

        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=4096; host_a<host VGPU=3");
        fixture_close(fixture);
        make_facts(&facts);
        facts_guest(&facts, 'g', "1");
        assert_int_equal(claim_service_new(&service, &config, &driver), 0);
        claims_set_facts(claim_service_get(service), &facts.facts);
        assert_int_equal(compare(service, &facts.facts), 1);
        /* That of a resized guest ended because the guest is here. */
        assert_int_equal(claims_release(claim_service_get(service), 1, CLAIM_RESIZED, NULL), 0);
        assert_int_equal(compare(service, &facts.facts), 1);
        assert_int_equal(claims_release(claim_service_get(service), 2, "deleted", NULL), 0);
        assert_int_equal(compare(service, &facts.facts), 0);
        facts.facts.taken_usec = UINT64_MAX / 4;
        assert_int_equal(compare(service, &facts.facts), 1);
        claim_service_free(service);
}

static void test_one_hand_at_a_time(void **state)
{
        const ClaimsConfig config = { .host = "host", .node = "host" };
        const Uuid a = make_uuid("a"), b = make_uuid("b");
        ClaimService *service;

        assert_int_equal(claim_service_new(&service, &config, NULL), 0);
        assert_true(claim_service_take_in_hand(service, &a));
        assert_true(claim_service_take_in_hand(service, &b));
        assert_false(claim_service_take_in_hand(service, &a));
        claim_service_let_go(service, &a);
        assert_false(claim_service_take_in_hand(service, &b));
        assert_true(claim_service_take_in_hand(service, &a));
        claim_service_free(service);
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_one_hand_at_a_time, test_telling_closes_nothing,
               test_a_poll_is_older_than_the_end_of_a_claim)
