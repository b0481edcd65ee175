/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/request.h"

#include "tests/unit/test.h"

#define ROOT     "11111111-1111-1111-1111-111111111111"
#define CHILD    "22222222-2222-2222-2222-222222222222"
#define CONSUMER "33333333-3333-3333-3333-333333333333"

static const Uuid root = { ROOT };
static const Uuid child = { CHILD };

/* Takes the request over. */
static void assert_request(PlacementRequest request, const char *method, const char *path,
                           const char *body)
{
        assert_string_equal(request.method, method);
        assert_string_equal(request.path, path);
        assert_string_equal(request.microversion, "1.30");
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
        /* Emptied, not left out: DELETE would tell no generation. */
        assert_request(placement_put_part(provider, PLACEMENT_AGGREGATES, 9), "PUT",
                       "/resource_providers/" ROOT "/aggregates",
                       "{\"aggregates\":[],\"resource_provider_generation\":9}");

        assert_int_equal(provider_tree_add(tree, &child, "gpu", &root, &provider, NULL), 0);
        assert_request(placement_post_provider(provider), "POST", "/resource_providers",
                       "{\"uuid\":\"" CHILD "\",\"name\":\"gpu\",\"parent_provider_uuid\":\"" ROOT
                       "\"}");
        request = placement_put_provider(provider);
        assert_string_equal(request.microversion, "1.37");
        assert_string_equal(request.path, "/resource_providers/" CHILD);
        assert_string_equal(request.body,
                            "{\"name\":\"gpu\",\"parent_provider_uuid\":\"" ROOT "\"}");
        assert_request(placement_rename_provider(&child, "new"), "PUT",
                       "/resource_providers/" CHILD, "{\"name\":\"new\"}");
        assert_request(placement_get_provider(&child), "GET", "/resource_providers/" CHILD, NULL);
}

/* Bug 2068893: a query with too many names is answered 414. */
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
                        placement_get_known_traits(&names, &first);

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
        request = placement_get_known_traits(&names, &first);
        assert_non_null(request.path);
        assert_int_equal(first, 1);
}

static Allocations *make_allocations(const char *type, int64_t generation)
{
        Allocations *allocations;
        Consumer *consumer;
        Uuid uuid = { CONSUMER };

        assert_int_equal(allocations_new(&allocations), 0);
        assert_int_equal(allocations_ensure(allocations, &uuid, &consumer), 0);
        consumer->project_id = strdup("p");
        consumer->user_id = strdup("u");
        consumer->type = type ? strdup(type) : NULL;
        consumer->generation = generation;
        assert_int_equal(consumer_set(consumer, &child, "VGPU", 1), 0);
        return allocations;
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
                _cleanup_(allocations_freep) Allocations *allocations =
                        make_allocations(cases[i].type, cases[i].generation);
                _cleanup_(placement_request_done) PlacementRequest request =
                        placement_post_reshaper(&item, 1, allocations);

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

TEST_MAIN(test_plain_requests, test_quoting, test_provider_bodies, test_known_traits_are_split,
          test_one_huge_name_still_goes, test_reshaper, test_reshaper_without_allocations)
