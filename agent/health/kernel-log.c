/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads lines of the kernel with sd-journal, or from a named pipe.
 *
 * The start of the journal: the entry of the cursor was read before. The reader goes back from it
 * by at most REPLAY_MAX entries, and returns these and the entry itself as quiet. So a rule that
 * counts lines within a time counts across a restart. If the journal no longer has the entry,
 * reading begins at the nearest one. Without a cursor it begins with this boot.
 *
 * journald splits the message of a process that writes to /dev/kmsg into identifier and text. The
 * reader joins them, so that a pattern sees the line as dmesg shows it.
 *
 * Tests: tests/integration/agent/test_health.py */

#include "agent/health/kernel-log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <systemd/sd-journal.h>

#include "base/clock.h"
#include "base/text.h"

#define REPLAY_MAX 20000 /* entries that are read again */
#define PIPE_SIZE  4096  /* bytes that one read of the pipe takes */

struct KernelLog {
        KernelLogSource source;
        sd_journal *journal;
        size_t n_quiet; /* entries that were read before */
        int pipe_fd;
        char bytes[PIPE_SIZE];
        size_t n_bytes, begin; /* bytes of the pipe, and where the next line begins */
        bool skips;            /* the rest of a line that is too long is skipped */
};

KernelLog *kernel_log_free(KernelLog *log)
{
        if (!log)
                return NULL;
        sd_journal_close(log->journal);
        closep(&log->pipe_fd);
        free(log);
        return NULL;
}

/* Selects the kernel's lines. */
static int select_kernel(KernelLog *log)
{
        int r = sd_journal_set_data_threshold(log->journal, 2 * HEALTH_LINE_MAX);

        return r < 0 ? r : sd_journal_add_match(log->journal, "_TRANSPORT=kernel", 0);
}

/* Goes back from the entry of the cursor, and counts the entries that are not new. */
static int go_back(KernelLog *log)
{
        uint64_t usec = 0, at = 0;
        int r = sd_journal_get_realtime_usec(log->journal, &usec);

        for (log->n_quiet = 1; r >= 0 && log->n_quiet < REPLAY_MAX; log->n_quiet++) {
                r = sd_journal_previous(log->journal);
                if (r <= 0)
                        break;
                r = sd_journal_get_realtime_usec(log->journal, &at);
                if (r >= 0 && at + log->source.back_usec < usec)
                        break;
        }
        if (r < 0)
                return r;
        /* The first sd_journal_next() after a seek to the head returns the first entry. */
        if (r == 0)
                return sd_journal_seek_head(log->journal);
        return 0;
}

/* Goes to the first entry of this boot. */
static int go_to_boot(KernelLog *log)
{
        sd_id128_t boot;
        int r = sd_id128_from_string(log->source.boot_id, &boot);

        return r < 0 ? r : sd_journal_seek_monotonic_usec(log->journal, boot, 0);
}

/* Goes to the first entry that will be read. */
static int seek(KernelLog *log)
{
        const char *cursor = log->source.cursor;
        int r;

        if (!cursor || sd_journal_seek_cursor(log->journal, cursor) < 0)
                return go_to_boot(log);
        r = sd_journal_next(log->journal);
        if (r <= 0)
                return r;
        if (sd_journal_test_cursor(log->journal, cursor) > 0)
                return go_back(log);
        /* The entry is gone. The one found here is new, and must be returned by the next read. */
        r = sd_journal_previous(log->journal);
        return r == 0 ? sd_journal_seek_head(log->journal) : MIN(r, 0);
}

static int open_journal(KernelLog *log, Error *reterr)
{
        int r = log->source.folder
                        ? sd_journal_open_directory(&log->journal, log->source.folder, 0)
                        : sd_journal_open(&log->journal, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM);

        if (r < 0)
                return error_setf(reterr, r, "Cannot open the system journal: %s", strerror(-r));
        if (!log->source.folder && sd_journal_has_runtime_files(log->journal) <= 0 &&
            sd_journal_has_persistent_files(log->journal) <= 0)
                return error_setf(
                        reterr, ENOENT,
                        "No file of the system journal can be read. Reading needs the group systemd-journal");
        r = select_kernel(log);
        /* From this call on the descriptor announces new entries. Entries that are written between
         * the last read and a later call would wait for the next ones. */
        if (r >= 0)
                r = sd_journal_get_fd(log->journal);
        if (r >= 0)
                r = seek(log);
        return r < 0 ? error_setf(reterr, r, "Cannot read the system journal: %s", strerror(-r))
                     : 0;
}

