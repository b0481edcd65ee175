/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs child processes: several pieces of work in parallel, and computectl-helper.
 *
 * The output of a child goes to files in memory, so a child can print without a reader. A pidfd
 * reports the end of the child. One loop starts children up to the limit and waits with poll(2) for
 * the next end or time limit. A child that reaches its time limit is killed. All children have
 * ended when ctl_children_run() returns, also after an error. Limit: 64 MiB for each file; more
 * output is cut. ctl_helper_ask() runs computectl-helper as such a child and reads the document
 * that it prints.
 *
 * Tests: tests/unit/ctl/ask/test-children.c tests/unit/ctl/ask/test-helper.c */

#include "ctl/ask/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/print/json.h"
#include "drivers/host/snapshot.h"
#include "formats/format-names.h"

#define OUTPUT_MAX (64U << 20) /* bytes, of each file */

enum { OUTPUT, ERRORS, PIDFD }; /* indexes of CtlChild.fds */

static void close_fds(CtlChild *child)
{
        for (size_t i = 0; i < ARRAY_SIZE(child->fds); i++)
                if (child->fds[i] >= 0)
                        close(TAKE_FD(child->fds[i]));
}

void ctl_children_done(CtlChild *children, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                free(children[i].output);
                free(children[i].errors);
                children[i].output = children[i].errors = NULL;
        }
}

/* Does the work of the child in the forked process. Returns the exit code of the child: that of
 * run(), or 127 if its files or their limit could not be set. */
static int be_child(const CtlChild *child, int (*run)(void *data))
{
        const struct rlimit limit = { OUTPUT_MAX, OUTPUT_MAX };
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC), code;

        (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails with EFBIG */
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
            dup2(child->fds[OUTPUT], STDOUT_FILENO) < 0 ||
            dup2(child->fds[ERRORS], STDERR_FILENO) < 0 || setrlimit(RLIMIT_FSIZE, &limit) < 0)
                return 127;
        code = run(child->data);
        fflush(NULL);
        return code;
}

/* Starts a child. Its file descriptors are closed by collect() or stop(), also if this fails. The
 * stream buffers are flushed first, because a fork copies them. */
static int start(CtlChild *child, int (*run)(void *data), uint64_t timeout_usec)
{
        child->fds[OUTPUT] = memfd_create("output", MFD_CLOEXEC);
        child->fds[ERRORS] = memfd_create("errors", MFD_CLOEXEC);
        if (child->fds[OUTPUT] < 0 || child->fds[ERRORS] < 0)
                return -errno;
        fflush(NULL);
        child->pid = fork();
        if (child->pid < 0) {
                child->pid = 0;
                return -errno;
        }
        if (child->pid == 0)
                _exit(be_child(child, run));
        child->end_usec = timeout_usec ? clock_usec(CLOCK_MONOTONIC) + timeout_usec : UINT64_MAX;
        child->fds[PIDFD] = (int)syscall(SYS_pidfd_open, child->pid, 0);
        return child->fds[PIDFD] < 0 ? -errno : 0;
}

/* Reads a file of the child from its start. A failed read cuts the text. Returns NULL if the size
 * is unknown or memory ran out. */
static char *read_file(int fd)
{
        off_t size = lseek(fd, 0, SEEK_END);
        char *text = size < 0 ? NULL : calloc(1, (size_t)size + 1);
        size_t n = 0;

        while (text && n < (size_t)size) {
                ssize_t m = pread(fd, text + n, (size_t)size - n, (off_t)n);

                if (m <= 0)
                        break;
                n += (size_t)m;
        }
        return text;
}

