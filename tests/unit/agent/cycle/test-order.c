/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The order of a cycle as one table: a row is an arrow of agent/cycle/order.h. */

#include "agent/cycle/order.h"

#include "report/placement/outcome.h"
#include "tests/unit/test.h"

static const char *const phases[_CYCLE_PHASE_MAX] = {
        [CYCLE_IDLE] = "idle",
        [CYCLE_POLL] = "poll",
        [CYCLE_READ] = "read",
        [CYCLE_HOLDERS] = "holders",
        [CYCLE_OVERWRITES] = "overwrites",
        [CYCLE_CHECK] = "check",
        [CYCLE_REMOVE] = "remove",
        [CYCLE_RESHAPE] = "reshape",
        [CYCLE_CONSUMERS] = "consumers",
        [CYCLE_PUBLISH] = "publish",
        [CYCLE_PREPARE] = "prepare",
        [CYCLE_RESERVE] = "reserve",
        [CYCLE_AUDIT] = "audit",
        [CYCLE_RECONCILE] = "compare",
        [CYCLE_END] = "end",
};

static const char *const outcomes[] = {
        "done", "skipped", "conflict", "in-use", "refused", "away"
};
static const int results[] = { REPORT_DONE,     CYCLE_SKIPPED,    REPORT_E_CONFLICT,
                               REPORT_E_IN_USE, REPORT_E_REFUSED, REPORT_E_UNREACHABLE };

/* A host that publishes its tree. */
#define FACTS(...)                                                                         \
        {                                                                                  \
                .has_client = true, .owns_tree = true, .retries_in_use = true, __VA_ARGS__ \
        }
#define LEFT(...)                               \
        {                                       \
                .has_client = true, __VA_ARGS__ \
        }

/* "A B C": B follows A, and C follows B, always with this outcome. */
static const struct {
        const char *about, *outcome, *order;
        OrderFacts facts;
} rows[] = {
        { "a cycle", "skipped",
          "idle poll read holders overwrites check reshape consumers publish audit compare end idle",
          FACTS() },
        { "the holders of inventories that go", "done", "read holders overwrites check", FACTS() },
        { "a consumer for which a claim waits", "done", "consumers publish audit compare",
          FACTS() },
        { "a reshape reads the tree again", "done", "reshape read", FACTS() },

        { "nothing is published before the first poll", "done", "poll compare end idle",
          FACTS(.scope = CYCLE_HOST_UNKNOWN) },
        { "without Placement",
          "done",
          "poll compare",
          { .scope = CYCLE_STANDALONE, .owns_tree = true } },
        { "on a retired host", "done", "poll compare", FACTS(.scope = CYCLE_RETIRED) },
        { "while devices settle", "done", "poll compare", FACTS(.scope = CYCLE_SETTLING) },
        { "in a quiet cycle", "done", "poll compare", FACTS(.scope = CYCLE_QUIET) },
        { "before the first attempt", "done", "poll read", { .owns_tree = true } },

        { "nova-compute owns the tree", "skipped",
          "read holders overwrites check reshape consumers prepare reserve audit compare", LEFT() },
        { "reserved amounts beside nova-compute", "done", "prepare reserve audit", LEFT() },
        { "a dry run", "skipped", "consumers prepare compare end", FACTS(.dry_run = true) },
        { "a dry run beside nova-compute", "skipped", "consumers prepare reserve audit compare",
          LEFT(.dry_run = true) },

        { "a retirement that is only shown or not possible", "done", "check consumers", FACTS() },
        { "a retirement", "done", "check remove", FACTS(.removes = true) },
        { "the host is removed: nothing to publish or audit", "done", "remove compare",
          FACTS(.scope = CYCLE_RETIRED) },
        { "the host is not removed", "done", "remove read", FACTS() },

        { "a conflict starts over", "conflict", "read read", FACTS() },
        { NULL, "conflict", "holders read", FACTS() },
        { NULL, "conflict", "check read", FACTS() },
        { NULL, "conflict", "publish read", FACTS() },
        { NULL, "conflict", "prepare read", LEFT() },
        { NULL, "conflict", "reserve read", LEFT() },
        { "the last retry", "conflict", "publish read", FACTS(.n_retries = CYCLE_RETRIES_MAX - 1) },
        { "no further retry", "conflict", "publish compare",
          FACTS(.n_retries = CYCLE_RETRIES_MAX) },
        { "in use since its holders were read", "in-use", "publish read", FACTS() },
        { "within the bound of conflicts", "in-use", "publish audit",
          FACTS(.n_retries = CYCLE_RETRIES_MAX) },
        { "once per cycle, and only if something retains it", "in-use", "publish audit", LEFT() },

        { "Placement refuses: it can be audited", "refused", "read audit", FACTS() },
        { NULL, "refused", "publish audit", FACTS() },
        { NULL, "refused", "reshape audit", FACTS() },
        { NULL, "refused", "reserve audit", LEFT() },
        { "a standalone tree or the report client cannot be made",
          "refused",
          "poll compare",
          { .owns_tree = true } },
        { "Placement is away: no audit", "away", "read compare", FACTS() },
        { NULL, "away", "check compare", FACTS(.removes = true) },
        { NULL, "away", "reshape compare", FACTS() },
        { NULL, "away", "publish compare", FACTS() },
        { NULL, "away", "prepare compare", LEFT() },
};

