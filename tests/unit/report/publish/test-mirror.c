/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/mirror.h"

#include "tests/fixtures/json.h"
#include "tests/fixtures/mirror.h"
#include "tests/shims/fail-alloc.h"

/* Makes the list that GET in_tree returns: a child "gpu" of "host" with these generations; -1 omits
 * a provider. */
static PlacementProviders list_of(int64_t host, int64_t gpu)
{
        PlacementProviders list = PLACEMENT_PROVIDERS_INIT;

        list.items = calloc(2, sizeof(PlacementProvider));
        assert_non_null(list.items);
        if (host >= 0)
                list.items[list.n_items++] = (PlacementProvider){
                        .uuid = make_uuid("host"),
                        .name = strdup("host"),
                        .generation = host,
                };
        if (gpu >= 0)
                list.items[list.n_items++] = (PlacementProvider){
                        .uuid = make_uuid("gpu"),
                        .parent = make_uuid("host"),
                        .name = strdup("gpu"),
                        .generation = gpu,
                };
        return list;
}

static int read_text(Mirror *mirror, const char *name, PlacementPart part, const char *text)
{
        _cleanup_json_ json_t *body = fixture_json(text);
        Uuid uuid = make_uuid(name);

        return mirror_read(mirror, &uuid, part, body, NULL);
}

static void read_all(Mirror *mirror, const char *name, int64_t generation)
{
        char text[200];

        snprintf(text, sizeof(text),
                 "{'resource_provider_generation':%lld,'inventories':{'CUSTOM_C':{'total':4}},"
                 "'traits':['CUSTOM_T','HW_A'],'aggregates':['x']}",
                 (long long)generation);
        assert_int_equal(read_text(mirror, name, PLACEMENT_TRAITS, text), 0);
        assert_int_equal(read_text(mirror, name, PLACEMENT_INVENTORIES, text), 0);
        assert_int_equal(read_text(mirror, name, PLACEMENT_AGGREGATES, text), 0);
}

/* Replaces the mirror with the next one. */
static void advance(Mirror **mirror, int64_t host, int64_t gpu)
{
        _cleanup_(placement_providers_done) PlacementProviders list = list_of(host, gpu);
        Mirror *next = NULL;

        assert_int_equal(mirror_make_next(*mirror, NULL, &list, &next, NULL), 0);
        mirror_free(*mirror);
        *mirror = next;
}

static size_t count_stale(const Mirror *mirror)
{
        _cleanup_free_ Uuid *list = NULL;
        size_t n;

        assert_int_equal(mirror_list_stale(mirror, &list, &n), 0);
        return n;
}

static int set_up(void **state)
{
        Mirror *mirror = NULL;

        assert_int_equal(mirror_new(&mirror), 0);
        advance(&mirror, 3, 5);
        read_all(mirror, "host", 3);
        read_all(mirror, "gpu", 5);
        *state = mirror;
        return 0;
}

static int tear_down(void **state)
{
        mirror_free(*state);
        return 0;
}

static void test_first_read(void **state)
{
        Mirror *mirror = *state;

        assert_int_equal(count_stale(mirror), 0);
        assert_false(mirror_has_stale(mirror));
        assert_int_equal(generation_of(mirror, "host"), 3);
        assert_int_equal(generation_of(mirror, "gpu"), 5);
        assert_int_equal(generation_of(mirror, "nobody"), -1);
        assert_int_equal(provider_find_inventory(provider_of(mirror, "gpu"), "CUSTOM_C")->total, 4);
        assert_true(string_set_contains(&provider_of(mirror, "gpu")->traits, "HW_A"));
        assert_true(string_set_contains(&provider_of(mirror, "gpu")->aggregates, "x"));
        /* Placement has the names that a provider has. */
        assert_true(string_set_contains(&mirror->names.known_classes, "CUSTOM_C"));
        assert_true(string_set_contains(&mirror->names.known_traits, "CUSTOM_T"));
}

