/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What Placement was told of claims, and what is still to be told, in the file. */

#include "claims/claims-placement.h"

#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

static void claim_told(Fixture *fixture, const char *name, ClaimStanding standing,
                       const ClaimTold *told, Claim **ret)
{
        const ClaimPlacing placing = { .standing = standing, .told = *told };
        ClaimRequest request = { .consumer = make_uuid(name), .consumer_type = "INSTANCE" };
        Error error = ERROR_NULL;

        make_request(&request.resources, "VCPU=1");
        if (claims_claim_placed(fixture->claims, &request, &placing, ret, NULL, &error) != 0)
                fail_msg("%s", error.text);
        resource_request_done(&request.resources);
}

static void claim_as(Fixture *fixture, const char *name, ClaimStanding standing, Claim **ret)
{
        const ClaimTold none = { 0 };

        claim_told(fixture, name, standing, &none, ret);
}

static void open_host(Fixture *fixture)
{
        fixture_open(fixture);
        fixture_set_host(fixture, "host VCPU=16; gpu<host VGPU=4");
}

static void test_pending(void **state)
{
        Fixture *fixture = *state;
        ClaimList list = { 0 };
        Claim *claim = NULL;
        int64_t id;

        open_host(fixture);
        claim_as(fixture, "a", CLAIM_STANDING_PENDING, &claim);
        id = claim->id;
        assert_int_equal(claim->state, CLAIM_STATE_PENDING);
        claim_free(claim);
        /* Nobody was promised it yet. */
        assert_int_equal(claims_confirm(fixture->claims, id, NULL), CLAIM_E_NOT_FOUND);
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(claims_list_pending(fixture->claims, &list, NULL), 0);
        assert_int_equal(list.n_claims, 1);
        assert_int_equal(list.claims[0]->id, id);
        claim_list_done(&list);
        assert_int_equal(claims_set_standing(fixture->claims, id, CLAIM_STANDING_PENDING,
                                             CLAIM_STANDING_WRITTEN, NULL, NULL),
                         0);
        assert_int_equal(claims_set_standing(fixture->claims, id, CLAIM_STANDING_PENDING,
                                             CLAIM_STANDING_WRITTEN, NULL, &fixture->error),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_confirm(fixture->claims, id, NULL), 0);
        assert_int_equal(claims_get(fixture->claims, id, &claim, NULL), 0);
        assert_int_equal(claim->state, CLAIM_STATE_CONFIRMED);
        claim_free(claim);
}

static void assert_debts(Fixture *fixture, uint64_t claims, uint64_t departures, uint64_t handovers)
{
        ClaimDebts debts;

        assert_int_equal(claims_count_debts(fixture->claims, &debts, NULL), 0);
        assert_int_equal(debts.n_claims, claims);
        assert_int_equal(debts.n_departures, departures);
        assert_int_equal(debts.n_handovers, handovers);
        assert_int_equal(claim_debts_sum(&debts), claims + departures + handovers);
}

static void test_debts_are_counted(void **state)
{
        static const char *const names[_CLAIM_STANDING_MAX] = { "a", "b", "c", "d", "e" };
        Fixture *fixture = *state;
        Uuid written = make_uuid("c"), other = make_uuid("f");
        ClaimHandover handover;

        open_host(fixture);
        assert_debts(fixture, 0, 0, 0);
        for (ClaimStanding standing = 0; standing < _CLAIM_STANDING_MAX; standing++) {
                Claim *claim = NULL;

                claim_as(fixture, names[standing], standing, &claim);
                claim_free(claim);
        }
        assert_debts(fixture, 2, 0, 0); /* owed and sent */
        assert_int_equal(claims_begin_handover(fixture->claims, &written, &other, "MIGRATION",
                                               &handover, NULL),
                         0);
        assert_debts(fixture, 2, 0, 1);
        claim_handover_done(&handover);
        for (int64_t id = 1; id <= _CLAIM_STANDING_MAX; id++)
                assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
        assert_debts(fixture, 0, 3, 1);
}

