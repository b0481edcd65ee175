/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Refresh, trait lookup and publish together, over a scripted HTTP. */

#include "report/reporter.h"

#include "report/publish/plan.h"
#include "tests/fakes/http.h"
#include "tests/fixtures/tree.h"

#define NAMES "host a b"

typedef struct Fixture {
        sd_event *event;
        Reporter *reporter;
        unsigned n_calls;
        int result;
        Error error;
        char list[2000]; /* the list of providers as JSON */
} Fixture;

static const ReporterConfig good_config = {
        .http = { .endpoint = "http://127.0.0.1:1",
                  .max_connections = 4,
                  .connect_timeout_usec = USEC_PER_SEC,
                  .timeout_usec = USEC_PER_SEC },
};

static int set_up(void **state)
{
        Fixture *fixture = calloc(1, sizeof(Fixture));
        Uuid root = make_uuid("host");

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        assert_int_equal(reporter_new(&fixture->reporter, fixture->event, &good_config, &root,
                                      "host", NULL, NULL),
                         0);
        fake_http_begin(NULL, NAMES);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        Fixture *fixture = *state;

        reporter_free(fixture->reporter);
        sd_event_unref(fixture->event);
        free(fixture);
        fake_http_begin(NULL, "");
        return 0;
}

/* Replaces the fixture for the next row of a table. */
static Fixture *renew(void **state)
{
        tear_down(state);
        assert_int_equal(set_up(state), 0);
        return *state;
}

static void on_done(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Fixture *fixture = userdata;

        assert_ptr_equal(reporter, fixture->reporter);
        fixture->n_calls++;
        fixture->result = result;
        fixture->error = *error;
}

static int wait_done(Fixture *fixture)
{
        assert_int_equal(fixture->n_calls, 0);
        fake_http_wait(fixture->event, &fixture->n_calls, 1);
        fixture->n_calls = 0;
        if (fixture->result != 0)
                assert_true(fixture->error.text[0] != '\0');
        return fixture->result;
}

static int refresh(Fixture *fixture)
{
        assert_int_equal(reporter_refresh(fixture->reporter, on_done, fixture), 0);
        return wait_done(fixture);
}

static int publish(Fixture *fixture, const char *desired)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(desired);

        assert_int_equal(reporter_publish(fixture->reporter, tree, NULL, on_done, fixture), 0);
        return wait_done(fixture);
}

/* Makes {"resource_providers": […]} of "host" and "a" with these generations; -1 omits one. */
static void set_list(Fixture *fixture, int host_generation, int a_generation)
{
        Uuid host = make_uuid("host"), a = make_uuid("a");
        int n = snprintf(fixture->list, sizeof(fixture->list), "{'resource_providers':[");

        if (a_generation >= 0)
                n += snprintf(fixture->list + n, sizeof(fixture->list) - (size_t)n,
                              "{'uuid':'%s','name':'a','generation':%d,"
                              "'parent_provider_uuid':'%s'},",
                              a.text, a_generation, host.text);
        snprintf(fixture->list + n, sizeof(fixture->list) - (size_t)n,
                 "{'uuid':'%s','name':'host','generation':%d,'parent_provider_uuid':null}]}",
                 host.text, host_generation);
}

#define PARTS(generation, inventories, traits)                                       \
        "{'resource_provider_generation':" generation ",'inventories':{" inventories \
        "},'traits':[" traits "],'aggregates':['x']}"
#define HOST_PARTS PARTS("3", "'VCPU':{'total':8}", "'HW_A'")
#define A_PARTS    PARTS("5", "'VGPU':{'total':4}", "")

/* Begins with two providers that Placement already has. The answers in before come first. */
static void begin_existing(Fixture *fixture, const FakeAnswer *before)
{
        set_list(fixture, 3, 5);
        fake_http_begin(before, NAMES);
        fake_http_more(SCRIPT(ANSWER("in_tree", 200, fixture->list),
                              ANSWER("GET /resource_providers/host/", 200, HOST_PARTS),
                              ANSWER("GET /resource_providers/a/", 200, A_PARTS)));
}

/* Begins with these two providers after a refresh. */
static void begin_read(Fixture *fixture)
{
        begin_existing(fixture, NULL);
        assert_int_equal(refresh(fixture), 0);
}

#define EXISTING_TREE "host VCPU=8 +HW_A @x | a<host VGPU=4 @x"

static void assert_tree(Fixture *fixture, const char *text)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(text);

        assert_true(provider_tree_equal(reporter_tree(fixture->reporter), tree));
}

