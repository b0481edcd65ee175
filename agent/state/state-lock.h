/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One program at a time writes to a state folder ([agent] state_dir): it holds the lock of a
 * file there, which the kernel releases when the program ends, however it ends.
 *
 * The file is never removed and its content means nothing. It is opened here alone: a process loses
 * a lock of this kind when it closes any descriptor of the file. */

#include "base/error.h"

/* Keep the descriptor; closing it releases the lock. -EBUSY with words that name the process that
 * has it, else negative errno with words. On a file system that is read-only there is nothing to
 * lock: *ret is then -EBADF, and 0 is returned. Blocks on the disk, never on the other process. */
int state_lock_take(const char *state_dir, int *ret, Error *reterr);
