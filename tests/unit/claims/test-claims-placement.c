/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Pending writes in the file: which claims were reported to Placement, and which must still be. */

#include "claims/claims.h"

#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

/* Returns the id of the claim. */
static int64_t claim_reported(Fixture *fixture, const char *name, ClaimWriteState write_state,
                              ClaimReported reported)
{
        const ClaimPlacing placing = { .write_state = write_state, .reported = reported };
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (fixture_claim_placed(fixture, name, "VCPU=1", &placing, &claim) != 0)
                fail_msg("%s", fixture->error.text);
        return claim->id;
}

static int64_t claim_as(Fixture *fixture, const char *name, ClaimWriteState write_state)
{
        return claim_reported(fixture, name, write_state, (ClaimReported){ 0 });
}

static void assert_state(Fixture *fixture, int64_t id, ClaimState state, const char *reason)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        assert_int_equal(claims_get(fixture->claims, id, &claim, NULL), 0);
        assert_int_equal(claim->state, state);
        assert_string_equal(claim->end_reason, reason);
}

static void open_host(Fixture *fixture)
{
        fixture_create(fixture, "host VCPU=16; gpu<host VGPU=4");
}

static void test_pending(void **state)
{
        Fixture *fixture = *state;
        ClaimList list = { 0 };
        int64_t id;

        open_host(fixture);
        id = claim_as(fixture, "a", CLAIM_WRITE_UNANSWERED);
        assert_state(fixture, id, CLAIM_STATE_PENDING, "");
        /* Its caller has no answer yet. */
        assert_int_equal(claims_confirm(fixture->claims, id, NULL), CLAIM_E_NOT_FOUND);
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(claims_list(fixture->claims, CLAIMS_PENDING, NULL, &list, NULL), 0);
        assert_int_equal(list.n_claims, 1);
        assert_int_equal(list.claims[0]->id, id);
        claim_list_done(&list);
        assert_int_equal(claims_set_write_state(fixture->claims, id, CLAIM_WRITE_UNANSWERED,
                                                CLAIM_WRITE_WRITTEN, NULL, NULL),
                         0);
        assert_int_equal(claims_set_write_state(fixture->claims, id, CLAIM_WRITE_UNANSWERED,
                                                CLAIM_WRITE_WRITTEN, NULL, &fixture->error),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_confirm(fixture->claims, id, NULL), 0);
        assert_state(fixture, id, CLAIM_STATE_CONFIRMED, "");
}

static void assert_pending_writes(Fixture *fixture, uint64_t claims, uint64_t removals,
                                  uint64_t moves)
{
        PendingWrites pending_writes;

        assert_int_equal(claims_count_pending_writes(fixture->claims, &pending_writes, NULL), 0);
        assert_int_equal(pending_writes.n_writes, claims);
        assert_int_equal(pending_writes.n_removals, removals);
        assert_int_equal(pending_writes.n_moves, moves);
        assert_int_equal(pending_writes_sum(&pending_writes), claims + removals + moves);
}

static void test_pending_writes_are_counted(void **state)
{
        static const char *const names[_CLAIM_WRITE_MAX] = { "a", "b", "c", "d", "e" };
        Fixture *fixture = *state;
        Uuid written = make_uuid("c"), other = make_uuid("f");
        ClaimMove move;

        open_host(fixture);
        assert_pending_writes(fixture, 0, 0, 0);
        for (ClaimWriteState write_state = 0; write_state < _CLAIM_WRITE_MAX; write_state++)
                claim_as(fixture, names[write_state], write_state);
        assert_pending_writes(fixture, 2, 0, 0); /* owed and sent */
        assert_int_equal(
                claims_begin_move(fixture->claims, &written, &other, "MIGRATION", &move, NULL), 0);
        assert_pending_writes(fixture, 2, 0, 1);
        claim_move_done(&move);
        for (int64_t id = 1; id <= _CLAIM_WRITE_MAX; id++)
                assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
        assert_pending_writes(fixture, 0, 3, 1);
}

