/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/answer.h"

#include "base/text.h"
#include "report/placement/request.h"
#include "tests/fixtures/json.h"

#define A "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
#define B "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
#define C "cccccccc-cccc-cccc-cccc-cccccccccccc"

#define PROVIDER(uuid, name, parent)                                                         \
        "{'uuid':'" uuid "','name':'" name "','generation':3,'parent_provider_uuid':" parent \
        ",'links':[]}"
#define LIST(text) "{'resource_providers':[" text "]}"
#define Q(text)    "'" text "'"

static void test_tree_is_sorted(void **state)
{
        static const char *const texts[] = {
                LIST(PROVIDER(A, "grandchild",
                              Q(B)) "," PROVIDER(B, "child", Q(C)) "," PROVIDER(C, "root", "null")),
                LIST(PROVIDER(C, "root", "null") "," PROVIDER(A, "grandchild",
                                                              Q(B)) "," PROVIDER(B, "child", Q(C))),
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(placement_providers_done) PlacementProviders providers =
                        PLACEMENT_PROVIDERS_INIT;
                _cleanup_json_ json_t *body = fixture_json(texts[i]);

                assert_int_equal(placement_read_tree(body, &providers, NULL), 0);
                assert_int_equal(providers.n_items, 3);
                assert_string_equal(providers.items[0].name, "root");
                assert_true(uuid_empty(&providers.items[0].parent));
                assert_string_equal(providers.items[1].name, "child");
                assert_string_equal(providers.items[2].name, "grandchild");
                assert_string_equal(providers.items[2].parent.text, B);
                assert_int_equal(providers.items[2].generation, 3);
        }
}

static void test_empty_tree(void **state)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        _cleanup_json_ json_t *body = fixture_json(LIST(""));

        assert_int_equal(placement_read_tree(body, &providers, NULL), 0);
        assert_int_equal(providers.n_items, 0);
}

static void test_bad_trees(void **state)
{
        static const struct {
                const char *text, *words;
        } cases[] = {
                { "{}", "resource_providers" },
                { "{'resource_providers':{}}", "not an array" },
                { LIST("1"), "not an object" },
                { LIST("{}"), "uuid" },
                { LIST("{'uuid':'nonsense'}"), "not a uuid" },
                { LIST("{'uuid':'" A "','name':5,'generation':1,'parent_provider_uuid':null}"),
                  "\"name\" is not a string" },
                { LIST("{'uuid':'" A "','name':'a'}"), "generation" },
                { LIST("{'uuid':'" A "','name':'a','generation':'1'}"), "generation" },
                { LIST("{'uuid':'" A "','name':'a','generation':-1}"), "negative" },
                { LIST("{'uuid':'" A "','name':'a','generation':1}"), "parent_provider_uuid" },
                { LIST(PROVIDER(A, "a", Q("x"))), "parent_provider_uuid" },
                { LIST(PROVIDER(A, "a", "null") "," PROVIDER(A, "b", "null")), "is listed twice" },
                { LIST(PROVIDER(A, "a", "null") "," PROVIDER(B, "a", "null")), "is listed twice" },
                { LIST(PROVIDER(A, "a", Q(B))), "outside" },
                { LIST(PROVIDER(A, "a", Q(A))), "own ancestor" },
                { LIST(PROVIDER(A, "a", Q(B)) "," PROVIDER(B, "b", Q(A))), "own ancestor" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(placement_providers_done) PlacementProviders providers =
                        PLACEMENT_PROVIDERS_INIT;
                _cleanup_json_ json_t *body = fixture_json(cases[i].text);
                Error error = ERROR_NULL;

                if (placement_read_tree(body, &providers, &error) != -EBADMSG)
                        fail_msg("%s was taken", cases[i].text);
                if (!strstr(error.text, cases[i].words))
                        fail_msg("%s: \"%s\"", cases[i].text, error.text);
                assert_null(providers.items);
        }
        assert_int_equal(placement_read_tree(NULL, &(PlacementProviders){ 0 }, NULL), -EBADMSG);
}

/* A body of the permitted size can have a million providers. */
static void test_too_many_providers(void **state)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        _cleanup_json_ json_t *body = fixture_json(LIST(""));
        json_t *array = json_object_get(body, "resource_providers");

        for (size_t i = 0; i <= PLACEMENT_PROVIDERS_MAX; i++)
                json_array_append_new(array, json_null());
        assert_int_equal(placement_read_tree(body, &providers, NULL), -EBADMSG);
}

