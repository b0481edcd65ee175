/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/step.h"

#include "tests/fixtures/json.h"
#include "tests/fixtures/mirror.h"

static Plan *plan_of(const char *desired_text, const Mirror *mirror, const char *holder)
{
        _cleanup_(provider_tree_freep) ProviderTree *desired = make_tree(desired_text);
        _cleanup_(allocations_freep) Allocations *allocations = holder ? guest_on(holder) : NULL;
        Plan *plan = NULL;
        Error error;

        if (plan_make(desired, mirror, allocations, false, &plan, &error) < 0)
                fail_msg("%s", error.text);
        return plan;
}

static int apply(const Plan *plan, size_t i, Mirror *mirror, const char *text)
{
        _cleanup_json_ json_t *body = text ? fixture_json(text) : NULL;
        Error error;

        return step_apply(plan, &plan->steps[i], mirror, body, &error);
}

static void test_requests_agree_with_the_plan(void **state)
{
        _cleanup_(mirror_freep) Mirror *mirror = mirror_of("host VCPU=8 | old<host");
        _cleanup_(plan_freep) Plan *plan =
                plan_of("host VCPU=9 CUSTOM_C=1 +CUSTOM_T @x | new<host", mirror, NULL);

        assert_int_equal(plan->n_steps, 7);
        for (size_t i = 0; i < plan->n_steps; i++) {
                _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
                _cleanup_(placement_request_done) PlacementRequest planned =
                        plan_step_request(&plan->steps[i]);

                assert_int_equal(step_make_request(plan, &plan->steps[i], mirror, &request, NULL),
                                 0);
                assert_string_equal(request.method, planned.method);
                assert_string_equal(request.route, planned.route);
                assert_string_equal(request.path, planned.path);
                if (plan->steps[i].op >= PLAN_PUT_INVENTORIES &&
                    plan->steps[i].op <= PLAN_PUT_TRAITS)
                        assert_non_null(
                                strstr(request.body, "\"resource_provider_generation\":10"));
        }
}

static void test_stale_provider(void **state)
{
        _cleanup_(placement_request_done) PlacementRequest request = PLACEMENT_REQUEST_INIT;
        _cleanup_(mirror_freep) Mirror *mirror = mirror_of("host VCPU=8");
        _cleanup_(plan_freep) Plan *plan = plan_of("host VCPU=9", mirror, NULL);
        Uuid host = make_uuid("host");

        mirror_forget(mirror, &host);
        assert_int_equal(step_make_request(plan, &plan->steps[0], mirror, &request, NULL), -ESTALE);
}

static void test_reshape_without_owner_is_refused(void **state)
{
        PlacementRequest request;
        _cleanup_(mirror_freep) Mirror *mirror = mirror_of("host VGPU=8 | a<host");
        _cleanup_(plan_freep) Plan *plan = plan_of("host | a<host VGPU=8", mirror, "a");
        Consumer *consumer = plan->allocations->consumers[0];

        free(consumer->project_id);
        consumer->project_id = NULL;
        assert_int_equal(step_make_request(plan, &plan->steps[0], mirror, &request, NULL), -EINVAL);
}

static void test_apply_bad_answers(void **state)
{
        static const char *const texts[] = {
                NULL,
                "{}",
                "{'resource_provider_generation':'11'}",
                "{'resource_provider_generation':-1}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(mirror_freep) Mirror *mirror = mirror_of("host VCPU=8");
                _cleanup_(plan_freep) Plan *plan = plan_of("host VCPU=9", mirror, NULL);

                assert_int_equal(apply(plan, 0, mirror, texts[i]), -EBADMSG);
                assert_int_equal(generation_of(mirror, "host"), -1);
                assert_true(mirror_has_stale(mirror));
        }
}

/* The answer to a creation has no body. */
static void test_apply_creation(void **state)
{
        _cleanup_(mirror_freep) Mirror *mirror = mirror_of("host VCPU=8");
        _cleanup_(plan_freep) Plan *plan = plan_of("host VCPU=8 | new<host", mirror, NULL);

        assert_int_equal(apply(plan, 0, mirror, NULL), 0);
        assert_non_null(provider_of(mirror, "new"));
        assert_int_equal(generation_of(mirror, "new"), 0);
        assert_false(mirror_has_stale(mirror));
}

/* Facts E6: host keeps VCPU and loses VGPU (+2), old is emptied (+1), a gets VGPU with its
 * allocations (+3), b is unchanged. */
static void test_apply_reshape(void **state)
{
        _cleanup_(mirror_freep) Mirror *mirror =
                mirror_of("host VCPU=8 VGPU=4 | old<host VGPU=1 | a<host | b<host");
        _cleanup_(plan_freep) Plan *plan =
                plan_of("host VCPU=8 | a<host VGPU=4 | b<host", mirror, "a");

        assert_int_equal(plan->steps[0].op, PLAN_RESHAPE);
        assert_int_equal(apply(plan, 0, mirror, NULL), 0);
        assert_int_equal(generation_of(mirror, "host"), 12);
        assert_int_equal(generation_of(mirror, "old"), 11);
        assert_int_equal(generation_of(mirror, "a"), 13);
        assert_int_equal(generation_of(mirror, "b"), 10);
        assert_null(provider_find_inventory(provider_of(mirror, "host"), "VGPU"));
        assert_int_equal(provider_of(mirror, "old")->n_inventories, 0);
        assert_int_equal(provider_find_inventory(provider_of(mirror, "a"), "VGPU")->total, 4);
}

