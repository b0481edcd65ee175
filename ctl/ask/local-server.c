/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Asks a local server again and again until it answers. Each try has a connection of its own, which
 * never blocks: a full backlog fails at once, and the answer is waited for with poll(). So only one
 * clock limits the whole wait. uwsgi accepts a connection before it has loaded the application, and
 * answers only after that. */

#include "ctl/ask/local-server.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

#define ANSWER_USEC (5 * USEC_PER_SEC)   /* longest wait for one answer */
#define PAUSE_NSEC  (100L * 1000 * 1000) /* pause between two tries */

/* Connects to the socket and sends the request. Returns a descriptor or -errno. path must fit into
 * an address. */
static int send_request(const char *path)
{
        static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n"
                                      "Connection: close\r\n\r\n";
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        strcpy(address.sun_path, path);
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
            send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* Checks whether the server answers with status 200 within this time. */
static bool answers(const char *path, uint64_t limit_usec)
{
        static const char expected[] = "HTTP/1.1 200 ";
        char answer[sizeof(expected)] = "";
        _cleanup_close_ int fd = send_request(path);
        struct pollfd input = { .fd = fd, .events = POLLIN };

        return fd >= 0 && poll(&input, 1, (int)(limit_usec / USEC_PER_MSEC)) > 0 &&
               recv(fd, answer, strlen(expected), 0) > 0 && strcmp(answer, expected) == 0;
}

int local_server_wait(const char *socket_path, pid_t pid, uint64_t limit_usec)
{
        const struct timespec pause = { .tv_nsec = PAUSE_NSEC };
        uint64_t end_usec = clock_usec(CLOCK_MONOTONIC) + limit_usec, now_usec;

        if (strlen(socket_path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
                return -ENAMETOOLONG;
        while ((now_usec = clock_usec(CLOCK_MONOTONIC)) < end_usec) {
                if (answers(socket_path, MIN(end_usec - now_usec, ANSWER_USEC)))
                        return 0;
                if (waitpid(pid, NULL, WNOHANG) == pid)
                        return -ECHILD;
                (void)nanosleep(&pause, NULL);
        }
        return -ETIMEDOUT;
}