/* Nothing was written of it: it goes without a trace in Placement's books, and only while it is
 * pending. */
static void test_withdrawn(void **state)
{
        static const ClaimStanding others[] = { CLAIM_STANDING_NONE, CLAIM_STANDING_WRITTEN };
        Fixture *fixture = *state;
        ClaimDeparture departure;
        Claim *claim = NULL;
        int64_t id;

        open_host(fixture);
        claim_as(fixture, "a", CLAIM_STANDING_PENDING, &claim);
        id = claim->id;
        claim_free(claim);
        assert_int_equal(claims_withdraw(fixture->claims, id, "refused", NULL), 0);
        assert_int_equal(claims_next_departure(fixture->claims, 0, NULL, &departure, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_get(fixture->claims, id, &claim, NULL), 0);
        assert_int_equal(claim->state, CLAIM_STATE_RELEASED);
        assert_string_equal(claim->end_reason, "refused");
        claim_free(claim);
        assert_int_equal(claims_withdraw(fixture->claims, id, "", NULL), CLAIM_E_NOT_FOUND);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                claim_as(fixture, "b", others[i], &claim);
                assert_int_equal(claims_withdraw(fixture->claims, claim->id, "", NULL),
                                 CLAIM_E_NOT_FOUND);
                assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
                claim_free(claim);
        }
}