static unsigned find(const char *const *names, size_t n, const char *name)
{
        for (unsigned i = 0; i < n; i++)
                if (strcmp(names[i], name) == 0)
                        return i;
        fail_msg("%s", name);
        return 0;
}

static void test_order(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                int result = results[find(outcomes, ARRAY_SIZE(outcomes), rows[i].outcome)];
                const char *text = rows[i].order;
                char word[16], order[160] = "";
                CyclePhase phase = _CYCLE_PHASE_MAX;
                int n;

                for (; sscanf(text, "%15s%n", word, &n) == 1; text += n) {
                        phase = phase == _CYCLE_PHASE_MAX
                                        ? find(phases, _CYCLE_PHASE_MAX, word)
                                        : cycle_next(phase, result, &rows[i].facts);
                        (void)strcat(strcat(order, order[0] ? " " : ""), phases[phase]);
                }
                if (strcmp(order, rows[i].order) != 0)
                        fail_msg("row %zu (%s): %s", i, rows[i].about ? rows[i].about : "", order);
        }
}

/* Random outcomes: each cycle ends with CYCLE_END, after a bounded number of reads. */
static void test_every_cycle_ends(void **state)
{
        for (unsigned seed = 0; seed < 20000; seed++) {
                uint32_t random = seed * 2654435761u;
                OrderFacts facts = { 0 };
                CyclePhase phase = CYCLE_IDLE, before;
                unsigned n = 0, n_reads = 0;

                facts.scope = random % (CYCLE_QUIET + 1);
                facts.has_client = facts.scope == CYCLE_PLACEMENT;
                facts.owns_tree = random & 8;
                facts.retries_in_use = random & 16;
                facts.dry_run = (random & 96) == 0;
                do {
                        int result;

                        random = random * 1664525u + 1013904223u;
                        result = results[(random >> 16) % ARRAY_SIZE(results)];
                        /* At most one retirement and one reshape in a cycle, as in phases.c. */
                        if ((phase == CYCLE_RESHAPE || phase == CYCLE_REMOVE) && n_reads > 1 &&
                            result == REPORT_DONE)
                                result = CYCLE_SKIPPED;
                        if (phase <= CYCLE_POLL && result != REPORT_E_REFUSED)
                                result = REPORT_DONE; /* Placement was not asked yet */
                        facts.removes = random & 32;
                        before = phase;
                        phase = cycle_next(phase, result, &facts);
                        assert_true(phase >= 0 && phase < _CYCLE_PHASE_MAX);
                        if (phase == CYCLE_READ && result != REPORT_DONE &&
                            result != CYCLE_SKIPPED) {
                                facts.n_retries++;
                                facts.retries_in_use &= result != REPORT_E_IN_USE;
                        }
                        n_reads += phase == CYCLE_READ;
                        assert_true(++n < 200);
                } while (phase != CYCLE_IDLE);
                assert_int_equal(before, CYCLE_END);
                assert_true(n_reads <= CYCLE_RETRIES_MAX + 3);
                if (!facts.has_client)
                        assert_int_equal(n_reads, 0);
        }
}

/* The phase after CYCLE_PUBLISH: a retry, or an audit unless Placement cannot be used. */
static void test_failures(void **state)
{
        static const struct {
                int result;
                CyclePhase next, next_without_retry;
        } cases[] = {
                { REPORT_DONE, CYCLE_AUDIT, CYCLE_AUDIT },
                { -ENOMEM, CYCLE_AUDIT, CYCLE_AUDIT },
                { REPORT_E_UNREACHABLE, CYCLE_RECONCILE, CYCLE_RECONCILE },
                { REPORT_E_UNAVAILABLE, CYCLE_RECONCILE, CYCLE_RECONCILE },
                { REPORT_E_UNAUTHORIZED, CYCLE_RECONCILE, CYCLE_RECONCILE },
                { REPORT_E_UNREADABLE, CYCLE_RECONCILE, CYCLE_RECONCILE },
                { REPORT_E_FORBIDDEN, CYCLE_AUDIT, CYCLE_AUDIT },
                { REPORT_E_TOO_OLD, CYCLE_AUDIT, CYCLE_AUDIT },
                { REPORT_E_CONFLICT, CYCLE_READ, CYCLE_RECONCILE },
                { REPORT_E_IN_USE, CYCLE_READ, CYCLE_AUDIT },
                { REPORT_E_DUPLICATE_NAME, CYCLE_AUDIT, CYCLE_AUDIT },
                { REPORT_E_REFUSED, CYCLE_AUDIT, CYCLE_AUDIT },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                OrderFacts facts = FACTS();

                if (cycle_next(CYCLE_PUBLISH, cases[i].result, &facts) != cases[i].next)
                        fail_msg("case %zu", i);
                facts.n_retries = CYCLE_RETRIES_MAX;
                if (cycle_next(CYCLE_PUBLISH, cases[i].result, &facts) !=
                    cases[i].next_without_retry)
                        fail_msg("case %zu without a retry", i);
        }
}

TEST_MAIN(test_order, test_every_cycle_ends, test_failures)
