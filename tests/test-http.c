/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The client against a small server on the same loop: it reads one request at a time from each
 * connection and answers as the test has set. */

#include "report/http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/test.h"

#define CONNECTIONS_MAX 16

typedef struct Connection {
        struct Server *server;
        int fd;
        sd_event_source *source;
        char input[8192];
        size_t n_input;
        unsigned n_requests;
} Connection;

typedef struct Server {
        sd_event *event;
        int fd;
        sd_event_source *source;
        Connection connections[CONNECTIONS_MAX];
        size_t n_connections;
        unsigned n_requests, n_held, n_held_max;
        char last[8192]; /* the last request */

        /* How it answers. */
        const char *answer;  /* NULL: not at all */
        size_t answer_size;  /* 0: strlen() */
        bool close_after;    /* the connection, once the answer is sent */
        bool close_accepted; /* at once */
        bool hold;           /* read requests, and answer when test_release() is called */
        size_t n_workers;    /* connections that are served at all; 0: every one */
        uint64_t flood;      /* after the answer, this many bytes of body */
} Server;

typedef struct Result {
        unsigned n_calls;
        int result;
        int status;
        char body[256], text[ERROR_TEXT_MAX], request_id[64], location[64], content_type[64];
        size_t body_size;
        uint64_t retry_after_sec;
} Result;

typedef struct Fixture {
        sd_event *event;
        Server server;
        char endpoint[128];
        char folder[64];
        HttpConfig config;
        HttpClient *client;
} Fixture;

#define OK_ANSWER                                               \
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" \
        "X-Openstack-Request-Id: req-1\r\nContent-Length: 2\r\n\r\n{}"

static void connection_close(Connection *connection)
{
        connection->source = sd_event_source_disable_unref(connection->source);
        if (connection->fd >= 0)
                close(connection->fd);
        connection->fd = -1;
}

static void send_all(Connection *connection, const char *data, size_t n)
{
        while (n > 0) {
                ssize_t k = send(connection->fd, data, n, MSG_NOSIGNAL);

                if (k <= 0)
                        return;
                data += k;
                n -= (size_t)k;
        }
}

static void connection_answer(Connection *connection)
{
        Server *server = connection->server;
        static const char zeros[65536];

        if (server->answer)
                send_all(connection, server->answer,
                         server->answer_size ? server->answer_size : strlen(server->answer));
        for (uint64_t sent = 0; sent < server->flood; sent += sizeof(zeros))
                if (send(connection->fd, zeros, sizeof(zeros), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                        break;
        if (server->close_after)
                connection_close(connection);
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        Connection *connection = userdata;
        Server *server = connection->server;
        ssize_t n;

        n = read(fd, connection->input + connection->n_input,
                 sizeof(connection->input) - 1 - connection->n_input);
        if (n <= 0) {
                connection_close(connection);
                return 0;
        }
        connection->n_input += (size_t)n;
        connection->input[connection->n_input] = '\0';
        if (!strstr(connection->input, "\r\n\r\n"))
                return 0;
        connection->n_requests++;
        server->n_requests++;
        memcpy(server->last, connection->input, connection->n_input + 1);
        connection->n_input = 0;
        if (server->hold) {
                server->n_held++;
                server->n_held_max = MAX(server->n_held, server->n_held_max);
        } else {
                connection_answer(connection);
        }
        return 0;
}

static int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        Server *server = userdata;
        Connection *connection = &server->connections[server->n_connections];

        assert_true(server->n_connections < CONNECTIONS_MAX);
        *connection = (Connection){ .server = server, .fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC) };
        assert_true(connection->fd >= 0);
        server->n_connections++;
        if (server->close_accepted) {
                connection_close(connection);
                return 0;
        }
        if (server->n_workers > 0 && server->n_connections > server->n_workers)
                return 0;
        assert_true(sd_event_add_io(server->event, &connection->source, connection->fd, EPOLLIN,
                                    on_readable, connection) >= 0);
        return 0;
}

static void server_listen(Server *server, const struct sockaddr *address, socklen_t size)
{
        server->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(server->fd >= 0);
        assert_int_equal(bind(server->fd, address, size), 0);
        assert_int_equal(listen(server->fd, 64), 0);
        assert_true(sd_event_add_io(server->event, &server->source, server->fd, EPOLLIN, on_connect,
                                    server) >= 0);
}

static void server_stop(Server *server)
{
        for (size_t i = 0; i < server->n_connections; i++)
                connection_close(&server->connections[i]);
        server->source = sd_event_source_disable_unref(server->source);
        if (server->fd >= 0)
                close(server->fd);
        server->fd = -1;
}

