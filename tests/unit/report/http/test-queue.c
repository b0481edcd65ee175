/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Several requests at a time: how many are under way, the end of those that queue, and the times at
 * which a request can be cancelled or freed. */

#include "tests/fixtures/http.h"

static void put(Fixture *fixture, Result *result)
{
        assert_int_equal(http_client_send(fixture->client,
                                          &(HttpRequest){ .method = "PUT", .path = "/" }, on_done,
                                          result, NULL, NULL),
                         0);
}

static void get_all(Fixture *fixture, Result *results, size_t n)
{
        for (size_t i = 0; i < n; i++)
                get(fixture, "/", &results[i]);
}

static void answer_all(Fixture *fixture)
{
        fixture->server.hold = false;
        for (size_t i = 0; i < fixture->server.n_connections; i++)
                connection_answer(&fixture->server.connections[i]);
}

static bool all_ended(const Result *results, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (results[i].n_calls == 0)
                        return false;
        return true;
}

/* Starts the client again. The server forgets its connections. */
static void restart_client(Fixture *fixture)
{
        Server *server = &fixture->server;

        fixture->client = http_client_free(fixture->client);
        for (size_t i = 0; i < server->n_connections; i++)
                connection_close(&server->connections[i]);
        server->n_connections = 0;
        start_client(fixture);
}

static size_t count_open(const Server *server)
{
        size_t n = 0;

        for (size_t i = 0; i < server->n_connections; i++)
                n += server->connections[i].fd >= 0;
        return n;
}

/* Answers in turns of 5 ms, so that more requests at a time get more answers per second, until the
 * highest limit is in use. On a busy machine the client can measure no gain, and then keeps its
 * limit for a minute. A new client measures again. */
static void warm_up(Fixture *fixture)
{
        Server *server = &fixture->server;
        size_t max = fixture->config.max_connections;

        for (int round = 0; round < 20 && server->n_connections < max; round++) {
                Result results[60] = { 0 };

                if (round > 0)
                        restart_client(fixture);
                server->hold = true;
                get_all(fixture, results, ARRAY_SIZE(results));
                while (server->n_connections < max && !all_ended(results, ARRAY_SIZE(results))) {
                        run_for(fixture, 5 * USEC_PER_MSEC);
                        assert_true(count_open(server) <= max);
                        for (size_t i = 0; i < server->n_connections; i++)
                                connection_answer(&server->connections[i]);
                }
                server->hold = false;
                run_until(fixture, results, ARRAY_SIZE(results));
        }
        /* A connection can be given back and made again. */
        assert_true(server->n_connections >= max);
        server->n_requests = server->n_held = 0;
}

static void test_limit(void **state)
{
        Fixture *fixture = *state;
        Result results[20] = { 0 };

        fixture->config.max_connections = 3;
        start_client(fixture);
        warm_up(fixture);
        fixture->server.hold = true;
        get_all(fixture, results, ARRAY_SIZE(results));
        run_for(fixture, 100 * USEC_PER_MSEC);
        assert_in_range(fixture->server.n_held, 1, 3);
        answer_all(fixture);
        run_until(fixture, results, ARRAY_SIZE(results));
        assert_int_equal(fixture->server.n_requests, ARRAY_SIZE(results));
        assert_in_range(count_open(&fixture->server), 1, 3);
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                assert_int_equal(results[i].n_calls, 1);
}

/* A server with few workers, one for each connection, does not read a request on a further
 * connection before another one ends. Without help the request would stall until the time-out.
 * Reads and writes succeed, and none is sent twice. */
