/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Gathering over a scripted HTTP: the requests, and the result of each answer. */

#include "report/gather.h"

#include "base/text.h"
#include "tests/fakes/session.h"
#include "tests/fixtures/tree.h"

#define NAMES "host gpu a b c"

typedef struct Fixture {
        sd_event *event;
        Session *session;
        Gather *gather;
        unsigned n_calls;
        int result;
        Error error;
        Allocations *consumers, *others;
} Fixture;

static int set_up(void **state)
{
        Fixture *fixture = calloc(1, sizeof(Fixture));

        assert_non_null(fixture);
        fake_session_begin(&fixture->event, &fixture->session, 4);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        Fixture *fixture = *state;

        gather_free(fixture->gather);
        allocations_free(fixture->consumers);
        allocations_free(fixture->others);
        fake_session_end(fixture->event, fixture->session);
        free(fixture);
        return 0;
}

/* Replaces the fixture for the next row of a table. */
static Fixture *renew(void **state)
{
        tear_down(state);
        set_up(state);
        return *state;
}

static void on_done(int result, Allocations *consumers, Allocations *others, const Error *error,
                    void *userdata)
{
        Fixture *fixture = userdata;

        fixture->n_calls++;
        fixture->result = result;
        fixture->error = *error;
        fixture->consumers = consumers;
        fixture->others = others;
}

/* Makes {"allocations": {name: {"resources": {…}}}} with uuids in place of the names of
 * tests/fixtures/tree.h. owner adds project, user and generation. The caller frees it. */
static char *make_answer(const char *held, bool owner)
{
        char text[512] = "", copy[256], *rest = copy, *item;

        snprintf(copy, sizeof(copy), "%s", held);
        while ((item = strtok_r(rest, " ", &rest))) {
                char *equals = strchr(item, ':');

                *equals = '\0';
                snprintf(text + strlen(text), sizeof(text) - strlen(text),
                         "%s'%s':{'resources':{'%s':1}}", text[0] ? "," : "", make_uuid(item).text,
                         equals + 1);
        }
        return text_format("{'allocations':{%s}%s}", text,
                           owner && held[0] ? ",'project_id':'p','user_id':'u',"
                                              "'consumer_generation':1"
                                            : "");
}

static int run(Fixture *fixture, const StringSet *classes)
{
        const Uuid providers[] = { make_uuid("host"), make_uuid("gpu") };

        assert_int_equal(gather_new(&fixture->gather, fixture->session, providers,
                                    ARRAY_SIZE(providers), classes, on_done, fixture, NULL),
                         0);
        assert_int_equal(fixture->n_calls, 0);
        fake_http_wait(fixture->event, &fixture->n_calls, 1);
        return fixture->result;
}

/* Writes the names of the consumers that are in the set, for example "a b". */
static void format_names(const Allocations *allocations, char text[static 16])
{
        static const char *const names[] = { "a", "b", "c" };

        text[0] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                Uuid uuid = make_uuid(names[i]);

                if (allocations_find(allocations, &uuid))
                        strcat(text, names[i]);
        }
}

static void test_consumers_are_read_completely(void **state)
{
        static const struct {
                const char *about, *of_host, *of_gpu, *classes;
                const char *a, *b, *c; /* allocations of each consumer at the second read */
                const char *consumers, *others;
                size_t n_requests;
        } cases[] = {
                { "no consumer", "", "", "VGPU", "", "", "", "", "", 2 },
                { "no consumer of the class", "a:VCPU b:VCPU", "", "VGPU", "", "", "", "", "ab",
                  2 },
                { "one of three", "a:VCPU b:VCPU", "c:VGPU", "VGPU", "", "", "gpu:VGPU", "c", "ab",
                  3 },
                { "all", "a:VCPU", "b:VGPU", NULL, "host:VCPU", "gpu:VGPU", "", "ab", "", 4 },
                { "one that has gone since", "a:VGPU b:VGPU", "", "VGPU", "", "host:VGPU", "", "b",
                  "", 4 },
        };
        Fixture *fixture;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(string_set_done) StringSet classes = STRING_SET_INIT;
                _cleanup_free_ char *host = make_answer(cases[i].of_host, false);
                _cleanup_free_ char *gpu = make_answer(cases[i].of_gpu, false);
                _cleanup_free_ char *a = make_answer(cases[i].a, true);
                _cleanup_free_ char *b = make_answer(cases[i].b, true);
                _cleanup_free_ char *c = make_answer(cases[i].c, true);
                char text[16];

                fixture = renew(state);
                fake_http_begin(SCRIPT(ANSWER("/resource_providers/host/allocations", 200, host),
                                       ANSWER("/resource_providers/gpu/allocations", 200, gpu),
                                       ANSWER("/allocations/a", 200, a),
                                       ANSWER("/allocations/b", 200, b),
                                       ANSWER("/allocations/c", 200, c)),
                                NAMES);
                if (cases[i].classes)
                        assert_true(string_set_add(&classes, cases[i].classes) >= 0);
                assert_int_equal(run(fixture, cases[i].classes ? &classes : NULL), REPORT_DONE);
                format_names(fixture->consumers, text);
                if (strcmp(text, cases[i].consumers) != 0)
                        fail_msg("%s: whole: %s", cases[i].about, text);
                format_names(fixture->others, text);
                if (strcmp(text, cases[i].others) != 0)
                        fail_msg("%s: others: %s", cases[i].about, text);
                assert_int_equal(fake_http_get_n_requests(), cases[i].n_requests);
                /* The last request is for a consumer, with its type if all are read. */
                if (cases[i].n_requests > 2 &&
                    !strstr(fake_http_get_headers(), PLACEMENT_MICROVERSION_CONSUMER_TYPES) !=
                            (cases[i].classes != NULL))
                        fail_msg("%s: %s", cases[i].about, fake_http_get_headers());
        }
}

