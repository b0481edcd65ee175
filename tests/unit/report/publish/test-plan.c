/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/plan.h"

#include "base/json.h"
#include "report/publish/step.h"
#include "tests/fixtures/mirror.h"
#include "tests/shims/fail-alloc.h"

/* Input and result of a plan. */
typedef struct Planning {
        Mirror *mirror;
        ProviderTree *desired;
        bool may_batch;
        Plan *plan;
        Error error;
} Planning;

static Planning planning_of(const char *mirror, const char *desired)
{
        return (Planning){ .mirror = mirror_of(mirror), .desired = make_tree(desired) };
}

static void planning_done(Planning *planning)
{
        mirror_free(planning->mirror);
        provider_tree_free(planning->desired);
        plan_free(planning->plan);
}

/* Makes only these names known. */
static void know_some(const Planning *planning)
{
        mirror_forget_names(planning->mirror, true);
        assert_int_equal(
                mirror_learn(planning->mirror, PLACEMENT_INVENTORIES, "CUSTOM_KNOWN", true), 0);
        assert_int_equal(mirror_learn(planning->mirror, PLACEMENT_TRAITS, "CUSTOM_OLD", true), 0);
        assert_int_equal(mirror_learn(planning->mirror, PLACEMENT_TRAITS, "HW_A", true), 0);
        assert_int_equal(mirror_learn(planning->mirror, PLACEMENT_TRAITS, "HW_MISSING", false), 0);
}

/* Makes the plan. allocations are those of a reshape, or NULL. */
static int make(Planning *planning, const Allocations *allocations)
{
        return plan_make(planning->desired, planning->mirror, allocations, planning->may_batch,
                         &planning->plan, &planning->error);
}

/* Writes the steps of a plan, for example "0 create-provider host; 1 put-inventories host (0)". The
 * caller frees the text. */
static char *describe(const Plan *plan)
{
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        assert_non_null(stream);
        for (size_t i = 0; i < plan->n_steps; i++) {
                const PlanStep *step = &plan->steps[i];

                fprintf(stream, "%s%zu %s%s%s", i > 0 ? "; " : "", i, plan_op_to_text(step->op),
                        step->name[0] ? " " : "", step->name);
                for (size_t j = 0; j < step->n_after; j++)
                        fprintf(stream, "%s%zu", j > 0 ? "," : " (", step->after[j]);
                fputs(step->n_after > 0 ? ")" : "", stream);
        }
        fclose(stream);
        return text;
}

/* Checks that each step comes after its prerequisites. */
static void assert_ordered(const Plan *plan)
{
        for (size_t i = 0; i < plan->n_steps; i++)
                for (size_t j = 0; j < plan->steps[i].n_after; j++)
                        assert_true(plan->steps[i].after[j] < i);
}

/* Checks the result of plan_make() and the steps of the plan. */
static void expect_steps(const Planning *planning, int r, const char *expected, size_t i)
{
        _cleanup_free_ char *steps = NULL;

        if (r < 0)
                fail_msg("case %zu: %s", i, planning->error.text);
        assert_ordered(planning->plan);
        steps = describe(planning->plan);
        if (strcmp(steps, expected) != 0)
                fail_msg("case %zu: \"%s\"", i, steps);
}

