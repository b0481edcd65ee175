/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Root who runs a command by hand in the folder of a service that is not root.
 *
 * Whoever has got into that service decides what lies in its folder: links, and databases and
 * journals that name other files. So root reads and writes nothing there with root's rights, but
 * becomes the folder's owner, and what is made there is the service's. */

#include <sys/types.h>

#include "base/error.h"

/* From here on this process has the rights of the folder's owner, with that user's groups, and
 * nothing brings root's back. Does nothing for who is not root, for a folder of root's and for one
 * that is missing. What only root may read (secrets) is to be read before; no other thread may run
 * yet. 1 when it changed, 0 when not, or a negative errno with words: do not go on. Blocks on the
 * user database. */
int folder_owner_become(const char *folder, Error *reterr);

/* Whom that would make of root: 1 with the user, 0 when it would do nothing. Negative errno. */
int folder_owner_find(const char *folder, uid_t *ret_user);
