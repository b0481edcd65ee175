/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Small files in [agent] state_dir, most of them JSON: written as a whole, so that a reader
 * after any crash finds the old text or the new one. Blocks on the disk. */

#include <jansson.h>
#include <sys/types.h>

#include "base/error.h"

/* Writes beside the file, syncs, renames over it and syncs the folder. Negative errno with words;
 * the old file is then as it was. */
int state_file_write(const char *path, const json_t *json, Error *reterr);

/* -ENOENT without words when there is none. A file that is not a JSON object with that "format" is
 * renamed to PATH.corrupt (over an older one) and gives -EBADMSG with words. Else negative errno
 * with words. */
int state_file_read(const char *path, const char *format, json_t **ret, Error *reterr);

/* Writes to PATH.SUFFIX, syncs, gives it its name and syncs the folder. An old file is replaced in
 * the same moment, or (replace false) is in the way: -EEXIST. Negative errno; the old file is then
 * as it was. */
int state_file_put(const char *path, const char *suffix, const char *text, mode_t mode,
                   bool replace);

/* Reads the file and gives its content to read(). Returns 1, 0 if there is no file, or a negative
 * errno with words. A file that read() refuses, except with -ENOMEM, is renamed like one of another
 * format.
 */
int state_file_load(const char *path, const char *format,
                    int (*read)(const json_t *json, void *userdata, Error *reterr), void *userdata,
                    Error *reterr);

/* Locks a state folder ([agent] state_dir) for one program at a time. The kernel releases the lock
 * when the program ends, however it ends. The file of the lock is never removed, and its content
 * means nothing. No other code opens it: a process loses a lock of this kind when it closes any
 * descriptor of the file.
 *
 * Keep the descriptor; closing it releases the lock. -EBUSY with words that name the process that
 * has it, else negative errno with words. On a file system that is read-only there is nothing to
 * lock: *ret is then -EBADF, and 0 is returned. Blocks on the disk, never on the other process. */
int state_lock_take(const char *state_dir, int *ret, Error *reterr);
