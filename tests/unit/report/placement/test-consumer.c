/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/consumer.h"

#include "tests/fixtures/json.h"

#define A "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
#define B "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
#define C "cccccccc-cccc-cccc-cccc-cccccccccccc"

static const char whole[] = "{'allocations':{'" A "':{'resources':{'VCPU':2}},'" B
                            "':{'resources':{'DISK_GB':3,'VGPU':1}}},'project_id':'p',"
                            "'user_id':'u','consumer_generation':7,'consumer_type':'MIGRATION'}";

static void test_there_and_back(void **state)
{
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        _cleanup_json_ json_t *body = fixture_json(whole), *again = NULL, *all = NULL,
                              *expected = NULL;
        Uuid uuid = { C };
        const Consumer *consumer;

        assert_int_equal(allocations_new(&allocations), 0);
        assert_int_equal(placement_read_consumer(body, &uuid, allocations, NULL), 0);
        consumer = allocations_find(allocations, &uuid);
        assert_non_null(consumer);
        assert_int_equal(consumer->generation, 7);
        assert_string_equal(consumer->type, "MIGRATION");
        assert_int_equal(consumer_sum(consumer, "VGPU"), 1);
        again = placement_consumer_to_json(consumer, true);
        assert_true(json_equal(again, body));
        all = placement_consumers_to_json(allocations, true);
        expected = json_pack("{sO}", C, body);
        assert_true(json_equal(all, expected));
}

/* What a service before 1.38 takes; and a consumer that is not there yet. */
static void test_without_type_and_generation(void **state)
{
        _cleanup_(consumer_freep) Consumer *consumer = NULL;
        _cleanup_json_ json_t *body = fixture_json(whole), *sent = NULL;
        Uuid uuid = { C };

        assert_int_equal(placement_read_whole(body, &uuid, &consumer, NULL), 0);
        consumer->generation = -1;
        sent = placement_consumer_to_json(consumer, false);
        assert_null(json_object_get(sent, "consumer_type"));
        assert_true(json_is_null(json_object_get(sent, "consumer_generation")));
}

static void test_who_holds_nothing(void **state)
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

/* Two providers, and a consumer that holds something of both. */
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

static void test_foreign_text_is_refused(void **state)
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

/* Whoever holds something has an owner and a generation. */
static void test_an_owner_is_asked_for(void **state)
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

/* Nothing of these consumers can be written. */
static void test_who_has_no_owner(void **state)
{
        static const Uuid uuids[] = { { A }, { B } };

        for (int known = 0; known < 3; known++) {
                _cleanup_(allocations_freep) Allocations *consumers = NULL;
                Error error = ERROR_NULL;
                Consumer *consumer;

                assert_int_equal(allocations_new(&consumers), 0);
                for (size_t i = 0; i < ARRAY_SIZE(uuids); i++) {
                        assert_int_equal(allocations_ensure(consumers, &uuids[i], &consumer), 0);
                        consumer->project_id = i == 0 || known != 0 ? strdup("p") : NULL;
                        consumer->user_id = i == 0 || known != 1 ? strdup("u") : NULL;
                }
                assert_int_equal(placement_check_consumers(consumers, &error),
                                 known == 2 ? 0 : -EINVAL);
                assert_int_equal(strstr(error.text, B) != NULL, known != 2);
        }
        assert_int_equal(placement_check_consumers(NULL, NULL), 0);
}

static void test_types(void **state)
{
        assert_true(placement_consumer_type_valid("INSTANCE"));
        assert_false(placement_consumer_type_valid("unknown"));
        assert_false(placement_consumer_type_valid(""));
        assert_false(placement_consumer_type_valid(NULL));
}

TEST_MAIN(test_there_and_back, test_without_type_and_generation, test_who_holds_nothing,
          test_allocations_of_providers_add_up, test_foreign_text_is_refused,
          test_an_owner_is_asked_for, test_who_has_no_owner, test_types)