static void listen_tcp(Fixture *fixture)
{
        struct sockaddr_in address = {
                .sin_family = AF_INET,
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        };
        socklen_t size = sizeof(address);

        server_listen(&fixture->server, (struct sockaddr *)&address, size);
        assert_int_equal(getsockname(fixture->server.fd, (struct sockaddr *)&address, &size), 0);
        snprintf(fixture->endpoint, sizeof(fixture->endpoint), "http://127.0.0.1:%u/placement/",
                 ntohs(address.sin_port));
}

static void listen_unix(Fixture *fixture)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/http.sock", fixture->folder);
        server_listen(&fixture->server, (struct sockaddr *)&address, sizeof(address));
        snprintf(fixture->endpoint, sizeof(fixture->endpoint), "unix://%s", address.sun_path);
}

static int set_up(void **state)
{
        Fixture *fixture = calloc(1, sizeof(Fixture));

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/test-http-XXXXXX");
        assert_non_null(mkdtemp(fixture->folder));
        fixture->server = (Server){ .event = fixture->event, .fd = -1, .answer = OK_ANSWER };
        fixture->config = (HttpConfig){
                .endpoint = fixture->endpoint,
                .max_connections = 4,
                .connect_timeout_usec = 2 * USEC_PER_SEC,
                .timeout_usec = 5 * USEC_PER_SEC,
                .user_agent = "test/1.0",
        };
        listen_tcp(fixture);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        Fixture *fixture = *state;
        char path[128];

        http_client_free(fixture->client);
        server_stop(&fixture->server);
        snprintf(path, sizeof(path), "%s/http.sock", fixture->folder);
        unlink(path);
        rmdir(fixture->folder);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static void start_client(Fixture *fixture)
{
        Error error = ERROR_NULL;

        if (http_client_new(&fixture->client, fixture->event, &fixture->config, &error) < 0)
                fail_msg("%s", error.text);
}

static void on_done(int result, const HttpResponse *response, const Error *error, void *userdata)
{
        Result *ret = userdata;

        ret->n_calls++;
        ret->result = result;
        if (result != HTTP_DONE) {
                assert_null(response);
                assert_true(error->text[0] != '\0');
                snprintf(ret->text, sizeof(ret->text), "%s", error->text);
                return;
        }
        ret->status = response->status;
        ret->body_size = response->body_size;
        ret->retry_after_sec = response->retry_after_sec;
        assert_int_equal(response->body[response->body_size], '\0');
        snprintf(ret->body, sizeof(ret->body), "%s", response->body);
        snprintf(ret->request_id, sizeof(ret->request_id), "%s", response->request_id);
        snprintf(ret->location, sizeof(ret->location), "%s", response->location);
        snprintf(ret->content_type, sizeof(ret->content_type), "%s", response->content_type);
}

static HttpTransfer *get(Fixture *fixture, const char *path, Result *result)
{
        HttpTransfer *transfer;

        assert_int_equal(http_client_send(fixture->client,
                                          &(HttpRequest){ .method = "GET", .path = path }, on_done,
                                          result, &transfer, NULL),
                         0);
        assert_int_equal(result->n_calls, 0);
        return transfer;
}

/* Runs the loop until so many results are there. */
static void run_until(Fixture *fixture, Result *results, size_t n)
{
        for (unsigned i = 0; i < 4000; i++) {
                size_t n_done = 0;

                for (size_t j = 0; j < n; j++)
                        n_done += results[j].n_calls > 0;
                if (n_done == n)
                        return;
                assert_true(sd_event_run(fixture->event, 10 * USEC_PER_SEC) >= 0);
        }
        fail_msg("no result");
}

static void run_for(Fixture *fixture, uint64_t usec)
{
        uint64_t now, end;

        sd_event_now(fixture->event, CLOCK_MONOTONIC, &now);
        for (end = now + usec; now < end;) {
                assert_true(sd_event_run(fixture->event, end - now) >= 0);
                sd_event_now(fixture->event, CLOCK_MONOTONIC, &now);
        }
}

static void test_get(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        start_client(fixture);
        get(fixture, "/resource_providers?in_tree=x", &result);
        run_until(fixture, &result, 1);
        assert_int_equal(result.result, HTTP_DONE);
        assert_int_equal(result.status, 200);
        assert_string_equal(result.body, "{}");
        assert_string_equal(result.request_id, "req-1");
        assert_string_equal(result.content_type, "application/json");
        assert_string_equal(result.location, "");
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

/* PUT /traits/X: no body, but a length, and no content type made up. */
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
        /* A redirect was not followed, and one connection did for all. */
        assert_int_equal(fixture->server.n_requests, ARRAY_SIZE(cases));
        assert_int_equal(fixture->server.n_connections, 1);
}

static void test_body_with_nul(void **state)
{
        static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b";
        Fixture *fixture = *state;
        Result result = { 0 };

        fixture->server.answer = answer;
        fixture->server.answer_size = sizeof(answer) - 1;
        start_client(fixture);
        get(fixture, "/", &result);
        run_until(fixture, &result, 1);
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

/* The length is not told: the cap must hold all the same. */
static void test_flood(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        fixture->server.answer = "HTTP/1.1 200 OK\r\n\r\n";
        fixture->server.flood = 1024 * 1024;
        fixture->server.close_after = true;
        fixture->config.max_body_bytes = 100000;
        start_client(fixture);
        get(fixture, "/", &result);
        run_until(fixture, &result, 1);
        assert_int_equal(result.result, HTTP_E_BAD_ANSWER);
        assert_non_null(strstr(result.text, "more than 100000 bytes"));
}

static void test_hang(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        fixture->server.answer = NULL;
        fixture->config.timeout_usec = 100 * USEC_PER_MSEC;
        start_client(fixture);
        get(fixture, "/", &result);
        run_until(fixture, &result, 1);
        assert_int_equal(result.result, HTTP_E_UNREACHABLE);
        assert_non_null(strstr(result.text, "within 0.1 s"));
}

/* An answer that begins and stands still ends long before the time-out of the whole. */
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
        start_client(fixture);
        get(fixture, "/", &result);
        run_until(fixture, &result, 1);
        assert_int_equal(result.result, HTTP_E_UNREACHABLE);
        assert_non_null(strstr(result.text, "Cannot connect to http://127.0.0.1:"));
        assert_non_null(strstr(result.text, "Connection refused"));
}

static void test_closed_at_once(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        fixture->server.close_accepted = true;
        start_client(fixture);
        get(fixture, "/", &result);
        run_until(fixture, &result, 1);
        assert_int_equal(result.result, HTTP_E_UNREACHABLE);
}

/* The server closes a connection that is idle: the next request goes over a new one. */
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
        start_client(fixture);
        get(fixture, "/x", &result);
        run_until(fixture, &result, 1);
        assert_int_equal(result.status, 200);
        assert_memory_equal(fixture->server.last, "GET /x HTTP/1.1\r\nHost: localhost\r\n", 34);
}

