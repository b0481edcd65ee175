/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/sysfs.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/read-file.h"
#include "base/text.h"

/* 64 KiB of a stack are nothing, but a thread's may be small: what is read is what is kept. */
#define CHUNK 4096

int sysfs_read(const char *path, char **ret)
{
        size_t size = CHUNK;

        for (;;) {
                _cleanup_free_ char *text = malloc(size + 1);
                size_t n;
                int r = text ? read_file_start(path, text, size, &n, NULL) : -ENOMEM;

                if (r < 0)
                        return r;
                if (n < size) {
                        text[n] = '\0';
                        for (n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]);)
                                text[--n] = '\0';
                        *ret = TAKE_PTR(text);
                        return 0;
                }
                if (size > SYSFS_TEXT_MAX)
                        return -EFBIG;
                size = SYSFS_TEXT_MAX + 1;
        }
}

bool sysfs_is_gone(int r)
{
        return r == -ENOENT || r == -ENOTDIR || r == -ENODEV || r == -ENXIO || r == -EIO;
}

char *sysfs_device_name(const char *subsystem, const char *name)
{
        char *text = text_format("%s_%s", subsystem, name);

        if (!text)
                return NULL;
        for (char *c = text; *c; c++)
                if (!isalnum((unsigned char)*c))
                        *c = '_';
        return text;
}
