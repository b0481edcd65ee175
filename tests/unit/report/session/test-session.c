/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/session/session.h"

#include "tests/fakes/http.h"
#include "tests/fixtures/tree.h"

typedef struct Fixture {
        sd_event *event;
        Session *session;
        unsigned n_calls;
        int result, status;
        bool has_body;
        PlacementCode code;
        char text[ERROR_TEXT_MAX];
} Fixture;

static int set_up(void **state)
{
        Fixture *fixture = calloc(1, sizeof(Fixture));
        static const HttpConfig config = { .endpoint = "http://fixed", .max_connections = 3 };
        static const AuthConfig auth = { .kind = REPORTER_AUTH_ADMIN_TOKEN, .token = "secret" };

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        assert_int_equal(
                session_new(&fixture->session, fixture->event, &config, &auth, NOVA_NONE, NULL), 0);
        fake_http_begin(NULL, "");
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        Fixture *fixture = *state;

        session_free(fixture->session);
        sd_event_unref(fixture->event);
        free(fixture);
        fake_http_begin(NULL, "");
        return 0;
}

static void on_done(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        Fixture *fixture = userdata;

        fixture->n_calls++;
        fixture->result = result;
        fixture->status = answer->status;
        fixture->has_body = answer->body != NULL;
        fixture->code = answer->verdict.code;
        snprintf(fixture->text, sizeof(fixture->text), "%s", error->text);
}

static SessionCall *send_put(Fixture *fixture)
{
        PlacementRequest request = placement_request("PUT", "/traits/{name}", "X");
        SessionCall *call;

        request.body = strdup("{}");
        assert_int_equal(session_send(fixture->session, request, on_done, fixture, &call, NULL), 0);
        return call;
}

static void wait_calls(Fixture *fixture, unsigned n)
{
        fake_http_wait(fixture->event, &fixture->n_calls, n);
        fixture->n_calls = 0;
}

static void send_get(Fixture *fixture, void (*done)(int result, const SessionAnswer *answer,
                                                    const Error *error, void *userdata))
{
        PlacementRequest request = placement_get_consumer(&UUID_NULL, true);

        assert_int_equal(session_send(fixture->session, request, done, fixture, NULL, NULL), 0);
}

static void test_headers(void **state)
{
        Fixture *fixture = *state;
        char first[200];
        const char *id;

        send_put(fixture);
        assert_non_null(strstr(fake_http_get_headers(), "Accept: application/json\n"));
        assert_non_null(strstr(fake_http_get_headers(), "Content-Type: application/json\n"));
        assert_non_null(strstr(fake_http_get_headers(), "OpenStack-API-Version: placement 1.30\n"));
        assert_non_null(strstr(fake_http_get_headers(), "X-Auth-Token: secret\n"));
        id = strstr(fake_http_get_headers(), "X-Openstack-Request-Id: req-");
        assert_non_null(id);
        snprintf(first, sizeof(first), "%.*s", (int)strcspn(id, "\n"), id);

        /* An attempt has one id, and the next attempt another. */
        send_get(fixture, on_done);
        assert_non_null(strstr(fake_http_get_headers(), first));
        assert_non_null(strstr(fake_http_get_headers(), "placement 1.38\n"));
        assert_null(strstr(fake_http_get_headers(), "Content-Type"));
        session_begin_attempt(fixture->session);
        send_get(fixture, on_done);
        assert_null(strstr(fake_http_get_headers(), first));
}

