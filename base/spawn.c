/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests: tests/unit/drivers/host/test-rbd.c tests/unit/agent/health/test-monitor.c */

#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

static int set_files(posix_spawn_file_actions_t *actions, int output, int errors)
{
        int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

        if (r == 0 && output >= 0)
                r = posix_spawn_file_actions_adddup2(actions, output, STDOUT_FILENO);
        if (r == 0 && errors >= 0)
                r = posix_spawn_file_actions_adddup2(actions, errors, STDERR_FILENO);
        return r;
}

int spawn(const char *program, char *const argv[], int output, int errors, bool leads_group,
          pid_t *ret)
{
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        if (posix_spawnattr_init(&attributes) != 0) {
                posix_spawn_file_actions_destroy(&actions);
                return -ENOMEM;
        }
        sigemptyset(&none);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes,
                                 leads_group ? POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP
                                             : POSIX_SPAWN_SETSIGMASK);
        r = set_files(&actions, output, errors);
        if (r == 0)
                r = posix_spawnp(ret, program, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}
