/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the actions that claims/reconcile.h decides, on a claim database. */

#include "agent/guests/reconcile.h"

#include "claims/claims.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"
#include "tests/fixtures/trace.h"

#define HOST "host VCPU=8 MEMORY_MB=4096; host_a<host VGPU=3"

static void on_event(ClaimEvent event, const Claim *claim, void *userdata)
{
        note(event == CLAIM_EVENT_ADDED ? '+' : event == CLAIM_EVENT_CHANGED ? '~' : '-');
}

/* Makes facts of a poll at a late time, after the expiry of claims. */
static void make_late_facts(FactsFixture *ret)
{
        make_facts(ret);
        ret->facts.taken_usec = UINT64_MAX / 4;
}

static int look(const Fixture *fixture, const FactsFixture *facts, const ConsumerRead *answer,
                ReconcileAccess access, ReconcileProblems *problems, ClaimWanted *wanted)
{
        const ReconcileInput order = { .facts = &facts->facts,
                                       .expiry_usec = 1,
                                       .access = access,
                                       .answers = answer,
                                       .n_answers = answer ? 1 : 0 };
        ClaimService service = { .claims = fixture->claims,
                                 .comparison = { .problems = *problems },
                                 .watch = on_event };
        int r = claim_reconcile(&service, &order, wanted, NULL);

        *problems = service.comparison.problems;
        reconcile_memory_done(&service.comparison.memory);
        free(service.comparison.recent);
        return r;
}

/* Makes a claim of guest "g". */
static int64_t make_claim(Fixture *fixture, ClaimWriteState write_state, bool confirmed)
{
        const ClaimPlacing placing = { .write_state = write_state };
        ClaimRequest request = { .consumer = make_guest('g'), .consumer_type = CLAIM_TYPE_GUEST };
        _cleanup_(claim_freep) Claim *claim = NULL;

        make_request(&request.resources, "VCPU=2,MEMORY_MB=512");
        assert_int_equal(claims_claim(fixture->claims, &request, &placing, &claim, NULL, NULL), 0);
        resource_request_done(&request.resources);
        if (confirmed)
                assert_int_equal(claims_confirm(fixture->claims, claim->id, NULL), 0);
        return claim->id;
}

/* Checks that the watcher receives each action, and that the remaining problems are listed. */
static void test_acts(void **state)
{
        static const struct {
                const char *about;
                bool claim, confirmed;
                uint64_t vcpus; /* CPUs of the guest; 0: there is none */
                const char *told;
                size_t n_problems;
        } cases[] = {
                { "no guest", false, false, 0, "", 0 },
                { "a guest without a claim", false, false, 2, "+", 0 },
                { "more than the host has", false, false, 9, "+", 2 },
                { "its guest came", true, false, 2, "~", 0 },
                { "both", true, true, 2, "", 0 },
                { "it disagrees", true, true, 3, "", 1 },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ReconcileProblems problems = { 0 };
                FactsFixture facts;

                trace[0] = '\0';
                make_late_facts(&facts);
                if (cases[i].vcpus > 0)
                        facts_guest(&facts, 'g', "")->vcpus = cases[i].vcpus;
                assert_true(fixture_open(fixture) >= 0);
                fixture_set_host(fixture, HOST);
                if (cases[i].claim)
                        (void)make_claim(fixture, CLAIM_WRITE_NONE, cases[i].confirmed);
                assert_int_equal(
                        look(fixture, &facts, NULL, RECONCILE_NO_PLACEMENT, &problems, NULL), 0);
                if (strcmp(trace, cases[i].told) != 0 || problems.n_items != cases[i].n_problems)
                        fail_msg("%s: \"%s\", problems: %zu: %s", cases[i].about, trace,
                                 problems.n_items,
                                 problems.n_items > 0 ? problems.items[0].text : "");
                reconcile_problems_done(&problems);
                fixture_close(fixture);
                assert_int_equal(unlink(fixture->path), 0);
        }
}

