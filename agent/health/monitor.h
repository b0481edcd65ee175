/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The health of devices: runs compute-agent-health, and cordons or reports the devices that its
 * health rules find broken. A recovery ends the cordon and the report of its rule, unless that rule
 * found another function of the device broken. A device that the host does not offer is ignored.
 * The helper does the expensive work; the monitor handles one message in each turn of the main
 * loop. A helper that ends, writes no state for a minute, or writes a bad message is started again
 * with growing pauses of at most a minute. So is a helper whose message cannot be handled, for
 * example because the disk refuses a cordon. A refused report or position is only an error of the
 * view. A host without rules has no helper after its first one has ended, until the next reload.
 * Main thread. It blocks on the disk when it is created or freed and when a cordon or a report
 * changes. It also blocks for the position, at most once a minute, and for claims if a rule counts
 * guests. */

#include <systemd/sd-event.h>

#include "agent/guests/database.h"
#include "agent/tree/cordon.h"
#include "drivers/host/snapshot.h"

typedef struct HealthMonitor HealthMonitor;

/* The host as it is known now. Borrowed until the loop runs again. */
typedef struct HealthHost {
        const ProviderTree *tree; /* NULL: unknown */
        const Snapshot *snapshot; /* NULL: unknown */
        NovaMode nova;
} HealthHost;

/* The state of the monitor. The texts are borrowed until the loop runs again. */
typedef struct HealthView {
        const char *reported; /* devices that rules report without withholding them; NULL: none */
        size_t n_reported;
        const char *error; /* why rules are not applied or findings not stored; NULL: all is well */
} HealthView;

/* The parts of the daemon that the monitor uses. All pointers are borrowed and must outlive the
 * monitor. */
typedef struct HealthMonitorConfig {
        sd_event *event;
        const char *state_dir; /* used only by health_monitor_new() */
        Uuid root;
        Cordon *cordon;
        ClaimService *claims;
        HealthHost (*get_host)(void *userdata);
        HealthView *view; /* kept up to date by the monitor */
        /* Called after a change of a cordon or of the view. cordons: the tree must be published. */
        void (*changed)(bool cordons, void *userdata);
        void *userdata;
} HealthMonitorConfig;

/* Creates a monitor, and loads its state. Calls config->changed() if there are reports. A state
 * that is lost is logged. The monitor begins in the main loop, as soon as tree and snapshot of the
 * host are known: it ends cordons and reports of another boot that end with it, and starts the
 * helper. Returns -ENOMEM, or the error of sd-event or of a state that cannot be read. */
int health_monitor_new(HealthMonitor **ret, const HealthMonitorConfig *config);
/* Kills the helper, waits up to 20 ms for its end, and writes changes that were not written. NULL
 * is allowed. Returns NULL. */
HealthMonitor *health_monitor_free(HealthMonitor *monitor);
DEFINE_CLEANUP(HealthMonitor *, health_monitor_free);

/* Ends the helper, and starts it again as soon as it has ended, and tree and snapshot are known.
 * The helper then reads the rules again, and the lines after the last known position. */
void health_monitor_reload(HealthMonitor *monitor);