static void test_answers(void **state)
{
        static const struct {
                FakeAnswer answer;
                int result, status;
                bool has_body;
                const char *words;
        } cases[] = {
                { ANSWER("", 200, "{'a':1}"), REPORT_DONE, 200, true, "" },
                { ANSWER("", 204, NULL), REPORT_DONE, 204, false, "" },
                { ANSWER("", 201, ""), REPORT_DONE, 201, false, "" },
                { ANSWER("", 200, "<html>"), REPORT_E_UNAVAILABLE, 200, false, "JSON" },
                { ANSWER("", 200, "{'a':"), REPORT_E_UNAVAILABLE, 200, false, "JSON" },
                { ANSWER("", 200, "5"), REPORT_E_UNAVAILABLE, 200, false, "JSON" },
                { ANSWER("", 200, "null"), REPORT_E_UNAVAILABLE, 200, false, "JSON" },
                { ANSWER("", 401, ""), REPORT_E_UNAUTHORIZED, 401, false, "401" },
                { NO_ANSWER("", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE, 0, false, "no answer" },
                { NO_ANSWER("", HTTP_E_TLS), REPORT_E_UNREACHABLE, 0, false, "" },
                { NO_ANSWER("", HTTP_E_BAD_ANSWER), REPORT_E_UNAVAILABLE, 0, false, "" },
                { NO_ANSWER("", -ENOMEM), -ENOMEM, 0, false, "" },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                fake_http_begin(SCRIPT(cases[i].answer), "");
                send_put(fixture);
                assert_int_equal(fixture->n_calls, 0);
                wait_calls(fixture, 1);
                if (fixture->result != cases[i].result || !strstr(fixture->text, cases[i].words))
                        fail_msg("case %zu: %d, %s", i, fixture->result, fixture->text);
                assert_int_equal(fixture->status, cases[i].status);
                if (cases[i].result == REPORT_DONE)
                        assert_int_equal(fixture->has_body, cases[i].has_body);
                /* No message contains a token. */
                assert_null(strstr(fixture->text, "secret"));
        }
        assert_int_equal(session_get_statistics(fixture->session)->n_requests, ARRAY_SIZE(cases));
        assert_int_equal(session_get_statistics(fixture->session)->n_writes, ARRAY_SIZE(cases));
}

static void test_statistics(void **state)
{
        Fixture *fixture = *state;
        const SessionStatistics *statistics = session_get_statistics(fixture->session);

        fake_http_begin(
                SCRIPT(ANSWER_ONCE("", 409, "{'errors':[{'code':'placement.concurrent_update'}]}"),
                       { .match = "",
                         .times = 1,
                         .status = 429,
                         .body = "",
                         .retry_after_sec = 9 }),
                "");
        send_put(fixture);
        wait_calls(fixture, 1);
        assert_int_equal(fixture->code, PLACEMENT_CODE_CONCURRENT_UPDATE);
        assert_int_equal(statistics->n_conflicts, 1);
        send_put(fixture);
        wait_calls(fixture, 1);
        assert_int_equal(statistics->retry_after_usec, 9 * USEC_PER_SEC);
        session_begin_attempt(fixture->session);
        assert_int_equal(statistics->retry_after_usec, 0);
        assert_int_equal(statistics->max_connections, 3);
}

/* Requests are counted by method, route and status. The number of routes is bounded. */
static void test_counts(void **state)
{
        Fixture *fixture = *state;
        const RequestCounts *counts = &session_get_statistics(fixture->session)->counts;

        for (int status = 400; status < 400 + 2 * REQUEST_COUNTS_MAX; status++) {
                fake_http_begin(SCRIPT(ANSWER("GET", status, ""), ANSWER("PUT", 204, "")), "");
                send_put(fixture);
                if (status != 429 && status != 503)
                        send_get(fixture, on_done);
                wait_calls(fixture, status != 429 && status != 503 ? 2 : 1);
        }
        assert_int_equal(counts->n_items, REQUEST_COUNTS_MAX);
        assert_string_equal(counts->items[0].method, "PUT");
        assert_string_equal(counts->items[0].route, "/traits/{name}");
        assert_int_equal(counts->items[0].status, 204);
        assert_int_equal(counts->items[0].n, 2 * REQUEST_COUNTS_MAX);
        assert_string_equal(counts->items[1].route, "/allocations/{uuid}");
        assert_int_equal(counts->items[1].status, 400);
        assert_int_equal(counts->items[1].n, 1);
}

static void test_cancel(void **state)
{
        Fixture *fixture = *state;
        SessionCall *call = send_put(fixture);

        send_put(fixture);
        assert_null(session_call_cancel(call));
        assert_null(session_call_cancel(NULL));
        wait_calls(fixture, 1);
        send_put(fixture);
        /* The session cancels the other calls when it is freed. */
}

static void on_done_free(int result, const SessionAnswer *answer, const Error *error,
                         void *userdata)
{
        Fixture *fixture = userdata;

        fixture->session = session_free(fixture->session);
        fixture->n_calls++;
}

static void test_free_inside_callback(void **state)
{
        Fixture *fixture = *state;

        for (unsigned i = 0; i < 3; i++)
                send_get(fixture, on_done_free);
        wait_calls(fixture, 1);
        assert_null(fixture->session);
}

/* With Keystone. */

static const KeystoneConfig keystone = {
        .auth_url = (char *)"http://keystone",
        .user_id = (char *)"7",
        .password = (char *)"secret",
        .project_id = (char *)"8",
};

/* Begins a session without token and endpoint. */
static void begin_keystone(Fixture *fixture, const FakeAnswer *script)
{
        static const HttpConfig config = { .max_connections = 3 };
        static const AuthConfig auth = { .kind = REPORTER_AUTH_PASSWORD, .keystone = &keystone };

        session_free(fixture->session);
        fake_http_begin(script, "");
        assert_int_equal(
                session_new(&fixture->session, fixture->event, &config, &auth, NOVA_NONE, NULL), 0);
}

static void test_requests_wait_for_the_token(void **state)
{
        Fixture *fixture = *state;

        begin_keystone(fixture, SCRIPT(GIVES(1, "one", "http://placement")));
        for (unsigned i = 0; i < 5; i++)
                send_put(fixture);
        assert_string_equal(fake_http_log(), "POST /auth/tokens");
        assert_int_equal(session_get_statistics(fixture->session)->n_requests, 0);
        wait_calls(fixture, 5);
        assert_int_equal(fixture->result, REPORT_DONE);
        assert_int_equal(fake_http_count("POST /auth/tokens"), 1);
        assert_int_equal(fake_http_count("PUT /traits/X"), 5);
        assert_string_equal(fake_http_get_endpoint(), "http://placement");
        assert_non_null(strstr(fake_http_get_headers(), "X-Auth-Token: one\n"));
        assert_string_equal(fake_http_find_body("PUT"), "{}");
        assert_int_equal(session_get_statistics(fixture->session)->n_requests, 5);
}

static void test_requests_fail_without_token(void **state)
{
        Fixture *fixture = *state;

        begin_keystone(fixture,
                       SCRIPT(ANSWER("POST", 401, "{}"), ANSWER("GET", 200, "{'version':{}}")));
        send_put(fixture);
        send_put(fixture);
        wait_calls(fixture, 2);
        assert_int_equal(fixture->result, REPORT_E_UNAUTHORIZED);
        assert_non_null(strstr(fixture->text, "Keystone rejected the user 7"));
        /* During the pause the failure comes at once, but not from inside the call. */
        send_put(fixture);
        assert_int_equal(fixture->n_calls, 0);
        wait_calls(fixture, 1);
        assert_int_equal(fixture->result, REPORT_E_UNAUTHORIZED);
        /* The rejected request, and the one for the version document. */
        assert_int_equal(fake_http_count("POST /auth/tokens"), 1);
        assert_int_equal(fake_http_get_n_requests(), 2);
}

/* A request that is answered 401 is sent once more with its body, to the endpoint of the new token.
 * Requests that have not begun wait for that token. */
static void test_401_is_asked_again(void **state)
{
        static const struct {
                size_t lanes; /* number of requests that begin; 0: all */
                unsigned n_calls;
        } cases[] = { { 0, 3 }, { 3, 10 } };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                unsigned n_calls = cases[i].n_calls, n_sent = 1 + 3 + n_calls;
                const SessionStatistics *statistics;

                begin_keystone(
                        fixture,
                        SCRIPT(GIVES(1, "one", "http://old"), GIVES(1, "two", "http://new"),
                               ANSWER_ONCE("PUT", 200, NULL),
                               { .match = "PUT", .times = n_calls, .status = 401, .body = "no" }));
                fake_http_set_lanes(cases[i].lanes);
                send_put(fixture);
                wait_calls(fixture, 1);
                for (unsigned n = 0; n < n_calls; n++)
                        send_put(fixture);
                wait_calls(fixture, n_calls);
                assert_int_equal(fixture->result, REPORT_DONE);
                assert_int_equal(fake_http_count("POST /auth/tokens"), 2);
                assert_int_equal(fake_http_count("PUT"), n_sent);
                statistics = session_get_statistics(fixture->session);
                assert_int_equal(statistics->n_requests, n_sent);
                assert_int_equal(statistics->n_writes, n_sent);
                assert_string_equal(fake_http_get_endpoint(), "http://new");
                assert_non_null(strstr(fake_http_get_headers(), "X-Auth-Token: two\n"));
                assert_string_equal(fake_http_find_body("PUT"), "{}");
        }
}

