/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Requests about consumers over a scripted HTTP. */

#include "report/consumers.h"

#include "tests/fakes/session.h"
#include "tests/fixtures/tree.h"

typedef struct Fixture {
        sd_event *event;
        Session *session;
        unsigned n_calls;
        int result, status;
        Error error;
        Consumer *consumer;
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

        consumer_free(fixture->consumer);
        fake_session_end(fixture->event, fixture->session);
        free(fixture);
        return 0;
}

static void on_done(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        Fixture *fixture = userdata;

        fixture->n_calls++;
        fixture->result = result;
        fixture->status = answer->status;
        fixture->error = *error;
        consumer_free(fixture->consumer);
        fixture->consumer = TAKE_PTR(answer->consumer);
}

static int wait_done(Fixture *fixture)
{
        assert_int_equal(fixture->n_calls, 0);
        fake_http_wait(fixture->event, &fixture->n_calls, 1);
        fixture->n_calls = 0;
        assert_int_equal(fixture->result != 0, fixture->error.text[0] != '\0');
        return fixture->result;
}

static int read_consumer(Fixture *fixture)
{
        Uuid uuid = make_uuid("guest");
        ConsumersCall *call;

        assert_int_equal(consumers_read(&call, fixture->session, &uuid, on_done, fixture, NULL), 0);
        return wait_done(fixture);
}

#define HELD                                                                   \
        "{'allocations':{'11111111-1111-1111-1111-111111111111':{'resources':" \
        "{'VCPU':2}}},'project_id':'p','user_id':'u','consumer_generation':3"

/* Begins a script with one answer, after that of a service that is too old for types. */
static void begin_script(bool older, const FakeAnswer *answer, const char *names)
{
        fake_http_begin(older ? SCRIPT(ANSWER_ONCE("", 406, TOO_OLD)) : NULL, names);
        fake_http_more(SCRIPT(*answer));
}