static void test_list_marks_stale_providers(void **state)
{
        static const struct {
                int64_t host, gpu;
                bool current;
                size_t n_stale, n_providers;
        } cases[] = {
                { 3, 5, true, 0, 2 },  { 3, 6, false, 1, 2 },  { 4, 6, false, 2, 2 },
                { 3, 4, false, 1, 2 }, { 3, -1, false, 0, 1 }, { -1, -1, false, 0, 0 },
        };
        const Mirror *mirror = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(placement_providers_done) PlacementProviders list =
                        list_of(cases[i].host, cases[i].gpu);
                _cleanup_(mirror_freep) Mirror *next = NULL;

                assert_int_equal(mirror_is_current(mirror, &list), cases[i].current);
                assert_int_equal(mirror_make_next(mirror, NULL, &list, &next, NULL), 0);
                assert_int_equal(count_stale(next), cases[i].n_stale);
                assert_int_equal(next->tree->n_providers, cases[i].n_providers);
                /* The names stay known when providers change or go. */
                assert_true(string_set_contains(&next->names.known_traits, "CUSTOM_T"));
        }
}

static void test_unchanged_content_is_kept(void **state)
{
        Mirror *mirror = *state;

        advance(&mirror, 3, 6);
        *state = mirror;
        assert_int_equal(generation_of(mirror, "host"), 3);
        assert_int_equal(generation_of(mirror, "gpu"), -1);
        assert_int_equal(provider_of(mirror, "host")->traits.n_items, 2);
        assert_int_equal(provider_of(mirror, "gpu")->traits.n_items, 0);
        read_all(mirror, "gpu", 7);
        assert_int_equal(generation_of(mirror, "gpu"), 7);
}

static void test_a_rename_is_seen(void **state)
{
        _cleanup_(placement_providers_done) PlacementProviders list = list_of(3, 5);
        const Mirror *mirror = *state;

        free(list.items[1].name);
        list.items[1].name = strdup("gpu-renamed");
        assert_false(mirror_is_current(mirror, &list));
}

/* Another writer changes the provider between its reads. */
static void test_torn_read(void **state)
{
        static const char before[] = "{'resource_provider_generation':8,'inventories':{},"
                                     "'traits':[],'aggregates':[]}";
        static const char after[] = "{'resource_provider_generation':9,'inventories':{},"
                                    "'traits':[],'aggregates':[]}";
        Mirror *mirror = *state;

        advance(&mirror, 3, 8);
        *state = mirror;
        assert_int_equal(read_text(mirror, "gpu", PLACEMENT_TRAITS, before), 0);
        assert_int_equal(read_text(mirror, "gpu", PLACEMENT_AGGREGATES, after), 0);
        assert_int_equal(read_text(mirror, "gpu", PLACEMENT_INVENTORIES, after), MIRROR_TORN);
        assert_int_equal(generation_of(mirror, "gpu"), -1);
        assert_int_equal(read_text(mirror, "gpu", PLACEMENT_TRAITS, after), 0);
        assert_int_equal(read_text(mirror, "gpu", PLACEMENT_AGGREGATES, after), 0);
        assert_int_equal(read_text(mirror, "gpu", PLACEMENT_INVENTORIES, after), 0);
        assert_int_equal(generation_of(mirror, "gpu"), 9);
}

static void test_bad_answers(void **state)
{
        static const char *const texts[] = {
                "{}",
                "{'traits':[]}",
                "{'resource_provider_generation':8}",
                "{'resource_provider_generation':8,'traits':{}}",
        };
        Mirror *mirror = *state;

        advance(&mirror, 3, 8);
        *state = mirror;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                assert_int_equal(read_text(mirror, "gpu", PLACEMENT_TRAITS, texts[i]), -EBADMSG);
        assert_int_equal(generation_of(mirror, "gpu"), -1);
}

