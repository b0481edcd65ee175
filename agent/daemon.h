/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The daemon put together: one sd-event loop with signals and watchdog, and on it the driver, the
 * claims, the tracker and the bus. It owns their lives and tells systemd how they are; it decides
 * nothing else.
 *
 * SIGHUP and the D-Bus method Reload read the configuration again. A configuration that cannot be
 * used is refused with words, and the one in force stays. Else a new driver and a new tracker take
 * the place of the old ones, while the claims and the bus live on; the reload is done when the
 * first cycle with the new settings has ended. */

#include "config/config.h"

typedef enum DaemonMode {
        DAEMON_SERVE,   /* until SIGTERM or SIGINT */
        DAEMON_ONCE,    /* one cycle; no bus */
        DAEMON_DRY_RUN, /* one cycle that stops before the first write, and prints the plan */
} DaemonMode;

#define DAEMON_EXIT_BUSY 75 /* sysexits(3): another one has the state folder; try again later */

/* Tells systemd why the service ends; systemd keeps the text for "computectl status". Does nothing
 * without systemd. */
void daemon_notify_failed(const char *words);

/* Runs until done. 0: served to its end, or the one cycle published everything (printed its plan);
 * EXIT_FAILURE: it did not, and the words are in the log; DAEMON_EXIT_BUSY: it touched nothing.
 * config is taken; config_file is where a reload reads it again (NULL as for config_load()),
 * borrowed. */
int daemon_run(Config *config, const char *config_file, DaemonMode mode);
