/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/claim/host-view.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

static const char *name_of(const HostView *view, size_t index)
{
        return view->tree->providers[index]->name;
}

static void test_root(void **state)
{
        static const struct {
                const char *host;
                const char *root; /* NULL: none */
        } cases[] = {
                { "", NULL },
                { "host", "host" },
                { "other; host", "host" },
                { "other; another; x<other", "other" },
                { "pool +MISC_SHARES_VIA_AGGREGATE; real", "real" },
                { "pool +MISC_SHARES_VIA_AGGREGATE", NULL },
                { "real; host<real", "real" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(host_view_freep) HostView *view = make_view(cases[i].host);
                size_t root;
                bool found = host_view_root(view, "host", &root);

                assert_int_equal(found, cases[i].root != NULL);
                if (found)
                        assert_string_equal(name_of(view, root), cases[i].root);
        }
}

static void test_usable(void **state)
{
        _cleanup_(host_view_freep) HostView *view = make_view(
                "pool1 +MISC_SHARES_VIA_AGGREGATE @A; pool2 +MISC_SHARES_VIA_AGGREGATE @B;"
                "pool3 +MISC_SHARES_VIA_AGGREGATE @C; host @X; child<host @A;"
                "gone<host @C; other @B; below<gone @C");
        bool usable[8], expected[8] = { true, false, false, true, true, false, false, false };

        assert_int_equal(view->n_providers, 8);
        view->providers[5].withheld = true;
        view->providers[7].withheld = true;
        host_view_usable(view, "host", usable);
        for (size_t i = 0; i < 8; i++)
                if (usable[i] != expected[i])
                        fail_msg("%s", name_of(view, i));
}

static void assert_host(const HostView *view, const char *expected)
{
        char text[512] = "";

        for (size_t i = 0; i < view->n_providers; i++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s/%d/%d",
                         i ? " " : "", view->providers[i].withheld ? "-" : "", name_of(view, i),
                         (int)view->providers[i].id, (int)view->providers[i].used.n_items);
        assert_string_equal(text, expected);
}

static void test_merge(void **state)
{
        _cleanup_(host_view_freep) HostView *seen = make_view(
                "host VCPU=1; cell<host; used<cell VGPU=2 +T @A; idle<cell VGPU=1; stays<host VCPU=2");
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host VCPU=2; new<host;"
                                                                      "stays<new VCPU=2");
        _cleanup_(host_view_freep) HostView *merged = NULL, *again = NULL, *later = NULL;
        Uuid uuid = make_uuid("used");
        size_t used;

        seen->epoch = 5;
        seen->providers[0].generation = 3;
        use_some(seen, "used", "VGPU", 1);
        use_some(seen, "stays", "VCPU", 2);
        assert_int_equal(host_view_merge(&merged, seen, tree, NULL), 0);
        assert_host(merged, "host/1/0 new/0/0 stays/5/1 -cell/2/0 -used/3/1");
        assert_int_equal(merged->epoch, 5);
        assert_int_equal(merged->providers[0].generation, 3);
        assert_true(host_view_find(merged, &uuid, &used));
        assert_int_equal(provider_find_inventory(merged->tree->providers[used], "VGPU")->total, 2);
        assert_true(string_set_contains(&merged->tree->providers[used]->traits, "T"));
        assert_int_equal(merged->tree->providers[used]->aggregates.n_items, 1);
        assert_false(host_view_same_host(seen, merged));

        /* The same tree again changes nothing. Without usage, the other providers are removed. */
        assert_int_equal(host_view_merge(&again, merged, tree, NULL), 0);
        assert_true(host_view_same_host(merged, again));
        resources_done(&merged->providers[used].used);
        assert_int_equal(host_view_merge(&later, merged, tree, NULL), 0);
        assert_host(later, "host/1/0 new/0/0 stays/5/1");
}

