/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Brings devices back after their guests: decides with agent/cycle/clean-step.h, writes the rows of
 * the claim database, cordons devices that were not cleaned or cannot be, and logs. The agent has
 * no right to start a unit, and cannot see the open devices of other users. So it writes a stamp to
 * /run/compute-agent/clean-wanted, which compute-agent-clean.path watches. The program
 * compute-agent-prepare --clean reads the rows itself, starts the units, and writes its results to
 * /run/compute-agent-clean/cleaned.json. Main thread; blocks on the disk. */

#include <systemd/sd-event.h>

#include "agent/cycle/tracker.h"
#include "agent/guests/database.h"
#include "agent/tree/cordon.h"

typedef struct Cleaner Cleaner;

typedef struct CleanerConfig {
        sd_event *event;
        ClaimService *service;
        Cordon *cordon;
        Uuid root;
        TrackerView (*look)(void *userdata); /* returns the host as of the last cycle */
        void *userdata;
        const char *runtime; /* see prepare_wanted_init() */
} CleanerConfig;

/* Makes a cleaner. config is copied, its members are borrowed. Begins nothing. Returns -ENOMEM, or
 * another negative errno of the event loop. */
int cleaner_new(Cleaner **ret, const CleanerConfig *config);
Cleaner *cleaner_free(Cleaner *cleaner);
DEFINE_CLEANUP(Cleaner *, cleaner_free);

/* Makes the next step of each device that had a row before the call. Called at the end of each
 * cycle. While a device is dirty, a timer reads the results between cycles. A changed or new row
 * begins a cycle (claim_service_note_cards()). Does nothing without a claim database, a snapshot or
 * a tree, and while a comparison can make claims of guests. A failure of the database or of memory
 * ends the call, also for devices that had no step yet. It is logged once until a call succeeds,
 * and the next call tries again. The timer is not set again then, nor after a call that did
 * nothing. */
void cleaner_tend(Cleaner *cleaner);