/* Whatever ends a claim: what Placement may have of it is remembered in the same transaction. */
static void test_departures(void **state)
{
        static const struct {
                ClaimStanding standing;
                bool departs;
        } cases[] = {
                { CLAIM_STANDING_NONE, false },   { CLAIM_STANDING_OWED, false },
                { CLAIM_STANDING_SENT, true },    { CLAIM_STANDING_PENDING, true },
                { CLAIM_STANDING_WRITTEN, true },
        };
        Fixture *fixture = *state;
        ClaimDeparture departure;

        open_host(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(cases) * 2; i++) {
                bool departs = cases[i / 2].departs;
                Uuid consumer = make_uuid("a"), other = make_uuid("b");
                Claim *claim = NULL;
                uint64_t n;

                claim_as(fixture, "a", cases[i / 2].standing, &claim);
                if (i % 2 == 0)
                        assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
                else
                        assert_int_equal(claims_expire(fixture->claims, INT64_MAX, &n, NULL), 0);
                assert_int_equal(
                        claims_next_departure(fixture->claims, 0, &other, &departure, NULL),
                        CLAIM_E_NOT_FOUND);
                assert_int_equal(
                        claims_next_departure(fixture->claims, 0, &consumer, &departure, NULL),
                        departs ? 0 : CLAIM_E_NOT_FOUND);
                if (departs) {
                        assert_int_equal(departure.claim, claim->id);
                        assert_int_equal(departure.unsure,
                                         cases[i / 2].standing != CLAIM_STANDING_WRITTEN);
                        assert_true(uuid_equal(&departure.consumer, &consumer));
                        assert_int_equal(claims_next_departure(fixture->claims, departure.id, NULL,
                                                               &departure, NULL),
                                         CLAIM_E_NOT_FOUND);
                        assert_int_equal(claims_end_departure(fixture->claims, departure.id, NULL),
                                         0);
                }
                claim_free(claim);
        }
        assert_int_equal(claims_next_departure(fixture->claims, 0, NULL, &departure, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_store_sane(fixture->path);
}

static void hand_over(Fixture *fixture, const Uuid *from, const Uuid *to)
{
        const ClaimTold told = { .generation = 3,
                                 .elsewhere = make_uuid("elsewhere"),
                                 .until_sec = 1700000000 };
        ClaimHandover handover;

        assert_int_equal(
                claims_begin_handover(fixture->claims, from, to, "MIGRATION", &handover, NULL), 0);
        assert_int_equal(claims_end_handover(fixture->claims, &handover, &told, false, NULL), 0);
        claim_handover_done(&handover);
}

static void test_handover(void **state)
{
        Uuid a = make_uuid("a"), b = make_uuid("b"), c = make_uuid("c");
        Fixture *fixture = *state;
        ClaimHandover handover = { 0 }, read = { 0 };
        const ClaimTold told = { .generation = 3,
                                 .elsewhere = make_uuid("elsewhere"),
                                 .until_sec = 1700000000 };
        Claim *claim = NULL;
        int64_t id;

        open_host(fixture);
        assert_int_equal(claims_begin_handover(fixture->claims, &a, &b, "MIGRATION", &handover,
                                               &fixture->error),
                         CLAIM_E_NOT_FOUND);
        claim_as(fixture, "a", CLAIM_STANDING_WRITTEN, &claim);
        id = claim->id;
        claim_free(claim);
        assert_int_equal(
                claims_begin_handover(fixture->claims, &a, &b, "MIGRATION", &handover, NULL), 0);
        assert_int_equal(
                claims_begin_handover(fixture->claims, &a, &c, "MIGRATION", &read, &fixture->error),
                CLAIM_E_CONFLICT);
        /* It survives, and ends as it was. */
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(claims_next_handover(fixture->claims, 0, &read, NULL), 0);
        assert_true(uuid_equal(&read.from, &a) && uuid_equal(&read.to, &b));
        assert_string_equal(read.to_type, "MIGRATION");
        assert_int_equal(claims_end_handover(fixture->claims, &read, NULL, false, NULL), 0);
        claim_handover_done(&read);
        assert_int_equal(claims_next_handover(fixture->claims, 0, &read, NULL), CLAIM_E_NOT_FOUND);
        claim_handover_done(&handover);

        assert_int_equal(
                claims_begin_handover(fixture->claims, &a, &b, "MIGRATION", &handover, NULL), 0);
        assert_int_equal(claims_end_handover(fixture->claims, &handover, &told, false, NULL), 0);
        claim_handover_done(&handover);
        assert_int_equal(claims_find(fixture->claims, &a, false, &claim, NULL), CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_find(fixture->claims, &b, false, &claim, NULL), 0);
        assert_int_equal(claim->id, id);
        assert_string_equal(claim->consumer_type, "MIGRATION");
        assert_string_equal(claim->guest.text, a.text);
        assert_int_equal(claim->standing, CLAIM_STANDING_WRITTEN);
        claim_free(claim);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 1);
        /* On its way through other hands, and back. */
        hand_over(fixture, &b, &c);
        assert_int_equal(claims_find(fixture->claims, &c, false, &claim, NULL), 0);
        assert_string_equal(claim->guest.text, a.text);
        claim_free(claim);
        hand_over(fixture, &c, &a);
        assert_int_equal(claims_find(fixture->claims, &a, false, &claim, NULL), 0);
        assert_true(uuid_empty(&claim->guest));
        claim_free(claim);
        hand_over(fixture, &a, &b);
        /* Nobody takes it from who has one. */
        claim_as(fixture, "a", CLAIM_STANDING_NONE, &claim);
        claim_free(claim);
        assert_int_equal(claims_begin_handover(fixture->claims, &b, &a, "INSTANCE", &handover,
                                               &fixture->error),
                         CLAIM_E_CONFLICT);
        assert_store_sane(fixture->path);
}

static void assert_departs(Fixture *fixture, const ClaimTold *told)
{
        ClaimDeparture departure;

        assert_int_equal(claims_next_departure(fixture->claims, 0, NULL, &departure, NULL), 0);
        assert_string_equal(departure.told.elsewhere.text, told->elsewhere.text);
        if (!uuid_empty(&told->elsewhere))
                assert_int_equal(departure.told.until_sec, told->until_sec);
        assert_int_equal(departure.told.generation, uuid_empty(&told->elsewhere)
                                                            ? departure.told.generation
                                                            : told->generation);
        assert_int_equal(claims_end_departure(fixture->claims, departure.id, NULL), 0);
}

/* How Placement had the consumer goes with the claim to its departure, whoever it is told of. */
static void test_told(void **state)
{
        const ClaimTold first = { .generation = -1,
                                  .elsewhere = make_uuid("first"),
                                  .until_sec = 1700000000 },
                        second = { .generation = 4,
                                   .elsewhere = make_uuid("second"),
                                   .until_sec = 1800000000 },
                        none = { 0 };
        static const struct {
                bool second, forget;
        } cases[] = { { false, false }, { true, false }, { true, true } };
        Fixture *fixture = *state;

        open_host(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Claim *claim = NULL;

                claim_told(fixture, "a", CLAIM_STANDING_PENDING, &first, &claim);
                assert_int_equal(claims_set_standing(fixture->claims, claim->id,
                                                     CLAIM_STANDING_PENDING, CLAIM_STANDING_WRITTEN,
                                                     cases[i].second ? &second : NULL, NULL),
                                 0);
                if (cases[i].forget)
                        assert_int_equal(claims_forget_told(fixture->claims, NULL), 0);
                assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
                assert_departs(fixture, cases[i].forget   ? &none
                                        : cases[i].second ? &second
                                                          : &first);
                claim_free(claim);
        }
        assert_store_sane(fixture->path);
}

/* Whoever wrote it at first: after a move of ours it is ours to remove; and what was moved for a
 * claim that ended meanwhile is to be removed at once. */
static void test_handover_is_ours(void **state)
{
        static const struct {
                ClaimStanding standing;
                bool ours, ends;
                ClaimStanding expected;
                bool departs;
        } cases[] = {
                { CLAIM_STANDING_NONE, false, false, CLAIM_STANDING_NONE, false },
                { CLAIM_STANDING_NONE, true, false, CLAIM_STANDING_WRITTEN, true },
                { CLAIM_STANDING_WRITTEN, false, false, CLAIM_STANDING_WRITTEN, true },
                { CLAIM_STANDING_OWED, true, false, CLAIM_STANDING_OWED, false },
                { CLAIM_STANDING_NONE, true, true, CLAIM_STANDING_NONE, true },
                { CLAIM_STANDING_NONE, false, true, CLAIM_STANDING_NONE, false },
        };
        const ClaimTold told = { .generation = 3,
                                 .elsewhere = make_uuid("elsewhere"),
                                 .until_sec = 1700000000 };
        Uuid a = make_uuid("a"), b = make_uuid("b");
        Fixture *fixture = *state;

        open_host(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimHandover handover;
                ClaimDeparture departure;
                Claim *claim = NULL, *moved = NULL;

                claim_as(fixture, "a", cases[i].standing, &claim);
                assert_int_equal(claims_begin_handover(fixture->claims, &a, &b, "MIGRATION",
                                                       &handover, NULL),
                                 0);
                if (cases[i].ends)
                        assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
                assert_int_equal(
                        claims_end_handover(fixture->claims, &handover, &told, cases[i].ours, NULL),
                        0);
                claim_handover_done(&handover);
                if (!cases[i].ends) {
                        assert_int_equal(claims_find(fixture->claims, &b, false, &moved, NULL), 0);
                        assert_int_equal(moved->standing, cases[i].expected);
                        assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
                }
                assert_int_equal(claims_next_departure(fixture->claims, 0, NULL, &departure, NULL),
                                 cases[i].departs ? 0 : CLAIM_E_NOT_FOUND);
                if (cases[i].departs) {
                        assert_true(uuid_equal(&departure.consumer, &b));
                        assert_departs(fixture, &told);
                }
                claim_free(claim);
                claim_free(moved);
        }
        assert_store_sane(fixture->path);
}

/* A scheduler's choice is kept to, with its devices' groups, and survives in the file. */
static void test_placed(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("a") };
        Uuid host = make_uuid("host"), gpu = make_uuid("gpu");
        Fixture *fixture = *state;
        Consumer *holding;
        ClaimPlacing placing;
        Claim *claim = NULL;
        _cleanup_free_ char *text = NULL;
        bool ambiguous = true;

        open_host(fixture);
        make_request(&request.resources, "VCPU=2 _G:VGPU=1");
        assert_int_equal(consumer_new(&holding, &request.consumer), 0);
        assert_int_equal(consumer_set(holding, &host, "VCPU", 2), 0);
        assert_int_equal(consumer_set(holding, &gpu, "VGPU", 2), 0);
        placing = (ClaimPlacing){ .holding = holding };
        assert_int_equal(claims_claim_placed(fixture->claims, &request, &placing, &claim, NULL,
                                             &fixture->error),
                         CLAIM_E_OTHER);
        assert_int_equal(consumer_set(holding, &gpu, "VGPU", 1), 0);
        assert_int_equal(claims_claim_placed(fixture->claims, &request, &placing, &claim,
                                             &ambiguous, &fixture->error),
                         0);
        assert_false(ambiguous);
        text = format_claim(claim);
        assert_int_equal(claim->mappings.n_items, 2);
        assert_string_equal(claim->mappings.items[1].suffix, "_G");
        assert_true(uuid_equal(&claim->mappings.items[1].provider, &gpu));
        assert_non_null(strstr(text, "VGPU=1 on gpu"));
        claim_free(claim);
        consumer_free(holding);
        resource_request_done(&request.resources);
        assert_store_sane(fixture->path);
}

