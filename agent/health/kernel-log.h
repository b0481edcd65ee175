/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the lines of the kernel: from the system journal of this host, from journal files in a
 * folder, or as plain lines from a named pipe. The agent cannot read /dev/kmsg, because it has no
 * privilege; the journal needs only the group systemd-journal. The journal has lines that were
 * written while the reader did not run. Only compute-agent-health uses this: a read blocks on the
 * disk. */

#include "agent/health/message.h"

typedef struct KernelLog KernelLog;

typedef struct KernelLine {
        char text[HEALTH_LINE_MAX + 1]; /* the message, cut */
        bool quiet; /* the line is not new: it was read before the cursor was stored */
} KernelLine;

/* The source of the lines. All members can be NULL, which means the journal of this host. */
typedef struct KernelLogSource {
        const char *pipe;    /* path of a named pipe */
        const char *folder;  /* path of a folder with journal files */
        const char *cursor;  /* position after which lines are new; NULL: the start of this boot */
        uint64_t back_usec;  /* lines of this time before the cursor are read again as quiet */
        const char *boot_id; /* this boot */
} KernelLogSource;

/* Opens the source, and borrows its texts. Returns -ENOENT with words if no journal can be read, or
 * another negative errno with words. */
int kernel_log_open(KernelLog **ret, const KernelLogSource *source, Error *reterr);
KernelLog *kernel_log_free(KernelLog *log);
DEFINE_CLEANUP(KernelLog *, kernel_log_free);

/* Reads the next line. Returns 1, 0 if there is none now, or a negative errno. */
int kernel_log_read(KernelLog *log, KernelLine *ret);

/* Returns time (CLOCK_REALTIME) and boot of the line that was read last. */
int kernel_log_locate(KernelLog *log, uint64_t *ret_usec, char ret_boot_id[HEALTH_BOOT_SIZE]);

/* Returns the position behind the line that was read last. "": there is none. */
void kernel_log_get_cursor(KernelLog *log, char ret[HEALTH_CURSOR_SIZE]);

/* Returns the descriptor to wait for, and the longest wait in *ret_usec. After the wait the caller
 * reads until there is no line. */
int kernel_log_get_fd(KernelLog *log, uint64_t *ret_usec);
void kernel_log_process(KernelLog *log);
