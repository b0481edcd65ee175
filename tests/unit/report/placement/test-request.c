/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/request.h"

#include "base/json.h"
#include "tests/unit/test.h"

#define ROOT     "11111111-1111-1111-1111-111111111111"
#define CHILD    "22222222-2222-2222-2222-222222222222"
#define CONSUMER "33333333-3333-3333-3333-333333333333"
#define OTHER    "44444444-4444-4444-4444-444444444444"

static const Uuid root = { ROOT };
static const Uuid child = { CHILD };
static const Uuid consumer_a = { CONSUMER };
static const Uuid consumer_b = { OTHER };

/* Checks and frees the request. */
static void assert_request(PlacementRequest request, const char *method, const char *path,
                           const char *body)
{
        assert_string_equal(request.method, method);
        assert_string_equal(request.path, path);
        assert_string_equal(request.microversion, strcmp(method, "POST") == 0 ? "1.19" : "1.30");
        if (body)
                assert_string_equal(request.body, body);
        else
                assert_null(request.body);
        assert_int_equal(placement_request_writes(&request), strcmp(method, "GET") != 0);
        placement_request_done(&request);
}

static void test_plain_requests(void **state)
{
        assert_request(placement_get_tree(&root), "GET", "/resource_providers?in_tree=" ROOT, NULL);
        assert_request(placement_get_part(&root, PLACEMENT_INVENTORIES), "GET",
                       "/resource_providers/" ROOT "/inventories", NULL);
        assert_request(placement_get_part(&root, PLACEMENT_TRAITS), "GET",
                       "/resource_providers/" ROOT "/traits", NULL);
        assert_request(placement_get_part(&root, PLACEMENT_AGGREGATES), "GET",
                       "/resource_providers/" ROOT "/aggregates", NULL);
        assert_request(placement_request("PUT", "/traits/{name}", "CUSTOM_X"), "PUT",
                       "/traits/CUSTOM_X", NULL);
}