/* Opens the pipe also for writing, so that it has no end when its writer closes it. */
static int open_pipe(KernelLog *log, Error *reterr)
{
        log->pipe_fd = open(log->source.pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        return log->pipe_fd < 0 ? error_setf(reterr, errno, "Cannot open %s: %s", log->source.pipe,
                                             strerror(errno))
                                : 0;
}

int kernel_log_open(KernelLog **ret, const KernelLogSource *source, Error *reterr)
{
        _cleanup_(kernel_log_freep) KernelLog *log = calloc(1, sizeof(KernelLog));
        int r;

        if (!log)
                return error_oom(reterr);
        log->source = *source;
        log->pipe_fd = -EBADF;
        r = source->pipe ? open_pipe(log, reterr) : open_journal(log, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(log);
        return 0;
}

/* The journal */

/* Returns the value of a field of the current entry, borrowed, and its length. NULL: none. */
static const char *get_field(KernelLog *log, const char *name, size_t *ret_n)
{
        size_t prefix = strlen(name) + 1, n;
        const void *data;

        if (sd_journal_get_data(log->journal, name, &data, &n) < 0 || n < prefix)
                return NULL;
        *ret_n = n - prefix;
        return (const char *)data + prefix;
}

/* Copies the line of the current entry, as dmesg shows it. */
static void copy_entry(KernelLog *log, KernelLine *ret)
{
        char identifier[64] = "";
        const char *text;
        size_t n = 0;

        text = get_field(log, "SYSLOG_IDENTIFIER", &n);
        if (text && n > 0 && n < sizeof(identifier) && !(n == 6 && memcmp(text, "kernel", 6) == 0))
                snprintf(identifier, sizeof(identifier), "%.*s", (int)n, text);
        text = get_field(log, "MESSAGE", &n);
        snprintf(ret->text, sizeof(ret->text), "%s%s%.*s", identifier, identifier[0] ? ": " : "",
                 text ? (int)MIN(n, (size_t)HEALTH_LINE_MAX) : 0, text ? text : "");
}

static int read_entry(KernelLog *log, KernelLine *ret)
{
        int r = sd_journal_next(log->journal);

        if (r <= 0)
                return r;
        ret->quiet = log->n_quiet > 0;
        log->n_quiet -= log->n_quiet > 0;
        copy_entry(log, ret);
        return 1;
}

/* The pipe */

/* Takes one line of the bytes that were read. Returns 1, or 0 if no line is complete. */
static int take_line(KernelLog *log, KernelLine *ret)
{
        for (;;) {
                char *begin = log->bytes + log->begin;
                char *end = memchr(begin, '\n', log->n_bytes - log->begin);
                bool skipped = log->skips;

                if (!end)
                        return 0;
                log->begin = (size_t)(end - log->bytes) + 1;
                log->skips = false;
                if (skipped)
                        continue;
                ret->quiet = false;
                snprintf(ret->text, sizeof(ret->text), "%.*s", (int)(end - begin), begin);
                return 1;
        }
}

static int read_pipe(KernelLog *log, KernelLine *ret)
{
        ssize_t n;

        if (take_line(log, ret) > 0)
                return 1;
        memmove(log->bytes, log->bytes + log->begin, log->n_bytes - log->begin);
        log->n_bytes -= log->begin;
        log->begin = 0;
        if (log->n_bytes == sizeof(log->bytes)) {
                log->skips = true;
                log->n_bytes = 0;
        }
        n = read(log->pipe_fd, log->bytes + log->n_bytes, sizeof(log->bytes) - log->n_bytes);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        log->n_bytes += (size_t)n;
        return take_line(log, ret);
}

int kernel_log_read(KernelLog *log, KernelLine *ret)
{
        return log->journal ? read_entry(log, ret) : read_pipe(log, ret);
}

int kernel_log_locate(KernelLog *log, uint64_t *ret_usec, char ret_boot_id[HEALTH_BOOT_SIZE])
{
        const char *text;
        size_t n = 0;

        if (!log->journal) {
                *ret_usec = clock_usec(CLOCK_REALTIME);
                snprintf(ret_boot_id, HEALTH_BOOT_SIZE, "%s", log->source.boot_id);
                return 0;
        }
        text = get_field(log, "_BOOT_ID", &n);
        if (!text || n >= HEALTH_BOOT_SIZE)
                return -EBADMSG;
        snprintf(ret_boot_id, HEALTH_BOOT_SIZE, "%.*s", (int)n, text);
        return sd_journal_get_realtime_usec(log->journal, ret_usec);
}

void kernel_log_get_cursor(KernelLog *log, char ret[HEALTH_CURSOR_SIZE])
{
        _cleanup_free_ char *cursor = NULL;

        ret[0] = '\0';
        /* Entries that are read again would move the position back. */
        if (log->journal && log->n_quiet == 0 &&
            sd_journal_get_cursor(log->journal, &cursor) >= 0 &&
            strlen(cursor) < HEALTH_CURSOR_SIZE)
                strcpy(ret, cursor);
}

int kernel_log_get_fd(KernelLog *log, uint64_t *ret_usec)
{
        uint64_t usec;

        *ret_usec = UINT64_MAX;
        if (!log->journal)
                return log->pipe_fd;
        /* The time is absolute, CLOCK_MONOTONIC. */
        if (sd_journal_get_timeout(log->journal, &usec) >= 0 && usec != UINT64_MAX) {
                uint64_t now_usec = clock_usec(CLOCK_MONOTONIC);

                *ret_usec = usec > now_usec ? usec - now_usec : 0;
        }
        return sd_journal_get_fd(log->journal);
}

void kernel_log_process(KernelLog *log)
{
        if (log->journal)
                (void)sd_journal_process(log->journal);
}
