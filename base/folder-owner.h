/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Protects root when root runs a command by hand in the folder of a service that is not root.
 *
 * An attacker who controls that service controls the content of its folder: links, databases,
 * and journals that name other files. So root must not read or write there with root's rights.
 * The process becomes the folder's owner instead, and files that it creates belong to the
 * service. */

#include <sys/types.h>

#include "base/error.h"

/* Gives this process the user and the groups of the folder's owner, without a way back. The groups
 * are those of the user database. A user that the database does not have gets the folder's group
 * only. Keeps the signal that the process gets when its parent ends. Does nothing if the process is
 * not root, if root owns the folder, or if the folder does not exist. The caller must read files
 * that only root can read (secrets) before, and no other thread can run yet. Returns 1 if the user
 * changed, 0 if not, or a negative errno with words: then the caller must stop, because a part of
 * the change can be done. Blocks on the user database. */
int folder_owner_become(const char *folder, Error *reterr);

/* Returns 1 with the user that folder_owner_become() would change to, 0 if it would do nothing,
 * or a negative errno. */
int folder_owner_find(const char *folder, uid_t *ret_user);
