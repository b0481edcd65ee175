/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts compute-agent-prepare after changes of claims. The agent has no right to change a card or
 * to activate a partition. This file writes a new stamp to /run/compute-agent/prepare-wanted, which
 * compute-agent-prepare.path watches. compute-agent-prepare reads the claims itself, so the stamp
 * names no claim. The program's record (/run/compute-agent-prepare/prepared.json) names the stamp
 * that the program saw. While the record lacks the last stamp, or names unfinished work, each cycle
 * of the agent writes another stamp, if a section has vgpu_types. */

#include <systemd/sd-event.h>

#include "claims/claims.h"
#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"

#define PREPARE_STAMP_SIZE 17 /* hexadecimal digits, with the NUL */

typedef struct PrepareWanted {
        char *path, *record_path;        /* NULL: the service has no folder in /run */
        char stamp[PREPARE_STAMP_SIZE];  /* the last one, also if its write failed; "": none */
        bool logged;                     /* a failure to write was logged */
        sd_event_source *timer;          /* owned; NULL: a stamp is not looked at again */
        const HostConfig *const *config; /* the current configuration, for the timer; borrowed */
} PrepareWanted;

/* Sets the paths of "prepare" and "prepared", or of "clean" and "cleaned" (agent/cycle/cleaner.h).
 * runtime: the value of $RUNTIME_DIRECTORY, of which the first folder counts; NULL or a relative
 * path: path stays NULL, and nothing will be written. Returns -ENOMEM. */
int prepare_wanted_init(PrepareWanted *wanted, const char *runtime, const char *verb,
                        const char *record);
void prepare_wanted_done(PrepareWanted *wanted);

/* Lets the event loop call prepare_wanted_tend() 3 s after each stamp of prepare_wanted_note().
 * *config is read then; NULL: no call. systemd does not start a service that is about to end, and a
 * run at its end can miss a stamp. Must be called once. Returns a negative errno of the event loop.
 */
int prepare_wanted_watch(PrepareWanted *wanted, sd_event *event, const HostConfig *const *config);

/* Writes a new stamp. wanted->path must not be NULL. A failure to write the stamp is logged once
 * until a write succeeds. retries: another stamp is written to prepare-retry before, so that units
 * that failed are started again. */
void prepare_wanted_write(PrepareWanted *wanted, bool retries);

/* Writes a stamp if the claim, which changed, has a device of a set with units or a function of a
 * card with vgpu_types. A device that the snapshot lacks counts as such a function, if a section
 * has vgpu_types. snapshot NULL: it lacks all. A mediated device is neither. */
void prepare_wanted_note(PrepareWanted *wanted, const HostConfig *config, const Snapshot *snapshot,
                         const Claim *claim);

/* Writes a stamp if a section [device_prepare NAME] has vgpu_types, and the record
 * (PREPARED_FORMAT) of compute-agent-prepare shows unfinished work. This is so if there is no
 * record, or if it has another stamp or an error. It is also so if a function in it waits for a
 * process. Called at the end of each cycle. */
void prepare_wanted_tend(PrepareWanted *wanted, const HostConfig *config);

/* Returns true if the device is in a set whose partitions have units. Pure. */
bool prepare_wanted_has_units(const HostConfig *config, const char *address);
