/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The whole daemon: one sd-event loop with signals and watchdog, the driver, the claims, the
 * tracker, the claim queue and the bus. Only the service (DAEMON_SERVE) has the queue and the bus.
 * The daemon owns these parts and connects them. It reports their state to systemd, and the service
 * writes the metrics file.
 *
 * In the service, SIGHUP and the D-Bus method Reload read the configuration again. An invalid
 * configuration is rejected with words, and the one in force stays. So is one with another
 * state_dir, claim_db, host or identity, which need a restart. A valid one makes a new driver and a
 * new tracker, which replace the old ones. If they cannot be made, the old ones stay. After a
 * replacement the health rules are read again, too. Operations that wait for the old tracker, and
 * all tasks of the claim queue, fail. The claim database and the bus stay, and with [placement] the
 * results of the last audit. The counts of overwrites and the counters of the metrics are lost. The
 * reload ends with the first cycle of the new settings, also if that cycle fails, but after 30 s at
 * the latest. Until then Reload fails, and SIGHUP begins another reload afterwards. */

#include "config/config.h"

/* The work of one run of the program. */
typedef enum DaemonMode {
        DAEMON_SERVE, /* serves until SIGTERM or SIGINT, or on_startup_failure */
        DAEMON_ONCE,  /* one cycle, which publishes the tree, and sends no pending write of a claim;
                         no bus */
        DAEMON_DRY_RUN, /* one cycle that writes nothing, and prints the plan; no lock, no
                           database, no bus */
} DaemonMode;

#define DAEMON_EXIT_BUSY 75 /* sysexits(3): the state directory is in use */

/* Notifies systemd why the service ends. systemd keeps the text for "computectl status". Does
 * nothing without systemd. */
void daemon_notify_failed(const char *words);

/* Runs until the mode is done, and returns the exit code. 0: a signal ended the program, or the one
 * cycle published everything or printed its plan. EXIT_FAILURE: the start, the one cycle or the
 * event loop failed, or the service ended because of [agent] on_startup_failure, with words in the
 * log. DAEMON_EXIT_BUSY: the state directory is in use, and nothing was changed.
 *
 * Takes ownership of config. config_file (borrowed; NULL as for config_load()) is the file that a
 * reload reads. */
int daemon_run(Config *config, const char *config_file, DaemonMode mode);
