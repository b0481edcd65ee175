/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A second writer against the agent, cycle by cycle. */

#include "agent/cycle/overwrites.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define MINUTE (60 * USEC_PER_SEC)
#define HOST   "demo VCPU=8 +CUSTOM_A; demo_gpu<demo"
#define FOUR   "demo VCPU=4 +CUSTOM_A; demo_gpu<demo"
#define BARE   "demo VCPU=8; demo_gpu<demo" /* HOST without CUSTOM_A */

/* Runs a cycle: reads remote, and writes wanted unless its value is in a pause. Returns whether it
 * was written. */
static bool cycle(Overwrites *overwrites, const ProviderTree *wanted, const ProviderTree *remote,
                  uint64_t now)
{
        _cleanup_(provider_tree_freep) ProviderTree *sent = NULL;
        const Uuid root = make_uuid("demo");
        int yields;

        assert_int_equal(overwrites_update(overwrites, wanted, remote, &root, now), 0);
        assert_int_equal(provider_tree_copy(&sent, wanted), 0);
        yields = overwrites_yield(overwrites, sent, remote, now);
        assert_int_equal(yields, !provider_tree_equal(sent, wanted));
        overwrites_keep_tree(overwrites, sent);
        return !provider_tree_equal(sent, remote);
}

/* Another writer undoes the value in each cycle of one minute. Returns how often the agent writes
 * it in a week. */
static size_t count_writes(const ProviderTree *wanted, const ProviderTree *remote,
                           const char *words)
{
        _cleanup_(overwrites_done) Overwrites overwrites = { 0 };
        _cleanup_free_ char *text = NULL;
        size_t n = 0;

        for (uint64_t minute = 0; minute < 7 * 24 * 60; minute++) {
                n += cycle(&overwrites, wanted, remote, minute * MINUTE);
                if (minute == 3) {
                        text = overwrites_describe(&overwrites);
                        assert_string_equal(text, words);
                        assert_int_equal(overwrites_count(&overwrites), 1);
                }
        }
        return n;
}

static void test_no_ping_pong(void **state)
{
        static const struct {
                const char *wanted, *remote, *words;
        } cases[] = {
                { HOST, FOUR, "inventory VCPU of demo: total 4, not 8 (overwritten 3 times)" },
                { HOST, "demo +CUSTOM_A; demo_gpu<demo",
                  "inventory VCPU of demo: removed (overwritten 3 times)" },
                { HOST, BARE, "trait CUSTOM_A of demo: removed (overwritten 3 times)" },
                { HOST, "demo VCPU=8 +CUSTOM_A",
                  "provider demo_gpu: deleted (overwritten 3 times)" },
                { BARE, HOST, "trait CUSTOM_A of demo: added (overwritten 3 times)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *wanted = make_tree(cases[i].wanted),
                                                            *remote = make_tree(cases[i].remote);
                size_t n = count_writes(wanted, remote, cases[i].words);

                /* 3 times, then after 15, 30, 60 … 1440 minutes. */
                if (n < 8 || n > 20)
                        fail_msg("case %zu: written %zu times", i, n);
        }
}

/* The other writer acts every 5 minutes, as Nova does, with successful cycles in between. */
static void test_slow_second_reporter(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *wanted = make_tree(HOST),
                                                    *remote = make_tree(BARE);
        _cleanup_(overwrites_done) Overwrites overwrites = { 0 };

        for (uint64_t minute = 0; minute <= 15; minute++)
                (void)cycle(&overwrites, wanted, minute % 5 == 4 ? remote : wanted,
                            minute * MINUTE);
        assert_int_equal(overwrites_count(&overwrites), 1);
        assert_int_equal(overwrites.n_undone, 3);
}

/* A single change is an operator, and a change by the host itself is not another writer. */
static void test_single_change_is_no_second_reporter(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *eight = make_tree(HOST),
                                                    *four = make_tree(FOUR);
        _cleanup_(overwrites_done) Overwrites overwrites = { 0 };

        for (uint64_t minute = 0; minute < 60; minute++) {
                const ProviderTree *wanted = minute % 2 ? eight : four;

                /* Placement has the value of the last write. */
                (void)cycle(&overwrites, wanted, minute % 2 ? four : eight, minute * MINUTE);
        }
        assert_int_equal(overwrites.n_undone, 0);
        for (uint64_t hour = 2; hour < 100; hour += 2)
                assert_true(cycle(&overwrites, eight, four, hour * 60 * MINUTE));
        assert_int_equal(overwrites_count(&overwrites), 0);
}

/* The other writer is gone: the value is written after its pause, and forgotten. */
static void test_value_is_written_after_the_second_reporter_ends(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *wanted = make_tree(HOST),
                                                    *remote = make_tree(FOUR);
        _cleanup_(overwrites_done) Overwrites overwrites = { 0 };
        uint64_t minute = 0;

        for (; minute <= 3; minute++)
                (void)cycle(&overwrites, wanted, remote, minute * MINUTE);
        assert_false(cycle(&overwrites, wanted, remote, minute * MINUTE));
        assert_true(cycle(&overwrites, wanted, remote, (minute + 15) * MINUTE));
        for (minute += 16; minute < 120; minute++)
                assert_false(cycle(&overwrites, wanted, wanted, minute * MINUTE));
        assert_int_equal(overwrites.n_parts, 0);
}

/* A cordon changes a value that is in its pause. */
static void test_a_value_is_written_after_the_end_of_all_pauses(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *wanted = make_tree(HOST),
                                                    *remote = make_tree(FOUR);
        _cleanup_(overwrites_done) Overwrites overwrites = { 0 };
        uint64_t minute = 0;

        for (; minute <= 3; minute++)
                (void)cycle(&overwrites, wanted, remote, minute * MINUTE);
        assert_false(cycle(&overwrites, wanted, remote, minute++ * MINUTE));
        overwrites_end_pauses(&overwrites);
        assert_true(cycle(&overwrites, wanted, remote, minute++ * MINUTE));
        /* The other writer undoes it, and the next pause begins. */
        assert_false(cycle(&overwrites, wanted, remote, minute * MINUTE));
        assert_int_equal(overwrites.n_undone, 4);
}

TEST_MAIN(test_no_ping_pong, test_slow_second_reporter, test_single_change_is_no_second_reporter,
          test_value_is_written_after_the_second_reporter_ends,
          test_a_value_is_written_after_the_end_of_all_pauses)
