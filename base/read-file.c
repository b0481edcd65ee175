/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/read-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macros.h"

/* Opens with O_NONBLOCK, so that a FIFO does not block, and with O_NOCTTY, so that a terminal does
 * not become the controlling one. */
int read_file_start(const char *path, void *bytes, size_t size, size_t *ret_length,
                    mode_t *ret_mode)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;
        size_t n = 0;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        /* One read() can return less than the rest of the file. */
        while (n < size) {
                ssize_t r = read(fd, (char *)bytes + n, size - n);

                if (r < 0 && errno == EINTR)
                        continue;
                if (r < 0)
                        return -errno;
                if (r == 0)
                        break;
                n += (size_t)r;
        }
        *ret_length = n;
        if (ret_mode)
                *ret_mode = st.st_mode;
        return 0;
}

/* Reads one byte more than max, to tell a file of exactly max bytes from a larger one. */
int read_file_text(const char *path, size_t max, char **ret, size_t *ret_length, mode_t *ret_mode)
{
        _cleanup_free_ char *text = malloc(max + 2);
        size_t n;
        int r;

        if (!text)
                return -ENOMEM;
        r = read_file_start(path, text, max + 1, &n, ret_mode);
        if (r < 0)
                return r;
        if (n > max)
                return -EFBIG;
        text[n] = '\0';
        *ret = TAKE_PTR(text);
        *ret_length = n;
        return 0;
}
