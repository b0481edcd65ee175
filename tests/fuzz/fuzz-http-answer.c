/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The whole path from a socket: a Keystone and a Placement with arbitrary answers to the real
 * session, over loopback. The input is sent as it is, with answers separated by a line "====". Each
 * connection gets the next answer, and the last one is repeated. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "report/session/session.h"
#include "tests/fuzz/fuzz.h"

#define PASSWORD     "secret-password"
#define SEPARATOR    "\n====\n"
#define PATIENCE     (50 * USEC_PER_MSEC)
#define LONGEST      (250 * USEC_PER_MSEC) /* a request that waits for its next attempt is given up */
#define ANSWERS_MAX  8
#define REQUESTS_MAX 3

typedef struct World {
        sd_event *event;
        const char *answers[ANSWERS_MAX];
        size_t sizes[ANSWERS_MAX], n_answers, n_accepted, n_done;
        bool tells_password;
} World;

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        World *world = userdata;
        size_t i = MIN(world->n_accepted++, world->n_answers - 1);
        char request[16384];

        if (read(fd, request, sizeof(request)) > 0)
                (void)send(fd, world->answers[i], world->sizes[i], MSG_NOSIGNAL);
        sd_event_source_disable_unref(source);
        close(fd);
        return 0;
}

static int on_connection(sd_event_source *source, int listener, uint32_t events, void *userdata)
{
        World *world = userdata;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        sd_event_source *input;

        if (fd >= 0 && sd_event_add_io(world->event, &input, fd, EPOLLIN, on_input, world) < 0)
                close(fd);
        return 0;
}

static int listen_anywhere(char endpoint[static 64])
{
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socklen_t size = sizeof(address);

        assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 64) == 0);
        assert(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
        snprintf(endpoint, 64, "http://127.0.0.1:%u", ntohs(address.sin_port));
        return fd;
}

static void split(const char *text, World *world)
{
        while (world->n_answers < ANSWERS_MAX) {
                const char *end = strstr(text, SEPARATOR);
                size_t i = world->n_answers++;

                world->answers[i] = text;
                world->sizes[i] = end ? (size_t)(end - text) : strlen(text);
                if (!end)
                        return;
                text = end + strlen(SEPARATOR);
        }
}

static void on_done(int result, const SessionAnswer *answer, const Error *error, void *userdata)
{
        World *world = userdata;

        assert(result <= 0 || error->text[0] != '\0');
        /* The answer itself can contain the password, and is quoted. */
        assert(world->tells_password || !strstr(error->text, PASSWORD));
        world->n_done++;
}

static void talk(World *world, char *endpoint)
{
        const KeystoneConfig keystone = { .auth_url = endpoint,
                                          .username = (char *)"agent",
                                          .user_domain_id = (char *)"default",
                                          .password = (char *)PASSWORD,
                                          .project_name = (char *)"service",
                                          .project_domain_id = (char *)"default" };
        const AuthConfig auth_config = { .kind = REPORTER_AUTH_PASSWORD, .keystone = &keystone };
        const HttpConfig http = { .endpoint = endpoint,
                                  .max_connections = 2,
                                  .max_body_bytes = 1024 * 1024,
                                  .connect_timeout_usec = PATIENCE,
                                  .timeout_usec = PATIENCE,
                                  .stall_timeout_usec = PATIENCE };
        Session *session;
        uint64_t begin;

        assert(session_new(&session, world->event, &http, &auth_config, NOVA_NONE, NULL) == 0);
        for (size_t i = 0; i < REQUESTS_MAX; i++)
                assert(session_send(session, placement_request("GET", "/x", ""), on_done, world,
                                    NULL, NULL) == 0);
        for (begin = clock_usec(CLOCK_MONOTONIC);
             world->n_done < REQUESTS_MAX && clock_usec(CLOCK_MONOTONIC) < begin + LONGEST;)
                assert(sd_event_run(world->event, PATIENCE) >= 0);
        session_free(session);
}

void fuzz_text(const char *text)
{
        World world = { .tells_password = strstr(text, PASSWORD) };
        char endpoint[64];
        sd_event_source *source;
        int listener = listen_anywhere(endpoint);

        log_set_level(LOG_EMERG);
        split(text, &world);
        assert(sd_event_new(&world.event) >= 0);
        assert(sd_event_add_io(world.event, &source, listener, EPOLLIN, on_connection, &world) >=
               0);
        talk(&world, endpoint);
        /* Connections without an answer. */
        while (sd_event_run(world.event, 0) > 0)
                ;
        sd_event_source_disable_unref(source);
        sd_event_unref(world.event);
        close(listener);
}
