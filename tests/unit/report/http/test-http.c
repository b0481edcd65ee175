/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One request and its answer. Queues are tested in tests/unit/report/http/test-queue.c. */

#include "tests/fixtures/http.h"

/* Sends a GET with a client that is started for it. */
static void fetch(Fixture *fixture, const char *path, Result *result)
{
        start_client(fixture);
        get(fixture, path, result);
        run_until(fixture, result, 1);
}

static void test_get(void **state)
{
        static const char more[] = "X-Subject-Token: secret\r\n"
                                   "Last-Modified: Sun, 22 Nov 2026 07:00:00 GMT\r\n";
        Fixture *fixture = *state;
        Result result = { 0 };
        char answer[500];

        snprintf(answer, sizeof(answer), "%.17s%s%s", OK_ANSWER, more, &OK_ANSWER[17]);
        fixture->server.answer = answer;
        fetch(fixture, "/resource_providers?in_tree=x", &result);
        assert_int_equal(result.result, HTTP_DONE);
        assert_int_equal(result.status, 200);
        assert_string_equal(result.body, "{}");
        assert_string_equal(result.request_id, "req-1");
        assert_string_equal(result.content_type, "application/json");
        assert_string_equal(result.location, "");
        assert_string_equal(result.subject_token, "secret");
        assert_int_equal(result.modified_sec, 1795330800);
        assert_memory_equal(fixture->server.last,
                            "GET /placement/resource_providers?in_tree=x HTTP/1.1\r\n", 54);
        assert_non_null(strstr(fixture->server.last, "User-Agent: test/1.0\r\n"));
        assert_null(strstr(fixture->server.last, "Content-Length"));
}

static void test_put_and_headers(void **state)
{
        static const char *const headers[] = { "X-Auth-Token: secret", "Content-Type: a/b", NULL };
        Fixture *fixture = *state;
        Result result = { 0 };
        HttpRequest request = {
                .method = "PUT",
                .path = "/x",
                .headers = headers,
                .body = "{\"a\":1}",
                .body_size = 7,
        };

        start_client(fixture);
        assert_int_equal(http_client_send(fixture->client, &request, on_done, &result, NULL, NULL),
                         0);
        run_until(fixture, &result, 1);
        assert_memory_equal(fixture->server.last, "PUT /placement/x HTTP/1.1\r\n", 27);
        assert_non_null(strstr(fixture->server.last, "X-Auth-Token: secret\r\n"));
        assert_non_null(strstr(fixture->server.last, "Content-Type: a/b\r\n"));
        assert_non_null(strstr(fixture->server.last, "Content-Length: 7\r\n"));
        assert_null(strstr(fixture->server.last, "Expect"));
}

/* PUT /traits/X has no body, but a length, and no invented content type. */
static void test_put_without_body(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        start_client(fixture);
        assert_int_equal(http_client_send(fixture->client,
                                          &(HttpRequest){ .method = "PUT", .path = "/x" }, on_done,
                                          &result, NULL, NULL),
                         0);
        run_until(fixture, &result, 1);
        assert_int_equal(result.status, 200);
        assert_non_null(strstr(fixture->server.last, "Content-Length: 0\r\n"));
        assert_null(strstr(fixture->server.last, "Content-Type"));
}

static void test_answers(void **state)
{
        static const struct {
                const char *answer;
                int status;
                const char *body, *location;
                uint64_t retry_after_sec;
        } cases[] = {
                { "HTTP/1.1 204 No Content\r\n\r\n", 204, "", "", 0 },
                { "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope", 404, "nope", "", 0 },
                { "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/x\r\nContent-Length: 0\r\n\r\n",
                  302, "", "http://10.0.0.1/x", 0 },
                { "HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n", 503, "", "",
                  120 },
                { "HTTP/1.1 503 Busy\r\nRetry-After: 9223372036854775807\r\nContent-Length: 0\r\n\r\n",
                  503, "", "", 21600 },
                { "HTTP/1.1 429 Slow\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n", 429, "",
                  "", 0 },
                { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n"
                  "\r\n",
                  200, "abc", "", 0 },
        };
        Fixture *fixture = *state;

        start_client(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Result result = { 0 };

                fixture->server.answer = cases[i].answer;
                get(fixture, "/", &result);
                run_until(fixture, &result, 1);
                assert_int_equal(result.result, HTTP_DONE);
                assert_int_equal(result.status, cases[i].status);
                assert_string_equal(result.body, cases[i].body);
                assert_string_equal(result.location, cases[i].location);
                assert_int_equal(result.retry_after_sec, cases[i].retry_after_sec);
        }
        /* The redirect was not followed, and one connection served all requests. */
        assert_int_equal(fixture->server.n_requests, ARRAY_SIZE(cases));
        assert_int_equal(fixture->server.n_connections, 1);
}

