/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/consumer-request.h"

#include "base/json.h"
#include "tests/unit/test.h"

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
                request = placement_put_consumer(consumer, cases[i].mapped ? &mappings : NULL,
                                                 cases[i].old);
                assert_string_equal(request.method, "PUT");
                assert_string_equal(request.path, "/allocations/" A);
                assert_string_equal(request.microversion, cases[i].microversion);
                snprintf(expected, sizeof(expected),
                         "{\"allocations\":" HELD ",\"project_id\":\"p\",\"user_id\":\"u\"%s",
                         cases[i].tail);
                assert_string_equal(request.body, expected);
        }
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
                request = placement_post_consumers(consumers, cases[i].old);
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

static void test_room_request(void **state)
{
        _cleanup_(placement_request_done) PlacementRequest request =
                placement_get_room(&root, "VGPU", 3);

        assert_string_equal(request.path,
                            "/allocation_candidates?limit=1&resources=VGPU:3&in_tree=" ROOT);
        assert_string_equal(request.microversion, "1.31");
        assert_false(placement_request_writes(&request));
}

#define OF(uuid, items)  "\"" uuid "\":{\"resources\":{" items "}}"
#define SUMMARIES(items) "{\"allocation_requests\":[],\"provider_summaries\":{" items "}}"

static void test_room(void **state)
{
        static const char text[] =
                SUMMARIES(OF(ROOT, "\"VCPU\":{\"capacity\":8,\"used\":3},"
                                   "\"DISK_GB\":{\"capacity\":8,\"used\":9}") "," //
                          OF(A, "\"VGPU\":{\"capacity\":1,\"used\":1}") "," OF(B, ""));
        _cleanup_(consumer_freep) Consumer *room = NULL;
        _cleanup_json_ json_t *body = NULL;

        assert_int_equal(json_parse(text, strlen(text), &body, NULL), 0);
        assert_int_equal(placement_read_room(body, &room, NULL), 0);
        assert_int_equal(room->n_allocations, 1);
        assert_int_equal(resources_get(consumer_find(room, &root), "VCPU"), 5);
        assert_int_equal(resources_get(consumer_find(room, &root), "DISK_GB"), 0);
}

static void test_bad_room(void **state)
{
        static const char *const texts[] = {
                "{}",
                "{\"provider_summaries\":[]}",
                SUMMARIES("\"x\":{\"resources\":{}}"),
                SUMMARIES("\"" A "\":{}"),
                SUMMARIES(OF(A, "\"VGPU\":5")),
                SUMMARIES(OF(A, "\"VGPU\":{\"capacity\":-1,\"used\":0}")),
                SUMMARIES(OF(A, "\"VGPU\":{\"capacity\":1}")),
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_json_ json_t *body = NULL;
                Consumer *room = NULL;
                Error error = ERROR_NULL;

                assert_int_equal(json_parse(texts[i], strlen(texts[i]), &body, NULL), 0);
                assert_int_equal(placement_read_room(body, &room, &error), -EBADMSG);
                assert_true(error.text[0] != '\0');
                assert_null(room);
        }
}

TEST_MAIN(test_put, test_post, test_room_request, test_room, test_bad_room)