static void test_no_unix_socket(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        snprintf(fixture->endpoint, sizeof(fixture->endpoint), "unix://%s/none", fixture->folder);
        start_client(fixture);
        get(fixture, "/x", &result);
        run_until(fixture, &result, 1);
        assert_int_equal(result.result, HTTP_E_UNREACHABLE);
        assert_non_null(strstr(result.text, fixture->endpoint));
        assert_non_null(strstr(result.text, "no such socket"));
}

static void test_limit(void **state)
{
        Fixture *fixture = *state;
        Result results[20] = { 0 };

        fixture->server.hold = true;
        fixture->config.max_connections = 3;
        start_client(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                get(fixture, "/", &results[i]);
        run_for(fixture, 100 * USEC_PER_MSEC);
        assert_int_equal(fixture->server.n_held, 3);
        fixture->server.hold = false;
        for (size_t i = 0; i < fixture->server.n_connections; i++)
                connection_answer(&fixture->server.connections[i]);
        run_until(fixture, results, ARRAY_SIZE(results));
        assert_int_equal(fixture->server.n_requests, ARRAY_SIZE(results));
        assert_int_equal(fixture->server.n_connections, 3);
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                assert_int_equal(results[i].n_calls, 1);
}

/* A server with a worker for each connection, and few of them: what is sent over more connections
 * is never read. Without help it would stand until the time-out. */
static void test_few_workers(void **state)
{
        Fixture *fixture = *state;
        Result results[12] = { 0 };
        uint64_t begin, end;

        fixture->server.n_workers = 2;
        start_client(fixture);
        sd_event_now(fixture->event, CLOCK_MONOTONIC, &begin);
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                get(fixture, "/", &results[i]);
        run_until(fixture, results, ARRAY_SIZE(results));
        sd_event_now(fixture->event, CLOCK_MONOTONIC, &end);
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                assert_int_equal(results[i].status, 200);
        assert_int_equal(fixture->server.n_requests, ARRAY_SIZE(results));
        assert_true(end - begin < 4 * USEC_PER_SEC);
        assert_true(fixture->server.n_connections > 2);
        assert_true(fixture->server.n_connections <= 4);
}

static void put(Fixture *fixture, Result *result)
{
        assert_int_equal(http_client_send(fixture->client,
                                          &(HttpRequest){ .method = "PUT", .path = "/" }, on_done,
                                          result, NULL, NULL),
                         0);
}

/* A write goes over a connection that has proved itself, or waits: it must not be sent twice. */
static void test_writes_take_no_chances(void **state)
{
        Fixture *fixture = *state;
        Result results[8] = { 0 };

        fixture->server.n_workers = 1;
        start_client(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                put(fixture, &results[i]);
        run_until(fixture, results, ARRAY_SIZE(results));
        assert_int_equal(fixture->server.n_requests, ARRAY_SIZE(results));
        assert_int_equal(fixture->server.n_connections, 1);
}

static void test_widen(void **state)
{
        Fixture *fixture = *state;
        Result results[8] = { 0 };

        start_client(fixture);
        put(fixture, &results[0]);
        assert_int_equal(http_client_widen(fixture->client), 3);
        run_until(fixture, results, 1);
        run_for(fixture, 50 * USEC_PER_MSEC);
        assert_int_equal(fixture->server.n_connections, 4);
        assert_memory_equal(fixture->server.last, "GET /placement/ HTTP/1.1\r\n", 26);
        /* Now writes run in parallel. */
        fixture->server.hold = true;
        for (size_t i = 1; i < 6; i++)
                put(fixture, &results[i]);
        run_for(fixture, 50 * USEC_PER_MSEC);
        assert_int_equal(fixture->server.n_held, 4);
        assert_int_equal(http_client_widen(fixture->client), 0);
}

static void test_widen_a_server_with_one_worker(void **state)
{
        Fixture *fixture = *state;
        Result results[3] = { 0 };

        fixture->server.n_workers = 1;
        start_client(fixture);
        put(fixture, &results[0]);
        assert_int_equal(http_client_widen(fixture->client), 3);
        run_until(fixture, results, 1);
        run_for(fixture, 400 * USEC_PER_MSEC);
        put(fixture, &results[1]);
        get(fixture, "/", &results[2]);
        run_until(fixture, results, 3);
        assert_int_equal(http_client_widen(fixture->client), 0);
}

static void test_cancel(void **state)
{
        Fixture *fixture = *state;
        Result results[5] = { 0 };
        HttpTransfer *transfers[5];

        fixture->server.hold = true;
        fixture->config.max_connections = 2;
        start_client(fixture);
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                transfers[i] = get(fixture, "/", &results[i]);
        run_for(fixture, 50 * USEC_PER_MSEC);
        http_transfer_cancel(transfers[0]); /* under way */
        http_transfer_cancel(transfers[3]); /* queued */
        assert_null(http_transfer_cancel(NULL));
        fixture->server.hold = false;
        connection_answer(&fixture->server.connections[1]);
        run_until(fixture, &results[1], 2);
        run_until(fixture, &results[4], 1);
        assert_int_equal(results[0].n_calls, 0);
        assert_int_equal(results[3].n_calls, 0);
}

/* Nobody but the cancelled one was under way. */
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

static void test_take_back(void **state)
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
        for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                get(fixture, "/", &results[i]);
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

static void test_proxy_is_ignored(void **state)
{
        Fixture *fixture = *state;
        Result result = { 0 };

        setenv("http_proxy", "http://127.0.0.1:1", 1);
        start_client(fixture);
        get(fixture, "/", &result);
        run_until(fixture, &result, 1);
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
                TEST(test_get),
                TEST(test_put_and_headers),
                TEST(test_put_without_body),
                TEST(test_answers),
                TEST(test_body_with_nul),
                TEST(test_broken_answers),
                TEST(test_flood),
                TEST(test_hang),
                TEST(test_stall),
                TEST(test_refused),
                TEST(test_closed_at_once),
                TEST(test_idle_connection_is_closed),
                TEST(test_unix_socket),
                TEST(test_no_unix_socket),
                TEST(test_limit),
                TEST(test_few_workers),
                TEST(test_writes_take_no_chances),
                TEST(test_widen),
                TEST(test_widen_a_server_with_one_worker),
                TEST(test_cancel),
                TEST(test_cancel_lets_the_queue_go_on),
                TEST(test_take_back),
                TEST(test_cancel_ended),
                TEST(test_free_with_requests),
                TEST(test_free_inside_callback),
                TEST(test_send_inside_callback),
                TEST(test_proxy_is_ignored),
                TEST(test_bad_requests),
                TEST(test_bad_configurations),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