static void test_few_workers(void **state)
{
        for (size_t n_workers = 1; n_workers <= 3; n_workers++)
                for (int writes = 0; writes < 2; writes++) {
                        Result results[12] = { 0 };
                        Fixture *fixture;
                        uint64_t begin, end;
                        void *inner;

                        assert_int_equal(set_up(&inner), 0);
                        fixture = inner;
                        fixture->server.n_workers = n_workers;
                        start_client(fixture);
                        sd_event_now(fixture->event, CLOCK_MONOTONIC, &begin);
                        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                                if (writes)
                                        put(fixture, &results[i]);
                                else
                                        get(fixture, "/", &results[i]);
                        run_until(fixture, results, ARRAY_SIZE(results));
                        sd_event_now(fixture->event, CLOCK_MONOTONIC, &end);
                        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                                assert_int_equal(results[i].status, 200);
                        assert_int_equal(fixture->server.n_requests, ARRAY_SIZE(results));
                        assert_true(end - begin < 4 * USEC_PER_SEC);
                        assert_true(count_open(&fixture->server) <= n_workers);
                        tear_down(&inner);
                }
}

/* The server had many workers and restarts with one. */
static void test_fewer_workers_than_before(void **state)
{
        Fixture *fixture = *state;
        Result results[12] = { 0 };

        fixture->config.timeout_usec = 3 * USEC_PER_SEC;
        start_client(fixture);
        warm_up(fixture);
        assert_in_range(count_open(&fixture->server), 2, 4);
        for (size_t i = 0; i < fixture->server.n_connections; i++)
                connection_close(&fixture->server.connections[i]);
        fixture->server.n_workers = 1;
        get_all(fixture, results, ARRAY_SIZE(results));
        run_until(fixture, results, ARRAY_SIZE(results));
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                assert_int_equal(results[i].status, 200);
        assert_int_equal(count_open(&fixture->server), 1);
}

static void test_cancel(void **state)
{
        Fixture *fixture = *state;
        Result results[5] = { 0 };
        HttpTransfer *transfers[5];

        fixture->config.max_connections = 2;
        start_client(fixture);
        warm_up(fixture);
        fixture->server.hold = true;
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                transfers[i] = get(fixture, "/", &results[i]);
        run_for(fixture, 50 * USEC_PER_MSEC);
        http_transfer_cancel(transfers[0]); /* under way */
        http_transfer_cancel(transfers[3]); /* queued */
        assert_null(http_transfer_cancel(NULL));
        answer_all(fixture);
        run_until(fixture, &results[1], 2);
        run_until(fixture, &results[4], 1);
        assert_int_equal(results[0].n_calls, 0);
        assert_int_equal(results[3].n_calls, 0);
}

/* Only the cancelled transfer was under way. */
static void test_cancel_lets_the_queue_go_on(void **state)
{
        Fixture *fixture = *state;
        Result results[2] = { 0 };
        HttpTransfer *transfer;

        fixture->server.answer = NULL;
        fixture->config.max_connections = 1;
        start_client(fixture);
        transfer = get(fixture, "/", &results[0]);
        get(fixture, "/", &results[1]);
        run_for(fixture, 50 * USEC_PER_MSEC);
        fixture->server.answer = OK_ANSWER;
        http_transfer_cancel(transfer);
        run_until(fixture, &results[1], 1);
        assert_int_equal(results[1].status, 200);
        assert_int_equal(results[0].n_calls, 0);
}

/* Listens on a port whose queue is full, so that a client waits for its connection. Returns the
 * sockets to close. */
static void listen_full(int fds[2], char *endpoint, size_t size)
{
        struct sockaddr_in address = {
                .sin_family = AF_INET,
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        };
        socklen_t n = sizeof(address);

        for (size_t i = 0; i < 2; i++) {
                fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                assert_true(fds[i] >= 0);
        }
        assert_int_equal(bind(fds[0], (struct sockaddr *)&address, n), 0);
        assert_int_equal(listen(fds[0], 0), 0);
        assert_int_equal(getsockname(fds[0], (struct sockaddr *)&address, &n), 0);
        assert_int_equal(connect(fds[1], (struct sockaddr *)&address, n), 0);
        snprintf(endpoint, size, "http://127.0.0.1:%u", ntohs(address.sin_port));
}