static void test_writes(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *desired =
                make_tree("host VCPU=8 +HW_B @y | new<host");
        Mirror *mirror = *state;
        Uuid gpu = make_uuid("gpu");

        assert_int_equal(mirror_add(mirror, desired->providers[1], 0), 0);
        assert_int_equal(generation_of(mirror, "new"), 0);
        assert_int_equal(mirror_write(mirror, desired->providers[0], PLACEMENT_INVENTORIES, 4), 0);
        assert_int_equal(generation_of(mirror, "host"), 4);
        assert_non_null(provider_find_inventory(provider_of(mirror, "host"), "VCPU"));
        assert_null(provider_find_inventory(provider_of(mirror, "host"), "CUSTOM_C"));
        assert_true(string_set_contains(&provider_of(mirror, "host")->traits, "HW_A"));
        assert_int_equal(mirror_write(mirror, desired->providers[0], PLACEMENT_TRAITS, 5), 0);
        assert_false(string_set_contains(&provider_of(mirror, "host")->traits, "HW_A"));
        assert_int_equal(mirror_write(mirror, desired->providers[0], PLACEMENT_AGGREGATES, 6), 0);
        assert_true(string_set_contains(&provider_of(mirror, "host")->aggregates, "y"));
        assert_int_equal(generation_of(mirror, "host"), 6);
        mirror_remove(mirror, &gpu);
        assert_null(provider_of(mirror, "gpu"));
        assert_int_equal(generation_of(mirror, "gpu"), -1);
        assert_false(mirror_has_stale(mirror));
        assert_int_equal(mirror->tree->n_providers, 2);
}

static void test_write_to_unknown_provider(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *desired = make_tree("nobody VCPU=8");

        assert_int_equal(mirror_write(*state, desired->providers[0], PLACEMENT_TRAITS, 4), -ENOENT);
}

static void test_forgetting(void **state)
{
        _cleanup_(placement_providers_done) PlacementProviders list = list_of(3, 5);
        Mirror *mirror = *state;
        Uuid gpu = make_uuid("gpu");

        mirror_forget(mirror, &gpu);
        assert_true(mirror_has_stale(mirror));
        assert_int_equal(count_stale(mirror), 1);
        /* The tree keeps the old content until the next read. */
        assert_int_equal(provider_of(mirror, "gpu")->traits.n_items, 2);
        assert_false(mirror_is_current(mirror, &list));
        advance(&mirror, 3, 5);
        *state = mirror;
        assert_int_equal(count_stale(mirror), 1);
        read_all(mirror, "gpu", 5);
        assert_false(mirror_has_stale(mirror));

        /* Only providers that changed in the list are read again. */
        mirror_forget(mirror, NULL);
        assert_true(mirror_has_stale(mirror));
        assert_int_equal(count_stale(mirror), 0);
        assert_false(mirror_is_current(mirror, &list));
}

/* A creation whose answer was lost: the mirror can lack a provider. */
static void test_forgetting_an_unknown_provider(void **state)
{
        _cleanup_(placement_providers_done) PlacementProviders list = list_of(3, 5);
        Mirror *mirror = *state;
        Uuid stranger = make_uuid("stranger");

        mirror_forget(mirror, &stranger);
        assert_true(mirror_has_stale(mirror));
        assert_false(mirror_is_current(mirror, &list));
        advance(&mirror, 3, 5);
        *state = mirror;
        assert_false(mirror_has_stale(mirror));
        assert_true(mirror_is_current(mirror, &list));
}

