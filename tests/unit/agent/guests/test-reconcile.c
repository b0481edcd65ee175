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

static bool unread; /* look() finds a database that is unread */

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
                                       .unread = unread,
                                       .answers = answer,
                                       .n_answers = answer ? 1 : 0 };
        ClaimService service = { .claims = fixture->claims,
                                 .comparison = { .problems = *problems },
                                 .watch = on_event };
        _cleanup_(claim_reconcile_freep) ClaimReconcile *run = NULL;
        int r;

        assert_int_equal(claim_reconcile_new(&run), 0);
        do
                r = claim_reconcile(run, &service, &order, wanted, NULL);
        while (r >= CLAIM_RECONCILE_MORE);
        *problems = service.comparison.problems;
        reconcile_memory_done(&service.comparison.memory);
        free(service.comparison.recent);
        return r;
}

/* Makes a claim of guest "g". */
static int64_t make_claim_of(Fixture *fixture, const char *resources, ClaimWriteState write_state,
                             bool confirmed)
{
        const ClaimPlacing placing = { .write_state = write_state };
        ClaimRequest request = { .consumer = make_guest('g'), .consumer_type = CLAIM_TYPE_GUEST };
        _cleanup_(claim_freep) Claim *claim = NULL;

        make_request(&request.resources, resources);
        assert_int_equal(claims_claim(fixture->claims, &request, &placing, &claim, NULL, NULL), 0);
        resource_request_done(&request.resources);
        if (confirmed)
                assert_int_equal(claims_confirm(fixture->claims, claim->id, NULL), 0);
        return claim->id;
}

static int64_t make_claim(Fixture *fixture, ClaimWriteState write_state, bool confirmed)
{
        return make_claim_of(fixture, "VCPU=2,MEMORY_MB=512", write_state, confirmed);
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
                bool set_back; /* the clock was set back after the end */
        } steps[] = {
                { NULL, false, 1, false },
                /* The claim of a resized guest ended because the guest is here. */
                { CLAIM_RESIZED, false, 1, false },
                { "deleted", false, 0, false },
                { NULL, false, 1, true },
                { "deleted", false, 0, false },
                { NULL, true, 1, false },
        };
        Fixture *fixture = *state;
        ReconcileProblems problems = { 0 };
        FactsFixture facts;
        int64_t id = 0; /* the last claim */

        fixture_create(fixture, HOST);
        make_facts(&facts);
        facts_guest(&facts, 'g', "");
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                uint64_t n, n_before;

                assert_int_equal(claims_count(fixture->claims, &n_before, NULL), 0);
                if (steps[i].reason)
                        assert_int_equal(claims_release(fixture->claims, id, steps[i].reason, NULL),
                                         0);
                if (steps[i].later)
                        facts.facts.taken_usec = UINT64_MAX / 4;
                if (steps[i].set_back)
                        free(run_sql(fixture->path, "UPDATE events SET usec = usec * 2"));
                assert_int_equal(
                        look(fixture, &facts, NULL, RECONCILE_NO_PLACEMENT, &problems, NULL), 0);
                assert_int_equal(claims_count(fixture->claims, &n, NULL), 0);
                assert_int_equal(n, steps[i].n_claims);
                id += n > 0 && (n_before == 0 || steps[i].reason);
        }
        reconcile_problems_done(&problems);
}