#define EMPTY "Content-Length: 0\r\n\r\n"

static void test_header_fields(void **state)
{
        static const struct {
                const char *answer, *location, *content_type;
        } cases[] = {
                { "HTTP/1.1 201 Created\r\nContent-Type: \t text/plain; charset=UTF-8 \r\n"
                  "LOCATION:/resource_providers/1\r\n" EMPTY,
                  "/resource_providers/1", "text/plain; charset=UTF-8" },
                /* The first of two equal fields counts. */
                { "HTTP/1.1 200 OK\r\nLocation: \r\nLocation: /second\r\n" EMPTY, "", "" },
                /* An interim answer is followed by another status line. */
                { "HTTP/1.1 100 Continue\r\nLocation: /interim\r\n\r\n"
                  "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" EMPTY,
                  "", "text/plain" },
                /* Trailers are not header fields. */
                { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Location\r\n\r\n"
                  "0\r\nLocation: /trailer\r\n\r\n",
                  "", "" },
                { "HTTP/1.1 200 OK\r\n: /nameless\r\nLocations: /other\r\n"
                  "Location : /blank\r\n" EMPTY,
                  "", "" },
                { "HTTP/1.1 200 OK\r\nX-Other: 1\r\n Location: /folded\r\n" EMPTY, "", "" },
                { "HTTP/1.1 200 OK\r\nlocation: /a\n" EMPTY, "/a", "" },
        };
        Fixture *fixture = *state;

        start_client(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Result result = { 0 };

                fixture->server.answer = cases[i].answer;
                get(fixture, "/", &result);
                run_until(fixture, &result, 1);
                if (result.result != HTTP_DONE || strcmp(result.location, cases[i].location) != 0 ||
                    strcmp(result.content_type, cases[i].content_type) != 0)
                        fail_msg("case %zu: %d %s, \"%s\" \"%s\"", i, result.result, result.text,
                                 result.location, result.content_type);
        }
}

static void test_body_with_nul(void **state)
{
        static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b";
        Fixture *fixture = *state;
        Result result = { 0 };

        fixture->server.answer = answer;
        fixture->server.answer_size = sizeof(answer) - 1;
        fetch(fixture, "/", &result);
        assert_int_equal(result.body_size, 3);
}

static void test_broken_answers(void **state)
{
        static const struct {
                const char *answer;
                int result;
                const char *words;
        } cases[] = {
                { "", HTTP_E_UNREACHABLE, "without an answer" },
                { "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"half", HTTP_E_UNREACHABLE,
                  "cut short" },
                { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nab",
                  HTTP_E_UNREACHABLE, "" },
                { "SSH-2.0-OpenSSH_9.2\r\n", HTTP_E_BAD_ANSWER, "does not speak HTTP" },
                { "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", HTTP_E_BAD_ANSWER,
                  "more than 1000 bytes" },
        };
        Fixture *fixture = *state;

        fixture->config.max_body_bytes = 1000;
        fixture->server.close_after = true;
        start_client(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Result result = { 0 };

                fixture->server.answer = cases[i].answer;
                get(fixture, "/", &result);
                run_until(fixture, &result, 1);
                if (result.result != cases[i].result || !strstr(result.text, cases[i].words))
                        fail_msg("case %zu: %d, \"%s\"", i, result.result, result.text);
        }
}

/* The answer has no length, and the limit must still hold. */
static void test_flood(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        fixture->server.answer = "HTTP/1.1 200 OK\r\n\r\n";
        fixture->server.flood = 1024 * 1024;
        fixture->server.close_after = true;
        fixture->config.max_body_bytes = 100000;
        fetch(fixture, "/", &result);
        assert_int_equal(result.result, HTTP_E_BAD_ANSWER);
        assert_non_null(strstr(result.text, "more than 100000 bytes"));
}

static void test_hang(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        fixture->server.answer = NULL;
        fixture->config.timeout_usec = 100 * USEC_PER_MSEC;
        fetch(fixture, "/", &result);
        assert_int_equal(result.result, HTTP_E_UNREACHABLE);
        assert_non_null(strstr(result.text, "within 0.1 s"));
}

