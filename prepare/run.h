/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One run of compute-agent-prepare: reads, plans, executes, and writes the records. */

#include "config/config.h"
#include "prepare/hardware.h"

/* Results of a run, which are those of its last pass. */
typedef enum PrepareOutcome {
        PREPARE_DONE = 0, /* everything is as wanted, or waits for a later run */
        PREPARE_FAILED,   /* a card, function, partition or device is not as wanted; the others are,
                             or wait */
        PREPARE_UNTOUCHED, /* the run was not completed, in most cases before its first change: the
                              claims could not be read, they or the cards changed too often, or
                              another run did not end */
} PrepareOutcome;

/* Makes the cards as the configuration and the living claims want them, then the partitions
 * (prepare/partitions.h), and logs each change and each failure. Makes another pass if the agent
 * changes prepare-wanted before the end, or if a card gets its driver; 10 passes at most. Returns a
 * PrepareOutcome, or a negative errno with words. If neither a card nor a set with units is
 * configured, only logs that, and returns PREPARE_DONE. Blocks for units, drivers and the disk, up
 * to a minute for another run, and up to paths->patience_usec for late drivers.
 *
 * dry_run: prints the steps of one plan of the cards and the next step of each set to standard
 * output, and changes nothing. Takes no lock. Does not return PREPARE_FAILED. Reads the claims also
 * if neither a card nor a set is configured. If the claims cannot be read for the plan, prints the
 * error instead of steps, and returns PREPARE_UNTOUCHED. */
int prepare_run(const Config *config, const PreparePaths *paths, bool dry_run, Error *reterr);