static void test_names(void **state)
{
        Mirror *mirror = *state;
        const MirrorNames *names = &mirror->names;

        assert_int_equal(mirror_learn(mirror, PLACEMENT_TRAITS, "HW_B", false), 0);
        assert_true(string_set_contains(&names->missing_traits, "HW_B"));
        /* A provider that has the trait proves that it exists. */
        read_all(mirror, "gpu", 5);
        assert_int_equal(mirror_learn(mirror, PLACEMENT_TRAITS, "CUSTOM_T", false), 0);
        assert_false(string_set_contains(&names->known_traits, "CUSTOM_T"));
        read_all(mirror, "gpu", 5);
        assert_true(string_set_contains(&names->known_traits, "CUSTOM_T"));
        assert_false(string_set_contains(&names->missing_traits, "CUSTOM_T"));

        assert_int_equal(mirror_learn(mirror, PLACEMENT_TRAITS, "HW_B", true), 0);
        assert_false(string_set_contains(&names->missing_traits, "HW_B"));
        assert_int_equal(mirror_learn(mirror, PLACEMENT_TRAITS, "HW_C", false), 0);
        assert_int_equal(mirror_learn(mirror, PLACEMENT_INVENTORIES, "CUSTOM_C", false), 0);
        assert_true(string_set_contains(&names->missing_classes, "CUSTOM_C"));
        mirror_forget_names(mirror, false);
        assert_int_equal(names->missing_traits.n_items, 0);
        assert_int_equal(names->missing_classes.n_items, 0);
        assert_true(string_set_contains(&names->known_traits, "HW_B"));
        mirror_forget_names(mirror, true);
        assert_int_equal(names->known_traits.n_items, 0);
        assert_int_equal(names->known_classes.n_items, 0);
}

/* Each change of the mirror forgets the list that it was equal to. */
static void test_the_list_is_forgotten(void **state)
{
        _cleanup_(placement_providers_done) PlacementProviders list = list_of(3, 5);
        _cleanup_(provider_tree_freep) ProviderTree *desired = make_tree("host VCPU=8 | new<host");
        const PlacementSeen seen = { .modified_sec = 7 };
        Uuid host = make_uuid("host");

        for (unsigned i = 0; i < 8; i++) {
                _cleanup_(mirror_freep) Mirror *mirror = NULL, *next = NULL;
                int r = 0;

                assert_int_equal(mirror_new(&mirror), 0);
                assert_int_equal(mirror_make_next(mirror, NULL, &list, &next, NULL), 0);
                assert_null(next->list);
                mirror_set_list(next, &seen);
                assert_int_equal(next->list->modified_sec, 7);
                read_all(next, "gpu", 5);
                assert_non_null(next->list);
                switch (i) {
                case 0: /* a newer generation than that of the list */
                        read_all(next, "host", 4);
                        break;
                case 1:
                        r = mirror_add(next, desired->providers[1], 0);
                        assert_true(mirror_is_new(next, &desired->providers[1]->uuid));
                        break;
                case 2:
                        r = mirror_write(next, desired->providers[0], PLACEMENT_INVENTORIES, 4);
                        break;
                case 3:
                        mirror_remove(next, &host);
                        break;
                case 4:
                        mirror_forget(next, &host);
                        break;
                case 5:
                        mirror_forget(next, NULL);
                        break;
                case 6:
                        mirror_forget_generations(next);
                        mirror_forget_names(next, true);
                        break;
                default:
                        (void)mirror_move(next, &desired->providers[0]->uuid,
                                          &desired->providers[0]->parent, 3);
                }
                assert_int_equal(r, 0);
                if (next->list)
                        fail_msg("case %u", i);
        }
}

static void test_out_of_memory(void **state)
{
        _cleanup_(placement_providers_done) PlacementProviders list = list_of(3, 6);
        _cleanup_(mirror_freep) Mirror *next = NULL;
        const Mirror *mirror = *state;
        unsigned at;
        int r;

        FAIL_ALLOC_EACH(at, r = mirror_make_next(mirror, NULL, &list, &next, NULL)) {
                assert_int_equal(r, -ENOMEM);
                assert_null(next);
        }
        assert_int_equal(r, 0);
        assert_true(at > 10);
}

/* A part that could not be stored leaves the provider stale. */
static void test_write_out_of_memory(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *desired = make_tree("host VCPU=8 MEMORY_MB=1");
        Mirror *mirror = *state;

        fail_alloc_at(1);
        assert_int_equal(mirror_write(mirror, desired->providers[0], PLACEMENT_INVENTORIES, 4),
                         -ENOMEM);
        assert_true(fail_alloc_done());
        assert_int_equal(generation_of(mirror, "host"), -1);
        assert_true(mirror_has_stale(mirror));
}

