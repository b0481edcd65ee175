/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/folder-owner.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macros.h"

int folder_owner_adopt(int fd, const char *path)
{
        _cleanup_free_ char *copy = NULL;
        struct stat st;

        if (geteuid() != 0)
                return 0;
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        if (stat(dirname(copy), &st) < 0 ||
            (st.st_uid != 0 && fchown(fd, st.st_uid, st.st_gid) < 0))
                return -errno;
        return 0;
}