static void test_quoting(void **state)
{
        static const struct {
                const char *name, *path;
        } cases[] = {
                { "host-1.example_x~", "/resource_providers?name=host-1.example_x~" },
                { "a b&c=d", "/resource_providers?name=a%20b%26c%3Dd" },
                { "0000:81:00.0", "/resource_providers?name=0000%3A81%3A00.0" },
                { "h\xc3\xb6st/#?", "/resource_providers?name=h%C3%B6st%2F%23%3F" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_request(placement_get_provider_by_name(cases[i].name), "GET", cases[i].path,
                               NULL);
}

static void test_provider_bodies(void **state)
{
        _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        Inventory inventory = INVENTORY_DEFAULT(8);
        Provider *provider;

        assert_int_equal(provider_tree_new(&tree), 0);
        assert_int_equal(provider_tree_add(tree, &root, "host", NULL, &provider, NULL), 0);
        assert_request(placement_post_provider(provider), "POST", "/resource_providers",
                       "{\"uuid\":\"" ROOT "\",\"name\":\"host\"}");

        inventory.reserved = 1;
        inventory.max_unit = 8;
        inventory.allocation_ratio = 4;
        assert_int_equal(provider_set_inventory(provider, "VCPU", &inventory), 0);
        assert_int_equal(string_set_add(&provider->traits, "CUSTOM_B"), 1);
        assert_int_equal(string_set_add(&provider->traits, "CUSTOM_A"), 1);
        assert_request(placement_put_part(provider, PLACEMENT_INVENTORIES, 7), "PUT",
                       "/resource_providers/" ROOT "/inventories",
                       "{\"inventories\":{\"VCPU\":{\"total\":8,\"reserved\":1,\"min_unit\":1,"
                       "\"max_unit\":8,\"step_size\":1,\"allocation_ratio\":4.0}},"
                       "\"resource_provider_generation\":7}");
        assert_request(placement_put_part(provider, PLACEMENT_TRAITS, 8), "PUT",
                       "/resource_providers/" ROOT "/traits",
                       "{\"traits\":[\"CUSTOM_A\",\"CUSTOM_B\"],"
                       "\"resource_provider_generation\":8}");
        /* An empty set is sent, because the answer to DELETE has no generation. */
        assert_request(placement_put_part(provider, PLACEMENT_AGGREGATES, 9), "PUT",
                       "/resource_providers/" ROOT "/aggregates",
                       "{\"aggregates\":[],\"resource_provider_generation\":9}");

        assert_int_equal(provider_tree_add(tree, &child, "gpu", &root, &provider, NULL), 0);
        assert_request(placement_post_provider(provider), "POST", "/resource_providers",
                       "{\"uuid\":\"" CHILD "\",\"name\":\"gpu\",\"parent_provider_uuid\":\"" ROOT
                       "\"}");
        request = placement_put_provider(&child, "gpu", &root);
        assert_string_equal(request.microversion, "1.37");
        assert_string_equal(request.path, "/resource_providers/" CHILD);
        assert_string_equal(request.body,
                            "{\"name\":\"gpu\",\"parent_provider_uuid\":\"" ROOT "\"}");
        assert_request(placement_put_provider(&child, "new", NULL), "PUT",
                       "/resource_providers/" CHILD, "{\"name\":\"new\"}");
        assert_request(placement_request("GET", "/resource_providers/{uuid}", CHILD), "GET",
                       "/resource_providers/" CHILD, NULL);
}

/* Bug 2068893: a query with too many names is answered with 414. */
static void test_known_traits_are_split(void **state)
{
        _cleanup_(string_set_done) StringSet names = STRING_SET_INIT;
        size_t first = 0, n_requests = 0, n_names = 0;

        for (unsigned i = 0; i < 1000; i++) {
                char name[40];

                snprintf(name, sizeof(name), "CUSTOM_SOME_TRAIT_NUMBER_%04u", i);
                assert_int_equal(string_set_add(&names, name), 1);
        }
        while (first < names.n_items) {
                size_t before = first;
                _cleanup_(placement_request_done) PlacementRequest request =
                        placement_get_in("/traits", "?name=in:", &names, &first);

                assert_true(first > before);
                assert_true(strlen(request.path) <= PLACEMENT_PATH_MAX);
                assert_memory_equal(request.path, "/traits?name=in:CUSTOM_", 23);
                for (const char *c = request.path; (c = strstr(c, "NUMBER")); c++)
                        n_names++;
                n_requests++;
        }
        assert_int_equal(n_names, 1000);
        assert_int_equal(n_requests, 8);
}

static void test_one_huge_name_still_goes(void **state)
{
        _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
        _cleanup_(string_set_done) StringSet names = STRING_SET_INIT;
        char name[PLACEMENT_PATH_MAX * 2];
        size_t first = 0;

        memset(name, 'A', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        assert_int_equal(string_set_add(&names, name), 1);
        request = placement_get_in("/traits", "?name=in:", &names, &first);
        assert_non_null(request.path);
        assert_int_equal(first, 1);
}

/* Adds a consumer with an allocation of one VGPU of the child. */
static Consumer *add_consumer(Allocations *allocations, const Uuid *uuid, const char *type,
                              int64_t generation)
{
        Consumer *consumer;

        assert_int_equal(allocations_ensure(allocations, uuid, &consumer), 0);
        consumer->project_id = strdup("p");
        consumer->user_id = strdup("u");
        consumer->type = type ? strdup(type) : NULL;
        consumer->generation = generation;
        assert_int_equal(consumer_set(consumer, &child, "VGPU", 1), 0);
        return consumer;
}

static void test_reshaper(void **state)
{
        static const struct {
                const char *type;
                int64_t generation;
                const char *microversion, *end;
        } cases[] = {
                { NULL, 4, "1.30", "\"consumer_generation\":4}}}" },
                { NULL, -1, "1.30", "\"consumer_generation\":null}}}" },
                { "unknown", 4, "1.30", "\"consumer_generation\":4}}}" },
                { "INSTANCE", 4, "1.38",
                  "\"consumer_generation\":4,\"consumer_type\":\"INSTANCE\"}}}" },
        };
        static const char begin[] =
                "{\"inventories\":{\"" ROOT
                "\":{\"inventories\":{},\"resource_provider_generation\":5}},"
                "\"allocations\":{\"" CONSUMER "\":{\"allocations\":{\"" CHILD
                "\":{\"resources\":{\"VGPU\":1}}},\"project_id\":\"p\",\"user_id\":\"u\",";
        PlacementReshapeItem item = { .provider = root, .generation = 5 };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
                _cleanup_(allocations_freep) Allocations *allocations = NULL;

                assert_int_equal(allocations_new(&allocations), 0);
                add_consumer(allocations, &consumer_a, cases[i].type, cases[i].generation);
                request = placement_post_reshaper(&item, 1, allocations);
                assert_string_equal(request.path, "/reshaper");
                assert_string_equal(request.microversion, cases[i].microversion);
                assert_memory_equal(request.body, begin, strlen(begin));
                assert_string_equal(request.body + strlen(begin), cases[i].end);
        }
}

static void test_reshaper_without_allocations(void **state)
{
        PlacementReshapeItem item = { .provider = root, .generation = 5 };
        _cleanup_(placement_request_done) PlacementRequest request =
                placement_post_reshaper(&item, 1, NULL);

        assert_non_null(strstr(request.body, "\"allocations\":{}"));
}

#define HELD "{\"" CHILD "\":{\"resources\":{\"VGPU\":1}}}"

static void test_put_consumer(void **state)
{
        static const struct {
                const char *type;
                int64_t generation;
                bool mapped, old;
                const char *microversion, *tail;
        } cases[] = {
                { "INSTANCE", -1, false, false, "1.38",
                  ",\"consumer_generation\":null,\"consumer_type\":\"INSTANCE\"}" },
                { "INSTANCE", 4, true, false, "1.38",
                  ",\"consumer_generation\":4,\"consumer_type\":\"INSTANCE\",\"mappings\":"
                  "{\"\":[\"" ROOT "\"],\"1\":[\"" CHILD "\"]}}" },
                { "INSTANCE", 4, true, true, "1.30", ",\"consumer_generation\":4}" },
                /* Placement shows this type for an older writer, and rejects it. */
                { "unknown", 4, true, false, "1.30", ",\"consumer_generation\":4}" },
                { "", 4, true, false, "1.30", ",\"consumer_generation\":4}" },
                { NULL, 4, false, false, "1.30", ",\"consumer_generation\":4}" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
                _cleanup_(request_mappings_done) RequestMappings mappings = REQUEST_MAPPINGS_INIT;
                _cleanup_(allocations_freep) Allocations *consumers = NULL;
                const Consumer *consumer;
                char expected[500];

                assert_int_equal(allocations_new(&consumers), 0);
                consumer = add_consumer(consumers, &consumer_a, cases[i].type, cases[i].generation);
                assert_int_equal(request_mappings_add(&mappings, "", &root), 0);
                assert_int_equal(request_mappings_add(&mappings, "1", &child), 0);
                request = placement_put_consumer(consumer, cases[i].mapped ? &mappings : NULL,
                                                 cases[i].old);
                assert_string_equal(request.method, "PUT");
                assert_string_equal(request.path, "/allocations/" CONSUMER);
                assert_string_equal(request.microversion, cases[i].microversion);
                snprintf(expected, sizeof(expected),
                         "{\"allocations\":" HELD ",\"project_id\":\"p\",\"user_id\":\"u\"%s",
                         cases[i].tail);
                assert_string_equal(request.body, expected);
        }
}

static void test_post_consumers(void **state)
{
        static const struct {
                const char *types[2];
                bool old;
                const char *microversion;
        } cases[] = {
                { { "INSTANCE", "MIGRATION" }, false, "1.38" },
                { { "INSTANCE", "MIGRATION" }, true, "1.30" },
                { { "INSTANCE", "unknown" }, false, "1.30" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
                _cleanup_(allocations_freep) Allocations *consumers = NULL;
                _cleanup_json_ json_t *body = NULL;
                const json_t *first, *second;

                assert_int_equal(allocations_new(&consumers), 0);
                consumer_clear(add_consumer(consumers, &consumer_a, cases[i].types[0], 3));
                add_consumer(consumers, &consumer_b, cases[i].types[1], -1);
                request = placement_post_consumers(consumers, cases[i].old);
                assert_string_equal(request.method, "POST");
                assert_string_equal(request.path, "/allocations");
                assert_string_equal(request.microversion, cases[i].microversion);
                assert_int_equal(json_parse(request.body, strlen(request.body), &body, NULL), 0);
                first = json_object_get(body, CONSUMER);
                second = json_object_get(body, OTHER);
                /* A consumer that loses all allocations sends an empty set and its generation. */
                assert_int_equal(json_object_size(json_object_get(first, "allocations")), 0);
                assert_int_equal(json_integer_value(json_object_get(first, "consumer_generation")),
                                 3);
                assert_true(json_is_null(json_object_get(second, "consumer_generation")));
                assert_non_null(json_object_get(json_object_get(second, "allocations"), CHILD));
        }
}

static void test_capacity_request(void **state)
{
        _cleanup_(placement_request_done) PlacementRequest request =
                placement_get_capacity(&root, "VGPU", 3);

        assert_string_equal(request.path,
                            "/allocation_candidates?limit=1&resources=VGPU:3&in_tree=" ROOT);
        assert_string_equal(request.microversion, "1.31");
        assert_false(placement_request_writes(&request));
}

static void test_consumers_without_owner_are_refused(void **state)
{
        for (int known = 0; known < 3; known++) {
                _cleanup_(allocations_freep) Allocations *consumers = NULL;
                Error error = ERROR_NULL;
                Consumer *consumer;

                assert_int_equal(allocations_new(&consumers), 0);
                add_consumer(consumers, &consumer_a, NULL, 1);
                consumer = add_consumer(consumers, &consumer_b, NULL, 1);
                if (known < 2) {
                        char **id = known == 0 ? &consumer->project_id : &consumer->user_id;

                        free(TAKE_PTR(*id));
                }
                assert_int_equal(placement_check_consumers(consumers, &error),
                                 known == 2 ? 0 : -EINVAL);
                assert_int_equal(strstr(error.text, OTHER) != NULL, known != 2);
        }
        assert_int_equal(placement_check_consumers(NULL, NULL), 0);
}

TEST_MAIN(test_plain_requests, test_quoting, test_provider_bodies, test_known_traits_are_split,
          test_one_huge_name_still_goes, test_reshaper, test_reshaper_without_allocations,
          test_put_consumer, test_post_consumers, test_capacity_request,
          test_consumers_without_owner_are_refused)