static void test_failed_reads(void **state)
{
        static const struct {
                const char *about;
                FakeAnswer answer;
                int result;
        } cases[] = {
                { "a provider was deleted since it was listed",
                  FAULT("/resource_providers/gpu/", 404, "undefined_code"), REPORT_E_CONFLICT },
                { "the network ends", NO_ANSWER("/allocations/a", HTTP_E_UNREACHABLE),
                  REPORT_E_UNREACHABLE },
                { "no JSON that is known",
                  ANSWER("/resource_providers/gpu/", 200, "{'allocations':5}"),
                  REPORT_E_UNAVAILABLE },
                { "a service without types", ANSWER_ONCE("/allocations/a", 406, TOO_OLD),
                  REPORT_DONE },
                { "too old for allocations at all",
                  ANSWER("/resource_providers/host/", 406, TOO_OLD), REPORT_E_TOO_OLD },
        };
        Fixture *fixture;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *host = make_answer("a:VCPU", false);
                _cleanup_free_ char *gpu = make_answer("", false);
                _cleanup_free_ char *a = make_answer("host:VCPU", true);

                fixture = renew(state);
                fake_http_begin(SCRIPT(cases[i].answer,
                                       ANSWER("/resource_providers/host/allocations", 200, host),
                                       ANSWER("/resource_providers/gpu/allocations", 200, gpu),
                                       ANSWER("/allocations/a", 200, a)),
                                NAMES);
                if (run(fixture, NULL) != cases[i].result)
                        fail_msg("%s: %d, %s", cases[i].about, fixture->result,
                                 fixture->error.text);
                assert_int_equal(fixture->consumers != NULL, cases[i].result == REPORT_DONE);
                assert_int_equal(fixture->others != NULL, cases[i].result == REPORT_DONE);
        }
}

/* A service that rejects reads of consumers also without types gets two requests for each. */
static void test_service_is_too_old_for_consumers(void **state)
{
        const Uuid consumers[] = { make_uuid("a"), make_uuid("b"), make_uuid("c") };
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(ANSWER("/allocations/", 406, TOO_OLD)), NAMES);
        assert_int_equal(gather_consumers_new(&fixture->gather, fixture->session, consumers,
                                              ARRAY_SIZE(consumers), on_done, fixture, NULL),
                         0);
        fake_http_wait(fixture->event, &fixture->n_calls, 1);
        assert_int_equal(fixture->result, REPORT_E_TOO_OLD);
        assert_null(fixture->consumers);
        assert_true(fake_http_get_n_requests() <= 2 * ARRAY_SIZE(consumers));
}

/* The callback of a cancelled gathering never runs. */
static void test_given_up(void **state)
{
        const Uuid provider = make_uuid("host");
        Fixture *fixture = *state;

        fake_http_begin(NULL, NAMES);
        assert_int_equal(gather_new(&fixture->gather, fixture->session, &provider, 1, NULL, on_done,
                                    fixture, NULL),
                         0);
        fixture->gather = gather_free(fixture->gather);
        for (int i = 0; i < 5; i++)
                assert_true(sd_event_run(fixture->event, 0) >= 0);
        assert_int_equal(fixture->n_calls, 0);
}

/* Another request of the session need not wait for all reads. */
static void test_no_more_at_a_time_than_connections(void **state)
{
        Fixture *fixture = *state;
        Uuid providers[9];
        Progress progress;

        for (size_t i = 0; i < ARRAY_SIZE(providers); i++)
                providers[i] = uuid_make_random();
        fake_http_begin(SCRIPT(ANSWER("/allocations", 200, "{'allocations':{}}")), "");
        assert_int_equal(gather_new(&fixture->gather, fixture->session, providers,
                                    ARRAY_SIZE(providers), NULL, on_done, fixture, NULL),
                         0);
        assert_true(sd_event_run(fixture->event, 0) >= 0);
        gather_get_progress(fixture->gather, &progress);
        assert_int_equal(progress.n_done, 1);
        assert_int_equal(progress.n_total, ARRAY_SIZE(providers));
        fake_http_wait(fixture->event, &fixture->n_calls, 1);
        assert_int_equal(fixture->result, REPORT_DONE);
        assert_int_equal(fake_http_get_max_parallel(), 4);
        assert_int_equal(fake_http_get_n_requests(), ARRAY_SIZE(providers));
}

TEST_MAIN_WITH(set_up, tear_down, test_consumers_are_read_completely, test_failed_reads,
               test_service_is_too_old_for_consumers, test_given_up,
               test_no_more_at_a_time_than_connections)
