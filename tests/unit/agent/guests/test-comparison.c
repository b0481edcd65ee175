/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/comparison.h"

#include "tests/fixtures/claims.h"
#include "tests/fixtures/host.h"

static Snapshot *make_poll(const char *members, uint64_t begun_usec)
{
        Snapshot *snapshot = host_new(members);

        snapshot->begun_realtime_usec = begun_usec;
        return snapshot;
}

static void set_polls(ClaimComparison *comparison, const Snapshot *snapshot, const Snapshot *guests)
{
        const HostConfig config = config_make(NULL, 0);

        assert_int_equal(claim_comparison_set_polls(comparison, &config, snapshot, guests), 0);
}

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
                        const PictureConsumer *answer = &comparison.answers[i];

                        assert_int_equal(answer->here, uuid_equal(&answer->consumer, &uuids[0]));
                        assert_int_equal(answer->holding != NULL,
                                         !uuid_equal(&answer->consumer, &uuids[2]));
                        assert_true(i == 0 ||
                                    uuid_order(&answer[-1].consumer, &answer->consumer) < 0);
                }
                assert_false(comparison.complete);
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

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *poll = make_poll("", cases[i].taken_usec);
                ClaimComparison comparison = { .urgent_usec = 10 };

                set_polls(&comparison, poll, poll);
                assert_int_equal(claim_comparison_input(&comparison, RECONCILE_ALONE).urgent,
                                 cases[i].urgent);
                claim_comparison_end(&comparison, cases[i].asked);
                assert_int_equal(comparison.is_due, cases[i].due);
                assert_int_equal(comparison.urgent_usec, cases[i].urgent_after ? 10 : 0);
                claim_comparison_done(&comparison);
        }
}

/* Its guests may be newer than its devices; claims that were touched since the devices' poll are
 * remembered, by a clock that is set. */
static void test_polls(void **state)
{
        static const char guest[] =
                "\"domains\": [{\"uuid\": \"11111111-1111-4111-8111-111111111111\","
                " \"name\": \"g\", \"state\": \"running\"}]";
        const ClockJump jump = { .by_usec = -1, .from_usec = 100, .to_usec = 99 };
        _cleanup_(snapshot_unrefp) Snapshot *first = make_poll(guest, 10);
        _cleanup_(snapshot_unrefp) Snapshot *second = make_poll("", 20);
        ClaimComparison comparison = { 0 };

        claim_comparison_touch(&comparison, 1, 5);
        claim_comparison_touch(&comparison, 2, 20);
        set_polls(&comparison, first, first);
        assert_int_equal(comparison.facts.n_domains, 1);
        assert_int_equal(comparison.n_touched, 1);
        assert_int_equal(comparison.touched[0].claim_id, 2);

        set_polls(&comparison, first, second);
        assert_int_equal(comparison.facts.n_domains, 0);
        set_polls(&comparison, second, second);
        assert_int_equal(comparison.n_touched, 1);
        claim_comparison_follow_clock(&comparison, &jump);
        set_polls(&comparison, second, second);
        assert_int_equal(comparison.n_touched, 0);
        claim_comparison_done(&comparison);
}

TEST_MAIN(test_answers, test_ends, test_polls)
