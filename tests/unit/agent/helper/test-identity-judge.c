/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/helper/identity-judge.h"

#include "tests/unit/test.h"

#define OWN   "11111111-1111-4111-8111-111111111111"
#define OTHER "22222222-2222-4222-8222-222222222222"

typedef struct Case {
        const char *file, *name;
        const char *own;    /* "host": a root, "<host": below another; NULL: Placement has none */
        const char *holder; /* "=": the same as own, "root", "<": below another; NULL: Placement has
                               none */
        bool away;
        const char *state;
        int adopt, adopt_by_force, rename;
        const char *words;
} Case;

static const Case cases[] = {
        { "f", "host", "host", "=", false, "good", -EALREADY, -EALREADY, -EALREADY,
          "has this host as host" },
        { "f", "host", NULL, NULL, true, "unknown", -ENOENT, -ENOENT, -ENODATA, "Could not check" },
        { "f", "", "host", NULL, false, "unknown", -ENODATA, -ENODATA, -ENODATA,
          "Could not check" },
        { "f", "host", NULL, NULL, false, "new", -ENOENT, -ENOENT, -EPERM, "no provider of this" },
        { NULL, "host", NULL, NULL, false, "new", -ENOENT, -ENOENT, -EPERM, "is free" },
        { "f", "new", "host", NULL, false, "renamed", -ENOENT, -ENOENT, 0,
          "as \"host\", but its name is now \"new\"" },
        { "f", "host", NULL, "root", false, "taken", -EEXIST, 0, -EPERM,
          "belongs to provider " OTHER },
        { NULL, "host", NULL, "root", false, "taken", 0, 0, -EPERM, OTHER },
        { "f", "host", NULL, "<", false, "taken-below", -EPERM, -EPERM, -EPERM,
          "the child provider " OTHER },
        { "f", "new", "host", "root", false, "twice", -EEXIST, 0, -EPERM,
          "uuid belongs to \"host\", but its name new belongs to provider " OTHER },
        { "f", "host", "<host", "=", false, "no-root", -EPERM, -EPERM, -EPERM,
          "is a child of another" },
};

static IdentityProvider make_provider(const char *uuid, const char *name, bool root)
{
        IdentityProvider provider = { .found = true, .name = strdup(name) };

        assert_non_null(provider.name);
        assert_int_equal(uuid_from_text(uuid, &provider.who.uuid), 0);
        provider.who.root = root;
        return provider;
}

static void make_facts(const Case *c, IdentityFacts *facts)
{
        bool same = c->holder && c->holder[0] == '=';
        bool own_root = c->own && c->own[0] != '<';

        *facts = (IdentityFacts){ .name = c->name, .asked = !c->away };
        facts->file = c->file ? strdup(c->file) : NULL;
        if (c->file)
                assert_int_equal(uuid_from_text(OWN, &facts->uuid), 0);
        if (c->own)
                facts->own = make_provider(OWN, c->own + !own_root, own_root);
        if (c->holder)
                facts->holder = make_provider(same ? OWN : OTHER, c->name,
                                              same ? own_root : c->holder[0] != '<');
}

static void test_judge(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(identity_facts_done) IdentityFacts facts = { 0 };
                IdentityVerdict verdict;

                make_facts(&cases[i], &facts);
                identity_judge(&facts, &verdict);
                if (strcmp(verdict.state, cases[i].state) != 0 ||
                    !strstr(verdict.text, cases[i].words))
                        fail_msg("case %zu: %s: %s", i, verdict.state, verdict.text);
        }
}

static void test_permitted_actions(void **state)
{
        PlacementProvider root = { .name = (char *)(uintptr_t) "host" };
        const PlacementProviders tree = { &root, 1 };

        assert_int_equal(uuid_from_text(OWN, &root.uuid), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(identity_facts_done) IdentityFacts facts = { 0 };
                _cleanup_(identity_plan_done) IdentityPlan plan = { 0 };
                const struct {
                        int expected, got;
                } results[] = {
                        { cases[i].adopt, (make_facts(&cases[i], &facts),
                                           identity_may_adopt(&facts, false, NULL)) },
                        { cases[i].adopt_by_force, identity_may_adopt(&facts, true, NULL) },
                        { cases[i].rename,
                          identity_plan_rename(&facts, &tree, false, &plan, NULL) },
                };

                for (size_t j = 0; j < ARRAY_SIZE(results); j++)
                        if (results[j].got != results[j].expected)
                                fail_msg("case %zu, %zu: %d", i, j, results[j].got);
        }
}

/* Returns the advice for a case. n_consumers: of the provider with the name; -1: not counted. */
static const char *find_advice(const Case *c, bool has_file, int n_consumers)
{
        _cleanup_(identity_facts_done) IdentityFacts facts = { 0 };
        IdentityVerdict verdict;
        Case changed = *c;

        changed.file = has_file ? "compute_id" : NULL;
        make_facts(&changed, &facts);
        facts.holder.who.counted = n_consumers >= 0;
        facts.holder.who.n_consumers = (size_t)(n_consumers > 0 ? n_consumers : 0);
        identity_judge(&facts, &verdict);
        return verdict.advice;
}