static void test_new_host(void **state)
{
        Fixture *fixture = *state;
        const ReporterStatistics *statistics;

        fake_http_begin(SCRIPT(ANSWER("GET /traits", 200, "{'traits':['HW_A']}")), NAMES);
        assert_null(reporter_tree(fixture->reporter));
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(reporter_tree(fixture->reporter)->n_providers, 0);
        assert_int_equal(publish(fixture, "host VCPU=8 +HW_A +HW_NEW +CUSTOM_T"), 0);
        assert_string_equal(fake_http_log(),
                            "GET /resource_providers?in_tree=host; "
                            "GET /traits?name=in:CUSTOM_T,HW_A,HW_NEW; PUT /traits/CUSTOM_T; "
                            "POST /resource_providers; PUT /resource_providers/host/inventories; "
                            "PUT /resource_providers/host/traits");
        assert_tree(fixture, "host VCPU=8 +HW_A +CUSTOM_T");
        statistics = reporter_get_statistics(fixture->reporter);
        assert_int_equal(statistics->n_requests, 6);
        assert_int_equal(statistics->last_attempt_requests, 6);
        assert_int_equal(statistics->n_writes, 4);
        assert_int_equal(statistics->n_plan_writes, 4);

        /* The same tree again causes no request. */
        fake_http_clear_log();
        assert_int_equal(publish(fixture, "host VCPU=8 +HW_A +HW_NEW +CUSTOM_T"), 0);
        assert_int_equal(fake_http_get_n_requests(), 0);
        /* With another unknown name the missing one is looked up again. */
        assert_int_equal(publish(fixture, "host VCPU=8 +HW_A +HW_NEW +HW_NEWER +CUSTOM_T"), 0);
        assert_string_equal(fake_http_log(), "GET /traits?name=in:HW_NEW,HW_NEWER");
}

static int prepare(Fixture *fixture, const char *text)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(text);

        assert_int_equal(reporter_prepare(fixture->reporter, tree, on_done, fixture), 0);
        return wait_done(fixture);
}

/* The facts that a plan needs are read, and nothing is written. */
static void test_prepare(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(ANSWER("GET /traits", 200, "{'traits':['HW_A']}")), NAMES);
        assert_int_equal(refresh(fixture), 0);
        fake_http_clear_log();
        assert_int_equal(prepare(fixture, "host VCPU=8 +HW_A +HW_NEW"), 0);
        assert_string_equal(fake_http_log(),
                            "GET /traits?name=in:HW_A,HW_NEW; GET /resource_providers?name=host");
        fake_http_clear_log();
        assert_int_equal(prepare(fixture, "host VCPU=8 +HW_A +HW_NEW"), 0);
        assert_string_equal(fake_http_log(), "GET /resource_providers?name=host");
        assert_int_equal(publish(fixture, "host VCPU=8 +HW_A +HW_NEW"), 0);
        assert_tree(fixture, "host VCPU=8 +HW_A");
        /* An existing root has its name already. */
        fake_http_clear_log();
        assert_int_equal(prepare(fixture, "host VCPU=9 +HW_A +HW_NEW"), 0);
        assert_int_equal(fake_http_get_n_requests(), 0);
}

#define EMPTY "{'allocations':{}}"

static int gather(Fixture *fixture, const char *ahead)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(ahead);

        assert_int_equal(reporter_gather(fixture->reporter, NULL, tree, on_done, fixture), 0);
        return wait_done(fixture);
}

/* The new provider and its trait exist when the consumers are known, and the publication sends the
 * rest. */
static void test_gather_and_lay_the_ground(void **state)
{
        Allocations *consumers, *others;
        Fixture *fixture = *state;

        begin_existing(fixture, SCRIPT(ANSWER("/allocations", 200, EMPTY),
                                       ANSWER("GET /traits", 200, "{'traits':['HW_A','HW_B']}")));
        assert_int_equal(refresh(fixture), 0);
        fake_http_clear_log();
        assert_int_equal(gather(fixture, EXISTING_TREE " | b<a VGPU=1 +HW_B"), 0);
        reporter_take_gathered(fixture->reporter, &consumers, &others);
        assert_non_null(consumers);
        allocations_free(consumers);
        allocations_free(others);
        assert_int_equal(fake_http_count("/allocations"), 2);
        assert_int_equal(fake_http_count("POST /resource_providers"), 1);
        assert_int_equal(fake_http_count("PUT /resource_providers/b/traits"), 1);
        assert_tree(fixture, EXISTING_TREE " | b<a +HW_B");
        fake_http_clear_log();
        assert_int_equal(publish(fixture, EXISTING_TREE " | b<a VGPU=1 +HW_B"), 0);
        assert_int_equal(fake_http_count("PUT /resource_providers/b/"), 1);
        assert_tree(fixture, EXISTING_TREE " | b<a VGPU=1 +HW_B");
}