/* Another owner of the tree sees none of the later changes. */
static void test_a_referenced_tree_does_not_change(void **state)
{
        Mirror *mirror = *state;
        const ProviderTree *kept = mirror->tree;
        _cleanup_(provider_tree_freep) ProviderTree *shared = provider_tree_ref(kept),
                                                    *before = NULL;
        Provider *gpu = provider_tree_find_name(kept, "gpu");
        const Uuid uuid = gpu->uuid, host = make_uuid("host");
        Provider written = { .uuid = host };

        assert_int_equal(provider_tree_copy(&before, shared), 0);
        assert_int_equal(mirror_write(mirror, &written, PLACEMENT_TRAITS, 9), 0);
        mirror_remove(mirror, &uuid);
        assert_true(provider_tree_equal(shared, before));
        assert_ptr_not_equal(mirror->tree, shared);
        assert_null(provider_tree_find(mirror->tree, &uuid));
        /* Without another owner the tree changes in place. */
        kept = mirror->tree;
        assert_int_equal(mirror_write(mirror, &written, PLACEMENT_AGGREGATES, 10), 0);
        assert_ptr_equal(mirror->tree, kept);
}

static void learn_traits(Mirror *mirror, const char *text, bool exist)
{
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *word;

        while ((word = strtok_r(rest, " ", &rest)))
                assert_int_equal(mirror_learn(mirror, PLACEMENT_TRAITS, word, exist), 0);
}

static void test_unknown_traits(void **state)
{
        static const struct {
                const char *desired, *known, *missing, *asked;
        } cases[] = {
                { "", "", "", "" },
                { "host +HW_A +CUSTOM_B", "", "", "CUSTOM_B HW_A" },
                { "host +HW_A | a +HW_A +HW_B", "", "", "HW_A HW_B" },
                { "host +HW_A +HW_B", "HW_A", "", "HW_B" },
                { "host +HW_A", "HW_A", "", "" },
                /* A trait that Placement lacked is not looked up in every cycle. */
                { "host +HW_A +HW_OLD", "HW_A", "HW_OLD", "" },
                /* It is looked up together with an unknown trait. */
                { "host +HW_A +HW_OLD", "", "HW_OLD", "HW_A HW_OLD" },
                /* Placement rejects the whole request for an invalid name. */
                { "host +lower +HW-A +HW_A", "", "", "HW_A" },
                { "host +lower,HW_B", "", "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *desired = make_tree(cases[i].desired);
                _cleanup_(string_set_done) StringSet asked = STRING_SET_INIT,
                                                     classes = STRING_SET_INIT;
                _cleanup_(mirror_freep) Mirror *mirror = NULL;
                char text[200] = "";

                assert_int_equal(mirror_new(&mirror), 0);
                learn_traits(mirror, cases[i].known, true);
                learn_traits(mirror, cases[i].missing, false);
                assert_int_equal(mirror_list_unknown(mirror, desired, &asked, &classes), 0);
                for (size_t j = 0; j < asked.n_items; j++)
                        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
                                 j > 0 ? " " : "", asked.items[j]);
                assert_string_equal(text, cases[i].asked);
                assert_int_equal(classes.n_items, 0);
        }
}

TEST_MAIN_WITH(set_up, tear_down, test_unknown_traits, test_a_referenced_tree_does_not_change,
               test_first_read, test_list_marks_stale_providers, test_unchanged_content_is_kept,
               test_a_rename_is_seen, test_torn_read, test_bad_answers, test_writes,
               test_write_to_unknown_provider, test_forgetting, test_forgetting_an_unknown_provider,
               test_names, test_the_list_is_forgotten, test_out_of_memory, test_write_out_of_memory)
