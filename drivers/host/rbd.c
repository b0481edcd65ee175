/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs "ceph df" as a child process, parses its output, and keeps the answer or the error for
 * RBD_KEEP_USEC. The child has its own process group, so that a kill also ends its children. Both
 * outputs are read until they and the child end. If RBD_TIMEOUT_USEC is over before, one output
 * exceeds RBD_OUTPUT_MAX, or reading fails, the process group is killed and the run has failed.
 *
 * Standard error is untrusted text that can contain a key. An error text quotes at most the
 * beginning of its last line that is no log line, and nothing if that beginning mentions a key.
 * Each child that was started is reaped before the function returns.
 *
 * Tests: tests/unit/drivers/host/test-rbd.c */

#include "drivers/host/rbd.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/spawn.h"
#include "base/text.h"

/* Longest quotation of standard error, in bytes. */
#define WORDS_MAX   160
#define CONNECT_SEC "5" /* seconds, the limit of ceph itself; shorter than RBD_TIMEOUT_USEC */

/* Parses the output of "ceph df --format=json". -EBADMSG if it is malformed, -ENODEV if the
 * cluster does not have the pool. */
static int parse(const char *text, size_t n, const char *pool, uint64_t *ret_bytes, Error *reterr)
{
        _cleanup_json_ json_t *document = json_loadb(text, n, 0, NULL);
        const json_t *total = json_object_get(json_object_get(document, "stats"), "total_bytes");
        const json_t *pools = json_object_get(document, "pools"), *one;
        size_t i;

        if (!json_is_integer(total) || json_integer_value(total) < 0 || !json_is_array(pools))
                return error_setf(reterr, EBADMSG,
                                  RBD_WHAT ": the answer of \"ceph df\" cannot be read");
        json_array_foreach(pools, i, one) {
                const char *name = json_string_value(json_object_get(one, "name"));

                if (name && strcmp(name, pool) == 0) {
                        *ret_bytes = (uint64_t)json_integer_value(total);
                        return 0;
                }
        }
        return error_setf(reterr, ENODEV,
                          RBD_WHAT ": the cluster has no pool %.60s (images_rbd_pool)", pool);
}

/* Copies the last line that is not a log line of librados, or "". Log lines begin with a digit.
 * A line whose beginning mentions a key is not copied, because ceph prints the key of a malformed
 * keyring. */
static void copy_summary(const char *words, char *ret, size_t size)
{
        ret[0] = '\0';
        while (*words) {
                size_t n = strcspn(words, "\n");

                if (n > 0 && (words[0] < '0' || words[0] > '9'))
                        snprintf(ret, size, "%.*s", (int)MIN(n, size - 1), words);
                words += n + (words[n] == '\n');
        }
        if (strcasestr(ret, "key") || strcasestr(ret, "val="))
                ret[0] = '\0';
        text_sanitize(ret, '?');
}

/* Sets the error of a failed "ceph df" from its standard error, which can be any text. */
static int explain_words(const char *words, const RbdPool *pool, Error *reterr)
{
        const char *user = pool->user[0] ? pool->user : "admin";
        char line[WORDS_MAX];

        copy_summary(words, line, sizeof(line));
        if (strstr(line, "conf_read_file"))
                return error_setf(
                        reterr, EIO,
                        RBD_WHAT
                        ": ceph cannot read %.80s. Make it readable for the user compute-agent",
                        pool->conf[0] ? pool->conf : "its configuration");
        if (strstr(line, "timed out"))
                return error_setf(reterr, ETIMEDOUT,
                                  RBD_WHAT
                                  ": no monitor of Ceph accepts client.%.60s in " CONNECT_SEC " s",
                                  user);
        if (strstr(line, "error connecting to the cluster"))
                return error_setf(
                        reterr, EIO,
                        RBD_WHAT
                        ": client.%.60s cannot connect: %s. Make its keyring readable for the user compute-agent, and grant it mon 'profile rbd'",
                        user, line);
        return error_setf(reterr, EIO, RBD_WHAT ": \"ceph df\" failed: %s",
                          line[0] ? line : "no reason given");
}

/* A running child, and its standard output and standard error so far. */
typedef struct Child {
        /* pidfd is for poll(); -1: none */
        pid_t pid;
        int pidfd;
        /* read ends; -1: at the end */
        int fds[2];
        char *texts[2];
        size_t lengths[2];
} Child;

static void child_done(Child *child)
{
        if (child->pidfd >= 0)
                close(child->pidfd);
        for (size_t i = 0; i < 2; i++) {
                if (child->fds[i] >= 0)
                        close(child->fds[i]);
                free(child->texts[i]);
        }
}

/* Creates the pipes and starts the child in its own process group. The write ends are closed here,
 * so that the read ends reach their end with the child. */
static int start(char *const argv[], Child *child)
{
        int pipes[2][2] = { { -1, -1 }, { -1, -1 } }, writers[2], r = 0;

        for (size_t i = 0; i < 2 && r == 0; i++)
                r = pipe2(pipes[i], O_CLOEXEC) < 0 ? -errno : 0;
        for (size_t i = 0; i < 2; i++) {
                child->fds[i] = pipes[i][0];
                writers[i] = pipes[i][1];
        }
        if (r == 0)
                r = spawn(argv[0], argv, writers[0], writers[1], true, &child->pid);
        for (size_t i = 0; i < 2; i++)
                if (writers[i] >= 0)
                        close(writers[i]);
        return r;
}