/* A failure of the groundwork is left to the publication, unless the service fails. */
static void test_gather_while_the_ground_cannot_be_laid(void **state)
{
        const struct {
                FakeAnswer answer;
                int result;
        } cases[] = {
                { FAULT("POST /resource_providers", 400, "bad"), REPORT_DONE },
                { FAULT("POST /resource_providers", 409, "duplicate_name"), REPORT_DONE },
                { NO_ANSWER("POST /resource_providers", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE },
                { NO_ANSWER("GET /traits", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE },
                { NO_ANSWER("/allocations", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE },
                { ANSWER("/allocations", 200, "{}"), REPORT_E_UNAVAILABLE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Allocations *consumers, *others;
                Fixture *fixture = renew(state);

                begin_existing(fixture,
                               SCRIPT(cases[i].answer, ANSWER("/allocations", 200, EMPTY)));
                assert_int_equal(refresh(fixture), 0);
                if (gather(fixture, EXISTING_TREE " | b<a VGPU=1 +HW_B") != cases[i].result)
                        fail_msg("case %zu: %d, %s", i, fixture->result, fixture->error.text);
                reporter_take_gathered(fixture->reporter, &consumers, &others);
                allocations_free(consumers);
                allocations_free(others);
        }
}

/* A refresh that failed changes nothing. The next one continues, but reads again the providers that
 * changed since. */
static void test_failed_refresh_continues(void **state)
{
        static const struct {
                int host, a; /* the generations at the second refresh */
                size_t n_of_host, n_of_a;
        } cases[] = { { 3, 5, 3, 0 }, { 3, 6, 3, 3 }, { 4, 5, 3, 0 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const FakeAnswer failure = ANSWER_ONCE("GET /resource_providers/host/", 502, NULL);
                Fixture *fixture = renew(state);
                size_t n_host, n_a;

                begin_existing(fixture, SCRIPT(failure));
                assert_int_equal(refresh(fixture), REPORT_E_UNAVAILABLE);
                assert_null(reporter_tree(fixture->reporter));
                n_host = fake_http_count("GET /resource_providers/host/");
                n_a = fake_http_count("GET /resource_providers/a/");
                set_list(fixture, cases[i].host, cases[i].a);
                (void)refresh(fixture);
                assert_int_equal(fake_http_count("GET /resource_providers/host/") - n_host,
                                 cases[i].n_of_host);
                assert_int_equal(fake_http_count("GET /resource_providers/a/") - n_a,
                                 cases[i].n_of_a);
                if (i == 0)
                        assert_tree(fixture, EXISTING_TREE);
        }
}

static void test_existing_host_and_quiet_cycles(void **state)
{
        Fixture *fixture = *state;

        begin_read(fixture);
        assert_int_equal(fake_http_get_n_requests(), 7);
        assert_int_equal(fake_http_get_max_parallel(), 4);
        assert_tree(fixture, EXISTING_TREE);
        for (unsigned i = 0; i < 3; i++) {
                fake_http_clear_log();
                assert_int_equal(refresh(fixture), 0);
                assert_int_equal(publish(fixture, EXISTING_TREE), 0);
                assert_string_equal(fake_http_log(), "GET /resource_providers?in_tree=host");
                assert_int_equal(reporter_get_statistics(fixture->reporter)->last_attempt_requests,
                                 1);
                assert_int_equal(reporter_get_statistics(fixture->reporter)->last_attempt_writes,
                                 0);
        }
        assert_int_equal(reporter_get_statistics(fixture->reporter)->n_requests, 10);
}

/* Answers the next lists with this last-modified. */
static void begin_list(Fixture *fixture, uint64_t modified_sec)
{
        FakeAnswer list = ANSWER("in_tree", 200, fixture->list);

        list.modified_sec = modified_sec;
        begin_existing(fixture, SCRIPT(list));
}

static json_t *save(Fixture *fixture)
{
        json_t *json = reporter_save(fixture->reporter);

        assert_non_null(json);
        return json;
}

/* A later process trusts the saved mirror if the list agrees with all of it. */
static void test_restore(void **state)
{
        static const struct {
                int a;
                uint64_t modified_sec;
                size_t n_requests;
        } cases[] = { { 5, 100, 1 }, { 5, 101, 7 }, { 6, 100, 7 }, { -1, 100, 4 } };
        Fixture *fixture = *state;

        assert_null(reporter_save(fixture->reporter));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *json = NULL;

                fixture = renew(state);
                set_list(fixture, 3, 5);
                begin_list(fixture, 100);
                assert_int_equal(refresh(fixture), 0);
                json = save(fixture);
                fixture = renew(state);
                assert_int_equal(reporter_restore(fixture->reporter, json, NULL), 0);
                assert_null(reporter_tree(fixture->reporter));
                begin_list(fixture, cases[i].modified_sec);
                set_list(fixture, 3, cases[i].a);
                assert_int_equal(refresh(fixture), 0);
                if (fake_http_get_n_requests() != cases[i].n_requests ||
                    reporter_get_statistics(fixture->reporter)->is_restored != (i == 0))
                        fail_msg("case %zu: %zu requests", i, fake_http_get_n_requests());
        }
        assert_int_equal(reporter_restore(fixture->reporter, NULL, NULL), -EBADMSG);
}

/* Nothing is kept of a mirror that was written after the last list, or without last-modified. */
static void test_save_of_a_written_mirror(void **state)
{
        Fixture *fixture = *state;

        begin_read(fixture);
        assert_null(reporter_save(fixture->reporter));
        fixture = renew(state);
        set_list(fixture, 3, 5);
        begin_list(fixture, 100);
        assert_int_equal(refresh(fixture), 0);
        json_decref(save(fixture));
        assert_int_equal(publish(fixture, "host VCPU=9 +HW_A @x | a<host VGPU=4 @x"), 0);
        assert_null(reporter_save(fixture->reporter));
}

/* A tree that needs no request needs none until it or the mirror changes. */
static void test_a_settled_tree(void **state)
{
        Fixture *fixture = *state;

        begin_existing(fixture, SCRIPT(ANSWER("GET /traits", 200, "{'traits':['HW_A']}")));
        assert_int_equal(refresh(fixture), 0);
        fake_http_clear_log();
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(
                        publish(fixture, "host VCPU=8 +HW_A +HW_NEW @x | a<host VGPU=4 @x"), 0);
        assert_string_equal(fake_http_log(), "GET /traits?name=in:HW_NEW");
        fake_http_clear_log();
        assert_int_equal(publish(fixture, "host VCPU=9 +HW_A +HW_NEW @x | a<host VGPU=4 @x"), 0);
        assert_int_equal(fake_http_count("PUT"), 1);
        assert_int_equal(publish(fixture, "host VCPU=8 +HW_A +HW_NEW @x | a<host VGPU=4 @x"), 0);
        assert_int_equal(fake_http_count("PUT"), 2);
        assert_int_equal(publish(fixture, "host VCPU=8 +HW_A +HW_NEW @x | a<host VGPU=4 @x"), 0);
        assert_int_equal(fake_http_count("PUT"), 2);
        /* Another writer changed a provider. */
        set_list(fixture, 3, 6);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(publish(fixture, "host VCPU=7 +HW_A +HW_NEW @x | a<host VGPU=4 @x"), 0);
        assert_int_equal(fake_http_count("PUT"), 3);
        reporter_forget(fixture->reporter);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(publish(fixture, "host VCPU=7 +HW_A +HW_NEW @x | a<host VGPU=4 @x"), 0);
        assert_int_equal(fake_http_count("PUT"), 4);
}

/* A list with equal generations and another last-modified shows that a provider was created again.
 * A write of the agent itself explains such a list. */
static void test_a_provider_that_was_made_again(void **state)
{
        Fixture *fixture = *state;

        begin_list(fixture, 100);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(fake_http_get_n_requests(), 7);
        begin_list(fixture, 100);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(fake_http_get_n_requests(), 1);
        begin_list(fixture, 101);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(fake_http_get_n_requests(), 7);
        begin_list(fixture, 101);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(fake_http_get_n_requests(), 1);

        assert_int_equal(publish(fixture, "host VCPU=9 +HW_A @x | a<host VGPU=4 @x"), 0);
        set_list(fixture, 4, 5);
        fake_http_begin(SCRIPT({ .match = "in_tree", .body = fixture->list, .modified_sec = 105 }),
                        NAMES);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(fake_http_get_n_requests(), 1);
        assert_tree(fixture, "host VCPU=9 +HW_A @x | a<host VGPU=4 @x");
}

/* A list that equals the last one is not parsed: the tree stays the same object. After a write the
 * list is compared again, although its text is the old one. */
static void test_an_equal_list_is_not_parsed(void **state)
{
        Fixture *fixture = *state;

        begin_read(fixture);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(refresh(fixture), 0);
                assert_tree(fixture, EXISTING_TREE);
        }
        /* The publication raises the generation, and the list of the script still has the old one:
         * another writer restored it. */
        assert_int_equal(publish(fixture, "host VCPU=9 +HW_A @x | a<host VGPU=4 @x"), 0);
        fake_http_clear_log();
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(fake_http_count("/host/"), 3);
        assert_tree(fixture, EXISTING_TREE);
}

static void test_only_what_moved_is_read(void **state)
{
        Fixture *fixture = *state;

        begin_read(fixture);
        fake_http_clear_log();
        set_list(fixture, 3, 6);
        assert_int_equal(refresh(fixture), 0);
        assert_string_equal(
                fake_http_log(),
                "GET /resource_providers?in_tree=host; "
                "GET /resource_providers/a/inventories; "
                "GET /resource_providers/a/traits; GET /resource_providers/a/aggregates");
        fake_http_clear_log();
        set_list(fixture, 3, -1);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(fake_http_get_n_requests(), 1);
        assert_tree(fixture, "host VCPU=8 +HW_A @x");
}

/* A provider changes while it is read. */
static void test_torn_reads(void **state)
{
        Fixture *fixture = *state;

        set_list(fixture, 3, -1);
        fake_http_begin(
                SCRIPT(ANSWER("in_tree", 200, fixture->list),
                       ANSWER_ONCE("GET /resource_providers/host/traits", 200, PARTS("2", "", "")),
                       ANSWER("GET /resource_providers/host/", 200, HOST_PARTS)),
                NAMES);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(fake_http_count("host/"), 6);
        assert_tree(fixture, "host VCPU=8 +HW_A @x");
}

static void test_torn_reads_for_ever(void **state)
{
        Fixture *fixture = *state;

        set_list(fixture, 3, -1);
        fake_http_begin(SCRIPT(ANSWER("in_tree", 200, fixture->list),
                               ANSWER("host/traits", 200, PARTS("2", "", "")),
                               ANSWER("GET /resource_providers/host/", 200, HOST_PARTS)),
                        NAMES);
        assert_int_equal(refresh(fixture), REPORT_E_CONFLICT);
        assert_true(fake_http_get_n_requests() < 20);
        assert_null(reporter_tree(fixture->reporter));
}

static void test_failed_refreshes(void **state)
{
        static const struct {
                FakeAnswer answer;
                int outcome;
                const char *words;
        } cases[] = {
                { NO_ANSWER("in_tree", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE, "" },
                { ANSWER("in_tree", 200, "{'resource_providers':[{}]}"), REPORT_E_UNAVAILABLE,
                  "list of providers" },
                { ANSWER("in_tree", 200,
                         "{'resource_providers':[{'uuid':'99999999-9999-9999-9999-"
                         "999999999999','name':'x','generation':1,'parent_provider_uuid':null}]}"),
                  REPORT_E_UNAVAILABLE, "without this root" },
                { ANSWER("in_tree", 401, ""), REPORT_E_UNAUTHORIZED, "" },
                { ANSWER("in_tree", 413, ""), REPORT_E_REFUSED, "413" },
                { ANSWER("a/traits", 500, ""), REPORT_E_UNAVAILABLE, "" },
                { ANSWER("a/inventories", 200, "{'inventories':{}}"), REPORT_E_UNAVAILABLE,
                  "answer about provider" },
                { FAULT("a/aggregates", 404, "undefined_code"), REPORT_E_CONFLICT, "" },
                { ANSWER("a/aggregates", 404, "<html>"), REPORT_E_UNAVAILABLE, "JSON" },
        };
        Fixture *fixture = *state;

        begin_read(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                begin_existing(fixture, SCRIPT(cases[i].answer));
                set_list(fixture, 4, 6);
                if (refresh(fixture) != cases[i].outcome ||
                    !strstr(fixture->error.text, cases[i].words))
                        fail_msg("case %zu: %d, %s", i, fixture->result, fixture->error.text);
                /* The old tree stays known, and so does its root. */
                assert_tree(fixture, EXISTING_TREE);
                assert_true(reporter_knows_root(fixture->reporter));
        }
        begin_read(fixture);
        assert_int_equal(fake_http_get_n_requests(), 1);
}

static void test_renamed_host(void **state)
{
        Fixture *fixture = *state;
        char *name;

        begin_existing(fixture, NULL);
        assert_false(reporter_knows_root(fixture->reporter));
        name = strstr(fixture->list, "'name':'host'");
        for (unsigned i = 0; i < 2; i++) {
                memcpy(name + 8, "tosh", 4);
                assert_int_equal(refresh(fixture), REPORT_E_REFUSED);
                assert_non_null(strstr(fixture->error.text, "tosh"));
                assert_non_null(strstr(fixture->error.text, "stop the agent, and remove"));
                assert_non_null(strstr(fixture->error.text, "computectl identity rename"));
                assert_false(reporter_knows_root(fixture->reporter));
                memcpy(name + 8, "host", 4);
                assert_int_equal(refresh(fixture), 0);
                assert_true(reporter_knows_root(fixture->reporter));
        }
}

static void test_one_attempt_at_a_time(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host");
        Fixture *fixture = *state;

        assert_int_equal(reporter_publish(fixture->reporter, tree, NULL, on_done, fixture),
                         -ENODATA);
        assert_int_equal(reporter_refresh(fixture->reporter, on_done, fixture), 0);
        assert_int_equal(reporter_refresh(fixture->reporter, on_done, fixture), -EBUSY);
        assert_int_equal(reporter_publish(fixture->reporter, tree, NULL, on_done, fixture), -EBUSY);
        assert_int_equal(wait_done(fixture), 0);
        assert_int_equal(reporter_publish(fixture->reporter, tree, NULL, on_done, fixture), 0);
        assert_int_equal(reporter_refresh(fixture->reporter, on_done, fixture), -EBUSY);
        assert_int_equal(wait_done(fixture), 0);
}

/* After a conflict a publication needs a refresh first. */
static void test_conflict_wants_a_refresh(void **state)
{
        static const FakeAnswer conflict = FAULT("PUT", 409, "concurrent_update");
        Fixture *fixture = *state;
        _cleanup_(provider_tree_freep) ProviderTree *tree =
                make_tree("host VCPU=9 +HW_A @x | a<host VGPU=4 @x");

        begin_existing(fixture, SCRIPT(conflict));
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(publish(fixture, "host VCPU=9 +HW_A @x | a<host VGPU=4 @x"),
                         REPORT_E_CONFLICT);
        assert_int_equal(reporter_get_statistics(fixture->reporter)->n_conflicts, 1);
        assert_int_equal(reporter_publish(fixture->reporter, tree, NULL, on_done, fixture),
                         -ENODATA);

        begin_existing(fixture, NULL);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(fake_http_count("host/"), 3);
        assert_int_equal(fake_http_count("/a/"), 0);
        assert_int_equal(publish(fixture, "host VCPU=9 +HW_A @x | a<host VGPU=4 @x"), 0);
        assert_tree(fixture, "host VCPU=9 +HW_A @x | a<host VGPU=4 @x");
}

static void test_lookup_fails(void **state)
{
        static const struct {
                FakeAnswer answer;
                int outcome;
        } cases[] = {
                { NO_ANSWER("/traits", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE },
                { ANSWER("/traits", 200, "{'traits':5}"), REPORT_E_UNAVAILABLE },
                { ANSWER("/resource_classes", 200, "{'resource_classes':[5]}"),
                  REPORT_E_UNAVAILABLE },
                { NO_ANSWER("/resource_classes", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE },
        };
        Fixture *fixture = *state;

        assert_int_equal(refresh(fixture), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                fake_http_begin(SCRIPT(cases[i].answer), NAMES);
                assert_int_equal(publish(fixture, i < 2 ? "host +HW_A" : "host CUSTOM_A=1"),
                                 cases[i].outcome);
                assert_int_equal(fake_http_get_n_requests(), 1);
        }
}

/* More names than fit into one path. */
static void test_big_lookup(void **state)
{
        Fixture *fixture = *state;
        char text[16000] = "host";

        for (unsigned i = 0; i < 300; i++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text),
                         " +HW_SOME_QUITE_LONG_TRAIT_%03u", i);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(publish(fixture, text), 0);
        assert_int_equal(fake_http_count("GET /traits"), 3);
        assert_tree(fixture, "host");
}

static void test_impossible_tree(void **state)
{
        Fixture *fixture = *state;

        begin_read(fixture);
        assert_int_equal(publish(fixture, "host | a"), -EINVAL);
        assert_non_null(strstr(fixture->error.text, "become a root"));
        assert_int_equal(publish(fixture, EXISTING_TREE), 0);
}

static void test_plan(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host VCPU=8 +HW_NEW");
        _cleanup_(plan_freep) Plan *plan = NULL;
        Fixture *fixture = *state;
        Error error = ERROR_NULL;

        assert_int_equal(reporter_plan(fixture->reporter, tree, NULL, &plan, &error), -ENODATA);
        assert_true(error.text[0] != '\0');
        assert_int_equal(refresh(fixture), 0);
        fake_http_clear_log();
        assert_int_equal(reporter_plan(fixture->reporter, tree, NULL, &plan, &error), 0);
        assert_int_equal(plan->n_steps, 3);
        assert_int_equal(fake_http_get_n_requests(), 0);
}

static void test_free_under_way(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT({ .match = "", .never = true }), NAMES);
        assert_int_equal(reporter_refresh(fixture->reporter, on_done, fixture), 0);
        for (unsigned i = 0; i < 3; i++)
                assert_true(sd_event_run(fixture->event, 1000) >= 0);
        fixture->reporter = reporter_free(fixture->reporter);
        assert_int_equal(fixture->n_calls, 0);
}

static void on_done_free(Reporter *reporter, int result, const Error *error, void *userdata)
{
        Fixture *fixture = userdata;

        fixture->reporter = reporter_free(reporter);
        fixture->n_calls++;
}

static void test_free_inside_callback(void **state)
{
        Fixture *fixture = *state;

        assert_int_equal(reporter_refresh(fixture->reporter, on_done_free, fixture), 0);
        wait_done(fixture);
        assert_null(fixture->reporter);
}

static void on_done_again(Reporter *reporter, int result, const Error *error, void *userdata)
{
        assert_int_equal(result, 0);
        assert_int_equal(reporter_refresh(reporter, on_done, userdata), 0);
}

static void test_start_inside_callback(void **state)
{
        Fixture *fixture = *state;

        assert_int_equal(reporter_refresh(fixture->reporter, on_done_again, fixture), 0);
        assert_int_equal(wait_done(fixture), 0);
        assert_int_equal(fake_http_get_n_requests(), 2);
}

static void test_retry_after(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT({ .match = "", .status = 503, .body = "", .retry_after_sec = 30 }),
                        NAMES);
        assert_int_equal(refresh(fixture), REPORT_E_UNAVAILABLE);
        assert_int_equal(reporter_get_statistics(fixture->reporter)->retry_after_usec,
                         30 * USEC_PER_SEC);
        fake_http_begin(NULL, NAMES);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(reporter_get_statistics(fixture->reporter)->retry_after_usec, 0);
}

/* A rejected batch is replaced in the same attempt. */
static void test_batch_refused(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(FAULT_ONCE("POST /reshaper", 409, "undefined_code")), "host a b c");
        assert_int_equal(reporter_get_statistics(fixture->reporter)->reshaper, RESHAPER_UNKNOWN);
        assert_int_equal(refresh(fixture), 0);
        fake_http_clear_log();
        assert_int_equal(
                publish(fixture, "host VCPU=1 | a<host VGPU=1 | b<host VGPU=1 | c<host VGPU=1"), 0);
        assert_int_equal(reporter_get_statistics(fixture->reporter)->reshaper, RESHAPER_ALLOWED);
        assert_int_equal(fake_http_count("POST /resource_providers"), 4);
        assert_int_equal(fake_http_count("POST /reshaper"), 1);
        assert_int_equal(fake_http_count("/inventories"), 4);
        assert_tree(fixture, "host VCPU=1 | a<host VGPU=1 | b<host VGPU=1 | c<host VGPU=1");
}

/* The first batch shows the access to the reshaper. A tree with fewer inventories is published
 * without a question about it. */
static void test_reshaper_access(void **state)
{
        static const struct {
                FakeAnswer answer;
                int outcome;
                ReshaperAccess access;
        } cases[] = {
                { ANSWER("POST /reshaper", 204, NULL), REPORT_DONE, RESHAPER_ALLOWED },
                { FAULT("POST /reshaper", 400, "undefined_code"), REPORT_DONE, RESHAPER_ALLOWED },
                { FAULT("POST /reshaper", 403, "undefined_code"), REPORT_DONE, RESHAPER_FORBIDDEN },
                { ANSWER("POST /reshaper", 403, ""), REPORT_DONE, RESHAPER_FORBIDDEN },
                { FAULT("POST /reshaper", 404, "undefined_code"), REPORT_DONE, RESHAPER_FORBIDDEN },
                { ANSWER("POST /reshaper", 502, ""), REPORT_E_UNAVAILABLE, RESHAPER_UNKNOWN },
                { NO_ANSWER("POST /reshaper", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE,
                  RESHAPER_UNKNOWN },
        };
        Fixture *fixture = *state;

        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(publish(fixture, "host VCPU=1"), 0);
        assert_int_equal(fake_http_count("/reshaper"), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                fixture = renew(state);
                fake_http_begin(SCRIPT(cases[i].answer), "host a b c");
                assert_int_equal(refresh(fixture), 0);
                if (publish(fixture, "host VCPU=1 | a<host VGPU=1 | b<host VGPU=1 | "
                                     "c<host VGPU=1") != cases[i].outcome ||
                    reporter_get_statistics(fixture->reporter)->reshaper != cases[i].access)
                        fail_msg("case %zu: %d, %s", i, fixture->result, fixture->error.text);
                assert_int_equal(fake_http_count("/reshaper"), 1);
        }
}

#define CLASSES(names) "{'resource_classes':[" names "]}"

/* All classes are looked up in one request, and only the missing ones are created. */
static void test_classes(void **state)
{
        static const char tree[] = "host CUSTOM_A=1 CUSTOM_B=1 CUSTOM_C=1 VCPU=1";
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(ANSWER("GET /resource_classes", 200,
                                      CLASSES("{'name':'VCPU'},{'name':'CUSTOM_A'},"
                                              "{'name':'CUSTOM_C'},{'name':'CUSTOM_D'}"))),
                        NAMES);
        assert_int_equal(refresh(fixture), 0);
        fake_http_clear_log();
        assert_int_equal(prepare(fixture, tree), 0);
        assert_int_equal(prepare(fixture, tree), 0);
        assert_int_equal(fake_http_count("GET /resource_classes"), 1);
        fake_http_clear_log();
        assert_int_equal(publish(fixture, tree), 0);
        assert_string_equal(fake_http_log(),
                            "PUT /resource_classes/CUSTOM_B; POST /resource_providers; "
                            "PUT /resource_providers/host/inventories");
        fake_http_clear_log();
        assert_int_equal(publish(fixture, "host CUSTOM_B=1 VCPU=1"), 0);
        assert_int_equal(fake_http_count("/resource_classes"), 0);
}

/* A created provider has no allocation before the next refresh, so an audit does not read it. */
static void test_gather_after_a_creation(void **state)
{
        Allocations *consumers, *others;
        Fixture *fixture = *state;

        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(publish(fixture, "host VCPU=1"), 0);
        fake_http_clear_log();
        assert_int_equal(reporter_gather(fixture->reporter, NULL, NULL, on_done, fixture), 0);
        assert_int_equal(wait_done(fixture), 0);
        assert_int_equal(fake_http_get_n_requests(), 0);
        reporter_take_gathered(fixture->reporter, &consumers, &others);
        assert_int_equal(consumers->n_consumers, 0);
        assert_int_equal(others->n_consumers, 0);
        allocations_free(consumers);
        allocations_free(others);

        set_list(fixture, 1, -1);
        fake_http_begin(SCRIPT(ANSWER("in_tree", 200, fixture->list),
                               ANSWER("/allocations", 200, EMPTY),
                               ANSWER("GET /resource_providers/host/", 200, PARTS("1", "", ""))),
                        NAMES);
        assert_int_equal(refresh(fixture), 0);
        assert_int_equal(reporter_gather(fixture->reporter, NULL, NULL, on_done, fixture), 0);
        assert_int_equal(wait_done(fixture), 0);
        assert_int_equal(fake_http_count("/allocations"), 1);
}

static const KeystoneConfig no_keystone;

static void test_bad_configurations(void **state)
{
        Fixture *fixture = *state;
        Uuid root = make_uuid("host");
        static const struct {
                ReporterConfig config;
                int r;
                const char *words;
        } cases[] = {
                { { .auth.kind = REPORTER_AUTH_NONE }, -EINVAL, "endpoint" },
                { { .http.endpoint = "", .auth.kind = REPORTER_AUTH_PASSWORD },
                  -EINVAL,
                  "endpoint" },
                { { .auth = { .kind = REPORTER_AUTH_PASSWORD, .keystone = &no_keystone } },
                  -EINVAL,
                  "auth_type" },
                { { .http.endpoint = "http://x", .auth.kind = REPORTER_AUTH_ADMIN_TOKEN },
                  -EINVAL,
                  "token" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Reporter *reporter = NULL;
                Error error = ERROR_NULL;

                assert_int_equal(reporter_new(&reporter, fixture->event, &cases[i].config, &root,
                                              "host", NULL, &error),
                                 cases[i].r);
                assert_null(reporter);
                assert_non_null(strstr(error.text, cases[i].words));
        }
}

TEST_MAIN_WITH(set_up, tear_down, test_new_host, test_prepare, test_gather_and_lay_the_ground,
               test_gather_while_the_ground_cannot_be_laid, test_failed_refresh_continues,
               test_existing_host_and_quiet_cycles, test_restore, test_save_of_a_written_mirror,
               test_a_settled_tree, test_a_provider_that_was_made_again,
               test_an_equal_list_is_not_parsed, test_only_what_moved_is_read, test_torn_reads,
               test_torn_reads_for_ever, test_failed_refreshes, test_renamed_host,
               test_one_attempt_at_a_time, test_conflict_wants_a_refresh, test_lookup_fails,
               test_big_lookup, test_impossible_tree, test_plan, test_free_under_way,
               test_free_inside_callback, test_start_inside_callback, test_retry_after,
               test_batch_refused, test_reshaper_access, test_classes, test_gather_after_a_creation,
               test_bad_configurations)
