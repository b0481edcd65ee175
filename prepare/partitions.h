/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Activates and deactivates partitions of [device_shapes NAME] as the living claims want them, by
 * starting units of systemd as root. Its record (formats/partitions.h) is
 * RUN/compute-agent-prepare/partitions.json. */

#include "config/config.h"
#include "prepare/hardware.h"
#include "prepare/run.h"

/* Makes the steps of all sets: several sets at the same time, one set in order. Reads the claims
 * again after each unit, and when the agent changes prepare-wanted or prepare-retry. The caller has
 * the lock of the run. Returns a PrepareOutcome, or a negative errno with words. Blocks until all
 * units or their times have ended; after an error units can still run.
 *
 * dry_run: prints the next step of each set to standard output, and changes nothing. Needs no lock.
 * Returns PREPARE_DONE, or a negative errno with words, also if the claims cannot be read. */
int prepare_partitions(const Config *config, const PreparePaths *paths, bool dry_run,
                       Error *reterr);