static void test_read(void **state)
{
        static const struct {
                bool older; /* before 1.38, which has no types */
                FakeAnswer answer;
                int result;
                size_t n_requests;
                int64_t generation;
                const char *type;
        } cases[] = {
                { false, ANSWER("", 200, HELD ",'consumer_type':'INSTANCE'}"), REPORT_DONE, 1, 3,
                  "INSTANCE" },
                { false, ANSWER("", 200, "{'allocations':{}}"), REPORT_DONE, 1, -1, NULL },
                { true, ANSWER("", 200, HELD "}"), REPORT_DONE, 2, 3, NULL },
                { false, ANSWER("", 406, TOO_OLD), REPORT_E_TOO_OLD, 2, 0, NULL },
                { false, ANSWER("", 502, ""), REPORT_E_UNAVAILABLE, 1, 0, NULL },
                { false, NO_ANSWER("", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE, 1, 0, NULL },
                { false, ANSWER("", 200, "{'allocations':5}"), REPORT_E_UNAVAILABLE, 1, 0, NULL },
                { false, ANSWER("", 200, HELD ",'consumer_generation':'x'}"), REPORT_E_UNAVAILABLE,
                  1, 0, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Fixture *fixture = *state;

                begin_script(cases[i].older, &cases[i].answer, "guest");
                if (read_consumer(fixture) != cases[i].result)
                        fail_msg("case %zu: %d: %s", i, fixture->result, fixture->error.text);
                assert_string_equal(fake_http_log(),
                                    cases[i].n_requests == 1
                                            ? "GET /allocations/guest"
                                            : "GET /allocations/guest; GET /allocations/guest");
                assert_int_equal(fixture->consumer != NULL, cases[i].result == REPORT_DONE);
                if (!fixture->consumer)
                        continue;
                assert_int_equal(fixture->consumer->generation, cases[i].generation);
                assert_int_equal(fixture->consumer->n_allocations, cases[i].generation >= 0);
                assert_int_equal(fixture->consumer->type != NULL, cases[i].type != NULL);
        }
}

static void fill_consumer(Consumer *consumer)
{
        Uuid host = make_uuid("host");

        consumer->project_id = strdup("p");
        consumer->user_id = strdup("u");
        consumer->type = strdup("INSTANCE");
        assert_int_equal(consumer_set(consumer, &host, "VCPU", 2), 0);
}

static void test_write(void **state)
{
        static const struct {
                bool older;
                FakeAnswer answer;
                int result, status;
        } cases[] = {
                { false, ANSWER("", 204, NULL), REPORT_DONE, 204 },
                { false, FAULT("", 409, "concurrent_update"), REPORT_E_CONFLICT, 409 },
                { false, FAULT("", 409, "undefined_code"), REPORT_E_REFUSED, 409 },
                { true, ANSWER("", 204, NULL), REPORT_DONE, 204 },
                { false, NO_ANSWER("", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(consumer_freep) Consumer *consumer = NULL;
                Uuid uuid = make_uuid("guest");
                Fixture *fixture = *state;
                ConsumersCall *call;

                begin_script(cases[i].older, &cases[i].answer, "host guest");
                assert_int_equal(consumer_new(&consumer, &uuid), 0);
                fill_consumer(consumer);
                assert_int_equal(consumers_write(&call, fixture->session, consumer, NULL, on_done,
                                                 fixture, NULL),
                                 0);
                assert_int_equal(wait_done(fixture), cases[i].result);
                assert_int_equal(fixture->status, cases[i].status);
                assert_string_equal(fake_http_log(),
                                    cases[i].older
                                            ? "PUT /allocations/guest; PUT /allocations/guest"
                                            : "PUT /allocations/guest");
                /* The older form has no type. */
                assert_int_equal(strstr(fake_http_find_body("PUT"), "consumer_type") != NULL,
                                 !cases[i].older);
        }
}

static void test_move(void **state)
{
        _cleanup_(allocations_freep) Allocations *consumers = NULL;
        Uuid from = make_uuid("from"), to = make_uuid("to");
        Fixture *fixture = *state;
        Consumer *consumer;
        ConsumersCall *call;

        fake_http_begin(SCRIPT(ANSWER("", 204, NULL)), "host from to");
        assert_int_equal(allocations_new(&consumers), 0);
        assert_int_equal(allocations_ensure(consumers, &from, &consumer), 0);
        /* The owner of the consumer is unknown. */
        assert_int_equal(consumers_move(&call, fixture->session, consumers, on_done, fixture, NULL),
                         -EINVAL);
        assert_int_equal(
                consumers_write(&call, fixture->session, consumer, NULL, on_done, fixture, NULL),
                -EINVAL);
        fill_consumer(consumer);
        assert_int_equal(allocations_ensure(consumers, &to, &consumer), 0);
        fill_consumer(consumer);
        assert_int_equal(consumers_move(&call, fixture->session, consumers, on_done, fixture, NULL),
                         0);
        assert_int_equal(wait_done(fixture), REPORT_DONE);
        assert_string_equal(fake_http_log(), "POST /allocations");
}

static int read_capacity(Fixture *fixture)
{
        Uuid root = make_uuid("host");
        ConsumersCall *call;

        assert_int_equal(
                capacity_read(&call, fixture->session, &root, "VCPU", 2, on_done, fixture, NULL),
                0);
        return wait_done(fixture);
}

static void test_capacity(void **state)
{
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(ANSWER("", 200, "{'provider_summaries':{}}")), "host");
        assert_int_equal(read_capacity(fixture), REPORT_DONE);
        assert_int_equal(fixture->consumer->n_allocations, 0);
        assert_string_equal(fake_http_log(),
                            "GET /allocation_candidates?limit=1&resources=VCPU:2&in_tree=host");
        fake_http_begin(SCRIPT(ANSWER("", 200, "{}")), "host");
        assert_int_equal(read_capacity(fixture), REPORT_E_UNAVAILABLE);
        assert_non_null(strstr(fixture->error.text, "provider_summaries"));
}

static void test_cancel(void **state)
{
        Uuid uuid = make_uuid("guest");
        Fixture *fixture = *state;
        ConsumersCall *call;

        fake_http_begin(SCRIPT({ .match = "", .never = true }), "guest");
        assert_int_equal(consumers_read(&call, fixture->session, &uuid, on_done, fixture, NULL), 0);
        assert_true(sd_event_run(fixture->event, 0) >= 0);
        assert_null(consumers_cancel(call));
        assert_null(consumers_cancel(NULL));
        assert_int_equal(fixture->n_calls, 0);
}

TEST_MAIN_WITH(set_up, tear_down, test_read, test_write, test_move, test_capacity, test_cancel)
