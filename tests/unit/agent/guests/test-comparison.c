/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/comparison.h"

#include "tests/fixtures/claims.h"
#include "tests/fixtures/host.h"

/* Who holds something here, who elsewhere, and who nothing; of a host that is not known, nothing.
 */
static void test_answers(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view("host VCPU=8");
        Uuid uuids[] = { make_uuid("a"), make_uuid("b"), make_uuid("c") };
        const ClaimWanted asked = { .uuids = uuids, .n_uuids = ARRAY_SIZE(uuids) };
        ClaimComparison comparison = { 0 };

        for (int known = 1; known >= 0; known--) {
                Allocations *holding = NULL;

                assert_int_equal(allocations_new(&holding), 0);
                for (size_t i = 0; i < 2; i++) {
                        Uuid provider = make_uuid(i == 0 ? "host" : "other");
                        Consumer *consumer = NULL;

                        assert_int_equal(consumer_new(&consumer, &uuids[i]), 0);
                        assert_int_equal(consumer_set(consumer, &provider, "VCPU", 1), 0);
                        assert_int_equal(allocations_add(holding, consumer), 0);
                }
                claim_comparison_answer(&comparison, &asked, holding, known ? view : NULL, "host");
                assert_int_equal(comparison.n_answers, known ? ARRAY_SIZE(uuids) : 0);
                for (size_t i = 0; i < comparison.n_answers; i++) {
                        assert_int_equal(comparison.answers[i].here, i == 0);
                        assert_int_equal(comparison.answers[i].holding != NULL, i < 2);
                }
        }
        claim_comparison_done(&comparison);
}

/* Answers are of one comparison alone; a poll from before room was wanted leaves that open. */
static void test_ends(void **state)
{
        static const struct {
                uint64_t taken_usec;
                bool asked, urgent, due, urgent_after;
        } cases[] = {
                { 9, false, false, false, true },
                { 10, false, true, false, false },
                { 10, true, true, true, true },
        };
        const HostConfig config = config_make(NULL, 0);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimComparison comparison = { .urgent_usec = 10 };
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = host_new("");
                GuestPicture picture = { 0 };

                snapshot->begun_realtime_usec = cases[i].taken_usec;
                assert_int_equal(guest_picture_set(&picture, &config, snapshot, snapshot), 0);
                assert_int_equal(
                        claim_comparison_input(&comparison, &picture, RECONCILE_ALONE, 1).urgent,
                        cases[i].urgent);
                claim_comparison_end(&comparison, &picture, cases[i].asked);
                assert_int_equal(comparison.is_due, cases[i].due);
                assert_int_equal(comparison.urgent_usec, cases[i].urgent_after ? 10 : 0);
                claim_comparison_done(&comparison);
                guest_picture_done(&picture);
        }
}

static void test_away(void **state)
{
        Uuid *guests = calloc(1, sizeof(Uuid)), other = make_uuid("b");
        ClaimComparison comparison = { 0 };

        guests[0] = make_uuid("a");
        claim_comparison_set_away(&comparison, guests, 1);
        assert_true(claim_comparison_is_away(&comparison, &guests[0]));
        assert_false(claim_comparison_is_away(&comparison, &other));
        claim_comparison_done(&comparison);
}

TEST_MAIN(test_answers, test_ends, test_away)