/* Nobody wrote what it gets: a group comes from where it is mapped to, or not at all. */
static void test_mapped_but_not_placed(void **state)
{
        static const struct {
                const char *consumer, *provider, *expected; /* NULL: refused */
        } cases[] = {
                { "a", "gpu2", "VGPU=1 on gpu2" },
                { "b", "gpu1", "VGPU=1 on gpu1" },
                { "c", "gpu1", NULL }, /* full, though the other is not */
                { "d", "host", NULL },
                { "e", "elsewhere", NULL },
        };
        const ClaimPlacing placing = { .standing = CLAIM_STANDING_NONE };
        Fixture *fixture = *state;

        fixture_open(fixture);
        fixture_set_host(fixture, "host VCPU=8; gpu1<host VGPU=1; gpu2<host VGPU=4");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimRequest request = { .consumer = make_uuid(cases[i].consumer) };
                Uuid provider = make_uuid(cases[i].provider);
                _cleanup_free_ char *text = NULL;
                _cleanup_(claim_freep) Claim *claim = NULL;
                int r;

                make_request(&request.resources, "VCPU=1 _G:VGPU=1");
                assert_int_equal(request_mappings_add(&request.mappings, "_G", &provider), 0);
                r = claims_claim_placed(fixture->claims, &request, &placing, &claim, NULL,
                                        &fixture->error);
                if (r != (cases[i].expected ? 0 : CLAIM_E_NO_CAPACITY))
                        fail_msg("%s: %d %s", cases[i].consumer, r, fixture->error.text);
                text = claim ? format_claim(claim) : NULL;
                if (cases[i].expected)
                        assert_non_null(strstr(text, cases[i].expected));
                resource_request_done(&request.resources);
                request_mappings_done(&request.mappings);
        }
        assert_store_sane(fixture->path);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_pending),
                TEST(test_debts_are_counted),
                TEST(test_departures),
                TEST(test_withdrawn),
                TEST(test_handover),
                TEST(test_told),
                TEST(test_handover_is_ours),
                TEST(test_placed),
                TEST(test_mapped_but_not_placed),
        };

        use_vfs_without_sync();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
