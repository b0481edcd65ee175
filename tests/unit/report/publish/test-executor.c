/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/executor.h"

#include "base/text.h"
#include "tests/fakes/session.h"
#include "tests/fixtures/mirror.h"

#define LOCKED "{'errors':[{'detail':'(sqlite3.OperationalError) database is locked'}]}"

#define NAMES "host a b c d old older guest"

typedef struct Run {
        sd_event *event;
        Session *session;
        Mirror *mirror;
        Plan *plan;
        ExecutorMemory memory;
        Executor *executor;
        unsigned n_calls;
        int result;
        Error error;
} Run;

static void on_done(int result, const Error *error, void *userdata)
{
        Run *run = userdata;

        run->n_calls++;
        run->result = result;
        run->error = *error;
}

/* Begins a plan with a reshape that moves the guest to holder; NULL: no reshape. */
static void run_begin_with(Run *run, const char *mirror, const char *desired, const char *holder,
                           uint64_t max_connections, bool may_batch)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(desired);
        _cleanup_(allocations_freep) Allocations *allocations = holder ? guest_on(holder) : NULL;
        Error error;

        fake_session_begin(&run->event, &run->session, max_connections);
        run->mirror = mirror_of(mirror);
        if (plan_make(tree, run->mirror, allocations, may_batch, &run->plan, &error) < 0)
                fail_msg("%s", error.text);
        assert_int_equal(executor_new(&run->executor, run->event, run->session, run->mirror,
                                      run->plan, &run->memory, on_done, run, NULL),
                         0);
        assert_int_equal(run->n_calls, 0);
}

static void run_begin(Run *run, const char *mirror, const char *desired, const char *holder,
                      uint64_t max_connections)
{
        run_begin_with(run, mirror, desired, holder, max_connections, false);
}

static void run_end(Run *run)
{
        fake_http_wait(run->event, &run->n_calls, 1);
        if (run->result != REPORT_DONE)
                assert_true(run->error.text[0] != '\0');
}

/* Runs a plan to its end against a Placement with these answers, and checks the outcome. */
static void run_all(Run *run, const FakeAnswer *script, const char *mirror, const char *desired,
                    const char *holder, uint64_t max_connections, int outcome)
{
        fake_http_begin(script, NAMES);
        run_begin(run, mirror, desired, holder, max_connections);
        run_end(run);
        assert_int_equal(run->result, outcome);
}

static void run_done(Run *run)
{
        executor_free(run->executor);
        plan_free(run->plan);
        mirror_free(run->mirror);
        fake_session_end(run->event, run->session);
}

#define GUEST "cccccccc-0000-4000-8000-000000000001"
#define HELD  "{'allocations':{'" GUEST "':{'resources':{'VGPU':3}}}}"

static void test_plan_is_executed(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        run_all(&run, NULL, "host VCPU=8 | old<host", "host VCPU=9 +CUSTOM_T | a<host CUSTOM_C=1",
                NULL, 1, REPORT_DONE);
        assert_string_equal(
                fake_http_log(),
                "PUT /resource_classes/CUSTOM_C; PUT /traits/CUSTOM_T; POST /resource_providers; "
                "PUT /resource_providers/host/inventories; PUT /resource_providers/host/traits; "
                "PUT /resource_providers/a/inventories; DELETE /resource_providers/old");
        /* Each write is sent with the generation after the previous write. */
        assert_non_null(strstr(fake_http_find_body("host/inventories"), "generation\":10"));
        assert_non_null(strstr(fake_http_find_body("host/traits"), "generation\":11"));
        assert_int_equal(generation_of(run.mirror, "host"), 12);
        /* The generation of a new provider is read, not guessed (bug 1746075). */
        assert_non_null(strstr(fake_http_find_body("a/inventories"), "generation\":0"));
        assert_true(provider_tree_equal(run.mirror->tree, run.plan->desired));
        assert_false(mirror_has_stale(run.mirror));
        assert_true(string_set_contains(&run.mirror->names.known_classes, "CUSTOM_C"));
        assert_true(string_set_contains(&run.mirror->names.known_traits, "CUSTOM_T"));
}

/* The names of the providers that reached on_deleted(). */
static char deleted_names[20];

static void on_deleted(const Uuid *provider, const char *name)
{
        size_t n = strlen(deleted_names);

        assert_false(uuid_empty(provider));
        (void)snprintf(deleted_names + n, sizeof(deleted_names) - n, "%s;", name);
}

/* Only providers that Placement deleted reach the receiver. */
static void test_deleted_providers_reach_the_receiver(void **state)
{
        static const FakeAnswer script[] = { FAULT("DELETE /resource_providers/older", 409,
                                                   "resource_provider.inuse"),
                                             ANSWER("DELETE", 204, NULL),
                                             { 0 } };
        _cleanup_(run_done) Run run = { .memory = { .deleted = on_deleted } };

        deleted_names[0] = '\0';
        run_all(&run, script, "host VCPU=1 | older<host | a<host | b<host", "host VCPU=2", NULL, 1,
                REPORT_E_IN_USE);
        assert_string_equal(deleted_names, "b;a;");
}

