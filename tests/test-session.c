/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/session.h"

#include "tests/fake-http.h"
#include "tests/report-fixture.h"

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
        HttpConfig config = { .max_connections = 3 };
        Auth *auth;

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        assert_int_equal(auth_new(&auth, REPORTER_AUTH_ADMIN_TOKEN, "secret", NULL), 0);
        assert_int_equal(session_new(&fixture->session, fixture->event, &config, auth, NULL), 0);
        fake_http_begin(NULL, 0, "");
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        Fixture *fixture = *state;

        session_free(fixture->session);
        sd_event_unref(fixture->event);
        free(fixture);
        fake_http_begin(NULL, 0, "");
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
        static const PlacementRequest request = {
                .method = "PUT",
                .path = (char *)"/traits/X",
                .microversion = "1.30",
                .body = (char *)"{}",
        };
        SessionCall *call;

        assert_int_equal(session_send(fixture->session, &request, on_done, fixture, &call, NULL),
                         0);
        return call;
}

static void wait_done(Fixture *fixture)
{
        for (unsigned i = 0; i < 100 && fixture->n_calls == 0; i++)
                assert_true(sd_event_run(fixture->event, USEC_PER_SEC) >= 0);
        assert_int_equal(fixture->n_calls, 1);
        fixture->n_calls = 0;
}

static void test_headers(void **state)
{
        static const PlacementRequest get = {
                .method = "GET",
                .path = (char *)"/x",
                .microversion = "1.38",
        };
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

        /* One id for an attempt, another for the next. */
        assert_int_equal(session_send(fixture->session, &get, on_done, fixture, NULL, NULL), 0);
        assert_non_null(strstr(fake_http_get_headers(), first));
        assert_non_null(strstr(fake_http_get_headers(), "placement 1.38\n"));
        assert_null(strstr(fake_http_get_headers(), "Content-Type"));
        session_begin_attempt(fixture->session);
        assert_int_equal(session_send(fixture->session, &get, on_done, fixture, NULL, NULL), 0);
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
                { { .match = "", .body = "{\"a\":1}" }, REPORT_DONE, 200, true, "" },
                { { .match = "", .status = 204 }, REPORT_DONE, 204, false, "" },
                { { .match = "", .status = 201, .body = "" }, REPORT_DONE, 201, false, "" },
                { { .match = "", .body = "<html>" }, REPORT_E_UNAVAILABLE, 200, false, "JSON" },
                { { .match = "", .body = "{\"a\":" }, REPORT_E_UNAVAILABLE, 200, false, "JSON" },
                { { .match = "", .body = "5" }, REPORT_E_UNAVAILABLE, 200, false, "JSON" },
                { { .match = "", .body = "null" }, REPORT_E_UNAVAILABLE, 200, false, "JSON" },
                { { .match = "", .status = 401, .body = "" },
                  REPORT_E_UNAUTHORIZED,
                  401,
                  false,
                  "401" },
                { { .match = "", .result = HTTP_E_UNREACHABLE },
                  REPORT_E_UNREACHABLE,
                  0,
                  false,
                  "no answer" },
                { { .match = "", .result = HTTP_E_TLS }, REPORT_E_UNREACHABLE, 0, false, "" },
                { { .match = "", .result = HTTP_E_BAD_ANSWER },
                  REPORT_E_UNAVAILABLE,
                  0,
                  false,
                  "" },
                { { .match = "", .result = -ENOMEM }, -ENOMEM, 0, false, "" },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                fake_http_begin(&cases[i].answer, 1, "");
                send_put(fixture);
                assert_int_equal(fixture->n_calls, 0);
                wait_done(fixture);
                if (fixture->result != cases[i].result || !strstr(fixture->text, cases[i].words))
                        fail_msg("case %zu: %d, %s", i, fixture->result, fixture->text);
                assert_int_equal(fixture->status, cases[i].status);
                if (cases[i].result == REPORT_DONE)
                        assert_int_equal(fixture->has_body, cases[i].has_body);
                /* A token never shows. */
                assert_null(strstr(fixture->text, "secret"));
        }
        assert_int_equal(session_get_statistics(fixture->session)->n_requests, ARRAY_SIZE(cases));
        assert_int_equal(session_get_statistics(fixture->session)->n_writes, ARRAY_SIZE(cases));
}

static void test_statistics(void **state)
{
        static const FakeAnswer script[] = {
                { .match = "",
                  .times = 1,
                  .status = 409,
                  .body = "{\"errors\":[{\"code\":\"placement.concurrent_update\"}]}" },
                { .match = "", .times = 1, .status = 429, .body = "", .retry_after_sec = 9 },
        };
        Fixture *fixture = *state;
        const SessionStatistics *statistics = session_get_statistics(fixture->session);

        fake_http_begin(script, ARRAY_SIZE(script), "");
        send_put(fixture);
        wait_done(fixture);
        assert_int_equal(fixture->code, PLACEMENT_CODE_CONCURRENT_UPDATE);
        assert_int_equal(statistics->n_conflicts, 1);
        send_put(fixture);
        wait_done(fixture);
        assert_int_equal(statistics->retry_after_usec, 9 * USEC_PER_SEC);
        session_begin_attempt(fixture->session);
        assert_int_equal(statistics->retry_after_usec, 0);
        assert_int_equal(session_get_max_connections(fixture->session), 3);
}

static void test_cancel(void **state)
{
        Fixture *fixture = *state;
        SessionCall *call = send_put(fixture);

        send_put(fixture);
        assert_null(session_call_cancel(call));
        assert_null(session_call_cancel(NULL));
        wait_done(fixture);
        send_put(fixture);
        /* The rest is cancelled when the session is freed. */
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
        static const PlacementRequest request = {
                .method = "GET",
                .path = (char *)"/x",
                .microversion = "1.30",
        };
        Fixture *fixture = *state;

        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(
                        session_send(fixture->session, &request, on_done_free, fixture, NULL, NULL),
                        0);
        wait_done(fixture);
        assert_null(fixture->session);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
                TEST(test_headers),
                TEST(test_answers),
                TEST(test_statistics),
                TEST(test_cancel),
                TEST(test_free_inside_callback),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