/* A migration took the claim of the guest over. The domain can be gone with that claim, too. */
static void test_a_poll_is_older_than_the_end_of_a_migrations_claim(void **state)
{
        const Uuid guest = make_guest('g'), migration = make_guest('m');
        const ClaimReported reported = { .generation = 1 };
        Fixture *fixture = *state;
        ReconcileProblems problems = { 0 };
        FactsFixture facts;
        ClaimMove move;
        int64_t id;

        trace[0] = '\0';
        fixture_create(fixture, HOST);
        make_facts(&facts);
        facts_guest(&facts, 'g', "");
        id = make_claim(fixture, CLAIM_WRITE_NONE, true);
        assert_int_equal(
                claims_begin_move(fixture->claims, &guest, &migration, "MIGRATION", &move, NULL),
                0);
        assert_int_equal(claims_end_move(fixture->claims, &move, &reported, true, NULL), 0);
        claim_move_done(&move);
        assert_int_equal(claims_release(fixture->claims, id, "migrated", NULL), 0);
        assert_int_equal(look(fixture, &facts, NULL, RECONCILE_NO_PLACEMENT, &problems, NULL), 0);
        assert_string_equal(trace, "");
        facts.facts.taken_usec = UINT64_MAX / 4;
        assert_int_equal(look(fixture, &facts, NULL, RECONCILE_NO_PLACEMENT, &problems, NULL), 0);
        assert_string_equal(trace, "+");
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

/* Returns whether a comparison without a disagreement logs the end of those of before. */
static bool logs_the_end(const Fixture *fixture, const char *const before[2], bool is_unread)
{
        const Uuid guest = make_guest('g');
        int saved = dup(STDERR_FILENO);
        FILE *file = tmpfile();
        ReconcileProblems problems = { 0 };
        FactsFixture facts;
        char text[1000] = "";

        make_late_facts(&facts);
        for (size_t i = 0; i < 2 && before[i]; i++)
                assert_int_equal(reconcile_add_problem(&problems, &guest, 0, "%s", before[i]), 0);
        unread = is_unread;
        assert_true(file && saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
        assert_int_equal(look(fixture, &facts, NULL, RECONCILE_NO_READS, &problems, NULL), 0);
        assert_true(dup2(saved, STDERR_FILENO) >= 0);
        assert_int_equal(problems.n_items, is_unread);
        rewind(file);
        (void)fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        close(saved);
        unread = false;
        reconcile_problems_done(&problems);
        return strstr(text, "Claims and guests agree again.");
}

/* An unread database is no disagreement. */
static void test_the_end_of_disagreements(void **state)
{
        static const struct {
                const char *before[2];
                bool unread, ends;
        } rows[] = {
                { { "a", "b" }, false, true },
                { { "a", RECONCILE_UNREAD }, true, true },
                { { "a", RECONCILE_UNREAD }, false, true },
                { { RECONCILE_UNREAD }, true, false },
                { { RECONCILE_UNREAD }, false, false },
        };
        Fixture *fixture = *state;

        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, HOST);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (logs_the_end(fixture, rows[i].before, rows[i].unread) != rows[i].ends)
                        fail_msg("row %zu", i);
}

/* A claim without devices gets the only mdev of its guest, and lacks another one. The watcher
 * receives the change once, and the problem stays. */
static void test_check_with_a_change_and_a_problem(void **state)
{
        Fixture *fixture = *state;
        ReconcileProblems problems = { 0 };
        FactsFixture facts;

        trace[0] = '\0';
        make_late_facts(&facts);
        facts_guest(&facts, 'g', "3");
        fixture_create(fixture, HOST);
        (void)make_claim_of(fixture, "VCPU=2,MEMORY_MB=512,VGPU=2", CLAIM_WRITE_NONE, true);
        claims_set_facts(fixture->claims, &facts.facts);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(
                        look(fixture, &facts, NULL, RECONCILE_NO_PLACEMENT, &problems, NULL), 0);
                assert_string_equal(trace, "~");
                assert_int_equal(problems.n_items, 1);
        }
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
        Uuid completed;
        int64_t id;

        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, HOST);
        id = make_claim(fixture, CLAIM_WRITE_UNSENT, false);
        assert_int_equal(consumer_new(&holding, &guest), 0);
        assert_int_equal(consumer_set(holding, &host, "VCPU", 2), 0);
        assert_int_equal(claim_complete(fixture->claims, id, holding, &completed, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_confirm(fixture->claims, id, NULL), 0);
        assert_int_equal(claim_complete(fixture->claims, id, NULL, &completed, NULL), 0);
        assert_write_state(fixture, id, CLAIM_WRITE_UNSENT);
        assert_int_equal(claim_complete(fixture->claims, id, holding, &completed, NULL), 0);
        assert_write_state(fixture, id, CLAIM_WRITE_NONE);
}

/* Number of guests whose comparison takes several turns. */
#define N_GUESTS 600

typedef struct Crowd {
        Fixture *fixture;
        HostDomain domains[N_GUESTS];
        HostFacts facts;
        ClaimService service;
        ConsumerRead answers[N_GUESTS]; /* without holdings */
        bool started_only;
        unsigned n_turns; /* turns of the last comparison */
} Crowd;

/* Returns the uuid of a guest; the order of the uuids is that of the guests. */
static Uuid crowd_uuid(size_t i)
{
        char text[40];
        Uuid uuid;

        snprintf(text, sizeof(text), "%08zx-2222-4333-8444-555555555500", i + 1);
        assert_int_equal(uuid_from_text(text, &uuid), 0);
        return uuid;
}

