/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/instance-folders.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "drivers/host/snapshot.h"

#define RESIZED "_resize"

static void dir_closep(DIR **dir)
{
        if (*dir)
                closedir(*dir);
}

/* Returns true if a folder of that name belongs to a server that is alive. */
static bool is_of_server(const char *name, Uuid *ret)
{
        char text[UUID_TEXT_LENGTH + 1] = "";
        const char *rest = name + UUID_TEXT_LENGTH;

        if (strlen(name) < UUID_TEXT_LENGTH || (*rest && strcmp(rest, RESIZED) != 0))
                return false;
        memcpy(text, name, UUID_TEXT_LENGTH);
        return uuid_from_text(text, ret) == 0;
}

static int order_uuids(const void *a, const void *b)
{
        return uuid_order(a, b);
}

static size_t sort_unique(Uuid *uuids, size_t n)
{
        size_t n_kept = 0;

        if (n > 1)
                qsort(uuids, n, sizeof(Uuid), order_uuids);
        for (size_t i = 0; i < n; i++)
                if (n_kept == 0 || !uuid_equal(&uuids[n_kept - 1], &uuids[i]))
                        uuids[n_kept++] = uuids[i];
        return n_kept;
}

/* -E2BIG above SNAPSHOT_LIST_MAX: a list that is cut would hide servers. */
static int read_names(DIR *dir, Uuid **uuids, size_t *n)
{
        size_t n_allocated = 0;

        for (;;) {
                const struct dirent *entry;
                Uuid uuid;

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return -errno;
                if (!is_of_server(entry->d_name, &uuid))
                        continue;
                if (*n >= SNAPSHOT_LIST_MAX)
                        return -E2BIG;
                if (array_grow(uuids, sizeof(Uuid), *n, &n_allocated) < 0)
                        return -ENOMEM;
                (*uuids)[(*n)++] = uuid;
        }
}

int instance_folders_read(const char *path, Uuid **ret, size_t *ret_n, Error *reterr)
{
        _cleanup_(dir_closep) DIR *dir = path && path[0] ? opendir(path) : NULL;
        _cleanup_free_ Uuid *uuids = NULL;
        size_t n = 0;
        int r = 0;

        if (dir)
                r = read_names(dir, &uuids, &n);
        else if (path && path[0] && errno != ENOENT && errno != ENOTDIR)
                r = -errno;
        if (r < 0)
                return error_setf(reterr, r, "[DEFAULT] instances_path: %.100s: %s", path,
                                  strerror(-r));
        *ret_n = sort_unique(uuids, n);
        *ret = TAKE_PTR(uuids);
        return 0;
}
