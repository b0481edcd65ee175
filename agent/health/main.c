/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* compute-agent-health watches the health of devices for the agent, which starts it. It reads the
 * kernel's lines from the journal, and AER counters and links from sysfs. It applies the health
 * rules (agent/health/rule.h), and prints messages (agent/health/message.h) to standard output. It
 * is a process of its own, so that a flood of lines, a slow disk or an expensive pattern does not
 * stop the agent.
 *
 *   --cursor CURSOR   read the lines after this position; default: those of this boot
 *   --rules FOLDER    a folder of rules, up to 4 times. A file hides those of its name in later
 *                     folders. Default: the folders of the host.
 *   --pipe FILE, --journal FOLDER, --sysfs FOLDER
 *                     other sources, for tests
 *
 * Bad rules, and lines that cannot be read, are no errors of the program: it prints a message, and
 * tries a journal that failed again after 30 s. A folder of rules that exists and cannot be listed
 * is an error. So is a file of rules whose stat() fails, except for a link without a target. Lack
 * of memory and a failed output end the program with an error, too. Without rules the program
 * prints its state and ends. It also ends when the agent closes the pipe or ends.
 *
 * The position is printed after the messages of its lines. It is not printed while lines are read
 * again, or while a message waits because one of its rule and device was just printed
 * (HEALTH_REPEAT_USEC). So the next start reads the lines of a finding that was not printed, and
 * can print a finding again. It cannot make a finding that also counts lines before those that are
 * read again (see below). It cannot make one about an NVMe controller that has left sysfs, because
 * the addresses of controllers are not stored.
 *
 * The lines come from the system journal of this host, from journal files in a folder, or as plain
 * lines from a named pipe. The agent cannot read /dev/kmsg, because it has no privilege; the
 * journal needs only the group systemd-journal. The journal has lines that were written while the
 * program did not run. A read blocks on the disk.
 *
 * The start of the journal: the entry of the cursor was read before. The reader returns it, and the
 * entries before it within the longest time of the rules, again as quiet, at most REPLAY_MAX. So a
 * rule that counts lines within a time counts across a restart, but cases before these entries are
 * missing. If the journal no longer has the entry, reading begins at the nearest one, and nothing
 * is read again. Without a valid cursor it begins with this boot.
 *
 * journald splits the message of a process that writes to /dev/kmsg into identifier and text. The
 * reader joins them, so that a pattern sees the line as dmesg shows it. But the "[PID]" behind an
 * identifier is missing, because journald stores it in a field of its own. An identifier of 64
 * bytes or more is left out, and a long line is cut.
 *
 * Tests: tests/integration/agent/test_health.py */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>

#include "agent/health/message.h"
#include "agent/health/observer.h"
#include "base/clock.h"
#include "base/read-file.h"
#include "base/text.h"
#include "config/search.h"

#define STATE_USEC  (10 * USEC_PER_SEC) /* interval of the messages about the state */
#define REOPEN_USEC (30 * USEC_PER_SEC) /* pause before a journal that failed is opened again */
#define LINES_MAX   1000                /* lines that are read before messages are written */
#define FOLDERS_MAX 4
#define REPLAY_MAX  20000 /* entries that are read again */
#define PIPE_SIZE   4096  /* bytes that one read of the pipe takes */

typedef struct KernelLine {
        char text[HEALTH_LINE_MAX + 1]; /* the message, cut */
        bool quiet; /* the line is not new: it was read before the cursor was stored */
} KernelLine;

/* The source of the lines. With pipe and folder NULL it is the journal of this host. boot_id must
 * be set. */
typedef struct KernelLogSource {
        const char *pipe;    /* path of a named pipe */
        const char *folder;  /* path of a folder with journal files */
        const char *cursor;  /* position after which lines are new; NULL: the start of this boot */
        uint64_t back_usec;  /* lines of this time before the cursor are read again as quiet */
        const char *boot_id; /* this boot */
} KernelLogSource;

/* The reader of the lines. */
typedef struct KernelLog {
        KernelLogSource source;
        sd_journal *journal;
        size_t n_quiet; /* number of the next entries that were read before */
        int pipe_fd;
        char bytes[PIPE_SIZE];
        size_t n_bytes, begin; /* bytes of the pipe, and where the next line begins */
        bool skips; /* bytes are skipped up to the next newline: they end a line of PIPE_SIZE bytes
                       or more, whose beginning was dropped */
} KernelLog;

