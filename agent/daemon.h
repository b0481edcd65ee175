/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The daemon put together: one sd-event loop with signals and watchdog, and on it the driver, the
 * claims, the tracker and the bus. It owns their lives and tells systemd how they are; it decides
 * nothing else. */

#include "agent/config.h"
#include "base/error.h"

typedef enum DaemonMode {
        DAEMON_SERVE,   /* until SIGTERM or SIGINT */
        DAEMON_ONCE,    /* one cycle; no bus */
        DAEMON_DRY_RUN, /* one cycle that stops before the first write, and prints the plan */
} DaemonMode;

/* Runs until done. 0: served to its end, or the one cycle published everything (printed its plan);
 * EXIT_FAILURE: it did not, and the words are in the log. config is borrowed. */
int daemon_run(const Config *config, DaemonMode mode);