/* Waits for a child that has ended or was killed, and reads its output. */
static int collect(CtlChild *child)
{
        int status = 0;

        while (waitpid(child->pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        child->pid = 0;
        child->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        child->output = read_file(child->fds[OUTPUT]);
        child->errors = read_file(child->fds[ERRORS]);
        close_fds(child);
        return child->output && child->errors ? 0 : -ENOMEM;
}

/* Kills a child that runs, and releases it after an error. */
static void stop(CtlChild *child)
{
        if (child->pid > 0) {
                (void)kill(child->pid, SIGKILL);
                (void)collect(child);
        }
        close_fds(child);
}

/* Waits until a child ends or reaches its time limit, and collects all children that did. Returns
 * the number of collected children, or a negative errno. Returns 0 if a signal ended the wait; the
 * next call then collects the ended children. polled: space for n items. Collected children get a
 * negative descriptor, which poll(2) ignores. */
static int collect_some(CtlChild *children, size_t n, struct pollfd *polled)
{
        uint64_t end_usec = UINT64_MAX, now_usec = clock_usec(CLOCK_MONOTONIC);
        int n_collected = 0, timeout, r = 0;

        for (size_t i = 0; i < n; i++) {
                polled[i] =
                        (struct pollfd){ .fd = children[i].pid > 0 ? children[i].fds[PIDFD] : -1,
                                         .events = POLLIN };
                if (children[i].pid > 0)
                        end_usec = MIN(end_usec, children[i].end_usec);
        }
        timeout = end_usec == UINT64_MAX ? -1
                  : end_usec <= now_usec ? 0
                                         : (int)MIN((end_usec - now_usec) / USEC_PER_MSEC + 1,
                                                    (uint64_t)INT32_MAX);
        if (poll(polled, (nfds_t)n, timeout) < 0)
                return errno == EINTR ? 0 : -errno;
        now_usec = clock_usec(CLOCK_MONOTONIC);
        for (size_t i = 0; i < n && r >= 0; i++) {
                if (children[i].pid <= 0)
                        continue;
                if (!polled[i].revents && children[i].end_usec <= now_usec) {
                        children[i].timed_out = true;
                        (void)kill(children[i].pid, SIGKILL);
                } else if (!polled[i].revents) {
                        continue;
                }
                r = collect(&children[i]);
                n_collected++;
        }
        return r < 0 ? r : n_collected;
}

int ctl_children_run(CtlChild *children, size_t n, int (*run)(void *data), size_t n_at_once,
                     uint64_t timeout_usec, Error *reterr)
{
        _cleanup_free_ struct pollfd *polled = calloc(n + 1, sizeof(struct pollfd));
        size_t n_started = 0, n_running = 0;
        int r = polled ? 0 : -ENOMEM;

        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < ARRAY_SIZE(children[i].fds); j++)
                        children[i].fds[j] = -EBADF;
        while (r >= 0 && (n_started < n || n_running > 0)) {
                if (n_started < n && n_running < n_at_once) {
                        r = start(&children[n_started++], run, timeout_usec);
                        n_running++;
                        continue;
                }
                r = collect_some(children, n_started, polled);
                n_running -= (size_t)MAX(r, 0);
        }
        if (r >= 0)
                return 0;
        for (size_t i = 0; i < n_started; i++)
                stop(&children[i]);
        return error_setf(reterr, r, "Cannot run a child process: %s", strerror(-r));
}

/* The helper. */

#define PROGRAM   "computectl-helper" /* built from agent/helper/main.c */
#define WORDS_MAX 4                   /* most arguments of an order */

/* The orders of the helper: the words for a failure, and the format of the document that it
 * prints. */
static const struct {
        const char *name, *failure, *format;
} orders[] = {
        { "discover", "Cannot poll the host", SNAPSHOT_FORMAT },
        { "verify", "Cannot poll the host", FINDINGS_FORMAT },
        { "connect", "Cannot check the connection to Placement", CONNECT_FORMAT },
        { "identity", "Cannot determine the identity of this host", IDENTITY_FORMAT },
};

void ctl_find_program(char path[static PATH_MAX], const char *name, const char *folder)
{
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
        const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;

        if (slash &&
            snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - self), self, name) < PATH_MAX &&
            access(path, X_OK) == 0)
                return;
        snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

typedef struct HelperWork {
        const char *path;
        const char *const *arguments; /* NULL-terminated, the program's name first */
} HelperWork;

/* Replaces the child by the helper. Returns only if that fails. */
static int run_helper(void *data)
{
        const HelperWork *work = data;

        (void)execv(work->path, (char *const *)(uintptr_t)work->arguments);
        return 127;
}

/* Stores the words of a failure: those of the order and the last line of the child's errors.
 * Removes this line from errors, where the earlier lines stay. Returns -EIO. */
static int fail_order(const char *failure, char *errors, Error *reterr)
{
        static const char prefix[] = "computectl: ";
        char *line;

        for (size_t n = strlen(errors); n > 0 && errors[n - 1] == '\n'; n--)
                errors[n - 1] = '\0';
        line = strrchr(errors, '\n');
        line = line ? line + 1 : errors;
        if (strncmp(line, prefix, strlen(prefix)) == 0)
                error_setf(reterr, EIO, "%s: %s", failure, line + strlen(prefix));
        else if (line[0])
                error_setf(reterr, EIO, "%s: %s", failure, line);
        else
                error_setf(reterr, EIO, "%s", failure);
        line[0] = '\0';
        return -EIO;
}

int ctl_helper_ask(const char *order, const char *const words[], const char *config, json_t **ret,
                   Error *reterr)
{
        const char *arguments[WORDS_MAX + 4] = { PROGRAM, order };
        char path[PATH_MAX];
        HelperWork work = { path, arguments };
        CtlChild child = { .data = &work };
        size_t n = 2, i = 0;
        int r;

        while (i + 1 < ARRAY_SIZE(orders) && strcmp(orders[i].name, order) != 0)
                i++;
        for (; words && *words; words++)
                arguments[n++] = *words;
        arguments[n] = config;
        ctl_find_program(path, PROGRAM, PKGLIBEXECDIR);
        if (access(path, X_OK) < 0)
                return error_setf(reterr, errno, "%s: %s. Is the package installed completely?",
                                  path, strerror(errno));
        r = ctl_children_run(&child, 1, run_helper, 1, 0, reterr);
        if (r >= 0) {
                r = child.code != 0
                            ? fail_order(orders[i].failure, child.errors, reterr)
                            : ctl_json_read_document(child.output, orders[i].format, ret, reterr);
                fputs(child.errors, stderr);
        }
        ctl_children_done(&child, 1);
        return r;
}
