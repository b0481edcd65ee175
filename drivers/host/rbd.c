/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/rbd.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"

#define WORDS_MAX 200

extern char **environ;

int rbd_parse(const char *text, size_t n, const char *pool, uint64_t *ret_bytes, Error *reterr)
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

/* A running child, and what it wrote so far to standard output and to standard error. */
typedef struct Child {
        pid_t pid;
        int fds[2];
        char *texts[2];
        size_t lengths[2];
} Child;

static void child_done(Child *child)
{
        for (size_t i = 0; i < 2; i++) {
                if (child->fds[i] >= 0)
                        close(child->fds[i]);
                free(child->texts[i]);
        }
}

/* Starts ceph in a group of its own, with no signal blocked. */
static int spawn(char *const argv[], Child *child, const int writers[2])
{
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        if (posix_spawnattr_init(&attributes) != 0) {
                posix_spawn_file_actions_destroy(&actions);
                return -ENOMEM;
        }
        sigemptyset(&none);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        for (int i = 0; i < 2 && r == 0; i++)
                r = posix_spawn_file_actions_adddup2(&actions, writers[i], STDOUT_FILENO + i);
        if (r == 0)
                r = posix_spawnp(&child->pid, argv[0], &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}

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
                r = spawn(argv, child, writers);
        for (size_t i = 0; i < 2; i++)
                if (writers[i] >= 0)
                        close(writers[i]);
        return r;
}

/* Reads what is there. Returns 1 at the end of the text, -EFBIG if it is too long. */
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

static int read_all(Child *child)
{
        uint64_t end_usec = clock_usec(CLOCK_MONOTONIC) + RBD_TIMEOUT_USEC;

        while (child->fds[0] >= 0 || child->fds[1] >= 0) {
                struct pollfd fds[2] = { { .fd = child->fds[0], .events = POLLIN },
                                         { .fd = child->fds[1], .events = POLLIN } };
                uint64_t now_usec = clock_usec(CLOCK_MONOTONIC);
                int r;

                if (now_usec >= end_usec)
                        return -ETIMEDOUT;
                r = poll(fds, 2, (int)((end_usec - now_usec) / USEC_PER_MSEC) + 1);
                if (r < 0 && errno != EINTR)
                        return -errno;
                for (size_t i = 0; i < 2 && r > 0; i++)
                        if (fds[i].revents && (r = read_some(child, i)) < 0)
                                return r;
                        else if (fds[i].revents)
                                r = 1;
        }
        return 0;
}

/* Kills the group of the child unless it ended by itself, and reaps it. Returns its wait status. */
static int reap(const Child *child, bool kills)
{
        int status = -1;

        if (kills)
                (void)kill(-child->pid, SIGKILL);
        while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status;
}

static int explain(int r, const Child *child, int status, Error *reterr)
{
        const char *words = child->texts[1] ? child->texts[1] : "";
        char line[WORDS_MAX];

        if (r == -ENOMEM)
                return error_oom(reterr);
        if (r == -ETIMEDOUT)
                return error_setf(reterr, ETIMEDOUT,
                                  RBD_WHAT ": \"ceph df\" did not answer in %d s",
                                  (int)(RBD_TIMEOUT_USEC / USEC_PER_SEC));
        if (r < 0)
                return error_setf(reterr, EIO, RBD_WHAT ": \"ceph df\": %s", strerror(-r));
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(words, "\n"), words);
        text_sanitize(line, '?');
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && !words[0])
                return error_setf(reterr, ENOPKG, RBD_WHAT ": the program ceph is not installed");
        return error_setf(
                reterr, EIO,
                RBD_WHAT
                ": \"ceph df\" failed: %s; the user compute-agent needs a keyring of rbd_user that it can read",
                line[0] ? line : "no words");
}

int rbd_read_capacity(const RbdPool *pool, uint64_t *ret_bytes, Error *reterr)
{
        _cleanup_free_ char *id = text_format("--id=%s", pool->user),
                            *conf = text_format("--conf=%s", pool->conf);
        char *argv[7] = { (char *)"ceph", (char *)"df", (char *)"--format=json",
                          (char *)"--connect-timeout=5" };
        _cleanup_(child_done) Child child = { .fds = { -1, -1 } };
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
                return explain(r, &child, 0, reterr);
        r = read_all(&child);
        status = reap(&child, r < 0);
        if (r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return explain(r, &child, status, reterr);
        return rbd_parse(child.texts[0] ? child.texts[0] : "", child.lengths[0], pool->pool,
                         ret_bytes, reterr);
}