static void crowd_open(Crowd *crowd, Fixture *fixture)
{
        *crowd = (Crowd){ .fixture = fixture };
        for (size_t i = 0; i < N_GUESTS; i++)
                crowd->domains[i] = (HostDomain){ .uuid = crowd_uuid(i),
                                                  .name = "g",
                                                  .running = true,
                                                  .vcpus = 1,
                                                  .memory_mb = 1 };
        crowd->facts = (HostFacts){ .domains = crowd->domains,
                                    .n_domains = N_GUESTS,
                                    .taken_usec = UINT64_MAX / 4 };
        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, "host VCPU=1000 MEMORY_MB=4096");
        claims_set_facts(fixture->claims, &crowd->facts);
        crowd->service.claims = fixture->claims;
}

static void crowd_done(Crowd *crowd)
{
        assert_store_sane(crowd->fixture->path);
        reconcile_problems_done(&crowd->service.comparison.problems);
        reconcile_memory_done(&crowd->service.comparison.memory);
        free(crowd->service.comparison.recent);
        fixture_close(crowd->fixture);
        assert_int_equal(unlink(crowd->fixture->path), 0);
}

static uint64_t crowd_count(const Crowd *crowd)
{
        uint64_t n;

        assert_int_equal(claims_count(crowd->fixture->claims, &n, NULL), 0);
        return n;
}

/* Compares with change (or NULL) after the first turn that has acted, and before its last one. */
static void crowd_compare(Crowd *crowd, void (*change)(Crowd *crowd))
{
        ReconcileInput order = { .facts = &crowd->facts,
                                 .expiry_usec = 1,
                                 .access = RECONCILE_NO_PLACEMENT,
                                 .unread = claims_is_unread(crowd->service.claims),
                                 .complete = true,
                                 .started_only = crowd->started_only,
                                 .answers = crowd->answers,
                                 .n_answers = crowd->started_only ? N_GUESTS : 0,
                                 .recent = crowd->service.comparison.recent,
                                 .n_recent = crowd->service.comparison.n_recent };
        _cleanup_(claim_reconcile_freep) ClaimReconcile *run = NULL;
        uint64_t before = crowd_count(crowd);
        int r;

        crowd->n_turns = 0;
        assert_int_equal(claim_reconcile_new(&run), 0);
        while ((r = claim_reconcile(run, &crowd->service, &order, NULL, NULL)) >=
               CLAIM_RECONCILE_MORE) {
                crowd->n_turns++;
                if (!change || crowd_count(crowd) == before)
                        continue;
                assert_int_equal(r, CLAIM_RECONCILE_MORE);
                change(crowd);
                change = NULL;
                order.recent = crowd->service.comparison.recent;
                order.n_recent = crowd->service.comparison.n_recent;
        }
        assert_int_equal(r, 0);
        assert_null(change);
}

/* The last guest gets a claim from a caller, the last but one is gone, and the one before it is
 * gone and has another guest at its place. */
static void change_guests(Crowd *crowd)
{
        ClaimRequest request = { .consumer = crowd_uuid(N_GUESTS - 1) };
        _cleanup_(claim_freep) Claim *claim = NULL;

        assert_true(crowd_count(crowd) < N_GUESTS - 3);
        make_request(&request.resources, "VCPU=1,MEMORY_MB=1");
        assert_int_equal(claims_claim(crowd->fixture->claims, &request, NULL, &claim, NULL, NULL),
                         0);
        resource_request_done(&request.resources);
        crowd->domains[N_GUESTS - 2] = crowd->domains[N_GUESTS - 1];
        crowd->domains[N_GUESTS - 3].uuid = crowd_uuid(N_GUESTS);
        crowd->facts.n_domains = N_GUESTS - 1;
}

/* Guests are adopted in several turns. Calls and polls in between are respected: no guest gets two
 * claims, and none that is gone gets one. The next comparison adopts the new guest. */
static void test_adopts_in_turns(void **state)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Crowd crowd;

        crowd_open(&crowd, *state);
        assert_true(claims_is_unread(crowd.fixture->claims));
        crowd_compare(&crowd, change_guests);
        /* Consumers of Placement can be among the actions that were left out. */
        assert_true(claims_is_unread(crowd.fixture->claims));
        assert_int_equal(crowd_count(&crowd), N_GUESTS - 2);
        assert_int_equal(crowd.service.comparison.problems.n_items, 0);
        assert_true(crowd.service.comparison.is_due);
        for (size_t i = N_GUESTS - 3; i <= N_GUESTS; i++) {
                const Uuid uuid = crowd_uuid(i);
                int r = claims_find(crowd.fixture->claims, &uuid, false, &claim, NULL);

                assert_int_equal(r, i == N_GUESTS - 1 ? 0 : CLAIM_E_NOT_FOUND);
                claim = claim_free(claim);
        }
        crowd_compare(&crowd, NULL);
        assert_false(claims_is_unread(crowd.fixture->claims));
        assert_int_equal(crowd_count(&crowd), N_GUESTS - 1);
        crowd_done(&crowd);
}

