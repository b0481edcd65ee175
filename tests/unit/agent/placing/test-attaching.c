/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The claims of servers that start, over a Placement in memory. */

#include "tests/fixtures/placing.h"

#include "tests/fixtures/host-facts.h"

#define GPUS "host VCPU=8; host_a<host VGPU=3; host_b<host VGPU=2"

static void begin(Agent *agent, FactsFixture *facts, void **state)
{
        make_facts(facts);
        agent_begin_on(agent, *state, CLAIM_MODE_AUTO, GPUS, GPUS "; other VCPU=8 VGPU=1");
        agent->service.facts = &facts->facts;
        claims_set_facts(agent->fixture->claims, &facts->facts);
}

/* Asks for the devices of "i". Returns the claim, NULL after a failure. */
static Claim *attach(Agent *agent, Answer *answer)
{
        _cleanup_(string_set_done) StringSet classes = STRING_SET_INIT;
        const EventAuthor by = { .text = "nova", .uid = 64060 };
        Uuid who = make_uuid("i");
        Claim *claim = NULL;

        *answer = (Answer){ 0 };
        assert_int_equal(string_set_add(&classes, "VGPU"), 1);
        claim_queue_attach(agent->queue, &who, &classes, &by, on_done, answer);
        assert_true(wait_for(agent, answer));
        if (answer->result == 0)
                assert_int_equal(claims_get(agent->fixture->claims, answer->claim, &claim, NULL),
                                 0);
        return claim;
}

static void put(const char *allocations)
{
        Uuid who = make_uuid("i");

        fake_placement_put(&who, allocations);
}

/* The first call makes the claim, and each repetition has the same answer. Placement is only
 * read, so the call does not wait until Placement has confirmed the root. */
static void test_repeated_calls_have_one_claim(void **state)
{
        _cleanup_(claim_freep) Claim *first = NULL, *again = NULL;
        FactsFixture facts;
        Answer answer;
        char text[256];
        Uuid who = make_uuid("i");
        Agent agent;

        begin(&agent, &facts, state);
        agent.only_reads = true;
        put("host VCPU=2,host_a VGPU=1");
        first = attach(&agent, &answer);
        assert_non_null(first);
        assert_true(answer.is_new);
        assert_int_equal(first->n_devices, 1);
        assert_string_equal(first->consumer_type, CLAIM_TYPE_GUEST);
        assert_int_equal(first->state, CLAIM_STATE_CLAIMED);
        assert_true(first->was_read);
        assert_false(claim_is_of_guest_alone(first, true));
        again = attach(&agent, &answer);
        assert_non_null(again);
        assert_false(answer.is_new);
        assert_int_equal(again->id, first->id);
        assert_true(uuid_equal(&again->devices[0].mdev, &first->devices[0].mdev));
        fake_placement_format(&who, text);
        assert_string_equal(text, "host VCPU=2,host_a VGPU=1");
        agent_end(&agent);
}

/* The claim follows the allocations of a resize, and keeps its devices if only other amounts
 * differ. */
static void test_claim_follows_the_allocations(void **state)
{
        static const struct {
                const char *after;
                bool is_new;
                size_t n_devices;
        } cases[] = {
                { "host VCPU=4,host_a VGPU=1", false, 1 },
                { "host VCPU=2,host_a VGPU=2", true, 2 },
                { "host VCPU=2,host_b VGPU=1", true, 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(claim_freep) Claim *first = NULL, *after = NULL;
                FactsFixture facts;
                Answer answer;
                Agent agent;

                begin(&agent, &facts, state);
                put("host VCPU=2,host_a VGPU=1");
                first = attach(&agent, &answer);
                put(cases[i].after);
                after = attach(&agent, &answer);
                assert_non_null(after);
                assert_int_equal(answer.is_new, cases[i].is_new);
                assert_int_equal(after->n_devices, cases[i].n_devices);
                agent_end(&agent);
        }
}

static void test_failures(void **state)
{
        static const struct {
                const char *placed;
                bool away, full;
                int result;
        } cases[] = {
                { "host VCPU=2", false, false, CLAIM_QUEUE_E_NOT_PLACED },
                { "", false, false, CLAIM_QUEUE_E_NOT_PLACED },
                { "other VGPU=1", false, false, CLAIM_QUEUE_E_NOT_PLACED },
                { "host_a VGPU=1", true, false, CLAIM_QUEUE_E_PLACEMENT },
                { "host_b VGPU=1", false, true, CLAIM_E_NO_CAPACITY },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                FactsFixture facts;
                Answer answer;
                uint64_t n;
                Agent agent;

                begin(&agent, &facts, state);
                put(cases[i].placed);
                if (cases[i].full) {
                        facts.devices[1].available = 0;
                        facts_guest(&facts, 'g', "4");
                }
                if (cases[i].away)
                        fake_placement_trouble(FAKE_TROUBLE_LOST, 0, true);
                assert_null(attach(&agent, &answer));
                if (answer.result != cases[i].result)
                        fail_msg("case %zu: %d", i, answer.result);
                assert_int_equal(claims_count(agent.fixture->claims, &n, NULL), 0);
                assert_int_equal(n, 0);
                agent_end(&agent);
        }
}

/* While Placement is away, a claim that exists is answered. */
static void test_claim_is_answered_without_placement(void **state)
{
        _cleanup_(claim_freep) Claim *first = NULL, *again = NULL;
        FactsFixture facts;
        Answer answer;
        Agent agent;

        begin(&agent, &facts, state);
        put("host VCPU=2,host_a VGPU=1");
        first = attach(&agent, &answer);
        fake_placement_trouble(FAKE_TROUBLE_LOST, 0, true);
        again = attach(&agent, &answer);
        assert_non_null(again);
        assert_int_equal(again->id, first->id);
        agent_end(&agent);
}

/* A server is not attached before the guests were adopted: their devices still look free. */
static void test_attach_waits_for_adoption(void **state)
{
        _cleanup_(string_set_done) StringSet classes = STRING_SET_INIT;
        Uuid who = make_uuid("i");
        Answer answer = { 0 };
        FactsFixture facts;
        Agent agent;

        begin(&agent, &facts, state);
        put("host VCPU=2,host_a VGPU=1");
        assert_int_equal(string_set_add(&classes, "VGPU"), 1);
        agent.service.is_adopting = true;
        claim_queue_attach(agent.queue, &who, &classes, NULL, on_done, &answer);
        for (int i = 0; i < 5; i++)
                assert_true(sd_event_run(agent.event, 0) >= 0);
        assert_false(answer.there);
        agent.service.is_adopting = false;
        agent.service.adopted(agent.service.adopted_userdata);
        assert_true(wait_for(&agent, &answer));
        assert_int_equal(answer.result, 0);
        agent_end(&agent);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_repeated_calls_have_one_claim, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_claim_follows_the_allocations, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_failures, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_claim_is_answered_without_placement,
                                                fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_attach_waits_for_adoption, fixture_setup,
                                                fixture_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
