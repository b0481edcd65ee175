/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Readers of small files that other users can have created: the whole file, or its beginning. They
 * block on the disk. */

#include <stddef.h>
#include <sys/types.h>

/* Reads up to size bytes from the beginning of a file. Other users can own the folder, so a file
 * that is not regular is rejected, and a FIFO without a writer does not block the call. Returns
 * -EISDIR for a folder, -EINVAL for another file that is not regular, or the errno of open(),
 * fstat() or read(). Follows links. ret_mode can be NULL. */
int read_file_start(const char *path, void *bytes, size_t size, size_t *ret_length,
                    mode_t *ret_mode);

/* Reads a whole file of at most max bytes as a string, which the caller frees. The string ends with
 * a NUL and can contain others. Returns -EFBIG for a larger file, -ENOMEM, or an error of
 * read_file_start(); then *ret is unchanged. Stores no words. */
int read_file_text(const char *path, size_t max, char **ret, size_t *ret_length, mode_t *ret_mode);