/* Each bad state has an advice. */
static void test_advice(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                bool is_taken = strcmp(cases[i].state, "taken") == 0;
                bool is_good = strcmp(cases[i].state, "good") == 0 ||
                               strcmp(cases[i].state, "unknown") == 0;

                for (int has_file = 0; has_file < 2; has_file++)
                        assert_int_equal(find_advice(&cases[i], has_file, 0)[0] != '\0', !is_good);
                if (is_taken) {
                        assert_non_null(strstr(find_advice(&cases[i], true, 0), "adopt --force"));
                        assert_null(strstr(find_advice(&cases[i], false, 0), "--force"));
                        assert_null(strstr(find_advice(&cases[i], false, -1), "delete"));
                }
                /* The provider has allocations of guests, so the advice must not be to delete it.
                 */
                if (is_taken || strcmp(cases[i].state, "twice") == 0) {
                        const char *advice = find_advice(&cases[i], false, 3);

                        assert_non_null(strstr(advice, "Another running host"));
                        assert_null(strstr(advice, "delete"));
                }
        }
}

/* Plans a new name for the provider "host" with this uuid. A tree in use needs force. */
static int plan_rename(const PlacementProviders *tree, const Uuid *uuid, const char *name,
                       IdentityPlan *ret)
{
        IdentityFacts facts = {
                .uuid = *uuid,
                .name = name,
                .asked = true,
                .own = { .found = true, .name = tree->items[0].name, .who.root = true },
        };

        facts.in_use = true;
        assert_int_equal(identity_plan_rename(&facts, tree, false, ret, NULL), -EEXIST);
        if (identity_plan_rename(&facts, tree, true, ret, NULL) == 0)
                identity_plan_done(ret);
        facts.in_use = false;
        return identity_plan_rename(&facts, tree, false, ret, NULL);
}

static void test_plan_rename(void **state)
{
        PlacementProvider items[] = {
                { .name = (char *)(uintptr_t) "host" },
                { .name = (char *)(uintptr_t) "host_NUMA0" },
                { .name = (char *)(uintptr_t) "host_NUMA0_gpu" },
                { .name = (char *)(uintptr_t) "host2_NUMA0" },
                { .name = (char *)(uintptr_t) "neutron-host" },
        };
        const PlacementProviders tree = { items, ARRAY_SIZE(items) };
        _cleanup_(identity_plan_done) IdentityPlan plan = { 0 };
        char long_name[220] = "";
        Uuid stranger = uuid_make_random();

        for (size_t i = 0; i < ARRAY_SIZE(items); i++)
                items[i].uuid = uuid_make_random();
        assert_int_equal(plan_rename(&tree, &items[0].uuid, "new", &plan), 0);
        assert_int_equal(plan.n_items, 3);
        assert_string_equal(plan.items[0].from, "host_NUMA0_gpu");
        assert_string_equal(plan.items[0].to, "new_NUMA0_gpu");
        assert_string_equal(plan.items[1].to, "new_NUMA0");
        assert_string_equal(plan.items[2].to, "new");
        assert_true(uuid_equal(&plan.items[2].uuid, &items[0].uuid));
        memset(long_name, 'x', 195);
        assert_int_equal(plan_rename(&tree, &items[0].uuid, long_name, &plan), -EINVAL);
        assert_int_equal(plan_rename(&tree, &stranger, "new", &plan), -ENOENT);
        assert_int_equal(plan.n_items, 3);
}

/* A renaming to a longer or shorter name was interrupted: the next plan has only the rest. */
static void test_plan_rename_again(void **state)
{
        static const struct {
                const char *names[3], *name, *to;
        } rows[] = {
                { { "host", "host_NUMA0", "host_b_NUMA1" }, "host_b", "host_b_NUMA0" },
                { { "host_b", "host_b_NUMA0", "host_NUMA1" }, "host", "host_NUMA0" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                PlacementProvider items[3] = { 0 };
                const PlacementProviders tree = { items, ARRAY_SIZE(items) };
                _cleanup_(identity_plan_done) IdentityPlan plan = { 0 };

                for (size_t j = 0; j < ARRAY_SIZE(items); j++) {
                        items[j].name = (char *)(uintptr_t)rows[i].names[j];
                        items[j].uuid = uuid_make_random();
                }
                assert_int_equal(plan_rename(&tree, &items[0].uuid, rows[i].name, &plan), 0);
                assert_int_equal(plan.n_items, 2);
                assert_string_equal(plan.items[0].to, rows[i].to);
                assert_string_equal(plan.items[1].to, rows[i].name);
        }
}

TEST_MAIN(test_judge, test_permitted_actions, test_advice, test_plan_rename, test_plan_rename_again)
