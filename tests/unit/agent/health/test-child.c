/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/child.h"

#include <poll.h>

#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

/* Starts a script in the place of the helper. */
static HealthChild *start(const char *folder, const char *script, int *ret_fd)
{
        _cleanup_free_ char *path = scratch_path(folder, "helper");
        HealthChild *child = NULL;
        Error error = ERROR_NULL;

        scratch_write(folder, "helper", script);
        scratch_chmod(folder, "helper", 0755);
        setenv("COMPUTE_AGENT_HEALTH", path, 1);
        if (health_child_start(&child, "s=1", ret_fd, &error) < 0)
                fail_msg("%s", error.text);
        return child;
}

/* Reads until there is a line. Returns NULL at the end of the pipe. */
static const char *next(HealthChild *child, int pipe_fd, size_t *ret_n)
{
        for (;;) {
                struct pollfd fd = { .fd = pipe_fd, .events = POLLIN };
                const char *line = health_child_take(child, ret_n);

                if (line)
                        return line;
                assert_int_equal(poll(&fd, 1, 10000), 1);
                if (health_child_read(child) < 0)
                        return NULL;
        }
}

static void wait_end(HealthChild *child, bool graceful, const char *expected)
{
        char text[32] = "";

        for (int i = 0; i < 10000 && !health_child_end(child, graceful, text, sizeof(text)); i++)
                usleep(1000);
        assert_string_equal(text, expected);
}

static void test_lines(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        int pipe_fd;
        _cleanup_(health_child_freep) HealthChild *child = start(
                folder, "#!/bin/sh\nprintf '%s\\nb' \"$1\"; sleep 0.1; echo c; exit 3\n", &pipe_fd);
        const char *line;
        size_t n;

        line = next(child, pipe_fd, &n);
        assert_int_equal(n, strlen("--cursor=s=1"));
        assert_memory_equal(line, "--cursor=s=1", n);
        line = next(child, pipe_fd, &n);
        assert_int_equal(n, 2);
        assert_memory_equal(line, "bc", n);
        assert_null(next(child, pipe_fd, &n));
        wait_end(child, true, "exit code 3");
}

static void test_a_line_that_is_too_long(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        int pipe_fd;
        _cleanup_(health_child_freep) HealthChild *child =
                start(folder, "#!/bin/sh\nexec cat /dev/zero\n", &pipe_fd);
        struct pollfd fd = { .fd = pipe_fd, .events = POLLIN };
        int r = 1;

        for (int i = 0; i < 100 && r >= 0; i++) {
                assert_int_equal(poll(&fd, 1, 10000), 1);
                r = health_child_read(child);
        }
        assert_int_equal(r, -EBADMSG);
        wait_end(child, false, "signal 9");
}

static void test_a_program_that_is_missing(void **state)
{
        HealthChild *child = NULL;
        Error error = ERROR_NULL;
        int fd;

        setenv("COMPUTE_AGENT_HEALTH", "/nonexistent/helper", 1);
        assert_int_equal(health_child_start(&child, "", &fd, &error), -ENOENT);
        assert_string_equal(error.text, "/nonexistent/helper: No such file or directory");
}

TEST_MAIN(test_lines, test_a_line_that_is_too_long, test_a_program_that_is_missing)