static void test_table(void **state)
{
        static const struct {
                const char *mirror, *desired, *steps;
        } cases[] = {
                { "", "", "" },
                { "host VCPU=8 +HW_A @x | gpu<host VGPU=4",
                  "host VCPU=8 +HW_A @x | gpu<host VGPU=4", "" },
                { "", "host", "0 create-provider host" },
                { "", "host VCPU=8 +HW_A",
                  "0 create-provider host; 1 put-inventories host (0); 2 put-traits host (0)" },
                { "", "host VCPU=8 +HW_A @x",
                  "0 create-provider host; 1 put-inventories host (0); 2 put-aggregates host (0); 3 put-traits host (0)" },
                /* Parents come first, and a step waits only for the creation that it needs. */
                { "", "host | cell<host | gpu<cell VGPU=4",
                  "0 create-provider host; 1 create-provider cell (0); 2 create-provider gpu (1); 3 put-inventories gpu (2)" },
                { "host VCPU=8", "host VCPU=8 | gpu<host VGPU=4",
                  "0 create-provider gpu; 1 put-inventories gpu (0)" },
                { "host VCPU=8", "host VCPU=9", "0 put-inventories host" },
                { "host VCPU=8 MEMORY_MB=5", "host VCPU=8", "0 put-inventories host" },
                { "host VCPU=8", "host", "0 put-inventories host" },
                { "host +HW_A", "host +HW_B", "0 put-traits host" },
                { "host +HW_A", "host", "0 put-traits host" },
                { "host @x", "host @y", "0 put-aggregates host" },
                /* Custom names that Placement might lack are created, standard names are not. */
                { "host VCPU=8", "host VCPU=8 CUSTOM_NEW=1 CUSTOM_KNOWN=1 +CUSTOM_T +CUSTOM_OLD",
                  "0 ensure-class CUSTOM_NEW; 1 ensure-trait CUSTOM_T; 2 put-inventories host (0); 3 put-traits host (1)" },
                /* A name is created once for all providers. */
                { "", "a CUSTOM_NEW=1 | b CUSTOM_NEW=2",
                  "0 ensure-class CUSTOM_NEW; 1 create-provider a; 2 create-provider b; "
                  "3 put-inventories a (1,0); 4 put-inventories b (2,0)" },
                /* A custom name of an unchanged provider is not created. */
                { "host CUSTOM_NEW=1 +CUSTOM_T", "host CUSTOM_NEW=1 +CUSTOM_T | b",
                  "0 create-provider b" },
                /* A move comes after the creation of the new parent, and before the deletion of the
                 * old one. */
                { "host | a<host | b<host VGPU=2", "host | a<host | b<a VGPU=2",
                  "0 move-provider b" },
                { "host | b<host VGPU=2 | c<b", "host | a<host | b<a VGPU=3 | c<a",
                  "0 create-provider a; 1 move-provider b (0); 2 move-provider c (0); 3 put-inventories b" },
                { "host | a<host | b<a", "host | b<host",
                  "0 move-provider b; 1 delete-provider a (0)" },
                /* Moves go from the top to the bottom, so that no provider moves below its own
                 * descendant. */
                { "host | a<host | b<a | c<b", "host | c<host | b<c | a<b",
                  "0 move-provider c; 1 move-provider b (0); 2 move-provider a (1)" },
                { "host | a<host | b<a", "host | n<host | b<n | x<b | a<x",
                  "0 create-provider n; 1 create-provider x; 2 move-provider b (0); 3 move-provider a (1,2)" },
                /* Deletions come last, children before parents (bug 1872385). A provider with
                 * inventories is emptied first. */
                { "host | cell<host | gpu<cell VGPU=4", "host",
                  "0 empty-provider gpu; 1 delete-provider gpu (0); 2 delete-provider cell (1)" },
                { "host VCPU=8 | gpu<host", "host VCPU=9 | nic<host",
                  "0 create-provider nic; 1 put-inventories host; 2 delete-provider gpu" },
                { "host | a<host | b<host", "",
                  "0 delete-provider b; 1 delete-provider a; 2 delete-provider host (0,1)" },
                /* A new uuid with an old name: the holder of the name is deleted first. */
                { "host | gpu<host VGPU=4 | part<gpu", "host | gpu#2<host VGPU=4",
                  "0 delete-provider part; 1 empty-provider gpu; 2 delete-provider gpu (1,0); "
                  "3 create-provider gpu (2); 4 put-inventories gpu (3)" },
                /* Children of the holder that stay move first below an ancestor that stays. */
                { "host | gpu<host VGPU=4 | part<gpu", "host | gpu#2<host | part<gpu",
                  "0 move-provider part; 1 empty-provider gpu; 2 delete-provider gpu (1,0); "
                  "3 create-provider gpu (2); 4 move-provider part (0,3)" },
                { "host | gpu<host | part<gpu", "host | part<host | gpu#2<host",
                  "0 move-provider part; 1 delete-provider gpu (0); 2 create-provider gpu (1)" },
                { "host | a<host | gpu<a | b<gpu | c<b", "host | a<host | c<a | gpu#2<c",
                  "0 move-provider c; 1 delete-provider b (0); 2 delete-provider gpu (1); "
                  "3 create-provider gpu (2)" },
                { "host | gpu<host | b<gpu | c<b", "host | gpu#2<host | c<gpu | b#2<c",
                  "0 move-provider c; 1 delete-provider b (0); 2 delete-provider gpu (1); "
                  "3 create-provider gpu (2); 4 create-provider b (1); 5 move-provider c (0,3)" },
                /* Without its own move, a provider does not hide the moves above it. */
                { "host | p<host | a<p | gpu<a | m<gpu", "host | a<host | m<a | p<m | gpu#2<p",
                  "0 move-provider m; 1 delete-provider gpu (0); 2 create-provider gpu (1); "
                  "3 move-provider a; 4 move-provider p (3)" },
                /* Standard traits that Placement lacks, and invalid names, are omitted. */
                { "host +HW_A", "host +HW_A +HW_MISSING", "" },
                { "", "host +HW_MISSING", "0 create-provider host" },
                { "host", "host +HW_MISSING +HW_B +lower-case", "0 put-traits host" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(planning_done) Planning planning =
                        planning_of(cases[i].mirror, cases[i].desired);

                know_some(&planning);
                expect_steps(&planning, make(&planning, NULL), cases[i].steps, i);
        }
}

/* The steps that run while the consumers of a reshape are read. */
static void test_groundwork_table(void **state)
{
        static const struct {
                const char *mirror, *desired, *steps;
        } cases[] = {
                { "", "", "" },
                { "host VCPU=8 +HW_A", "host VCPU=9 +HW_B @x", "" },
                { "host VGPU=4 | old<host VGPU=2", "host | a<host VGPU=4 +HW_A @x",
                  "0 create-provider a; 1 put-aggregates a (0); 2 put-traits a (0)" },
                { "host VCPU=8",
                  "host CUSTOM_NEW=1 CUSTOM_KNOWN=1 | cell<host +CUSTOM_T | gpu<cell VGPU=4 +CUSTOM_OLD",
                  "0 ensure-class CUSTOM_NEW; 1 ensure-trait CUSTOM_T; 2 create-provider cell; "
                  "3 create-provider gpu (2); 4 put-traits cell (2,1); 5 put-traits gpu (3)" },
                /* No provider is deleted or moved yet, so a name that is in use stays in use. */
                { "host | gpu<host VGPU=4", "host | gpu#2<host VGPU=4 | part<gpu | nic<host",
                  "0 create-provider nic" },
                { "host | b<host VGPU=2", "host | a<host | b<a VGPU=2", "0 create-provider a" },
                { "host", "host | a<host +HW_MISSING", "0 create-provider a" },
                { "", "host VCPU=8", "0 create-provider host" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(planning_done) Planning planning =
                        planning_of(cases[i].mirror, cases[i].desired);

                know_some(&planning);
                expect_steps(&planning,
                             plan_make_groundwork(planning.desired, planning.mirror, &planning.plan,
                                                  &planning.error),
                             cases[i].steps, i);
                assert_false(planning.plan->is_batch);
        }
}

static void test_left_out_traits(void **state)
{
        _cleanup_(planning_done) Planning planning =
                planning_of("", "host +HW_MISSING +HW_A +no-trait | b +HW_MISSING");

        know_some(&planning);
        assert_int_equal(make(&planning, NULL), 0);
        /* The bodies come from the plan's copy. The caller's tree is unchanged. */
        assert_int_equal(planning.plan->desired->providers[0]->traits.n_items, 1);
        assert_int_equal(planning.plan->desired->providers[1]->traits.n_items, 0);
        assert_int_equal(planning.desired->providers[0]->traits.n_items, 3);
}

static void test_refused(void **state)
{
        static const struct {
                const char *mirror, *desired, *words;
        } cases[] = {
                { "host | a<host", "host | a", "become a root" },
                { "host | a", "host | a<host", "become a root" },
                { "host | a<host", "host#2 | a<host", "whose child a must stay" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(planning_done) Planning planning =
                        planning_of(cases[i].mirror, cases[i].desired);

                assert_int_equal(make(&planning, NULL), -EINVAL);
                assert_non_null(strstr(planning.error.text, cases[i].words));
                assert_null(planning.plan);
        }
}

static void test_rename_is_refused(void **state)
{
        _cleanup_(planning_done) Planning planning = planning_of("host", "");
        Uuid uuid = make_uuid("host");

        assert_int_equal(provider_tree_add(planning.desired, &uuid, "other", NULL, NULL, NULL), 0);
        assert_int_equal(make(&planning, NULL), -EINVAL);
        assert_non_null(strstr(planning.error.text, "cannot become other"));
}

static void test_reshape_table(void **state)
{
        static const struct {
                const char *mirror, *desired;
                const char *holder; /* the provider of the consumer after the reshape; NULL: no
                                     * consumer */
                const char *steps, *reshaped;
        } cases[] = {
                /* From the root to its children: every changed inventory is in one request. */
                { "host VCPU=8 VGPU=4 +HW_A",
                  "host VCPU=8 +HW_B | a<host VGPU=2 | b<host CUSTOM_V=2", "a",
                  "0 ensure-class CUSTOM_V; 1 create-provider a; 2 create-provider b; 3 reshape (0,1,2); 4 put-traits host (3)",
                  "host a b" },
                /* A provider that is emptied by the reshape and deleted at the end. */
                { "host VCPU=8 | cell<host MEMORY_MB=5", "host VCPU=8 MEMORY_MB=5", "host",
                  "0 reshape; 1 delete-provider cell (0)", "host cell" },
                /* Providers that keep their inventory are not in the request (facts G2.4). */
                { "host VCPU=8 | port<host NET_BW_EGR_KILOBIT_PER_SEC=9 | a<host",
                  "host VCPU=9 | port<host NET_BW_EGR_KILOBIT_PER_SEC=9 | a<host +HW_A", "host",
                  "0 reshape; 1 put-traits a (0)", "host" },
                /* A provider without inventories is not emptied. */
                { "host VCPU=8 | a<host", "host VCPU=9", "host",
                  "0 reshape; 1 delete-provider a (0)", "host" },
                /* A change of allocations alone still needs a provider. */
                { "host VCPU=8 | a<host VGPU=1", "host VCPU=8 | a<host VGPU=1", "a", "0 reshape",
                  "a" },
                { "host VCPU=8", "host VCPU=8", "elsewhere", "0 reshape", "host" },
                /* Without a consumer the ordinary requests are sent. */
                { "host VCPU=8 | a<host", "host VCPU=9", NULL,
                  "0 put-inventories host; 1 delete-provider a", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(planning_done) Planning planning =
                        planning_of(cases[i].mirror, cases[i].desired);
                _cleanup_(allocations_freep) Allocations *allocations = NULL;
                char reshaped[200] = "";

                assert_int_equal(allocations_new(&allocations), 0);
                if (cases[i].holder)
                        fixture_hold(&allocations, make_uuid("guest"), make_uuid(cases[i].holder),
                                     "VCPU", 1);
                expect_steps(&planning, make(&planning, allocations), cases[i].steps, i);
                for (size_t j = 0; j < planning.plan->n_reshaped; j++) {
                        const Provider *provider =
                                provider_tree_find(planning.desired, &planning.plan->reshaped[j]);

                        if (!provider)
                                provider = provider_tree_find(planning.mirror->tree,
                                                              &planning.plan->reshaped[j]);
                        if (j > 0)
                                strcat(reshaped, " ");
                        strcat(reshaped, provider->name);
                }
                if (strcmp(reshaped, cases[i].reshaped) != 0)
                        fail_msg("case %zu: reshapes \"%s\"", i, reshaped);
        }
}

/* The reshaper is permitted, and no consumer moves. */
static void test_batch_table(void **state)
{
        static const struct {
                const char *mirror, *desired, *steps;
                size_t n_reshaped;
        } cases[] = {
                { "", "host VCPU=8 +HW_A | a<host VGPU=1 | b<host VGPU=1 | c<host CUSTOM_V=1",
                  "0 ensure-class CUSTOM_V; 1 create-provider host; 2 create-provider a (1); "
                  "3 create-provider b (1); 4 create-provider c (1); 5 reshape (0,1,2,3,4); 6 put-traits host (1,5)",
                  4 },
                /* Too few inventories for a batch. */
                { "host VCPU=8 | a<host | b<host", "host VCPU=9 | a<host VGPU=1 | b<host VGPU=1",
                  "0 put-inventories host; 1 put-inventories a; 2 put-inventories b", 0 },
                /* A class that is removed can be in use, and so can a whole set. Both get requests
                 * of their own. */
                { "host VCPU=8 PCPU=1 | a<host VGPU=1 | b<host | c<host | d<host | e<host",
                  "host VCPU=9 | a<host | b<host VGPU=1 | c<host VGPU=1 | d<host VGPU=1 | e<host VGPU=1",
                  "0 reshape; 1 put-inventories host (0); 2 put-inventories a (0)", 4 },
                /* Placement rejects neither a larger amount of a class nor one below the used
                 * amount (facts E4). */
                { "a VGPU=4 | b VGPU=4 | c | d", "a VGPU=2 | b VGPU=4 PCPU=1 | c VGPU=1 | d VGPU=1",
                  "0 reshape", 4 },
                /* Deletions come after the batch. */
                { "old | a | b | c | d", "a VGPU=1 | b VGPU=1 | c VGPU=1 | d VGPU=1",
                  "0 reshape; 1 delete-provider old (0)", 4 },
                /* A name that must become free first does not prevent a batch. */
                { "x | a | b | c", "x#2 VGPU=1 | a VGPU=1 | b VGPU=1 | c VGPU=1",
                  "0 delete-provider x; 1 create-provider x (0); 2 reshape (0,1)", 4 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(planning_done) Planning planning =
                        planning_of(cases[i].mirror, cases[i].desired);

                planning.may_batch = true;
                expect_steps(&planning, make(&planning, NULL), cases[i].steps, i);
                assert_int_equal(planning.plan->n_reshaped, cases[i].n_reshaped);
                assert_true(planning.plan->is_batch == (cases[i].n_reshaped > 0));
        }
}

/* PUT rejects it, and the reshaper does not (facts E6). */
static void test_batch_without_more_reserved_than_there_is(void **state)
{
        for (uint64_t reserved = 4; reserved <= 5; reserved++) {
                _cleanup_(planning_done) Planning planning =
                        planning_of("", "a VGPU=4 PCPU=1 | b VGPU=1 | c VGPU=1 | d VGPU=1");

                provider_find_inventory(planning.desired->providers[0], "VGPU")->reserved =
                        reserved;
                planning.may_batch = true;
                assert_int_equal(make(&planning, NULL), 0);
                assert_int_equal(planning.plan->is_batch, reserved == 4);
        }
}

static void test_reshape_with_a_name_that_is_taken(void **state)
{
        _cleanup_(planning_done) Planning planning =
                planning_of("host VCPU=8 | gpu<host VGPU=1", "host VCPU=8 | gpu#2<host VGPU=1");
        _cleanup_(allocations_freep) Allocations *allocations = NULL;

        fixture_hold(&allocations, make_uuid("guest"), make_uuid("gpu#2"), "VGPU", 1);
        assert_int_equal(make(&planning, allocations), -EINVAL);
        assert_non_null(strstr(planning.error.text, "after the reshape"));
}

static void test_ratio_is_a_float(void **state)
{
        _cleanup_(planning_done) Planning planning = planning_of("host VCPU=8", "host VCPU=8");

        provider_find_inventory(provider_of(planning.mirror, "host"), "VCPU")->allocation_ratio =
                1.10000002384;
        provider_find_inventory(planning.desired->providers[0], "VCPU")->allocation_ratio = 1.1;
        assert_int_equal(make(&planning, NULL), 0);
        assert_int_equal(planning.plan->n_steps, 0);
}

static void test_summaries(void **state)
{
        static const struct {
                const char *mirror, *desired, *summary;
        } cases[] = {
                { "host VCPU=8 MEMORY_MB=5", "host VCPU=8 MEMORY_MB=6",
                  "MEMORY_MB 6 (was 5), VCPU 8" },
                { "host VCPU=8 VGPU=4", "host VCPU=8", "VCPU 8, no VGPU (was 4)" },
                { "host VCPU=8", "host", "no VCPU (was 8)" },
                { "host +HW_A +HW_B", "host +HW_B +HW_C", "+HW_C -HW_A" },
                { "host @x", "host @y", "+y -x" },
                { "", "host", "new" },
                { "host", "host | gpu<host", "new, below host" },
                { "host | gpu<host", "host", "no longer in the tree" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(planning_done) Planning planning =
                        planning_of(cases[i].mirror, cases[i].desired);

                assert_int_equal(make(&planning, NULL), 0);
                assert_int_equal(planning.plan->n_steps, 1);
                assert_string_equal(planning.plan->steps[0].summary, cases[i].summary);
        }
}

static void test_summary_of_other_fields(void **state)
{
        _cleanup_(planning_done) Planning planning = planning_of("host VCPU=8", "host VCPU=8");
        Inventory *inventory = provider_find_inventory(planning.desired->providers[0], "VCPU");

        inventory->reserved = 2;
        inventory->allocation_ratio = 4;
        inventory->max_unit = 8;
        assert_int_equal(make(&planning, NULL), 0);
        assert_string_equal(
                planning.plan->steps[0].summary,
                "VCPU 8 reserved 2 (was 0) ratio 4 (was 1) units 1–8 by 1 (was 1–2147483647 by 1)");
}

static void test_json_and_paths(void **state)
{
        _cleanup_(planning_done) Planning planning =
                planning_of("old", "host CUSTOM_C=1 +CUSTOM_T @x");
        _cleanup_json_ json_t *json = NULL;
        Uuid host = make_uuid("host"), old = make_uuid("old");
        const char *const expected[][2] = {
                { "PUT", "/resource_classes/CUSTOM_C" },
                { "PUT", "/traits/CUSTOM_T" },
                { "POST", "/resource_providers" },
                { "PUT", "/inventories" },
                { "PUT", "/aggregates" },
                { "PUT", "/traits" },
                { "DELETE", old.text },
        };

        assert_int_equal(make(&planning, NULL), 0);
        json = plan_to_json(planning.plan);
        assert_int_equal(json_array_size(json), ARRAY_SIZE(expected));
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
                const json_t *step = json_array_get(json, i);
                const char *path = json_string_value(json_object_get(step, "path"));
                size_t n = strlen(expected[i][1]);

                assert_string_equal(json_string_value(json_object_get(step, "method")),
                                    expected[i][0]);
                assert_true(strlen(path) >= n);
                assert_string_equal(path + strlen(path) - n, expected[i][1]);
                if (i >= 3 && i <= 5)
                        assert_non_null(strstr(path, host.text));
        }
        assert_string_equal(json_string_value(json_object_get(json_array_get(json, 3), "summary")),
                            "CUSTOM_C 1");
        assert_int_equal(json_array_size(json_object_get(json_array_get(json, 3), "after")), 2);
}

static void test_words(void **state)
{
        static const struct {
                const char *mirror, *desired, *words;
        } cases[] = {
                { "host VCPU=8", "host VCPU=8", "" },
                { "host VCPU=8 +CUSTOM_A", "host VCPU=8 +CUSTOM_T",
                  "traits of host: +CUSTOM_T -CUSTOM_A" },
                { "host VCPU=8|gpu<host|old<host", "host VCPU=9|new<host VGPU=1 +CUSTOM_A",
                  "provider new: new, below host; inventories of host: VCPU 9 (was 8)"
                  "; inventories of new: VGPU 1 (and 3 more)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(planning_done) Planning planning =
                        planning_of(cases[i].mirror, cases[i].desired);
                char words[512], little[8];

                assert_int_equal(make(&planning, NULL), 0);
                assert_string_equal(plan_describe(planning.plan, words, sizeof(words)),
                                    cases[i].words);
                assert_true(strlen(plan_describe(planning.plan, little, sizeof(little))) <
                            sizeof(little));
        }
}

/* A large tree is planned quickly: the cost must not grow with the square of the size. */
static void test_many_providers(void **state)
{
        _cleanup_(planning_done) Planning planning = planning_of("", "host VCPU=8");

        for (unsigned i = 0; i < 500; i++) {
                char name[40];

                snprintf(name, sizeof(name), "gpu%u", i);
                fixture_put(planning.desired, planning.desired->providers[0], name,
                            "VGPU=4 +CUSTOM_T");
        }
        assert_int_equal(make(&planning, NULL), 0);
        /* One trait, 501 creations, 501 inventories, 500 sets of traits. */
        assert_int_equal(planning.plan->n_steps, 1 + 501 + 501 + 500);
        assert_ordered(planning.plan);
}

/* Every allocation fails in turn: an error without a leak, which the sanitizers detect. */
static void test_out_of_memory(void **state)
{
        _cleanup_(planning_done) Planning planning = planning_of(
                "host VCPU=8 VGPU=4 +HW_A @x | old<host VGPU=1 | older<old",
                "host VCPU=9 +HW_B +HW_MISSING +CUSTOM_T @y | a<host CUSTOM_C=4 | b<a VGPU=1");
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        unsigned at;
        int r;

        assert_int_equal(mirror_learn(planning.mirror, PLACEMENT_TRAITS, "HW_MISSING", false), 0);
        fixture_hold(&allocations, make_uuid("guest"), make_uuid("b"), "VGPU", 1);
        for (unsigned with = 0; with < 2; with++) {
                FAIL_ALLOC_EACH(at, r = make(&planning, with ? allocations : NULL)) {
                        assert_int_equal(r, -ENOMEM);
                        assert_null(planning.plan);
                }
                assert_int_equal(r, 0);
                assert_true(at > 50);
                planning.plan = plan_free(planning.plan);
        }
}

TEST_MAIN(test_table, test_groundwork_table, test_left_out_traits, test_refused,
          test_rename_is_refused, test_reshape_table, test_batch_table,
          test_batch_without_more_reserved_than_there_is, test_reshape_with_a_name_that_is_taken,
          test_ratio_is_a_float, test_summaries, test_summary_of_other_fields, test_json_and_paths,
          test_words, test_many_providers, test_out_of_memory)
