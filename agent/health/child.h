/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The process compute-agent-health and its pipe. No function waits for the process, except
 * health_child_free() for about 20 ms: a process that waits for a disk that hangs cannot be killed
 * at once. */

#include <signal.h>

#include "agent/health/message.h"

typedef struct HealthChild HealthChild;

/* Starts the helper. cursor: see HealthMessage, "" for none. *ret_fd is the pipe, borrowed: while
 * it is readable, the caller calls health_child_read(). Returns a negative errno with words. */
int health_child_start(HealthChild **ret, const char *cursor, int *ret_fd, Error *reterr);

/* Kills the process, and waits for its end. One that does not end within 20 ms is left behind. NULL
 * is allowed. Returns NULL. */
HealthChild *health_child_free(HealthChild *child);
DEFINE_CLEANUP(HealthChild *, health_child_free);

/* Reads available bytes, at most as many as one message can have. Returns 1 if there are bytes,
 * which can lack a complete line, 0 if none came, or -EPIPE at the end of the helper. Returns
 * -EBADMSG for a line that is too long, or another negative errno of the read. Complete lines that
 * were not taken stay. */
int health_child_read(HealthChild *child);

/* Takes the next complete line, without its newline. It is borrowed until the next read. Returns
 * NULL if there is none. */
const char *health_child_take(HealthChild *child, size_t *ret_n);

/* Ends the process with SIGKILL. graceful: it has closed its pipe, so it ends without a signal.
 * Returns true if it has ended, with a description such as "exit code 1" or "signal 9" in text,
 * which has size bytes. Otherwise the caller calls again later, not graceful. */
bool health_child_end(HealthChild *child, bool graceful, char *text, size_t size);
