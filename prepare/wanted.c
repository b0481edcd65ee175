/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads stamps and takes locks. A stamp is foreign input, which only decides whether a run reads
 * everything again, or starts units that failed again. The descriptor of a lock is the lock: it
 * ends when the descriptor is closed.
 *
 * Tests: tests/unit/prepare/test-run.c tests/unit/prepare/test-clean.c */

#include "prepare/wanted.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/text.h"

#define LOCK_USEC      (60 * USEC_PER_SEC)
#define LOCK_POLL_USEC UINT64_C(100000)

/* Opens the file of the agent. Its folder belongs to the agent's user, who can put a link there to
 * a file that only root can read. So the file itself must belong to the owner of the folder. */
static int open_wanted(const PreparePaths *paths, const char *name)
{
        _cleanup_free_ char *path = text_format("%s/compute-agent", paths->run);
        _cleanup_close_ int folder = -EBADF, file = -EBADF;
        struct stat above, st;

        if (!path)
                return -ENOMEM;
        folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
                return -errno;
        file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (file < 0 || fstat(folder, &above) < 0 || fstat(file, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) && st.st_uid == above.st_uid ? TAKE_FD(file) : -EPERM;
}

void prepare_read_wanted(const PreparePaths *paths, const char *name,
                         char ret[static PREPARE_WANTED_SIZE])
{
        _cleanup_close_ int fd = open_wanted(paths, name);
        ssize_t n = fd >= 0 ? read(fd, ret, PREPARE_WANTED_SIZE - 1) : 0;

        ret[MAX(n, 0)] = '\0';
        ret[strcspn(ret, "\n")] = '\0';
        if (ret[strspn(ret, "0123456789abcdef")])
                ret[0] = '\0';
}

int prepare_take_lock(const PreparePaths *paths, const char *folder_name, Error *reterr)
{
        _cleanup_free_ char *folder = text_format("%s/%s", paths->run, folder_name);
        _cleanup_free_ char *path = text_format("%s/%s/lock", paths->run, folder_name);
        uint64_t until = clock_usec(CLOCK_MONOTONIC) + LOCK_USEC;
        _cleanup_close_ int fd = -EBADF;

        if (!folder || !path)
                return error_oom(reterr);
        if (mkdir(folder, 0755) < 0 && errno != EEXIST)
                return error_setf(reterr, errno, "Cannot make %s: %s", folder, strerror(errno));
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return error_setf(reterr, errno, "Cannot open %s: %s", path, strerror(errno));
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK && errno != EINTR)
                        return error_setf(reterr, errno, "Cannot lock %s: %s", path,
                                          strerror(errno));
                if (clock_usec(CLOCK_MONOTONIC) >= until)
                        return error_setf(reterr, EBUSY,
                                          "Another compute-agent-prepare has run for a minute");
                usleep(LOCK_POLL_USEC);
        }
        return TAKE_FD(fd);
}
