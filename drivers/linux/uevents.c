/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/linux/uevents.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#define GROUP_KERNEL 1
#define GROUP_UDEV   2 /* later, and where udev runs: by then all of a device is there */
#define MESSAGE_MAX  16384

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

/* Texts that each end with a NUL; udev's have some bytes before them. */
bool uevent_counts(const char *message, size_t n)
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