/* The program: the sources, and the rules that are applied to them. */
typedef struct Helper {
        const char *folders[FOLDERS_MAX + 1]; /* folders of rules; ends with NULL */
        size_t n_folders;
        const char *sysfs;
        KernelLogSource source;
        char boot_id[HEALTH_BOOT_SIZE];
        char cursor[HEALTH_CURSOR_SIZE]; /* "": none */
        HealthRules rules;
        HealthObserver *observer;
        KernelLog *log;       /* NULL: cannot be read */
        Error log_error;      /* why the lines cannot be read; code 0: they can */
        uint64_t reopen_usec; /* CLOCK_MONOTONIC of the next attempt */
        uint64_t state_usec;  /* CLOCK_MONOTONIC of the next message about the state */
} Helper;

/* The lines of the kernel */

static KernelLog *kernel_log_free(KernelLog *log)
{
        if (!log)
                return NULL;
        sd_journal_close(log->journal);
        closep(&log->pipe_fd);
        free(log);
        return NULL;
}
DEFINE_CLEANUP(KernelLog *, kernel_log_free);

/* Selects the kernel's lines. */
static int select_kernel(KernelLog *log)
{
        int r = sd_journal_set_data_threshold(log->journal, 2 * HEALTH_LINE_MAX);

        return r < 0 ? r : sd_journal_add_match(log->journal, "_TRANSPORT=kernel", 0);
}

/* Goes back from the entry of the cursor to the one before the first that will be read again, and
 * counts those that will be. The next sd_journal_next() returns the first of them. */
static int go_back(KernelLog *log)
{
        uint64_t usec = 0, at = 0;
        int r = sd_journal_get_realtime_usec(log->journal, &usec);

        for (log->n_quiet = 1; r >= 0; log->n_quiet++) {
                r = sd_journal_previous(log->journal);
                /* The first sd_journal_next() after a seek to the head returns the first entry. */
                if (r == 0)
                        return sd_journal_seek_head(log->journal);
                if (r > 0)
                        r = sd_journal_get_realtime_usec(log->journal, &at);
                if (r >= 0 && (at + log->source.back_usec < usec || log->n_quiet == REPLAY_MAX))
                        return 0;
        }
        return r;
}

/* Goes to the first entry of this boot. */
static int go_to_boot(KernelLog *log)
{
        sd_id128_t boot;
        int r = sd_id128_from_string(log->source.boot_id, &boot);

        return r < 0 ? r : sd_journal_seek_monotonic_usec(log->journal, boot, 0);
}

/* Goes to the place from which the next sd_journal_next() returns the first entry that will be
 * read. */
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

/* Opens the source, and borrows its texts. Returns a negative errno with words: -ENOENT if there is
 * no source that can be read, or another one. */
static int open_lines(KernelLog **ret, const KernelLogSource *source, Error *reterr)
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

/* Copies the line of the current entry, as dmesg shows it, but without the "[PID]" of a process. */
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

/* Reads the next line. Returns 1, 0 if there is none now, or a negative errno. */
static int read_line(KernelLog *log, KernelLine *ret)
{
        return log->journal ? read_entry(log, ret) : read_pipe(log, ret);
}