/* Curl closes a connection that was never complete without a notice, and the next connection gets
 * its number. */
static void test_cancel_while_connecting(void **state)
{
        Fixture *fixture = *state;
        Result results[2] = { 0 };
        HttpTransfer *transfer;
        char endpoint[64];
        int fds[2];

        listen_full(fds, endpoint, sizeof(endpoint));
        start_client(fixture);
        assert_int_equal(http_client_set_endpoint(fixture->client, endpoint, NULL), 0);
        transfer = get(fixture, "/", &results[0]);
        run_for(fixture, 50 * USEC_PER_MSEC);
        http_transfer_cancel(transfer);
        assert_int_equal(http_client_set_endpoint(fixture->client, fixture->endpoint, NULL), 0);
        get(fixture, "/", &results[1]);
        run_until(fixture, &results[1], 1);
        assert_int_equal(results[1].status, 200);
        assert_int_equal(results[0].n_calls, 0);
        for (size_t i = 0; i < 2; i++)
                close(fds[i]);
}

/* Queued requests are sent to the new endpoint. */
static void test_a_new_endpoint(void **state)
{
        Fixture *fixture = *state;
        Result results[2] = { 0 };
        char endpoint[sizeof(fixture->endpoint)];

        fixture->server.hold = true;
        fixture->config.max_connections = 1;
        start_client(fixture);
        get_all(fixture, results, ARRAY_SIZE(results));
        run_for(fixture, 50 * USEC_PER_MSEC);
        snprintf(endpoint, sizeof(endpoint), "%.*s/moved",
                 (int)(strstr(fixture->endpoint, "/placement") - fixture->endpoint),
                 fixture->endpoint);
        assert_int_equal(http_client_set_endpoint(fixture->client, endpoint, NULL), 0);
        fixture->server.hold = false;
        connection_answer(&fixture->server.connections[0]);
        run_until(fixture, results, ARRAY_SIZE(results));
        assert_memory_equal(fixture->server.last, "GET /moved/ HTTP/1.1\r\n", 22);
        assert_int_equal(fixture->server.n_requests, 2);
}

/* The handle of a request under way has the socket of the old endpoint. */
static void test_a_new_endpoint_without_the_old_socket(void **state)
{
        Fixture *fixture = *state;
        Result results[3] = { 0 };

        server_stop(&fixture->server);
        listen_unix(fixture);
        fixture->server.hold = true;
        fixture->config.max_connections = 1;
        start_client(fixture);
        get_all(fixture, results, ARRAY_SIZE(results));
        run_for(fixture, 50 * USEC_PER_MSEC);
        assert_int_equal(http_client_set_endpoint(fixture->client, "http://127.0.0.1:1", NULL), 0);
        answer_all(fixture);
        run_until(fixture, results, ARRAY_SIZE(results));
        assert_int_equal(results[0].status, 200);
        for (size_t i = 1; i < ARRAY_SIZE(results); i++)
                assert_int_equal(results[i].result, HTTP_E_UNREACHABLE);
        assert_int_equal(fixture->server.n_requests, 1);
}

/* An error names the endpoint of its request, and not a later one. */
static void test_an_error_after_a_new_endpoint(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        fixture->server.hold = true;
        start_client(fixture);
        get(fixture, "/", &result);
        run_for(fixture, 50 * USEC_PER_MSEC);
        assert_int_equal(http_client_set_endpoint(fixture->client, "http://127.0.0.1:1", NULL), 0);
        assert_int_equal(http_client_set_endpoint(fixture->client, "http://127.0.0.1:2", NULL), 0);
        server_stop(&fixture->server);
        run_until(fixture, &result, 1);
        assert_non_null(strstr(result.text, fixture->endpoint));
}

