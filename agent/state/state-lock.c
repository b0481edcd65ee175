/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A record lock of fcntl(), not flock(): of these the kernel says who has it. */

#include "agent/state/state-lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/text.h"

#define FILE_NAME "lock"

static int refuse_busy(const char *path, pid_t pid, Error *reterr)
{
        char who[40] = "Another process"; /* of another PID namespace: it has no number here */

        if (pid > 0)
                snprintf(who, sizeof(who), "Process %d", (int)pid);
        return error_setf(
                reterr, EBUSY,
                "%s uses this state folder already (%.200s is locked): two agents of one folder would take back each other's claims",
                who, path);
}

static int lock_file(int fd, const char *path, Error *reterr)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET }, held = lock;

        if (fcntl(fd, F_SETLK, &lock) == 0)
                return 0;
        if (errno != EAGAIN && errno != EACCES)
                return error_setf(reterr, errno, "Cannot lock %.200s: %s", path, strerror(errno));
        if (fcntl(fd, F_GETLK, &held) < 0 || held.l_type == F_UNLCK)
                held.l_pid = 0;
        return refuse_busy(path, held.l_pid, reterr);
}

int state_lock_take(const char *state_dir, int *ret, Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/" FILE_NAME, state_dir);
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (!path)
                return error_oom(reterr);
        fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EROFS) {
                *ret = -EBADF;
                return 0;
        }
        if (fd < 0 && errno == ENOENT)
                return error_setf(reterr, ENOENT,
                                  "There is no folder %.200s; create it, or set [agent] state_dir",
                                  state_dir);
        if (fd < 0)
                return error_setf(reterr, errno, "Cannot open %.200s: %s", path, strerror(errno));
        r = lock_file(fd, path, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_FD(fd);
        return 0;
}