/* A new database, and guests that claim when they start. Those that are off and were placed are
 * adopted in later turns, too. */
static void test_adopts_guests_that_are_off_in_turns(void **state)
{
        Crowd crowd;

        crowd_open(&crowd, *state);
        crowd.started_only = true;
        for (size_t i = 0; i < N_GUESTS; i++) {
                crowd.domains[i].running = false;
                crowd.answers[i] = (ConsumerRead){ .consumer = crowd_uuid(i), .here = true };
        }
        crowd_compare(&crowd, NULL);
        assert_true(crowd.n_turns > 1);
        assert_int_equal(crowd_count(&crowd), N_GUESTS);
        assert_false(claims_is_unread(crowd.fixture->claims));
        crowd_done(&crowd);
}

/* A caller moves on with the last claim. */
static void change_claim(Crowd *crowd)
{
        const Uuid last = crowd_uuid(N_GUESTS - 1);
        _cleanup_(claim_freep) Claim *claim = NULL;

        assert_int_equal(claims_find(crowd->fixture->claims, &last, false, &claim, NULL), 0);
        assert_int_equal(claims_set_write_state(crowd->fixture->claims, claim->id, CLAIM_WRITE_NONE,
                                                CLAIM_WRITE_WRITTEN, NULL, NULL),
                         0);
}

/* A claim that changed after the decision is not released by it. */
static void test_releases_in_turns(void **state)
{
        Crowd crowd;

        crowd_open(&crowd, *state);
        crowd_compare(&crowd, NULL);
        assert_int_equal(crowd_count(&crowd), N_GUESTS);
        crowd.facts.n_domains = 0;
        crowd_compare(&crowd, NULL); /* the guests are missing from now on */
        assert_int_equal(crowd_count(&crowd), N_GUESTS);
        crowd.facts.taken_usec += USEC_PER_SEC;
        crowd.service.comparison.is_due = false;
        crowd_compare(&crowd, change_claim);
        assert_int_equal(crowd_count(&crowd), 1);
        assert_true(crowd.service.comparison.is_due);
        crowd_compare(&crowd, NULL); /* the last guest is missing from now on */
        crowd.facts.taken_usec += USEC_PER_SEC;
        crowd_compare(&crowd, NULL);
        assert_int_equal(crowd_count(&crowd), 0);
        crowd_done(&crowd);
}

/* A newer poll shows the last guest. */
static void show_last(Crowd *crowd)
{
        crowd->domains[0] = crowd->domains[N_GUESTS - 1];
        crowd->facts.n_domains = 1;
        crowd->service.n_facts++;
}

/* A caller gets the last claim again. */
static void return_last(Crowd *crowd)
{
        const Uuid last = crowd_uuid(N_GUESTS - 1);
        _cleanup_(claim_freep) Claim *claim = NULL;

        assert_int_equal(claims_find(crowd->fixture->claims, &last, false, &claim, NULL), 0);
        claim_service_touch(&crowd->service, claim->id);
}

/* A release that was decided without a guest is left out if the guest can be there now. */
static void test_release_is_left_out_for_a_guest_that_came(void **state)
{
        static void (*const changes[])(Crowd * crowd) = { show_last, return_last };

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                const Uuid last = crowd_uuid(N_GUESTS - 1);
                _cleanup_(claim_freep) Claim *claim = NULL;
                Crowd crowd;

                crowd_open(&crowd, *state);
                crowd_compare(&crowd, NULL);
                crowd.facts.n_domains = 0;
                crowd_compare(&crowd, NULL); /* the guests are missing from now on */
                crowd.facts.taken_usec += USEC_PER_SEC;
                crowd.service.comparison.is_due = false;
                crowd_compare(&crowd, changes[i]);
                assert_int_equal(claims_find(crowd.fixture->claims, &last, false, &claim, NULL), 0);
                assert_true(crowd.service.comparison.is_due);
                crowd_done(&crowd);
        }
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_acts, test_wanted, test_complete,
               test_the_end_of_disagreements, test_check_with_a_change_and_a_problem,
               test_adopts_in_turns, test_adopts_guests_that_are_off_in_turns,
               test_releases_in_turns, test_release_is_left_out_for_a_guest_that_came,
               test_a_poll_is_older_than_the_end_of_a_claim,
               test_a_poll_is_older_than_the_end_of_a_migrations_claim)