static void test_cancelled_requests(void **state)
{
        Fixture *fixture = *state;
        Result results[3] = { 0 };
        HttpTransfer *transfers[3];

        fixture->server.hold = true;
        fixture->config.max_connections = 1;
        start_client(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                transfers[i] = get(fixture, "/", &results[i]);
        assert_false(http_transfer_take_back(transfers[0]));
        assert_true(http_transfer_take_back(transfers[1]));
        run_for(fixture, 50 * USEC_PER_MSEC);
        fixture->server.hold = false;
        connection_answer(&fixture->server.connections[0]);
        run_until(fixture, &results[2], 1);
        assert_int_equal(results[0].n_calls, 1);
        assert_int_equal(results[1].n_calls, 0);
        assert_int_equal(fixture->server.n_requests, 2);
}

static void on_done_cancel(int result, const HttpResponse *response, const Error *error,
                           void *userdata)
{
        HttpTransfer **other = userdata;

        *other = http_transfer_cancel(*other);
}

/* Cancelled between its end and its callback: both fail in one wake-up of the loop. */
static void test_cancel_ended(void **state)
{
        Fixture *fixture = *state;
        HttpTransfer *transfer;
        Result result = { 0 };

        server_stop(&fixture->server);
        snprintf(fixture->endpoint, sizeof(fixture->endpoint), "unix:///nowhere/at/all");
        start_client(fixture);
        assert_int_equal(http_client_send(fixture->client,
                                          &(HttpRequest){ .method = "GET", .path = "/" },
                                          on_done_cancel, &transfer, NULL, NULL),
                         0);
        transfer = get(fixture, "/", &result);
        run_for(fixture, 50 * USEC_PER_MSEC);
        assert_null(transfer);
        assert_int_equal(result.n_calls, 0);
}

static void test_free_with_requests(void **state)
{
        Fixture *fixture = *state;
        Result results[10] = { 0 };

        fixture->server.hold = true;
        start_client(fixture);
        get_all(fixture, results, ARRAY_SIZE(results));
        run_for(fixture, 50 * USEC_PER_MSEC);
        fixture->client = http_client_free(fixture->client);
        run_for(fixture, 50 * USEC_PER_MSEC);
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                assert_int_equal(results[i].n_calls, 0);
}

static void on_done_free(int result, const HttpResponse *response, const Error *error,
                         void *userdata)
{
        Fixture *fixture = userdata;

        fixture->client = http_client_free(fixture->client);
}

static void test_free_inside_callback(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        start_client(fixture);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(http_client_send(fixture->client,
                                                  &(HttpRequest){ .method = "GET", .path = "/" },
                                                  on_done_free, fixture, NULL, NULL),
                                 0);
        get(fixture, "/", &result);
        while (fixture->client)
                assert_true(sd_event_run(fixture->event, USEC_PER_SEC) >= 0);
        run_for(fixture, 20 * USEC_PER_MSEC);
        assert_int_equal(result.n_calls, 0);
}

static void on_done_again(int result, const HttpResponse *response, const Error *error,
                          void *userdata)
{
        struct {
                Fixture *fixture;
                Result result;
        } *again = userdata;

        get(again->fixture, "/again", &again->result);
}

static void test_send_inside_callback(void **state)
{
        Fixture *fixture = *state;
        struct {
                Fixture *fixture;
                Result result;
        } again = { .fixture = fixture };

        start_client(fixture);
        assert_int_equal(http_client_send(fixture->client,
                                          &(HttpRequest){ .method = "GET", .path = "/" },
                                          on_done_again, &again, NULL, NULL),
                         0);
        run_until(fixture, &again.result, 1);
        assert_int_equal(fixture->server.n_requests, 2);
}

TEST_MAIN_WITH(set_up, tear_down, test_limit, test_few_workers, test_fewer_workers_than_before,
               test_cancel, test_cancel_lets_the_queue_go_on, test_cancel_while_connecting,
               test_cancelled_requests, test_a_new_endpoint,
               test_a_new_endpoint_without_the_old_socket, test_an_error_after_a_new_endpoint,
               test_cancel_ended, test_free_with_requests, test_free_inside_callback,
               test_send_inside_callback)