/* Writes the generation of each provider of the mirror, for example "host=12 a=-1". */
static const char *format_generations(const Run *run, char *ret, size_t size)
{
        const ProviderTree *tree = run->mirror->tree;
        size_t n = 0;

        ret[0] = '\0';
        for (size_t i = 0; i < tree->n_providers; i++)
                n += (size_t)snprintf(ret + n, size - n, "%s%s=%d", i > 0 ? " " : "",
                                      tree->providers[i]->name,
                                      (int)generation_of(run->mirror, tree->providers[i]->name));
        return ret;
}

/* Whole plans: the requests in their order, the outcome, and the generations in the mirror
 * afterwards. */
static const struct {
        const char *about;
        const FakeAnswer *script;
        const char *mirror, *desired, *holder;
        uint64_t max_connections;
        size_t max_parallel;
        int outcome;
        const char *words, *log, *generations;
} plans[] = {
        /* The answer to a move would have the generation after the reshape, before the answer to
         * the reshape. */
        { "moves and a reshape take turns", SCRIPT(ANSWER("PUT", 200, "{'generation':10}")),
          "host VCPU=1 | a<host VGPU=1 | b<host VGPU=1 | c<host VGPU=1 | d<host",
          "host VCPU=1 | d<host | a<d VGPU=2 | b<d VGPU=2 | c<d VGPU=2", "a", 8, 1, REPORT_DONE, "",
          "PUT /resource_providers/a; PUT /resource_providers/b; "
          "PUT /resource_providers/c; POST /reshaper",
          "host=10 d=10 a=13 b=12 c=12" },
        { "another client wrote the moved consumer (facts E3)",
          SCRIPT(ANSWER("PUT", 200, "{'generation':12}")), "host | a<host | b<host",
          "host | a<host | b<a", NULL, 1, 1, REPORT_DONE, "", "PUT /resource_providers/b",
          "host=10 a=10 b=-1" },
        { "a move whose answer is none", SCRIPT(ANSWER("PUT", 200, "{}")), "host | a<host | b<host",
          "host | a<host | b<a", NULL, 1, 1, REPORT_E_UNAVAILABLE, "", "PUT /resource_providers/b",
          "host=10 a=10 b=-1" },
        /* The provider keeps its parent, and all other requests are sent. */
        { "Placement before 1.37 moves nothing",
          SCRIPT(ANSWER("PUT /resource_providers/old", 406,
                        "{'errors':[{'max_version':'1.36','min_version':'1.0'}]}")),
          "host VCPU=1 | a<host | b<host VCPU=1 | old<a", "host VCPU=2 | b<host VCPU=2 | old<b",
          NULL, 2, 2, REPORT_E_REFUSED,
          "it has microversions 1.0 to 1.36, but PUT /resource_providers/",
          "PUT /resource_providers/old; PUT /resource_providers/host/inventories; "
          "PUT /resource_providers/b/inventories",
          "host=11 a=10 b=11 old=10" },
        { "a reshape", SCRIPT(ANSWER("/reshaper", 204, NULL)), "host VCPU=8 VGPU=4",
          "host VCPU=8 +HW_A | a<host VGPU=4 +HW_A", "a", 1, 1, REPORT_DONE, "",
          "POST /resource_providers; POST /reshaper; "
          "PUT /resource_providers/host/traits; PUT /resource_providers/a/traits",
          "host=13 a=4" },
        /* Over MySQL, Placement can lose one of two classes that are made at the same time. */
        { "classes are made one after another", NULL, "host VCPU=1",
          "host VCPU=1 CUSTOM_A=1 CUSTOM_B=1 CUSTOM_C=1", NULL, 4, 1, REPORT_DONE, "",
          "PUT /resource_classes/CUSTOM_A; PUT /resource_classes/CUSTOM_B; "
          "PUT /resource_classes/CUSTOM_C; PUT /resource_providers/host/inventories",
          "host=11" },
        /* A 204 for such a class can also mean that another agent made it. */
        { "a class that was there is asked for once more",
          SCRIPT(ANSWER_ONCE("resource_classes/CUSTOM_A", 204, NULL),
                 ANSWER("resource_classes/CUSTOM_A", 201, NULL),
                 ANSWER("resource_classes/CUSTOM_B", 204, NULL),
                 ANSWER("resource_classes/CUSTOM_C", 201, NULL)),
          "host VCPU=1", "host VCPU=1 CUSTOM_A=1 CUSTOM_B=1 CUSTOM_C=1", NULL, 4, 1, REPORT_DONE,
          "",
          "PUT /resource_classes/CUSTOM_A; PUT /resource_classes/CUSTOM_A; "
          "PUT /resource_classes/CUSTOM_B; PUT /resource_classes/CUSTOM_B; "
          "PUT /resource_classes/CUSTOM_C; PUT /resource_providers/host/inventories",
          "host=11" },
        { "one provider never overlaps", NULL, "host VCPU=1", "host VCPU=2 +HW_A @x", NULL, 4, 1,
          REPORT_DONE, "",
          "PUT /resource_providers/host/inventories; "
          "PUT /resource_providers/host/aggregates; PUT /resource_providers/host/traits",
          "host=13" },
        { "a conflict spares the others", SCRIPT(FAULT("a/inventories", 409, "concurrent_update")),
          "host VCPU=1 | a VCPU=1 | b VCPU=1", "host VCPU=2 | a VCPU=2 +HW_A | b VCPU=2 +HW_A",
          NULL, 2, 2, REPORT_E_CONFLICT, "a: ",
          "PUT /resource_providers/host/inventories; "
          "PUT /resource_providers/a/inventories; "
          "PUT /resource_providers/b/inventories; PUT /resource_providers/b/traits",
          "host=11 a=-1 b=12" },
        { "404 for a provider that was there a moment ago",
          SCRIPT(FAULT("a/inventories", 404, "undefined_code")), "host VCPU=1 | a VCPU=1",
          "host VCPU=1 | a VCPU=2", NULL, 2, 1, REPORT_E_CONFLICT, "",
          "PUT /resource_providers/a/inventories", "host=10 a=-1" },
        { "deleted already", SCRIPT(FAULT("DELETE", 404, "undefined_code")), "host | old<host",
          "host", NULL, 2, 1, REPORT_DONE, "", "DELETE /resource_providers/old", "host=10" },
        { "what fails stops what waits for it",
          SCRIPT(FAULT("resource_classes/CUSTOM_C", 400, "undefined_code")), "host VCPU=1 | a",
          "host VCPU=2 | a CUSTOM_C=1 +HW_A", NULL, 2, 2, REPORT_E_REFUSED, "the detail",
          "PUT /resource_classes/CUSTOM_C; PUT /resource_providers/host/inventories; "
          "PUT /resource_providers/a/traits",
          "host=11 a=11" },
        { "children of a failed parent", SCRIPT(FAULT_ONCE("POST", 400, "undefined_code")), "",
          "host VCPU=1 | a<host VCPU=1", NULL, 2, 1, REPORT_E_REFUSED, "",
          "POST /resource_providers", "" },
        { "200 without a generation", SCRIPT(ANSWER("PUT", 200, "{}")), "host VCPU=1",
          "host VCPU=2", NULL, 2, 1, REPORT_E_UNAVAILABLE, "",
          "PUT /resource_providers/host/inventories", "host=-1" },
        { "nothing but a used class would change: no second write",
          SCRIPT(FAULT("a/inventories", 409, "inventory.inuse"),
                 ANSWER("a/allocations", 200, HELD)),
          "a VGPU=4", "a", NULL, 1, 1, REPORT_E_IN_USE, "",
          "PUT /resource_providers/a/inventories; GET /resource_providers/a/allocations", "a=10" },
        { "an inventory is freed in between",
          SCRIPT(FAULT_ONCE("a/inventories", 409, "inventory.inuse"),
                 ANSWER("a/allocations", 200, "{'allocations':{}}")),
          "a VGPU=4", "a", NULL, 1, 1, REPORT_DONE, "",
          "PUT /resource_providers/a/inventories; "
          "GET /resource_providers/a/allocations; PUT /resource_providers/a/inventories",
          "a=11" },
        { "what is held cannot be read",
          SCRIPT(FAULT("a/inventories", 409, "inventory.inuse"),
                 ANSWER("a/allocations", 200, "{'allocations':[]}")),
          "a VGPU=4", "a", NULL, 1, 1, REPORT_E_UNAVAILABLE, "",
          "PUT /resource_providers/a/inventories; GET /resource_providers/a/allocations", "a=10" },
        { "a provider in use stays, and its parent with it",
          SCRIPT(FAULT("DELETE /resource_providers/older", 409, "resource_provider.inuse"),
                 ANSWER("DELETE", 204, NULL)),
          "host VCPU=1 | old<host | older<old | a<host", "host VCPU=2", NULL, 2, 2, REPORT_E_IN_USE,
          "older: ",
          "PUT /resource_providers/host/inventories; DELETE /resource_providers/a; "
          "DELETE /resource_providers/older",
          "host=11 old=10 older=10" },
        { "a race lost inside PUT traits: 500, then a conflict (facts E7)",
          SCRIPT(ANSWER_ONCE("traits", 500, ""), FAULT("traits", 409, "concurrent_update")), "host",
          "host +HW_A", NULL, 2, 1, REPORT_E_CONFLICT, "",
          "PUT /resource_providers/host/traits; PUT /resource_providers/host/traits", "host=-1" },
        { "another client wrote a provider after the reshape",
          SCRIPT(ANSWER("/reshaper", 204, NULL), FAULT("a/traits", 409, "concurrent_update")),
          "host VCPU=8 VGPU=4", "host VCPU=8 +HW_A | a<host VGPU=4 +HW_A", "a", 1, 1,
          REPORT_E_CONFLICT, "",
          "POST /resource_providers; POST /reshaper; "
          "PUT /resource_providers/host/traits; PUT /resource_providers/a/traits",
          "host=13 a=-1" },
        { "the worst outcome is told",
          SCRIPT(FAULT("a/inventories", 400, "undefined_code"),
                 FAULT("b/inventories", 409, "concurrent_update"),
                 FAULT("c/inventories", 400, "undefined_code")),
          "a VCPU=1 | b VCPU=1 | c VCPU=1", "a VCPU=2 | b VCPU=2 | c VCPU=2", NULL, 1, 1,
          REPORT_E_CONFLICT, "3 steps failed, first: b: ",
          "PUT /resource_providers/a/inventories; "
          "PUT /resource_providers/b/inventories; PUT /resource_providers/c/inventories",
          "a=10 b=-1 c=10" },
};