static void test_401_for_ever(void **state)
{
        Fixture *fixture = *state;

        begin_keystone(fixture, SCRIPT(GIVES(1, "one", "http://placement"),
                                       GIVES(1, "two", "http://placement"),
                                       ANSWER_ONCE("PUT", 200, NULL), ANSWER("PUT", 401, "no")));
        send_put(fixture);
        wait_calls(fixture, 1);
        send_put(fixture);
        wait_calls(fixture, 1);
        assert_int_equal(fixture->result, REPORT_E_UNAUTHORIZED);
        assert_int_equal(fixture->status, 401);
        assert_non_null(strstr(fixture->text, "keystone_authtoken"));
        assert_int_equal(fake_http_count("PUT"), 3);
        assert_int_equal(fake_http_count("POST /auth/tokens"), 2);
}

/* The next request looks up the endpoint again. */
static void test_moved(void **state)
{
        static const struct {
                FakeAnswer answer;
                bool moves;
        } cases[] = {
                { { .match = "PUT", .times = 1, .result = HTTP_E_UNREACHABLE }, true },
                { ANSWER_ONCE("PUT", 404, "<html>"), true },
                { ANSWER_ONCE("PUT", 301, ""), true },
                { ANSWER_ONCE("PUT", 200, "<html>"), true },
                { ANSWER_ONCE("PUT", 404, "{'errors':[{}]}"), false },
                { ANSWER_ONCE("PUT", 500, "{'errors':[{}]}"), false },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                begin_keystone(fixture, SCRIPT(GIVES(1, "one", "http://old"),
                                               GIVES(1, "two", "http://new"), cases[i].answer));
                send_put(fixture);
                wait_calls(fixture, 1);
                assert_int_not_equal(fixture->result, REPORT_DONE);
                send_put(fixture);
                wait_calls(fixture, 1);
                assert_int_equal(fixture->result, REPORT_DONE);
                if (strcmp(fake_http_get_endpoint(), cases[i].moves ? "http://new" : "http://old"))
                        fail_msg("case %zu: %s", i, fake_http_get_endpoint());
        }
}

static void test_cancel_while_held(void **state)
{
        Fixture *fixture = *state;
        SessionCall *call;

        begin_keystone(fixture, SCRIPT(GIVES(1, "one", "http://placement")));
        call = send_put(fixture);
        send_put(fixture);
        session_call_cancel(call);
        wait_calls(fixture, 1);
        assert_int_equal(fake_http_count("PUT"), 1);
        send_put(fixture);
        session_call_cancel(send_put(fixture));
        wait_calls(fixture, 1);
}

TEST_MAIN_WITH(set_up, tear_down, test_headers, test_answers, test_statistics, test_counts,
               test_cancel, test_free_inside_callback, test_requests_wait_for_the_token,
               test_requests_fail_without_token, test_401_is_asked_again, test_401_for_ever,
               test_moved, test_cancel_while_held)
