/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes and reads small files so that a crash at any point leaves the old file or the new one. A
 * writer creates PATH.SUFFIX, syncs it, gives it its name, and syncs the folder. Without the last
 * step a crash can undo the rename, but until then the new file is in force. Other failures leave
 * the old file.
 *
 * A file with content that cannot be used is set aside as PATH.corrupt, or removed if the rename
 * fails, and the caller gets -EBADMSG. So the next read finds no file, and the operator can still
 * examine a file that was set aside. A dry run leaves it. A file that cannot be read stays, and the
 * caller gets the error of the read. SUFFIX must be unique if two processes can write the file at
 * the same time. The lock of the state folder, which is also taken here, prevents that for all
 * files of the daemon in that folder, but not for compute_id. */

#include "agent/state/state-file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/log.h"
#include "base/read-file.h"
#include "base/text.h"

#define LOCK_NAME            "lock"
#define STATE_FILE_MAX_BYTES (16 * 1024 * 1024) /* a larger file is not read, and stays */

static int write_all(int fd, const char *text, size_t n)
{
        while (n > 0) {
                ssize_t written = write(fd, text, n);

                if (written < 0 && errno == EINTR)
                        continue;
                if (written < 0)
                        return -errno;
                text += written;
                n -= (size_t)written;
        }
        return 0;
}

/* Writes a new file with this mode and syncs it. An old file with the same name is removed first,
 * so that a symbolic link is never followed. */
static int write_synced(const char *path, const char *text, mode_t mode)
{
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, strlen(text));
        if (r < 0)
                return r;
        return fchmod(fd, mode) < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* Opens the folder that has the file path. Returns its descriptor or a negative errno. */
static int open_folder(const char *path)
{
        _cleanup_free_ char *copy = strdup(path);
        int fd;

        if (!copy)
                return -ENOMEM;
        fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Syncs the folder after the file got its name. A failure is only logged, because the new file is
 * in force for every reader: an error would let the caller believe in the old one. */
static void sync_new_name(int folder, const char *path)
{
        if (fsync(folder) < 0)
                log_warning("Cannot sync the folder of %s: %s. A power failure can undo the write.",
                            path, strerror(errno));
}

int state_file_put(const char *path, const char *suffix, const char *text, mode_t mode,
                   bool replace)
{
        _cleanup_free_ char *temporary = text_format("%s.%s", path, suffix);
        _cleanup_close_ int folder = open_folder(path);
        int r;

        if (!temporary || folder < 0)
                return temporary ? folder : -ENOMEM;
        r = write_synced(temporary, text, mode);
        if (r == 0 && (replace ? rename(temporary, path) : link(temporary, path)) < 0)
                r = -errno;
        if (r < 0 || !replace)
                (void)unlink(temporary);
        if (r == 0)
                sync_new_name(folder, path);
        return r;
}

int state_file_remove(const char *path)
{
        _cleanup_close_ int folder = open_folder(path);

        if (folder < 0)
                return folder == -ENOENT ? 0 : folder;
        /* Without a file the folder is synced, too: an earlier call can have removed the file, and
         * then failed to sync the folder. */
        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        return fsync(folder) < 0 ? -errno : 0;
}

int state_file_write(const char *path, const json_t *json, Error *reterr)
{
        _cleanup_free_ char *text = json_dumps(json, JSON_INDENT(1) | JSON_SORT_KEYS);
        int r;

        if (!text)
                return error_oom(reterr);
        r = state_file_put(path, "new", text, 0600, true);
        return r < 0 ? error_setf(reterr, r, "Cannot write %.120s: %s", path, strerror(-r)) : 0;
}

/* Renames a file that cannot be used, or removes it if that fails, so that the next read finds
 * none. Does nothing if memory is short. */
static void set_aside(const char *path)
{
        _cleanup_free_ char *aside = text_format("%s.corrupt", path);

        if (!aside)
                return;
        if (rename(path, aside) < 0)
                (void)unlink(path);
}

/* Makes the error for a file whose content cannot be used, and sets the file aside unless
 * read_only. */
static int refuse_content(const char *path, bool read_only, Error *reterr)
{
        if (!read_only)
                set_aside(path);
        return error_prefixf(reterr, -EBADMSG, "%.100s: %s", path,
                             read_only ? "damaged" : "set aside");
}

int state_file_read(const char *path, const char *format, bool read_only, json_t **ret,
                    Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_json_ json_t *json = NULL;
        const char *found = NULL;
        size_t n;
        int r = read_file_text(path, STATE_FILE_MAX_BYTES, &text, &n, NULL);

        if (r == -ENOENT)
                return r;
        if (r < 0)
                return error_setf(
                        reterr, r,
                        "Cannot read %.120s: %s. Make it readable, or move it away to start without its content",
                        path, strerror(-r));
        r = json_parse(text, n, &json, reterr);
        if (r == 0)
                r = json_read_string(json, "format", &found, reterr);
        if (r == -ENOMEM)
                return r;
        if (r == 0 && strcmp(found, format) != 0)
                r = error_setf(reterr, EBADMSG, "its format is \"%.40s\"", found);
        if (r < 0)
                return refuse_content(path, read_only, reterr);
        *ret = TAKE_PTR(json);
        return 0;
}

int state_file_load(const char *path, const char *format, bool read_only,
                    int (*read)(const json_t *json, void *userdata, Error *reterr), void *userdata,
                    Error *reterr)
{
        _cleanup_json_ json_t *json = NULL;
        int r = state_file_read(path, format, read_only, &json, reterr);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        r = read(json, userdata, reterr);
        if (r < 0 && r != -ENOMEM)
                return refuse_content(path, read_only, reterr);
        return r < 0 ? r : 1;
}

/* Makes the error for a locked folder. pid 0: the other process is in another PID namespace, so it
 * has no number here, or has just released the lock. */
static int refuse_busy(const char *path, pid_t pid, Error *reterr)
{
        char who[40] = "Another process";

        if (pid > 0)
                snprintf(who, sizeof(who), "Process %d", (int)pid);
        return error_setf(
                reterr, EBUSY,
                "%s already uses this state folder (%.200s is locked). Two agents with one folder would roll back each other's claims",
                who, path);
}

/* Locks the file with fcntl(), not with flock(), because the kernel names the owner of such a
 * lock. */
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
        _cleanup_free_ char *path = text_format("%s/" LOCK_NAME, state_dir);
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
                                  "There is no folder %.200s. Create it, or set [agent] state_dir",
                                  state_dir);
        if (fd < 0)
                return error_setf(reterr, errno, "Cannot open %.200s: %s", path, strerror(errno));
        r = lock_file(fd, path, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_FD(fd);
        return 0;
}
