/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who owns what is made in a state folder.
 *
 * Root may run a command by hand in the folder of a service that is not root. What it makes there
 * must be the service's, which else cannot open its own files any more; SQLite does the same with
 * the files beside a database. */

/* Gives the new file behind fd to the owner of the folder that path is in. Does nothing for who is
 * not root. Negative errno. Blocks on the disk. */
int folder_owner_adopt(int fd, const char *path);
