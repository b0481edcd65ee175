/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Lists the servers that have a folder below [DEFAULT] instances_path.
 *
 * Nova makes the folder UUID when it begins to build a server or to copy one to this host, before
 * libvirt knows the domain. It renames the folder to UUID_resize while a resize waits for its
 * confirmation. Both show that the server is alive. A folder UUID_del shows nothing: Nova is
 * deleting it, or failed to. */

#include "base/error.h"
#include "base/uuid.h"

/* Reads the folder names of path. ret is sorted, has no duplicates, and is freed by the caller.
 * An empty path, and one that does not exist, has no folders. Blocks while the file system of path
 * hangs, so call it only from a thread that may. -errno with words that name the option, -ENOMEM;
 * then it is unknown which servers have a folder. */
int instance_folders_read(const char *path, Uuid **ret, size_t *ret_n, Error *reterr);
