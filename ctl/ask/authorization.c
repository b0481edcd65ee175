/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/ask/authorization.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM         "/usr/bin/pkttyagent"
#define TIMEOUT_USEC    (90 * USEC_PER_SEC) /* of a call; the agent gives up after 60 s */
#define START_WAIT_MSEC 5000

bool ctl_authorization_may_ask(void)
{
        return geteuid() != 0 && isatty(STDIN_FILENO);
}

void ctl_authorization_allow(sd_bus *bus)
{
        (void)sd_bus_set_allow_interactive_authorization(bus, true);
        (void)sd_bus_set_method_call_timeout(bus, TIMEOUT_USEC);
}

/* It asks about its parent process, which is us. */
static _Noreturn void run_agent(int ready)
{
        char number[16];

        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)fcntl(ready, F_SETFD, 0);
        snprintf(number, sizeof(number), "%d", ready);
        (void)execl(PROGRAM, PROGRAM, "--notify-fd", number, "--fallback", NULL);
        _exit(EXIT_FAILURE);
}

pid_t ctl_authorization_start(void)
{
        struct pollfd end = { .events = POLLHUP };
        int fds[2];
        pid_t pid;

        if (!ctl_authorization_may_ask() || access(PROGRAM, X_OK) < 0 || pipe2(fds, O_CLOEXEC) < 0)
                return 0;
        pid = fork();
        if (pid == 0)
                run_agent(fds[1]);
        close(fds[1]);
        end.fd = fds[0];
        /* It closes its end when it is known, or could not make itself known. */
        if (pid > 0)
                (void)poll(&end, 1, START_WAIT_MSEC);
        close(fds[0]);
        return pid > 0 ? pid : 0;
}

void ctl_authorization_stop(pid_t pid)
{
        if (pid == 0)
                return;
        /* It is told to go on, too: a terminal may have stopped it. */
        (void)kill(pid, SIGTERM);
        (void)kill(pid, SIGCONT);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