/* A foreign name is accepted as far as it can be shown, and causes no failure. */
static void test_odd_names(void **state)
{
        static const char kanji[] = "\xe6\xa9\x9f";
        static const struct {
                const char *text;
                unsigned times;
                const char *name; /* NULL: the unchanged text */
        } cases[] = {
                { kanji, 200, NULL },
                { kanji, 201, "\xe6\xa9\x9f (" A ")" },
                { "x", 201, "x (" A ")" },
                { "", 1, " (" A ")" },
                { "a\\u0000b", 1, "a?b (" A ")" },
                { "\\u0000", 1, "? (" A ")" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(placement_providers_done) PlacementProviders providers =
                        PLACEMENT_PROVIDERS_INIT;
                char name[700] = "", text[1000];
                _cleanup_json_ json_t *body = NULL;
                const char *taken, *wanted = cases[i].name;

                for (unsigned n = 0; n < cases[i].times; n++)
                        strcat(name, cases[i].text);
                snprintf(text, sizeof(text), LIST(PROVIDER(A, "%s", "null")), name);
                assert_int_equal(json_parse_with_nul(with_quotes(text), strlen(text), &body, NULL),
                                 0);
                assert_int_equal(placement_read_tree(body, &providers, NULL), 0);
                taken = providers.items[0].name;
                if (wanted ? strcmp(taken + strlen(taken) - strlen(wanted), wanted) != 0
                           : strcmp(taken, name) != 0)
                        fail_msg("%s", taken);
                assert_true(text_count_characters(taken) <= PROVIDER_NAME_MAX);
        }
}

static void test_deep(void **state)
{
        _cleanup_(placement_providers_done) PlacementProviders providers = PLACEMENT_PROVIDERS_INIT;
        _cleanup_json_ json_t *body = fixture_json(LIST(""));
        json_t *array = json_object_get(body, "resource_providers");
        Error error = ERROR_NULL;

        for (unsigned i = 0; i < PLACEMENT_PROVIDERS_MAX; i++) {
                char uuid[64], parent[64], name[16];

                snprintf(name, sizeof(name), "p%u", i);
                snprintf(uuid, sizeof(uuid), "00000000-0000-0000-0000-%012u", i);
                snprintf(parent, sizeof(parent), "00000000-0000-0000-0000-%012u", i - 1);
                json_array_append_new(array, json_pack("{ss ss si ss*}", "uuid", uuid, "name", name,
                                                       "generation", 1, "parent_provider_uuid",
                                                       i > 0 ? parent : NULL));
        }
        json_object_set_new(json_array_get(array, 0), "parent_provider_uuid", json_null());
        assert_int_equal(placement_read_tree(body, &providers, &error), 0);
        for (unsigned i = 1; i < PLACEMENT_PROVIDERS_MAX; i++)
                assert_true(uuid_equal(&providers.items[i].parent, &providers.items[i - 1].uuid));
}

static void test_inventories(void **state)
{
        static const struct {
                const char *text;
                int r;
                uint64_t vcpus;
        } cases[] = {
                { "{'inventories':{}}", 0, 0 },
                { "{'inventories':{'VCPU':{'total':8,'reserved':0,'min_unit':1,'max_unit':8,"
                  "'step_size':1,'allocation_ratio':4.0}}}",
                  0, 8 },
                { "{'inventories':{'VCPU':{'total':8,'allocation_ratio':1}}}", 0, 8 },
                { "{}", -EBADMSG, 0 },
                { "{'inventories':[]}", -EBADMSG, 0 },
                { "{'inventories':{'VCPU':8}}", -EBADMSG, 0 },
                { "{'inventories':{'VCPU':{}}}", -EBADMSG, 0 },
                { "{'inventories':{'VCPU':{'total':0}}}", -EBADMSG, 0 },
                { "{'inventories':{'VCPU':{'total':1e9}}}", -EBADMSG, 0 },
                { "{'inventories':{'VCPU':{'total':99999999999}}}", -EBADMSG, 0 },
                { "{'inventories':{'not a class':{'total':1}}}", -EBADMSG, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *body = fixture_json(cases[i].text);
                Provider provider = { 0 };
                const Inventory *inventory;

                assert_int_equal(placement_read_part(body, PLACEMENT_INVENTORIES, &provider, NULL),
                                 cases[i].r);
                inventory = provider_find_inventory(&provider, "VCPU");
                assert_int_equal(inventory ? inventory->total : 0, cases[i].vcpus);
                provider_clear_inventories(&provider);
                free(provider.inventories);
        }
}

static void test_names(void **state)
{
        static const struct {
                const char *text;
                int r;
                size_t n;
        } cases[] = {
                { "{'traits':['B','A','B']}", 0, 2 },
                { "{'traits':[]}", 0, 0 },
                { "{}", -EBADMSG, 0 },
                { "{'traits':'A'}", -EBADMSG, 0 },
                { "{'traits':[1]}", -EBADMSG, 0 },
                { "{'traits':['A',null]}", -EBADMSG, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(string_set_done) StringSet set = STRING_SET_INIT;
                _cleanup_json_ json_t *body = fixture_json(cases[i].text);

                assert_int_equal(placement_read_traits(body, &set, NULL), cases[i].r);
                assert_int_equal(set.n_items, cases[i].n);
        }
}

static void test_too_many_names(void **state)
{
        _cleanup_json_ json_t *body = fixture_json("{'aggregates':[]}");
        Provider provider = { 0 };

        for (unsigned i = 0; i < 10000; i++)
                json_array_append_new(json_object_get(body, "aggregates"), json_string("x"));
        assert_int_equal(placement_read_part(body, PLACEMENT_AGGREGATES, &provider, NULL),
                         -EBADMSG);
}

static void test_generations(void **state)
{
        _cleanup_json_ json_t *body =
                fixture_json("{'resource_provider_generation':5,'generation':6}");
        _cleanup_json_ json_t *bad =
                fixture_json("{'resource_provider_generation':-5,'generation':1.5}");
        int64_t generation = 0;

        assert_int_equal(
                placement_read_generation(body, PLACEMENT_GENERATION_OF_PART, &generation, NULL),
                0);
        assert_int_equal(generation, 5);
        assert_int_equal(placement_read_generation(body, PLACEMENT_GENERATION, &generation, NULL),
                         0);
        assert_int_equal(generation, 6);

        assert_int_equal(
                placement_read_generation(bad, PLACEMENT_GENERATION_OF_PART, &generation, NULL),
                -EBADMSG);
        assert_int_equal(placement_read_generation(bad, PLACEMENT_GENERATION, &generation, NULL),
                         -EBADMSG);
        assert_int_equal(
                placement_read_generation(NULL, PLACEMENT_GENERATION_OF_PART, &generation, NULL),
                -EBADMSG);
        assert_int_equal(generation, 6);
}

static const char whole[] = "{'allocations':{'" A "':{'resources':{'VCPU':2}},'" B
                            "':{'resources':{'DISK_GB':3,'VGPU':1}}},'project_id':'p',"
                            "'user_id':'u','consumer_generation':7,'consumer_type':'MIGRATION'}";

static void test_consumer_is_read_and_written_alike(void **state)
{
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        _cleanup_json_ json_t *body = fixture_json(whole), *all = NULL, *expected = NULL;
        Uuid uuid = { C };
        const Consumer *consumer;

        assert_int_equal(allocations_new(&allocations), 0);
        assert_int_equal(placement_read_consumer(body, &uuid, allocations, NULL), 0);
        consumer = allocations_find(allocations, &uuid);
        assert_non_null(consumer);
        assert_int_equal(consumer->generation, 7);
        assert_string_equal(consumer->type, "MIGRATION");
        assert_int_equal(consumer_sum(consumer, "VGPU"), 1);
        all = placement_consumers_to_json(allocations, true);
        expected = json_pack("{sO}", C, body);
        assert_true(json_equal(all, expected));
}

static void test_consumer_without_allocations(void **state)
{
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        _cleanup_(consumer_freep) Consumer *consumer = NULL;
        _cleanup_json_ json_t *body = fixture_json("{'allocations':{}}");
        Uuid uuid = { C };

        assert_int_equal(allocations_new(&allocations), 0);
        assert_int_equal(placement_read_consumer(body, &uuid, allocations, NULL), 0);
        assert_int_equal(allocations->n_consumers, 0);
        assert_int_equal(placement_read_whole(body, &uuid, &consumer, NULL), 0);
        assert_int_equal(consumer->generation, -1);
}

/* Two providers, and a consumer with allocations of both. */
static void test_allocations_of_providers_add_up(void **state)
{
        static const struct {
                Uuid provider;
                const char *body;
        } answers[] = {
                { { A },
                  "{'allocations':{'" C "':{'resources':{'VCPU':2},'consumer_generation':1}},"
                  "'resource_provider_generation':5}" },
                { { B },
                  "{'allocations':{'" C "':{'resources':{'VCPU':1}},'" A
                  "':{'resources':{'VGPU':4}}}}" },
        };
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        Uuid both = { C }, one = { A };

        assert_int_equal(allocations_new(&allocations), 0);
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                _cleanup_json_ json_t *body = fixture_json(answers[i].body);

                assert_int_equal(placement_read_provider_allocations(body, &answers[i].provider,
                                                                     allocations, NULL),
                                 0);
        }
        assert_int_equal(allocations->n_consumers, 2);
        assert_int_equal(consumer_sum(allocations_find(allocations, &both), "VCPU"), 3);
        assert_int_equal(consumer_sum(allocations_find(allocations, &one), "VGPU"), 4);
}

static void test_foreign_allocations_are_refused(void **state)
{
        static const char *const bodies[] = {
                "{}",
                "[]",
                "{'allocations':5}",
                "{'allocations':{'nonsense':{'resources':{'VCPU':1}}}}",
                "{'allocations':{'" A "':5}}",
                "{'allocations':{'" A "':{'resources':[]}}}",
                "{'allocations':{'" A "':{'resources':{'VCPU':-1}}}}",
                "{'allocations':{'" A "':{'resources':{'VCPU':'1'}}}}",
                "{'allocations':{'" A "':{'resources':{'vcpu':1}}}}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                _cleanup_(allocations_freep) Allocations *allocations = NULL;
                _cleanup_json_ json_t *body = fixture_json(bodies[i]);
                Error error = ERROR_NULL;
                Uuid uuid = { C };

                assert_int_equal(allocations_new(&allocations), 0);
                if (placement_read_provider_allocations(body, &uuid, allocations, &error) !=
                    -EBADMSG)
                        fail_msg("provider: %s", bodies[i]);
                assert_int_not_equal(error.text[0], '\0');
                if (placement_read_consumer(body, &uuid, allocations, &error) != -EBADMSG)
                        fail_msg("consumer: %s", bodies[i]);
        }
}

static void test_consumer_needs_an_owner(void **state)
{
        static const char *const keys[] = { "project_id", "user_id", "consumer_generation" };

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                _cleanup_(consumer_freep) Consumer *consumer = NULL;
                _cleanup_json_ json_t *body = fixture_json(whole);
                Error error = ERROR_NULL;
                Uuid uuid = { C };

                json_object_del(body, keys[i]);
                assert_int_equal(placement_read_whole(body, &uuid, &consumer, &error), -EBADMSG);
                if (!strstr(error.text, keys[i]))
                        fail_msg("%s: %s", keys[i], error.text);
        }
}

#define OF(uuid, items)  "'" uuid "':{'resources':{" items "}}"
#define SUMMARIES(items) "{'allocation_requests':[],'provider_summaries':{" items "}}"

static void test_capacity(void **state)
{
        _cleanup_json_ json_t *body = fixture_json(SUMMARIES(
                OF(C, "'VCPU':{'capacity':8,'used':3},'DISK_GB':{'capacity':8,'used':9}") "," //
                OF(A, "'VGPU':{'capacity':1,'used':1}") "," OF(B, "")));
        _cleanup_(consumer_freep) Consumer *free_capacity = NULL;
        Uuid root = { C };

        assert_int_equal(placement_read_capacity(body, &free_capacity, NULL), 0);
        assert_int_equal(free_capacity->n_allocations, 1);
        assert_int_equal(consumer_get(free_capacity, &root, "VCPU"), 5);
        assert_int_equal(consumer_get(free_capacity, &root, "DISK_GB"), 0);
}

static void test_bad_capacity(void **state)
{
        static const char *const texts[] = {
                "{}",
                "{'provider_summaries':[]}",
                SUMMARIES("'x':{'resources':{}}"),
                SUMMARIES("'" A "':{}"),
                SUMMARIES(OF(A, "'VGPU':5")),
                SUMMARIES(OF(A, "'VGPU':{'capacity':-1,'used':0}")),
                SUMMARIES(OF(A, "'VGPU':{'capacity':1}")),
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_json_ json_t *body = fixture_json(texts[i]);
                Consumer *free_capacity = NULL;
                Error error = ERROR_NULL;

                assert_int_equal(placement_read_capacity(body, &free_capacity, &error), -EBADMSG);
                assert_true(error.text[0] != '\0');
                assert_null(free_capacity);
        }
}

TEST_MAIN(test_tree_is_sorted, test_empty_tree, test_bad_trees, test_too_many_providers, test_deep,
          test_odd_names, test_inventories, test_names, test_too_many_names, test_generations,
          test_consumer_is_read_and_written_alike, test_consumer_without_allocations,
          test_allocations_of_providers_add_up, test_foreign_allocations_are_refused,
          test_consumer_needs_an_owner, test_capacity, test_bad_capacity)
