/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/consumer-request.h"

#include "base/json.h"
#include "tests/test.h"

#define A    "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
#define B    "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
#define ROOT "11111111-1111-1111-1111-111111111111"

static const Uuid a = { A };
static const Uuid b = { B };
static const Uuid root = { ROOT };

/* A new consumer A that holds 2 VCPU of the root. */
static Consumer *make_consumer(const Uuid *uuid, const char *type, int64_t generation)
{
        Consumer *consumer;

        assert_int_equal(consumer_new(&consumer, uuid), 0);
        consumer->project_id = strdup("p");
        consumer->user_id = strdup("u");
        consumer->type = type ? strdup(type) : NULL;
        consumer->generation = generation;
        assert_int_equal(consumer_set(consumer, &root, "VCPU", 2), 0);
        return consumer;
}

#define HELD "{\"" ROOT "\":{\"resources\":{\"VCPU\":2}}}"

static void test_put(void **state)
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
                  "{\"\":[\"" ROOT "\"],\"1\":[\"" A "\"]}}" },
                { "INSTANCE", 4, true, true, "1.30", ",\"consumer_generation\":4}" },
                /* What Placement shows for an older writer is nothing that it takes. */
                { "unknown", 4, true, false, "1.30", ",\"consumer_generation\":4}" },
                { NULL, 4, false, false, "1.30", ",\"consumer_generation\":4}" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
                _cleanup_(request_mappings_done) RequestMappings mappings = REQUEST_MAPPINGS_INIT;
                _cleanup_(consumer_freep) Consumer *consumer =
                        make_consumer(&a, cases[i].type, cases[i].generation);
                char expected[500];

                assert_int_equal(request_mappings_add(&mappings, "", &root), 0);
                assert_int_equal(request_mappings_add(&mappings, "1", &a), 0);
                assert_int_equal(placement_put_consumer(consumer,
                                                        cases[i].mapped ? &mappings : NULL,
                                                        cases[i].old, &request, NULL),
                                 0);
                assert_string_equal(request.method, "PUT");
                assert_string_equal(request.path, "/allocations/" A);
                assert_string_equal(request.microversion, cases[i].microversion);
                snprintf(expected, sizeof(expected),
                         "{\"allocations\":" HELD ",\"project_id\":\"p\",\"user_id\":\"u\"%s",
                         cases[i].tail);
                assert_string_equal(request.body, expected);
        }
}

static void test_put_of_nobody(void **state)
{
        _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
        _cleanup_(consumer_freep) Consumer *consumer = make_consumer(&a, NULL, -1);
        Error error = ERROR_NULL;

        free(consumer->user_id);
        consumer->user_id = NULL;
        assert_int_equal(placement_put_consumer(consumer, NULL, false, &request, &error), -EINVAL);
        assert_non_null(strstr(error.text, A));
}

static void test_post(void **state)
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
                Consumer *consumer;

                assert_int_equal(allocations_new(&consumers), 0);
                for (size_t j = 0; j < 2; j++) {
                        assert_int_equal(allocations_ensure(consumers, j == 0 ? &a : &b, &consumer),
                                         0);
                        consumer->project_id = strdup("p");
                        consumer->user_id = strdup("u");
                        consumer->type = strdup(cases[i].types[j]);
                        consumer->generation = j == 0 ? 3 : -1;
                }
                assert_int_equal(consumer_set(consumer, &root, "VCPU", 2), 0);
                assert_int_equal(placement_post_consumers(consumers, cases[i].old, &request, NULL),
                                 0);
                assert_string_equal(request.method, "POST");
                assert_string_equal(request.path, "/allocations");
                assert_string_equal(request.microversion, cases[i].microversion);
                assert_int_equal(json_parse(request.body, strlen(request.body), &body, NULL), 0);
                first = json_object_get(body, A);
                second = json_object_get(body, B);
                /* Who gives all away sends nothing, and its generation. */
                assert_int_equal(json_object_size(json_object_get(first, "allocations")), 0);
                assert_int_equal(json_integer_value(json_object_get(first, "consumer_generation")),
                                 3);
                assert_true(json_is_null(json_object_get(second, "consumer_generation")));
                assert_non_null(json_object_get(json_object_get(second, "allocations"), ROOT));
        }
}

static void add_group(ResourceRequest *request, const char *suffix, const char *resources,
                      const char *required, const Uuid *in_tree)
{
        RequestGroup *group;

        assert_int_equal(resource_request_group(request, suffix, &group, NULL), 0);
        if (resources)
                assert_int_equal(resources_parse(resources, &group->resources, NULL), 0);
        if (required)
                assert_true(string_set_add(&group->required, required) >= 0);
        if (in_tree)
                group->in_tree = *in_tree;
}

