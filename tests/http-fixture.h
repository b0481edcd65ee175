/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A small server on the loop of the client that is tested: it reads one request at a time from each
 * connection and answers as the test has set. */

#include "report/http/http.h"

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

static inline void connection_close(Connection *connection)
{
        connection->source = sd_event_source_disable_unref(connection->source);
        if (connection->fd >= 0)
                close(connection->fd);
        connection->fd = -1;
}

static inline void send_all(Connection *connection, const char *data, size_t n)
{
        while (n > 0) {
                ssize_t k = send(connection->fd, data, n, MSG_NOSIGNAL);

                if (k <= 0)
                        return;
                data += k;
                n -= (size_t)k;
        }
}

static inline void connection_answer(Connection *connection)
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

static inline void server_serve(Server *server);

static inline int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        Connection *connection = userdata;
        Server *server = connection->server;
        ssize_t n;

        n = read(fd, connection->input + connection->n_input,
                 sizeof(connection->input) - 1 - connection->n_input);
        if (n <= 0) {
                connection_close(connection);
                server_serve(server);
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

/* Each worker has a connection for as long as it is open; the oldest of those that wait is next. */
static inline void server_serve(Server *server)
{
        size_t n_served = 0;

        for (size_t i = 0; i < server->n_connections; i++)
                n_served += server->connections[i].source != NULL;
        for (size_t i = 0; i < server->n_connections; i++) {
                Connection *connection = &server->connections[i];

                if (connection->fd < 0 || connection->source ||
                    (server->n_workers > 0 && n_served >= server->n_workers))
                        continue;
                assert_true(sd_event_add_io(server->event, &connection->source, connection->fd,
                                            EPOLLIN, on_readable, connection) >= 0);
                n_served++;
        }
}

static inline int on_connect(sd_event_source *source, int fd, uint32_t revents, void *userdata)
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
        server_serve(server);
        return 0;
}

static inline void server_listen(Server *server, const struct sockaddr *address, socklen_t size)
{
        server->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(server->fd >= 0);
        assert_int_equal(bind(server->fd, address, size), 0);
        assert_int_equal(listen(server->fd, 64), 0);
        assert_true(sd_event_add_io(server->event, &server->source, server->fd, EPOLLIN, on_connect,
                                    server) >= 0);
}

static inline void server_stop(Server *server)
{
        for (size_t i = 0; i < server->n_connections; i++)
                connection_close(&server->connections[i]);
        server->source = sd_event_source_disable_unref(server->source);
        if (server->fd >= 0)
                close(server->fd);
        server->fd = -1;
}

static inline void listen_tcp(Fixture *fixture)
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

static inline void listen_unix(Fixture *fixture)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/http.sock", fixture->folder);
        server_listen(&fixture->server, (struct sockaddr *)&address, sizeof(address));
        snprintf(fixture->endpoint, sizeof(fixture->endpoint), "unix://%s", address.sun_path);
}

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
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

static inline void start_client(Fixture *fixture)
{
        Error error = ERROR_NULL;

        if (http_client_new(&fixture->client, fixture->event, &fixture->config, &error) < 0)
                fail_msg("%s", error.text);
}

static inline void on_done(int result, const HttpResponse *response, const Error *error,
                           void *userdata)
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

static inline HttpTransfer *get(Fixture *fixture, const char *path, Result *result)
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
static inline void run_until(Fixture *fixture, Result *results, size_t n)
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

static inline void run_for(Fixture *fixture, uint64_t usec)
{
        uint64_t now, end;

        sd_event_now(fixture->event, CLOCK_MONOTONIC, &now);
        for (end = now + usec; now < end;) {
                assert_true(sd_event_run(fixture->event, end - now) >= 0);
                sd_event_now(fixture->event, CLOCK_MONOTONIC, &now);
        }
}
