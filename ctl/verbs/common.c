/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parts of all verbs: the connection to the agent, printing according to the options, the pager,
 * and the question before a change.
 *
 * On a terminal, the output of a verb that opens the pager goes through $SYSTEMD_PAGER, else
 * $PAGER, else less(1). It does not if --no-pager is given, or if the first of the two variables
 * that is set is "" or "cat". If no pager can be started, the output is printed without one. In
 * contrast to systemctl(1), $SYSTEMD_LESS is not read. The pager replaces standard output and the
 * bus is closed, so everything must be fetched before it starts. Only a person at a terminal is
 * asked before a change (decision operation/consent). */

#include "ctl/verbs/common.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/text.h"
#include "ctl/ask/bus.h"
#include "ctl/print/status.h"

#define PAGER_WORDS_MAX 16
#define BLANKS          " \t\r\n"

void ctl_print_document(Ctl *ctl, const json_t *document,
                        void (*print)(const json_t *document, CtlPage *page))
{
        if (ctl->options.json)
                ctl_json_print(document, ctl->options.json, &ctl->page);
        else
                print(document, &ctl->page);
}

/* Prints a text, each line escaped. */
static _printf_(2, 0) void print_lines(CtlPage *page, const char *format, va_list ap)
{
        _cleanup_free_ char *text = text_vformat(format, ap);
        char *rest = text, *line;

        page->failed |= !text;
        while ((line = strsep(&rest, "\n"))) {
                ctl_page_write(page, CTL_PLAIN, "%s", line);
                if (rest)
                        fputc('\n', page->output);
        }
}

void ctl_print_done(Ctl *ctl, json_t *document, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        if (ctl->options.json)
                ctl_json_print(document, ctl->options.json, &ctl->page);
        else if (!ctl->options.quiet)
                print_lines(&ctl->page, format, ap);
        va_end(ap);
        json_decref(document);
}

bool ctl_must_ask(const Ctl *ctl)
{
        return !ctl->options.yes && !ctl->options.dry_run && isatty(STDIN_FILENO);
}

/* Checks whether an answer is "y" or "yes", in letters of either case. Any other answer means no,
 * also an empty line. */
static bool is_consent(const char *answer)
{
        static const char *const words[] = { "y", "yes" };
        size_t start, length;

        start = strspn(answer, BLANKS);
        length = strcspn(answer + start, BLANKS);
        if (answer[start + length + strspn(answer + start + length, BLANKS)])
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (length == strlen(words[i]) &&
                    strncasecmp(answer + start, words[i], length) == 0)
                        return true;
        return false;
}

/* Writes "question [y/N] " to the controlling terminal, and waits for a line of standard input.
 * Without a controlling terminal, which setsid(1) removes, writes to standard error. Returns
 * -ECANCELED with words unless the answer is yes. */
static int ask(const char *question, Error *reterr)
{
        _cleanup_fclose_ FILE *terminal = fopen("/dev/tty", "we");
        FILE *output = terminal ? terminal : stderr;
        _cleanup_free_ char *answer = NULL;
        size_t size = 0;

        fflush(stdout);
        fprintf(output, "%s [y/N] ", question);
        fflush(output);
        if (getline(&answer, &size, stdin) < 0) {
                fputc('\n', output);
                return error_setf(reterr, ECANCELED, "Nothing was changed");
        }
        return is_consent(answer) ? 0 : error_setf(reterr, ECANCELED, "Nothing was changed");
}

int ctl_ask(Ctl *ctl, const json_t *document, void (*print)(const json_t *document, CtlPage *page),
            const char *question, Error *reterr)
{
        if (document && !ctl->options.json && !ctl->options.quiet) {
                print(document, &ctl->page);
                fputc('\n', ctl->page.output);
        }
        return ask(question, reterr);
}

void ctl_print_error(const Ctl *ctl, Error *error, int r)
{
        if (ctl->options.host)
                (void)error_prefixf(error, r, "%s", ctl->options.host);
        fprintf(stderr, "computectl: %s\n", error_text(error, r));
}

void ctl_note_old_spelling(const Ctl *ctl, const char *old, const char *now)
{
        if (!ctl->options.quiet)
                fprintf(stderr, "computectl: %s is now %s. The next release removes %s\n", old, now,
                        old);
}

/* Returns $SYSTEMD_PAGER, else $PAGER; NULL: neither is set. "" and "cat" mean no pager.
 * secure_getenv(3) ignores both variables in a setuid process. */
static const char *pager_wish(void)
{
        const char *wish = secure_getenv("SYSTEMD_PAGER");

        return wish ? wish : secure_getenv("PAGER");
}