/* An answer that begins and then stalls ends long before the time-out of the request. */
static void test_stall(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };
        uint64_t begin, end;

        fixture->server.answer = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"half";
        fixture->config.timeout_usec = 60 * USEC_PER_SEC;
        fixture->config.stall_timeout_usec = USEC_PER_SEC;
        start_client(fixture);
        get(fixture, "/", &result);
        sd_event_now(fixture->event, CLOCK_MONOTONIC, &begin);
        run_until(fixture, &result, 1);
        sd_event_now(fixture->event, CLOCK_MONOTONIC, &end);
        assert_int_equal(result.result, HTTP_E_UNREACHABLE);
        assert_true(end - begin < 20 * USEC_PER_SEC);
}

static void test_refused(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        server_stop(&fixture->server);
        fetch(fixture, "/", &result);
        assert_int_equal(result.result, HTTP_E_UNREACHABLE);
        assert_non_null(strstr(result.text, "Cannot connect to http://127.0.0.1:"));
        assert_non_null(strstr(result.text, "Connection refused"));
}

static void test_closed_at_once(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        fixture->server.close_accepted = true;
        fetch(fixture, "/", &result);
        assert_int_equal(result.result, HTTP_E_UNREACHABLE);
}

/* The server closes an idle connection. The next request uses a new one. */
static void test_idle_connection_is_closed(void **state)
{
        Fixture *fixture = *state;
        Result results[2] = { 0 };

        start_client(fixture);
        get(fixture, "/", &results[0]);
        run_until(fixture, results, 1);
        connection_close(&fixture->server.connections[0]);
        get(fixture, "/", &results[1]);
        run_until(fixture, results, 2);
        assert_int_equal(results[1].status, 200);
        assert_int_equal(fixture->server.n_connections, 2);
}

static void test_unix_socket(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        server_stop(&fixture->server);
        listen_unix(fixture);
        fetch(fixture, "/x", &result);
        assert_int_equal(result.status, 200);
        assert_memory_equal(fixture->server.last, "GET /x HTTP/1.1\r\nHost: localhost\r\n", 34);
}

static void test_no_unix_socket(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        snprintf(fixture->endpoint, sizeof(fixture->endpoint), "unix://%s/none", fixture->folder);
        fetch(fixture, "/x", &result);
        assert_int_equal(result.result, HTTP_E_UNREACHABLE);
        assert_non_null(strstr(result.text, fixture->endpoint));
        assert_non_null(strstr(result.text, "the socket does not exist"));
}

static void test_proxy_is_ignored(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        setenv("http_proxy", "http://127.0.0.1:1", 1);
        fetch(fixture, "/", &result);
        unsetenv("http_proxy");
        assert_int_equal(result.status, 200);
}

static void test_bad_requests(void **state)
{
        static const char *const bad_headers[] = { "A: b\r\nX-Injected: 1", NULL };
        static const HttpRequest requests[] = {
                { .method = "GET", .path = "x" },
                { .method = "GET", .path = "/a b" },
                { .method = "GET", .path = "/a\r\nX: y" },
                { .method = "GET", .path = "/\xc3\xb6" },
                { .method = "GET", .path = "/x", .headers = bad_headers },
        };
        Fixture *fixture = *state;

        start_client(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                Error error = ERROR_NULL;

                assert_int_equal(http_client_send(fixture->client, &requests[i], on_done, NULL,
                                                  NULL, &error),
                                 -EINVAL);
                assert_true(error.text[0] != '\0');
        }
}

static void test_bad_configurations(void **state)
{
        Fixture *fixture = *state;
        HttpConfig configs[6];

        for (size_t i = 0; i < ARRAY_SIZE(configs); i++)
                configs[i] = fixture->config;
        configs[0].max_connections = 0;
        configs[1].max_connections = 65;
        configs[2].timeout_usec = 0;
        configs[3].connect_timeout_usec = 0;
        configs[4].keyfile = "/key";
        configs[5].endpoint = "ftp://x";
        for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
                Error error = ERROR_NULL;

                assert_int_equal(
                        http_client_new(&fixture->client, fixture->event, &configs[i], &error),
                        -EINVAL);
                assert_null(fixture->client);
                assert_true(error.text[0] != '\0');
        }
}

TEST_MAIN_WITH(set_up, tear_down, test_get, test_put_and_headers, test_put_without_body,
               test_answers, test_header_fields, test_body_with_nul, test_broken_answers,
               test_flood, test_hang, test_stall, test_refused, test_closed_at_once,
               test_idle_connection_is_closed, test_unix_socket, test_no_unix_socket,
               test_proxy_is_ignored, test_bad_requests, test_bad_configurations)
