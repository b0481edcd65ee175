/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads and writes small files, most of them JSON in [agent] state_dir, and locks this folder. A
 * file is written as a whole, so a reader after any crash finds the old text or the new one. A file
 * whose content cannot be used is set aside when it is read. All functions block on the disk. */

#include <jansson.h>
#include <sys/types.h>

#include "base/error.h"

/* Writes json to PATH.new with mode 0600, syncs it, renames it and syncs the folder. Returns 0 if
 * the new file is in force, as state_file_put() does, or a negative errno with words. After a
 * failure the old file is unchanged. */
int state_file_write(const char *path, const json_t *json, Error *reterr);

/* Reads a JSON object whose member "format" equals format; the caller owns it. Returns -ENOENT
 * without words if there is no file. Another content gives -EBADMSG with words, and the file is
 * renamed to PATH.corrupt (over an older one), or removed if the rename fails. The same happens if
 * the memory ends inside of a string (json_parse()). The file stays nevertheless if memory is too
 * short for the rename, if the folder cannot be written, or if read_only (--dry-run). Other errors,
 * also -ENOMEM and those for a file above 16 MiB, are a negative errno with words, and the file
 * stays. */
int state_file_read(const char *path, const char *format, bool read_only, json_t **ret,
                    Error *reterr);

/* Writes text to PATH.SUFFIX, syncs it, gives it its name and syncs the folder. replace: it takes
 * the place of an old file in one step. Otherwise an old file gives -EEXIST.
 *
 * Returns 0 if the new file is in force. If the folder cannot be synced then, this function logs a
 * warning: after a power failure the old file can be in force again. Returns a negative errno if
 * the old file is unchanged. */
int state_file_put(const char *path, const char *suffix, const char *text, mode_t mode,
                   bool replace);

/* Removes the file and syncs the folder. Returns 0 if the file is gone, also after a crash, or if
 * there was no file. After a negative errno the file can exist, or return after a crash; a later
 * call that returns 0 ends that. */
int state_file_remove(const char *path);

/* Reads the file like state_file_read() and passes its content to read(). The content is borrowed
 * during that call. Returns 1, 0 if there is no file, or an error of state_file_read(). A file that
 * read() rejects is damaged likewise, except after -ENOMEM. */
int state_file_load(const char *path, const char *format, bool read_only,
                    int (*read)(const json_t *json, void *userdata, Error *reterr), void *userdata,
                    Error *reterr);

/* Locks a state folder ([agent] state_dir) for one program at a time. The kernel releases the lock
 * when the program ends, in any way. The file of the lock is never removed, and its content has no
 * meaning. No other code must open it: a process loses a lock of this kind when it closes any
 * descriptor of the file.
 *
 * The caller keeps the descriptor in *ret, and closes it to release the lock. Returns -EBUSY with
 * words that name the process with the lock (unless it is in another PID namespace or has just
 * released the lock), or another negative errno with words. A read-only file system needs no lock:
 * *ret is then -EBADF, and the result is 0. Blocks on the disk, never on the other process. */
int state_lock_take(const char *state_dir, int *ret, Error *reterr);