/* Reads available bytes. Returns 1 at the end of the text, -EFBIG if it is longer than
 * RBD_OUTPUT_MAX. */
static int read_some(Child *child, size_t i)
{
        char part[4096], *grown;
        ssize_t n = read(child->fds[i], part, sizeof(part));

        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n == 0) {
                close(child->fds[i]);
                child->fds[i] = -1;
                return 1;
        }
        if (child->lengths[i] + (size_t)n > RBD_OUTPUT_MAX)
                return -EFBIG;
        grown = realloc(child->texts[i], child->lengths[i] + (size_t)n + 1);
        if (!grown)
                return -ENOMEM;
        memcpy(grown + child->lengths[i], part, (size_t)n);
        child->texts[i] = grown;
        child->lengths[i] += (size_t)n;
        grown[child->lengths[i]] = '\0';
        return 0;
}

/* Reads both texts up to their end, and waits for the end of the child. -ETIMEDOUT, -EFBIG,
 * -ENOMEM, or an error of poll() or read(). The child can still run after an error. */
static int read_all(Child *child)
{
        uint64_t end_usec = clock_usec(CLOCK_MONOTONIC) + RBD_TIMEOUT_USEC;
        bool ended = false;

        while (child->fds[0] >= 0 || child->fds[1] >= 0 || !ended) {
                struct pollfd fds[3] = { { .fd = child->fds[0], .events = POLLIN },
                                         { .fd = child->fds[1], .events = POLLIN },
                                         { .fd = ended ? -1 : child->pidfd, .events = POLLIN } };
                uint64_t now_usec = clock_usec(CLOCK_MONOTONIC);
                int r;

                if (now_usec >= end_usec)
                        return -ETIMEDOUT;
                r = poll(fds, 3, (int)((end_usec - now_usec) / USEC_PER_MSEC) + 1);
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r <= 0)
                        continue;
                for (size_t i = 0; i < 2; i++)
                        if (fds[i].revents && (r = read_some(child, i)) < 0)
                                return r;
                ended = ended || fds[2].revents;
        }
        return 0;
}

/* Reaps the child. kills: it can still run, so its process group is killed first. Returns its wait
 * status. */
static int reap(const Child *child, bool kills)
{
        int status = -1;

        if (kills)
                (void)kill(-child->pid, SIGKILL);
        while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status;
}

/* Sets the error. r is the error of the run, or 0 if the child ended with this status. */
static int explain(int r, const Child *child, int status, const RbdPool *pool, Error *reterr)
{
        const char *words = child->texts[1] ? child->texts[1] : "";

        if (r == -ENOMEM)
                return error_oom(reterr);
        if (r == -ETIMEDOUT)
                return error_setf(reterr, ETIMEDOUT,
                                  RBD_WHAT ": \"ceph df\" did not answer in %d s",
                                  (int)(RBD_TIMEOUT_USEC / USEC_PER_SEC));
        if (r < 0)
                return error_setf(reterr, EIO, RBD_WHAT ": \"ceph df\": %s", strerror(-r));
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && !words[0])
                return error_setf(reterr, ENOPKG, RBD_WHAT ": the program ceph is not installed");
        return explain_words(words, pool, reterr);
}

/* Runs "ceph df" once. *ret_bytes is the total of the cluster, without regard to replication, as
 * in Nova. */
static int read_capacity(const RbdPool *pool, uint64_t *ret_bytes, Error *reterr)
{
        _cleanup_free_ char *id = text_format("--id=%s", pool->user),
                            *conf = text_format("--conf=%s", pool->conf);
        char *argv[7] = { (char *)"ceph", (char *)"df", (char *)"--format=json",
                          (char *)"--connect-timeout=" CONNECT_SEC };
        _cleanup_(child_done) Child child = { .pidfd = -1, .fds = { -1, -1 } };
        size_t n = 4;
        int r, status;

        if (!id || !conf)
                return error_oom(reterr);
        if (pool->user[0])
                argv[n++] = id;
        if (pool->conf[0])
                argv[n++] = conf;
        r = start(argv, &child);
        if (r == -ENOENT)
                return error_setf(reterr, ENOPKG, RBD_WHAT ": the program ceph is not installed");
        if (r < 0)
                return explain(r, &child, 0, pool, reterr);
        child.pidfd = (int)syscall(SYS_pidfd_open, child.pid, 0);
        r = child.pidfd < 0 ? -errno : read_all(&child);
        status = reap(&child, r < 0);
        if (r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return explain(r, &child, status, pool, reterr);
        return parse(child.texts[0] ? child.texts[0] : "", child.lengths[0], pool->pool, ret_bytes,
                     reterr);
}

int rbd_read(RbdPool *pool, uint64_t now_usec, uint64_t *ret_bytes, Error *reterr)
{
        if (pool->read_usec == 0 || now_usec - pool->read_usec >= RBD_KEEP_USEC) {
                pool->bytes = 0;
                pool->error = ERROR_NULL;
                (void)read_capacity(pool, &pool->bytes, &pool->error);
                pool->read_usec = now_usec;
        }
        if (pool->error.code)
                return error_setf(reterr, pool->error.code, "%s", pool->error.text);
        *ret_bytes = pool->bytes;
        return 0;
}
