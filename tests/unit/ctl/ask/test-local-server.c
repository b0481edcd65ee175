/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/local-server.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define LONG_USEC (60 * USEC_PER_SEC)

/* Opens a socket with a backlog of one connection. */
static int listen_at(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_true(strlen(path) < sizeof(address.sun_path));
        strcpy(address.sun_path, path);
        assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(fd, 1), 0);
        return fd;
}

/* Serves one connection for each answer, and then does nothing. NULL: the process ends. It also
 * ends with the test. */
static void serve(int fd, const char *const answers[])
{
        char request[200];

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; answers && answers[i]; i++) {
                int connection = accept(fd, NULL, NULL);

                if (connection < 0 || read(connection, request, sizeof(request)) <= 0 ||
                    write(connection, answers[i], strlen(answers[i])) < 0)
                        _exit(1);
                close(connection);
        }
        if (answers)
                pause();
        _exit(0);
}

static void end(pid_t pid)
{
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_wait_ends_with_an_answer_or_the_server(void **state)
{
        static const struct {
                const char *const answers[3]; /* the first NULL: the server ends */
                int result;
        } cases[] = {
                { { "HTTP/1.1 200 OK\r\n\r\n" }, 0 },
                { { "HTTP/1.1 500 Error\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n" }, 0 },
                { { "x", "HTTP/1.1 200 OK\r\n\r\n" }, 0 },
                { { NULL }, -ECHILD },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *path = scratch_path(folder, "s");
                _cleanup_close_ int fd = listen_at(path);
                pid_t pid = fork();

                if (pid == 0)
                        serve(fd, cases[i].answers[0] ? cases[i].answers : NULL);
                assert_int_equal(local_server_wait(path, pid, LONG_USEC), cases[i].result);
                if (cases[i].result == -ECHILD)
                        assert_int_equal(waitpid(pid, NULL, 0), -1); /* it was reaped */
                else
                        end(pid);
        }
}

/* The limit counts once, not for each try, and a server without a socket counts as well. */
static void test_wait_ends_at_its_limit(void **state)
{
        static const char *const no_answer[] = { NULL };

        for (int listens = 0; listens < 2; listens++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *path = scratch_path(folder, "s");
                _cleanup_close_ int fd = listens ? listen_at(path) : -EBADF;
                uint64_t began = clock_usec(CLOCK_MONOTONIC), took;
                pid_t pid = fork();

                if (pid == 0)
                        serve(fd, no_answer);
                assert_int_equal(local_server_wait(path, pid, USEC_PER_SEC), -ETIMEDOUT);
                took = clock_usec(CLOCK_MONOTONIC) - began;
                assert_true(took >= USEC_PER_SEC && took < 4 * USEC_PER_SEC);
                end(pid);
        }
}

static void test_no_wait_for_an_impossible_path(void **state)
{
        char path[200] = "";

        memset(path, 'x', sizeof(path) - 1);
        assert_int_equal(local_server_wait(path, getpid(), USEC_PER_SEC), -ENAMETOOLONG);
}

TEST_MAIN(test_wait_ends_with_an_answer_or_the_server, test_wait_ends_at_its_limit,
          test_no_wait_for_an_impossible_path)
