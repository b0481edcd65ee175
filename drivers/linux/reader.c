/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Implements the functions that the readers of /sys share: paths, numbers, lists and errors, and
 * the socket of kernel events. The member reader->path has the path of the last file, which error
 * texts and problems name. The function linux_note() ignores files that are gone, because devices
 * and drivers can vanish at any time.
 *
 * Tests: tests/unit/drivers/linux/test-reader.c */

#include "drivers/linux/reader.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

const char *linux_path(LinuxReader *reader, const char *format, ...)
{
        int n = snprintf(reader->path, sizeof(reader->path), "%.255s/", reader->sys);
        va_list ap;

        va_start(ap, format);
        vsnprintf(reader->path + n, sizeof(reader->path) - (size_t)n, format, ap);
        va_end(ap);
        return reader->path;
}

int linux_read_number(const char *path, uint64_t max, uint64_t *ret)
{
        _cleanup_free_ char *text = NULL;
        char *end;
        uint64_t number;
        int r = sysfs_read(path, &text);

        if (r < 0)
                return r;
        if (!isdigit((unsigned char)text[0]))
                return -EBADMSG;
        errno = 0;
        number = strtoull(text, &end, 10);
        if (*end || errno || number > max)
                return -EBADMSG;
        *ret = number;
        return 0;
}

int linux_fail(const LinuxReader *reader, int r, Error *reterr)
{
        if (r == -ENOMEM)
                return error_oom(reterr);
        return r == -EBADMSG ? error_setf(reterr, r, "%.200s has unexpected content", reader->path)
                             : error_setf(reterr, r, "Cannot read %.200s: %s", reader->path,
                                          strerror(-r));
}

int linux_note(LinuxReader *reader, int r, Error *reterr)
{
        Error error = ERROR_NULL;

        if (r == -ENOMEM)
                return error_oom(reterr);
        if (r >= 0 || sysfs_is_gone(r))
                return 0;
        linux_fail(reader, r, &error);
        return snapshot_add_problem(reader->snapshot, error.text) < 0 ? error_oom(reterr) : 0;
}

int linux_list(const char *path, StringSet *ret)
{
        DIR *folder = opendir(path);
        const struct dirent *entry;
        int r = 0;

        if (!folder)
                return sysfs_is_gone(-errno) ? 0 : -errno;
        while (r >= 0 && (errno = 0, entry = readdir(folder))) {
                if (ret->n_items >= SNAPSHOT_LIST_MAX)
                        r = -EFBIG;
                else if (entry->d_name[0] != '.')
                        r = string_set_add(ret, entry->d_name);
        }
        if (r >= 0)
                r = -errno;
        closedir(folder);
        return r;
}

/* Events about devices and CPUs that appear, vanish, or get a driver. The kernel sends an event,
 * and udev sends another one after it has set up the device. Every user can receive both. */

#define GROUP_KERNEL 1
#define GROUP_UDEV   2 /* a host without udev sends no events to it */
/* longest event, in bytes; the rest is cut off */
#define MESSAGE_MAX 16384

int uevents_open(void)
{
        const struct sockaddr_nl address = { .nl_family = AF_NETLINK,
                                             .nl_groups = GROUP_KERNEL | GROUP_UDEV };
        _cleanup_close_ int fd =
                socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

        if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* Returns whether the event belongs to a subsystem that the readers use. An event is a list of
 * texts that end with NUL; udev's events have a binary header. */
static bool uevent_counts(const char *message, size_t n)
{
        static const char key[] = "SUBSYSTEM=";
        static const char *const subsystems[] = { "pci", "mdev", "vdpa", "cpu", "node", "memory" };
        const char *at = memmem(message, n, key, strlen(key));
        size_t left, length;

        if (!at)
                return false;
        at += strlen(key);
        left = n - (size_t)(at - message);
        length = strnlen(at, left);
        for (size_t i = 0; i < ARRAY_SIZE(subsystems); i++)
                if (strlen(subsystems[i]) == length && memcmp(at, subsystems[i], length) == 0)
                        return true;
        return false;
}

bool uevents_read(int fd)
{
        char message[MESSAGE_MAX];
        bool counts = false;

        for (;;) {
                ssize_t n = recv(fd, message, sizeof(message), 0);

                if (n >= 0)
                        counts = counts || uevent_counts(message, (size_t)n);
                else if (errno == ENOBUFS)
                        counts = true;
                else if (errno != EINTR)
                        return counts;
        }
}
