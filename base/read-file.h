/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Small files that somebody else may have put there: read whole, or their beginning. Blocks on the
 * disk. */

#include <stddef.h>
#include <sys/types.h>

/* Reads the first bytes of a file. Never blocks (a FIFO without a writer must not hang the start),
 * and refuses what is not a regular file: the folder may belong to others. -EISDIR, -EINVAL, errno
 * of open() or read(). ret_mode may be NULL. */
int read_file_start(const char *path, void *bytes, size_t size, size_t *ret_length,
                    mode_t *ret_mode);

/* Reads a whole small file as a string. -EFBIG when it has more than max bytes, -EISDIR or -EINVAL
 * when it is not a regular file, errno of open() or read(); no words are set. */
int read_file_text(const char *path, size_t max, char **ret, size_t *ret_length, mode_t *ret_mode);
