/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Starts compute-agent-health and reads its pipe. Its end is the end of the pipe, so no SIGCHLD is
 * needed. The environment variable COMPUTE_AGENT_HEALTH names another program, for tests. The
 * buffer has the size of one message: a full buffer without a newline is an error. Nothing is
 * restarted here; the monitor does that.
 *
 * Tests: tests/unit/agent/health/test-child.c */

#include "agent/health/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>

#include "base/spawn.h"
#include "base/text.h"

#define PROGRAM "compute-agent-health"

struct HealthChild {
        pid_t pid; /* 0: the process was reaped */
        int fd;    /* read end of the pipe */
        int status;
        char bytes[HEALTH_MESSAGE_MAX];
        size_t n_bytes, begin; /* bytes that were read, and where the next line begins */
};

bool health_child_end(HealthChild *child, bool graceful, char *text, size_t size)
{
        if (child->pid > 0 && !graceful)
                (void)kill(child->pid, SIGKILL);
        if (child->pid > 0 && waitpid(child->pid, &child->status, WNOHANG) == 0)
                return false;
        child->pid = 0;
        if (WIFSIGNALED(child->status))
                snprintf(text, size, "signal %d", WTERMSIG(child->status));
        else
                snprintf(text, size, "exit code %d", WEXITSTATUS(child->status));
        return true;
}

HealthChild *health_child_free(HealthChild *child)
{
        char text[32];

        if (!child)
                return NULL;
        for (int i = 0; i < 20 && !health_child_end(child, false, text, sizeof(text)); i++)
                usleep(1000);
        closep(&child->fd);
        free(child);
        return NULL;
}

/* Finds the program: that of the environment, or the one beside this one, or where it was
 * installed. */
static void find_program(char path[static PATH_MAX])
{
        const char *other = getenv("COMPUTE_AGENT_HEALTH");
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
        const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;

        if (other && snprintf(path, PATH_MAX, "%s", other) < PATH_MAX)
                return;
        if (slash &&
            snprintf(path, PATH_MAX, "%.*s/" PROGRAM, (int)(slash - self), self) < PATH_MAX &&
            access(path, X_OK) == 0)
                return;
        snprintf(path, PATH_MAX, "%s/" PROGRAM, LIBEXECDIR);
}

int health_child_start(HealthChild **ret, const char *cursor, int *ret_fd, Error *reterr)
{
        _cleanup_(health_child_freep) HealthChild *child = calloc(1, sizeof(HealthChild));
        _cleanup_free_ char *option = text_format("--cursor=%s", cursor);
        char path[PATH_MAX];
        char *const argv[] = { (char *)(uintptr_t)PROGRAM, cursor[0] ? option : NULL, NULL };
        int pipes[2], r;
        pid_t pid = 0;

        if (!child)
                return error_oom(reterr);
        child->fd = -EBADF;
        if (!option)
                return error_oom(reterr);
        if (pipe2(pipes, O_CLOEXEC) < 0)
                return error_setf(reterr, errno, "pipe: %s", strerror(errno));
        child->fd = pipes[0];
        find_program(path);
        r = fcntl(child->fd, F_SETFL, O_NONBLOCK) < 0
                    ? -errno
                    : spawn(path, argv, pipes[1], -1, false, &pid);
        close(pipes[1]);
        if (r < 0)
                return error_setf(reterr, r, "%s: %s", path, strerror(-r));
        child->pid = pid;
        *ret_fd = child->fd;
        *ret = TAKE_PTR(child);
        return 0;
}

/* Moves the bytes that were not taken to the start of the buffer first, which invalidates the last
 * line. */
int health_child_read(HealthChild *child)
{
        ssize_t n;

        memmove(child->bytes, child->bytes + child->begin, child->n_bytes - child->begin);
        child->n_bytes -= child->begin;
        child->begin = 0;
        if (child->n_bytes == sizeof(child->bytes))
                return memchr(child->bytes, '\n', child->n_bytes) ? 1 : -EBADMSG;
        n = read(child->fd, child->bytes + child->n_bytes, sizeof(child->bytes) - child->n_bytes);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0)
                return -EPIPE;
        child->n_bytes += (size_t)n;
        return 1;
}

const char *health_child_take(HealthChild *child, size_t *ret_n)
{
        const char *begin = child->bytes + child->begin;
        const char *end = memchr(begin, '\n', child->n_bytes - child->begin);

        if (!end)
                return NULL;
        *ret_n = (size_t)(end - begin);
        child->begin += *ret_n + 1;
        return begin;
}
