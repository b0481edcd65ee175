/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Waits for an HTTP server on a Unix socket that this process has started. */

#include <stdint.h>
#include <sys/types.h>

/* Waits until the server answers "GET /" with status 200. pid is the server, a child of this
 * process. Returns 0, -ETIMEDOUT after the limit, or -ECHILD if the server ended. It is then
 * reaped. Returns -ENAMETOOLONG at once for a path that no socket can have. Blocks for limit_usec
 * and one pause of 100 ms at most, also if the server accepts connections and does not answer. */
int local_server_wait(const char *socket_path, pid_t pid, uint64_t limit_usec);