static void test_merge_name_taken(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *old = NULL, *tree = NULL;
        _cleanup_(host_view_freep) HostView *seen = NULL, *merged = NULL;
        Uuid uuids[] = { make_uuid("1"), make_uuid("2") };
        char name[PROVIDER_NAME_MAX * 2 + 1], expected[PROVIDER_NAME_MAX + 1];

        /* 200 characters of two bytes each */
        for (size_t i = 0; i < PROVIDER_NAME_MAX; i++)
                memcpy(name + i * 2, "\xc3\xa4", 3);
        assert_int_equal(provider_tree_new(&old), 0);
        assert_int_equal(provider_tree_new(&tree), 0);
        assert_int_equal(provider_tree_add(old, &uuids[0], name, NULL, NULL, NULL), 0);
        assert_int_equal(provider_tree_add(old, &uuids[1], "other", NULL, NULL, NULL), 0);
        assert_int_equal(provider_tree_add(tree, &uuids[1], name, NULL, NULL, NULL), 0);
        assert_int_equal(host_view_new(&seen, old), 0);
        old = NULL;
        assert_int_equal(resources_set(&seen->providers[0].used, "VCPU", 1), 0);
        assert_int_equal(host_view_merge(&merged, seen, tree, NULL), 0);
        assert_int_equal(merged->n_providers, 2);
        assert_string_equal(name_of(merged, 0), name);
        snprintf(expected, sizeof(expected), "%.162s.%s", name, uuids[0].text);
        assert_string_equal(name_of(merged, 1), expected);
}

/* Placement has the host and one of its devices under other uuids: their rows stay. */
static void test_merge_another_uuid(void **state)
{
        _cleanup_(host_view_freep) HostView *merged = NULL,
                                            *seen = make_view("host VCPU=8; gpu<host VGPU=4; "
                                                              "gone<host");
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        Uuid root = make_uuid("placement's"), gpu = make_uuid("nova's");

        seen->providers[1].generation = 7;
        use_some(seen, "host", "VCPU", 3);
        use_some(seen, "gpu", "VGPU", 1);
        assert_int_equal(provider_tree_new(&tree), 0);
        assert_int_equal(provider_tree_add(tree, &root, "host", NULL, NULL, NULL), 0);
        assert_int_equal(provider_tree_add(tree, &gpu, "gpu", &root, NULL, NULL), 0);
        assert_int_equal(host_view_merge(&merged, seen, tree, NULL), 0);
        assert_host(merged, "host/1/1 gpu/2/1");
        assert_int_equal(merged->providers[1].generation, 7);
        assert_true(uuid_equal(&merged->tree->providers[1]->uuid, &gpu));
        assert_false(host_view_same_host(seen, merged));
}

static void test_equal(void **state)
{
        static const struct {
                const char *a, *b;
                bool equal;
        } cases[] = {
                { "host VCPU=1; x<host; y<host", "host VCPU=1; y<host; x<host", true },
                { "host VCPU=1", "host VCPU=2", false },
                { "host VCPU=1", "host MEMORY_MB=1", false },
                { "host VCPU=1/0/1/1/1/1.1", "host VCPU=1/0/1/1/1/1.10000002384", true },
                { "host VCPU=1/0/1/1/1/1.1", "host VCPU=1/0/1/1/1/1.2", false },
                { "host +A", "host +B", false },
                { "host @A", "host @B", false },
                { "host; x<host", "host; x", false },
                { "host", "other", false },
                { "host; x", "host", false },
                { "", "", true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(host_view_freep) HostView *a = make_view(cases[i].a),
                                                    *b = make_view(cases[i].b);

                if (host_view_same_host(a, b) != cases[i].equal ||
                    host_view_same_host(b, a) != cases[i].equal)
                        fail_msg("%s | %s", cases[i].a, cases[i].b);
                if (a->n_providers == 0)
                        continue;
                a->providers[0].withheld = true;
                assert_false(host_view_same_host(a, b));
        }
}

TEST_MAIN(test_root, test_usable, test_merge, test_merge_name_taken, test_merge_another_uuid,
          test_equal)
