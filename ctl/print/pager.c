/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/pager.h"

#include <fcntl.h>
#include <langinfo.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define WORDS_MAX 16

/* $SYSTEMD_PAGER or $PAGER. NULL: not set; "" or "cat": none is wanted. */
static const char *pager_wish(void)
{
        const char *wish = secure_getenv("SYSTEMD_PAGER");

        return wish ? wish : secure_getenv("PAGER");
}

/* No shell: a pager is a program and its arguments, split at blanks. */
static void exec_words(char *command)
{
        char *words[WORDS_MAX + 1], *word;
        size_t n = 0;

        while (n < WORDS_MAX && (word = strsep(&command, " \t")))
                if (word[0])
                        words[n++] = word;
        words[n] = NULL;
        if (n > 0)
                (void)execvp(words[0], words);
}

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

static _Noreturn void run_pager(const char *wish, int input)
{
        _cleanup_free_ char *words = wish ? strdup(wish) : NULL;

        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(input, STDIN_FILENO);
        setenv("LESS", "FRSXMK", true);
        setenv("LESSSECURE", "1", true); /* no shell and no files from inside, also under sudo */
        if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
                setenv("LESSCHARSET", "utf-8", true);
        if (words)
                exec_words(words);
        (void)execlp("less", "less", NULL);
        /* more(1) is no substitute: it counts colours as columns, and waits at the end of one page.
         */
        copy_input();
        _exit(EXIT_SUCCESS);
}

pid_t ctl_pager_open(void)
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
                close(pipe_fds[1]); /* else copy_input() waits for its own end */
                run_pager(wish, pipe_fds[0]);
        }
        close(pipe_fds[0]);
        if (pid > 0) {
                /* Whoever quits the pager early, or presses ^C in it, ends the reading, and not
                 * this process before its exit code is known. */
                signal(SIGPIPE, SIG_IGN);
                signal(SIGINT, SIG_IGN);
                dup2(pipe_fds[1], STDOUT_FILENO);
        }
        close(pipe_fds[1]);
        return MAX(pid, 0);
}

void ctl_pager_close(pid_t pager)
{
        fclose(stdout);
        while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
                ;
}