static void test_table(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(plans); i++) {
                _cleanup_(run_done) Run run = { 0 };
                char generations[100];

                fake_http_begin(plans[i].script, NAMES);
                run_begin(&run, plans[i].mirror, plans[i].desired, plans[i].holder,
                          plans[i].max_connections);
                run_end(&run);
                format_generations(&run, generations, sizeof(generations));
                if (run.result != plans[i].outcome || !strstr(run.error.text, plans[i].words) ||
                    strcmp(fake_http_log(), plans[i].log) != 0 ||
                    strcmp(generations, plans[i].generations) != 0 ||
                    fake_http_get_max_parallel() != plans[i].max_parallel)
                        fail_msg("%s: %d, %s; %s; %s; %zu at a time", plans[i].about, run.result,
                                 run.error.text, fake_http_log(), generations,
                                 fake_http_get_max_parallel());
                assert_int_equal(mirror_has_stale(run.mirror), strstr(generations, "-1") != NULL);
                if (run.result == REPORT_DONE)
                        assert_true(provider_tree_equal(run.mirror->tree, run.plan->desired));
        }
}

static void test_parallel_but_one_at_a_time_for_a_provider(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        fake_http_begin(NULL, NAMES);
        run_begin(
                &run, "host VCPU=1 | a VCPU=1 | b VCPU=1 | c VCPU=1 | d VCPU=1",
                "host VCPU=2 +HW_A @x | a VCPU=2 +HW_A @x | b VCPU=2 +HW_A @x | c VCPU=2 +HW_A @x | d VCPU=2 +HW_A @x",
                NULL, 4);
        /* All steps that can start are sent; http decides how many are on the wire. */
        assert_true(sd_event_run(run.event, 0) >= 0);
        assert_int_equal(fake_http_get_n_requests(), 4);
        run_end(&run);
        assert_int_equal(run.result, REPORT_DONE);
        assert_int_equal(fake_http_get_max_parallel(), 4);
        assert_int_equal(fake_http_get_n_requests(), 15);
        /* Two parallel writes of one provider would have the same generation. */
        assert_int_equal(generation_of(run.mirror, "host"), 13);
        assert_int_equal(generation_of(run.mirror, "d"), 13);
}

