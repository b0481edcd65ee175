/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The facts of a comparison over a claim database, and the clock that claims expire by. */

#include "agent/guests/comparison.h"

#include "tests/fixtures/claims.h"
#include "tests/fixtures/host.h"

#define GUEST                                                                \
        "\"domains\": [{\"uuid\": \"11111111-1111-4111-8111-111111111111\"," \
        " \"name\": \"g\", \"state\": \"running\"}]"

static const HostConfig driver;

static Snapshot *make_poll(const char *members, uint64_t begun_usec)
{
        Snapshot *snapshot = host_new(members);

        snapshot->begun_realtime_usec = begun_usec;
        return snapshot;
}

static ClaimService *make_service(const Fixture *fixture)
{
        const ClaimSettings settings = { .driver = &driver };
        ClaimService *service;

        assert_int_equal(claim_service_new(&service, fixture->path, "host", &settings), 0);
        return service;
}

/* Who holds something here, who elsewhere, and who nothing; without a database, nothing. */
static void test_answers(void **state)
{
        Fixture *fixture = *state;
        Uuid uuids[] = { make_uuid("a"), make_uuid("b"), make_uuid("c") };
        const ClaimWanted asked = { .uuids = uuids, .n_uuids = ARRAY_SIZE(uuids), .all = true };
        ClaimService service = { 0 };
        ClaimComparison *comparison = &service.comparison;

        fixture_create(fixture, "host VCPU=8");
        for (int known = 1; known >= 0; known--) {
                Allocations *holding = NULL;

                service.claims = known ? fixture->claims : NULL;
                assert_int_equal(allocations_new(&holding), 0);
                for (size_t i = 0; i < 2; i++) {
                        Uuid provider = make_uuid(i == 0 ? "host" : "other");
                        Consumer *consumer = NULL;

                        assert_int_equal(consumer_new(&consumer, &uuids[i]), 0);
                        assert_int_equal(consumer_set(consumer, &provider, "VCPU", 1), 0);
                        assert_int_equal(allocations_add(holding, consumer), 0);
                }
                claim_service_answer(&service, &asked, holding);
                assert_int_equal(comparison->n_answers, known ? ARRAY_SIZE(uuids) : 0);
                for (size_t i = 0; i < comparison->n_answers; i++) {
                        const PictureConsumer *answer = &comparison->answers[i];

                        assert_int_equal(answer->here, uuid_equal(&answer->consumer, &uuids[0]));
                        assert_int_equal(answer->holding != NULL,
                                         !uuid_equal(&answer->consumer, &uuids[2]));
                        assert_true(i == 0 ||
                                    uuid_order(&answer[-1].consumer, &answer->consumer) < 0);
                }
                assert_int_equal(comparison->complete, known);
        }
        allocations_free(comparison->holding);
        free(comparison->answers);
}

/* Answers count for one comparison alone. A poll from before capacity was wanted does not end that,
 * and a comparison that asks first stays due. */