/* A provider that was stale before the reshape is stale after it. */
static void test_apply_reshape_beside_a_stale_provider(void **state)
{
        _cleanup_(mirror_freep) Mirror *mirror = mirror_of("host VCPU=8 VGPU=4 | a<host | b<host");
        _cleanup_(plan_freep) Plan *plan =
                plan_of("host VCPU=8 | a<host VGPU=4 | b<host", mirror, "a");
        Uuid b = make_uuid("b");

        mirror_forget(mirror, &b);
        assert_int_equal(apply(plan, 0, mirror, NULL), 0);
        assert_int_equal(generation_of(mirror, "a"), 13);
        assert_int_equal(generation_of(mirror, "b"), -1);
}

#define ONE "cccccccc-0000-4000-8000-000000000001"
#define TWO "cccccccc-0000-4000-8000-000000000002"

/* Makes the allocations of two consumers on p; one or both can have none. */
static Allocations *make_holdings(const char *one, const char *two)
{
        static const Uuid uuids[] = { { ONE }, { TWO } };
        const char *const texts[] = { one, two };
        Allocations *holdings;

        assert_int_equal(allocations_new(&holdings), 0);
        for (size_t i = 0; i < 2; i++) {
                _cleanup_(resources_done) Resources resources = RESOURCES_INIT;

                if (texts[i])
                        assert_int_equal(resources_parse(texts[i], &resources, NULL), 0);
                for (size_t j = 0; j < resources.n_items; j++)
                        fixture_hold(&holdings, uuids[i], make_uuid("p"),
                                     resources.items[j].resource_class, resources.items[j].amount);
        }
        return holdings;
}

static void test_keep_used(void **state)
{
        static const struct {
                const char *mirror, *desired, *one, *two, *kept, *words;
        } cases[] = {
                { "p VGPU=4 CUSTOM_A=1", "p CUSTOM_A=2", "VGPU=3,CUSTOM_A=1", NULL,
                  "p VGPU=4 CUSTOM_A=2", "VGPU (3 in use by " ONE ")" },
                { "p VGPU=4 CUSTOM_A=1", "p", "VGPU=3", "CUSTOM_A=1", "p VGPU=4 CUSTOM_A=1",
                  "CUSTOM_A (1 in use by " TWO "), VGPU (3 in use by " ONE ")" },
                { "p VGPU=4 CUSTOM_A=1", "p", "CUSTOM_A=1", NULL, "p CUSTOM_A=1",
                  "CUSTOM_A (1 in use by " ONE ")" },
                { "p VGPU=4", "p", "VGPU=1", "VGPU=2", "p VGPU=4",
                  "VGPU (3 in use by " ONE " and 1 more)" },
                { "p VGPU=4", "p", "VCPU=1", NULL, "p", "" },
                { "p VGPU=4", "p VGPU=2", "VGPU=3", NULL, "p VGPU=2", "" },
                { "p VGPU=4", "p", NULL, NULL, "p", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *mirror = make_tree(cases[i].mirror);
                _cleanup_(provider_tree_freep) ProviderTree *desired = make_tree(cases[i].desired);
                _cleanup_(provider_tree_freep) ProviderTree *kept = make_tree(cases[i].kept);
                _cleanup_(allocations_freep) Allocations *holdings =
                        make_holdings(cases[i].one, cases[i].two);
                Provider result = { 0 };
                char words[200];

                assert_int_equal(step_keep_used(desired->providers[0], mirror->providers[0],
                                                holdings, &result, words, sizeof(words)),
                                 0);
                assert_true(provider_inventories_equal(&result, kept->providers[0]));
                assert_string_equal(words, cases[i].words);
                provider_clear_inventories(&result);
                free(result.inventories);
        }
}

static void test_keep_used_cuts_its_words(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *mirror =
                make_tree("p CUSTOM_A=1 CUSTOM_B=1 CUSTOM_C=1");
        _cleanup_(provider_tree_freep) ProviderTree *desired = make_tree("p");
        _cleanup_(allocations_freep) Allocations *holdings =
                make_holdings("CUSTOM_A=1,CUSTOM_B=1,CUSTOM_C=1", NULL);
        Provider result = { 0 };
        char words[20];

        assert_int_equal(step_keep_used(desired->providers[0], mirror->providers[0], holdings,
                                        &result, words, sizeof(words)),
                         0);
        assert_int_equal(result.n_inventories, 3);
        assert_int_equal(strlen(words), sizeof(words) - 1);
        provider_clear_inventories(&result);
        free(result.inventories);
}

TEST_MAIN(test_requests_agree_with_the_plan, test_stale_provider,
          test_reshape_without_owner_is_refused, test_apply_bad_answers, test_apply_creation,
          test_apply_reshape, test_apply_reshape_beside_a_stale_provider, test_keep_used,
          test_keep_used_cuts_its_words)