/* Returns time (CLOCK_REALTIME) and boot of the line that was read last. */
static int locate(void *userdata, uint64_t *ret_usec, char ret_boot_id[HEALTH_BOOT_SIZE])
{
        KernelLog *log = userdata;
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

/* Returns the position behind the line that was read last. "": there is none, or lines are still
 * read again. */
static void get_cursor(KernelLog *log, char ret[HEALTH_CURSOR_SIZE])
{
        _cleanup_free_ char *cursor = NULL;

        ret[0] = '\0';
        /* Entries that are read again would move the position back. */
        if (log->journal && log->n_quiet == 0 &&
            sd_journal_get_cursor(log->journal, &cursor) >= 0 &&
            strlen(cursor) < HEALTH_CURSOR_SIZE)
                strcpy(ret, cursor);
}

/* Returns the descriptor to wait for, and the longest wait in *ret_usec. After the wait the caller
 * reads until there is no line. */
static int get_fd(KernelLog *log, uint64_t *ret_usec)
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

static void helper_done(Helper *helper)
{
        kernel_log_free(helper->log);
        health_observer_free(helper->observer);
        health_rules_done(&helper->rules);
}

/* Messages */

/* Prints a message. Returns a negative errno: -EPIPE if the agent is gone, or another one. */
static int print(const HealthMessage *message)
{
        _cleanup_free_ char *text = health_message_to_text(message);

        if (!text)
                return -ENOMEM;
        if (printf("%s\n", text) < 0 || fflush(stdout) != 0)
                return errno > 0 ? -errno : -EIO;
        return 0;
}

/* Prints a problem with a rule, a file or a folder. The agent logs it. */
static void print_problem(const char *text, void *userdata)
{
        HealthMessage message = { .kind = HEALTH_PROBLEM };

        snprintf(message.text, sizeof(message.text), "%s", text);
        text_trim_cut(message.text);
        (void)print(&message);
}

/* Prints the state. waits: a message is left, so the position stays out. */
static int print_state(Helper *helper, bool waits)
{
        HealthMessage message = { .kind = HEALTH_STATE, .n_rules = helper->rules.n_items };

        snprintf(message.text, sizeof(message.text), "%s", helper->log_error.text);
        text_trim_cut(message.text);
        if (helper->log && !waits) {
                get_cursor(helper->log, message.cursor);
                if (message.cursor[0])
                        strcpy(helper->cursor, message.cursor);
        }
        helper->state_usec = clock_usec(CLOCK_MONOTONIC) + STATE_USEC;
        return print(&message);
}

/* Rules */

/* Reads one file of rules. A file that cannot be read is a problem, and an error only if memory is
 * short. */
static int read_file(Helper *helper, const char *path)
{
        _cleanup_free_ char *text = NULL;
        Error error;
        size_t n;
        int r = read_file_text(path, YAML_TEXT_MAX_BYTES, &text, &n, NULL);

        if (r < 0) {
                error_setf(&error, r, "%.150s: %s", path, strerror(-r));
                print_problem(error.text, NULL);
                return r == -ENOMEM ? r : 0;
        }
        return health_rules_add(&helper->rules, path, text, n, print_problem, NULL);
}

static int read_rules(Helper *helper, Error *reterr)
{
        _cleanup_(strings_freep) char **paths = NULL;
        int r = config_search_folders(helper->folders, ".yaml", print_problem, NULL, &paths,
                                      reterr);

        for (char **path = paths; r == 0 && *path; path++)
                r = read_file(helper, *path);
        return r == -ENOMEM ? error_oom(reterr) : r;
}

/* Lines */

/* Opens the source of lines. Lines before the position are read again, so their history begins
 * again. A failure to open is a part of the state, and is tried again. */
static void open_log(Helper *helper)
{
        helper->log_error = ERROR_NULL;
        helper->source.cursor = helper->cursor[0] ? helper->cursor : NULL;
        helper->source.back_usec = helper->rules.longest_usec;
        helper->source.boot_id = helper->boot_id;
        if (open_lines(&helper->log, &helper->source, &helper->log_error) == 0)
                health_observer_forget_lines(helper->observer);
        else
                helper->reopen_usec = clock_usec(CLOCK_MONOTONIC) + REOPEN_USEC;
}

/* Closes a source that failed. */
static void close_log(Helper *helper, int error)
{
        helper->log = kernel_log_free(helper->log);
        error_setf(&helper->log_error, error, "Cannot read the lines of the kernel: %s",
                   strerror(-error));
        helper->reopen_usec = clock_usec(CLOCK_MONOTONIC) + REOPEN_USEC;
}

/* Applies the rules to at most LINES_MAX lines. Returns 1 if there can be more, 0 (also after a
 * failed read), or -ENOMEM. */
static int read_lines(Helper *helper)
{
        KernelLine line;
        int n, r = 1;

        for (n = 0; n < LINES_MAX; n++) {
                r = read_line(helper->log, &line);
                if (r <= 0)
                        break;
                r = health_observer_line(helper->observer, line.text, line.quiet, locate,
                                         helper->log);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                close_log(helper, r);
        return n == LINES_MAX;
}

/* Writes the messages that are due. Then, or if STATE_USEC have passed, writes the state, with the
 * position if no message is left. */
static int print_due(Helper *helper)
{
        HealthMessage message;
        bool any = false;
        int r, taken;

        while ((taken = health_observer_take(helper->observer, clock_usec(CLOCK_MONOTONIC),
                                             &message)) > 0) {
                any = true;
                r = print(&message);
                if (r < 0)
                        return r;
        }
        return any || helper->state_usec <= clock_usec(CLOCK_MONOTONIC)
                       ? print_state(helper, taken < 0)
                       : 0;
}

/* Waits for lines, for the end of the agent, or for the next work that is due. */
static int wait_for_work(Helper *helper)
{
        uint64_t now_usec = clock_usec(CLOCK_MONOTONIC), log_usec = UINT64_MAX;
        int fd = helper->log ? get_fd(helper->log, &log_usec) : -1;
        uint64_t usec = MIN(health_observer_due_in_usec(helper->observer, now_usec), log_usec);
        struct pollfd fds[2] = { { .fd = fd, .events = POLLIN },
                                 { .fd = STDOUT_FILENO, .events = 0 } };

        usec = MIN(usec, helper->state_usec - MIN(helper->state_usec, now_usec));
        if (!helper->log)
                usec = MIN(usec, helper->reopen_usec - MIN(helper->reopen_usec, now_usec));
        if (poll(fds, 2, (int)(usec / USEC_PER_MSEC) + 1) < 0 && errno != EINTR)
                return -errno;
        if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
                return -EPIPE;
        if (helper->log && helper->log->journal)
                (void)sd_journal_process(helper->log->journal);
        return 0;
}

/* Runs until the agent closes the pipe. Returns a negative errno with words if it must end before.
 */
static int watch(Helper *helper, Error *reterr)
{
        int r = health_observer_new(&helper->observer, &helper->rules, helper->sysfs,
                                    helper->boot_id);
        bool more;

        while (r >= 0) {
                if (!helper->log && helper->reopen_usec <= clock_usec(CLOCK_MONOTONIC))
                        open_log(helper);
                r = helper->log ? read_lines(helper) : 0;
                more = r > 0;
                if (r >= 0)
                        r = health_observer_read(helper->observer, clock_usec(CLOCK_MONOTONIC),
                                                 clock_usec(CLOCK_REALTIME));
                if (r >= 0)
                        r = print_due(helper);
                if (r >= 0 && !more)
                        r = wait_for_work(helper);
        }
        return r == -EPIPE ? 0 : error_setf(reterr, r, "%s", strerror(-r));
}

/* Program */

static int parse_options(Helper *helper, int argc, char *argv[])
{
        enum { RULES, CURSOR, PIPE, JOURNAL, SYSFS };
        static const struct option options[] = {
                { "rules", required_argument, NULL, RULES },
                { "cursor", required_argument, NULL, CURSOR },
                { "pipe", required_argument, NULL, PIPE },
                { "journal", required_argument, NULL, JOURNAL },
                { "sysfs", required_argument, NULL, SYSFS },
                { 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (c == RULES && helper->n_folders < FOLDERS_MAX)
                        helper->folders[helper->n_folders++] = optarg;
                else if (c == CURSOR && strlen(optarg) < sizeof(helper->cursor))
                        strcpy(helper->cursor, optarg);
                else if (c == PIPE)
                        helper->source.pipe = optarg;
                else if (c == JOURNAL)
                        helper->source.folder = optarg;
                else if (c == SYSFS)
                        helper->sysfs = optarg;
                else
                        return -EINVAL;
        }
        return optind < argc ? -EINVAL : 0;
}

static int run(Helper *helper, Error *reterr)
{
        sd_id128_t boot;
        int r = sd_id128_get_boot(&boot);

        if (r < 0)
                return error_setf(reterr, r, "Cannot read the boot id: %s", strerror(-r));
        (void)sd_id128_to_string(boot, helper->boot_id);
        if (helper->n_folders == 0) {
                helper->folders[0] = HEALTH_ETC_DIR;
                helper->folders[1] = HEALTH_RULES_DIR;
        }
        r = read_rules(helper, reterr);
        if (r < 0)
                return r;
        if (helper->rules.n_items == 0)
                return print_state(helper, false);
        return watch(helper, reterr);
}

int main(int argc, char *argv[])
{
        _cleanup_(helper_done) Helper helper = { .sysfs = "/sys" };
        Error error = ERROR_NULL;
        int r;

        /* Without SIGPIPE, a write to a closed pipe returns EPIPE. SIGTERM ends the process with
         * the agent. */
        (void)signal(SIGPIPE, SIG_IGN);
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (parse_options(&helper, argc, argv) < 0) {
                fputs("compute-agent-health: it is started by compute-agentd(8)\n", stderr);
                return EXIT_FAILURE;
        }
        r = run(&helper, &error);
        if (r >= 0)
                return EXIT_SUCCESS;
        fprintf(stderr, "compute-agent-health: %s\n", error_text(&error, r));
        return EXIT_FAILURE;
}
