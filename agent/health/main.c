/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* compute-agent-health watches the health of devices for the agent, which starts it. It reads the
 * kernel's lines from the journal, applies the health rules (agent/health/rule.h), and prints
 * messages (agent/health/message.h) to standard output. It is a process of its own, so that a flood
 * of lines, a slow disk or an expensive pattern costs the agent nothing.
 *
 *   --cursor CURSOR   read the lines after this position; default: those of this boot
 *   --rules FOLDER    a folder of rules; the first one counts; default: those of the host
 *   --pipe FILE, --journal FOLDER, --sysfs FOLDER
 *                     other sources, for tests
 *
 * Without rules it prints its state and ends. It also ends when the agent closes the pipe.
 *
 * Tests: tests/integration/agent/test_health.py */

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <systemd/sd-id128.h>

#include "agent/health/kernel-log.h"
#include "agent/health/observer.h"
#include "base/clock.h"
#include "base/read-file.h"
#include "base/text.h"
#include "config/search.h"

#define STATE_USEC  (10 * USEC_PER_SEC) /* interval of the messages about the state */
#define REOPEN_USEC (30 * USEC_PER_SEC) /* pause before a journal that failed is opened again */
#define LINES_MAX   1000                /* lines that are read before messages are written */
#define FOLDERS_MAX 4

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

static void helper_done(Helper *helper)
{
        kernel_log_free(helper->log);
        health_observer_free(helper->observer);
        health_rules_done(&helper->rules);
}

/* Prints a message. Returns a negative errno, above all -EPIPE when the agent is gone. */
static int print(const HealthMessage *message)
{
        _cleanup_free_ char *text = health_message_to_text(message);

        if (!text)
                return -ENOMEM;
        if (printf("%s\n", text) < 0 || fflush(stdout) != 0)
                return errno > 0 ? -errno : -EIO;
        return 0;
}

/* Prints a problem with a rule. The agent logs it. */
static void print_problem(const char *text, void *userdata)
{
        HealthMessage message = { .kind = HEALTH_PROBLEM };

        snprintf(message.text, sizeof(message.text), "%s", text);
        text_trim_cut(message.text);
        (void)print(&message);
}

static int print_state(Helper *helper)
{
        HealthMessage message = { .kind = HEALTH_STATE, .n_rules = helper->rules.n_items };

        snprintf(message.text, sizeof(message.text), "%s", helper->log_error.text);
        text_trim_cut(message.text);
        if (helper->log) {
                kernel_log_get_cursor(helper->log, message.cursor);
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

/* Replaces the observer by one without a history. */
static int renew_observer(Helper *helper)
{
        helper->observer = health_observer_free(helper->observer);
        return health_observer_new(&helper->observer, &helper->rules, helper->sysfs,
                                   helper->boot_id);
}

/* Opens the source of lines. Lines before the position are read again, so the history begins again.
 * A failure to open is a part of the state, and is tried again. Returns -ENOMEM on failure. */
static int open_log(Helper *helper)
{
        helper->log_error = ERROR_NULL;
        helper->source.cursor = helper->cursor[0] ? helper->cursor : NULL;
        helper->source.back_usec = health_rules_longest(&helper->rules);
        helper->source.boot_id = helper->boot_id;
        if (kernel_log_open(&helper->log, &helper->source, &helper->log_error) == 0)
                return renew_observer(helper);
        helper->reopen_usec = clock_usec(CLOCK_MONOTONIC) + REOPEN_USEC;
        return 0;
}

/* Closes a source that failed. */
static void close_log(Helper *helper, int error)
{
        helper->log = kernel_log_free(helper->log);
        error_setf(&helper->log_error, error, "Cannot read the lines of the kernel: %s",
                   strerror(-error));
        helper->reopen_usec = clock_usec(CLOCK_MONOTONIC) + REOPEN_USEC;
}

static int locate(void *userdata, uint64_t *ret_usec, char ret_boot_id[HEALTH_BOOT_SIZE])
{
        return kernel_log_locate(userdata, ret_usec, ret_boot_id);
}

/* Applies the rules to at most LINES_MAX lines. Returns 1 if there can be more, 0, or -ENOMEM. */
static int read_lines(Helper *helper)
{
        KernelLine line;
        int n, r = 1;

        for (n = 0; n < LINES_MAX; n++) {
                const HealthLineInput input = { line.text, false, locate, helper->log };
                HealthLineInput next = input;

                r = kernel_log_read(helper->log, &line);
                if (r <= 0)
                        break;
                next.quiet = line.quiet;
                r = health_observer_line(helper->observer, &next);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                close_log(helper, r);
        return n == LINES_MAX;
}

/* Writes the messages that are due, and then the position that they belong to. */
static int print_due(Helper *helper)
{
        HealthMessage message;
        bool any = false;
        int r = 0;

        while (r == 0 &&
               health_observer_take(helper->observer, clock_usec(CLOCK_MONOTONIC), &message)) {
                any = true;
                r = print(&message);
        }
        if (r == 0 && (any || helper->state_usec <= clock_usec(CLOCK_MONOTONIC)))
                r = print_state(helper);
        return r;
}

/* Waits for lines, for the end of the agent, or for the next work that is due. */
static int wait_for_work(Helper *helper)
{
        uint64_t now_usec = clock_usec(CLOCK_MONOTONIC), log_usec = UINT64_MAX;
        int fd = helper->log ? kernel_log_get_fd(helper->log, &log_usec) : -1;
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
        if (helper->log)
                kernel_log_process(helper->log);
        return 0;
}

/* Runs until the agent closes the pipe. */
static int watch(Helper *helper, Error *reterr)
{
        int r = renew_observer(helper);
        bool more;

        while (r >= 0) {
                if (!helper->log && helper->reopen_usec <= clock_usec(CLOCK_MONOTONIC))
                        r = open_log(helper);
                if (r >= 0)
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
                return print_state(helper);
        return watch(helper, reterr);
}

int main(int argc, char *argv[])
{
        _cleanup_(helper_done) Helper helper = { .sysfs = "/sys" };
        Error error = ERROR_NULL;
        int r;

        /* A write to a closed pipe is an error, and the process ends with the agent. */
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
