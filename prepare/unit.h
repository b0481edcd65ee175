/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts units of systemd through systemctl, and reads their last lines through journalctl. */

#include <jansson.h>
#include <sys/types.h>

#include "base/error.h"

#define PREPARE_UNIT_LINES 10

/* Begins "systemctl start" of the unit "NAME@INSTANCE.service" of the template "NAME@.service".
 * Before, checks that its end with success means that the unit ran: it exists, is a oneshot service
 * without RemainAfterExit=yes, and has no condition. A unit that runs already is not started twice:
 * the process waits for it. Yields the name of the unit, which the caller frees, also after a
 * failure (NULL: memory ran out), and the process for prepare_unit_look(). Returns -EINVAL if the
 * unit fails this check or its conditions cannot be read, or another negative errno, with words.
 * Blocks for a call of systemctl and one of busctl, each for about 10 s at most. */
int prepare_unit_start(const char *template, const char *instance, char **ret_unit, pid_t *ret,
                       Error *reterr);

/* Returns true if systemd says that this unit runs, stops or will start again by its Restart=, or
 * gives no answer. template: also the name of a unit of it. Blocks for about 10 s at most. */
bool prepare_unit_runs(const char *template, const char *instance);

typedef enum PrepareUnitEnd {
        PREPARE_UNIT_RUNNING, /* it has not ended */
        PREPARE_UNIT_DONE,    /* it succeeded */
        PREPARE_UNIT_FAILED,
        PREPARE_UNIT_LATE,    /* its time is over, or systemctl cannot start; it can still run */
        PREPARE_UNIT_STOPPED, /* it failed because the system is about to stop: no result */
} PrepareUnitEnd;

/* Looks whether a unit that was started has ended, or its time (CLOCK_MONOTONIC) has. The failure
 * of systemctl alone is no end: a restart of systemd cuts its connection. While the unit still runs
 * by systemd's words, or systemd gives no answer, "systemctl start" begins again, which waits for a
 * unit that runs. A unit that was stopped has failed once its processes have ended, about a second
 * later. pid: the process that is waited for, 0 after the end. Blocks after a failure, for two
 * calls of systemctl, each for about 10 s at most. */
PrepareUnitEnd prepare_unit_look(const char *unit, pid_t *pid, uint64_t until_usec);

/* Returns a new list of the last lines of the unit's last messages in the journal, at most
 * PREPARE_UNIT_LINES of at most 200 bytes. Only the first 64 KiB of those messages count. It is
 * empty if the journal cannot be read. NULL: memory ran out. Blocks for about 10 s at most. */
json_t *prepare_unit_lines(const char *unit);