static void test_ends(void **state)
{
        static const struct {
                uint64_t taken_usec;
                bool asked, due, urgent_after;
        } cases[] = {
                { 9, false, false, true },
                { 10, false, false, false },
                { 10, true, true, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *poll =
                        make_poll(cases[i].asked ? GUEST : "", cases[i].taken_usec);
                _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host VCPU=8");
                ClaimService *service = make_service(*state);
                const ClaimWanted nobody = { 0 };
                ClaimWanted wanted = { 0 };
                Allocations *holding;

                service->settings.with_placement = false;
                assert_int_equal(allocations_new(&holding), 0);
                claim_service_set_snapshot(service, poll);
                claim_service_set_tree(service, tree);
                service->comparison.urgent_usec = 10;
                claim_service_answer(service, &nobody, holding);
                claim_service_reconcile(service, RECONCILE_CAN_ASK, &wanted);
                assert_int_equal(wanted.n_uuids, cases[i].asked);
                assert_int_equal(service->comparison.is_due, cases[i].due);
                assert_null(service->comparison.holding);
                assert_int_equal(service->comparison.urgent_usec, cases[i].urgent_after ? 10 : 0);
                claim_wanted_done(&wanted);
                claim_service_free(service);
        }
}

/* Guests can be newer than devices; claims that were touched since the poll of the devices are
 * remembered. */
static void test_polls(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *first = make_poll(GUEST, 10);
        _cleanup_(snapshot_unrefp) Snapshot *second = make_poll("", UINT64_MAX / 2);
        ClaimService *service = make_service(*state);

        assert_null(service->facts);
        claim_service_set_guests(service, second); /* before the first poll of all: nothing */
        assert_null(service->facts);
        claim_service_touch(service, 1);
        service->comparison.touched[0].when_usec = 5;
        claim_service_touch(service, 2);
        claim_service_set_snapshot(service, first);
        assert_int_equal(service->facts->n_domains, 1);
        assert_int_equal(service->comparison.n_touched, 1);
        assert_int_equal(service->comparison.touched[0].claim_id, 2);

        claim_service_set_guests(service, second);
        assert_int_equal(service->facts->n_domains, 0);
        assert_int_equal(service->comparison.n_touched, 1);
        claim_service_set_snapshot(service, second);
        assert_int_equal(service->comparison.n_touched, 0);
        claim_service_free(service);
}

#define SEC  USEC_PER_SEC
#define YEAR (365 * 86400 * SEC)
#define NOW  (50 * YEAR)

static void test_jumps(void **state)
{
        static const struct {
                const char *about;
                int64_t real, boot; /* that went by between two looks, by the one and the other */
                int64_t by;
        } cases[] = {
                { "nothing", 60 * SEC, 60 * SEC, 0 },
                { "corrected a bit", 69 * SEC, 60 * SEC, 0 },
                { "corrected a bit back", 51 * SEC, 60 * SEC, 0 },
                { "a sleep of a day", 86400 * SEC, 86400 * SEC, 0 },
                { "a year forward", YEAR + 60 * SEC, 60 * SEC, YEAR },
                { "a year back", 60 * SEC - (int64_t)YEAR, 60 * SEC, -(int64_t)YEAR },
                { "ten seconds", 70 * SEC, 60 * SEC, 10 * SEC },
                { "no time at all", 0, 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClockWatch watch = { 0 };

                assert_int_equal(clock_watch_look(&watch, NOW, SEC).by_usec, 0);
                if (clock_watch_look(&watch, NOW + (uint64_t)cases[i].real,
                                     SEC + (uint64_t)cases[i].boot)
                            .by_usec != cases[i].by)
                        fail_msg("%s", cases[i].about);
                /* told once */
                assert_int_equal(clock_watch_look(&watch, NOW + (uint64_t)cases[i].real + SEC,
                                                  SEC + (uint64_t)cases[i].boot + SEC)
                                         .by_usec,
                                 0);
        }
}

static void test_which_moments_move(void **state)
{
        static const struct {
                int64_t by;
                int64_t at; /* after NOW, when the clock was looked at; a minute has passed */
                bool before;
        } cases[] = {
                { YEAR, -100 * (int64_t)SEC, true },
                { YEAR, 30 * SEC, true },
                { YEAR, YEAR + 30 * SEC, false },
                { -(int64_t)YEAR, 30 * SEC, true },
                { -(int64_t)YEAR, -(int64_t)YEAR + 30 * (int64_t)SEC, false },
                { -(int64_t)YEAR, -2 * (int64_t)YEAR, true },
                { -3600 * (int64_t)SEC, 0, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClockWatch watch = { NOW, SEC };
                const ClockJump jump =
                        clock_watch_look(&watch, NOW + 60 * SEC + (uint64_t)cases[i].by, 61 * SEC);
                uint64_t at = NOW + (uint64_t)cases[i].at;

                assert_int_equal(jump.by_usec, cases[i].by);
                assert_int_equal(clock_jump_is_before(&jump, at), cases[i].before);
                assert_int_equal(clock_jump_move(&jump, at), at + (uint64_t)cases[i].by);
        }
}

static void test_ends_of_time(void **state)
{
        const ClockJump forward = { .by_usec = INT64_MAX }, back = { .by_usec = -5 };

        assert_int_equal(clock_jump_move(&forward, 10), INT64_MAX);
        assert_int_equal(clock_jump_move(&forward, UINT64_MAX), INT64_MAX);
        assert_int_equal(clock_jump_move(&back, 3), 1);
        assert_int_equal(clock_jump_move(&back, 5), 1);
}

/* A clock that is set moves what was touched and since when guests are missed. */
static void test_a_clock_that_is_set_moves_times(void **state)
{
        ClaimService *service = make_service(*state);
        ClaimComparison *comparison = &service->comparison;
        uint64_t touched_usec;

        claim_service_touch(service, 1);
        touched_usec = comparison->touched[0].when_usec;
        comparison->memory.items = calloc(1, sizeof(ReconcileMissing));
        comparison->memory.items[0] = (ReconcileMissing){ .claim_id = 1, .since_usec = 2 * NOW };
        comparison->memory.n_items = comparison->memory.n_allocated = 1;
        claim_service_reconcile(service, RECONCILE_ALONE, NULL);
        assert_int_equal(comparison->touched[0].when_usec, touched_usec);
        comparison->clock.real_usec -= YEAR; /* a year forward */
        claim_service_reconcile(service, RECONCILE_ALONE, NULL);
        assert_in_range(comparison->touched[0].when_usec, touched_usec + YEAR - SEC,
                        touched_usec + YEAR);
        assert_in_range(comparison->memory.items[0].since_usec, 2 * NOW + YEAR - SEC,
                        2 * NOW + YEAR);
        assert_int_equal(comparison->memory.items[0].asked_usec, 0);
        claim_service_free(service);
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_answers, test_ends, test_polls, test_jumps,
               test_which_moments_move, test_ends_of_time, test_a_clock_that_is_set_moves_times)
