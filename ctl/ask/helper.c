/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/helper.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "ctl/print/json.h"
#include "drivers/host/snapshot.h"
#include "formats/format-names.h"

#define PROGRAM  "computectl-helper" /* agent/helper/main.c */
#define TEXT_MAX (64U << 20)         /* of its output */

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

static int read_all(int fd, char **ret)
{
        _cleanup_free_ char *text = NULL;
        size_t n = 0, size = 0;

        for (;;) {
                ssize_t m;

                if (size - n < 2) {
                        char *grown = size < TEXT_MAX ? realloc(text, size + 65536) : NULL;

                        if (!grown)
                                return size < TEXT_MAX ? -ENOMEM : -EFBIG;
                        text = grown;
                        size += 65536;
                }
                m = read(fd, text + n, size - n - 1);
                if (m < 0 && errno == EINTR)
                        continue;
                if (m < 0)
                        return -errno;
                if (m == 0)
                        break;
                n += (size_t)m;
        }
        text[n] = '\0';
        *ret = TAKE_PTR(text);
        return 0;
}

/* arguments: NULL-terminated, the program's name first. */
static int run(const char *path, const char *const arguments[], char **ret_text, int *ret_status)
{
        _cleanup_close_ int input = -EBADF, output = -EBADF;
        int fds[2], r;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        input = fds[0];
        output = fds[1];
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                if (dup2(output, STDOUT_FILENO) >= 0)
                        (void)execv(path, (char *const *)(uintptr_t)arguments);
                _exit(127);
        }
        close(TAKE_FD(output));
        r = read_all(input, ret_text);
        close(TAKE_FD(input)); /* a program that still writes ends by it */
        while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
                ;
        return r;
}

static int ask(const char *const arguments[], const char *what, const char *format, json_t **ret,
               Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        char path[PATH_MAX];
        int status = 0, r;

        ctl_find_program(path, PROGRAM, LIBEXECDIR);
        if (access(path, X_OK) < 0)
                return error_setf(reterr, errno, "%s: %s; is the package installed whole?", path,
                                  strerror(errno));
        r = run(path, arguments, &text, &status);
        if (r < 0)
                return error_setf(reterr, r, "%s: %s", path, strerror(-r));
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return error_setf(reterr, EIO, "%s", what);
        return ctl_json_read_document(text, false, format, ret, reterr);
}

int ctl_poll(const char *config, const char *driver, json_t **ret, Error *reterr)
{
        const char *arguments[] = { PROGRAM, "discover", driver ? driver : "", config, NULL };

        return ask(arguments, "The host could not be polled", SNAPSHOT_FORMAT, ret, reterr);
}

int ctl_poll_verify(const char *config, json_t **ret, Error *reterr)
{
        const char *arguments[] = { PROGRAM, "verify", config, NULL };

        return ask(arguments, "The host could not be polled", FINDINGS_FORMAT, ret, reterr);
}

int ctl_poll_connect(const char *config, const char *cloud, json_t **ret, Error *reterr)
{
        const char *arguments[] = { PROGRAM, "connect", cloud ? cloud : "", config, NULL };

        return ask(arguments, "Could not check the connection to Placement", CONNECT_FORMAT, ret,
                   reterr);
}

int ctl_poll_identity(const CtlIdentityQuestion *question, json_t **ret, Error *reterr)
{
        const char *arguments[] = { PROGRAM,          "identity",
                                    question->order,  question->flags,
                                    question->name,   question->cloud ? question->cloud : "",
                                    question->config, NULL };

        return ask(arguments, "Could not determine who this host is", IDENTITY_FORMAT, ret, reterr);
}
