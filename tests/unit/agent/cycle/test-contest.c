/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/unit/test.h"
#include "agent/cycle/contest.h"

#define ROOT   "11111111-2222-3333-4444-555555555555"
#define GPU    "11111111-2222-3333-4444-555555555556"
#define MINUTE (60 * USEC_PER_SEC)

static Uuid uuid_of(const char *text)
{
        Uuid uuid = UUID_NULL;

        assert_int_equal(uuid_from_text(text, &uuid), 0);
        return uuid;
}

/* demo with VCPU and the trait CUSTOM_A, and a GPU below it. */
static ProviderTree *make_tree(uint64_t vcpus, bool trait, bool gpu)
{
        const Uuid root = uuid_of(ROOT), child = uuid_of(GPU);
        ProviderTree *tree;
        Provider *provider;

        assert_int_equal(provider_tree_new(&tree), 0);
        assert_int_equal(provider_tree_add(tree, &root, "demo", NULL, &provider, NULL), 0);
        if (vcpus > 0)
                assert_int_equal(
                        provider_set_inventory(provider, "VCPU", &INVENTORY_DEFAULT(vcpus)), 0);
        if (trait)
                assert_int_equal(string_set_add(&provider->traits, "CUSTOM_A"), 1);
        if (gpu)
                assert_int_equal(
                        provider_tree_add(tree, &child, "demo_gpu", &root, &provider, NULL), 0);
        return tree;
}

/* A cycle: what is read, what is written unless it is left alone. Returns whether it was written.
 */
static bool cycle(Contest *contest, const ProviderTree *wanted, const ProviderTree *remote,
                  uint64_t now)
{
        _cleanup_(provider_tree_freep) ProviderTree *sent = NULL;
        const Uuid root = uuid_of(ROOT);

        assert_int_equal(contest_look(contest, wanted, remote, &root, now), 0);
        assert_int_equal(provider_tree_copy(&sent, wanted), 0);
        assert_int_equal(contest_give_in(contest, sent, remote, now), 0);
        contest_leave(contest, sent);
        return !provider_tree_equal(sent, remote);
}

/* Another writer undoes it in each cycle of a minute; how often it is written in a week. */
static size_t count_writes(const ProviderTree *wanted, const ProviderTree *remote,
                           const char *words)
{
        _cleanup_(contest_done) Contest contest = { 0 };
        _cleanup_free_ char *text = NULL;
        size_t n = 0;

        for (uint64_t minute = 0; minute < 7 * 24 * 60; minute++) {
                n += cycle(&contest, wanted, remote, minute * MINUTE);
                if (minute == 3) {
                        text = contest_describe(&contest);
                        assert_string_equal(text, words);
                        assert_int_equal(contest_count(&contest), 1);
                }
        }
        return n;
}

static void test_no_ping_pong(void **state)
{
        static const struct {
                uint64_t vcpus;
                bool trait, gpu;
                const char *words;
        } cases[] = {
                { 4, true, true, "inventory VCPU of demo: total 4, not 8 (undone 3 times)" },
                { 0, true, true, "inventory VCPU of demo: taken away (undone 3 times)" },
                { 8, false, true, "trait CUSTOM_A of demo: taken away (undone 3 times)" },
                { 8, true, false, "provider demo_gpu: deleted (undone 3 times)" },
        };
        _cleanup_(provider_tree_freep) ProviderTree *wanted = make_tree(8, true, true);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *remote =
                        make_tree(cases[i].vcpus, cases[i].trait, cases[i].gpu);
                size_t n = count_writes(wanted, remote, cases[i].words);

                /* 3, then after 15, 30, 60 … 1440 minutes */
                if (n < 8 || n > 20)
                        fail_msg("case %zu: written %zu times", i, n);
        }
}

static void test_a_trait_that_comes_back(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *wanted = make_tree(8, false, true),
                                                    *remote = make_tree(8, true, true);

        assert_in_range(
                count_writes(wanted, remote, "trait CUSTOM_A of demo: put there (undone 3 times)"),
                8, 20);
}

/* Every 5 minutes, as Nova does it: it stands in between. */
static void test_seldom(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *wanted = make_tree(8, true, true),
                                                    *remote = make_tree(8, false, true);
        _cleanup_(contest_done) Contest contest = { 0 };

        for (uint64_t minute = 0; minute <= 15; minute++)
                (void)cycle(&contest, wanted, minute % 5 == 4 ? remote : wanted, minute * MINUTE);
        assert_int_equal(contest_count(&contest), 1);
        assert_int_equal(contest.n_undone, 3);
}

/* Once is an operator, and what the host itself changed is nobody else. */
static void test_what_is_none(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *eight = make_tree(8, true, true),
                                                    *four = make_tree(4, true, true);
        _cleanup_(contest_done) Contest contest = { 0 };

        for (uint64_t minute = 0; minute < 60; minute++) {
                const ProviderTree *wanted = minute % 2 ? eight : four;

                /* Placement has what was written last */
                (void)cycle(&contest, wanted, minute % 2 ? four : eight, minute * MINUTE);
        }
        assert_int_equal(contest.n_undone, 0);
        for (uint64_t hour = 2; hour < 100; hour += 2)
                assert_true(cycle(&contest, eight, four, hour * 60 * MINUTE));
        assert_int_equal(contest_count(&contest), 0);
}

/* The other writer is gone: what was left alone is written, and forgotten. */
static void test_it_ends(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *wanted = make_tree(8, true, true),
                                                    *remote = make_tree(4, true, true);
        _cleanup_(contest_done) Contest contest = { 0 };
        uint64_t minute = 0;

        for (; minute <= 3; minute++)
                (void)cycle(&contest, wanted, remote, minute * MINUTE);
        assert_false(cycle(&contest, wanted, remote, minute * MINUTE));
        assert_true(cycle(&contest, wanted, remote, (minute + 15) * MINUTE));
        for (minute += 16; minute < 120; minute++)
                assert_false(cycle(&contest, wanted, wanted, minute * MINUTE));
        assert_int_equal(contest.n_parts, 0);
}

TEST_MAIN(test_no_ping_pong, test_a_trait_that_comes_back, test_seldom, test_what_is_none,
          test_it_ends)
