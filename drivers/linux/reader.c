/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/linux/reader.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

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
        return r == -EBADMSG
                       ? error_setf(reterr, r, "%.200s does not say what it should", reader->path)
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