/* The domain can be gone with its claim. A poll that began before shows neither. */
static void test_a_poll_is_older_than_the_end_of_a_claim(void **state)
{
        static const struct {
                const char *reason; /* reason of the end of the earlier claim; NULL: none ended */
                bool later;         /* the poll began after the end */
                uint64_t n_claims;
        } steps[] = {
                { NULL, false, 1 },
                /* The claim of a resized guest ended because the guest is here. */
                { CLAIM_RESIZED, false, 1 },
                { "deleted", false, 0 },
                { NULL, true, 1 },
        };
        Fixture *fixture = *state;
        ReconcileProblems problems = { 0 };
        FactsFixture facts;

        fixture_create(fixture, HOST);
        make_facts(&facts);
        facts_guest(&facts, 'g', "");
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                uint64_t n;

                if (steps[i].reason)
                        assert_int_equal(
                                claims_release(fixture->claims, (int64_t)i, steps[i].reason, NULL),
                                0);
                if (steps[i].later)
                        facts.facts.taken_usec = UINT64_MAX / 4;
                assert_int_equal(
                        look(fixture, &facts, NULL, RECONCILE_NO_PLACEMENT, &problems, NULL), 0);
                assert_int_equal(claims_count(fixture->claims, &n, NULL), 0);
                assert_int_equal(n, steps[i].n_claims);
        }
        reconcile_problems_done(&problems);
}

/* Actions that need an answer about their consumer are left to the second call. */
static void test_wanted(void **state)
{
        const ConsumerRead nothing = { .consumer = make_guest('g') };
        Fixture *fixture = *state;
        ReconcileProblems problems = { 0 };
        ClaimWanted wanted = { 0 };
        FactsFixture facts;

        trace[0] = '\0';
        make_late_facts(&facts);
        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, HOST);
        (void)make_claim(fixture, CLAIM_WRITE_NONE, false);
        assert_int_equal(reconcile_add_problem(&problems, &nothing.consumer, 0, "of before"), 0);
        assert_int_equal(look(fixture, &facts, NULL, RECONCILE_CAN_READ, &problems, &wanted), 0);
        assert_int_equal(wanted.n_uuids, 1);
        assert_true(uuid_equal(&wanted.uuids[0], &nothing.consumer));
        assert_string_equal(trace, "");
        assert_int_equal(problems.n_items, 1);
        assert_int_equal(look(fixture, &facts, &nothing, RECONCILE_NO_READS, &problems, NULL), 0);
        assert_string_equal(trace, "-");
        assert_int_equal(problems.n_items, 0);
        claim_wanted_done(&wanted);
        reconcile_problems_done(&problems);
}

static void assert_write_state(const Fixture *fixture, int64_t id, ClaimWriteState write_state)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        assert_int_equal(claims_get(fixture->claims, id, &claim, NULL), 0);
        assert_int_equal(claim->write_state, write_state);
}

/* Only the claim of a guest that was seen is completed. If the consumer is placed here, the claim
 * is no pending write any more. */
static void test_complete(void **state)
{
        const Uuid guest = make_guest('g'), host = make_uuid("host");
        _cleanup_(consumer_freep) Consumer *holding = NULL;
        Fixture *fixture = *state;
        int64_t id;

        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, HOST);
        id = make_claim(fixture, CLAIM_WRITE_UNSENT, false);
        assert_int_equal(consumer_new(&holding, &guest), 0);
        assert_int_equal(consumer_set(holding, &host, "VCPU", 2), 0);
        assert_int_equal(claim_complete(fixture->claims, id, holding, NULL), CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_confirm(fixture->claims, id, NULL), 0);
        assert_int_equal(claim_complete(fixture->claims, id, NULL, NULL), 0);
        assert_write_state(fixture, id, CLAIM_WRITE_UNSENT);
        assert_int_equal(claim_complete(fixture->claims, id, holding, NULL), 0);
        assert_write_state(fixture, id, CLAIM_WRITE_NONE);
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_acts, test_wanted, test_complete,
               test_a_poll_is_older_than_the_end_of_a_claim)