static void test_candidates_request(void **state)
{
        static const struct {
                const char *plain, *first, *second;
                bool isolate, subtree, old;
                const Uuid *tree;
                const char *path, *microversion;
        } cases[] = {
                { "VCPU=1,MEMORY_MB=5", NULL, NULL, false, false, false, NULL,
                  "resources=MEMORY_MB:5,VCPU:1&in_tree=" ROOT, "1.34" },
                { "VCPU=1", NULL, NULL, false, false, true, NULL, "resources=VCPU:1&in_tree=" ROOT,
                  "1.31" },
                { NULL, "VGPU=1", NULL, false, false, false, NULL,
                  "resources_A=VGPU:1&required_A=CUSTOM_X&in_tree_A=" ROOT, "1.34" },
                { "VCPU=1", "VGPU=1", "VGPU=2", false, false, false, NULL,
                  "resources=VCPU:1&in_tree=" ROOT
                  "&resources_A=VGPU:1&required_A=CUSTOM_X&in_tree_A=" ROOT
                  "&resources_B=VGPU:2&in_tree_B=" ROOT "&group_policy=none",
                  "1.34" },
                { NULL, "VGPU=1", "VGPU=2", true, false, false, &a,
                  "resources_A=VGPU:1&required_A=CUSTOM_X&in_tree_A=" A
                  "&resources_B=VGPU:2&in_tree_B=" ROOT "&group_policy=isolate",
                  "1.34" },
                /* A group without resources that names where others are. */
                { NULL, "", "VGPU=2", false, true, true, NULL,
                  "required_A=CUSTOM_X&in_tree_A=" ROOT "&resources_B=VGPU:2&in_tree_B=" ROOT
                  "&same_subtree=_A,_B&group_policy=none",
                  "1.36" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
                _cleanup_(resource_request_done) ResourceRequest wanted = RESOURCE_REQUEST_INIT;
                _cleanup_(string_set_done) StringSet suffixes = STRING_SET_INIT;
                char expected[1000];

                if (cases[i].plain)
                        add_group(&wanted, "", cases[i].plain, NULL, NULL);
                if (cases[i].first)
                        add_group(&wanted, "_A", *cases[i].first ? cases[i].first : NULL,
                                  "CUSTOM_X", cases[i].tree);
                if (cases[i].second)
                        add_group(&wanted, "_B", cases[i].second, NULL, NULL);
                wanted.isolate = cases[i].isolate;
                if (cases[i].subtree) {
                        assert_true(string_set_add(&suffixes, "_A") >= 0);
                        assert_true(string_set_add(&suffixes, "_B") >= 0);
                        assert_int_equal(resource_request_add_subtree(&wanted, &suffixes, NULL), 0);
                }
                assert_int_equal(
                        placement_get_candidates(&wanted, &root, 50, cases[i].old, &request, NULL),
                        0);
                snprintf(expected, sizeof(expected), "/allocation_candidates?limit=50&%s",
                         cases[i].path);
                assert_string_equal(request.path, expected);
                assert_string_equal(request.microversion, cases[i].microversion);
                assert_false(placement_request_writes(&request));
        }
}

#define ONE(held, mappings) "{\"allocations\":{" held "}" mappings "}"
#define ON(uuid, amounts)   "\"" uuid "\":{\"resources\":{" amounts "}}"

static void test_candidates(void **state)
{
        static const char text[] = "{\"provider_summaries\":{},\"allocation_requests\":[" ONE(
                ON(ROOT, "\"VCPU\":2") "," ON(A, "\"VGPU\":1"),
                ",\"mappings\":{\"\":[\"" ROOT "\"],\"_G\":[\"" A
                "\"]}") "," ONE(ON(B, "\"VGPU\":3"), "") "]}";
        _cleanup_(candidate_list_freep) CandidateList *list = NULL;
        _cleanup_json_ json_t *body = NULL;

        assert_int_equal(json_parse(text, strlen(text), &body, NULL), 0);
        assert_int_equal(placement_read_candidates(body, &list, NULL), 0);
        assert_int_equal(list->n_items, 2);
        assert_int_equal(list->items[0].holding->n_allocations, 2);
        assert_int_equal(resources_get(consumer_find(list->items[0].holding, &root), "VCPU"), 2);
        assert_true(list->items[0].mapped);
        assert_true(request_mappings_contain(&list->items[0].mappings, "_G", &a));
        assert_true(request_mappings_contain(&list->items[0].mappings, "", &root));
        assert_false(list->items[1].mapped);
        assert_int_equal(resources_get(consumer_find(list->items[1].holding, &b), "VGPU"), 3);
}

static void test_bad_candidates(void **state)
{
        static const char *const texts[] = {
                "{}",
                "{\"allocation_requests\":{}}",
                "{\"allocation_requests\":[5]}",
                "{\"allocation_requests\":[{}]}",
                "{\"allocation_requests\":[{\"allocations\":{\"x\":{\"resources\":{}}}}]}",
                "{\"allocation_requests\":[" ONE(ON(A, "\"VGPU\":-1"), "") "]}",
                "{\"allocation_requests\":[" ONE(ON(A, "\"VGPU\":1"), ",\"mappings\":[]") "]}",
                "{\"allocation_requests\":[" ONE(ON(A, "\"VGPU\":1"),
                                                 ",\"mappings\":{\"\":5}") "]}",
                "{\"allocation_requests\":[" ONE(ON(A, "\"VGPU\":1"),
                                                 ",\"mappings\":{\"\":[\"x\"]}") "]}",
                "{\"allocation_requests\":[" ONE(ON(A, "\"VGPU\":1"),
                                                 ",\"mappings\":{\"\":[5]}") "]}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                CandidateList *list = NULL;
                _cleanup_json_ json_t *body = NULL;
                Error error = ERROR_NULL;

                assert_int_equal(json_parse(texts[i], strlen(texts[i]), &body, NULL), 0);
                assert_int_equal(placement_read_candidates(body, &list, &error), -EBADMSG);
                assert_true(error.text[0] != '\0');
                assert_null(list);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_put),        cmocka_unit_test(test_put_of_nobody),
                cmocka_unit_test(test_post),       cmocka_unit_test(test_candidates_request),
                cmocka_unit_test(test_candidates), cmocka_unit_test(test_bad_candidates),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