static void test_fatal_outcomes_stop_everything(void **state)
{
        static const struct {
                FakeAnswer answer;
                int outcome;
        } cases[] = {
                { NO_ANSWER("", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE },
                { NO_ANSWER("", HTTP_E_BAD_ANSWER), REPORT_E_UNAVAILABLE },
                { ANSWER("", 200, "<html>"), REPORT_E_UNAVAILABLE },
                { ANSWER("", 200, "[1]"), REPORT_E_UNAVAILABLE },
                { ANSWER("", 502, "<html>"), REPORT_E_UNAVAILABLE },
                { { .match = "", .status = 503, .body = "", .retry_after_sec = 7 },
                  REPORT_E_UNAVAILABLE },
                { ANSWER("", 401, ""), REPORT_E_UNAUTHORIZED },
                { ANSWER("", 403, ""), REPORT_E_FORBIDDEN },
                { ANSWER("", 406, "{'errors':[{}]}"), REPORT_E_TOO_OLD },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(run_done) Run run = { 0 };

                run_all(&run, SCRIPT(cases[i].answer),
                        "host VCPU=1 | a VCPU=1 | b VCPU=1 | c VCPU=1",
                        "host VCPU=2 | a VCPU=2 | b VCPU=2 | c VCPU=2", NULL, 2, cases[i].outcome);
                /* Requests under way end, and no further ones begin. */
                assert_int_equal(fake_http_get_n_requests(), 2);
                /* The result of the write is unknown. */
                assert_int_equal(generation_of(run.mirror, "host"), -1);
                assert_int_equal(generation_of(run.mirror, "c"), 10);
        }
}

static void test_used_inventory_is_kept(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        run_all(&run,
                SCRIPT(FAULT_ONCE("PUT /resource_providers/a/inventories", 409, "inventory.inuse"),
                       ANSWER("a/allocations", 200, HELD)),
                "host VCPU=1 | a VGPU=4 CUSTOM_OTHER=1", "host VCPU=2 | a MEMORY_MB=5 +HW_A", NULL,
                1, REPORT_E_IN_USE);
        assert_non_null(strstr(run.error.text, "a: VGPU (3 in use by " GUEST ")"));
        assert_int_equal(fake_http_count("PUT /resource_providers/a/inventories"), 2);
        assert_non_null(strstr(fake_http_find_body("a/inventories"), "VGPU"));
        assert_non_null(strstr(fake_http_find_body("a/inventories"), "MEMORY_MB"));
        assert_null(strstr(fake_http_find_body("a/inventories"), "CUSTOM_OTHER"));
        /* The other steps were done, and the mirror has the values that were sent. */
        assert_int_equal(fake_http_count("a/traits"), 1);
        assert_int_equal(fake_http_count("host/inventories"), 1);
        assert_non_null(provider_find_inventory(provider_of(run.mirror, "a"), "VGPU"));
        assert_null(provider_find_inventory(provider_of(run.mirror, "a"), "CUSTOM_OTHER"));
        assert_int_equal(generation_of(run.mirror, "a"), 12);
}

static void test_inventory_that_flickers_ends(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        run_all(&run,
                SCRIPT(FAULT("a/inventories", 409, "inventory.inuse"),
                       ANSWER("a/allocations", 200, "{'allocations':{}}")),
                "a VGPU=4", "a", NULL, 1, REPORT_E_IN_USE);
        assert_int_equal(fake_http_count("a/inventories"), EXECUTOR_TRIES_MAX);
}

static void test_kept_inventory_meets_trouble(void **state)
{
        static const struct {
                FakeAnswer second;
                int outcome;
        } cases[] = {
                { FAULT("PUT", 409, "concurrent_update"), REPORT_E_CONFLICT },
                { FAULT("PUT", 409, "inventory.inuse"), REPORT_E_IN_USE },
                { NO_ANSWER("PUT", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE },
                { ANSWER("PUT", 200, "{}"), REPORT_E_UNAVAILABLE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(run_done) Run run = { 0 };

                run_all(&run,
                        SCRIPT(FAULT_ONCE("PUT", 409, "inventory.inuse"),
                               ANSWER("/allocations", 200, HELD), cases[i].second),
                        "a VGPU=4", "a MEMORY_MB=5", NULL, 1, cases[i].outcome);
                assert_null(strstr(run.error.text, "steps failed"));
                assert_int_equal(generation_of(run.mirror, "a") == -1,
                                 cases[i].outcome != REPORT_E_IN_USE);
        }
}

/* A 500 at any request of a step restarts the step. */
static void test_kept_inventory_and_a_locked_database(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        run_all(&run,
                SCRIPT(FAULT_ONCE("PUT", 409, "inventory.inuse"),
                       ANSWER_ONCE("/allocations", 500, LOCKED),
                       FAULT_ONCE("PUT", 409, "inventory.inuse"), ANSWER("/allocations", 200, HELD),
                       ANSWER_ONCE("PUT", 500, LOCKED), FAULT_ONCE("PUT", 409, "inventory.inuse")),
                "a VGPU=4", "a MEMORY_MB=5", NULL, 1, REPORT_E_IN_USE);
        assert_null(strstr(run.error.text, "steps failed"));
        assert_int_equal(fake_http_count("/allocations"), 3);
        assert_int_equal(fake_http_count("PUT"), 5);
        assert_non_null(provider_find_inventory(provider_of(run.mirror, "a"), "VGPU"));
        assert_non_null(provider_find_inventory(provider_of(run.mirror, "a"), "MEMORY_MB"));
}

/* The provider with the uuid is in the tree of another host. A new try cannot succeed. */
static void test_name_is_in_another_tree(void **state)
{
        static const char *const parents[] = { "'99999999-9999-9999-9999-999999999999'", "null" };
        Uuid gpu = make_uuid("gpu");

        for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
                _cleanup_(run_done) Run run = { 0 };
                _cleanup_free_ char *holders =
                        text_format("{'resource_providers':[{'uuid':'%s','name':'gpu',"
                                    "'generation':1,'parent_provider_uuid':%s}]}",
                                    gpu.text, parents[i]);

                run_all(&run,
                        SCRIPT(FAULT("POST", 409, "duplicate_name"),
                               ANSWER("name=gpu", 200, holders)),
                        "host VCPU=1", "host VCPU=1 | gpu<host VGPU=1", NULL, 2,
                        REPORT_E_DUPLICATE_NAME);
                assert_non_null(strstr(run.error.text, "set its parent_provider_uuid back to"));
                assert_null(strstr(run.error.text, "Delete"));
        }
}

#define HOLDER                                                                   \
        "{'resource_providers':[{'uuid':'99999999-9999-9999-9999-999999999999'," \
        "'name':'host','generation':1,'parent_provider_uuid':null}]}"

static void test_name_is_taken(void **state)
{
        static const struct {
                const char *holders, *allocations;
                int outcome;
                const char *words;
        } cases[] = {
                { HOLDER, "{'allocations':{'a':{},'b':{}}}", REPORT_E_DUPLICATE_NAME,
                  "99999999-9999-9999-9999-999999999999 in Placement (2 consumers have allocations" },
                { HOLDER, "{'allocations':{}}", REPORT_E_DUPLICATE_NAME, "it has no allocations" },
                { HOLDER, "{'allocations':5}", REPORT_E_DUPLICATE_NAME,
                  "its consumers are unknown" },
                { "{'resource_providers':[]}", NULL, REPORT_E_DUPLICATE_NAME, "another name" },
                { "{'resource_providers':5}", NULL, REPORT_E_UNAVAILABLE, "resource_providers" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(run_done) Run run = { 0 };

                run_all(&run,
                        SCRIPT(FAULT("POST", 409, "duplicate_name"),
                               ANSWER("name=host", 200, cases[i].holders),
                               ANSWER("/allocations", 200, cases[i].allocations)),
                        "", "host VCPU=1", NULL, 2, cases[i].outcome);
                if (!strstr(run.error.text, cases[i].words))
                        fail_msg("case %zu: %s", i, run.error.text);
                assert_int_equal(fake_http_count("POST"), 1);
                assert_int_equal(fake_http_get_n_requests(), cases[i].allocations ? 3 : 2);
        }
}

/* The agent's own creation whose answer was lost, or that of a second agent: start again at the
 * refresh. */
static void test_name_is_our_own(void **state)
{
        Uuid host = make_uuid("host");
        _cleanup_free_ char *holders =
                text_format("{'resource_providers':[{'uuid':'%s','name':'host',"
                            "'generation':1,'parent_provider_uuid':null}]}",
                            host.text);
        _cleanup_(run_done) Run run = { 0 };

        run_all(&run, SCRIPT(FAULT("POST", 409, "duplicate_name"), ANSWER("GET", 200, holders)), "",
                "host VCPU=1", NULL, 2, REPORT_E_CONFLICT);
        assert_true(mirror_has_stale(run.mirror));
}

static void test_locked_database(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        run_all(&run, SCRIPT(ANSWER_ONCE("PUT", 500, LOCKED)),
                "host VCPU=1 | a VCPU=1 | b VCPU=1 | c VCPU=1",
                "host VCPU=2 | a VCPU=2 | b VCPU=2 | c VCPU=2", NULL, 4, REPORT_DONE);
        assert_int_equal(fake_http_get_n_requests(), 5);
        /* The following plans know it too. */
        assert_true(run.memory.serial_writes);
        assert_true(provider_tree_equal(run.mirror->tree, run.plan->desired));
}

/* A step that failed because of the plan's own writes runs after them, without a pause. */
static void test_a_database_locked_by_ourselves(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        fake_http_begin(SCRIPT(ANSWER_ONCE("PUT", 500, LOCKED)), NAMES);
        run_begin(&run, "host VCPU=1 | a VCPU=1 | b VCPU=1 | c VCPU=1",
                  "host VCPU=2 | a VCPU=2 | b VCPU=2 | c VCPU=2", NULL, 4);
        for (unsigned i = 0; i < 100 && run.n_calls == 0; i++)
                assert_true(sd_event_run(run.event, 0) >= 0);
        assert_int_equal(run.n_calls, 1);
        assert_int_equal(run.result, REPORT_DONE);
        assert_int_equal(run.memory.n_retries, 1);
}

static void test_serial_manners(void **state)
{
        _cleanup_(run_done) Run run = { .memory.serial_writes = true };

        run_all(&run, NULL, "host VCPU=1 | a VCPU=1 | b VCPU=1",
                "host VCPU=2 | a VCPU=2 | b VCPU=2", NULL, 4, REPORT_DONE);
        assert_int_equal(fake_http_get_max_parallel(), 1);
}

/* One 500 of another kind makes this plan slower and no other plan. */
static void test_other_500(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        run_all(&run, SCRIPT(ANSWER_ONCE("PUT", 500, "<html>oops</html>")),
                "host VCPU=1 | a VCPU=1", "host VCPU=2 | a VCPU=2", NULL, 2, REPORT_DONE);
        assert_false(run.memory.serial_writes);
}

static void test_500_for_ever_ends(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        run_all(&run, SCRIPT(ANSWER("PUT", 500, LOCKED)), "host VCPU=1 | a VCPU=1 | b VCPU=1",
                "host VCPU=2 | a VCPU=2 | b VCPU=2", NULL, 3, REPORT_E_UNAVAILABLE);
        assert_non_null(strstr(run.error.text, "database is locked"));
        assert_true(fake_http_get_n_requests() <= 3 * EXECUTOR_TRIES_MAX);
        assert_int_equal(generation_of(run.mirror, "host"), -1);
        assert_int_equal(generation_of(run.mirror, "a"), -1);
        assert_int_equal(generation_of(run.mirror, "b"), -1);
}

static void test_reshape_meets_trouble(void **state)
{
        static const struct {
                FakeAnswer answer;
                int outcome;
                bool forgotten;
        } cases[] = {
                { FAULT("/reshaper", 409, "concurrent_update"), REPORT_E_CONFLICT, true },
                { FAULT("/reshaper", 409, "inventory.inuse"), REPORT_E_IN_USE, false },
                { FAULT("/reshaper", 409, "undefined_code"), REPORT_E_REFUSED, false },
                { ANSWER("/reshaper", 403, ""), REPORT_E_FORBIDDEN, true },
                { NO_ANSWER("/reshaper", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(run_done) Run run = { 0 };

                fake_http_begin(SCRIPT(cases[i].answer), NAMES);
                run_begin(&run, "host VCPU=8 VGPU=4 | old<host",
                          "host VCPU=8 +HW_A | a<host VGPU=4", "a", 1);
                run_end(&run);
                if (run.result != cases[i].outcome)
                        fail_msg("case %zu: %d, %s", i, run.result, run.error.text);
                assert_int_equal(mirror_has_stale(run.mirror), cases[i].forgotten);
                assert_int_equal(run.memory.reshaper == RESHAPER_FORBIDDEN,
                                 cases[i].outcome == REPORT_E_FORBIDDEN);
                /* No step that depends on it was sent. */
                assert_int_equal(fake_http_count("traits"), 0);
                assert_int_equal(fake_http_count("DELETE"), 0);
        }
}

/* A rejection can come from a name that the mirror wrongly knows. */
static void test_refusal_forgets_names(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        fake_http_begin(SCRIPT(FAULT("traits", 400, "undefined_code")), NAMES);
        run_begin(&run, "host +CUSTOM_OLD", "host +HW_A", NULL, 1);
        assert_true(string_set_contains(&run.mirror->names.known_traits, "CUSTOM_OLD"));
        run_end(&run);
        assert_int_equal(run.result, REPORT_E_REFUSED);
        assert_int_equal(run.mirror->names.known_traits.n_items, 0);
}

static void test_free_under_way(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        fake_http_begin(SCRIPT({ .match = "host/inventories", .never = true }), NAMES);
        run_begin(&run, "host VCPU=1 | a VCPU=1", "host VCPU=2 | a VCPU=2", NULL, 2);
        for (unsigned i = 0; i < 5; i++)
                assert_true(sd_event_run(run.event, 10000) >= 0);
        run.executor = executor_free(run.executor);
        assert_int_equal(run.n_calls, 0);
        assert_int_equal(generation_of(run.mirror, "host"), -1);
        assert_int_equal(generation_of(run.mirror, "a"), 11);
}

/* After a 500 the result of the write is unknown, whether the step pauses or waits for its turn. */
static void test_free_before_a_retry(void **state)
{
        static const FakeAnswer answers[][2] = {
                { ANSWER("host/inventories", 500, "<html>oops</html>") },
                { ANSWER("host/inventories", 500, LOCKED),
                  { .match = "a/inventories", .never = true } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                _cleanup_(run_done) Run run = { 0 };

                fake_http_begin(SCRIPT(answers[i][0], answers[i][1]), NAMES);
                run_begin(&run, "host VCPU=1 | a VCPU=1", "host VCPU=2 | a VCPU=2", NULL, 2);
                while (run.memory.n_retries == 0)
                        assert_true(sd_event_run(run.event, UINT64_MAX) >= 0);
                run.executor = executor_free(run.executor);
                assert_int_equal(generation_of(run.mirror, "host"), -1);
        }
}

/* A fatal answer ends a step that waits for its turn after a 500. */
static void test_a_fatal_outcome_before_a_retry(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        run_all(&run, SCRIPT(ANSWER("host/inventories", 500, LOCKED), ANSWER("", 403, "")),
                "host VCPU=1 | a VCPU=1", "host VCPU=2 | a VCPU=2", NULL, 2, REPORT_E_FORBIDDEN);
        assert_int_equal(fake_http_get_n_requests(), 2);
        assert_int_equal(generation_of(run.mirror, "host"), -1);
}

static void test_many_steps(void **state)
{
        char text[16000] = "host VCPU=1 | ";
        _cleanup_(run_done) Run run = { 0 };

        for (unsigned i = 0; i < 200; i++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text),
                         "p%u<host VGPU=1 +HW_A | ", i);
        run_all(&run, NULL, "", text, NULL, 4, REPORT_DONE);
        assert_int_equal(fake_http_get_n_requests(), 2 + 3 * 200);
        assert_true(provider_tree_equal(run.mirror->tree, run.plan->desired));
}

#define BATCH_MIRROR  "host VCPU=1 | a | b | c"
#define BATCH_DESIRED "host VCPU=2 +HW_A | a VGPU=1 | b VGPU=1 | c VGPU=1"

/* Many inventories in one request. The generations after it are known. */
static void test_batch(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        fake_http_begin(SCRIPT(ANSWER("/reshaper", 204, NULL)), NAMES);
        run_begin_with(&run, BATCH_MIRROR, BATCH_DESIRED, NULL, 1, true);
        run_end(&run);
        assert_int_equal(run.result, REPORT_DONE);
        assert_string_equal(fake_http_log(), "POST /reshaper; PUT /resource_providers/host/traits");
        assert_non_null(strstr(fake_http_find_body("/reshaper"), "\"allocations\":{}"));
        assert_int_equal(generation_of(run.mirror, "a"), 12);
        assert_non_null(provider_find_inventory(provider_of(run.mirror, "c"), "VGPU"));
        assert_false(run.memory.batch_failed);
        assert_int_equal(run.memory.reshaper, RESHAPER_ALLOWED);
}

/* A batch that fails for any reason is reported to the caller, who plans again, with a batch or
 * without. */
static void test_batch_meets_trouble(void **state)
{
        static const struct {
                FakeAnswer answer;
                int outcome;
                bool known; /* Placement is still equal to the mirror */
                ReshaperAccess access;
                bool raced; /* the next plan has a batch again */
        } cases[] = {
                { ANSWER("/reshaper", 403, ""), REPORT_E_CONFLICT, true, RESHAPER_FORBIDDEN,
                  false },
                { FAULT("/reshaper", 409, "inventory.inuse"), REPORT_E_CONFLICT, true,
                  RESHAPER_ALLOWED, false },
                { FAULT("/reshaper", 400, "undefined_code"), REPORT_E_CONFLICT, true,
                  RESHAPER_ALLOWED, false },
                { FAULT("/reshaper", 409, "concurrent_update"), REPORT_E_CONFLICT, false,
                  RESHAPER_ALLOWED, true },
                { NO_ANSWER("/reshaper", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE, false,
                  RESHAPER_ALLOWED, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(run_done) Run run = { .memory.reshaper = RESHAPER_ALLOWED };

                fake_http_begin(SCRIPT(cases[i].answer), NAMES);
                run_begin_with(&run, BATCH_MIRROR, BATCH_DESIRED, NULL, 2, true);
                run_end(&run);
                if (run.result != cases[i].outcome || run.memory.reshaper != cases[i].access ||
                    mirror_has_stale(run.mirror) == cases[i].known ||
                    run.memory.batch_failed == cases[i].raced)
                        fail_msg("case %zu: %d, %s", i, run.result, run.error.text);
                /* The list will show which providers changed. */
                assert_int_equal(generation_of(run.mirror, "a"), 10);
        }
}

/* A provider that cannot be created prevents the batch, and the error names it. */
static void test_batch_behind_a_failed_creation(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        fake_http_begin(SCRIPT(FAULT("POST /resource_providers", 400, "bad")), NAMES);
        run_begin_with(&run, "host VCPU=1 | a | b", "host VCPU=2 | a VGPU=1 | b VGPU=1 | c VGPU=1",
                       NULL, 2, true);
        run_end(&run);
        assert_int_equal(run.result, REPORT_E_REFUSED);
        assert_int_equal(fake_http_count("/reshaper"), 0);
        assert_true(run.memory.batch_failed);
}

TEST_MAIN(test_plan_is_executed, test_deleted_providers_reach_the_receiver, test_table,
          test_parallel_but_one_at_a_time_for_a_provider, test_fatal_outcomes_stop_everything,
          test_used_inventory_is_kept, test_inventory_that_flickers_ends,
          test_kept_inventory_meets_trouble, test_kept_inventory_and_a_locked_database,
          test_name_is_taken, test_name_is_our_own, test_name_is_in_another_tree,
          test_locked_database, test_a_database_locked_by_ourselves, test_serial_manners,
          test_other_500, test_500_for_ever_ends, test_reshape_meets_trouble,
          test_refusal_forgets_names, test_free_under_way, test_free_before_a_retry,
          test_a_fatal_outcome_before_a_retry, test_many_steps, test_batch,
          test_batch_meets_trouble, test_batch_behind_a_failed_creation)
