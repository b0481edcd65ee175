/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes log messages. A message goes to the journal's socket if standard error is the journal's
 * stream. Otherwise, and if the journal does not accept the message, a line of text goes to
 * standard error. A missing socket counts as such a refusal. The line has the message without the
 * fields, the id and the place in the code, after "error: " (err and more important), "warning: "
 * or "debug: ". Levels between warning and debug have no such prefix. Each call formats on its own
 * stack and writes a line at once, so threads need no lock. The only state is the level, an atomic
 * integer. In a message, control characters and bytes that are not UTF-8 become spaces. The
 * message has less than LOG_TEXT_MAX bytes: the rest is cut. Values of fields are not cleaned, and
 * a field is cut at LOG_TEXT_MAX + 63 bytes with its name. Fields after the LOG_FIELDS_MAX-th are
 * dropped. errno is preserved. */

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/text.h"

#define LOG_FIELDS_MAX 8
#define LOG_TEXT_MAX   2048
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static atomic_int log_level = LOG_INFO;

static const char *const level_names[] = {
        [LOG_EMERG] = "emerg", [LOG_ALERT] = "alert",     [LOG_CRIT] = "crit",
        [LOG_ERR] = "err",     [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
        [LOG_INFO] = "info",   [LOG_DEBUG] = "debug",
};

void log_set_level(int level)
{
        atomic_store_explicit(&log_level, level, memory_order_relaxed);
}

int log_get_level(void)
{
        return atomic_load_explicit(&log_level, memory_order_relaxed);
}

int log_level_from_text(const char *text)
{
        /* The text can be the number of a syslog level, "0" to "7", instead of its name. */
        if (text[0] >= '0' && text[0] <= '7' && !text[1])
                return text[0] - '0';
        for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
                if (strcmp(text, level_names[i]) == 0)
                        return (int)i;
        return -EINVAL;
}

const char *log_level_to_text(int level)
{
        return level >= 0 && level < (int)ARRAY_SIZE(level_names) ? level_names[level] : NULL;
}

/* The variable JOURNAL_STREAM has device and inode of the stream that systemd connected
 * (sd-journal(3)). They must be those of standard error. */
bool log_is_to_journal(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
               fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* Sends one native entry with at most LOG_FIELDS_MAX fields. Returns a negative errno if the
 * journal did not accept it. sd_journal_sendv() returns 0 without the journal's socket, so that is
 * looked for first. */
static int write_journal(int level, const char *file, int line, const char *func,
                         const char *message_id, const char *const *fields, const char *text)
{
        char lines[6 + LOG_FIELDS_MAX][LOG_TEXT_MAX + 64];
        struct iovec iov[6 + LOG_FIELDS_MAX];
        int n = 0;

        if (access(JOURNAL_SOCKET, F_OK) < 0)
                return -errno;
        snprintf(lines[n++], sizeof(lines[0]), "PRIORITY=%d", level);
        snprintf(lines[n++], sizeof(lines[0]), "MESSAGE=%s", text);
        snprintf(lines[n++], sizeof(lines[0]), "CODE_FILE=%s", file);
        snprintf(lines[n++], sizeof(lines[0]), "CODE_LINE=%d", line);
        snprintf(lines[n++], sizeof(lines[0]), "CODE_FUNC=%s", func);
        if (message_id)
                snprintf(lines[n++], sizeof(lines[0]), "MESSAGE_ID=%s", message_id);
        for (int i = 0; fields && i < 2 * LOG_FIELDS_MAX && fields[i]; i += 2)
                if (fields[i + 1])
                        snprintf(lines[n++], sizeof(lines[0]), "%s=%s", fields[i], fields[i + 1]);
        for (int i = 0; i < n; i++)
                iov[i] = (struct iovec){ .iov_base = lines[i], .iov_len = strlen(lines[i]) };
        return sd_journal_sendv(iov, n);
}

static void write_text(int level, const char *text)
{
        /* One write() for each line, so that lines of several threads do not mix. */
        char line[LOG_TEXT_MAX + 32];
        int n = snprintf(line, sizeof(line), "%s%s\n",
                         level <= LOG_ERR       ? "error: "
                         : level == LOG_WARNING ? "warning: "
                         : level == LOG_DEBUG   ? "debug: "
                                                : "",
                         text);

        if (n > 0 && write(STDERR_FILENO, line, MIN((size_t)n, sizeof(line) - 1)) < 0)
                return; /* a failed write to standard error cannot be reported elsewhere */
}

/* Cleans the message before it is written, because a text from a server must not forge a line of
 * the journal. Drops the message if vsnprintf() fails. */
void log_write(int level, const char *file, int line, const char *func, const char *message_id,
               const char *const fields[], const char *format, ...)
{
        int saved_errno = errno, n;
        char text[LOG_TEXT_MAX];
        va_list ap;

        va_start(ap, format);
        n = vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        if (n >= 0) {
                text_sanitize(text, ' ');
                if (!log_is_to_journal() ||
                    write_journal(level, file, line, func, message_id, fields, text) < 0)
                        write_text(level, text);
        }
        errno = saved_errno;
}