/* Nothing was written of the claim: it ends without a removal, and only while it is pending. */
static void test_withdrawn(void **state)
{
        static const ClaimWriteState others[] = { CLAIM_WRITE_NONE, CLAIM_WRITE_WRITTEN };
        Fixture *fixture = *state;
        ClaimRemoval removal;
        int64_t id;

        open_host(fixture);
        id = claim_as(fixture, "a", CLAIM_WRITE_UNANSWERED);
        assert_int_equal(claims_withdraw(fixture->claims, id, "refused", NULL), 0);
        assert_int_equal(claims_next_removal(fixture->claims, 0, NULL, &removal, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_state(fixture, id, CLAIM_STATE_RELEASED, "refused");
        assert_int_equal(claims_withdraw(fixture->claims, id, "", NULL), CLAIM_E_NOT_FOUND);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                id = claim_as(fixture, "b", others[i]);
                assert_int_equal(claims_withdraw(fixture->claims, id, "", NULL), CLAIM_E_NOT_FOUND);
                assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
        }
}

/* Each way to end a claim leaves a removal in the same transaction, if Placement can have its
 * allocations. */
static void test_removals(void **state)
{
        static const struct {
                ClaimWriteState write_state;
                bool departs;
        } cases[] = {
                { CLAIM_WRITE_NONE, false },   { CLAIM_WRITE_UNSENT, false },
                { CLAIM_WRITE_SENT, true },    { CLAIM_WRITE_UNANSWERED, true },
                { CLAIM_WRITE_WRITTEN, true },
        };
        Fixture *fixture = *state;
        ClaimRemoval removal;

        open_host(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(cases) * 2; i++) {
                bool departs = cases[i / 2].departs;
                Uuid consumer = make_uuid("a"), other = make_uuid("b");
                int64_t id = claim_as(fixture, "a", cases[i / 2].write_state);
                uint64_t n;

                if (i % 2 == 0)
                        assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
                else
                        assert_int_equal(claims_expire(fixture->claims, INT64_MAX, &n, NULL), 0);
                assert_int_equal(claims_next_removal(fixture->claims, 0, &other, &removal, NULL),
                                 CLAIM_E_NOT_FOUND);
                assert_int_equal(claims_next_removal(fixture->claims, 0, &consumer, &removal, NULL),
                                 departs ? 0 : CLAIM_E_NOT_FOUND);
                if (departs) {
                        assert_int_equal(removal.claim, id);
                        assert_int_equal(removal.unsure,
                                         cases[i / 2].write_state != CLAIM_WRITE_WRITTEN);
                        assert_true(uuid_equal(&removal.consumer, &consumer));
                        assert_int_equal(claims_next_removal(fixture->claims, removal.id, NULL,
                                                             &removal, NULL),
                                         CLAIM_E_NOT_FOUND);
                        assert_int_equal(claims_end_removal(fixture->claims, removal.id, NULL), 0);
                }
        }
        assert_int_equal(claims_next_removal(fixture->claims, 0, NULL, &removal, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_store_sane(fixture->path);
}

static ClaimReported elsewhere(void)
{
        return (ClaimReported){ .generation = 3,
                                .elsewhere = make_uuid("elsewhere"),
                                .until_sec = 1700000000 };
}

static void hand_over(Fixture *fixture, const Uuid *from, const Uuid *to)
{
        const ClaimReported reported = elsewhere();
        ClaimMove move;

        assert_int_equal(claims_begin_move(fixture->claims, from, to, "MIGRATION", &move, NULL), 0);
        assert_int_equal(claims_end_move(fixture->claims, &move, &reported, false, NULL), 0);
        claim_move_done(&move);
}

static void test_move(void **state)
{
        Uuid a = make_uuid("a"), b = make_uuid("b"), c = make_uuid("c");
        Fixture *fixture = *state;
        ClaimMove move = { 0 }, read = { 0 };
        Claim *claim = NULL;
        int64_t id;

        open_host(fixture);
        assert_int_equal(
                claims_begin_move(fixture->claims, &a, &b, "MIGRATION", &move, &fixture->error),
                CLAIM_E_NOT_FOUND);
        id = claim_as(fixture, "a", CLAIM_WRITE_WRITTEN);
        assert_int_equal(claims_begin_move(fixture->claims, &a, &b, "MIGRATION", &move, NULL), 0);
        assert_int_equal(
                claims_begin_move(fixture->claims, &a, &c, "MIGRATION", &read, &fixture->error),
                CLAIM_E_CONFLICT);
        /* The move survives a restart, and its end can change nothing. */
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(claims_next_move(fixture->claims, 0, &read, NULL), 0);
        assert_true(uuid_equal(&read.from, &a) && uuid_equal(&read.to, &b));
        assert_string_equal(read.to_type, "MIGRATION");
        assert_int_equal(claims_end_move(fixture->claims, &read, NULL, false, NULL), 0);
        claim_move_done(&read);
        assert_int_equal(claims_next_move(fixture->claims, 0, &read, NULL), CLAIM_E_NOT_FOUND);
        claim_move_done(&move);

        hand_over(fixture, &a, &b);
        assert_int_equal(claims_find(fixture->claims, &a, false, &claim, NULL), CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_find(fixture->claims, &b, false, &claim, NULL), 0);
        assert_int_equal(claim->id, id);
        assert_string_equal(claim->consumer_type, "MIGRATION");
        assert_string_equal(claim->guest.text, a.text);
        assert_int_equal(claim->write_state, CLAIM_WRITE_WRITTEN);
        claim_free(claim);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 1);
        /* The claim moves through several consumers, and back. */
        hand_over(fixture, &b, &c);
        assert_int_equal(claims_find(fixture->claims, &c, false, &claim, NULL), 0);
        assert_string_equal(claim->guest.text, a.text);
        claim_free(claim);
        hand_over(fixture, &c, &a);
        assert_int_equal(claims_find(fixture->claims, &a, false, &claim, NULL), 0);
        assert_true(uuid_empty(&claim->guest));
        claim_free(claim);
        hand_over(fixture, &a, &b);
        /* A consumer with a claim cannot take over another one. */
        claim_as(fixture, "a", CLAIM_WRITE_NONE);
        assert_int_equal(
                claims_begin_move(fixture->claims, &b, &a, "INSTANCE", &move, &fixture->error),
                CLAIM_E_CONFLICT);
        assert_store_sane(fixture->path);
}

/* A confirmed resize target stays behind when the first claim moves. It is the first claim then. */
static void test_target_stays_behind(void **state)
{
        Uuid a = make_uuid("a"), b = make_uuid("b");
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *target = NULL, *first = NULL, *moved = NULL;
        int64_t id;

        open_host(fixture);
        id = claim_as(fixture, "a", CLAIM_WRITE_WRITTEN);
        assert_int_equal(fixture_claim_target(fixture, "a", "VCPU=2", &target), CLAIM_DONE);
        assert_int_equal(claims_confirm(fixture->claims, target->id, NULL), 0);
        hand_over(fixture, &a, &b);
        assert_int_equal(claims_find(fixture->claims, &b, false, &moved, NULL), 0);
        assert_int_equal(moved->id, id);
        assert_int_equal(claims_find(fixture->claims, &a, false, &first, NULL), 0);
        assert_int_equal(first->id, target->id);
        assert_int_equal(fixture_claim(fixture, "a", "VCPU=1", NULL), CLAIM_E_CONFLICT);
        assert_store_sane(fixture->path);
}

/* A move is one of the first claim that began it. If this claim ends, a confirmed resize target
 * becomes the first claim at once, and is not moved. */
static void test_target_is_not_moved_instead(void **state)
{
        const ClaimReported reported = elsewhere();
        Uuid a = make_uuid("a"), b = make_uuid("b");
        Fixture *fixture = *state;

        open_host(fixture);
        for (int done = 0; done < 2; done++) {
                _cleanup_(claim_freep) Claim *target = NULL, *first = NULL;
                int64_t id = claim_as(fixture, "a", CLAIM_WRITE_NONE);
                ClaimRemoval removal;
                ClaimMove move;

                assert_int_equal(fixture_claim_target(fixture, "a", "VCPU=2", &target), CLAIM_DONE);
                assert_int_equal(claims_confirm(fixture->claims, target->id, NULL), 0);
                assert_int_equal(
                        claims_begin_move(fixture->claims, &a, &b, "MIGRATION", &move, NULL), 0);
                assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
                assert_int_equal(claims_find(fixture->claims, &a, false, &first, NULL), 0);
                assert_int_equal(first->id, target->id);
                first = claim_free(first);
                assert_int_equal(claims_end_move(fixture->claims, &move, done ? &reported : NULL,
                                                 true, NULL),
                                 0);
                claim_move_done(&move);
                assert_int_equal(claims_find(fixture->claims, &a, false, &first, NULL), 0);
                assert_int_equal(first->id, target->id);
                assert_int_equal(claims_next_removal(fixture->claims, 0, &b, &removal, NULL),
                                 done ? 0 : CLAIM_E_NOT_FOUND);
                assert_int_equal(claims_release(fixture->claims, target->id, "", NULL), 0);
        }
        assert_store_sane(fixture->path);
}

/* The guest of a claim whose move is pending starts again with another amount, so its claim is
 * replaced. The move then takes the new claim, and leaves no removal. */
static void test_the_claim_of_a_move_is_replaced(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *claim = NULL, *ended = NULL, *moved = NULL;
        ClaimReported reported = elsewhere();
        Uuid from = make_guest('g'), to = make_uuid("m");
        ClaimRemoval removal;
        FactsFixture facts;
        HostDomain *guest;
        ClaimMove move;

        make_facts(&facts);
        fixture_create(fixture, "host VCPU=16 MEMORY_MB=4096; host_a<host VGPU=4");
        claims_set_facts(fixture->claims, &facts.facts);
        facts.facts.n_domains = 0;
        guest = facts_guest(&facts, 'g', "");
        guest->running = false;
        assert_int_equal(claims_prepare(fixture->claims, guest, NULL, &first, &ended, NULL),
                         CLAIM_DONE);
        assert_int_equal(claims_confirm(fixture->claims, first->id, NULL), 0);
        assert_int_equal(claims_begin_move(fixture->claims, &from, &to, "MIGRATION", &move, NULL),
                         0);
        guest->vcpus++;
        assert_int_equal(claims_prepare(fixture->claims, guest, NULL, &claim, &ended, NULL),
                         CLAIM_DONE);
        assert_int_equal(ended->id, first->id);
        assert_int_equal(claims_end_move(fixture->claims, &move, &reported, true, NULL), 0);
        assert_int_equal(claims_find(fixture->claims, &to, false, &moved, NULL), 0);
        assert_int_equal(moved->id, claim->id);
        assert_int_equal(claims_next_removal(fixture->claims, 0, &to, &removal, NULL),
                         CLAIM_E_NOT_FOUND);
        claim_move_done(&move);
        assert_store_sane(fixture->path);
}

static void assert_departs(Fixture *fixture, const ClaimReported *reported)
{
        ClaimRemoval removal;

        assert_int_equal(claims_next_removal(fixture->claims, 0, NULL, &removal, NULL), 0);
        assert_string_equal(removal.reported.elsewhere.text, reported->elsewhere.text);
        if (!uuid_empty(&reported->elsewhere))
                assert_int_equal(removal.reported.until_sec, reported->until_sec);
        assert_int_equal(removal.reported.generation, uuid_empty(&reported->elsewhere)
                                                              ? removal.reported.generation
                                                              : reported->generation);
        assert_int_equal(claims_end_removal(fixture->claims, removal.id, NULL), 0);
}

/* A removal has the consumer's last state in Placement, from each call that can report it. */
static void test_removal_has_last_reported_state(void **state)
{
        const ClaimReported first = { .generation = -1,
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
                int64_t id = claim_reported(fixture, "a", CLAIM_WRITE_UNANSWERED, first);

                assert_int_equal(claims_set_write_state(fixture->claims, id, CLAIM_WRITE_UNANSWERED,
                                                        CLAIM_WRITE_WRITTEN,
                                                        cases[i].second ? &second : NULL, NULL),
                                 0);
                if (cases[i].forget)
                        assert_int_equal(claims_forget_reported(fixture->claims, NULL), 0);
                assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
                assert_departs(fixture, cases[i].forget   ? &none
                                        : cases[i].second ? &second
                                                          : &first);
        }
        assert_store_sane(fixture->path);
}

/* After a move by the agent, the agent must remove the allocations, even if another program wrote
 * them first. If the claim has ended during the move, the removal is left at once. */
static void test_move_is_ours(void **state)
{
        static const struct {
                ClaimWriteState write_state;
                bool ours, ends;
                ClaimWriteState expected;
                bool departs;
        } cases[] = {
                { CLAIM_WRITE_NONE, false, false, CLAIM_WRITE_NONE, false },
                { CLAIM_WRITE_NONE, true, false, CLAIM_WRITE_WRITTEN, true },
                { CLAIM_WRITE_WRITTEN, false, false, CLAIM_WRITE_WRITTEN, true },
                { CLAIM_WRITE_UNSENT, true, false, CLAIM_WRITE_UNSENT, false },
                { CLAIM_WRITE_NONE, true, true, CLAIM_WRITE_NONE, true },
                { CLAIM_WRITE_NONE, false, true, CLAIM_WRITE_NONE, false },
        };
        const ClaimReported reported = elsewhere();
        Uuid a = make_uuid("a"), b = make_uuid("b");
        Fixture *fixture = *state;

        open_host(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimMove move;
                ClaimRemoval removal;
                _cleanup_(claim_freep) Claim *moved = NULL;
                int64_t id = claim_as(fixture, "a", cases[i].write_state);

                assert_int_equal(
                        claims_begin_move(fixture->claims, &a, &b, "MIGRATION", &move, NULL), 0);
                if (cases[i].ends)
                        assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
                assert_int_equal(
                        claims_end_move(fixture->claims, &move, &reported, cases[i].ours, NULL), 0);
                claim_move_done(&move);
                if (!cases[i].ends) {
                        assert_int_equal(claims_find(fixture->claims, &b, false, &moved, NULL), 0);
                        assert_int_equal(moved->write_state, cases[i].expected);
                        assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
                }
                assert_int_equal(claims_next_removal(fixture->claims, 0, NULL, &removal, NULL),
                                 cases[i].departs ? 0 : CLAIM_E_NOT_FOUND);
                if (cases[i].departs) {
                        assert_true(uuid_equal(&removal.consumer, &b));
                        assert_departs(fixture, &reported);
                }
        }
        assert_store_sane(fixture->path);
}

/* The choice of a scheduler is kept, with the groups of its devices, and survives in the file. */
static void test_placed(void **state)
{
        ClaimRequest request = { .consumer = make_uuid("a") };
        Uuid gpu = make_uuid("gpu");
        Fixture *fixture = *state;
        _cleanup_(consumer_freep) Consumer *holding = make_holding("a", "host VCPU=2; gpu VGPU=2");
        const ClaimPlacing placing = { .holding = holding };
        Claim *claim = NULL;
        _cleanup_free_ char *text = NULL;
        bool ambiguous = true;

        open_host(fixture);
        make_request(&request.resources, "VCPU=2 _G:VGPU=1");
        assert_int_equal(
                claims_claim(fixture->claims, &request, &placing, &claim, NULL, &fixture->error),
                CLAIM_E_OTHER);
        assert_int_equal(consumer_set(holding, &gpu, "VGPU", 1), 0);
        assert_int_equal(claims_claim(fixture->claims, &request, &placing, &claim, &ambiguous,
                                      &fixture->error),
                         0);
        assert_false(ambiguous);
        text = format_claim(claim);
        assert_int_equal(claim->mappings.n_items, 2);
        assert_string_equal(claim->mappings.items[1].suffix, "_G");
        assert_true(uuid_equal(&claim->mappings.items[1].provider, &gpu));
        assert_text(text, "VGPU=1 on gpu");
        claim_free(claim);
        resource_request_done(&request.resources);
        assert_store_sane(fixture->path);
}

/* Without allocations, a group comes from the provider of its mapping, or not at all. */
static void test_mapped_but_not_placed(void **state)
{
        static const struct {
                const char *consumer, *provider, *expected; /* NULL: rejected */
        } cases[] = {
                { "a", "gpu2", "VGPU=1 on gpu2" },
                { "b", "gpu1", "VGPU=1 on gpu1" },
                { "c", "gpu1", NULL }, /* full, though the other one is not */
                { "d", "host", NULL },
                { "e", "elsewhere", NULL },
        };
        const ClaimPlacing placing = { .write_state = CLAIM_WRITE_NONE };
        Fixture *fixture = *state;

        fixture_create(fixture, "host VCPU=8; gpu1<host VGPU=1; gpu2<host VGPU=4");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimRequest request = { .consumer = make_uuid(cases[i].consumer) };
                Uuid provider = make_uuid(cases[i].provider);
                _cleanup_free_ char *text = NULL;
                _cleanup_(claim_freep) Claim *claim = NULL;
                int r;

                make_request(&request.resources, "VCPU=1 _G:VGPU=1");
                assert_int_equal(request_mappings_add(&request.mappings, "_G", &provider), 0);
                r = claims_claim(fixture->claims, &request, &placing, &claim, NULL,
                                 &fixture->error);
                if (r != (cases[i].expected ? 0 : CLAIM_E_NO_CAPACITY))
                        fail_msg("%s: %d %s", cases[i].consumer, r, fixture->error.text);
                text = claim ? format_claim(claim) : NULL;
                if (cases[i].expected)
                        assert_text(text, cases[i].expected);
                resource_request_done(&request.resources);
                request_mappings_done(&request.mappings);
        }
        assert_store_sane(fixture->path);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_pending,
                test_pending_writes_are_counted, test_removals, test_withdrawn, test_move,
                test_target_stays_behind, test_target_is_not_moved_instead,
                test_the_claim_of_a_move_is_replaced, test_removal_has_last_reported_state,
                test_move_is_ours, test_placed, test_mapped_but_not_placed)