/* Replaces the process by a pager. No shell is used: the command is a program and its arguments,
 * split at blanks. Words after the PAGER_WORDS_MAX-th are dropped. Returns only if this fails. */
static void exec_words(char *command)
{
        char *words[PAGER_WORDS_MAX + 1], *word;
        size_t n = 0;

        while (n < PAGER_WORDS_MAX && (word = strsep(&command, " \t")))
                if (word[0])
                        words[n++] = word;
        words[n] = NULL;
        if (n > 0)
                (void)execvp(words[0], words);
}

/* Copies standard input to standard output if no pager could be started. */
static void copy_input(void)
{
        char buffer[4096];
        ssize_t n;

        while ((n = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0)
                for (ssize_t done = 0, m; done < n; done += m) {
                        m = write(STDOUT_FILENO, buffer + done, (size_t)(n - done));
                        if (m <= 0)
                                return;
                }
}

/* Replaces the child by a pager that reads the pipe: the wanted one, else less(1), else
 * copy_input(). The options of less are those of systemctl(1). */
static _Noreturn void run_pager(const char *wish, int input)
{
        _cleanup_free_ char *words = wish ? strdup(wish) : NULL;

        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(input, STDIN_FILENO);
        setenv("LESS", "FRSXMK", true);
        setenv("LESSSECURE", "1", true); /* less offers no shell and no files, also under sudo */
        if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
                setenv("LESSCHARSET", "utf-8", true);
        if (words)
                exec_words(words);
        (void)execlp("less", "less", NULL);
        /* more(1) is no replacement: it counts colours as columns, and waits at the end of one
         * page. */
        copy_input();
        _exit(EXIT_SUCCESS);
}

/* Starts the pager and redirects standard output to it. Returns its process. Returns 0 without a
 * pager; the output is then unchanged. */
static pid_t start_pager(void)
{
        const char *wish = pager_wish();
        int pipe_fds[2];
        pid_t pid;

        if (wish && (wish[0] == '\0' || strcmp(wish, "cat") == 0))
                return 0;
        fflush(stdout);
        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return 0;
        pid = fork();
        if (pid == 0) {
                close(pipe_fds[1]); /* else copy_input() never sees the end of its input */
                run_pager(wish, pipe_fds[0]);
        }
        close(pipe_fds[0]);
        if (pid > 0) {
                /* If the reader quits early or presses ^C, only the pager must end. This process
                 * must still return its exit code. */
                signal(SIGPIPE, SIG_IGN);
                signal(SIGINT, SIG_IGN);
                dup2(pipe_fds[1], STDOUT_FILENO);
        }
        close(pipe_fds[1]);
        return MAX(pid, 0);
}

void ctl_open_pager(Ctl *ctl)
{
        ctl->bus = sd_bus_flush_close_unref(ctl->bus);
        if (ctl->page.style.terminal && !ctl->options.no_pager)
                ctl->pager = start_pager();
}

int ctl_connect(Ctl *ctl, Error *reterr)
{
        return ctl->bus ? 0 : ctl_bus_open(&ctl->bus, ctl->options.host, reterr);
}

int ctl_read_unit(Ctl *ctl, CtlUnit *ret)
{
        int r = ctl_connect(ctl, NULL);

        return r < 0 ? r : ctl_unit_read(ctl->bus, ret);
}

int ctl_fetch(Ctl *ctl, const char *document, const char *format, json_t **ret, Error *reterr)
{
        int r = ctl_connect(ctl, reterr);

        return r < 0 ? r : ctl_bus_describe(ctl->bus, document, format, ret, reterr);
}

int ctl_call(Ctl *ctl, const char *method, uint64_t timeout_usec, char **ret, Error *reterr)
{
        int r = ctl_connect(ctl, reterr);

        return r < 0 ? r : ctl_bus_call(ctl->bus, method, timeout_usec, ret, reterr, "");
}

int ctl_call_document(Ctl *ctl, const char *method, uint64_t timeout_usec, const char *format,
                      json_t **ret, Error *reterr)
{
        _cleanup_free_ char *text = NULL;
        int r = ctl_call(ctl, method, timeout_usec, &text, reterr);

        return r < 0 ? r : ctl_json_read_document(text, format, ret, reterr);
}

int ctl_fetch_status(Ctl *ctl, json_t **ret, Error *reterr)
{
        Error why = ERROR_NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_STATUS, STATUS_FORMAT, ret, &why);

        if (r != CTL_NOT_RUNNING)
                return r < 0 ? error_setf(reterr, r, "%s", why.text) : 0;
        *ret = ctl_status_make_not_running(why.text);
        return *ret ? 0 : error_oom(reterr);
}
